"""Forking: a new run from any checkpoint of another."""

from __future__ import annotations

from typing import Annotated

import typer

from stategraph.cli.driving import Driven, code_of, drive, teller_of
from stategraph.cli.given import given_mapping
from stategraph.cli.options import By, File, Json, Plain, RunId, Store, Traceback
from stategraph.cli.refusal import DONE
from stategraph.cli.session import Session, carry_out
from stategraph.cli.standing import standing_of
from stategraph.cli.stored import stored_run

__all__ = ["fork"]


def fork(
    run_id: RunId,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", min=0, help="The checkpoint to fork from. Left out: the last.")
    ] = None,
    patch: Annotated[
        str | None,
        typer.Option(
            "--patch", metavar="JSON", help="State keys that the new run has otherwise: a JSON object, @file or @-."
        ),
    ] = None,
    new_run_id: Annotated[
        str | None, typer.Option("--run-id", metavar="ID", help="The new run's id. Left out, one is made.")
    ] = None,
    by: By = None,
    drive_on: Annotated[bool, typer.Option("--drive", help="Drive the new run at once.")] = False,
    file: File = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Make a new run from a checkpoint of another."""

    async def work(session: Session) -> int:
        given = given_mapping("--patch", patch)
        async with stored_run(session, run_id) as stored:
            graph = stored.needed_graph()
            values = graph.plan().schema.parse(given)
            made = await graph.fork(run_id, at, values, new_run_id=new_run_id, by=by)
            driven = Driven(stored.store, made.run_id, graph.name, graph)
            if drive_on and made.status == "ready":
                return code_of(await drive(session, driven, graph.resume(made.run_id)))
            standing = await standing_of(stored.store, made.run_id)
            (await teller_of(session, driven)).closed(standing)
            return code_of(standing) if drive_on else DONE

    return carry_out(Session(store, file, as_json, plain, traceback), work)
