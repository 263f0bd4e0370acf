"""The power goes off at any write or fsync: of the unsynced 512-byte sectors any subset is on the disk, each as it once was.

The store is the SQLite one with full durability, on the disk of `tests.campaigns.disk`: whatever it has answered for is
there when the power is back, and the run goes on from it.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StateGraphError
from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.campaigns.borrowed import borrowed, on
from tests.campaigns.disk import Disk
from tests.campaigns.ticking import Ticking
from tests.campaigns.verdict import Case, Found, Wrong, concluded
from tests.programs.order import build, finish

MANY = 10_000
SHARES = 64

Durability = Literal["full", "relaxed"]


class Cuts:
    """Power cuts of one kind of store."""

    #: Whether the disk says that it has synced, and has not.
    lies = False

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.durability: Durability = durability
        self.path, self.ledger = str(folder / "runs.db"), folder / "runs.ledger"
        #: The calls that a whole life makes to its disk.
        self.calls = asyncio.run(self._counted())

    def store(self, clock: Ticking) -> SqliteCheckpointer:
        return borrowed()(self.path, durability=self.durability, clock=clock)

    async def _counted(self) -> int:
        disk = Disk()
        with on(disk, self.path):
            async with self.store(Ticking()) as store:
                await finish(build(store, self.ledger), self.ledger)
        return disk.calls

    def case(self, seed: int) -> Found:
        self.ledger.unlink(missing_ok=True)
        return asyncio.run(self._case(random.Random(seed)))

    async def _case(self, dice: random.Random) -> Found:
        """One cut, or two: the second while the run is taken up again."""
        found, clock, disk = Found(), Ticking(), Disk()
        policy: Policy = dice.choice(["ask", "keyed"])
        acknowledged = Acknowledged(relaxed=self.durability == "relaxed")
        calls = self.calls
        for _ in range(dice.choice([1, 1, 2])):
            disk.fatal, disk.lies = dice.randint(1, calls), self.lies
            await self._lived(disk, policy, clock, acknowledged)
            found.facts["cut"] += disk.off
            disk, calls = disk.after_a_cut(dice), calls // 2
            clock.advance(3600)
            with on(disk, self.path):
                found.wrong += await self._whole(clock, acknowledged, found)
            disk = Disk({name: disk.files[name] for name in disk.files})
        with on(disk, self.path):
            store = self.store(clock)
            found.wrong += await concluded(store, self.ledger, policy)
            await store.close()
        return found

    async def _lived(self, disk: Disk, policy: Policy, clock: Ticking, acknowledged: Acknowledged) -> None:
        """A driver until the power is off."""
        with on(disk, self.path):
            store = self.store(clock)
            with suppress(StateGraphError):
                await finish(build(acknowledged.of(store), self.ledger, policy), self.ledger)
            with suppress(sqlite3.Error):
                await store.close()

    async def _whole(self, clock: Ticking, acknowledged: Acknowledged, found: Found) -> list[Wrong]:
        """What is wrong with the file that the power has left: SQLite says it is sound, and nothing answered for is missing."""
        store = self.store(clock)
        try:
            missing = [Wrong("lost", what) for what in await acknowledged.missing(store)]
            (said,) = store._database.execute("PRAGMA integrity_check").fetchone()
            log = await store.history("r")
        except StateGraphError as error:
            return [Wrong("lost", f"refused: {error!r}")]
        finally:
            await store.close()
        last = log[-1].seq if log else -1
        if last < acknowledged.told:  # with relaxed durability these were plain steps, else they are counted as missing
            found.facts["plain steps lost"] += acknowledged.told - last
            acknowledged.told = last
        return missing if said == "ok" else [*missing, Wrong("lost", f"integrity_check: {said}")]


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """Full durability."""
    yield Cuts(folder, "full").case
