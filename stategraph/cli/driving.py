"""Driving: a run is started, or goes on, and what happens is printed until it rests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated, Protocol, Self

import typer

from stategraph.checkpoint import Checkpointer
from stategraph.cli.given import given_mapping
from stategraph.cli.lines import Lines
from stategraph.cli.options import By, File, Input, Json, NewFile, NewRunId, Note, Plain, RunId, Store, Traceback
from stategraph.cli.records import Records
from stategraph.cli.refusal import CODES, FAILED, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.standing import Standing, standing_of
from stategraph.cli.stored import Stored, started, stored_run
from stategraph.driver import new_run_id
from stategraph.errors import CheckpointerError, LeaseHeld, LeaseLost, RunNotClaimable, UnknownRun
from stategraph.events import Event, Failed
from stategraph.graph import StateGraph
from stategraph.run import fold

__all__ = ["Driven", "Teller", "code_of", "drive", "driven_of", "recover", "resume", "retry", "run", "teller_of"]


class Teller(Protocol):
    """Prints a run's events as they come, and how it stands in the end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def told(self, event: Event) -> None: ...

    def closed(self, standing: Standing) -> None: ...


@dataclass(frozen=True, slots=True)
class Driven:
    """What is driven: a run, and its graph if that was found."""

    store: Checkpointer
    run_id: str
    #: The graph's name.
    name: str
    graph: StateGraph | None
    #: It is not stored yet.
    new: bool = False


def driven_of(stored: Stored) -> Driven:
    """A stored run, to be driven."""
    return Driven(stored.store, stored.head.run_id, stored.head.graph, stored.graph)


async def drive(session: Session, driven: Driven, events: AsyncGenerator[Event, None]) -> Standing:
    """Print what a run does until it rests, and how it stands then."""
    teller, last = await teller_of(session, driven), None
    try:
        with teller:
            async with aclosing(events):
                async for event in events:
                    teller.told(event)
                    last = event
    except asyncio.CancelledError:
        with suppress(UnknownRun):  # it was not stored yet
            await _close(teller, driven)
        raise
    except Exception as error:
        if isinstance(last, Failed):  # the node's own error: the event and the run's status tell it
            session.show_traceback(error)
        elif isinstance(error, CheckpointerError) and last is not None:
            way_out = f"then go on with: {session.command('recover', driven.run_id)}"
            raise Refused(f"{error}; {way_out}", FAILED, type(error).__name__) from error
        elif not _rests(error):
            raise
    return await _close(teller, driven)


async def teller_of(session: Session, driven: Driven) -> Teller:
    """How this session prints a run: as JSON, as lines, or as lines with a display of the graph below them."""
    if session.as_json:
        return Records(session)
    lines = Lines(session, driven.name, driven.graph.plan().nodes if driven.graph else ())
    if driven.graph is None or not session.terminal.live:
        return lines
    from stategraph.cli.live import Live

    if driven.new:
        return Live(session, lines, driven.graph)
    log = await driven.store.history(driven.run_id)
    return Live(session, lines, driven.graph, fold(driven.run_id, log), log)


def _rests(error: Exception) -> bool:
    """Whether the run waits for somebody: then its standing says more than a refusal."""
    held = isinstance(error, (LeaseHeld, LeaseLost))
    return isinstance(error, RunNotClaimable) and error.status == "pending" and not held


async def _close(teller: Teller, driven: Driven) -> Standing:
    """Print how the run stands now."""
    standing = await standing_of(driven.store, driven.run_id)
    teller.closed(standing)
    return standing


def code_of(standing: Standing) -> int:
    """What a command that drives exits with."""
    return CODES.get(standing.run.status, FAILED)


# -- the commands


def run(
    file: NewFile,
    state: Input = None,
    run_id: NewRunId = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Start a run, and tell what happens until it waits or ends."""

    async def work(session: Session) -> int:
        given = given_mapping("--input", state)
        async with started(session, file) as graph:
            values = graph.plan().schema.parse(given)
            driven = Driven(graph.checkpointer, new_run_id() if run_id is None else run_id, graph.name, graph, new=True)
            standing = await drive(session, driven, graph.stream(values, driven.run_id))
            if not graph.checkpointer.durable:
                session.terminal.aside("stategraph: this run was kept in memory alone and is gone now")
            return code_of(standing)

    return carry_out(Session(store, file, as_json, plain, traceback), work)


def resume(
    run_id: RunId,
    file: File = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Drive a run that is ready."""

    async def work(session: Session) -> int:
        async with stored_run(session, run_id) as stored:
            graph = stored.needed_graph()
            return code_of(await drive(session, driven_of(stored), graph.resume(run_id)))

    return carry_out(Session(store, file, as_json, plain, traceback), work)


def recover(
    run_id: RunId,
    file: File = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Take over a run whose driver has died, and drive it."""

    async def work(session: Session) -> int:
        async with stored_run(session, run_id) as stored:
            graph = stored.needed_graph()
            return code_of(await drive(session, driven_of(stored), graph.recover(run_id)))

    return carry_out(Session(store, file, as_json, plain, traceback), work)


def retry(
    run_id: RunId,
    patch: Annotated[
        str | None, typer.Option("--patch", metavar="JSON", help="State keys to set first: a JSON object, @file or @-.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option("--max-steps", metavar="N", help="A larger budget of steps.")] = None,
    by: By = None,
    note: Note = None,
    file: File = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Release what failed in a run, and drive it."""

    async def work(session: Session) -> int:
        given = given_mapping("--patch", patch)
        async with stored_run(session, run_id) as stored:
            graph = stored.needed_graph()
            values = graph.plan().schema.parse(given)
            events = graph.retry(run_id, values, max_steps, by=by, note=note)
            return code_of(await drive(session, driven_of(stored), events))

    return carry_out(Session(store, file, as_json, plain, traceback), work)
