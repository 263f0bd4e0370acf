"""SQLite is refused one call of its disk, or the store one statement, with each code that there is for it.

The caller gets a typed error, or none where SQLite tries again; nothing is lost, and the same store goes on.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import CheckpointerError
from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.campaigns.borrowed import borrowed, on
from tests.campaigns.disk import Disk, refusal
from tests.campaigns.ticking import Ticking
from tests.campaigns.verdict import Case, Found, Wrong, concluded
from tests.programs.order import build, finish

MANY = 10_000
SHARES = 64

#: What a disk may answer, by what it is asked.
OF_A_DISK: dict[str, tuple[int, ...]] = {
    "read": (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_NOMEM, apsw.SQLITE_IOERR_CORRUPTFS),
    "write": (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_FULL, apsw.SQLITE_READONLY),
    "sync": (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_FULL),
    "truncate": (apsw.SQLITE_IOERR_TRUNCATE,),
    "lock": (apsw.SQLITE_BUSY, apsw.SQLITE_IOERR_LOCK),
    "open": (apsw.SQLITE_CANTOPEN, apsw.SQLITE_PERM),
    "delete": (apsw.SQLITE_IOERR_DELETE,),
}
#: What a statement may end with.
OF_A_STATEMENT = (
    apsw.SQLITE_BUSY, apsw.SQLITE_BUSY_SNAPSHOT, apsw.SQLITE_LOCKED, apsw.SQLITE_NOMEM, apsw.SQLITE_INTERRUPT,
    apsw.SQLITE_READONLY, apsw.SQLITE_IOERR, apsw.SQLITE_FULL, apsw.SQLITE_CANTOPEN, apsw.SQLITE_PROTOCOL,
    apsw.SQLITE_CORRUPT, apsw.SQLITE_SCHEMA,
)  # fmt: skip


class Faults:
    """Which calls and which statements fail, and how."""

    def __init__(self) -> None:
        self.calls = range(0)
        self.statements = range(0)
        self.dice = random.Random(0)
        self.statement = 0
        self.facts: Counter[str] = Counter()

    def call(self, number: int, what: str) -> None:
        if number in self.calls:
            self.facts[f"{what} refused"] += 1
            raise refusal(self.dice.choice(OF_A_DISK[what]))

    def watch(self, sql: str) -> str:
        self.statement += 1
        # What undoes a transaction does not fail: SQLite itself would have undone it.
        if self.statement in self.statements and sql != "ROLLBACK":
            self.facts["statement refused"] += 1
            raise refusal(self.dice.choice(OF_A_STATEMENT))
        return sql


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """One call, or several in a row."""
    path, ledger = str(folder / "runs.db"), folder / "runs.ledger"

    async def life(faults: Faults, dice: random.Random) -> tuple[Found, int]:
        found, disk, clock = Found(facts=faults.facts), Disk(), Ticking()
        disk.fault = faults.call
        policy: Policy = dice.choice(["ask", "keyed"])
        acknowledged = Acknowledged()
        with on(disk, path, faults.watch):
            store: SqliteCheckpointer = borrowed()(
                path, clock=clock, durability=dice.choice(["full", "relaxed"]), timeout=0.05
            )
            try:
                await finish(build(acknowledged.of(store), ledger, policy), ledger)
            except CheckpointerError as error:
                found.facts[type(error).__name__] += 1
            faults.calls = faults.statements = range(0)
            clock.advance(3600)
            found.wrong += await concluded(store, ledger, policy, acknowledged)
            (said,) = store._database.execute("PRAGMA integrity_check").fetchone()
            if said != "ok":
                found.wrong.append(Wrong("lost", f"integrity_check: {said}"))
            await store.close()
        return found, disk.calls

    counting = Faults()
    _, calls = asyncio.run(life(counting, random.Random(0)))
    statements = counting.statement

    def case(seed: int) -> Found:
        dice, faults = random.Random(seed), Faults()
        faults.dice = dice
        many = dice.choice([1, 1, 2, 5])
        if dice.random() < 0.5:
            first = dice.randint(1, calls)
            faults.calls = range(first, first + many)
        else:
            first = dice.randint(1, statements)
            faults.statements = range(first, first + many)
        ledger.unlink(missing_ok=True)
        return asyncio.run(life(faults, dice))[0]

    yield case
