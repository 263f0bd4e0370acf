"""How much may go wrong in a search; everything that is not counted here may happen as often as it likes."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tests.model.rules import Rules
from tests.model.shape import Node, Shape

__all__ = ["Case", "Luck", "Scope"]


class Luck(NamedTuple):
    """How many unlucky events are left."""

    #: Drivers that vanish.
    crashes: int = 0
    #: Leases that run out although the owner lives: a long pause, a clock that jumps.
    pauses: int = 0
    #: Verbs that are applied while their caller never hears of it.
    lost_acks: int = 0
    #: Nodes and routers that raise.
    failures: int = 0
    #: Drivers that put the run back: Ctrl-C, a consumer that walked away.
    releases: int = 0
    #: Second executors that join an epoch: activities of an external engine.
    guests: int = 0
    cancels: int = 0
    #: Retries that change the state.
    edits: int = 0
    signals: int = 0
    #: Signals of another name or key, which no wait of the run is for.
    noise: int = 0
    #: Folds that a driver leaves with its row.
    snapshots: int = 0


class Scope(NamedTuple):
    """A graph and the bad luck that its run may have."""

    name: str
    shape: Shape
    luck: Luck = Luck()
    workers: int = 2
    born: Literal["ready", "running"] = "ready"
    #: From this in-doubt boundary on people answer only "it happened": else doubt, failure, retry, doubt never ends.
    doubts: int = 2
    #: The run began under an older version of the graph.
    migrates: bool = False


class Case:
    """What is searched: rules and scope."""

    def __init__(self, rules: Rules, scope: Scope) -> None:
        self.rules = rules
        self.scope = scope
        self.shape = scope.shape
        #: The nodes of the shape by name.
        self.nodes = {item.name: item for line in scope.shape.lines for item in line if isinstance(item, Node)}
