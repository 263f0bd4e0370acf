"""The standing of a run: its status in words, what it waits for, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from stategraph.checkpoint import Boundary, Checkpointer, Head
from stategraph.cli.session import Session
from stategraph.cli.terminal import Tone
from stategraph.cli.text import ago, compact, within
from stategraph.errors import UnknownRun, moment
from stategraph.run import Position, Run, fold_log

__all__ = ["TONES", "Standing", "boundary_lines", "standing_of"]

TONES: dict[str, Tone] = {
    "completed": "good", "pending": "waits", "failed": "bad", "rejected": "bad", "cancelled": "bad", "ready": "quiet",
    "running": "quiet",
}  # fmt: skip
_KINDS = {"in_doubt": "an effect in doubt"}


class Standing:
    """Where a run stands now, as far as a person wants to know it."""

    def __init__(self, run: Run, head: Head, boundaries: Sequence[Boundary], now: int) -> None:
        self.run = run
        self.head = head
        #: Those that somebody may decide.
        self.open = [boundary for boundary in boundaries if boundary.kind != "timer"]
        self.now = now

    @property
    def abandoned(self) -> bool:
        """Whether the run's driver has gone: it let its lease run out."""
        return self.head.status == "running" and (self.head.lease_until or 0) <= self.now

    def headline(self) -> str:
        """The status and what it means here, as one clause."""
        run = self.run
        clauses = [self._clause(position) for position in run.positions.values()] if not run.ended else []
        if run.status == "rejected" and run.turned_down:
            clauses.append(f"before {within(run.turned_down, 60)}")
        if self.abandoned:
            clauses.append(f"its driver {within(self.head.owner, 80)} has gone")
        elif run.status == "running":
            clauses.append(f"driven by {within(self.head.owner, 80)}")
        if run.ending and not run.ended:
            clauses.append(f"asked to end ({run.ending})")
        return run.status + (f": {'; '.join(clauses)}" if clauses else "")

    def _clause(self, position: Position) -> str:
        node, running = within(position.node, 60), self.run.status == "running"
        match position.phase:
            case "gate":
                return f"waits for a decision before {node}"
            case "turned":
                return f"turned down before {node}, goes to {within(position.target, 60)} next"
            case "route":
                return f"the router after {node} answers next"
            case "asked":
                return f"waits for an answer at {node}"
            case "timer":
                return f"{node} runs again later"
            case "failed":
                which = f"the router after {node}" if position.resumes == "route" else node
                return f"{which} failed ({within(position.error, 300)})"
            case "ready":
                return f"{node} runs now" if running and not self.abandoned else f"{node} runs next"

    def steps(self, session: Session) -> Iterator[tuple[str, str]]:
        """What can be done now, and what to type for it."""
        run_id = self.run.run_id
        if self.run.status == "pending":
            for boundary in self.open:
                yield from decisions(session, boundary)
        elif self.run.status == "ready":
            yield "go on", session.command("resume", run_id)
        elif self.abandoned:
            yield "go on", session.command("recover", run_id)
        elif self.run.status == "running":
            yield "follow", session.command("events", run_id, "--follow")
        elif self.run.status == "failed":
            yield "try again", session.command("retry", run_id, *self._more_steps())

    def _more_steps(self) -> list[str]:
        spent = self.run.steps >= self.run.max_steps
        return ["--max-steps", str(self.run.max_steps * 2)] if spent else []

    def record(self) -> dict[str, Any]:
        """The last line of a command that drives, as JSON."""
        return {
            "run_id": self.run.run_id,
            "status": self.run.status,
            "boundaries": [asdict(boundary) for boundary in self.open],
        }


async def standing_of(store: Checkpointer, run_id: str) -> Standing:
    """Where a run of the store stands."""
    log = await store.load(run_id)
    if log is None:
        raise UnknownRun(run_id)
    return Standing(fold_log(log), log.head, await store.boundaries(run_id, state="open"), store.clock.now())


def decisions(session: Session, boundary: Boundary) -> Iterator[tuple[str, str]]:
    """The decisions that can be taken of an open boundary, and what to type for each."""
    where = (boundary.run_id, "--boundary", boundary.id)
    if boundary.kind == "in_doubt":
        yield "it happened", session.command("approve", *where, "--answer", "JSON")
        yield "do it again", session.command("approve", *where, "--retry")
        yield "give it up", session.command("reject", *where)
    else:
        yield "approve", session.command("approve", *where)
        yield "reject", session.command("reject", *where)


def boundary_lines(session: Session, boundary: Boundary, state: dict[str, Any], now: int) -> Iterator[str]:
    """An open boundary: what it is, what is shown to whoever decides, and what to type."""
    kind = _KINDS.get(boundary.kind, boundary.kind)
    place = "in" if boundary.kind == "in_doubt" else "before"
    yield f"boundary {boundary.id}: {kind} {place} {within(boundary.node, 60)}, opened {ago(boundary.opened_ms, now)}"
    if boundary.approvers is not None:
        yield f"  may decide: {within(', '.join(boundary.approvers) or 'nobody', 300)}"
    if boundary.needed > 1:
        yield f"  {boundary.approvals} of {boundary.needed} have approved"
    if boundary.expires_at is not None:
        yield f"  expires {moment(boundary.expires_at)}"
    if boundary.kind == "approval":
        for key, value in state.items():
            yield f"  {within(key, 60)} = {within(compact(value), session.terminal.width - 10)}"
    for what, command in decisions(session, boundary):
        yield f"  {what}: {command}"
