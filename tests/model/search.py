"""Breadth-first search of every state that a case can reach; the first trace to a fault is a shortest one."""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.model.driver import arrivals, driving
from tests.model.invariants import broken
from tests.model.log import TERMINAL
from tests.model.people import clocks, people
from tests.model.scope import Case
from tests.model.step import Step
from tests.model.world import Move, World, beginning

__all__ = ["Fault", "Result", "Search", "explore", "moves"]


class Fault(NamedTuple):
    """Something that must not be, and a shortest way to it."""

    what: str
    trace: tuple[Move, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"    {number:2}. {step}" for number, (step, _, _) in enumerate(self.trace, 1))
        return f"  {self.what}\n{steps}"


class Result(NamedTuple):
    """What a search has found; `complete` if nothing was left to visit."""

    states: int
    transitions: int
    #: Of this process's time: a busy machine does not count.
    seconds: float
    complete: bool
    faults: tuple[Fault, ...]


def moves(case: Case, world: World) -> Iterator[Move]:
    """Everything that may happen next."""
    yield from people(case, world)
    yield from clocks(case, world)
    yield from arrivals(case, world)
    for worker in world.workers:
        yield from driving(case, world, worker)


def explore(case: Case, cap: int = 10_000_000, first: bool = False) -> Result:
    """Visit every state; with `first` only until a fault is found. Then: an end can be reached from each without luck."""
    began, search = time.process_time(), Search(case)
    found: dict[str, tuple[int, Move]] = {}
    for here, move in search.transitions(cap):
        step, after, wrong = move
        before = search.worlds[here]
        if after.store is not before.store:
            wrong = wrong + broken(case, before, step, after)
        for what in wrong:
            found.setdefault(what, (here, move))
        if first and found:
            break
    faults = [Fault(what, search.trace(here, move)) for what, (here, move) in found.items()]
    if search.complete and (stuck := search.stuck()) is not None:
        status = search.worlds[stuck].store.status
        faults.append(Fault(f"no way leads from here to an end: the run stays {status!r}", search.trace(stuck)))
    faults.sort(key=lambda fault: len(fault.trace))
    seconds = time.process_time() - began
    return Result(len(search.worlds), search.count, seconds, search.complete, tuple(faults))


class Search:
    """The states found so far, and how each was reached first."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.worlds = [beginning(case)]
        self.complete = False
        #: Transitions taken.
        self.count = 0
        self._ids = {self.worlds[0]: 0}
        self._parents: list[tuple[int, Step | None]] = [(-1, None)]
        #: The transitions that need no luck, as two columns: numbers take little room.
        self._sources, self._targets = array("L"), array("L")
        self._pool: dict[object, Any] = {}

    def transitions(self, cap: int) -> Iterator[tuple[int, Move]]:
        """Every transition from every state, the nearest states first."""
        worlds, ids, queue = self.worlds, self._ids, deque([0])
        while queue and len(worlds) < cap:
            here = queue.popleft()
            for move in moves(self.case, worlds[here]):
                step, after, _ = move
                self.count += 1
                there = ids.get(after, -1)
                if there < 0:
                    after, there = self._shared(after), len(worlds)
                    ids[after] = there
                    worlds.append(after)
                    self._parents.append((here, step))
                    queue.append(there)
                if not step.unlucky and there != here:
                    self._sources.append(here)
                    self._targets.append(there)
                yield here, move
        self.complete = not queue

    def trace(self, index: int, last: Move | None = None) -> tuple[Move, ...]:
        """A shortest way to a state, and one transition more."""
        way: list[Move] = [] if last is None else [last]
        while True:
            parent, step = self._parents[index]
            if step is None:
                return tuple(reversed(way))
            way.append((step, self.worlds[index], []))
            index = parent

    def stuck(self) -> int | None:
        """The first state from which no end can be reached. Transitions mostly lead to later states, so few passes do."""
        reaches = bytearray(world.store.status in TERMINAL for world in self.worlds)
        sources, targets, changed = self._sources, self._targets, True
        while changed:
            changed = False
            for edge in range(len(sources) - 1, -1, -1):
                if reaches[targets[edge]] and not reaches[sources[edge]]:
                    reaches[sources[edge]] = changed = True
        return next((index for index, reached in enumerate(reaches) if not reached), None)

    def _shared(self, world: World) -> World:
        """The same world made of parts that others are made of too: it takes a fraction of the room."""
        pool, store = self._pool, world.store
        store = pool.setdefault(store, store._replace(log=pool.setdefault(store.log, store.log)))
        workers = []
        for worker in world.workers:
            kept = pool.get(worker)
            if kept is None:
                kept = worker._replace(view=pool.setdefault(worker.view, worker.view))
                pool[kept] = kept
            workers.append(kept)
        return world._replace(store=store, workers=tuple(workers))
