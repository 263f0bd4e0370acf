"""Runs driven by hand, verb by verb, and everything that can be read of a store."""

from __future__ import annotations

import asyncio
from typing import Any

from checkpointers.memory import MemoryCheckpointer
from checkpointers.postgres import PostgresCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import Checkpointer
from stategraph.checkpoint import Effect, Entry, Lease, Opening, Policy, Status, Verdict, Written, dump_openings

#: An approval that whoever likes may decide; a rejection ends the run.
GATE = Opening("approval", "", 1, "pay", digest="shown", final=True)
LEASE_MS = 30_000
EFFECTS = (
    "SELECT e.key, r.run_id, e.policy, e.token, e.outcome FROM effects e LEFT JOIN runs r USING (run) ORDER BY e.key"
)


async def create(
    store: Checkpointer,
    run_id: str = "r",
    status: Status = "running",
    *openings: Opening,
    graph: str = "g",
    creator: str = "carol",
    lease_ms: int = LEASE_MS,
    body: bytes = b'{"n":0}',
) -> Lease:
    """A new run, and its lease if it is created running."""
    lease = await store.create(
        run_id,
        graph=graph,
        fingerprint="f",
        creator=creator,
        body=body,
        status=status,
        opens=dump_openings(openings),
        owner="w",
        lease_ms=lease_ms,
    )
    assert lease is not None
    return lease


def visit(
    step: int,
    status: Status = "running",
    *openings: Opening,
    kind: Any = "node",
    path: str = "",
    attempt: int = 0,
    effect: str | None = None,
    body: bytes = b'{"n":1}',
) -> Entry:
    """A driver's row of a visit."""
    return Entry(kind, path, step, attempt, status, body, dump_openings(openings), effect)


async def paused(store: Checkpointer, run_id: str = "r", *openings: Opening) -> Lease:
    """A run that waits at its boundaries (`1.0`, `1.1`, ...), and the lease by which it came there."""
    lease = await create(store, run_id)
    assert await store.append(lease, 0, [visit(0, "pending", *(openings or (GATE,)))]) is not None
    return lease


async def decide(
    store: Checkpointer,
    decision: Verdict = "approved",
    *,
    run_id: str = "r",
    boundary: str = "1.0",
    digest: str = "shown",
    actor: str = "ann",
    act: str | None = None,
    roles: tuple[str, ...] = (),
    body: bytes = b"{}",
) -> Written | None:
    """Somebody's decision."""
    return await store.decide(
        run_id,
        boundary,
        digest=digest,
        decision=decision,
        actor=actor,
        act=act if act is not None else f"{actor} {decision} {boundary}",
        body=body,
        roles=roles,
    )


async def cancel(store: Checkpointer, act: str = "stop", actor: str = "ops", run_id: str = "r") -> Written | None:
    """An operator's request."""
    return await store.cancel(run_id, actor=actor, act=act, body=b"{}")


async def retry(store: Checkpointer, act: str = "again", actor: str = "ops", run_id: str = "r") -> Written | None:
    """An operator's release of what failed."""
    return await store.retry(run_id, actor=actor, act=act, body=b"{}")


async def signal(store: Checkpointer, act: str, name: str = "paid", key: str = "7", actor: str = "bank") -> bool:
    """A signal to the run `r`."""
    return await store.signal("r", name, key, actor=actor, act=act, body=b"{}") is not None


async def begin(
    store: Checkpointer, lease: Lease, token: str, key: str = "k", policy: Policy = "ask", step: int = 0
) -> Effect | None:
    """An effect's intent."""
    return await store.effect_begin(lease, key, path="", step=step, policy=policy, token=token)


async def claimed(store: Checkpointer, run_id: str = "r", owner: str = "v", lease_ms: int = LEASE_MS) -> Lease:
    """The lease of a run that can be claimed."""
    lease = await store.claim(run_id, owner, lease_ms)
    assert lease is not None
    return lease


async def states(store: Checkpointer, run_id: str = "r") -> list[str]:
    """The states of the run's boundaries, oldest first."""
    return [boundary.state for boundary in await store.boundaries(run_id)]


async def effects(store: Checkpointer) -> list[tuple[Any, ...]]:
    """The effects that the store knows, which no verb tells of: (key, run id, policy, token, outcome)."""
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
    heads = await store.runs(limit=1000)
    runs_due, boundaries_due = await store.due(limit=1000)
    parts = [
        call
        for head in heads
        for call in (store.history(head.run_id), store.load(head.run_id), store.boundaries(head.run_id))
    ]
    return [heads, await asyncio.gather(*parts), sorted(runs_due), sorted(boundaries_due), await effects(store)]
