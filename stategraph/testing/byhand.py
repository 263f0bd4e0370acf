"""Runs driven by hand, verb by verb, and all that can be read of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from stategraph.checkpoint import (
    Checkpointer,
    Effect,
    Entry,
    Lease,
    Opening,
    Policy,
    Status,
    Verdict,
    Written,
    dump_openings,
)

__all__ = [
    "GATE",
    "LEASE_MS",
    "LONGER",
    "ROUTED",
    "begin",
    "cancel",
    "claimed",
    "create",
    "decide",
    "everything",
    "logged",
    "paused",
    "retry",
    "signal",
    "states",
    "verbs",
    "visit",
    "written",
]

#: An approval that whoever likes may decide; a rejection ends the run.
GATE = Opening("approval", "", 1, "pay", digest="shown", final=True)
#: The same, but a rejection or an expiry moves its position alone.
ROUTED = replace(GATE, final=False)
LEASE_MS = 30_000
#: Seconds after which any lease of these runs is over.
LONGER = LEASE_MS / 1000 + 1


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


async def written(store: Checkpointer, seq: int, run_id: str = "r") -> Written:
    """The answer that the row's writer must have had."""
    row = (await store.history(run_id, after=seq - 1, limit=1))[0]
    return Written(row.seq, row.status, row.at_ms)


async def logged(store: Checkpointer) -> int:
    """A run with a row of every kind; how many they are."""
    lease = await create(store)
    wait = Opening("signal", "", 3, "paid", "d", name="paid", key="7")
    await begin(store, lease, "lost")
    await store.append(lease, 0, [visit(0, kind="route"), visit(1, "failed", kind="failed")])
    await retry(store)
    lease = await claimed(store)
    doubt = replace(GATE, kind="in_doubt", effect="k")
    await store.append(lease, 3, [visit(1, "pending", doubt, wait, kind="asked", attempt=1, effect="k")])
    await decide(store, boundary="4.0")
    await signal(store, "s")
    lease = await claimed(store)
    await store.append(lease, 6, [visit(1, attempt=2, body=b'{"b":2}'), visit(2, kind="join")])
    await cancel(store)
    await store.settle(lease, 9, "cancelled", b"{}")
    rows = await store.history("r")
    assert {row.kind for row in rows} == {
        "start", "node", "route", "join", "failed", "asked", "settled", "decision", "signal", "cancel", "retry"
    }  # fmt: skip
    return len(rows)


async def everything(store: Checkpointer) -> list[object]:
    """All that the verbs tell: two answers are equal if nothing has happened between them."""
    heads = await store.runs(limit=1000)
    runs_due, boundaries_due = await store.due(limit=1000)
    parts = [
        call
        for head in heads
        for call in (store.history(head.run_id), store.load(head.run_id), store.boundaries(head.run_id))
    ]
    return [heads, await asyncio.gather(*parts), sorted(runs_due), sorted(boundaries_due)]


def verbs(store: Checkpointer, run_id: str = "r") -> dict[str, Callable[[], Awaitable[object]]]:
    """A call of every verb, about this run."""
    lease = Lease(run_id, "w", 1, 0)
    return {
        "create": lambda: create(store, run_id),
        "claim": lambda: store.claim(run_id, "v", LEASE_MS),
        "renew": lambda: store.renew(lease, LEASE_MS),
        "release": lambda: store.release(lease),
        "append": lambda: store.append(lease, 0, [visit(0)], b"{}"),
        "settle": lambda: store.settle(lease, 0, "pending", b"{}"),
        "decide": lambda: decide(store, run_id=run_id),
        "expire": lambda: store.expire(run_id, "1.0"),
        "signal": lambda: store.signal(run_id, "paid", "7", actor="bank", act="transfer", body=b"{}"),
        "cancel": lambda: cancel(store, run_id=run_id),
        "retry": lambda: retry(store, run_id=run_id),
        "effect_begin": lambda: begin(store, lease, "t"),
        "effect_end": lambda: store.effect_end(run_id, "k", "t", b"1"),
        "head": lambda: store.head(run_id),
        "load": lambda: store.load(run_id),
        "history": lambda: store.history(run_id),
        "find_act": lambda: store.find_act(run_id, "transfer"),
        "runs": lambda: store.runs(before=run_id),
        "boundaries": lambda: store.boundaries(run_id),
        "due": lambda: store.due(),
        "delete": lambda: store.delete(run_id),
        "prune": lambda: store.prune(0),
    }
