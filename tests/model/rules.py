"""The decisions of the protocol, each of which can be taken back: what a wrong variant is wrong in."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Rules"]


class Rules(NamedTuple):
    """The protocol as built; a variant takes back one decision."""

    # -- the store's
    #: A proposed stop counts only if the proposer has seen every row.
    stop_needs_every_row: bool = True
    #: ... and that also holds for two rows appended together.
    stop_of_two_needs_every_row: bool = True
    #: A completion counts even if there are rows unseen: nothing that anybody writes can take it back.
    completion_counts: bool = True
    #: An append, a settle, an intent names the epoch of its claim.
    epoch_fences: bool = True
    #: ... and what fences instead is the lease's time, whoever has it.
    lease_fences: bool = False
    #: A release names it too.
    release_names_epoch: bool = True
    #: A visit is completed once.
    visit_once: bool = True
    #: ... whatever the attempt.
    visit_once_at_any_attempt: bool = True
    #: An append is refused when the log has grown since the driver read it.
    append_needs_every_row: bool = False
    #: A decision names its boundary, not just its run.
    decision_names_boundary: bool = True
    #: What was decided is not decided again.
    closed_stays_closed: bool = True
    #: A person votes once.
    vote_once: bool = True
    #: Who may decide is checked by the decision's own predicate.
    approvers_in_predicate: bool = True
    #: A boundary whose time has come takes no decision.
    late_decision_refused: bool = True
    #: A run that has ended is not cancelled.
    end_is_final: bool = True
    #: What is open is withdrawn in the transaction that ends the run or asks it to end.
    ending_withdraws: bool = True
    #: A stop takes the pen from a driver in the middle of a node.
    stop_is_immediate: bool = False
    #: A signal that comes before its wait is kept for it.
    signal_kept: bool = True
    #: A foreign intent without outcome is in doubt.
    foreign_intent_in_doubt: bool = True
    #: ... but a keyed one is handed on.
    keyed_handed_on: bool = True
    #: Who asks about an effect takes its intent away.
    asking_takes_intent: bool = True
    #: An outcome is recorded by the execution that holds the intent.
    outcome_needs_token: bool = True
    #: No effect begins once the run was asked to end.
    ending_stops_effects: bool = True
    #: A snapshot is kept under the row it was folded from, not the row it is written with.
    snapshot_of_seen: bool = True

    # -- the drivers'
    #: Nothing starts once a position has failed.
    failure_stops: bool = True
    #: A join waits for every branch.
    join_awaits_all: bool = True
    #: What others have written is read before one's own row is taken.
    reads_before_taking: bool = True
    #: A gated node runs only if its position carries an approval of this very visit.
    approval_of_this_visit: bool = True
    #: A retry that changes the state asks again about what was approved before.
    edit_asks_again: bool = True
    #: No gate is opened in front of a node that the budget does not reach.
    spent_budget_opens_nothing: bool = True
    #: A node that the budget does not reach fails.
    spent_budget_fails: bool = True
    #: A migration that was refused is tried again before anything runs.
    migration_insists: bool = True
    #: A guest proposes neither an ending nor a failure.
    guest_stops_nothing: bool = True
    #: The owner of an epoch rests only when none of its guests is at work.
    owner_awaits_guests: bool = True
