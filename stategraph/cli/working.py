"""Working: the runs of a store that nobody drives are driven, until the command is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from stategraph.checkpoint import Checkpointer
from stategraph.cli.age import milliseconds
from stategraph.cli.options import Json, Plain, Store, Traceback
from stategraph.cli.records import Records
from stategraph.cli.refusal import DONE, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.text import within
from stategraph.cli.workflow import load_workflow
from stategraph.events import Event
from stategraph.graph import StateGraph
from stategraph.worker import Worker

__all__ = ["worker"]

#: The events that a worker prints a line for: how a run comes to rest.
_RESTS = frozenset({"interrupted", "completed", "failed", "rejected", "cancelled"})


def worker(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="The graphs. Left out: all of [tool.stategraph] workflows."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", metavar="N", min=1, max=10_000, help="Drive so many runs at once.")
    ] = 10,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.05, max=3600, help="How often to look for runs.")
    ] = 1.0,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="AGE", help="Remove runs that ended longer ago, as in 30d. Left out: none."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Drive what is due now, then stop.")] = False,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Drive runs that are ready, whose driver has died, or whose time has come; Ctrl-C or SIGTERM releases them."""

    async def work(session: Session) -> int:
        kept = None if keep is None else milliseconds(keep) / 1000
        async with session.open(new=True) as opened:
            graphs = _graphs(session, files or session.settings.files(), opened)
            stop = asyncio.Event()
            telling = _Telling(session, stop)
            working = Worker(*graphs, concurrency=concurrency, keep=kept, told=telling.told)
            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # Windows
                    asyncio.get_running_loop().add_signal_handler(number, stop.set)
            with _warnings(session):
                if once:
                    await _until(stop, working.poll())
                else:
                    if not session.as_json:
                        names = ", ".join(within(graph.name, 60) for graph in graphs)
                        session.line(f"working on runs of {names}; Ctrl-C stops")
                    await working.run(stop, every)
        if telling.unheard is not None:
            raise telling.unheard
        return DONE

    return carry_out(Session(store, None, as_json, plain, traceback), work)


def _graphs(session: Session, files: list[str], store: Checkpointer) -> list[StateGraph]:
    """The graphs of the files, around the store."""
    if not files:
        raise Refused(
            "no graph is named: type stategraph worker FILE, or list workflows under [tool.stategraph] in pyproject.toml"
        )
    graphs = [load_workflow(file).graph(store) for file in files]
    for file, graph in zip(files, graphs, strict=True):
        if graph.checkpointer is not store:
            raise Refused(
                f"{file}: its graph was built with a store of its own; write `def build(checkpointer)` "
                f"that returns StateGraph(checkpointer)"
            )
    return graphs


async def _until(stop: asyncio.Event, polling: Any) -> None:
    """The poll's end, or its cancellation when the command is told to stop: what is driven is released."""
    poll, stopping = asyncio.ensure_future(polling), asyncio.ensure_future(stop.wait())
    await asyncio.wait({poll, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not poll.done():
        poll.cancel()
    with suppress(asyncio.CancelledError):
        await poll


class _Telling:
    """Prints every event as JSON, or a line for each run that comes to rest, and stops the work when nobody reads that."""

    def __init__(self, session: Session, stop: asyncio.Event) -> None:
        self._session = session
        self._stop = stop
        self.unheard: BrokenPipeError | None = None

    def told(self, event: Event) -> None:
        """Print the event, if that is asked for."""
        try:
            if self._session.as_json:
                Records(self._session).told(event)
            elif event.event_type in _RESTS:
                self._session.line(f"{event.run_id}: {event.event_type} {within(event.node_name, 60)}")
        except BrokenPipeError as error:
            self.unheard = error
            self._stop.set()


@contextmanager
def _warnings(session: Session) -> Iterator[None]:
    """What the worker logs goes to standard error, a line each."""

    class Aside(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            session.terminal.aside(f"stategraph: {within(record.getMessage())}")

    logger, aside = logging.getLogger("stategraph.worker"), Aside()
    logger.addHandler(aside)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(aside)
        logger.propagate = True
