"""A store is kept: what has ended is removed, everything is copied away, and comes back without its old drivers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from checkpointers import MemoryCheckpointer, PostgresCheckpointer, SqliteCheckpointer
from stategraph import Checkpointer, ManualClock, StateGraph, StoreForeign, StoreUnavailable, Worker
from stategraph.checkpoint import Entry, Lease
from stategraph.cli.app import main
from stategraph.errors import StoreReadOnly
from tests.conftest import OpenStore

HOUR = 3600.0


def paying(store: Checkpointer) -> StateGraph:
    """quote, a gate, pay."""
    graph = StateGraph(store, name="pays").set_entry_point("quote").add_edge("quote", "pay").add_edge("pay", "END")
    graph.add_node("quote", lambda state: {"price": 7}).add_node("pay", lambda state: {"paid": True})
    return graph.add_interrupt_before("pay")


def counting(store: Checkpointer) -> StateGraph:
    """A single node."""
    graph = StateGraph(store, name="counts").add_node("count", lambda state: {"n": 1}).set_entry_point("count")
    return graph.add_edge("count", "END")


@pytest.fixture(params=["sqlite", "postgres"])
def fenced(request: pytest.FixtureRequest) -> SqliteCheckpointer | PostgresCheckpointer:
    """Each store that can be restored."""
    opening = request.getfixturevalue("open_store" if request.param == "sqlite" else "open_postgres")
    store: SqliteCheckpointer | PostgresCheckpointer = opening()
    return store


async def names(store: Checkpointer) -> list[str]:
    return [head.run_id for head in await store.runs()]


# -- backups


async def test_a_backup_is_everything_of_one_moment_and_a_restore_goes_on_from_it(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """A run that waited when the copy was made waits in what is restored, and is approved there."""
    store = open_store()
    await paying(store).run({}, "waits")
    await counting(store).run({}, "ended")
    await store.backup(tmp_path / "copy.db")
    await paying(store).decide("waits", "rejected", by="ann")  # after the copy: not in it
    await counting(store).run({}, "later")
    restored = open_store("restored.db")
    assert await restored.restore(tmp_path / "copy.db") == 1
    assert await names(restored) == ["ended", "waits"]
    for run_id in ("ended", "waits"):
        assert await restored.history(run_id) == (await store.history(run_id))[: len(await restored.history(run_id))]
    told = [event.event_type async for event in paying(restored).resume("waits", "approved", by="bob")]
    assert told[-1] == "completed"


async def test_who_drove_a_run_before_the_restore_writes_nothing_more(open_store: OpenStore, tmp_path: Path) -> None:
    """Its lease was good when the copy was made: the restored file is given to it, and its row is refused."""
    store = open_store()
    graph = counting(store)
    await graph.submit({}, "r")
    lease = await store.claim("r", "driver", 60_000)
    assert lease is not None
    await store.backup(tmp_path / "copy.db")
    restored = open_store("restored.db")
    await restored.restore(tmp_path / "copy.db")
    row = Entry("node", "", 0, 0, "completed", b'{"node":"count","set":{"n":9},"at":"END"}')
    assert await restored.append(lease, 0, [row]) is None
    assert await restored.renew(lease, 60_000) is None
    assert [row.kind for row in await restored.history("r")] == ["start"]
    assert await store.append(lease, 0, [row]) is not None  # where nothing was restored it still drives


async def test_a_fenced_store_takes_nothing_more_from_its_drivers(
    fenced: SqliteCheckpointer | PostgresCheckpointer,
) -> None:
    """For what was restored by other means: a run goes on under a new claim alone."""
    graph = counting(fenced)
    await graph.run({}, "ended")
    await graph.submit({}, "r")
    lease = await fenced.claim("r", "driver", 60_000)
    assert lease is not None
    assert await fenced.fence() == 1
    row = Entry("node", "", 0, 0, "completed", b'{"node":"count","set":{"n":9},"at":"END"}')
    assert await fenced.append(lease, 0, [row]) is None
    assert await fenced.release(lease) is False
    assert [row.kind for row in await fenced.history("r")] == ["start"]
    ended = await fenced.head("ended")
    assert ended is not None
    assert ended.epoch == 1


async def test_a_claim_after_a_restore_is_no_earlier_drivers(
    fenced: SqliteCheckpointer | PostgresCheckpointer,
) -> None:
    """What was claimed twice after the copy was made has the epoch that a claim after the restore has."""
    graph = counting(fenced)
    await graph.submit({}, "r")
    earlier = Lease("r", "earlier", 1, 0)  # in the store as it was before
    await fenced.fence()
    lease = await fenced.claim("r", "driver", 60_000)
    assert lease is not None
    assert lease.epoch == earlier.epoch
    row = Entry("node", "", 0, 0, "completed", b'{"node":"count","set":{"n":9},"at":"END"}')
    assert await fenced.append(earlier, 0, [row]) is None
    assert await fenced.append(lease, 0, [row]) is not None


async def test_a_run_that_waits_outlives_any_number_of_fences(
    fenced: SqliteCheckpointer | PostgresCheckpointer,
) -> None:
    """A fence is no driver that died: what is approved after a dozen of them is driven."""
    graph = paying(fenced)
    await graph.run({}, "r")
    for _ in range(12):
        await fenced.fence()
    told = [event.event_type async for event in graph.resume("r", "approved", by="ann")]
    assert told[-1] == "completed"


async def test_a_backup_is_made_while_runs_are_driven(open_store: OpenStore, tmp_path: Path) -> None:
    """Each of its runs is whole: it folds, and every digest is right."""
    store = open_store()
    graph = StateGraph(store, 500, name="loops").add_node("n", lambda state: {"n": state["n"] + 1}).set_entry_point("n")
    graph.add_conditional_edge("n", lambda state: "END" if state["n"] >= 40 else "n", ["n", "END"])
    running = [asyncio.ensure_future(graph.run({"n": 0}, f"r{number}")) for number in range(5)]
    for number in range(3):
        await store.backup(tmp_path / f"{number}.db")
    await asyncio.gather(*running)
    for number in range(3):
        copy = SqliteCheckpointer(tmp_path / f"{number}.db")
        async with copy:
            for run_id in await names(copy):
                run = await StateGraph(copy, name="loops").info(run_id)
                assert run.state["n"] == run.steps


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
async def test_a_copy_is_its_owners_alone(open_store: OpenStore, tmp_path: Path) -> None:
    """As the store's own file is, whatever the umask."""
    before = os.umask(0)
    try:
        await open_store().backup(tmp_path / "copy.db")
        await open_store("restored.db").restore(tmp_path / "copy.db")
    finally:
        os.umask(before)
    for name in ("copy.db", "restored.db"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


async def test_nothing_is_copied_over_a_file_that_is_there(open_store: OpenStore, tmp_path: Path) -> None:
    """Neither by a backup nor by a restore, and the file stays as it was."""
    store = open_store()
    await counting(store).run({}, "r")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(StoreUnavailable, match="name a new one"):
        await store.backup(tmp_path / "mine.txt")
    await store.backup(tmp_path / "copy.db")
    with pytest.raises(StoreUnavailable, match="name a new one"):
        await SqliteCheckpointer(tmp_path / "mine.txt").restore(tmp_path / "copy.db")
    with pytest.raises(StoreUnavailable, match="it is open"):
        await store.restore(tmp_path / "copy.db")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert await names(store) == ["r"]


async def test_what_is_no_backup_is_not_restored(open_store: OpenStore, tmp_path: Path) -> None:
    """A file that is missing, no database, or another program's: nothing is left behind."""
    (tmp_path / "text.db").write_text("no database " * 500)
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE others (a)")
    foreign.commit()
    foreign.close()
    for name, error in (
        ("missing.db", StoreUnavailable), ("text.db", StoreUnavailable), ("foreign.db", StoreForeign)
    ):  # fmt: skip
        with pytest.raises(error):
            await open_store("new.db").restore(tmp_path / name)
        assert not (tmp_path / "new.db").exists()


async def test_an_empty_file_is_no_backup(open_store: OpenStore, tmp_path: Path) -> None:
    """Whatever has left it: a store without runs would look as if all had gone well."""
    (tmp_path / "empty.db").touch()
    sqlite3.connect(tmp_path / "new-made.db").close()
    for name in ("empty.db", "new-made.db"):
        with pytest.raises(StoreUnavailable, match="it is empty"):
            await open_store("new.db").restore(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.db", "new-made.db"]


async def test_a_copy_has_its_name_when_it_is_whole(
    open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed before leaves no file that could be taken for a backup, nor a store that is not fenced."""
    store = open_store()
    await paying(store).run({}, "waits")
    await store.backup(tmp_path / "copy.db")

    class Killed(BaseException):
        """As good as a SIGKILL."""

    def killed(*_: Any) -> None:
        raise Killed

    for method in ("VACUUM", "fence"):
        with monkeypatch.context() as patched:
            if method == "fence":
                patched.setattr(SqliteCheckpointer, "fence", killed)
            else:
                patched.setattr("checkpointers.sqlite._has_tables", killed)
            with pytest.raises(Killed):
                await SqliteCheckpointer(tmp_path / "new.db").restore(tmp_path / "copy.db")
        assert not (tmp_path / "new.db").exists()
    restored = open_store("new.db")
    assert await restored.restore(tmp_path / "copy.db") == 1
    assert await names(restored) == ["waits"]


async def test_nothing_is_copied_beside_the_log_of_another_file(open_store: OpenStore, tmp_path: Path) -> None:
    """SQLite would read it into the new one: of a store that was removed without its WAL, for example."""
    store = open_store()
    await counting(store).run({}, "r")
    await store.backup(tmp_path / "copy.db")
    (tmp_path / "new.db-wal").write_bytes(b"of another file")
    with pytest.raises(StoreUnavailable, match=r"new\.db-wal: a file is there"):
        await SqliteCheckpointer(tmp_path / "new.db").restore(tmp_path / "copy.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "name", ["a b.db", "100%.db", "what?.db", "n#1.db", "grüße.db", "a\nb.db", "file:x.db", "'q\".db"]
)
async def test_a_copy_may_have_any_name(
    open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A relative one too, and what would mean something in a URL or in SQL."""
    monkeypatch.chdir(tmp_path)
    store = open_store()
    await counting(store).run({}, "r")
    await store.backup(name)
    await open_store("new.db").restore(name)
    assert await names(open_store("new.db")) == ["r"]
    assert (tmp_path / name).is_file()
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")]


async def test_a_store_in_memory_is_not_copied(tmp_path: Path) -> None:
    """It has no file, and says so."""
    store = SqliteCheckpointer(":memory:")
    with pytest.raises(StoreUnavailable, match="in memory"):
        await store.backup(tmp_path / "copy.db")
    with pytest.raises(StoreUnavailable, match="in memory"):
        await store.restore(tmp_path / "copy.db")
    await store.close()


async def test_a_copy_into_a_folder_that_is_not_there_is_refused(open_store: OpenStore, tmp_path: Path) -> None:
    """With a sentence that names both files."""
    with pytest.raises((StoreUnavailable, StoreReadOnly), match="nowhere"):
        await open_store().backup(tmp_path / "nowhere" / "copy.db")


# -- removing


async def test_a_worker_removes_what_ended_long_ago(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """With `keep`, and nothing that has not ended, however old it is."""
    await counting(checkpointer).run({}, "old")
    await paying(checkpointer).run({}, "waits")
    clock.advance(2 * HOUR)
    await counting(checkpointer).run({}, "new")
    stop = asyncio.Event()
    graph = counting(checkpointer)
    await graph.submit({}, "last")
    worker = Worker(graph, keep=HOUR, told=lambda event: stop.set() if event.event_type == "completed" else None)
    async with asyncio.timeout(20):
        await worker.run(stop)
    assert sorted(await names(checkpointer)) == ["last", "new", "waits"]


async def test_a_large_prune_lets_others_write_in_between(open_store: OpenStore) -> None:
    """It takes several transactions, and a run that is driven meanwhile is stored between two of them."""
    store = open_store(durability="relaxed")
    graph = counting(store)
    await asyncio.gather(*(graph.run({}, f"old-{number}") for number in range(350)))
    await store.head("-")
    kinds: list[str] = []
    store._database.set_trace_callback(lambda sql: kinds.append(sql.split()[0]))
    pruning = asyncio.ensure_future(store.prune(store.clock.now() + 1))
    assert await graph.submit({}, "new") == "new"
    assert await pruning == 350
    inserted = kinds.index("INSERT")
    assert "DELETE" in kinds[:inserted]
    assert "DELETE" in kinds[inserted:]
    assert await names(store) == ["new"]


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, error = capsys.readouterr()
    return code, out, error


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store of three runs: ended, waiting, and failed."""

    async def fill() -> None:
        async with SqliteCheckpointer(tmp_path / "runs.db", clock=ManualClock()) as store:
            await counting(store).run({}, "ended")
            await paying(store).run({}, "waits")

    asyncio.run(fill())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_remove_copy_and_bring_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each says what it did in one line."""
    assert command(capsys, "backup", "copy.db") == (0, "sqlite:runs.db is copied to copy.db\n", "")
    assert command(capsys, "delete", "ended") == (0, "run ended is removed\n", "")
    assert command(capsys, "delete", "ended")[0] == 2
    refused = command(capsys, "delete", "waits")
    assert (refused[0], "only a run that has ended" in refused[2]) == (1, True)
    restored = command(capsys, "restore", "copy.db", "--store", "sqlite:new.db")
    assert restored == (0, "copy.db is restored as sqlite:new.db: 1 run can go on\n", "")
    assert command(capsys, "prune", "--older-than", "1d", "--store", "sqlite:new.db") == (0, "1 run removed\n", "")
    assert command(capsys, "fence", "--store", "sqlite:new.db", "--json") == (0, '{"fenced":1}\n', "")


@pytest.mark.parametrize("age", ["", "soon", "-1d", "1", "1y", "9999999d", "1d1d"])
def test_what_is_no_age_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], age: str) -> None:
    """And nothing is removed."""
    code, _, error = command(capsys, "prune", f"--older-than={age}")
    assert (code, "no age" in error) == (2, True)
    assert "ended" in command(capsys, "runs")[1]


def test_copies_that_cannot_be_made_are_refused_in_a_sentence(folder: Path, capsys: Any) -> None:
    """A file that is there, a backup that is not, a store that is no file."""
    assert "name a new one" in command(capsys, "backup", "runs.db")[2]
    assert "cannot be copied" in command(capsys, "restore", "missing.db", "--store", "sqlite:new.db")[2]
    assert "no file" in command(capsys, "backup", "copy.db", "--store", "memory:")[2]
    assert MemoryCheckpointer().durable is False
