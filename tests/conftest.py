"""What the tests share: the stores, and a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import Checkpointer, ManualClock


class OpenStore(Protocol):
    """Opens the test's SQLite file (`runs.db`), as often as it is called; each store is closed after the test."""

    def __call__(self, name: str = "runs.db", **options: Any) -> SqliteCheckpointer: ...


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


@pytest.fixture(params=["memory", "sqlite"])
async def checkpointer(request: pytest.FixtureRequest, open_store: OpenStore) -> AsyncIterator[Checkpointer]:
    """Every store in turn. With `open_store` in the same test, SQLite's is on the file that it opens."""
    if request.param == "sqlite":
        yield open_store()
        return
    store = MemoryCheckpointer(clock=request.getfixturevalue("clock") if "clock" in request.fixturenames else None)
    yield store
    await store.close()
