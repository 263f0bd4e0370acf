"""What every store promises, held by each of ours and by the example's."""

from __future__ import annotations

import importlib.util
import sqlite3
from pathlib import Path
from typing import Any

from checkpointers import EncryptedCheckpointer, MemoryCheckpointer, SqliteCheckpointer
from checkpointers.schema import VERSION
from stategraph import Checkpointer, Clock
from stategraph.testing import CheckpointerContract
from tests.programs.byhand import effects

ROOT = Path(__file__).parent.parent


class OurContract(CheckpointerContract):
    """The contract, and what our stores keep that no verb tells."""

    async def untold(self, store: Checkpointer) -> object:
        return await effects(store)


class TestMemory(OurContract):
    """In memory; what needs a store that outlives its process is skipped."""

    def open(self, folder: Path, clock: Clock) -> Checkpointer:
        return MemoryCheckpointer(clock=clock)


class OurSqlite(OurContract):
    """What SQLite's stores have in common."""

    golden = sorted((ROOT / "tests/golden").glob("sqlite-*.db"))
    #: How many instructions SQLite has executed, in tens.
    executed: int | None = None

    def open(self, folder: Path, clock: Clock) -> SqliteCheckpointer:
        return SqliteCheckpointer(folder / "runs.db", clock=clock, timeout=30)

    def make_newer(self, folder: Path) -> None:
        connection = sqlite3.connect(folder / "runs.db")
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
        connection.close()

    def damage(self, folder: Path) -> None:
        connection = sqlite3.connect(folder / "runs.db")
        connection.execute(
            "UPDATE checkpoints SET body = CAST(body || ' ' AS BLOB) "
            "WHERE seq = 1 AND run = (SELECT run FROM runs WHERE run_id = 'r')"
        )
        connection.commit()
        connection.close()

    async def work(self, store: Checkpointer) -> int:
        assert isinstance(store, SqliteCheckpointer)
        if self.executed is None:
            self.executed = 0
            await (store._connection or await store._open()).set_progress_handler(self.count, 10)
        return self.executed

    def count(self) -> None:
        assert self.executed is not None
        self.executed += 1


class TestSqlite(OurSqlite):
    """SQLite's, with an fsync for every step."""

    def test_this_versions_golden_database_is_kept(self) -> None:
        """Whoever changes the tables adds one: `python tests/golden/sqlite.py`."""
        assert [path.name for path in self.golden] == [f"sqlite-{version}.db" for version in range(1, VERSION + 1)]


class TestSqliteRelaxed(OurSqlite):
    """SQLite's, where a plain step is left to the next fsync."""

    def open(self, folder: Path, clock: Clock) -> SqliteCheckpointer:
        return SqliteCheckpointer(folder / "runs.db", clock=clock, timeout=30, durability="relaxed")


class TestEncrypted(OurContract):
    """Any store, with encryption around it."""

    make_newer, damage = OurSqlite.make_newer, OurSqlite.damage

    def open(self, folder: Path, clock: Clock) -> Checkpointer:
        return EncryptedCheckpointer(SqliteCheckpointer(folder / "runs.db", clock=clock, timeout=30), bytes(range(32)))

    async def untold(self, store: Checkpointer) -> object:
        assert isinstance(store, EncryptedCheckpointer)
        return await effects(store.store)


class TestOwn(OurSqlite):
    """The example's, which tells somebody of every pause."""

    def open(self, folder: Path, clock: Clock) -> SqliteCheckpointer:
        store: SqliteCheckpointer = own().TellingCheckpointer(folder / "runs.db", tell=lambda text: None, clock=clock)
        return store


def own() -> Any:
    """examples/own_checkpointer.py, by its path."""
    spec = importlib.util.spec_from_file_location("own_checkpointer", ROOT / "examples/own_checkpointer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
