"""Following: the events of a stored run, from its log, and as they come."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from stategraph.cli.driving import Teller
from stategraph.cli.lines import Lines
from stategraph.cli.options import Json, Plain, RunId, Store, Traceback
from stategraph.cli.records import Records
from stategraph.cli.refusal import DONE, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.stored import known_head
from stategraph.events import Cursor
from stategraph.stream import read_events

__all__ = ["events"]

#: An index that no event has: a cursor after everything of its checkpoint.
_LAST = 1 << 30


def events(
    run_id: RunId,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="SEQ.INDEX", help="Only what follows this event; SEQ alone: that checkpoint."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the run has ended.")] = False,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Print a run's events, people's acts too."""

    async def work(session: Session) -> int:
        cursor = _cursor(after)
        async with session.open() as opened:
            head = await known_head(session, opened, run_id)
            told: Teller = Records(session) if session.as_json else Lines(session, head.graph, cursors=True)
            with told as teller:
                async for event in read_events(opened, run_id, after=cursor, follow=follow):
                    teller.told(event)
            return DONE

    return carry_out(Session(store, as_json=as_json, plain=plain, traceback=traceback), work)


def _cursor(text: str | None) -> Cursor | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,12}))?", text, re.ASCII)
    if found is None:
        raise Refused(f"--after {text!r} is no cursor; write SEQ.INDEX as `events` prints it, like 3.0, or SEQ")
    return Cursor(int(found[1]), _LAST if found[2] is None else int(found[2]))
