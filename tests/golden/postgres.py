"""Makes the golden database of PostgreSQL's schema as it is now: postgres-<version>.sql, beside this file.

It is made once for each version of the schema and never again: what it is for is that it was written by that version.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from checkpointers import PostgresCheckpointer
from checkpointers.postgres_schema import VERSION
from stategraph import ManualClock
from stategraph.testing import fill

sys.path.append(str(Path(__file__).parents[2]))  # for `tests` alone

from tests.programs.postgres import server

#: Lines of a dump that other servers, or whoever is not psql, would not understand.
LEFT_OUT = ("\\", "SET ", "SELECT pg_catalog.set_config", "--")


async def filled(url: str) -> None:
    async with PostgresCheckpointer(url, clock=ManualClock()) as store:
        await fill(store)


def main(path: Path) -> None:
    if path.exists():
        sys.exit(f"{path} is kept as it is; a golden database is never made again")
    with server() as made:
        asyncio.run(filled(made.url))
        dump = [
            str(made.binaries / "pg_dump"),
            "--schema=stategraph",
            "--inserts",
            "--no-owner",
            "--no-privileges",
            made.url,
        ]
        told = subprocess.run(dump, check=True, capture_output=True, text=True, user=made.user, cwd="/").stdout
    lines = [line for line in told.splitlines() if line and not line.startswith(LEFT_OUT)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(__file__).with_name(f"postgres-{VERSION}.sql"))
