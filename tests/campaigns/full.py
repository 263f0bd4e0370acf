"""A disk that is full at any page, of the file or of its WAL: a typed error, nothing lost, and with room the run goes on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StoreFull, StoreUnavailable
from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.campaigns.borrowed import borrowed, on
from tests.campaigns.disk import SECTOR, Disk
from tests.campaigns.ticking import Ticking
from tests.campaigns.verdict import Case, Found, Wrong, concluded
from tests.programs.order import build, finish

MANY = 2_000
SHARES = 64


async def whole(path: str, ledger: Path) -> int:
    """How many bytes a life needs."""
    disk = Disk()
    with on(disk, path):
        async with borrowed()(path, clock=Ticking()) as store:
            await finish(build(store, ledger), ledger)
            return sum(len(platter.now) for platter in disk.files.values())


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """Any number of sectors fits; then, with room, the same store goes on, or another one."""
    path, ledger = str(folder / "runs.db"), folder / "runs.ledger"
    sectors = asyncio.run(whole(path, ledger)) // SECTOR

    async def case(dice: random.Random) -> Found:
        found, disk, clock = Found(), Disk(), Ticking()
        policy: Policy = dice.choice(["ask", "keyed"])
        disk.room = dice.randrange(sectors) * SECTOR
        acknowledged = Acknowledged()
        with on(disk, path):
            store: SqliteCheckpointer = borrowed()(path, clock=clock, durability=dice.choice(["full", "relaxed"]))
            try:
                await finish(build(acknowledged.of(store), ledger, policy), ledger)
            except (StoreFull, StoreUnavailable) as error:
                found.facts[type(error).__name__] += 1
            disk.room = None
            clock.advance(3600)
            if dice.random() < 0.5:
                await store.close()
                store = borrowed()(path, clock=clock)
            head = await store.head("r")
            if head is not None and head.status == "failed":
                found.wrong.append(Wrong("lost", "the run has failed"))
            found.wrong += await concluded(store, ledger, policy, acknowledged)
            (said,) = store._database.execute("PRAGMA integrity_check").fetchone()
            if said != "ok":
                found.wrong.append(Wrong("lost", f"integrity_check: {said}"))
            await store.close()
        return found

    def sync(seed: int) -> Found:
        ledger.unlink(missing_ok=True)
        return asyncio.run(case(random.Random(seed)))

    yield sync
