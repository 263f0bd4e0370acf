"""Makes the golden database of the schema as it is now: sqlite-<version>.db, beside this file.

It is made once for each version of the schema and never again: what it is for is that it was written by that version.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

from checkpointers import SqliteCheckpointer
from checkpointers.schema import VERSION
from stategraph import ManualClock
from stategraph.testing import fill


async def main(path: Path) -> None:
    if path.exists():
        sys.exit(f"{path} is kept as it is; a golden database is never made again")
    async with SqliteCheckpointer(path, clock=ManualClock()) as store:
        await fill(store)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")  # a file alone, which needs no -wal beside it
    connection.execute("VACUUM")
    connection.close()


if __name__ == "__main__":
    asyncio.run(main(Path(__file__).with_name(f"sqlite-{VERSION}.db")))
