"""A drawing: what a picture of a plan, and of a run in it, says. Every format is written from this one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Literal, TypeAlias

from stategraph.checkpoint import Checkpoint, Status
from stategraph.gate import Gate
from stategraph.node import Node
from stategraph.plan import Edge, Plan
from stategraph.render.standing import headline, standing
from stategraph.render.text import duration, printable
from stategraph.render.trail import FINISH, START, MarkKind, Place, Trail, entrance
from stategraph.router import Router
from stategraph.run import Run

__all__ = ["Arrow", "ArrowKind", "Direction", "Drawing", "Mark", "draw"]

ArrowKind: TypeAlias = Literal["plain", "answer", "approved", "rejected", "expired"]
Direction: TypeAlias = Literal["LR", "TB"]

#: The name of a router that is a lambda.
NAMELESS = "?"
#: What is written on a mark is wrapped at this many characters, so that none becomes a banner.
_WIDTHS: Mapping[MarkKind, int] = {"node": 34, "router": 20, "gate": 24, "start": 20, "end": 20}
_ARROW_WIDTH = 24
#: A drawing whose longest way has more arrows than this runs from top to bottom.
_LONGEST_ROW = 10


@dataclass(frozen=True, slots=True)
class Mark:
    """One sign of a drawing. Its texts are printable, and not yet escaped for any format."""

    #: Generated: a letter and a number.
    id: str
    kind: MarkKind
    #: The node it belongs to, as declared; END for the finish, nothing for the start.
    node: str
    #: What is written first.
    name: str
    #: What is declared about it, in words.
    notes: tuple[str, ...] = ()
    irreversible: bool = False
    #: How often the run came here and went on: for a node, how often it ran to its end.
    passed: int = 0
    failed: int = 0
    #: What is to be said of the run that stands here.
    stands: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Its kind and node, which no other mark of the drawing has."""
        return (self.kind, self.node)

    @property
    def title(self) -> str:
        """Its name, checked off when the node has run."""
        return f"✓ {self.name}" if self.kind == "node" and self.passed else self.name

    @property
    def progress(self) -> tuple[str, ...]:
        """What the run has done here, and how it stands here."""
        told = []
        if self.kind == "node" and self.passed > 1:
            told.append(f"ran {self.passed} times")
        told_by_standing = self.failed == 1 and any(words.startswith("failed here") for words in self.stands)
        if self.failed and not told_by_standing:
            told.append("failed once" if self.failed == 1 else f"failed {self.failed} times")
        return (*told, *self.stands)

    @property
    def lines(self) -> tuple[str, ...]:
        """Everything that is written on it, the title first."""
        rest = (line for text in (*self.notes, *self.progress) for line in wrap(text, _WIDTHS[self.kind]))
        return (*self.title.split("\n"), *rest)


@dataclass(frozen=True, slots=True)
class Arrow:
    """One way from a mark to another, by their ids. A router's answers that lead to one mark share an arrow."""

    source: str
    target: str
    kind: ArrowKind = "plain"
    #: The router's answers, as declared.
    answers: tuple[str, ...] = ()
    #: Found in the router's code, or unknown: not declared by anybody.
    inferred: bool = False
    #: What is written beside it, but for how often it was taken.
    label: str = ""
    #: How often the run took it.
    taken: int = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """Everything that is written beside it."""
        counted = f"{self.label} · {self.taken} times" if self.label and self.taken > 1 else self.label
        return tuple(line for text in counted.split("\n") for line in wrap(text, _ARROW_WIDTH))


@dataclass(frozen=True, slots=True)
class Drawing:
    """The marks and arrows of a picture, in an order that the graph's declaration alone decides."""

    title: str
    marks: tuple[Mark, ...]
    arrows: tuple[Arrow, ...]
    direction: Direction = "LR"
    #: It shows a run: what the run has not touched steps back.
    of_run: bool = False
    #: That run's status.
    status: Status | None = None


def draw(plan: Plan, run: Run | None = None, history: Sequence[Checkpoint] = ()) -> Drawing:
    """What a picture of the plan says, and of a run in it; `history`, the run's log, gives the path taken."""
    trail = Trail(plan, history)
    stands = standing(plan, run) if run else {}
    marks = tuple(_told(mark, trail, stands) for mark in _marks(plan))
    ids = {mark.place: mark.id for mark in marks}
    arrows = tuple(
        replace(arrow, source=ids[source], target=ids[target], taken=trail.moves[source, target])
        for source, target, arrow in _ways(plan)
    )
    of_run = run is not None or bool(history)
    return Drawing(_title(plan, run), marks, arrows, _direction(marks, arrows), of_run, run.status if run else None)


def _title(plan: Plan, run: Run | None) -> str:
    name = printable(plan.name)
    if run is None:
        return f"{name} · version {printable(plan.version)}"
    return f"{name} · run {printable(run.run_id)} · {headline(plan, run)}"


def _told(mark: Mark, trail: Trail, stands: Mapping[Place, tuple[str, ...]]) -> Mark:
    """The mark with what the run did there."""
    place = mark.place
    return replace(mark, passed=trail.passed[place], failed=trail.failed[place], stands=stands.get(place, ()))


# -- the marks


def _marks(plan: Plan) -> Iterator[Mark]:
    yield Mark("start", *START, name="")
    for nth, node in enumerate(plan.nodes.values()):
        if gate := plan.gates.get(node.name):
            yield Mark(f"g{nth}", "gate", node.name, "‖ gate", tuple(_gate_notes(gate)))
            if gate.on_reject is None:
                yield Mark(f"x{nth}", "end", node.name, "✗")
        yield Mark(f"n{nth}", "node", node.name, printable(node.name), tuple(_node_notes(node)), node.irreversible)
        if router := plan.routers.get(node.name):
            yield Mark(f"r{nth}", "router", node.name, printable(router.name) or NAMELESS, _router_notes(router))
    yield Mark("finish", *FINISH, name="END")


def _node_notes(node: Node) -> Iterator[str]:
    declared = ["irreversible"] if node.irreversible else []
    if node.retry:
        declared.append(f"up to {node.retry.attempts} attempts")
    if node.timeout is not None:
        declared.append(f"timeout {duration(node.timeout)}")
    if declared:
        yield " · ".join(declared)
    for verb, keys in (("reads", node.reads), ("writes", node.writes)):
        if keys is not None:
            yield f"{verb} {', '.join(map(printable, keys)) or 'nothing'}"


def _gate_notes(gate: Gate) -> Iterator[str]:
    if gate.approvers is not None:
        yield f"approvers: {', '.join(map(printable, gate.approvers)) or 'nobody'}"
    if gate.expires_in is not None:
        yield f"expires after {duration(gate.expires_in)}"


def _router_notes(router: Router) -> tuple[str, ...]:
    return {"inferred": ("(inferred)",), "unknown": ("may go anywhere",)}.get(router.known_by, ())


# -- the ways between them


def _ways(plan: Plan) -> Iterator[tuple[Place, Place, Arrow]]:
    yield START, entrance(plan, plan.entry), _PLAIN
    moves: dict[str, dict[str, list[Edge]]] = {name: {} for name in plan.nodes}
    for edge in plan.edges:
        if edge.kind in ("plain", "answer"):
            moves[edge.source].setdefault(edge.target, []).append(edge)
    for name in plan.nodes:
        if gate := plan.gates.get(name):
            yield from _gate_ways(plan, gate)
        yield from _node_ways(plan, name, moves[name])


_PLAIN = Arrow("", "")


def _node_ways(plan: Plan, name: str, moves: Mapping[str, Sequence[Edge]]) -> Iterator[tuple[Place, Place, Arrow]]:
    source: Place = ("node", name)
    if name in plan.routers:
        yield source, ("router", name), _PLAIN
        source = ("router", name)
    for target, edges in moves.items():
        answers = tuple(edge.label for edge in edges if edge.kind == "answer")
        label = " or ".join(printable(answer, 60) for answer in answers)
        arrow = Arrow("", "", "answer" if answers else "plain", answers, edges[0].inferred, label)
        yield source, entrance(plan, target), arrow


def _gate_ways(plan: Plan, gate: Gate) -> Iterator[tuple[Place, Place, Arrow]]:
    place: Place = ("gate", gate.node)
    yield place, ("node", gate.node), Arrow("", "", "approved", label="approved")
    expires = gate.expires_in is not None and gate.on_expire is None
    rejected = "rejected or expired" if expires else "rejected"
    if gate.on_reject is None:
        yield place, ("end", gate.node), Arrow("", "", "rejected", label=f"{rejected},\nends the run")
    else:
        yield place, entrance(plan, gate.on_reject), Arrow("", "", "rejected", label=rejected)
    if gate.on_expire is not None:
        yield place, entrance(plan, gate.on_expire), Arrow("", "", "expired", label="expired")


def _direction(marks: Sequence[Mark], arrows: Sequence[Arrow]) -> Direction:
    """From left to right while the longest way fits into a row; loops back do not count."""
    following: dict[str, list[str]] = {mark.id: [] for mark in marks}
    for arrow in arrows:
        following[arrow.source].append(arrow.target)
    start = marks[0].id
    length: dict[str, int] = {}
    way, seen = [(start, iter(following[start]))], {start}
    while way:  # depth first, so what is seen but has no length yet lies on the way behind: a loop
        mark, ahead = way[-1]
        if (after := next((after for after in ahead if after not in seen), None)) is not None:
            seen.add(after)
            way.append((after, iter(following[after])))
        else:
            way.pop()
            length[mark] = 1 + max((length[after] for after in following[mark] if after in length), default=-1)
    return "LR" if length[start] <= _LONGEST_ROW else "TB"
