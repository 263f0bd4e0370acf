"""What people and the clock do: decide (whatever page they look at), signal, cancel, retry; time passes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import store as verbs
from tests.model.log import expires
from tests.model.scope import Case
from tests.model.shape import CREATOR
from tests.model.step import Cancel, Decide, Expire, Lapse, Retry, Signal, Step, Tick
from tests.model.store import Store
from tests.model.world import Move, World

__all__ = ["clocks", "people"]


def people(case: Case, world: World) -> Iterator[Move]:
    """Every act of a person, or of whoever sends signals."""
    store, log = world.store, world.store.log
    for index in range(len(log.boundaries)):
        yield from _clicks(case, world, index)
    if world.luck.signals:
        after = verbs.signal(case, store)
        if after is not None:
            yield Step("somebody", Signal(), after.status), world._replace(store=after).unlucky(signals=1), []
    if world.luck.noise:
        after = verbs.signal(case, store, awaited=False)
        for other in ("name", "key") if after is not None else ():
            assert after is not None
            yield Step("somebody", Signal(other), after.status), world._replace(store=after).unlucky(noise=1), []
    if world.luck.cancels:
        after = verbs.cancel(case, store)
        if after is not None:
            step = Step("the operator", Cancel(), after.status, unlucky=True)
            yield step, world._replace(store=after).unlucky(cancels=1), []
    if store.status == "failed":
        yield from _retries(case, world, log.limit + 1 if case.shape.max_steps and log.steps >= log.limit else 0)


def _retries(case: Case, world: World, limit: int) -> Iterator[Move]:
    after = verbs.retry(case, world.store, limit)
    assert after is not None
    yield Step("the operator", Retry(limit), after.status), world._replace(store=after), []
    if world.luck.edits:
        after = verbs.retry(case, world.store, limit, edits=True)
        assert after is not None
        step = Step("the operator", Retry(limit, edits=True), after.status, unlucky=True)
        yield step, world._replace(store=after).unlucky(edits=1), []


def _clicks(case: Case, world: World, page: int) -> Iterator[Move]:
    """Decisions from the page of one boundary, which may be closed by now."""
    store, log = world.store, world.store.log
    index = page
    if not case.rules.decision_names_boundary:
        index = next((i for i, boundary in enumerate(log.boundaries) if boundary.state == "open"), page)
    boundary = log.boundaries[index]
    if boundary.kind not in ("approval", "in_doubt"):
        return
    doubt, gate = boundary.kind == "in_doubt", case.nodes[boundary.node].gate
    final_answer = doubt and sum(b.kind == "in_doubt" for b in log.boundaries) >= case.scope.doubts
    decisions = ("approved",) if final_answer else ("approved", "rejected", *(("retry",) if doubt else ()))
    voters = (CREATOR,) if doubt or gate is None else gate.voters()
    if not case.rules.approvers_in_predicate:
        voters = ("ann", "carol", "dan")
    for person in voters:
        for decision in decisions:
            if not verbs.may_decide(case, store, index, decision, person):
                continue
            after = verbs.decide(case, store, index, decision, person)
            wrong = [] if index == page else ["a click on one boundary decided another"]
            if log.ending:
                wrong.append("a boundary was decided after the run was asked to end")
            if index in store.late:
                wrong.append("a boundary was decided after its time")
            if not doubt and gate is not None and not gate.may(person):
                wrong.append("somebody decided who may not")
            if doubt and decision == "retry" and store.outcome:
                wrong.append("a known outcome was thrown away")
            again = world.allowed + (doubt and decision == "retry")
            step = Step(person, Decide(index, decision, boundary.node, boundary.kind), after.status)
            yield step, world._replace(store=after, allowed=again), wrong


def clocks(case: Case, world: World) -> Iterator[Move]:
    """Time passes, and whoever looks at the clock lets things expire."""
    store = world.store
    for index, boundary in enumerate(store.log.boundaries):
        if boundary.state != "open" or not expires(case, boundary):
            continue
        about = (index, boundary.node, boundary.kind)
        if index not in store.late:
            late = store._replace(late=store.late | {index})
            yield Step("time", Tick(*about)), world._replace(store=late), []
        else:
            after = verbs.decide(case, store, index, "expired", ":clock")
            yield Step("the clock", Expire(*about), after.status), world._replace(store=after), []
    if store.leased:
        yield from _lapses(world, store)


def _lapses(world: World, store: Store) -> Iterator[Move]:
    alive = any(worker.epoch == store.epoch and not worker.guest for worker in world.workers)
    lapsed = world._replace(store=store._replace(leased=False))
    if not alive:
        yield Step("time", Lapse(alive)), lapsed, []
    elif world.luck.pauses:
        yield Step("time", Lapse(alive), unlucky=True), lapsed.unlucky(pauses=1), []
