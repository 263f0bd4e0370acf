"""Runs in one SQLite file: WAL, one connection on a thread of its own, one hop to it per verb.

Appends that wait while the thread is busy are committed together, each fenced and answered on its own. With relaxed
durability a lone run's plain steps need no disk and no hop: they are written where they are called for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EEXIST
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, cast

import aiosqlite

from checkpointers import verbs
from checkpointers.boundaries import boundary_of
from checkpointers.database import ENDLESS, Call, Database, must_last
from stategraph.checkpoint import (
    Boundary,
    Checkpoint,
    Effect,
    Entry,
    Head,
    Lease,
    Log,
    Policy,
    Status,
    Verdict,
    Written,
    check_run_id,
    check_secret,
)
from stategraph.clock import Clock, SystemClock
from stategraph.errors import (
    CheckpointerError,
    StoreClosed,
    StoreForeign,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)

__all__ = ["SqliteCheckpointer"]

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

#: Held while a new file is made: nobody in this process has it open yet.
_making = threading.Lock()
#: With relaxed durability: after about so many pages the thread gets a step, to copy the WAL back if it has grown.
AT_ONCE = 200
#: A prune removes so many runs in a transaction, so that drivers get a turn in between.
_SOME_ENDED_RUNS = f"{verbs.ENDED_RUNS} LIMIT 100"


class SqliteCheckpointer:
    """Runs in a SQLite file, which is made when it is first needed.

    `durability="full"` survives power loss after every step; `"relaxed"` may lose the last plain steps to it, never a
    decision, a pause, an end or an effect's intent. `timeout` (seconds) is how long a locked file is waited for.
    `secret` keys the digests, so that whoever can write the file cannot forge a checkpoint.
    """

    durable = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["full", "relaxed"] = "full",
        timeout: float = 5.0,
        clock: Clock | None = None,
        secret: bytes = b"",
    ) -> None:
        if durability not in ("full", "relaxed"):
            raise ValueError(f"durability={durability!r}: choose 'full' or 'relaxed'")
        self.path = os.fspath(path)
        self.clock: Clock = clock or SystemClock()
        self.durable = self.path != ":memory:"
        self._relaxed = durability == "relaxed"
        self._timeout = timeout
        self._secret = check_secret(secret)
        self._connection: aiosqlite.Connection | None = None
        self._closed = False
        self._process = 0
        self._thread = threading.main_thread()  # until it is open
        self._database: Database
        #: Pages, about, that were written at once since the thread last looked after the WAL.
        self._at_once = 0
        self._queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = weakref.WeakKeyDictionary()

    @classmethod
    def from_url(cls, rest: str) -> SqliteCheckpointer:
        """The store of `sqlite:<path>`: the path as it stands, `sqlite::memory:` for none."""
        if rest.startswith("//"):
            raise ValueError(
                "'sqlite://...' is no URL of a SQLite file: write sqlite:runs.db for a relative path, "
                "sqlite:/folder/runs.db for an absolute one"
            )
        if not rest:
            raise ValueError("'sqlite:' names no file: write sqlite:runs.db")
        return cls(rest)

    def __repr__(self) -> str:
        return f"SqliteCheckpointer({self.path!r})"

    # -- runs and leases

    async def create(
        self,
        run_id: str,
        *,
        graph: str,
        fingerprint: str,
        creator: str,
        body: bytes,
        status: Status,
        parent: str | None = None,
        opens: str | None = None,
        owner: str = "",
        lease_ms: int = 0,
    ) -> Lease | None:
        """Row 0 of a new run."""
        check_run_id(run_id)
        given = {
            "run": run_id, "graph": graph, "fingerprint": fingerprint, "creator": creator, "body": body, "status": status,
            "parent": parent, "opens": opens, "owner": owner, "lease": lease_ms,
        }  # fmt: skip
        written = await self._together(Call(Database.create, (given,)))
        held = status == "running"
        return None if written is None else Lease(run_id, owner if held else "", int(held), 0)

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        """Take a run that is free."""
        row = await self._call(Database.one, verbs.CLAIM, {"run": run_id, "owner": owner, "lease": lease_ms})
        return None if row is None else Lease(run_id, owner, row[0], row[1], row[2])

    async def renew(self, lease: Lease, lease_ms: int) -> Lease | None:
        """Hold the run for longer."""
        row = await self._call(Database.one, verbs.RENEW, {**_held(lease), "lease": lease_ms})
        return None if row is None else Lease(lease.run_id, lease.owner, lease.epoch, row[0], row[1])

    async def release(self, lease: Lease) -> bool:
        """Put the run back to `ready`."""
        return await self._call(Database.one, verbs.RELEASE, _held(lease)) is not None

    # -- a driver's rows

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        """A driver's rows, committed with whatever else waits."""
        queue = self._queue()
        if self._relaxed and snapshot is None and self._fits_in_between(queue, lease, entries):
            done, at_once = self._database.write_at_once(lease, seen, entries)
            if done:
                return at_once
        return await self._together(Call(Database.append, (lease, seen, entries, snapshot)))

    async def _together(self, call: Call) -> Written | None:
        """Run a call, committed with whatever else waits."""
        queue = self._queue()
        if queue.busy:
            answered = asyncio.get_running_loop().create_future()
            queue.waiting.append((call, answered))
            await answered
        else:
            queue.busy = True
            try:
                await self._run(call)
            finally:
                queue.waiting = [waiter for waiter in queue.waiting if not waiter[1].done()]  # some were cancelled
                if queue.waiting:
                    queue.task = asyncio.get_running_loop().create_task(self._commit_waiting(queue))
                else:
                    queue.busy = False
        if call.error is not None:
            raise self._translated(call.error)
        written: Written | None = call.answer
        return written

    def _fits_in_between(self, queue: _Queue, lease: Lease, entries: Sequence[Entry]) -> bool:
        """Whether rows are written on the event loop's own thread: plain and small ones, of a single run.

        Such a commit waits for no disk, and takes a third of the time of a hop. What several runs append in one turn of
        the loop goes together instead, and now and then the thread has to look after the WAL.
        """
        if queue.single is None:
            asyncio.get_running_loop().call_soon(queue.turned)
            queue.single = lease.run_id
        if queue.single != lease.run_id or queue.busy or must_last(entries):
            return False
        self._at_once += len(entries) + len(entries[0].body) // 4096
        if self._at_once > AT_ONCE:
            self._at_once = 0
            return False
        return self._connection is not None and self._process == os.getpid() and self._thread.is_alive()

    def _queue(self) -> _Queue:
        """The queue of the running loop: a future is answered in its own."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue()
        return queue

    async def _commit_waiting(self, queue: _Queue) -> None:
        """Everything that waits, in one transaction in one hop, until nothing waits."""
        try:
            while queue.waiting:
                group, queue.waiting = queue.waiting, []
                try:
                    calls = [call for call, answered in group if not answered.done()]
                    await self._run(Call(Database.together, (calls,)))
                except Exception as error:  # noqa: BLE001  # each caller raises it
                    for call, _ in group:
                        call.error = call.error or error
                finally:
                    for _, answered in group:
                        if not answered.done():
                            answered.set_result(None)
        finally:
            queue.busy = False

    async def settle(self, lease: Lease, seen: int, status: Status, body: bytes) -> Written | None:
        """A driver's row without a visit."""
        given = {**_held(lease), "seen": seen, "status": status, "body": body}
        return await self._call(Database.act, verbs.SETTLE, "settled", (), given)

    # -- somebody's acts

    async def decide(
        self,
        run_id: str,
        boundary: str,
        *,
        digest: str,
        decision: Verdict,
        actor: str,
        act: str,
        body: bytes,
        roles: Sequence[str] = (),
    ) -> Written | None:
        """Somebody's decision of one open boundary."""
        given = {
            "run": run_id, "boundary": boundary, "digest": digest, "decision": decision, "actor": actor, "act": act,
            "body": body, "roles": json.dumps(list(roles)),
        }  # fmt: skip
        follows = verbs.AFTER_DECISION if decision == "rejected" else verbs.AFTER_RELEASE
        return await self._call(Database.act, verbs.DECIDE, "decision", follows, given)

    async def expire(self, run_id: str, boundary: str, *, body: bytes = b"{}") -> Written | None:
        """The clock's decision."""
        given = {
            "run": run_id, "boundary": boundary, "decision": "expired", "actor": ":clock", "act": f":expire {boundary}",
            "body": body,
        }  # fmt: skip
        return await self._call(Database.act, verbs.EXPIRE, "decision", verbs.AFTER_DECISION, given)

    async def signal(self, run_id: str, name: str, key: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """A signal's row."""
        given = {"run": run_id, "name": name, "key": key, "actor": actor, "act": act, "body": body}
        return await self._call(Database.act, verbs.SIGNAL, "signal", verbs.AFTER_SIGNAL, given)

    async def cancel(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """End the run, or ask its driver to."""
        given = {"run": run_id, "actor": actor, "act": act, "body": body}
        return await self._call(Database.act, verbs.CANCEL, "cancel", verbs.AFTER_CANCEL, given)

    async def retry(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """Release failed positions."""
        return await self._call(
            Database.act, verbs.RETRY, "retry", (), {"run": run_id, "actor": actor, "act": act, "body": body}
        )

    # -- effects

    async def effect_begin(
        self, lease: Lease, key: str, *, path: str, step: int, policy: Policy, token: str
    ) -> Effect | None:
        """An effect's intent."""
        given = {**_held(lease), "key": key, "path": path, "step": step, "policy": policy, "token": token}
        return await self._call(Database.effect_begin, given)

    async def effect_end(self, run_id: str, key: str, token: str, outcome: bytes) -> bytes | None:
        """An effect's outcome."""
        given = {"run": run_id, "key": key, "token": token, "outcome": outcome}
        row = await self._call(Database.one, verbs.EFFECT_END, given)
        return None if row is None else bytes(row[0])

    # -- reading

    async def head(self, run_id: str) -> Head | None:
        """The run's row."""
        return await self._call(Database.head, run_id)

    async def load(self, run_id: str, *, after: int = -1, until: int | None = None) -> Log | None:
        """The run's rows, verified, from its snapshot on where that serves."""
        return await self._call(Database.load, run_id, after, ENDLESS if until is None else until)

    async def history(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[Checkpoint]:
        """The run's rows, verified."""
        return await self._call(Database.history, run_id, after, ENDLESS if limit is None else limit)

    async def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        """The row of an act."""
        return await self._call(Database.find_act, run_id, act)

    async def runs(
        self, *, status: str | None = None, graph: str | None = None, limit: int = 100, before: str | None = None
    ) -> list[Head]:
        """Runs, newest first."""
        given = {"status": status, "graph": graph, "many": limit, "before": before}
        return [Head(*row[:13]) for row in await self._call(Database.all, verbs.RUNS, given)]

    async def boundaries(
        self, run_id: str | None = None, *, state: str | None = None, limit: int = 1000
    ) -> list[Boundary]:
        """Boundaries, oldest first."""
        open_only = state == "open"
        if run_id is None:
            statement = verbs.OPEN_BOUNDARIES if open_only else verbs.BOUNDARIES
        else:
            statement = verbs.OPEN_BOUNDARIES_OF_RUN if open_only else verbs.BOUNDARIES_OF_RUN
        rows = await self._call(Database.all, statement, {"run": run_id, "state": state, "many": limit})
        return [boundary_of(row) for row in rows]

    async def due(self, *, limit: int = 100) -> tuple[list[str], list[str]]:
        """Runs to claim, boundaries to expire."""
        runs = await self._call(Database.all, verbs.DUE_RUNS, {"many": limit})
        boundaries = await self._call(Database.all, verbs.DUE_BOUNDARIES, {"many": limit})
        return [row[0] for row in runs], [row[0] for row in boundaries]

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run."""
        return bool(await self._call(Database.forget, verbs.ENDED_RUN, {"run": run_id}))

    async def prune(self, before_ms: int) -> int:
        """Remove the runs that ended before a time."""
        removed = 0
        while some := await self._call(Database.forget, _SOME_ENDED_RUNS, {"before": before_ms}):
            removed += some
        return removed

    async def fence(self) -> int:
        """Take every run that has not ended from its driver, after its file was restored by other means; how many."""
        return await self._call(Database.fence)

    # -- copies

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything, as it is at one moment, into a new file that only its owner may read; runs go on meanwhile.

        Raises `StoreUnavailable` where the file exists, and for a store in memory.
        """
        if not self.durable:
            raise StoreUnavailable("a store in memory has no file to copy")
        await self.head("-")  # the file is made, or found to be somebody else's
        target = os.fspath(path)
        copy = await self._copied(self.path, target)
        await self._put(copy, target)

    async def restore(self, path: str | os.PathLike[str]) -> int:
        """Make this store's file, which must not exist yet, from a backup; the answer is how many runs can go on in it.

        They are taken from their drivers: one from before the restore writes nothing more. Effects that were done after the
        backup was made are asked for again, under the same idempotency keys.
        """
        if not self.durable:
            raise StoreUnavailable("a store in memory cannot be restored")
        if self._connection is not None:
            raise StoreUnavailable(f"{self.path}: it is open; restore into a new file")
        source = os.fspath(path)
        copy = await self._copied(source, self.path)
        try:  # before the file has its name: nobody finds a store in which the old drivers may still write
            async with SqliteCheckpointer(copy, timeout=self._timeout, clock=self.clock, secret=self._secret) as store:
                runs = await store.fence()
        except BaseException as error:
            os.unlink(copy)
            if isinstance(error, CheckpointerError):  # it is no backup of ours
                raise type(error)(str(error).replace(copy, source)) from None
            raise
        await self._put(copy, self.path)
        return runs

    async def _copied(self, source: str, target: str) -> str:
        """A copy of a file beside the target, by SQLite itself in a thread of its own; where it is."""
        try:
            return await asyncio.to_thread(_copy, source, target)
        except FileExistsError as error:
            raise StoreUnavailable(f"{error.filename}: a file is there already; name a new one") from None
        except (OSError, sqlite3.Error, ValueError) as error:
            raise StoreUnavailable(f"{source} cannot be copied to {target}: {error}") from None

    async def _put(self, copy: str, target: str) -> None:
        """Give a copy its name, unless a file has it."""
        try:
            await asyncio.to_thread(_put, copy, target)
        except FileExistsError:
            raise StoreUnavailable(f"{target}: a file is there already; name a new one") from None
        except OSError as error:
            raise StoreUnavailable(f"{target} cannot be made: {error}") from None

    # -- the connection and its thread

    async def close(self) -> None:
        """Close the file and end the thread."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None and self._thread.is_alive():  # it is not in a forked child
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _call(
        self, method: Callable[Concatenate[Database, Given], Answer], *arguments: Given.args, **_: Given.kwargs
    ) -> Answer:
        call = Call(method, arguments)
        await self._run(call)
        if call.error is not None:
            raise self._translated(call.error)
        return cast("Answer", call.answer)

    async def _run(self, call: Call) -> None:
        """One hop to the connection's thread. A cancelled caller waits until its call has run: then what is stored is known."""
        connection = self._connection or await self._open()
        if self._process != os.getpid():
            raise StoreClosed(f"{self!r} was opened before this process was forked; open a new one in the child")
        if not self._thread.is_alive():
            raise StoreClosed(f"{self!r} was in a call when its event loop was closed; open a new one")
        try:
            await connection.execute("", call)
        except asyncio.CancelledError:
            # Even if the call has run: its answer may still be on the way, and an answer to a closed loop ends the thread.
            behind = False
            while not behind:
                try:
                    await connection.execute("", Call(Database.nothing, ()))  # behind the call in the thread's queue
                    behind = True
                except asyncio.CancelledError:
                    continue
                except ValueError:  # closed meanwhile, which is behind the call too
                    behind = True
            raise
        except ValueError as error:  # aiosqlite: the connection was closed meanwhile
            raise StoreClosed(f"{self!r} is closed") from error

    async def _open(self) -> aiosqlite.Connection:
        async with self._queue().opening:
            if self._closed:
                raise StoreClosed(f"{self!r} is closed")
            if self._connection is None:
                connection, thread, database = await self._connect()
                if self._closed:  # meanwhile
                    await connection.close()
                    raise StoreClosed(f"{self!r} is closed")
                if self._connection is None:
                    self._thread, self._process, self._database = thread, os.getpid(), database
                    self._connection = connection
                else:  # another thread's event loop was faster
                    await connection.close()
            return self._connection

    async def _connect(self) -> tuple[aiosqlite.Connection, threading.Thread, Database]:
        """A connection to our own file, its thread, and what runs there."""
        connection = aiosqlite.connect(
            self._file(),
            timeout=self._timeout,
            isolation_level=None,
            cached_statements=256,
            factory=Database,
            check_same_thread=not self._relaxed,
        )
        try:
            await connection
            call = Call(Database.prepare, (self.clock, self._secret, self._relaxed, self._timeout))
            await connection.execute("", call)
            if call.error is not None:
                raise call.error
        except BaseException as error:  # noqa: BLE001  # raised again, as what it means here
            await connection.close()
            raise self._translated(error) from None
        _stop_with_the_process(connection)
        return connection, *call.answer

    def _file(self) -> str:
        """The path, its file made readable for its owner alone.

        A file that is there is never opened here: closing it would take all of SQLite's locks on it from this process.
        """
        if self.durable:
            try:
                with _making:
                    os.close(os.open(os.path.realpath(self.path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                if not os.path.isfile(self.path):
                    what = "it is a folder" if os.path.isdir(self.path) else "it is no regular file"
                    raise StoreUnavailable(f"{self.path}: {what}; check the path") from None
                if not os.access(self.path, os.R_OK | os.W_OK):
                    raise StoreReadOnly(
                        f"{self.path}: it cannot be written; let this user write the file and its folder"
                    ) from None
            except (OSError, ValueError) as error:
                raise self._translated(error) from None
        return self.path

    def _translated(self, error: BaseException) -> BaseException:
        """What a database's error means here."""
        if isinstance(error, PermissionError) or (isinstance(error, OSError) and error.errno == 30):
            return StoreReadOnly(f"{self.path}: {error.strerror}; let this user write the file and its folder")
        if isinstance(error, OSError):
            return StoreUnavailable(f"{self.path}: {error.strerror}; check the path")
        if isinstance(error, StoreForeign):
            return StoreForeign(f"{self.path}: {error}")
        if type(error) is ValueError:
            return StoreUnavailable(f"{self.path!r}: {error}; check the path")
        if isinstance(error, UnicodeEncodeError):
            return CheckpointerError(f"{self.path}: {error.object!r} is no text that can be stored ({error.reason})")
        if isinstance(error, UnicodeDecodeError):
            return StoreUnavailable(
                f"{self.path}: it holds text that is none ({error.reason}); restore it from a backup"
            )
        if not isinstance(error, sqlite3.Error):
            return error
        name = getattr(error, "sqlite_errorname", "") or ""
        text = f"{self.path}: {error}"
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return StoreLocked(
                f"{text}: another process has held its write lock for {self._timeout} s; try again when it is done"
            )
        if name.startswith("SQLITE_PROTOCOL"):  # SQLite has tried for ten seconds to get at the WAL
            return StoreLocked(
                f"{text}: another process stands still while it sets up the WAL; try again when it goes on"
            )
        if name.startswith("SQLITE_FULL"):
            return StoreFull(f"{text}; make room, then go on with recover")
        if name.startswith("SQLITE_READONLY"):
            return StoreReadOnly(f"{text}; let this user write the file and its folder")
        if name.startswith("SQLITE_NOTADB"):
            return StoreForeign(f"{text}; it is no SQLite database: name another file")
        if name.startswith("SQLITE_CORRUPT"):
            return StoreUnavailable(f"{text}; restore it from a backup")
        return StoreUnavailable(text) if isinstance(error, sqlite3.OperationalError) else CheckpointerError(text)


def _held(lease: Lease) -> dict[str, Any]:
    """What a lease is, as the statements name it."""
    return {"run": lease.run_id, "epoch": lease.epoch, "owner": lease.owner}


def _copy(source: str, target: str) -> str:
    """A consistent copy, of what is in the source's WAL too, beside the target; no file is left behind where it fails."""
    for path in (target, f"{target}-wal", f"{target}-journal"):  # a new file would be read with what these say
        if os.path.lexists(path):
            raise FileExistsError(EEXIST, "a file is there", path)
    file, copy = tempfile.mkstemp(
        ".part", ".stategraph-", os.path.dirname(os.path.abspath(target))
    )  # its owner's alone
    os.close(file)
    try:
        connection = sqlite3.connect(f"{Path(source).absolute().as_uri()}?mode=ro", uri=True)
        try:
            connection.execute("VACUUM INTO ?", (copy,))
        finally:
            connection.close()
        if os.path.getsize(copy) == 0 or not _has_tables(copy):
            raise ValueError("it is empty")  # what an interrupted copy by other means may leave
    except BaseException:
        os.unlink(copy)
        raise
    return copy


def _has_tables(path: str) -> bool:
    connection = sqlite3.connect(path)
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        connection.close()
    return bool(tables)


def _put(copy: str, target: str) -> None:
    """The copy under its name, all of it on the disk: whoever finds the name finds the whole."""
    try:
        _sync(copy)
        try:
            os.link(copy, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(copy, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(copy)
    if os.name == "posix":  # Windows opens no folder
        _sync(os.path.dirname(os.path.abspath(target)))


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class _Queue:
    """One event loop's appends that wait for the thread, with whom to answer."""

    def __init__(self) -> None:
        self.opening = asyncio.Lock()
        self.waiting: list[tuple[Call, asyncio.Future[None]]] = []
        self.busy = False
        self.task: asyncio.Task[None] | None = None
        #: The run that appends in this turn of the loop.
        self.single: str | None = None

    def turned(self) -> None:
        """The next turn of the loop: any run may be the single one."""
        self.single = None


# -- aiosqlite's thread is no daemon: a program that forgets to close would never exit

_open_connections: weakref.WeakSet[aiosqlite.Connection] = weakref.WeakSet()
_watched = threading.Lock()
_watcher: threading.Thread | None = None


def _stop_with_the_process(connection: aiosqlite.Connection) -> None:
    global _watcher
    _open_connections.add(connection)
    with _watched:
        if _watcher is None or not _watcher.is_alive():
            _watcher = threading.Thread(target=_stop_at_exit, name="stategraph-exit", daemon=True)
            _watcher.start()


def _stop_at_exit() -> None:
    threading.main_thread().join()
    for connection in list(_open_connections):
        connection.stop()
