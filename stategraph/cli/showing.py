"""Showing: one run, now or after any of its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from stategraph.checkpoint import Boundary, Checkpointer, Head
from stategraph.cli.options import Json, Plain, RunId, Store, Traceback
from stategraph.cli.refusal import DONE, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.standing import TONES, Standing, boundary_lines, standing_of
from stategraph.cli.stored import known_head
from stategraph.cli.text import ago, compact, counted, within
from stategraph.errors import moment
from stategraph.run import Run, fold

__all__ = ["show"]


def show(
    run_id: RunId,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", min=0, help="As it was after this checkpoint.")
    ] = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Show a run: its status, what it waits for, its state."""

    async def work(session: Session) -> int:
        async with session.open() as opened:
            head = await known_head(session, opened, run_id)
            if at is None:
                standing = await standing_of(opened, run_id)
                _tell(session, standing.run, standing.head, standing)
            else:
                _tell(session, await _run_at(opened, head, at), head, None)
            return DONE

    return carry_out(Session(store, as_json=as_json, plain=plain, traceback=traceback), work)


async def _run_at(store: Checkpointer, head: Head, at: int) -> Run:
    """The run as the log tells it up to a checkpoint."""
    log = await store.load(head.run_id, until=at)
    if log is None or at > head.seq:
        raise Refused(f"run {head.run_id!r} has no checkpoint {at}; its log ends at {head.seq}")
    return fold(head.run_id, log.checkpoints, log.snapshot[1] if log.snapshot else None)


def _tell(session: Session, run: Run, head: Head, now: Standing | None) -> None:
    if session.as_json:
        session.record(_record(run, head, now.open if now else []))
        return
    for line in _lines(session, run, head, now):
        session.line(line)


def _record(run: Run, head: Head, boundaries: list[Boundary]) -> dict[str, Any]:
    content = {name: value for name, value in run.content().items() if name != "boundaries"}
    content["state"] = run.shown(run.state)
    return {
        "run_id": run.run_id,
        **content,
        "boundaries": [asdict(boundary) for boundary in boundaries],
        "creator": head.creator,
        "owner": head.owner,
        "lease_until": head.lease_until,
        "created_ms": head.created_ms,
        "updated_ms": head.updated_ms,
    }


def _lines(session: Session, run: Run, head: Head, now: Standing | None) -> Iterator[str]:
    terminal = session.terminal
    yield f"run {run.run_id} of {within(run.graph, 60)}, version {within(run.version, 60)}"
    if now is None:
        yield f"{run.status} after checkpoint {run.seq} of {head.seq}"
    else:
        yield terminal.paint(run.status, TONES[run.status]) + now.headline().removeprefix(run.status)
        changed = ago(head.updated_ms, now.now)
        yield f"started {moment(head.created_ms)} by {within(head.creator, 60)}, changed {changed}"
    work = f"{run.usage['active_ms'] / 1000:.1f} s of work"
    yield f"{run.steps} of at most {run.max_steps} steps, {counted(run.seq + 1, 'checkpoint')}, {work}"
    if run.parent:
        yield f"forked from {within(run.parent, 200)}"
    if now is not None and run.status == "pending":
        for boundary in now.open:
            yield from boundary_lines(session, boundary, {}, now.now)
    elif now is not None:
        for what, command in now.steps(session):
            yield f"{what}: {command}"
    yield "state"
    for key, value in run.shown(run.state).items():
        yield f"  {within(key, 60)} = {within(compact(value), 100_000)}"
