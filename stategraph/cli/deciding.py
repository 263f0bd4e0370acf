"""Deciding: a person approves or rejects a boundary; the decision is recorded first, then the run is driven on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from stategraph.checkpoint import Boundary
from stategraph.cli.driving import code_of, drive, driven_of
from stategraph.cli.given import given_json, given_mapping
from stategraph.cli.options import By, File, Json, Note, Plain, RunId, Store, Traceback
from stategraph.cli.refusal import DONE, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.standing import standing_of
from stategraph.cli.stored import Stored, stored_run
from stategraph.cli.text import within
from stategraph.deciding import NO_ANSWER, decide
from stategraph.errors import LeaseHeld
from stategraph.events import Cursor, Event
from stategraph.stream import read_events

__all__ = ["approve", "reject"]

BoundaryId = Annotated[
    str | None,
    typer.Option(
        "--boundary",
        "-b",
        metavar="ID",
        help="The boundary, as `show` lists it. May be left out while one alone is open.",
    ),
]
DecisionId = Annotated[
    str | None,
    typer.Option(
        "--decision-id", metavar="ID", help="Your id of this decision: typed again, it is answered as the first time."
    ),
]
NoDrive = Annotated[bool, typer.Option("--no-drive", help="Record the decision only; whoever drives the run goes on.")]


@dataclass(frozen=True, slots=True)
class Typed:
    """A decision as it was typed."""

    verdict: str
    boundary: str | None
    by: str | None
    note: str | None
    decision_id: str | None
    drive: bool
    edit: Mapping[str, Any] | None = None
    #: The result of an effect in doubt, if `answered`.
    answer: Any = NO_ANSWER
    answered: bool = False


def approve(
    run_id: RunId,
    boundary: BoundaryId = None,
    by: By = None,
    note: Note = None,
    edit: Annotated[
        str | None,
        typer.Option(
            "--edit", metavar="JSON", help="State keys that the approval changes: a JSON object, @file or @-."
        ),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option("--answer", metavar="JSON", help="An effect in doubt has happened, and this was its result."),
    ] = None,
    do_again: Annotated[bool, typer.Option("--retry", help="An effect in doubt is to be done again.")] = False,
    decision_id: DecisionId = None,
    no_drive: NoDrive = False,
    file: File = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Approve what a run waits for, and drive it on."""

    async def work(session: Session) -> int:
        typed = Typed(
            "retry" if do_again else "approved", boundary, by, note, decision_id, not no_drive,
            edit=None if edit is None else given_mapping("--edit", edit),
            answer=NO_ANSWER if answer is None else given_json("--answer", answer),
            answered=answer is not None,
        )  # fmt: skip
        return await _decide(session, run_id, typed)

    return carry_out(Session(store, file, as_json, plain, traceback), work)


def reject(
    run_id: RunId,
    boundary: BoundaryId = None,
    by: By = None,
    note: Note = None,
    decision_id: DecisionId = None,
    no_drive: NoDrive = False,
    file: File = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Reject what a run waits for, and drive it on."""

    async def work(session: Session) -> int:
        return await _decide(session, run_id, Typed("rejected", boundary, by, note, decision_id, not no_drive))

    return carry_out(Session(store, file, as_json, plain, traceback), work)


async def _decide(session: Session, run_id: str, typed: Typed) -> int:
    """Record the decision, then print what follows from it, here or elsewhere."""
    async with stored_run(session, run_id) as stored:
        again = typed.decision_id and await stored.store.find_act(run_id, typed.decision_id)
        meant = (
            None if again else await _meant(stored, typed)
        )  # a repeated decision is answered, wherever the run is now
        if meant is not None:
            _check(typed, meant)
        await _record(stored, typed, meant)
        standing = await drive(session, driven_of(stored), _following(stored, typed))
        if standing.run.status == "ready" and typed.drive and stored.graph is None:
            session.terminal.aside(f"stategraph: recorded, and nobody drives the run on: {stored.missing}")
        return DONE if standing.run.status in ("ready", "running") else code_of(standing)


async def _meant(stored: Stored, typed: Typed) -> Boundary | None:
    """The boundary that is meant; None where nothing is open, which the store answers best."""
    run_id = stored.head.run_id
    waiting = [each for each in await stored.store.boundaries(run_id, state="open") if each.kind != "timer"]
    names = ", ".join(f"{each.id} ({within(each.node, 60)})" for each in waiting) or "none"
    if typed.boundary is not None:
        closed = await stored.store.boundaries(run_id, limit=1 << 31)
        for each in (*waiting, *closed):
            if typed.boundary in (each.id, each.id.removeprefix(f"{run_id}:")):
                return each
        raise Refused(f"run {run_id!r} has no boundary {typed.boundary!r}; open: {names}", kind="DecisionRefused")
    if len(waiting) > 1:
        raise Refused(f"run {run_id!r} has {len(waiting)} open boundaries; name one with --boundary: {names}")
    return waiting[0] if len(waiting) == 1 else None


def _check(typed: Typed, meant: Boundary) -> None:
    """Refuse options that belong to another kind of boundary."""
    doubtful = meant.kind == "in_doubt"
    if not doubtful and (typed.answered or typed.verdict == "retry"):
        option = "--answer" if typed.answered else "--retry"
        raise Refused(f"{option} is for an effect in doubt, and boundary {meant.id} is an {meant.kind}; leave it out")
    if doubtful and (typed.edit is not None or (typed.verdict == "retry" and typed.answered)):
        raise Refused(
            f"boundary {meant.id} is an effect in doubt; give its result alone (--answer JSON), or --retry alone"
        )
    if doubtful and typed.verdict == "approved" and not typed.answered:
        raise Refused(
            f"boundary {meant.id} is an effect in doubt; if it has happened give its result with --answer JSON "
            f"(null for none), and --retry does it again"
        )


async def _record(stored: Stored, typed: Typed, meant: Boundary | None) -> None:
    """Record it, by the graph where there is one: it checks what an edit sets."""
    boundary = typed.boundary if meant is None else meant.id
    if stored.graph is not None:
        edit = None if typed.edit is None else stored.graph.plan().schema.parse(typed.edit)
        await stored.graph.decide(
            stored.head.run_id, typed.verdict, boundary=boundary, by=typed.by, note=typed.note, edit=edit,
            answer=typed.answer, decision_id=typed.decision_id,
        )  # fmt: skip
    elif typed.edit is not None:
        stored.needed_graph()
    else:
        await standing_of(stored.store, stored.head.run_id)  # nobody adds to what he cannot read: keys may be missing
        await decide(
            stored.store, stored.head.run_id, typed.verdict, boundary=boundary, by=typed.by, note=typed.note,
            answer=typed.answer, decision_id=typed.decision_id,
        )  # fmt: skip


async def _following(stored: Stored, typed: Typed) -> AsyncGenerator[Event, None]:
    """The decision as the log tells it, then the run as it goes on from here."""
    run_id = stored.head.run_id
    async for event in read_events(stored.store, run_id, after=Cursor(stored.head.seq, 1 << 30)):
        yield event
    head = await stored.store.head(run_id)
    if stored.graph is None or not typed.drive or head is None or head.status != "ready":
        return
    try:
        async with aclosing(stored.graph.resume(run_id)) as events:
            async for event in events:
                yield event
    except LeaseHeld:
        return  # a worker was faster, and drives it
