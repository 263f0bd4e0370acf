"""The whole: the store, who drives, the luck that is left, and what happened outside of the store."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tests.model.log import Log, born
from tests.model.scope import Case, Luck
from tests.model.shape import Node
from tests.model.step import Step
from tests.model.store import Store, Token

__all__ = ["Flight", "Move", "Worker", "World", "beginning"]


class Flight(NamedTuple):
    """A node in execution."""

    path: str
    step: int
    attempt: int
    node: str
    #: `running`; an effect's: `running`, `intent`, `done`, `known`, or `doubt`.
    phase: str = "running"


class Worker(NamedTuple):
    """A driver, or a guest in its epoch: what it knows of the log, and what it executes."""

    epoch: int
    #: Above 0: it joined somebody's epoch.
    guest: int
    view: Log
    flights: tuple[Flight, ...] = ()
    #: A migration of its was refused, and it went on without (only a wrong variant does).
    unmigrated: bool = False

    def token(self, flight: Flight) -> Token:
        """What names this execution of a node."""
        return (self.epoch, self.guest, flight.attempt)

    def __str__(self) -> str:
        return f"guest {self.guest} of epoch {self.epoch}" if self.guest else f"driver {self.epoch}"


class World(NamedTuple):
    """A state of the search."""

    store: Store
    #: In the order of their claims: who they are is their epoch.
    workers: tuple[Worker, ...]
    luck: Luck
    #: How often the effect was done, and how often it may have been: 1 + how often a person said "again".
    effects: int = 0
    allowed: int = 1

    def seated(self, old: Worker | None, new: Worker | None, store: Store | None = None) -> World:
        """The world with a worker changed, come or gone, and perhaps with another store."""
        workers = [worker for worker in self.workers if worker is not old]
        if new is not None:
            workers.append(new)
            workers.sort()
        return World(store or self.store, tuple(workers), self.luck, self.effects, self.allowed)

    def unlucky(self, **events: int) -> World:
        """With so many unlucky events fewer left."""
        left = {name: getattr(self.luck, name) - count for name, count in events.items()}
        return self._replace(luck=self.luck._replace(**left))


#: A step, the world after it, and what is wrong with the step itself.
Move: TypeAlias = tuple[Step, World, list[str]]


def beginning(case: Case) -> World:
    """The run just created: ready, driven by who created it, or waiting at its first node's gate."""
    log, first = born(case), case.shape.item(0, 0)
    assert isinstance(first, Node)
    if log.boundaries:
        return World(Store(log, "pending"), (), case.scope.luck)
    if case.scope.born == "ready":
        return World(Store(log), (), case.scope.luck)
    return World(Store(log, "running", 1, True), (Worker(1, 0, log),), case.scope.luck)
