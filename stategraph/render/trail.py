"""The trail of a run: what its log tells of the nodes that ran and of the moves that it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias

from stategraph.checkpoint import Checkpoint, Opening
from stategraph.plan import END, Plan

__all__ = ["FINISH", "START", "MarkKind", "Place", "Trail", "entrance"]

MarkKind: TypeAlias = Literal["start", "node", "router", "gate", "end"]
#: A kind of mark and the node that it belongs to. `("end", END)` is where runs are completed, `("end", node)` is where
#: a rejection at the node's gate ends them.
Place: TypeAlias = tuple[MarkKind, str]

START: Place = ("start", "")
FINISH: Place = ("end", END)


def entrance(plan: Plan, target: str) -> Place:
    """Where a move to `target` arrives: at END, at the gate before the node, or at the node."""
    if target == END:
        return FINISH
    return ("gate" if target in plan.gates else "node", target)


class Trail:
    """How often each place was passed, each node and router failed, and each move between two places was made."""

    def __init__(self, plan: Plan, history: Iterable[Checkpoint] = ()) -> None:
        self._plan = plan
        #: How often the run came to a place and went on, or reached its end there; for a node, ran to its end.
        self.passed: Counter[Place] = Counter()
        #: How often a node, or the router after it, failed.
        self.failed: Counter[Place] = Counter()
        self.moves: Counter[tuple[Place, Place]] = Counter()
        self._openings: dict[str, Opening] = {}
        self._votes: Counter[str] = Counter()
        #: Path -> the gate that was turned down there, until the line has left it.
        self._turned: dict[str, str] = {}
        for row in history:
            self._follow(row)

    def _follow(self, row: Checkpoint) -> None:
        match row.kind:
            case "start":
                self._start(row)
            case "node":
                self._node(row)
            case "route":
                self._route(row)
            case "failed":
                self._failed(row)
            case "decision":
                self._decision(row)
        for nth, opening in enumerate(row.openings):
            self._openings[f"{row.seq}.{nth}"] = opening

    def _start(self, row: Checkpoint) -> None:
        if "at" in row.content:  # the row of a forked run has a whole run instead
            self._move(START, entrance(self._plan, row.content["at"]))

    def _node(self, row: Checkpoint) -> None:
        node = row.node or ""
        routed = node in self._plan.routers
        if routed:
            self._move(("node", node), ("router", node))
        if "at" in row.content:  # else its router has failed
            self._move(("router" if routed else "node", node), entrance(self._plan, row.content["at"]))

    def _route(self, row: Checkpoint) -> None:
        gate = self._turned.pop(row.path or "", None)
        source: Place = ("gate", gate) if gate else ("router", row.node or "")
        self._move(source, entrance(self._plan, row.content["at"]))

    def _failed(self, row: Checkpoint) -> None:
        kinds: dict[str, MarkKind] = {"node": "node", "route": "router"}
        # of another phase: it never started, because the budget was spent or its drivers died
        if kind := kinds.get(row.content.get("phase", "")):
            self.failed[kind, row.node or ""] += 1

    def _decision(self, row: Checkpoint) -> None:
        opening = self._openings.get(row.boundary or "")
        if opening is None or opening.kind != "approval":
            return
        if row.decision == "approved":
            self._votes[row.boundary or ""] += 1
            if self._votes[row.boundary or ""] >= opening.needed:
                self._move(("gate", opening.node), ("node", opening.node))
        elif opening.final:
            self._move(("gate", opening.node), ("end", opening.node))
        else:
            self._turned[opening.path] = opening.node

    def _move(self, source: Place, target: Place) -> None:
        self.moves[source, target] += 1
        self.passed[source] += 1
        if target[0] == "end":
            self.passed[target] += 1
