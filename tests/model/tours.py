"""Chosen walks: for every kind of transition that a search meets, a shortest way to it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from tests.model.conform import Tour
from tests.model.scope import Case
from tests.model.search import Search
from tests.model.step import Append, Begin, Cancel, Decide, End, Expire, Release, Renew, Settle, Signal, Step
from tests.model.store import IN_DOUBT, Store, held
from tests.model.world import Move, World

__all__ = ["tours"]


def tours(cases: Iterable[Case]) -> list[Tour]:
    """Walks that show every kind of transition of these cases, each kind once."""
    shown: set[Hashable] = set()
    chosen: list[Tour] = []
    for case in cases:
        search = Search(case)
        examples: dict[Hashable, tuple[int, Move]] = {}
        for here, move in search.transitions(cap=1_000_000):
            kind = kind_of(search.worlds[here], move[0], move[1])
            if kind is not None and kind not in shown:
                examples.setdefault(kind, (here, move))
        ways = sorted((search.trace(here, move) for here, move in examples.values()), key=len, reverse=True)
        for way in ways:  # the long ones first: they show what short ones would
            before, kinds = search.worlds[0], set()
            for step, after, _ in way:
                kinds.add(kind_of(before, step, after))
                before = after
            if not kinds - {None} <= shown:
                shown |= kinds
                chosen.append(Tour(case, way))
    return chosen


def kind_of(before: World, step: Step, after: World) -> Hashable | None:
    """What makes two transitions alike to a store; None for what no store sees."""
    old, new, act = before.store, after.store, step.act
    verb, head = type(act).__name__, (old.status, old.log.ending, step.answer)
    match act:
        case Append(seen=seen, rows=rows, status=status, snapshot=snapshot):
            kinds = tuple((row.kind, row.phase, tuple(kind for kind, _ in row.opens)) for row in rows)
            states = frozenset(boundary.state for boundary in new.log.boundaries[len(old.log.boundaries) :])
            failed = any(line.phase == "failed" for line in old.log.lines)
            return verb, kinds, states, status, seen == old.log.seq, snapshot, failed, head
        case Settle(seen=seen, status=status, migrates=migrates):
            return verb, status, migrates, seen == old.log.seq, head
        case Decide(index, decision, _, kind):
            effect = (_holder(old), old.outcome) if kind == "in_doubt" else None
            return verb, decision, kind, _closing(old, new, index), held(old), effect, head
        case Expire(index, _, kind):
            return verb, kind, _closing(old, new, index), held(old), head
        case Signal() | Cancel():
            other = act.other if isinstance(act, Signal) else ""
            waits = frozenset(boundary.kind for boundary in old.log.boundaries if boundary.state == "open")
            return verb, other, waits, held(old), old.log.signals > 0, head
        case Begin(told=told, keyed=keyed):
            return verb, told, keyed, _holder(old), old.outcome, head
        case End(token=token):
            return verb, token == old.intent, _holder(old), old.outcome, step.answer
        case Renew(epoch) | Release(epoch):
            return verb, epoch == old.epoch, head
    return None if new is old else (verb, head)


def _holder(store: Store) -> Any:
    return store.intent if store.intent in (None, IN_DOUBT) else "somebody"


def _closing(old: Store, new: Store, index: int) -> Hashable:
    """How a boundary moved, how many votes it had, and what became of the others that were open."""
    others = frozenset(
        now.state
        for place, (was, now) in enumerate(zip(old.log.boundaries, new.log.boundaries, strict=True))
        if place != index and was.state == "open"
    )
    was, now = old.log.boundaries[index], new.log.boundaries[index]
    return was.state, now.state, len(was.votes), index in old.late, others
