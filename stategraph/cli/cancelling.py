"""Cancelling: a run is asked to end."""

from __future__ import annotations

from stategraph.cli.options import By, Json, Note, RunId, Store, Traceback
from stategraph.cli.refusal import DONE, FAILED, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.standing import standing_of
from stategraph.cli.stored import known_head
from stategraph.graph import StateGraph

__all__ = ["cancel"]


def cancel(
    run_id: RunId,
    by: By = None,
    note: Note = None,
    store: Store = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> int:
    """End a run, or ask its driver to."""

    async def work(session: Session) -> int:
        async with session.open() as opened:
            await known_head(session, opened, run_id)
            await standing_of(opened, run_id)  # nobody adds to what he cannot read: keys may be missing
            asked = await StateGraph(opened).cancel(run_id, by=by, note=note)
            standing = await standing_of(opened, run_id)
            if not asked:
                why = (
                    "it was asked to end before"
                    if standing.run.ending and not standing.run.ended
                    else "nothing is left to cancel"
                )
                raise Refused(f"run {run_id!r} is {standing.headline()}; {why}", FAILED, "RunNotClaimable")
            session.record(standing.record()) if session.as_json else session.line(
                f"run {run_id} is {standing.headline()}"
            )
            return DONE

    return carry_out(Session(store, as_json=as_json, traceback=traceback), work)
