"""Listing: the runs of a store, one a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from stategraph.checkpoint import Boundary, Checkpointer, Head
from stategraph.cli.options import Json, Plain, Store, Traceback
from stategraph.cli.refusal import DONE
from stategraph.cli.session import Session, carry_out
from stategraph.cli.standing import TONES
from stategraph.cli.text import ago, within

__all__ = ["runs"]


class StatusName(StrEnum):
    """The statuses of runs, as an option's choices."""

    ready = "ready"
    running = "running"
    pending = "pending"
    failed = "failed"
    completed = "completed"
    rejected = "rejected"
    cancelled = "cancelled"


_COLUMNS = ("run", "graph", "seq", "changed", "status")


def runs(
    status: Annotated[StatusName | None, typer.Option("--status", help="Only runs of this status.")] = None,
    graph: Annotated[str | None, typer.Option("--graph", metavar="NAME", help="Only runs of this graph.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="At most this many.")
    ] = 20,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """List runs, newest first."""

    async def work(session: Session) -> int:
        async with session.open() as opened:
            found = await opened.runs(status=status.value if status else None, graph=graph, limit=limit)
            if session.as_json:
                for head in found:
                    session.record(asdict(head))
            elif found:
                await _print(session, opened, found, limit)
            else:
                session.line(
                    "no such runs"
                    if status or graph
                    else f"no runs yet; start one with: {session.command('run', 'FILE')}"
                )
            return DONE

    return carry_out(Session(store, as_json=as_json, plain=plain, traceback=traceback), work)


async def _print(session: Session, store: Checkpointer, heads: Sequence[Head], limit: int) -> None:
    waiting = await _waiting(store, heads)
    now = store.clock.now()
    rows = [
        (
            head.run_id,
            within(head.graph, 30),
            str(head.seq),
            ago(head.updated_ms, now),
            _words(head, waiting.get(head.run_id), now),
        )
        for head in heads
    ]
    widths = [max(len(row[nth]) for row in (*rows, _COLUMNS)) for nth in range(len(_COLUMNS))]
    session.line("  ".join(f"{name:<{width}}" for name, width in zip(_COLUMNS, widths, strict=True)).rstrip())
    for head, row in zip(heads, rows, strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        status = session.terminal.paint(head.status, TONES[head.status]) + row[-1].removeprefix(head.status)
        session.line("  ".join([*cells[:-1], status]))
    if len(heads) == limit:
        session.line(f"the newest {limit}; --limit shows more")


async def _waiting(store: Checkpointer, heads: Sequence[Head]) -> dict[str, Boundary]:
    """The first open boundary of each run that waits."""
    found: dict[str, Boundary] = {}
    for head in heads:
        if head.status == "pending":
            for boundary in await store.boundaries(head.run_id, state="open"):
                if boundary.kind != "timer":
                    found.setdefault(head.run_id, boundary)
    return found


def _words(head: Head, waits: Boundary | None, now: int) -> str:
    """The status, and what it means."""
    if waits is not None:
        what = "an effect in doubt in" if waits.kind == "in_doubt" else f"{waits.kind} before"
        return f"{head.status}: {what} {within(waits.node, 40)}"
    if head.status == "running" and (head.lease_until or 0) <= now:
        return f"{head.status}: its driver has gone"
    if head.ending is not None and head.status != head.ending:
        return f"{head.status}: asked to end ({head.ending})"
    return head.status
