"""The graphs that the model walks: lines of nodes, and forks into lines."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["CREATOR", "PEOPLE", "Fork", "Gate", "Item", "Node", "Shape"]

#: Who may click, and the roles that their authentication gives them.
PEOPLE: dict[str, tuple[str, ...]] = {"ann": (), "bob": ("lead",), "carol": ("lead",), "dan": ("guest",)}
#: Who started the run.
CREATOR = "carol"


class Gate(NamedTuple):
    """What a node waits for before it runs: people, or a signal."""

    kind: Literal["approval", "signal"] = "approval"
    #: A rejection or an expiry ends the run; otherwise the line passes the node by (a wait that expires goes on).
    final: bool = True
    needed: int = 1
    approvers: tuple[str, ...] | None = None
    four_eyes: bool = False
    expires: bool = False
    #: It was added to the graph when the run had gone past the row that would have opened it.
    later: bool = False

    def may(self, person: str) -> bool:
        """The person is somebody who may decide here."""
        listed = self.approvers is None or not {person, *PEOPLE[person]}.isdisjoint(self.approvers)
        return listed and not (self.four_eyes and person == CREATOR)

    def voters(self) -> tuple[str, ...]:
        """The people worth telling apart: as many as are needed, or all who may where it matters who."""
        if self.approvers is None and not self.four_eyes:
            return (CREATOR, "bob")[: self.needed]
        return tuple(person for person in PEOPLE if self.may(person))


class Node(NamedTuple):
    """A node, and what can go wrong with it."""

    name: str
    gate: Gate | None = None
    #: It does something in the world: what a foreign intent without outcome means is declared.
    effect: Literal["ask", "keyed"] | None = None
    #: It may raise.
    fails: bool = False
    #: How often it is tried again by itself, each time behind a timer.
    retries: int = 0
    #: It has a router, which may raise.
    router: bool = False


class Fork(NamedTuple):
    """A group of branches, each a line of the shape by its number; the row before it opens them, a join closes them."""

    branches: tuple[int, ...]


Item: TypeAlias = Node | Fork


class Shape(NamedTuple):
    """A graph as lines; the first is the trunk."""

    lines: tuple[tuple[Item, ...], ...]
    #: The budget of node visits; 0: nobody counts.
    max_steps: int = 0

    def item(self, where: int, place: int) -> Item:
        """What stands at a place of a line."""
        return self.lines[where][place]

    def forks(self) -> bool:
        """The graph has parallel lines."""
        return len(self.lines) > 1
