"""Bits that have changed in the file, on a disk that does not notice: each is refused with a typed error, or harmless.

With one exception, which is counted and not hidden: the rows of effects have no digest. Where a flip has changed one of
them, and nobody noticed, the case is one of `effects changed unnoticed`.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import CheckpointerError, StateGraphError
from stategraph.checkpoint import Policy
from tests.campaigns.ticking import Ticking
from tests.campaigns.verdict import Case, Found, Wrong, sorted_out
from tests.programs.ledger import lines
from tests.programs.order import build, finish, judged, report

MANY = 10_000
SHARES = 64

#: When a run's file is looked at, besides at its end.
PLACES = (
    "after run check",
    "after effect mail",
    "told interrupted",
    "before run pay",
    "after effect pay",
    "before run ship",
)


def life(folder: Path, policy: Policy) -> list[tuple[bytes, bytes]]:
    """A run's file, and its ledger, as they are at each of these moments."""
    path, ledger, copy = folder / "kept.db", folder / "kept.ledger", folder / "copy.db"
    kept: list[tuple[bytes, bytes]] = []

    def keep() -> None:
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        kept.append((copy.read_bytes(), ledger.read_bytes()))

    def moment(what: str) -> None:
        if what.startswith(PLACES):
            keep()

    async def live() -> None:
        async with SqliteCheckpointer(path, clock=Ticking()) as store:
            await finish(build(store, ledger, policy, moment), ledger, moment)
            keep()

    asyncio.run(live())
    for file in (path, ledger):
        file.unlink()
    return kept


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """One bit, or some, anywhere in the file; half of the time where it is not empty."""
    kept = {policy: life(folder, policy) for policy in ("ask", "keyed")}
    path, ledger = folder / "runs.db", folder / "runs.ledger"

    def case(seed: int) -> Found:
        dice = random.Random(seed)
        policy: Policy = dice.choice(["ask", "keyed"])
        whole, before = dice.choice(kept[policy])
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 1, 1, 2, 8])):
            place = dice.randrange(len(damaged))
            while not damaged[place] and seed % 2:
                place = dice.randrange(len(damaged))
            damaged[place] ^= 1 << dice.randrange(8)
        for file in folder.glob("runs.*"):
            file.unlink()
        path.write_bytes(whole)
        sound = effects(path)
        path.write_bytes(damaged)
        hit = effects(path) != sound
        ledger.write_bytes(before)
        found = asyncio.run(judge(policy))
        if hit and found.wrong:
            found.wrong, found.facts["effects changed unnoticed"] = [], 1
        return found

    async def judge(policy: Policy) -> Found:
        clock = Ticking()
        clock.advance(3600)
        found = Found()
        async with SqliteCheckpointer(path, clock=clock) as store:
            graph = build(store, ledger, policy)
            try:
                await graph.info("r")  # its user knows that it was started: a run that is unknown is not started again
                await finish(graph, ledger)
                told = await report(graph)
            except (CheckpointerError, StateGraphError) as error:
                found.facts[f"refused: {type(error).__name__}"] += 1
                found.wrong += [Wrong("doubled", what) for what in doubled(lines(ledger))]
            else:
                found.facts["harmless"] += 1
                found.wrong += sorted_out(judged(told, lines(ledger), policy))
        return found

    yield case


def effects(path: Path) -> list[Any] | None:
    """The rows of the table of effects, read past the library; None where nobody can read them."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            return sorted(connection.execute("SELECT * FROM effects").fetchall(), key=repr)
        except (sqlite3.Error, UnicodeDecodeError):
            return None


def doubled(ledger: list[str]) -> list[str]:
    """What has happened twice, or unasked, before the damage was noticed."""
    wrong = [f"{line} twice" for line in set(ledger) if line.startswith("effect ") and ledger.count(line) > 1]
    if "run pay" in ledger and "click" not in ledger[: ledger.index("run pay")]:
        wrong.append("paid unasked")
    return wrong
