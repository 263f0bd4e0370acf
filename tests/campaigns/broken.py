"""Promises taken back, one for each campaign: a campaign that does not find it out would find nothing.

`python -m tests.campaigns kills --broken`: the library is changed in this process, before the cases are forked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import checkpointers.database
from checkpointers.memory import MemoryCheckpointer
from checkpointers.postgres import PostgresCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StateGraphError
from stategraph.checkpoint import Checkpoint, Effect, Entry, Lease, Written
from tests.campaigns import borrowed, powercuts

STORES: tuple[type[Any], ...] = (MemoryCheckpointer, SqliteCheckpointer, PostgresCheckpointer)


def forgets_effects() -> None:
    """Each execution has its own effects: who comes after a crash finds no intent, and does it again."""
    for store in (SqliteCheckpointer, PostgresCheckpointer):
        _forget(store)


def _forget(store: Any) -> None:
    begin, end = store.effect_begin, store.effect_end

    async def effect_begin(self: Any, lease: Lease, key: str, *, token: str, **given: Any) -> Effect | None:
        return cast("Effect | None", await begin(self, lease, key + token, token=token, **given))

    async def effect_end(self: Any, run_id: str, key: str, token: str, outcome: bytes) -> bytes | None:
        return cast("bytes | None", await end(self, run_id, key + token, token, outcome))

    store.effect_begin, store.effect_end = effect_begin, effect_end


def answers_before_it_writes() -> None:
    """A row is answered for while it is on its way."""
    kind: Any = SqliteCheckpointer
    write, under_way = kind.append, set[asyncio.Task[Any]]()

    async def append(store: Any, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: Any = None) -> Any:
        if entries[-1].status != "running":
            await asyncio.gather(*under_way)
            return await write(store, lease, seen, entries, snapshot)
        task = asyncio.get_running_loop().create_task(write(store, lease, seen, entries, snapshot))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        return Written(seen + len(entries), "running", 0)

    kind.append = append


def does_not_fence() -> None:
    """A row is taken from whoever sends it, under whatever lease the run has by now."""
    for store in (MemoryCheckpointer, SqliteCheckpointer):
        _unfence(store)


def _unfence(store: Any) -> None:
    write = store.append

    async def append(self: Any, lease: Lease, *given: Any) -> Any:
        head = await self.head(lease.run_id)
        return await write(self, replace(lease, epoch=head.epoch, owner=head.owner or lease.owner), *given)

    store.append = append


def does_not_sync() -> None:
    """Nothing waits for the disk."""
    _instead("synchronous=FULL", "synchronous=OFF")


def does_not_wait_for_decisions() -> None:
    """What relaxed durability has to wait for it does not wait for either."""
    _instead("synchronous=FULL", "synchronous=NORMAL")


def lies_about_syncs() -> None:
    """It is the disk that does not do what it says."""
    powercuts.Cuts.lies = True


def _instead(this: str, that: str) -> None:
    execute = borrowed.Connection.execute
    borrowed.Connection.execute = lambda self, sql, *given: execute(self, sql.replace(this, that), *given)  # type: ignore[method-assign]


def hides_errors() -> None:
    """A row that could not be written is answered for."""
    store: Any = borrowed.borrowed()
    write = store.append

    async def append(self: Any, lease: Lease, seen: int, entries: Sequence[Entry], *given: Any) -> Any:
        try:
            return await write(self, lease, seen, entries, *given)
        except StateGraphError:
            return Written(seen + len(entries), entries[-1].status, 0)

    store.append = append


def checks_no_seals() -> None:
    """What is read is believed."""

    def verified(secret: bytes, row: Checkpoint, stored: bytes) -> Checkpoint:
        return row

    checkpointers.database.verified = verified  # type: ignore[attr-defined]


def lets_everybody_claim() -> None:
    """Whoever wants to drive may."""
    claim = MemoryCheckpointer.claim

    async def agree(self: MemoryCheckpointer, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        lease, head = await claim(self, run_id, owner, lease_ms), await self.head(run_id)
        return lease or (Lease(run_id, owner, head.epoch, head.seq) if head else None)

    MemoryCheckpointer.claim = agree  # type: ignore[method-assign]


def releases_nothing() -> None:
    """A driver that stops keeps its lease."""

    async def release(store: Any, lease: Lease) -> bool:
        return True

    for store in STORES:
        store.release = release


#: What is taken back for each campaign.
BROKEN: dict[str, tuple[Callable[[], None], ...]] = {
    "lines": (forgets_effects,),
    "kills": (answers_before_it_writes,),
    "stops": (does_not_fence,),
    "powercuts": (does_not_sync, lies_about_syncs),
    "relaxed": (does_not_wait_for_decisions,),
    "full": (hides_errors,),
    "errors": (hides_errors,),
    "flips": (checks_no_seals,),
    "races": (lets_everybody_claim,),
    "cancels": (releases_nothing,),
    "leavers": (releases_nothing,),
    "clocks": (does_not_fence,),
    "cuts": (forgets_effects,),
}
