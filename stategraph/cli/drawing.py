"""Drawing: the picture of a graph, and of a run in it, into a file or onto the terminal."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stategraph.checkpoint import Checkpoint
from stategraph.cli.options import Json, Store, Traceback
from stategraph.cli.refusal import DONE, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.stored import stored_run
from stategraph.cli.workflow import load_workflow
from stategraph.graph import StateGraph
from stategraph.run import Run, fold
from stategraph.url import open_checkpointer

__all__ = ["draw"]


class Format(StrEnum):
    """What a picture can be written as."""

    svg = "svg"
    png = "png"
    dot = "dot"
    mermaid = "mermaid"
    table = "table"


SUFFIXES = {
    ".svg": Format.svg, ".png": Format.png, ".dot": Format.dot, ".gv": Format.dot, ".mmd": Format.mermaid,
    ".mermaid": Format.mermaid, ".md": Format.table,
}  # fmt: skip


def draw(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="The graph. With --run it may be left out, as --file of other commands."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="The file to write: .svg, .png, .dot, .mmd, .md. Left out: print."
        ),
    ] = None,
    format: Annotated[
        Format | None, typer.Option("--format", help="Left out: by PATH's suffix; printed, a table.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run", metavar="RUN_ID", help="Show the way of this run, and where it stands.")
    ] = None,
    store: Store = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> int:
    """Draw a graph, with a run's path on it if one is named."""

    async def work(session: Session) -> int:
        form = format or _format_of(out)
        if out is None and form is Format.png and not session.as_json and session.terminal.watched:
            raise Refused("a PNG is no text for a terminal; name a file with -o graph.png")
        graph, seen = await _drawn_from(session, run_id)
        drawn = graph.draw(format=form.value, run=seen.run, history=seen.history)
        _put(session, drawn, out, form)
        return DONE

    return carry_out(Session(store, file, as_json, traceback=traceback), work)


@dataclass(frozen=True, slots=True)
class Seen:
    """The run that a picture shows; none by default."""

    run: Run | None = None
    history: Sequence[Checkpoint] = ()


async def _drawn_from(session: Session, run_id: str | None) -> tuple[StateGraph, Seen]:
    """The graph, and the run on it."""
    if run_id is not None:
        async with stored_run(session, run_id) as stored:
            graph = stored.needed_graph("name its file: stategraph draw FILE --run RUN_ID")
            log = await graph.history(run_id)
            return graph, Seen(fold(run_id, log), log)
    if session.file is None:
        raise Refused("name the FILE of a graph, or a run with --run RUN_ID")
    workflow = load_workflow(session.file)
    return workflow.graph(workflow.store or open_checkpointer("memory:")), Seen()


def _format_of(out: str | None) -> Format:
    """By the file's suffix; a table where there is no file."""
    if out is None:
        return Format.table
    form = SUFFIXES.get(Path(out).suffix.lower())
    if form is None:
        raise Refused(f"{out!r} does not say what to draw; end it in {', '.join(SUFFIXES)}, or add --format")
    return form


def _put(session: Session, drawn: str | bytes, out: str | None, form: Format) -> None:
    """Write the picture where it was asked for."""
    data = drawn if isinstance(drawn, bytes) else drawn.encode()
    if out is not None:
        _write(out, data)
        told = f"wrote {out} ({len(data):,} bytes)"
        session.record({"format": form.value, "path": out}) if session.as_json else session.terminal.aside(told)
    elif session.as_json:
        text = drawn if isinstance(drawn, str) else b64encode(data).decode()
        session.record({"format": form.value, "content": text})
    elif isinstance(drawn, str):
        session.line(drawn.removesuffix("\n"))
    else:
        sys.stdout.buffer.write(data)


def _write(out: str, data: bytes) -> None:
    try:
        Path(out).write_bytes(data)
    except OSError as error:
        raise Refused(f"{out!r} cannot be written: {error.strerror}; name another file with -o") from None
