"""Keeping a store: what has ended is removed, everything is copied away and brought back."""

from __future__ import annotations

from typing import Annotated, Protocol, cast

import typer

from stategraph.checkpoint import Checkpointer
from stategraph.cli.age import milliseconds
from stategraph.cli.options import Json, RunId, Store, Traceback
from stategraph.cli.refusal import DONE, FAILED, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.store import redacted, sqlite_file
from stategraph.cli.stored import known_head
from stategraph.cli.text import counted

__all__ = ["backup", "delete", "fence", "prune", "restore"]


class _Copied(Protocol):
    """What stores in a file do as well."""

    async def backup(self, path: str) -> None: ...

    async def restore(self, path: str) -> int: ...


class _Fenced(Protocol):
    """What stores do that can be restored."""

    async def fence(self) -> int: ...


def delete(run_id: RunId, store: Store = None, as_json: Json = False, traceback: Traceback = False) -> int:
    """Remove an ended run and everything of it."""

    async def work(session: Session) -> int:
        async with session.open() as opened:
            head = await known_head(session, opened, run_id)
            if not await opened.delete(run_id):
                way_out = session.command("cancel", run_id)
                raise Refused(
                    f"run {run_id!r} is {head.status}, and only a run that has ended is removed; end it: {way_out}",
                    FAILED,
                    "RunNotClaimable",
                )
        session.record({"deleted": run_id}) if session.as_json else session.line(f"run {run_id} is removed")
        return DONE

    return carry_out(Session(store, as_json=as_json, traceback=traceback), work)


def prune(
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="AGE", help="How long ago a run must have ended: 90s, 30m, 12h, 7d, 4w."),
    ],
    store: Store = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> int:
    """Remove the runs that ended long ago."""

    async def work(session: Session) -> int:
        age = milliseconds(older_than)
        async with session.open() as opened:
            removed = await opened.prune(opened.clock.now() - age)
        told = f"{counted(removed, 'run')} removed"
        session.record({"removed": removed}) if session.as_json else session.line(told)
        return DONE

    return carry_out(Session(store, as_json=as_json, traceback=traceback), work)


def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The new file.")],
    store: Store = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> int:
    """Copy a SQLite store, as it is at one moment, into a new file; runs go on meanwhile."""

    async def work(session: Session) -> int:
        async with session.open() as opened:
            await _in_a_file(session, opened, "pg_dump").backup(file)
        session.record({"backup": file}) if session.as_json else session.line(
            f"{redacted(session.url)} is copied to {file}"
        )
        return DONE

    return carry_out(Session(store, as_json=as_json, traceback=traceback), work)


def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The backup.")],
    store: Store = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> int:
    """Make a new SQLite store from a backup; whoever drove its runs before writes nothing more."""

    async def work(session: Session) -> int:
        async with session.open(new=True) as opened:
            runs = await _in_a_file(session, opened, "pg_restore, then stategraph fence").restore(file)
        told = f"{file} is restored as {redacted(session.url)}: {counted(runs, 'run')} can go on"
        session.record({"restored": runs}) if session.as_json else session.line(told)
        return DONE

    return carry_out(Session(store, as_json=as_json, traceback=traceback), work)


def fence(store: Store = None, as_json: Json = False, traceback: Traceback = False) -> int:
    """After a database was restored by its own means: whoever drove its runs before writes nothing more."""

    async def work(session: Session) -> int:
        async with session.open() as opened:
            bare = _bare(opened)
            if not hasattr(bare, "fence"):
                raise Refused(f"the store {redacted(session.url)} cannot raise the epochs of its runs")
            runs = await cast("_Fenced", bare).fence()
        session.record({"fenced": runs}) if session.as_json else session.line(f"{counted(runs, 'run')} fenced")
        return DONE

    return carry_out(Session(store, as_json=as_json, traceback=traceback), work)


def _in_a_file(session: Session, store: Checkpointer, instead: str) -> _Copied:
    if not store.durable:
        raise Refused(f"the store {redacted(session.url)} is kept in memory alone; there is no file")
    if sqlite_file(session.url) is None:
        raise Refused(f"the store {redacted(session.url)} is no file; use its database's own means: {instead}")
    return cast("_Copied", _bare(store))


def _bare(store: Checkpointer) -> Checkpointer:
    """The store itself: a copy of what is encrypted stays encrypted."""
    bare: Checkpointer = getattr(store, "store", store)
    return bare
