"""History: the log of a run, one line a checkpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from stategraph.checkpoint import Checkpoint, Checkpointer
from stategraph.cli.lines import error_text, noted
from stategraph.cli.options import Json, Plain, RunId, Store, Traceback
from stategraph.cli.refusal import DONE
from stategraph.cli.session import Session, carry_out
from stategraph.cli.stored import known_head
from stategraph.cli.text import pairs, within
from stategraph.encoding import encode
from stategraph.errors import moment
from stategraph.patch import changes
from stategraph.run import MASK

__all__ = ["history"]

#: Checkpoints that are read at a time.
PAGE = 500
#: The parts of a row's content that have values of the state by key.
_VALUES = frozenset({"set", "append", "merge", "state", "result"})


def history(
    run_id: RunId, store: Store = None, as_json: Json = False, plain: Plain = False, traceback: Traceback = False
) -> int:
    """Print a run's log, one line a checkpoint."""

    async def work(session: Session) -> int:
        async with session.open() as opened:
            await known_head(session, opened, run_id)
            secrets: list[str] = []
            async for row in rows_of(opened, run_id):
                if row.kind == "start":
                    secrets = row.content.get("fold", row.content).get("secrets", [])
                shown = _masked(row, secrets) if secrets else row
                session.record(_record(shown)) if session.as_json else session.line(_line(session, shown))
            return DONE

    return carry_out(Session(store, as_json=as_json, plain=plain, traceback=traceback), work)


async def rows_of(store: Checkpointer, run_id: str) -> AsyncIterator[Checkpoint]:
    """A run's verified checkpoints, a page at a time."""
    after = -1
    while rows := await store.history(run_id, after=after, limit=PAGE):
        for row in rows:
            yield row
        after = rows[-1].seq


def _masked(row: Checkpoint, secrets: Sequence[str]) -> Checkpoint:
    """The checkpoint, without what its graph says is secret."""

    def hidden(content: Any, values: bool = False) -> Any:
        if not isinstance(content, dict):
            return content
        return {
            name: MASK if values and name in secrets else hidden(part, name in _VALUES)
            for name, part in content.items()
        }

    return replace(row, body=encode(hidden(row.content)))


def _record(row: Checkpoint) -> dict[str, Any]:
    columns = {name: value for name, value in asdict(row).items() if name != "body" and value is not None}
    return {**columns, "content": row.content}


def _line(session: Session, row: Checkpoint) -> str:
    node = within(row.node or "", 28)
    head = f"{row.seq:>4}  {moment(row.at_ms)}  {row.kind:<8} {node:<16} "
    return (head + within("; ".join(filter(None, _told(row))), max(20, session.terminal.width - len(head)))).rstrip()


def _told(row: Checkpoint) -> Iterator[str]:
    """What the checkpoint says: the act and the actor, what changed, where the run goes, what it rests in."""
    body = row.content
    match row.kind:
        case "decision":
            yield f"{row.decision} by {row.actor} ({row.boundary}){noted(body.get('note'))}"
            yield _changes(body.get("edit", {}))
        case "cancel" | "retry":
            yield f"by {row.actor}{noted(body.get('note'))}"
            yield _changes(body)
        case "signal":
            yield f"{row.name} {row.key} by {row.actor}"
        case "failed":
            yield error_text(body["error"])
        case "start" if "fold" in body:
            yield f"forked from {body['parent']}"
        case _:
            yield _changes(body)
    if row.kind in ("node", "route", "join") and "at" in body:
        yield f"to {body['at']}"
    for opening in row.openings:
        yield f"opens {opening.kind} before {opening.node}"
    if row.status != "running":
        yield row.status


def _changes(body: dict[str, Any]) -> str:
    return pairs(changes(body))
