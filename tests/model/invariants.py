"""What must hold of every transition, and of every state that one reaches."""

from __future__ import annotations

from tests.model.log import CLOSED, TERMINAL, Boundary, Row, resting
from tests.model.scope import Case
from tests.model.step import Append, Release, Step
from tests.model.store import Store
from tests.model.world import World

__all__ = ["broken"]


def broken(case: Case, before: World, step: Step, after: World) -> list[str]:
    """The invariants that a change of the store breaks."""
    old, new = before.store, after.store
    wrong = [*_of_history(case, step, old, new), *_of_state(case, new)]
    if old.leased and new.status != "running" and not isinstance(step.act, Release) and _at_work(after):
        wrong.append("work under a good lease can no longer be recorded")
    if old.log.ending and old.intent is None and new.intent is not None:
        wrong.append("an effect began after the run was asked to end")
    return wrong


def _at_work(world: World) -> bool:
    """Somebody of the last epoch executes what no row tells of yet."""
    epoch, log = world.store.epoch, world.store.log
    flights = [flight for worker in world.workers if worker.epoch == epoch for flight in worker.flights]
    return any(log.is_free(Row("node", flight.path, flight.step, flight.attempt)) for flight in flights)


def _of_history(case: Case, step: Step, old: Store, new: Store) -> list[str]:
    """What was is not undone."""
    wrong = []
    if old.status in TERMINAL and (old.status, old.log) != (new.status, new.log):
        wrong.append("an ended run changed")
    for was, now in zip(old.log.boundaries, new.log.boundaries, strict=False):
        if was != now and (was.state in CLOSED or not set(was.votes) <= set(now.votes)):
            wrong.append("a decision changed")
    if isinstance(step.act, Append) and step.act.rows[0].kind == "join":
        inner = step.act.rows[0].path
        if any(
            line.path.rpartition("/")[0] == inner and line.path and line.phase != "arrived" for line in old.log.lines
        ):
            wrong.append("a join lost a branch")
    return wrong


def _of_state(case: Case, store: Store) -> list[str]:
    """The status tells the truth, and what is open can be closed."""
    wrong, log, status = [], store.log, store.status
    if status not in ("ready", "running") and status != resting(case, log):
        wrong.append(f"the run is {status!r} although its log says {resting(case, log)!r}")
    for boundary in log.boundaries:
        wrong += _of_boundary(case, store, boundary)
    return wrong


def _of_boundary(case: Case, store: Store, boundary: Boundary) -> list[str]:
    wrong, node = [], case.nodes[boundary.node]
    if boundary.state == "open":
        if store.status in TERMINAL:
            wrong.append("an ended run has an open boundary")
        if boundary.kind == "signal" and store.log.signals:
            wrong.append("a signal is lost: the wait stays open")
    if boundary.kind == "approval" and boundary.state == "approved":
        gate = node.gate
        assert gate is not None
        if len(set(boundary.votes)) < gate.needed:
            wrong.append("fewer people approved than were needed")
    if boundary.kind == "in_doubt" and node.effect == "keyed":
        wrong.append("a keyed effect was asked about")
    return wrong
