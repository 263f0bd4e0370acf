"""What several may go for at the same moment and one may get: the runs of the races."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from stategraph.checkpoint import Checkpointer, Lease
from stategraph.testing.byhand import LEASE_MS, begin, cancel, create, decide, paused, visit

__all__ = ["CONTESTS", "Contest"]


@dataclass(frozen=True)
class Contest:
    """A run for which many do the same; whoever gets an answer has won."""

    #: Makes the run.
    prepare: Callable[[Checkpointer, str], Awaitable[object]]
    #: Somebody's try; True: it was accepted.
    go: Callable[[Checkpointer, str, str], Coroutine[Any, Any, bool]]
    #: Who has won, as the store tells it afterwards; None where it tells nobody's name.
    winner: Callable[[Checkpointer, str], Awaitable[str | None]]
    #: How long the log is then.
    rows: int


async def _free(store: Checkpointer, run_id: str) -> None:
    await create(store, run_id, "ready")


async def _nothing(store: Checkpointer, run_id: str) -> None: ...


async def _decide(store: Checkpointer, run_id: str, who: str) -> bool:
    """Every second one says no."""
    return await decide(store, "rejected" if who.endswith("1") else "approved", run_id=run_id, actor=who) is not None


async def _claim(store: Checkpointer, run_id: str, who: str) -> bool:
    return await store.claim(run_id, who, LEASE_MS) is not None


async def _visit(store: Checkpointer, run_id: str, who: str) -> bool:
    return await store.append(Lease(run_id, "w", 1, 0), 0, [visit(0)]) is not None


async def _begin(store: Checkpointer, run_id: str, who: str) -> bool:
    """Only the token that is one's own lets one run the effect."""
    effect = await begin(store, Lease(run_id, "w", 1, 0), who, key=f"effect of {run_id}")
    return effect is not None and effect.token == who


async def _create(store: Checkpointer, run_id: str, who: str) -> bool:
    made = await store.create(
        run_id, graph="g", fingerprint="f", creator=who, body=b"{}", status="running", owner=who, lease_ms=LEASE_MS
    )
    return made is not None


async def _stop(store: Checkpointer, run_id: str, who: str) -> bool:
    return await cancel(store, who, who, run_id) is not None


async def _decider(store: Checkpointer, run_id: str) -> str | None:
    (boundary,) = await store.boundaries(run_id)
    return boundary.decided.by if boundary.decided else None


async def _owner(store: Checkpointer, run_id: str) -> str | None:
    head = await store.head(run_id)
    return head.owner if head else None


async def _creator(store: Checkpointer, run_id: str) -> str | None:
    head = await store.head(run_id)
    return head.creator if head else None


async def _holder(store: Checkpointer, run_id: str) -> str | None:
    """Who begins late is told whose intent it is."""
    effect = await begin(store, Lease(run_id, "w", 1, 0), "late", key=f"effect of {run_id}")
    return effect.token if effect else None


async def _last(store: Checkpointer, run_id: str) -> str | None:
    return (await store.history(run_id))[-1].actor


CONTESTS = {
    "decision": Contest(paused, _decide, _decider, 3),
    "claim": Contest(_free, _claim, _owner, 1),
    "visit": Contest(create, _visit, _last, 2),
    "effect": Contest(create, _begin, _holder, 1),
    "id": Contest(_nothing, _create, _creator, 1),
    "end": Contest(paused, _stop, _last, 3),
}
