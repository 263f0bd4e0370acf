"""What the tests share: the stores, and a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from checkpointers.memory import MemoryCheckpointer
from checkpointers.postgres import PostgresCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import Checkpointer, ManualClock
from tests.programs.postgres import execute, of_database, server_url

DATABASE = "stategraph_test"
ALONE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
EMPTY = "TRUNCATE {} RESTART IDENTITY".format(
    ", ".join(f"stategraph.{table}" for table in ("runs", "checkpoints", "snapshots", "boundaries", "effects"))
)

_numbers = count()


class OpenStore(Protocol):
    """Opens the test's SQLite file (`runs.db`), as often as it is called; each store is closed after the test."""

    def __call__(self, name: str = "runs.db", **options: Any) -> SqliteCheckpointer: ...


class OpenPostgres(Protocol):
    """Opens the test's PostgreSQL database, as often as it is called; each store is closed after the test."""

    def __call__(self, **options: Any) -> PostgresCheckpointer: ...


@pytest.fixture
def clock() -> ManualClock:
    """A clock that a test moves by hand; whoever asks for it has the `checkpointer` on it too."""
    return ManualClock()


@pytest.fixture
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenStore]:
    """A SQLite file that can be opened again: `open_store()` is a new checkpointer on the same file."""
    given = {"clock": request.getfixturevalue("clock")} if "clock" in request.fixturenames else {}
    opened: list[SqliteCheckpointer] = []

    def open_it(name: str = "runs.db", **options: Any) -> SqliteCheckpointer:
        opened.append(SqliteCheckpointer(tmp_path / name, **{**given, **options}))
        return opened[-1]

    yield open_it
    for store in opened:
        await store.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server, in which there is a database for the tests."""
    with server_url() as url:
        asyncio.run(_make_database(url))
        yield url


async def _make_database(url: str) -> None:
    await execute(url, f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)", f"CREATE DATABASE {DATABASE}")
    async with PostgresCheckpointer(of_database(url, DATABASE)) as store:
        await store.runs()


@pytest.fixture
async def postgres(postgres_server: str) -> str:
    """The URL of the tests' database, with nothing in it and nobody connected."""
    url = of_database(postgres_server, DATABASE)
    await execute(url, ALONE, EMPTY)
    return url


@pytest.fixture
async def new_postgres(postgres_server: str) -> AsyncIterator[str]:
    """The URL of a new database, without the schema."""
    name = f"{DATABASE}_{next(_numbers)}"
    await execute(postgres_server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    yield of_database(postgres_server, name)
    await execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def open_postgres(request: pytest.FixtureRequest, postgres: str) -> AsyncIterator[OpenPostgres]:
    """The test's database, which can be opened again: `open_postgres()` is a new checkpointer on it."""
    given = {"clock": request.getfixturevalue("clock")} if "clock" in request.fixturenames else {}
    opened: list[PostgresCheckpointer] = []

    def open_it(**options: Any) -> PostgresCheckpointer:
        opened.append(PostgresCheckpointer(options.pop("url", postgres), **{**given, **options}))
        return opened[-1]

    yield open_it
    for store in opened:
        await store.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def checkpointer(request: pytest.FixtureRequest) -> Iterator[Checkpointer]:
    """Every store in turn. With `open_store` or `open_postgres` in the same test, it is on what they open."""
    if request.param == "memory":
        yield MemoryCheckpointer(clock=request.getfixturevalue("clock") if "clock" in request.fixturenames else None)
    else:
        open_it = request.getfixturevalue("open_store" if request.param == "sqlite" else "open_postgres")
        yield open_it()
