"""A boundary as a row of a database tells it: the columns that `verbs.BOUNDARIES` and its kin select."""

from __future__ import annotations

import json
from typing import Any

from stategraph.checkpoint import Boundary, Decision
from stategraph.encoding import decode

__all__ = ["boundary_of", "note_of"]


def note_of(body: bytes) -> str | None:
    """The note in an act's body; the body may hold anything else."""
    try:
        content = decode(body)
    except ValueError:
        return None
    note = content.get("note") if isinstance(content, dict) else None
    return note if isinstance(note, str) else None


def boundary_of(row: Any) -> Boundary:
    """The boundary, and how it was decided."""
    run_id, short = row[0], row[1]
    decided = None
    if row[21] is not None:
        decided = Decision(row[19] or row[20], row[21], row[22], row[23], note_of(row[24]))
    return Boundary(
        run_id=run_id, id=f"{run_id}:{short}", opened=row[2], kind=row[3], path=row[4], step=row[5], node=row[6], digest=row[7],
        final=bool(row[8]), needed=row[9], approvals=row[10],
        approvers=None if row[11] is None else tuple(json.loads(row[11])),
        four_eyes=bool(row[12]), state=row[13], effect=row[14], name=row[15], key=row[16], expires_at=row[17], opened_ms=row[18],
        decided=decided,
    )  # fmt: skip
