"""The SQLite connection: the verbs as transactions, on the thread that aiosqlite gives it, but for steps written at once."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from checkpointers import verbs
from checkpointers.schema import APPLICATION, VERSION, statements
from stategraph.checkpoint import (
    COMPLETES,
    Checkpoint,
    Effect,
    Entry,
    Head,
    Lease,
    Log,
    Written,
    digest,
    load_openings,
    seal,
    snapshot_digest,
    verified,
)
from stategraph.clock import Clock
from stategraph.errors import (
    CorruptCheckpoint,
    StoreForeign,
)

__all__ = ["ENDLESS", "WAL_PAGES", "Call", "Database", "must_last"]

ENDLESS = 1 << 62
#: How long the WAL may grow before it is copied back: a step writes four pages, of which most are those of the step before.
WAL_PAGES = 2000


class Call:
    """A call of the database's on its way to the thread: passed as the parameters of one public `execute`."""

    __slots__ = ("answer", "arguments", "done", "error", "method")

    def __init__(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.method = method
        self.arguments = arguments
        self.answer: Any = None
        self.error: Exception | None = None
        self.done = False


class Database(sqlite3.Connection):
    """The connection, given to aiosqlite by its public `factory=`; who uses it holds its `turn`."""

    clock: Clock
    secret: bytes
    relaxed: bool
    timeout: float
    #: Whether the next commit survives power loss.
    full = True
    #: Whether a locked file is waited for, and the WAL copied back when it has grown: both may take long.
    patient = True
    #: The cursor of the statements that each step needs: a new one for each would cost as much as a short statement.
    hand: sqlite3.Cursor
    #: What `execute` answers for a call: aiosqlite wraps it, nobody reads it.
    idle: sqlite3.Cursor

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        #: Held by who uses the connection.
        self.turn = threading.Lock()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """SQL as ever, or the call that is given in place of parameters."""
        if type(parameters) is not Call:
            return super().execute(sql, parameters)
        with self.turn:
            try:
                if not self.patient:
                    self._be_patient(True)
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

    def close(self) -> None:
        """Close the file, after a step that is being written in another thread."""
        with self.turn:
            super().close()

    def write_at_once(self, lease: Lease, seen: int, entries: Sequence[Entry]) -> tuple[bool, Written | None]:
        """Append here and now, on the caller's thread, if nothing has to be waited for: whether it was done, the answer.

        For rows that need no disk: writing one takes less time than handing it to the thread and taking its answer.
        """
        if not self.turn.acquire(blocking=False):
            return False, None
        try:
            if self.patient:
                self._be_patient(False)
            return True, self.append(lease, seen, entries, None)
        except (
            sqlite3.Error
        ):  # locked, or anything else: nothing of it is stored, and the thread has the time to find out
            return False, None
        finally:
            self.turn.release()

    def _be_patient(self, patient: bool) -> None:
        """Set what a call may take its time for."""
        super().execute(f"PRAGMA busy_timeout={round(self.timeout * 1000) if patient else 0}")
        super().execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES if patient else 0}")
        self.patient = patient

    # -- opening

    def prepare(self, clock: Clock, secret: bytes, relaxed: bool, timeout: float) -> tuple[threading.Thread, Database]:
        """Check that the file is ours, of a version we know, and make it so if it is empty; the thread it runs on."""
        self.clock, self.secret, self.relaxed, self.timeout = clock, secret, relaxed, timeout
        self.hand = self.cursor()
        self.create_function("sg_digest", 3, digest, deterministic=True)
        self.create_function("sg_may", 3, _may, deterministic=True)
        for pragma in (
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "synchronous=FULL",
            "journal_size_limit=67108864",
            f"wal_autocheckpoint={WAL_PAGES}",
        ):
            super().execute(f"PRAGMA {pragma}")
        self._check_schema()
        self._use_wal(timeout)
        return threading.current_thread(), self

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
        if self.relaxed and full is not self.full:
            super().execute("PRAGMA synchronous=FULL" if full else "PRAGMA synchronous=NORMAL")
            self.full = full

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
        self._sync(full=True)
        with self.transaction():
            return self._create(given)

    def _create(self, given: dict[str, Any]) -> Written | None:
        given["now"] = now = self.clock.now()
        given["seal"] = self._seal("start", given)
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
        self._sync(full=must_last(entries))
        run = self.hand.execute
        try:  # as `transaction` does, whose generator costs as much as a statement
            run("BEGIN IMMEDIATE")
            written = self._append(lease, seen, entries, snapshot)
            run("COMMIT")
        except BaseException:
            if self.in_transaction:
                run("ROLLBACK")
            raise
        return written

    def together(self, calls: list[Call]) -> None:
        """Calls of several runs, to create or to append, in one transaction.

        A broken one undoes the group, which is then repeated one by one.
        """
        if not calls:
            return
        self._sync(full=any(call.method is Database.create or must_last(call.arguments[2]) for call in calls))
        try:
            with self.transaction():
                for call in calls:
                    inside = self._create if call.method is Database.create else self._append
                    call.answer = inside(*call.arguments)
        except (
            sqlite3.OperationalError
        ) as error:  # locked, full: every caller raises it, as nothing of the group is stored
            for call in calls:
                call.answer, call.error = None, error
        except Exception:  # noqa: BLE001  # one of them is broken, whatever breaks it
            for call in calls:
                try:
                    call.answer = call.method(self, *call.arguments)
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
                if nth:
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
        run = self.hand.execute
        run_id, epoch, path, step, attempt, opens = (
            lease.run_id, lease.epoch, entry.path, entry.step, entry.attempt, entry.opens,
        )  # fmt: skip
        head = run(verbs.APPEND_HEAD, (run_id, epoch, path, step, attempt, lease.owner)).fetchone()
        if head is None:
            return None
        rid, seq = head
        if seq != seen and status != "completed":
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
            "run": lease.run_id, "epoch": lease.epoch, "owner": lease.owner, "seen": seen, "kind": entry.kind, "path": entry.path,
            "step": entry.step, "attempt": entry.attempt, "status": status, "opens": entry.opens, "effect": entry.effect,
            "body": entry.body, "now": now,
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

    def fence(self) -> int:
        self._sync(full=True)
        return super().execute(verbs.FENCE).rowcount

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
            moved = self.hand.execute(verbs.HEAD_RUNS, (rid, seq))
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
            rows = self._rows(run_id, rid, start, until, ENDLESS)
        expected = min(head.seq, until)
        if start < expected and (not rows or rows[-1].seq != expected):
            raise CorruptCheckpoint(run_id, start + len(rows) + 1, "it is missing")
        return Log(head, snapshot, tuple(rows))

    def history(self, run_id: str, after: int, limit: int) -> list[Checkpoint]:
        with self.transaction("BEGIN"):  # several reads of one moment; never held across a hop
            row = super().execute(verbs.HEAD, {"run": run_id}).fetchone()
            return [] if row is None else self._rows(run_id, row[13], after, ENDLESS, limit)

    def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        row = super().execute(verbs.ROW_OF_ACT, {"run": run_id, "act": act}).fetchone()
        return None if row is None else verified(self.secret, Checkpoint.of(run_id, *row[:-1]), row[-1])

    def _rows(self, run_id: str, rid: int, after: int, until: int, limit: int) -> list[Checkpoint]:
        given = {"rid": rid, "after": after, "until": until, "many": limit}
        rows = []
        for place, row in enumerate(super().execute(verbs.ROWS, given).fetchall(), after + 1):
            checkpoint = verified(self.secret, Checkpoint.of(run_id, *row[:-1]), row[-1])
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


def must_last(entries: Sequence[Entry]) -> bool:
    """Whether these rows have to survive power loss even with relaxed durability."""
    return any([entry.status != "running" or entry.opens is not None for entry in entries])  # noqa: C419


def _may(approvers: str, actor: str, roles: str | None) -> int:
    return int(bool({actor, *json.loads(roles or "[]")} & set(json.loads(approvers))))
