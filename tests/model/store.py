"""The rows of one run, and the verbs: each answers the store after it, or None where its predicate refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tests.model.log import TERMINAL, Boundary, Log, Row, apply
from tests.model.scope import Case

__all__ = [
    "IN_DOUBT",
    "Snapshot",
    "Store",
    "Token",
    "append",
    "cancel",
    "claim",
    "decide",
    "effect_begin",
    "effect_end",
    "held",
    "may_decide",
    "mine",
    "release",
    "renew",
    "restored",
    "retry",
    "settle",
    "signal",
]

#: One execution of one node: epoch, guest, attempt.
Token: TypeAlias = tuple[int, int, int]
#: What the store keeps in place of a token once a person was asked.
IN_DOUBT: Token = (0, 0, 0)


class Snapshot(NamedTuple):
    """A fold that a driver left, and the seq under which it is kept."""

    seq: int
    log: Log


class Store(NamedTuple):
    """The head, the log, the effect's row."""

    log: Log
    status: str = "ready"
    epoch: int = 0
    #: lease_until is in the future.
    leased: bool = False
    #: Whose the effect's intent is; None: no row.
    intent: Token | None = None
    #: The effect's outcome is known.
    outcome: bool = False
    #: The open boundaries whose time has come.
    late: frozenset[int] = frozenset()
    snapshot: Snapshot | None = None
    #: Every row, where snapshots are taken.
    rows: tuple[Row, ...] = ()


def held(store: Store) -> bool:
    """Somebody drives the run, and the lease has not run out."""
    return store.status == "running" and store.leased


def mine(case: Case, store: Store, epoch: int) -> bool:
    """The epoch has the run."""
    if case.rules.lease_fences:
        return store.status == "running" and (store.leased or store.epoch == epoch)
    return store.status == "running" and (store.epoch == epoch or not case.rules.epoch_fences)


def _written(case: Case, store: Store, rows: Sequence[Row], status: str) -> Store:
    """The rows in the log, and the head moved with them: only a running run has a lease."""
    log = store.log
    for row in rows:
        log = apply(case, log, row)
    late = store.late
    if late:
        late = frozenset(index for index in late if log.boundaries[index].state == "open")
    kept = (*store.rows, *rows) if case.scope.luck.snapshots else ()
    return store._replace(log=log, status=status, leased=store.leased and status == "running", late=late, rows=kept)


# -- leases


def claim(store: Store) -> Store | None:
    """Take a run that is ready, or running with its lease over."""
    if store.status == "ready" or (store.status == "running" and not store.leased):
        return store._replace(status="running", epoch=store.epoch + 1, leased=True)
    return None


def renew(case: Case, store: Store, epoch: int) -> Store | None:
    """Hold it for longer."""
    return store._replace(leased=True) if mine(case, store, epoch) else None


def release(case: Case, store: Store, epoch: int) -> Store | None:
    """Put it back."""
    if mine(case, store, epoch) or (store.status == "running" and not case.rules.release_names_epoch):
        return store._replace(status="ready", leased=False)
    return None


# -- a driver's rows


def append(
    case: Case,
    store: Store,
    epoch: int,
    seen: int,
    rows: Sequence[Row],
    status: str,
    snapshot: Log | None = None,
) -> Store | None:
    """A driver's rows, all or none; the proposed status counts if the driver has seen every row."""
    rules, log, first = case.rules, store.log, rows[0]
    if not mine(case, store, epoch) or not _is_free(case, log, first):
        return None
    if rules.append_needs_every_row and seen != log.seq:
        return None
    asks = first.kind == "asked" and first.opens[0][0] == "in_doubt"
    if asks and (store.intent is None or store.outcome):
        return None
    current = seen == log.seq or not rules.stop_needs_every_row
    current = current or (status == "completed" and rules.completion_counts)
    current = current or (len(rows) == 2 and not rules.stop_of_two_needs_every_row)
    after = _written(case, store, rows, status if current else "running")
    if asks and rules.asking_takes_intent:
        after = after._replace(intent=IN_DOUBT)
    if snapshot is not None:
        label = seen if rules.snapshot_of_seen else after.log.seq
        after = after._replace(snapshot=Snapshot(label, snapshot))
    return after


def _is_free(case: Case, log: Log, row: Row) -> bool:
    rules = case.rules
    if not rules.visit_once:
        return log.line(row.path) is not None
    if not rules.visit_once_at_any_attempt:
        line = log.line(row.path)
        return line is not None and (line.step, line.attempt) <= (row.step, row.attempt)
    return log.is_free(row)


def settle(case: Case, store: Store, epoch: int, seen: int, row: Row, status: str) -> Store | None:
    """A driver's row without a visit, refused unless the driver has seen every row."""
    current = seen == store.log.seq or not case.rules.stop_needs_every_row
    return _written(case, store, [row], status) if mine(case, store, epoch) and current else None


# -- somebody's acts


def may_decide(case: Case, store: Store, index: int, decision: str, actor: str) -> bool:
    """The predicate of a decision, but for the boundary's digest and the act, which are the caller's."""
    rules, boundary = case.rules, store.log.boundaries[index]
    if not _is_decidable(case, boundary) or boundary.kind not in ("approval", "in_doubt"):
        return False
    if index in store.late and rules.late_decision_refused:
        return False
    if boundary.kind == "in_doubt":
        return True
    gate = case.nodes[boundary.node].gate
    assert gate is not None
    may = gate.may(actor) or not rules.approvers_in_predicate
    return decision != "retry" and may and (actor not in boundary.votes or not rules.vote_once)


def _is_decidable(case: Case, boundary: Boundary) -> bool:
    return boundary.state == "open" or (not case.rules.closed_stays_closed and boundary.state != "withdrawn")


def decide(case: Case, store: Store, index: int, decision: str, actor: str) -> Store:
    """The row of a decision (the clock's too) that was found possible, and what follows from it."""
    before = store.log.boundaries[index]
    row = Row("decision", boundary=index, decision=decision, actor=actor)
    after = _written(case, store, [row], store.status)
    if before.kind == "in_doubt" and not store.outcome:
        if decision == "approved":
            after = after._replace(outcome=True)
        elif decision == "retry":
            after = after._replace(intent=None)
    if after.log.ending and not store.log.ending:
        return _stopped(case, after, held(store))
    wakes = store.status == "pending" and after.log.boundaries[index].state != "open"
    return after._replace(status="ready") if wakes else after


def signal(case: Case, store: Store, awaited: bool = True) -> Store | None:
    """A row that the oldest open wait takes, or the next that opens; none does if it is of another name or key."""
    if store.status in TERMINAL or store.log.ending:
        return None
    after = _written(case, store, [Row("signal", phase="" if awaited else "other")], store.status)
    taken = after.log.boundaries != store.log.boundaries
    return after._replace(status="ready") if taken and store.status == "pending" else after


def cancel(case: Case, store: Store) -> Store | None:
    """End a run that nobody holds; ask the driver of a held one."""
    if store.status in TERMINAL and case.rules.end_is_final:
        return None
    if store.log.ending and held(store):
        return None
    return _stopped(case, _written(case, store, [Row("cancel")], store.status), held(store))


def _stopped(case: Case, store: Store, is_held: bool) -> Store:
    """Asked to end: at once, unless a driver is at work."""
    if is_held and not case.rules.stop_is_immediate:
        return store
    return store._replace(status=store.log.ending, leased=False)


def retry(case: Case, store: Store, limit: int, edits: bool = False) -> Store | None:
    """Release what failed."""
    if store.status != "failed":
        return None
    return _written(case, store, [Row("retry", limit=limit, edits=edits)], "ready")


# -- effects


def effect_begin(case: Case, store: Store, epoch: int, token: Token, keyed: bool) -> Store | None:
    """An intent; whose it then is says whether it may run."""
    if not mine(case, store, epoch) or (store.log.ending and case.rules.ending_stops_effects):
        return None
    keyed = keyed and case.rules.keyed_handed_on
    hands_on = (keyed or not case.rules.foreign_intent_in_doubt) and not store.outcome
    return store._replace(intent=token) if store.intent is None or hands_on else store


def effect_end(case: Case, store: Store, token: Token) -> Store | None:
    """An outcome, once, by whoever holds the intent."""
    if store.intent == token or (store.intent is not None and not case.rules.outcome_needs_token):
        return store._replace(outcome=True)
    return None


# -- reading


def restored(case: Case, store: Store) -> Log:
    """The run as a driver loads it: from the snapshot, if there is one, and the rows after it."""
    if store.snapshot is None:
        return store.log
    log = store.snapshot.log._replace(seq=store.snapshot.seq)
    for row in store.rows[store.snapshot.seq :]:
        log = apply(case, log, row)
    return log
