"""Everything that is in a store, with what no verb tells."""

from __future__ import annotations

from typing import Any

from checkpointers.memory import MemoryCheckpointer
from checkpointers.postgres import PostgresCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import Checkpointer
from stategraph.testing import byhand

__all__ = ["EFFECTS", "effects", "everything"]

EFFECTS = (
    "SELECT e.key, r.run_id, e.policy, e.token, e.outcome FROM effects e LEFT JOIN runs r USING (run) ORDER BY e.key"
)


async def effects(store: Checkpointer) -> list[tuple[Any, ...]]:
    """The effects that the store knows: (key, run id, policy, token, outcome)."""
    if isinstance(store, MemoryCheckpointer):
        kept = store._intents.items()
        return sorted((key, kept.run.run_id, kept.policy, kept.token, kept.outcome) for key, kept in kept)
    if isinstance(store, PostgresCheckpointer):
        answer = await store._server.fetch(
            EFFECTS.replace("effects", "stategraph.effects").replace("runs", "stategraph.runs")
        )
        return [tuple(row) for row in answer.rows]
    assert isinstance(store, SqliteCheckpointer)
    cursor = await (store._connection or await store._open()).execute(EFFECTS)
    return [tuple(row) for row in await cursor.fetchall()]


async def everything(store: Checkpointer) -> list[object]:
    """All that can be read of a store: two answers are equal if nothing has happened between them."""
    return [await byhand.everything(store), await effects(store)]
