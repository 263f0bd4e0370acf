"""What every store promises, held by each of ours and by the example's."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from checkpointers import (
    EncryptedCheckpointer,
    MemoryCheckpointer,
    PostgresCheckpointer,
    SqliteCheckpointer,
    postgres_schema,
)
from checkpointers.schema import VERSION
from stategraph import Checkpointer, Clock
from stategraph.testing import CheckpointerContract
from tests.programs.kept import effects
from tests.programs.postgres import execute, fetch

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests/golden"


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

    golden = sorted(GOLDEN.glob("sqlite-*.db"))
    #: How many instructions SQLite has executed, in tens.
    executed: int | None = None

    def open(self, folder: Path, clock: Clock) -> SqliteCheckpointer:
        return SqliteCheckpointer(folder / "runs.db", clock=clock, timeout=30)

    async def make_newer(self, folder: Path) -> None:
        connection = sqlite3.connect(folder / "runs.db")
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
        connection.close()

    async def damage(self, folder: Path) -> None:
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


class TestPostgres(OurContract):
    """PostgreSQL's, in a database that is emptied before each test."""

    golden = sorted(GOLDEN.glob("postgres-*.sql"))

    @pytest.fixture(autouse=True)
    async def database(self, postgres: str) -> AsyncIterator[None]:
        """Others use it after us: whatever a test says, its schema is of this version."""
        self.url = postgres
        yield
        await execute(postgres, f"UPDATE stategraph.version SET version = {postgres_schema.VERSION}")

    def open(self, folder: Path, clock: Clock) -> PostgresCheckpointer:
        return PostgresCheckpointer(self.url, clock=clock)

    async def size(self, folder: Path) -> int:
        tables = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = $1::regnamespace"
        ((size,),) = await fetch(self.url, tables, "stategraph")
        return int(size)

    async def make_newer(self, folder: Path) -> None:
        await execute(self.url, "UPDATE stategraph.version SET version = version + 1")

    async def damage(self, folder: Path) -> None:
        row = "seq = 1 AND run = (SELECT run FROM stategraph.runs WHERE run_id = 'r')"
        await execute(self.url, f"UPDATE stategraph.checkpoints SET body = body || '\\x20' WHERE {row}")

    async def restore(self, golden: Path, folder: Path) -> None:
        await execute(self.url, "DROP SCHEMA stategraph CASCADE", golden.read_text(encoding="utf-8"))

    def test_this_versions_golden_database_is_kept(self) -> None:
        """Whoever changes the schema adds one: `python tests/golden/postgres.py`."""
        versions = range(1, postgres_schema.VERSION + 1)
        assert [path.name for path in self.golden] == [f"postgres-{version}.sql" for version in versions]


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
