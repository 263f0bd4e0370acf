"""Submitting: a new run is stored for a worker to drive; nothing of it runs here."""

from __future__ import annotations

from stategraph.cli.given import given_mapping
from stategraph.cli.options import Input, Json, NewFile, NewRunId, Plain, Store, Traceback
from stategraph.cli.refusal import DONE, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.stored import started

__all__ = ["submit"]


def submit(
    file: NewFile,
    state: Input = None,
    run_id: NewRunId = None,
    store: Store = None,
    as_json: Json = False,
    plain: Plain = False,
    traceback: Traceback = False,
) -> int:
    """Store a new run for a worker to drive, and print its id."""

    async def work(session: Session) -> int:
        given = given_mapping("--input", state)
        async with started(session, file) as graph:
            if not graph.checkpointer.durable:
                raise Refused(f"{file}: its graph keeps runs in memory alone, where no worker can find them")
            submitted = await graph.submit(graph.plan().schema.parse(given), run_id)
        if session.as_json:
            session.record({"run_id": submitted})
        else:
            session.line(submitted)
        return DONE

    return carry_out(Session(store, file, as_json, plain, traceback), work)
