"""What is searched: small scopes at every test run, larger ones by the campaign."""

from __future__ import annotations

from tests.model.scope import Luck, Scope
from tests.model.shape import Fork, Gate, Node, Shape

__all__ = ["LARGE", "MEDIUM", "SMALL"]

FINAL, ROUTED = Gate(), Gate(final=False)
DUE = Gate(expires=True)
WAIT = Gate("signal", final=False, expires=True)


def line(effect: str = "ask", gate: Gate = FINAL, retries: int = 0) -> Shape:
    """F with a router, A behind a gate, E that does something irreversible."""
    last = Node("E", effect="keyed" if effect == "keyed" else "ask", fails=True)
    return Shape(((Node("F", router=True), Node("A", gate=gate, fails=True, retries=retries), last),))


def fork(effect: str = "ask", a: Gate = DUE, b: Gate | None = ROUTED) -> Shape:
    """F, then A and B in parallel behind their gates, then E after the join."""
    last = Node("E", effect=None if effect == "none" else "keyed" if effect == "keyed" else "ask")
    return Shape(((Node("F"), Fork((1, 2)), last), (Node("A", gate=a, fails=True),), (Node("B", gate=b),)))


TIMERS = Shape(((Node("T", fails=True, retries=1), Node("A", gate=Gate(final=False, expires=True))),))
BUDGET = Shape(((Node("F"), Node("A", gate=ROUTED), Node("B", gate=FINAL)),), max_steps=1)
LATER = Shape(((Node("F"), Node("A", gate=Gate(final=False, later=True)), Node("B", gate=FINAL)),))
FOUR_EYES = Gate(needed=2, approvers=("ann", "lead"), four_eyes=True, expires=True)
APPROVERS = Shape(
    ((Node("A", gate=FOUR_EYES), Node("B", gate=Gate(final=False, needed=2, approvers=("guest", "ann")))),)
)
#: Anybody may approve twice over, so that two of three are enough.
QUORUM = Gate(needed=2, approvers=("ann", "lead"), expires=True)
GATED_LINE = Shape(((Node("F"), Node("A", gate=ROUTED), Node("B")),))
#: No gates, so that drivers and guests get in each other's way.
OPEN_LINE = Shape(((Node("F"), Node("A"), Node("B")),))
OPEN_FORK = Shape(((Node("F"), Fork((1, 2)), Node("E")), (Node("A", fails=True),), (Node("B"),)))
NESTED = Shape(
    (
        (Node("F"), Fork((1, 2)), Node("E")),
        (Node("A", fails=True),),
        (Node("G", router=True), Fork((3, 4)), Node("K")),
        (Node("C", gate=FINAL),),
        (Node("D", fails=True),),
    )
)

SMALL = (
    Scope("a line: router, gate, effect", line(), Luck(crashes=1, failures=1, lost_acks=1, cancels=1)),
    Scope("a keyed line under pauses", line("keyed"), Luck(crashes=1, pauses=1, lost_acks=1, failures=1)),
    Scope("a doubtful line put back", line(), Luck(pauses=1, releases=1, failures=1), born="running"),
    Scope("a retry with another state", line("keyed"), Luck(crashes=1, failures=2, edits=1)),
    Scope("timers", TIMERS, Luck(crashes=1, failures=2, lost_acks=1, cancels=1), born="running"),
    Scope("timers under pauses", TIMERS, Luck(pauses=1, failures=2, releases=1), born="running"),
    Scope("a spent budget", BUDGET, Luck(crashes=1, pauses=1, lost_acks=1, cancels=1)),
    Scope("a gate that was added later", LATER, Luck(crashes=1, pauses=1, lost_acks=1, cancels=1)),
    Scope("approvers and four eyes", APPROVERS, Luck(crashes=1, pauses=1, lost_acks=1, cancels=1)),
    Scope("snapshots", GATED_LINE, Luck(snapshots=2, crashes=1, pauses=1, lost_acks=1)),
    Scope("a migration", TIMERS, Luck(crashes=1, pauses=1, failures=1, signals=1, releases=1), migrates=True),
    Scope("a fork with a quorum", fork(a=QUORUM), Luck(crashes=1, failures=1, cancels=1)),
    Scope("a fork under pauses", fork(), Luck(crashes=1, pauses=1)),
    Scope("a fork that is cancelled", fork(), Luck(lost_acks=1, releases=1, cancels=1)),
    Scope("a keyed fork", fork("keyed"), Luck(crashes=1, pauses=1)),
    Scope("a fork that waits for a signal", fork(b=WAIT), Luck(crashes=1, failures=1, signals=2, cancels=1)),
    Scope("a wait that ends the run", fork(b=DUE._replace(kind="signal")), Luck(pauses=1, signals=1, noise=1)),
    Scope("a fork in a fork", NESTED, Luck(crashes=1, failures=2, cancels=1)),
    Scope("a guest that fails", fork("none", b=None), Luck(guests=1, failures=1, cancels=1)),
    Scope("a guest and a crash", OPEN_FORK, Luck(guests=1, crashes=1, failures=1)),
)

MEDIUM = (
    Scope(
        "a line with everything",
        line(gate=DUE, retries=1),
        Luck(crashes=1, pauses=1, lost_acks=1, failures=2, releases=1, cancels=1),
        born="running",
    ),
    Scope("a keyed line with everything", line("keyed"), Luck(1, 1, 1, 2, 1, cancels=1)),
    Scope("snapshots with everything", GATED_LINE, Luck(2, 1, 1, 0, 1, cancels=1, snapshots=2)),
    Scope("a migration with everything", line(), Luck(1, 1, 1, 1, 0, cancels=1), migrates=True),
    Scope("a budget and later gates", LATER._replace(max_steps=2), Luck(2, 2, 1, 0, 1, cancels=1), workers=3),
    Scope("approvers, three drivers", APPROVERS, Luck(2, 2, 1, 0, 1, cancels=1), workers=3),
    Scope("a fork with everything", fork(), Luck(crashes=1, pauses=1, lost_acks=1, failures=1, cancels=1)),
    Scope("a keyed fork with everything", fork("keyed"), Luck(1, 1, 1, 1, 1)),
    Scope("signals, pause, failure, cancel", fork(b=WAIT), Luck(crashes=1, pauses=1, failures=1, cancels=1, signals=2)),
    Scope("a nested fork, pause, failure, cancel", NESTED, Luck(crashes=1, pauses=1, failures=1, cancels=1)),
    Scope("a guest, crash, lost answer, cancel", fork(), Luck(crashes=1, lost_acks=1, cancels=1, guests=1)),
    Scope("a guest, pause, failure", fork(), Luck(pauses=1, failures=1, guests=1)),
    Scope("a keyed guest", fork("keyed", b=WAIT), Luck(crashes=1, lost_acks=1, guests=1, signals=1)),
    Scope("two guests", OPEN_FORK, Luck(crashes=1, failures=1, guests=2, cancels=1), workers=3),
)

LARGE = (
    Scope("signals with everything", fork(b=WAIT), Luck(1, 1, 1, 1, 0, cancels=1, signals=2)),
    Scope("a nested fork with everything", NESTED, Luck(1, 1, 1, 2, 1, cancels=1)),
    Scope("a fork, two crashes, a guest", fork(), Luck(2, 1, 1, 1, 0, guests=1, cancels=1)),
    Scope("a fork, three drivers", fork(), Luck(1, 2, 1, 1, 1, cancels=1), workers=3),
)
