"""The log of a run as its fold knows it: where its lines stand, what is open, what may start, how it rests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.scope import Case
from tests.model.shape import Fork, Gate, Node

__all__ = [
    "CLOSED",
    "TERMINAL",
    "Boundary",
    "Line",
    "Log",
    "Row",
    "apply",
    "born",
    "expires",
    "openings",
    "resting",
    "runnable",
    "spent",
    "waits_for_timer",
]

TERMINAL = ("completed", "rejected", "cancelled")
CLOSED = ("approved", "rejected", "retry", "expired", "withdrawn")


class Line(NamedTuple):
    """Where one line of the run stands. The phases are the fold's; `forked`, `arrived` and `wait` are those of parallel lines."""

    path: str
    #: The line of the shape, and the place on it.
    where: int
    place: int = 0
    step: int = 0
    phase: str = "ready"
    attempt: int = 0
    #: Failures since a person's retry; counted where the node has a retry policy.
    failures: int = 0
    approved: bool = False
    resumes: str = "ready"


class Boundary(NamedTuple):
    """One visit of an interrupt point."""

    kind: str
    node: str
    path: str
    step: int
    state: str = "open"
    #: Who has approved, in alphabetical order.
    votes: tuple[str, ...] = ()
    #: How often the state had been changed by a retry when it was shown.
    edits: int = 0


class Row(NamedTuple):
    """One checkpoint."""

    kind: str
    path: str = ""
    step: int = -1
    attempt: int = -1
    #: `route`: the node is stored, its router has raised; `migrated`: a settled row with a migration; `other`: a signal
    #: of another name or key.
    phase: str = ""
    #: (kind, path) of the boundaries that it opens.
    opens: tuple[tuple[str, str], ...] = ()
    #: Which boundary is decided, and how.
    boundary: int = -1
    decision: str = ""
    actor: str = ""
    #: The larger budget of a retry, and whether it changes the state.
    limit: int = 0
    edits: bool = False


class Log(NamedTuple):
    """The fold at one row. Equal folds at equal `seq` are equal logs to everybody."""

    seq: int
    lines: tuple[Line, ...]
    boundaries: tuple[Boundary, ...] = ()
    #: Signals that came and no wait has taken.
    signals: int = 0
    ending: str = ""
    #: Node visits done and allowed, where the shape has a budget.
    steps: int = 0
    limit: int = 0
    #: How often a retry has changed the state.
    edits: int = 0
    migrated: bool = True

    def line(self, path: str) -> Line | None:
        """The line that is (still) at this path."""
        for line in self.lines:
            if line.path == path:
                return line
        return None

    def is_free(self, row: Row) -> bool:
        """The visit is not completed and its attempt has no row."""
        line = self.line(row.path)
        return line is not None and line.step == row.step and line.attempt == row.attempt


def born(case: Case) -> Log:
    """The log with its first row alone."""
    log = Log(0, (Line("", 0),), limit=case.shape.max_steps, migrated=not case.scope.migrates)
    first = log.lines[0]
    return _opened(case, log, openings(case, log, first.path))


# -- reading


def runnable(case: Case, log: Log) -> list[Line]:
    """The positions that a driver may start. An ending or a failure makes nothing runnable."""
    if log.ending:
        return []
    ready = []
    for line in log.lines:
        phase = line.phase
        if phase == "failed" and case.rules.failure_stops:
            return []
        if phase in ("ready", "turned", "route") or (phase == "forked" and _arrived(case, log, line)):
            ready.append(line)
    return ready


def resting(case: Case, log: Log) -> str:
    """The status that tells the truth when nobody executes anything."""
    if not log.lines:
        return "completed"
    if log.ending:
        return log.ending
    failed = any(line.phase == "failed" for line in log.lines)
    if failed and case.rules.failure_stops:
        return "failed"
    if runnable(case, log):
        return "running"
    return "failed" if failed else "pending"


def waits_for_timer(log: Log) -> bool:
    """A timer is open: the driver stays for it."""
    return any(boundary.kind == "timer" and boundary.state == "open" for boundary in log.boundaries)


def spent(case: Case, log: Log) -> bool:
    """The budget allows no further node."""
    return bool(case.shape.max_steps) and log.steps >= log.limit


def expires(case: Case, boundary: Boundary) -> bool:
    """There is a time at which the clock decides it."""
    if boundary.kind == "timer":
        return True
    gate = case.nodes[boundary.node].gate
    return boundary.kind != "in_doubt" and gate is not None and gate.expires


def openings(case: Case, log: Log, path: str) -> tuple[tuple[str, str], ...]:
    """The boundaries that the row must open which brought the line at this path, and the branches below it, to gates."""
    if spent(case, log) and case.rules.spent_budget_opens_nothing:
        return ()
    opened = []
    for line in log.lines:
        if line.path == path or (path_of_group(line.path) == path and line.place == line.step == 0):
            gate = gate_of(case, line)
            if gate is not None and not gate.later:
                opened.append((gate.kind, line.path))
    return tuple(opened)


def gate_of(case: Case, line: Line) -> Gate | None:
    """The gate in front of which a line stands, unapproved."""
    if line.phase != "ready" or line.approved:
        return None
    item = case.shape.item(line.where, line.place)
    return item.gate if isinstance(item, Node) else None


def path_of_group(path: str) -> str | None:
    """The path of the line that opened the branch; None for the trunk."""
    return path.rpartition("/")[0] if path else None


def _arrived(case: Case, log: Log, line: Line) -> bool:
    """All branches of the group that the line waits for are there."""
    arrived = [branch.phase == "arrived" for branch in _branches(log, line)]
    return all(arrived) if case.rules.join_awaits_all else any(arrived)


def _branches(log: Log, line: Line) -> Iterator[Line]:
    return (branch for branch in log.lines if path_of_group(branch.path) == line.path)


# -- changing


def apply(case: Case, log: Log, row: Row) -> Log:
    """The log with one more row."""
    log = log._replace(seq=log.seq + 1)
    match row.kind:
        case "node" | "route" | "join":
            log = _completed(case, log, row)
        case "failed" | "asked":
            log = _kept(case, log, row)
        case "settled":
            return log._replace(migrated=True) if row.phase == "migrated" else log
        case "decision":
            return _decided(case, log, row)
        case "signal":
            return log if row.phase == "other" else _signalled(log)
        case "cancel":
            return _asked_to_end(case, log, "cancelled")
        case "retry":
            return _retried(case, log, row)
    return _opened(case, log, row.opens)


def _placed(log: Log, line: Line) -> Log:
    lines = [line if other.path == line.path else other for other in log.lines]
    return log._replace(lines=tuple(lines))


def _completed(case: Case, log: Log, row: Row) -> Log:
    line = log.line(row.path)
    if line is None:
        return log  # only a wrong variant comes here
    if row.kind == "node" and case.shape.max_steps:
        log = log._replace(steps=log.steps + 1)
    if row.phase == "route":
        return _placed(log, Line(line.path, line.where, line.place, line.step + 1, "route"))
    if row.kind == "join":
        log = log._replace(lines=tuple(other for other in log.lines if path_of_group(other.path) != line.path))
    return _moved_on(case, log, line)


def _moved_on(case: Case, log: Log, line: Line) -> Log:
    """The line at its next place: a node, a fork, or its end."""
    items, place, step = case.shape.lines[line.where], line.place + 1, line.step + 1
    if place == len(items):
        if not line.path:
            return log._replace(lines=())
        return _placed(log, Line(line.path, line.where, place, step, "arrived"))
    item = items[place]
    if isinstance(item, Node):
        return _placed(log, Line(line.path, line.where, place, step))
    log = _placed(log, Line(line.path, line.where, place, step, "forked"))
    return log._replace(lines=tuple(sorted((*log.lines, *_branched(item, line)))))


def _branched(fork: Fork, line: Line) -> Iterator[Line]:
    for index, where in enumerate(fork.branches):
        yield Line(f"{line.path}/{line.step}.{index}".lstrip("/"), where)


def _kept(case: Case, log: Log, row: Row) -> Log:
    """A row that leaves the visit to be done: one more attempt is over."""
    line = log.line(row.path)
    if line is None:
        return log
    if row.kind == "asked":
        return _placed(log, line._replace(attempt=line.attempt + 1))
    item = case.shape.item(line.where, line.place)
    counted = isinstance(item, Node) and item.retries > 0
    resumes = "route" if line.phase == "route" else "ready"
    failed = line._replace(phase="failed", attempt=line.attempt + 1, failures=line.failures + counted, resumes=resumes)
    return _placed(log, failed)


def _opened(case: Case, log: Log, opens: tuple[tuple[str, str], ...]) -> Log:
    for kind, path in opens:
        line = log.line(path)
        assert line is not None
        item = case.shape.item(line.where, line.place)
        assert isinstance(item, Node)
        state, phase = "open", {"approval": "gate", "signal": "wait", "timer": "timer", "in_doubt": "asked"}[kind]
        if log.ending and case.rules.ending_withdraws:
            state = "withdrawn"
        elif kind == "signal" and log.signals and case.rules.signal_kept:
            log, state = log._replace(signals=log.signals - 1), "approved"
        boundary = Boundary(kind, item.name, path, line.step, state, edits=log.edits)
        log = log._replace(boundaries=(*log.boundaries, boundary))
        passed = state == "approved"
        log = _placed(log, line._replace(phase="ready" if passed else phase, approved=passed or line.approved))
    return log


def _closed(log: Log, index: int, boundary: Boundary) -> Log:
    return log._replace(boundaries=(*log.boundaries[:index], boundary, *log.boundaries[index + 1 :]))


def _decided(case: Case, log: Log, row: Row) -> Log:
    boundary, node = log.boundaries[row.boundary], case.nodes[log.boundaries[row.boundary].node]
    kind, decision = boundary.kind, row.decision
    if decision == "approved":
        boundary = boundary._replace(votes=tuple(sorted((*boundary.votes, row.actor))))
        needed = node.gate.needed if node.gate and kind == "approval" else 1
        if len(boundary.votes) < needed:
            return _closed(log, row.boundary, boundary)
    log = _closed(log, row.boundary, boundary._replace(state=decision))
    line = log.line(boundary.path)
    assert line is not None
    if kind == "timer" or (kind == "in_doubt" and decision in ("approved", "retry")):
        return _placed(log, line._replace(phase=line.resumes, resumes="ready"))
    if kind == "in_doubt":
        return _placed(log, line._replace(phase="failed"))
    assert node.gate is not None
    if decision == "approved" or (kind == "signal" and not node.gate.final):
        return _placed(log, line._replace(phase="ready", approved=True))
    if node.gate.final:
        return _asked_to_end(case, log, "rejected")
    return _placed(log, line._replace(phase="turned"))


def _signalled(log: Log) -> Log:
    for index, boundary in enumerate(log.boundaries):
        if boundary.kind == "signal" and boundary.state == "open":
            line = log.line(boundary.path)
            assert line is not None
            log = _closed(log, index, boundary._replace(state="approved"))
            return _placed(log, line._replace(phase="ready", approved=True))
    return log._replace(signals=log.signals + 1)


def _asked_to_end(case: Case, log: Log, ending: str) -> Log:
    """Nothing more may start; what is still open is withdrawn with the same row."""
    log = log._replace(ending=log.ending or ending)
    if not case.rules.ending_withdraws:
        return log
    boundaries = [b._replace(state="withdrawn") if b.state == "open" else b for b in log.boundaries]
    return log._replace(boundaries=tuple(boundaries))


def _retried(case: Case, log: Log, row: Row) -> Log:
    """What failed may run again; an approval was of the state that was shown."""
    asks_again = row.edits and case.rules.edit_asks_again
    lines = [
        line._replace(phase=line.resumes, resumes="ready", failures=0, approved=line.approved and not asks_again)
        if line.phase == "failed"
        else line
        for line in log.lines
    ]
    return log._replace(lines=tuple(lines), limit=max(log.limit, row.limit), edits=log.edits + row.edits)
