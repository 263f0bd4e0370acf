"""What SQLite's store promises beyond the contract: damage is noticed. And a long walk: memory and SQLite answer alike."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import CorruptCheckpoint, ManualClock
from stategraph.testing.byhand import create, logged, paused
from stategraph.testing.snapshots import looping
from tests.conftest import OpenStore
from tests.programs.kept import everything
from tests.programs.walking import Walk

# -- integrity


#: What is written over each column of a row.
CHANGES = {
    "kind": "CASE kind WHEN 'settled' THEN 'cancel' ELSE 'settled' END",
    "status": "status || 'x'",
    "epoch": "coalesce(epoch, 0) + 1",
    "path": "coalesce(path, '') || 'x'",
    "step": "coalesce(step, 0) + 100",
    "attempt": "coalesce(attempt, 0) + 100",
    "opens": "coalesce(opens, '') || ' '",
    "boundary": "coalesce(boundary, '') || 'x'",
    "decision": "CASE decision WHEN 'approved' THEN 'rejected' ELSE 'approved' END",
    "name": "coalesce(name, '') || 'x'",
    "key": "coalesce(key, '') || 'x'",
    "actor": "coalesce(actor, '') || 'x'",
    "act": "coalesce(act, '') || 'x'",
    "body": "CAST(body || x'20' AS BLOB)",
    "at_ms": "at_ms + 1",
    "digest": "zeroblob(16)",
}


def by_hand(path: Path, statement: str, *given: object) -> int:
    """Change a database past the library, its CHECKs off; how many rows were changed."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        changed = connection.execute(statement, given).rowcount
        connection.commit()
        return changed
    finally:
        connection.close()


async def breaks(store: SqliteCheckpointer) -> tuple[str, int]:
    """Where a run's log breaks; whichever way it is read, the same is told."""
    told = set()
    for read in (store.load, store.history):
        with pytest.raises(CorruptCheckpoint) as caught:
            await read("r")
        told.add((caught.value.run_id, caught.value.seq))
    (where,) = told
    return where


@pytest.mark.parametrize("column", CHANGES)
async def test_a_changed_column_is_noticed(open_store: OpenStore, tmp_path: Path, column: str) -> None:
    """Whatever is changed behind the store's back, in whatever kind of row: run and row are named, nothing is served."""
    store = open_store("sound.db")
    many = await logged(store)
    await store.close()
    change = f"UPDATE checkpoints SET {column} = {CHANGES[column]} WHERE seq = ? AND {column} IS NOT {CHANGES[column]}"
    for seq in range(many):
        shutil.copy(tmp_path / "sound.db", tmp_path / f"{seq}.db")
        assert by_hand(tmp_path / f"{seq}.db", change, seq) == 1
        assert await breaks(open_store(f"{seq}.db")) == ("r", seq)


@pytest.mark.parametrize("seq", [0, 4, 10])
async def test_a_row_that_was_cut_out_is_noticed(open_store: OpenStore, tmp_path: Path, seq: int) -> None:
    """The first, one in the middle, the last: the head knows how long the log is."""
    store = open_store()
    await logged(store)
    by_hand(tmp_path / "runs.db", "DELETE FROM checkpoints WHERE seq = ?", seq)
    with pytest.raises(CorruptCheckpoint) as told:
        await store.load("r")
    assert (told.value.run_id, told.value.seq) == ("r", seq)


@pytest.mark.parametrize("first", [0, 4])
async def test_a_tail_that_was_cut_off_is_noticed(open_store: OpenStore, tmp_path: Path, first: int) -> None:
    """However much of it, the whole log too."""
    store = open_store()
    await logged(store)
    by_hand(tmp_path / "runs.db", "DELETE FROM checkpoints WHERE seq >= ?", first)
    with pytest.raises(CorruptCheckpoint) as told:
        await store.load("r")
    assert told.value.seq == first


async def test_rows_that_were_exchanged_are_noticed(open_store: OpenStore, tmp_path: Path) -> None:
    """A sound row of another run, or of another place, does not belong here."""
    store = open_store()
    await paused(store)
    await paused(store, "twin")
    for old, new in ((1, 3), (2, 1), (3, 2)):
        by_hand(tmp_path / "runs.db", "UPDATE checkpoints SET run = ? WHERE run = ?", new, old)
    assert (await breaks(store))[0] == "r"


async def test_a_changed_snapshot_is_noticed(open_store: OpenStore, tmp_path: Path) -> None:
    """A fold that nobody made is served to nobody."""
    graph = looping(store := open_store())
    await graph.run({"messages": []}, "r")
    by_hand(tmp_path / "runs.db", "UPDATE snapshots SET body = CAST(replace(body, '\"round\":', '\"rOund\":') AS BLOB)")
    with pytest.raises(CorruptCheckpoint) as told:
        await store.load("r")
    assert told.value.run_id == "r"


async def test_whoever_has_no_key_forges_nothing(open_store: OpenStore) -> None:
    """With `secret` a row that another key has sealed is not sound, whatever it says."""
    await paused(open_store(secret=b"of the deployment"))
    assert len(await open_store(secret=b"of the deployment").history("r")) == 2
    assert await breaks(open_store(secret=b"guessed")) == ("r", 0)
    assert await breaks(open_store()) == ("r", 0)


async def test_the_store_is_readable_by_its_owner_alone(open_store: OpenStore, tmp_path: Path) -> None:
    """The file and what SQLite lays beside it."""
    await create(open_store())
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


# -- every store alike: random sequences of verbs, executed on both, side by side

WALKS, STEPS = 320, 45


@pytest.mark.parametrize("quarter", range(4))
async def test_the_stores_answer_alike(quarter: int) -> None:
    """Whatever sequence of verbs, sensible or not: each answer and all that can be read are equal after every step."""
    for number in range(quarter, WALKS, 4):
        clock = ManualClock()
        async with MemoryCheckpointer(clock=clock) as memory, SqliteCheckpointer(":memory:", clock=clock) as sqlite:
            walk = Walk(memory, sqlite, clock, Random(number))
            try:
                for _ in range(STEPS):
                    await walk.step()
                assert await everything(memory) == await everything(sqlite)
            except BaseException as error:
                error.add_note(f"walk {number}: " + " | ".join(walk.trace))
                raise
