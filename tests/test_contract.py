"""What every store promises, on each of ours and on the example's."""

from __future__ import annotations

from pathlib import Path

from checkpointers import MemoryCheckpointer, SqliteCheckpointer
from stategraph import Checkpointer, Clock
from stategraph.testing import CheckpointerContract
from tests.programs.byhand import effects


class TestMemory(CheckpointerContract):
    """The memory store: what needs a file is skipped."""

    def open(self, folder: Path, clock: Clock) -> Checkpointer:
        return MemoryCheckpointer(clock=clock)

    async def untold(self, store: Checkpointer) -> object:
        return await effects(store)


class TestSqlite(CheckpointerContract):
    """SQLite's, as it is when nothing is said."""

    def open(self, folder: Path, clock: Clock) -> Checkpointer:
        return SqliteCheckpointer(folder / "runs.db", clock=clock, timeout=30)

    async def untold(self, store: Checkpointer) -> object:
        return await effects(store)
