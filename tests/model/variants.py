"""Tempting variants of the protocol, each with the scope in which it breaks."""

from __future__ import annotations

from typing import NamedTuple

from tests.model.rules import Rules
from tests.model.scope import Case, Luck, Scope
from tests.model.scopes import (
    APPROVERS,
    BUDGET,
    DUE,
    GATED_LINE,
    LATER,
    OPEN_FORK,
    OPEN_LINE,
    QUORUM,
    TIMERS,
    WAIT,
    fork,
    line,
)
from tests.model.shape import Shape

__all__ = ["HARMLESS", "WRONG", "Variant"]


class Variant(NamedTuple):
    """What somebody might build instead, and where that goes wrong."""

    name: str
    rules: Rules
    scope: Scope

    @property
    def case(self) -> Case:
        return Case(self.rules, self.scope)


def _variant(name: str, shape: Shape, luck: Luck | None = None, migrates: bool = False, **rules: bool) -> Variant:
    return Variant(name, Rules(**rules), Scope(name, shape, luck or Luck(), migrates=migrates))


WRONG = (
    _variant("a stop counts although there are rows unseen", fork(), stop_needs_every_row=False),
    _variant(
        "the stop of two rows counts although there are rows unseen",
        line(),
        Luck(failures=1, cancels=1),
        stop_of_two_needs_every_row=False,
    ),
    _variant("a completion waits for the rows unseen", line(), Luck(crashes=1, cancels=2), completion_counts=False),
    _variant("no epoch in the append", fork(), Luck(pauses=1), epoch_fences=False),
    _variant("the lease's time fences, not the epoch", line(), Luck(pauses=1), lease_fences=True),
    _variant("a release without the epoch", line(), Luck(pauses=1, releases=1), release_names_epoch=False),
    _variant("an append is refused when the log has grown", fork(), append_needs_every_row=True),
    _variant("no key of the visit", line(), Luck(lost_acks=1), visit_once=False),
    _variant("a decision names the run, not the boundary", fork(), decision_names_boundary=False),
    _variant("one person may approve twice", fork(a=QUORUM), vote_once=False),
    _variant("who may decide is left to the page", APPROVERS, approvers_in_predicate=False),
    _variant("a decision is taken after its time", fork(), late_decision_refused=False),
    _variant("a cancel overwrites an end", line(), Luck(cancels=1), end_is_final=False),
    _variant("an ending leaves the siblings open", fork(), ending_withdraws=False),
    _variant("a stop takes the pen from a driver at work", fork(), stop_is_immediate=True),
    _variant("a signal before its wait is dropped", fork(a=WAIT), Luck(signals=1), signal_kept=False),
    _variant("a takeover clears the doubt", line(), Luck(crashes=1), foreign_intent_in_doubt=False),
    _variant(
        "the lost execution keeps the intent while a person is asked", line(), Luck(pauses=1), asking_takes_intent=False
    ),
    _variant("an outcome is recorded without the token", line(), Luck(pauses=1), outcome_needs_token=False),
    _variant("an effect begins after a cancel", line(), Luck(cancels=1), ending_stops_effects=False),
    _variant("a keyed effect is asked about too", line("keyed"), Luck(crashes=1), keyed_handed_on=False),
    _variant(
        "a snapshot is kept under the row it is written with",
        OPEN_LINE,
        Luck(snapshots=1, crashes=1),
        snapshot_of_seen=False,
    ),
    _variant("the last click wins", GATED_LINE, closed_stays_closed=False),
    _variant("a join goes on with the first branch", OPEN_FORK, join_awaits_all=False),
    _variant("the budget is looked at when gates open alone", BUDGET, spent_budget_fails=False),
    _variant("siblings start after a failure", OPEN_FORK, Luck(failures=1), failure_stops=False),
    _variant("a driver takes its row without reading what came before", fork(), reads_before_taking=False),
    _variant("a gate is opened by the row before it or never", LATER, approval_of_this_visit=False),
    _variant("a retry with another state keeps the approval", line(), Luck(failures=1, edits=1), edit_asks_again=False),
    _variant("a gate is opened on a spent budget", BUDGET, spent_budget_opens_nothing=False),
    _variant(
        "a migration that was refused is given up", TIMERS, Luck(signals=1), migrates=True, migration_insists=False
    ),
    _variant("a guest proposes a failure", OPEN_FORK, Luck(guests=1, failures=1), guest_stops_nothing=False),
    _variant("an owner rests over its guests' work", fork(a=DUE), Luck(guests=1, cancels=1), owner_awaits_guests=False),
)

#: Variants that nothing speaks against: each is a second lock on a door that is closed.
HARMLESS = (
    _variant(
        "the key of the visit with its attempt alone",
        fork(),
        Luck(crashes=1, failures=1),
        visit_once_at_any_attempt=False,
    ),
)
