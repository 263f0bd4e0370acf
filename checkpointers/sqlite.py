"""Runs in one SQLite file: WAL, one connection on a thread of its own, one hop to it per verb.

Appends that wait while the thread is busy are committed together, each fenced and answered on its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, cast

import aiosqlite

from checkpointers import verbs
from checkpointers.schema import APPLICATION, VERSION, statements
from stategraph.checkpoint import (
    COMPLETES,
    Boundary,
    Checkpoint,
    Decision,
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
    digest,
    load_openings,
    seal,
    snapshot_digest,
    verified,
)
from stategraph.clock import Clock, SystemClock
from stategraph.encoding import decode
from stategraph.errors import (
    CheckpointerError,
    CorruptCheckpoint,
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

_ENDLESS = 1 << 62
#: Held while a new file is made: nobody in this process has it open yet.
_making = threading.Lock()


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
        written = await self._call(_Database.create, given)
        held = status == "running"
        return None if written is None else Lease(run_id, owner if held else "", int(held), 0)

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        """Take a run that is free."""
        row = await self._call(_Database.one, verbs.CLAIM, {"run": run_id, "owner": owner, "lease": lease_ms})
        return None if row is None else Lease(run_id, owner, row[0], row[1], row[2])

    async def renew(self, lease: Lease, lease_ms: int) -> Lease | None:
        """Hold the run for longer."""
        row = await self._call(
            _Database.one, verbs.RENEW, {"run": lease.run_id, "epoch": lease.epoch, "lease": lease_ms}
        )
        return None if row is None else Lease(lease.run_id, lease.owner, lease.epoch, row[0], row[1])

    async def release(self, lease: Lease) -> bool:
        """Put the run back to `ready`."""
        return await self._call(_Database.one, verbs.RELEASE, {"run": lease.run_id, "epoch": lease.epoch}) is not None

    # -- a driver's rows

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        """A driver's rows, committed with whatever else waits."""
        call = _Call(_Database.append, (lease, seen, entries, snapshot))
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
                    await self._run(_Call(_Database.together, (calls,)))
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
        given = {"run": lease.run_id, "epoch": lease.epoch, "seen": seen, "status": status, "body": body}
        return await self._call(_Database.act, verbs.SETTLE, "settled", (), given)

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
        return await self._call(_Database.act, verbs.DECIDE, "decision", follows, given)

    async def expire(self, run_id: str, boundary: str, *, body: bytes = b"{}") -> Written | None:
        """The clock's decision."""
        given = {
            "run": run_id, "boundary": boundary, "decision": "expired", "actor": ":clock", "act": f":expire {boundary}",
            "body": body,
        }  # fmt: skip
        return await self._call(_Database.act, verbs.EXPIRE, "decision", verbs.AFTER_DECISION, given)

    async def signal(self, run_id: str, name: str, key: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """A signal's row."""
        given = {"run": run_id, "name": name, "key": key, "actor": actor, "act": act, "body": body}
        return await self._call(_Database.act, verbs.SIGNAL, "signal", verbs.AFTER_SIGNAL, given)

    async def cancel(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """End the run, or ask its driver to."""
        given = {"run": run_id, "actor": actor, "act": act, "body": body}
        return await self._call(_Database.act, verbs.CANCEL, "cancel", verbs.AFTER_CANCEL, given)

    async def retry(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """Release failed positions."""
        return await self._call(
            _Database.act, verbs.RETRY, "retry", (), {"run": run_id, "actor": actor, "act": act, "body": body}
        )

    # -- effects

    async def effect_begin(
        self, lease: Lease, key: str, *, path: str, step: int, policy: Policy, token: str
    ) -> Effect | None:
        """An effect's intent."""
        given = {
            "run": lease.run_id, "epoch": lease.epoch, "key": key, "path": path, "step": step, "policy": policy, "token": token,
        }  # fmt: skip
        return await self._call(_Database.effect_begin, given)

    async def effect_end(self, run_id: str, key: str, token: str, outcome: bytes) -> bytes | None:
        """An effect's outcome."""
        given = {"run": run_id, "key": key, "token": token, "outcome": outcome}
        row = await self._call(_Database.one, verbs.EFFECT_END, given)
        return None if row is None else bytes(row[0])

    # -- reading

    async def head(self, run_id: str) -> Head | None:
        """The run's row."""
        return await self._call(_Database.head, run_id)

    async def load(self, run_id: str, *, after: int = -1, until: int | None = None) -> Log | None:
        """The run's rows, verified, from its snapshot on where that serves."""
        return await self._call(_Database.load, run_id, after, _ENDLESS if until is None else until)

    async def history(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[Checkpoint]:
        """The run's rows, verified."""
        return await self._call(_Database.history, run_id, after, _ENDLESS if limit is None else limit)

    async def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        """The row of an act."""
        return await self._call(_Database.find_act, run_id, act)

    async def runs(
        self, *, status: str | None = None, graph: str | None = None, limit: int = 100, before: str | None = None
    ) -> list[Head]:
        """Runs, newest first."""
        given = {"status": status, "graph": graph, "many": limit, "before": before}
        return [Head(*row[:13]) for row in await self._call(_Database.all, verbs.RUNS, given)]

    async def boundaries(
        self, run_id: str | None = None, *, state: str | None = None, limit: int = 1000
    ) -> list[Boundary]:
        """Boundaries, oldest first."""
        open_only = state == "open"
        if run_id is None:
            statement = verbs.OPEN_BOUNDARIES if open_only else verbs.BOUNDARIES
        else:
            statement = verbs.OPEN_BOUNDARIES_OF_RUN if open_only else verbs.BOUNDARIES_OF_RUN
        rows = await self._call(_Database.all, statement, {"run": run_id, "state": state, "many": limit})
        return [_boundary(row) for row in rows]

    async def due(self, *, limit: int = 100) -> tuple[list[str], list[str]]:
        """Runs to claim, boundaries to expire."""
        runs = await self._call(_Database.all, verbs.DUE_RUNS, {"many": limit})
        boundaries = await self._call(_Database.all, verbs.DUE_BOUNDARIES, {"many": limit})
        return [row[0] for row in runs], [row[0] for row in boundaries]

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run."""
        return bool(await self._call(_Database.forget, verbs.ENDED_RUN, {"run": run_id}))

    async def prune(self, before_ms: int) -> int:
        """Remove the runs that ended before a time."""
        removed: int = await self._call(_Database.forget, verbs.ENDED_RUNS, {"before": before_ms})
        return removed

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
        self, method: Callable[Concatenate[_Database, Given], Answer], *arguments: Given.args, **_: Given.kwargs
    ) -> Answer:
        call = _Call(method, arguments)
        await self._run(call)
        if call.error is not None:
            raise self._translated(call.error)
        return cast("Answer", call.answer)

    async def _run(self, call: _Call) -> None:
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
                    await connection.execute("", _Call(_Database.nothing, ()))  # behind the call in the thread's queue
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
                connection, thread = await self._connect()
                if self._closed:  # meanwhile
                    await connection.close()
                    raise StoreClosed(f"{self!r} is closed")
                if self._connection is None:
                    self._thread, self._process = thread, os.getpid()
                    self._connection = connection
                else:  # another thread's event loop was faster
                    await connection.close()
            return self._connection

    async def _connect(self) -> tuple[aiosqlite.Connection, threading.Thread]:
        """A connection to our own file, and its thread."""
        connection = aiosqlite.connect(
            self._file(), timeout=self._timeout, isolation_level=None, cached_statements=256, factory=_Database
        )
        try:
            await connection
            call = _Call(_Database.prepare, (self.clock, self._secret, self._relaxed, self._timeout))
            await connection.execute("", call)
            if call.error is not None:
                raise call.error
        except BaseException as error:  # noqa: BLE001  # raised again, as what it means here
            await connection.close()
            raise self._translated(error) from None
        _stop_with_the_process(connection)
        return connection, call.answer

    def _file(self) -> str:
        """The path, its file made readable for its owner alone."""
        if self.durable:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600)
            except (OSError, ValueError) as error:
                raise self._translated(error) from None
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            os.close(descriptor)
            if not regular:
                raise StoreUnavailable(f"{self.path} is no regular file; name one")
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
        if name.startswith("SQLITE_FULL"):
            return StoreFull(f"{text}; make room, then go on with recover")
        if name.startswith("SQLITE_READONLY"):
            return StoreReadOnly(f"{text}; let this user write the file and its folder")
        if name.startswith("SQLITE_NOTADB"):
            return StoreForeign(f"{text}; it is no SQLite database: name another file")
        if name.startswith("SQLITE_CORRUPT"):
            return StoreUnavailable(f"{text}; restore it from a backup")
        return StoreUnavailable(text) if isinstance(error, sqlite3.OperationalError) else CheckpointerError(text)


class _Queue:
    """One event loop's appends that wait for the thread, with whom to answer."""

    def __init__(self) -> None:
        self.opening = asyncio.Lock()
        self.waiting: list[tuple[_Call, asyncio.Future[None]]] = []
        self.busy = False
        self.task: asyncio.Task[None] | None = None


class _Call:
    """A call of the database's on its way to the thread: passed as the parameters of one public `execute`."""

    __slots__ = ("answer", "arguments", "done", "error", "method")

    def __init__(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.method = method
        self.arguments = arguments
        self.answer: Any = None
        self.error: Exception | None = None
        self.done = False


class _Database(sqlite3.Connection):
    """The connection, given to aiosqlite by its public `factory=`; everything here runs on its thread."""

    clock: Clock
    secret: bytes
    relaxed: bool
    #: What `execute` answers for a call: aiosqlite wraps it, nobody reads it.
    idle: sqlite3.Cursor

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """SQL as ever, or the call that is given in place of parameters."""
        if type(parameters) is not _Call:
            return super().execute(sql, parameters)
        try:
            parameters.answer = parameters.method(self, *parameters.arguments)
        except Exception as error:  # noqa: BLE001  # raised where it was called for
            parameters.error = error
        finally:
            parameters.done = True
        try:
            return self.idle
        except AttributeError:
            self.idle = self.cursor()
            return self.idle

    def nothing(self) -> None:
        """A call that only waits for its turn."""

    # -- opening

    def prepare(self, clock: Clock, secret: bytes, relaxed: bool, timeout: float) -> threading.Thread:
        """Check that the file is ours, of a version we know, and make it so if it is empty; the thread it runs on."""
        self.clock, self.secret, self.relaxed = clock, secret, relaxed
        self.create_function("sg_digest", 3, digest, deterministic=True)
        self.create_function("sg_may", 3, _may, deterministic=True)
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=FULL", "journal_size_limit=67108864"):
            super().execute(f"PRAGMA {pragma}")
        self._check_schema()
        self._use_wal(timeout)
        return threading.current_thread()

    def _check_schema(self) -> None:
        if self._is_ours():
            return
        with self.transaction():
            if not self._is_ours():  # another process may have made it meanwhile
                for statement in statements():
                    super().execute(statement)
                super().execute(f"PRAGMA application_id={APPLICATION}")
                super().execute(f"PRAGMA user_version={VERSION}")

    def _is_ours(self) -> bool:
        """Whether the schema is there; `StoreForeign` if it is somebody else's, or newer, or has code planted in it."""
        # The objects first: what another process makes between two of these reads must not look like a foreign file.
        objects = super().execute("SELECT type, name FROM sqlite_master").fetchall()
        (application,) = super().execute("PRAGMA application_id").fetchone()
        (version,) = super().execute("PRAGMA user_version").fetchone()
        if not objects and application in (0, APPLICATION):
            return False
        if application != APPLICATION:
            names = ", ".join(sorted(name for kind, name in objects if kind == "table")[:3])
            raise StoreForeign(f"the file is a database of another program (tables {names}); name another file")
        if version > VERSION:
            raise StoreForeign(
                f"the file has schema version {version}, this stategraph knows {VERSION}: install the newer stategraph"
            )
        planted = [f"{kind} {name!r}" for kind, name in objects if kind in ("trigger", "view")]
        if planted:
            raise StoreForeign(f"the file has a {planted[0]}, which stategraph did not make; remove it")
        return True

    def _use_wal(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            try:
                super().execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                # The one statement that does not wait for the lock by itself; two processes may open a new file at once.
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    # -- transactions

    @contextmanager
    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        """BEGIN IMMEDIATE to COMMIT: whatever is read in it is read under the write lock."""
        run = super().execute
        try:
            run(begin)
            yield
            run("COMMIT")
        except BaseException:
            if self.in_transaction:
                run("ROLLBACK")
            raise

    def _sync(self, full: bool) -> None:
        """With relaxed durability: whether the next commit has to survive power loss."""
        if self.relaxed:
            super().execute("PRAGMA synchronous=FULL" if full else "PRAGMA synchronous=NORMAL")

    # -- verbs

    def one(self, statement: str, given: dict[str, Any]) -> Any:
        """A single statement: its row, or None."""
        self._sync(full=True)
        cursor = super().execute(statement, {**given, "now": self.clock.now()})
        row = cursor.fetchone()
        cursor.fetchall()
        return row

    def all(self, statement: str, given: dict[str, Any]) -> list[Any]:
        return super().execute(statement, {**given, "now": self.clock.now()}).fetchall()

    def create(self, given: dict[str, Any]) -> Written | None:
        given["now"] = now = self.clock.now()
        given["seal"] = self._seal("start", given)
        self._sync(full=True)
        with self.transaction():
            super().execute(verbs.CREATE_RUN, given)
            row = super().execute(verbs.CREATE_START, given).fetchone()
            if row is None:
                return None
            self._open_boundaries(row[0], row[1], given["opens"])
            self._move(*row)
        return Written(row[1], row[2], now)

    def act(self, statement: str, kind: str, follows: Sequence[str], given: dict[str, Any]) -> Written | None:
        """A row that a statement inserts by its own predicate, then what follows from it."""
        given["now"] = now = self.clock.now()
        given["seal"] = self._seal(kind, given)
        self._sync(full=True)
        with self.transaction():
            row = super().execute(statement, given).fetchone()
            if row is None:
                return None
            self._follow(follows, given, row)
            self._move(*row)
        return Written(row[1], row[2], now)

    def append(self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None) -> Written | None:
        self._sync(full=_must_last(entries))
        with self.transaction():
            return self._append(lease, seen, entries, snapshot)

    def together(self, calls: list[_Call]) -> None:
        """Appends of several runs in one transaction. A broken one undoes the group, which is then repeated one by one."""
        if not calls:
            return
        self._sync(full=any(_must_last(call.arguments[2]) for call in calls))
        try:
            with self.transaction():
                for call in calls:
                    call.answer = self._append(*call.arguments)
        except (
            sqlite3.OperationalError
        ) as error:  # locked, full: every caller raises it, as nothing of the group is stored
            for call in calls:
                call.answer, call.error = None, error
        except Exception:  # noqa: BLE001  # one of them is broken, whatever breaks it
            for call in calls:
                try:
                    call.answer = self.append(*call.arguments)
                except Exception as error:  # noqa: BLE001  # its own caller raises it, the others are spared
                    call.answer, call.error = None, error

    def _append(self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None) -> Written | None:
        """Inside a transaction: the first row by the verb's predicate, the others after it, the head with each."""
        now, last = self.clock.now(), entries[-1]
        written: tuple[int, int, str] | None = None
        for nth, entry in enumerate(entries):
            status = entry.status if entry is last else "running"
            fast = entry.effect is None and entry.kind in COMPLETES
            written = (self._insert if fast else self._insert_any)(lease, seen + nth, entry, status, now)
            if written is None:
                if entry is not entries[0]:
                    raise sqlite3.IntegrityError("a visit that follows a new one has rows already")
                return None
            if entry.opens:
                self._open_boundaries(written[0], written[1], entry.opens)
            if entry.effect is not None:
                super().execute(verbs.AFTER_ASKED[0], {"effect": entry.effect})
            self._move(*written)
        assert written is not None
        if snapshot is not None:
            self._keep_snapshot(written[0], lease.run_id, seen, snapshot)
        return Written(written[1], written[2], now)  # type: ignore[arg-type]

    def _insert(self, lease: Lease, seen: int, entry: Entry, status: str, now: int) -> tuple[int, int, str] | None:
        """The hot path: the head is read under the write lock, the row inserted by value; a taken key is the refusal."""
        run = super().execute
        run_id, epoch, path, step, attempt, opens = (
            lease.run_id, lease.epoch, entry.path, entry.step, entry.attempt, entry.opens,
        )  # fmt: skip
        head = run(verbs.APPEND_HEAD, (run_id, epoch, path, step, attempt)).fetchone()
        if head is None:
            return None
        rid, seq = head
        if seq != seen:
            status = "running"
        seq += 1
        body = entry.body
        sealed = seal(
            self.secret,
            run_id,
            entry.kind,
            epoch,
            path,
            step,
            attempt,
            opens,
            None,
            None,
            None,
            None,
            None,
            None,
            now,
            body,
        )
        row = (rid, seq, entry.kind, status, epoch, path, step, attempt, opens, body, now, digest(sealed, seq, status))
        return (rid, seq, status) if run(verbs.APPEND_ROW, row).rowcount == 1 else None

    def _insert_any(self, lease: Lease, seen: int, entry: Entry, status: str, now: int) -> tuple[int, int, str] | None:
        given = {
            "run": lease.run_id, "epoch": lease.epoch, "seen": seen, "kind": entry.kind, "path": entry.path, "step": entry.step,
            "attempt": entry.attempt, "status": status, "opens": entry.opens, "effect": entry.effect, "body": entry.body,
            "now": now,
        }  # fmt: skip
        given["seal"] = self._seal(entry.kind, given)
        row: tuple[int, int, str] | None = super().execute(verbs.APPEND, given).fetchone()
        return row

    def effect_begin(self, given: dict[str, Any]) -> Effect | None:
        self._sync(full=True)
        with self.transaction():
            held = super().execute("SELECT token FROM effects WHERE key = :key", given).fetchone()
            super().execute(verbs.EFFECT_BEGIN, given)
            row = super().execute(verbs.EFFECT_KNOWN, given).fetchone()
        if row is None:
            return None
        token, outcome = row
        handed_on = held is not None and held[0] != token
        return Effect(token, None if outcome is None else bytes(outcome), handed_on)

    def forget(self, which: str, given: dict[str, Any]) -> int:
        with self.transaction():
            runs = super().execute(which, given).fetchall()
            for (rid,) in runs:
                for statement in verbs.FORGET:
                    super().execute(statement, {"rid": rid})
        return len(runs)

    # -- what follows from a row

    def _open_boundaries(self, rid: int, seq: int, opens: str | None) -> None:
        for nth, opening in enumerate(load_openings(opens)):
            given = {
                "rid": rid, "seq": seq, "nth": nth, "path": opening.path, "step": opening.step, "node": opening.node,
                "kind": opening.kind, "digest": opening.digest, "final": int(opening.final), "needed": opening.needed,
                "approvers": None if opening.approvers is None else json.dumps(opening.approvers),
                "four_eyes": int(opening.four_eyes), "effect": opening.effect, "name": opening.name, "key": opening.key,
                "expires_at": opening.expires_at,
            }  # fmt: skip
            super().execute(verbs.OPEN_BOUNDARY, given)

    def _follow(self, statements: Sequence[str], given: dict[str, Any], row: Any) -> None:
        given = {**given, "rid": row[0], "seq": row[1], "status": row[2]}
        for statement in statements:
            super().execute(statement, given)

    def _move(self, rid: int, seq: int, status: str) -> None:
        if status == "running":
            moved = super().execute(verbs.HEAD_RUNS, (rid, seq))
        else:
            moved = super().execute(verbs.HEAD_RESTS, (rid, seq, status))
        if moved.rowcount != 1:
            raise sqlite3.IntegrityError("the head did not follow its log")

    def _seal(self, kind: str, given: Mapping[str, Any]) -> bytes:
        get = given.get
        opens = get("opens")
        return seal(
            self.secret, given["run"], kind, get("epoch"), get("path"), get("step"), get("attempt"), opens, get("boundary"),
            get("decision"), get("name"), get("key"), get("actor"), get("act"), given["now"], given["body"],
        )  # fmt: skip

    def _keep_snapshot(self, rid: int, run_id: str, seq: int, body: bytes) -> None:
        super().execute(verbs.KEEP_SNAPSHOT, (rid, seq, body, snapshot_digest(self.secret, run_id, seq, body)))

    # -- reading

    def head(self, run_id: str) -> Head | None:
        row = super().execute(verbs.HEAD, {"run": run_id}).fetchone()
        return None if row is None else Head(*row[:13])

    def load(self, run_id: str, after: int, until: int) -> Log | None:
        with self.transaction("BEGIN"):  # several reads of one moment; never held across a hop
            row = super().execute(verbs.HEAD, {"run": run_id}).fetchone()
            if row is None:
                return None
            head, rid = Head(*row[:13]), row[13]
            snapshot = self._snapshot(run_id, rid, until) if after < 0 else None
            start = after if snapshot is None else snapshot[0]
            rows = self._rows(run_id, rid, start, until, _ENDLESS)
        expected = min(head.seq, until)
        if start < expected and (not rows or rows[-1].seq != expected):
            raise CorruptCheckpoint(run_id, start + len(rows) + 1, "it is missing")
        return Log(head, snapshot, tuple(rows))

    def history(self, run_id: str, after: int, limit: int) -> list[Checkpoint]:
        with self.transaction("BEGIN"):  # several reads of one moment; never held across a hop
            row = super().execute(verbs.HEAD, {"run": run_id}).fetchone()
            return [] if row is None else self._rows(run_id, row[13], after, _ENDLESS, limit)

    def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        row = super().execute(verbs.ROW_OF_ACT, {"run": run_id, "act": act}).fetchone()
        return None if row is None else verified(self.secret, Checkpoint(run_id, *row[:-1]), row[-1])

    def _rows(self, run_id: str, rid: int, after: int, until: int, limit: int) -> list[Checkpoint]:
        given = {"rid": rid, "after": after, "until": until, "many": limit}
        rows = []
        for place, row in enumerate(super().execute(verbs.ROWS, given).fetchall(), after + 1):
            checkpoint = verified(self.secret, Checkpoint(run_id, *row[:-1]), row[-1])
            if checkpoint.seq != place:
                raise CorruptCheckpoint(run_id, place, "it is missing")
            rows.append(checkpoint)
        return rows

    def _snapshot(self, run_id: str, rid: int, until: int) -> tuple[int, bytes] | None:
        row = super().execute(verbs.SNAPSHOT, {"rid": rid, "until": until}).fetchone()
        if row is None:
            return None
        seq, body, stored = row
        if snapshot_digest(self.secret, run_id, seq, body) != stored:
            raise CorruptCheckpoint(run_id, seq, "its snapshot's digest does not match its content")
        return seq, body


def _must_last(entries: Sequence[Entry]) -> bool:
    """Whether these rows have to survive power loss even with relaxed durability."""
    return any(entry.status != "running" or entry.opens is not None for entry in entries)


def _may(approvers: str, actor: str, roles: str | None) -> int:
    return int(bool({actor, *json.loads(roles or "[]")} & set(json.loads(approvers))))


def _note(body: bytes) -> str | None:
    """The note in an act's body; the body may hold anything else."""
    try:
        content = decode(body)
    except ValueError:
        return None
    note = content.get("note") if isinstance(content, dict) else None
    return note if isinstance(note, str) else None


def _boundary(row: Any) -> Boundary:
    run_id, short = row[0], row[1]
    decided = None
    if row[21] is not None:
        decided = Decision(row[19] or row[20], row[21], row[22], row[23], _note(row[24]))
    return Boundary(
        run_id=run_id, id=f"{run_id}:{short}", opened=row[2], kind=row[3], path=row[4], step=row[5], node=row[6], digest=row[7],
        final=bool(row[8]), needed=row[9], approvals=row[10],
        approvers=None if row[11] is None else tuple(json.loads(row[11])),
        four_eyes=bool(row[12]), state=row[13], effect=row[14], name=row[15], key=row[16], expires_at=row[17], opened_ms=row[18],
        decided=decided,
    )  # fmt: skip


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
