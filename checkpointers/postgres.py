"""Runs in a PostgreSQL database: each verb is a function of the database's, one round trip and one transaction.

The time is the server's. A caller seals what he knows; the function adds its time, the seq and the status to the digest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

try:
    import asyncpg
except ModuleNotFoundError:
    raise ModuleNotFoundError("a PostgreSQL store needs asyncpg: pip install 'stategraph[postgres]'") from None

from checkpointers import verbs
from checkpointers.boundaries import boundary_of
from checkpointers.postgres_address import Address
from checkpointers.postgres_clock import ServerClock
from checkpointers.postgres_functions import bound
from checkpointers.postgres_server import Answer, Row, Server, Step, call
from stategraph.checkpoint import (
    COMPLETES,
    ENDED,
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
    digest,
    seal,
    snapshot_digest,
)
from stategraph.clock import Clock
from stategraph.errors import CorruptCheckpoint

__all__ = ["PostgresCheckpointer"]

_ENDLESS = (1 << 63) - 1
#: A prune may take its time (seconds).
_LONG = 3600.0


class PostgresCheckpointer:
    """Runs in a PostgreSQL database, in a schema `stategraph` that is made when it is first needed.

    `url` is handed to asyncpg: `postgresql://user:password@host:5432/database`. With `pool`, an asyncpg pool of yours, its
    connections are used, in the event loop in which the store is made; the leases of runs are then renewed over `url` if
    it is given, else through the pool too. At most `connections` are opened; a server that is gone is waited for
    `timeout` seconds. `secret` keys the digests, so that whoever can write the database cannot forge a checkpoint.
    """

    durable = True

    def __init__(
        self,
        url: str | None = None,
        *,
        pool: asyncpg.Pool[Any] | None = None,
        connections: int = 10,
        timeout: float = 5.0,
        clock: Clock | None = None,
        secret: bytes = b"",
    ) -> None:
        if url is None and pool is None:
            raise ValueError("PostgresCheckpointer needs a url='postgresql://...' or a pool=")
        if connections < 1:
            raise ValueError(f"connections={connections}: at least one is needed")
        self._given_clock = clock
        self._secret = check_secret(secret)
        server_clock = ServerClock()
        #: The server's time as it is known here, unless another was given.
        self.clock: Clock = clock or server_clock
        self._server = Server(None if url is None else Address(url), pool, connections, timeout, server_clock)

    @classmethod
    def from_url(cls, rest: str) -> Self:
        """The store of `postgresql:<rest>`."""
        return cls(f"postgresql:{rest}")

    def __repr__(self) -> str:
        return f"PostgresCheckpointer({str(self._server)!r})"

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
        sealed = self._seal(run_id, "start", body, opens=opens)
        answer = await self._ask(
            _CREATE, run_id, graph, fingerprint, parent, creator, owner, lease_ms, status, opens, body, sealed
        )
        held = status == "running"
        if answer.rows[0][0] is None and not (
            answer.repeated and await self._is_mine(run_id, creator, owner, body, opens)
        ):
            return None
        return Lease(run_id, owner if held else "", int(held), 0)

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        """Take a run that is free."""
        answer = await self._ask(_CLAIM, run_id, owner, lease_ms)
        epoch, seq, ending, _ = answer.rows[0]
        if epoch is not None:
            return Lease(run_id, owner, epoch, seq, ending)
        head = await self.head(run_id) if answer.repeated else None
        if head is None or head.status != "running" or head.owner != owner:
            return None
        return Lease(run_id, owner, head.epoch, head.seq, head.ending)  # the first attempt's

    async def renew(self, lease: Lease, lease_ms: int) -> Lease | None:
        """Hold the run for longer."""
        seq, ending, _ = (await self._ask(_RENEW, lease.run_id, lease.epoch, lease.owner, lease_ms)).rows[0]
        return None if seq is None else Lease(lease.run_id, lease.owner, lease.epoch, seq, ending)

    async def release(self, lease: Lease) -> bool:
        """Put the run back to `ready`."""
        answer = await self._server.fetch(_RELEASE, lease.run_id, lease.epoch, lease.owner)
        if answer.rows[0][0] is not None:
            return True
        head = await self.head(lease.run_id) if answer.repeated else None
        return head is not None and head.status == "ready" and head.epoch == lease.epoch

    # -- a driver's rows

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        """A driver's rows; a plain one together with those of other runs that are written at the same moment."""
        if snapshot is not None or len(entries) > 1 or not _is_plain(entries[0]):
            return await self._append_all(lease, seen, entries, snapshot)
        (entry,) = entries
        kind, path, step, attempt, body = entry.kind, entry.path, entry.step, entry.attempt, entry.body
        sealed = seal(
            self._secret, lease.run_id, kind, lease.epoch, path, step, attempt, None, None, None, None, None, None, None, 0,
            body,
        )  # fmt: skip
        plain = Step(
            lease.run_id, lease.epoch, lease.owner, seen, kind, path, step, attempt, entry.status, body, sealed
        )
        stepped = await self._server.step(plain, self._now())
        if stepped is None:
            return None
        seq, at_ms = stepped
        counts = seq == seen + 1 or entry.status == "completed"
        return Written(seq, entry.status if counts else "running", at_ms)

    async def _append_all(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None
    ) -> Written | None:
        """Rows of any kind, in one round trip too."""
        run_id, epoch, last = lease.run_id, lease.epoch, entries[-1]
        seals = [
            self._seal(run_id, e.kind, e.body, epoch=epoch, path=e.path, step=e.step, attempt=e.attempt, opens=e.opens)
            for e in entries
        ]
        kept = None if snapshot is None else snapshot_digest(self._secret, run_id, seen, snapshot)
        answer = await self._server.fetch_in_turn(
            run_id, _APPEND_ALL, run_id, epoch, lease.owner, seen,
            [e.kind for e in entries], [e.path for e in entries], [e.step for e in entries], [e.attempt for e in entries],
            [e.status if e is last else "running" for e in entries], [e.opens for e in entries],
            [e.effect for e in entries], [e.body for e in entries], seals, snapshot, kept, self._now(),
        )  # fmt: skip
        return _written(answer.rows[0])

    async def settle(self, lease: Lease, seen: int, status: Status, body: bytes) -> Written | None:
        """A driver's row without a visit."""
        sealed = self._seal(lease.run_id, "settled", body, epoch=lease.epoch)
        answer = await self._ask(_SETTLE, lease.run_id, lease.epoch, lease.owner, seen, status, body, sealed)
        return _written(answer.rows[0])

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
        sealed = self._seal(run_id, "decision", body, boundary=boundary, decision=decision, actor=actor, act=act)
        answer = await self._ask(
            _DECIDE, run_id, boundary, digest, decision, actor, act, json.dumps(list(roles)), body, sealed
        )
        return await self._acted(answer, run_id, "decision", actor, act, body)

    async def expire(self, run_id: str, boundary: str, *, body: bytes = b"{}") -> Written | None:
        """The clock's decision."""
        actor, act = ":clock", f":expire {boundary}"
        sealed = self._seal(run_id, "decision", body, boundary=boundary, decision="expired", actor=actor, act=act)
        answer = await self._ask(_EXPIRE, run_id, boundary, act, body, sealed)
        return await self._acted(answer, run_id, "decision", actor, act, body)

    async def signal(self, run_id: str, name: str, key: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """A signal's row."""
        sealed = self._seal(run_id, "signal", body, name=name, key=key, actor=actor, act=act)
        answer = await self._ask(_SIGNAL, run_id, name, key, actor, act, body, sealed)
        return await self._acted(answer, run_id, "signal", actor, act, body)

    async def cancel(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """End the run, or ask its driver to."""
        sealed = self._seal(run_id, "cancel", body, actor=actor, act=act)
        answer = await self._ask(_CANCEL, run_id, actor, act, body, sealed)
        return await self._acted(answer, run_id, "cancel", actor, act, body)

    async def retry(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """Release failed positions."""
        sealed = self._seal(run_id, "retry", body, actor=actor, act=act)
        answer = await self._ask(_RETRY, run_id, actor, act, body, sealed)
        return await self._acted(answer, run_id, "retry", actor, act, body)

    # -- effects

    async def effect_begin(
        self, lease: Lease, key: str, *, path: str, step: int, policy: Policy, token: str
    ) -> Effect | None:
        """An effect's intent."""
        answer = await self._server.fetch(
            _EFFECT_BEGIN, lease.run_id, lease.epoch, lease.owner, key, path, step, policy, token
        )
        held_by, outcome, handed_on = answer.rows[0]
        return None if held_by is None else Effect(held_by, outcome, handed_on)

    async def effect_end(self, run_id: str, key: str, token: str, outcome: bytes) -> bytes | None:
        """An effect's outcome."""
        kept: bytes | None = (await self._server.fetch(_EFFECT_END, run_id, key, token, outcome)).rows[0][0]
        return kept

    # -- reading

    async def head(self, run_id: str) -> Head | None:
        """The run's row."""
        rows = (await self._server.fetch(_HEAD, run_id)).rows
        return _head(rows[0]) if rows else None

    async def load(self, run_id: str, *, after: int = -1, until: int | None = None) -> Log | None:
        """The run's rows, verified, from its snapshot on where that serves; all as of one moment."""
        until = _ENDLESS if until is None else until
        rows = (await self._server.fetch(_LOAD, run_id, after, until)).rows
        if not rows:
            return None
        first, *others = rows
        head, snapshot = _head(first), None
        if others and others[0][_KIND] == "snapshot":
            snapshot = self._snapshot(run_id, others.pop(0))
        start, expected = (snapshot[0] if snapshot else after), min(head.seq, until)
        checkpoints = self._in_order(run_id, start, [row[_HEADS:] for row in others])
        if start < expected and (not checkpoints or checkpoints[-1].seq != expected):
            raise CorruptCheckpoint(run_id, start + len(checkpoints) + 1, "it is missing")
        return Log(head, snapshot, tuple(checkpoints))

    async def history(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[Checkpoint]:
        """The run's rows, verified."""
        rows = (await self._server.fetch(_HISTORY, run_id, after, limit)).rows
        return self._in_order(run_id, after, rows)

    async def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        """The row of an act."""
        rows = (await self._server.fetch(_ROW_OF_ACT, run_id, act)).rows
        return self._verified(run_id, rows[0]) if rows else None

    async def runs(
        self, *, status: str | None = None, graph: str | None = None, limit: int = 100, before: str | None = None
    ) -> list[Head]:
        """Runs, newest first."""
        return [_head(row) for row in (await self._server.fetch(_RUNS, status, graph, before, limit)).rows]

    async def boundaries(
        self, run_id: str | None = None, *, state: str | None = None, limit: int = 1000
    ) -> list[Boundary]:
        """Boundaries, oldest first."""
        if run_id is None:
            asked: tuple[Any, ...] = (_OPEN_BOUNDARIES, limit) if state == "open" else (_BOUNDARIES, state, limit)
        elif state == "open":
            asked = (_OPEN_BOUNDARIES_OF_RUN, run_id, limit)
        else:
            asked = (_BOUNDARIES_OF_RUN, run_id, state, limit)
        return [boundary_of(row) for row in (await self._server.fetch(*asked)).rows]

    async def due(self, *, limit: int = 100) -> tuple[list[str], list[str]]:
        """Runs to claim, boundaries to expire."""
        rows = (await self._ask(_DUE, limit)).rows
        return [row[0] for row in rows if row[0] is not None], [row[1] for row in rows if row[1] is not None]

    # -- removing

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run."""
        answer = await self._server.fetch(_DELETE, run_id)
        return answer.rows[0][0] > 0 or (answer.repeated and await self.head(run_id) is None)

    async def prune(self, before_ms: int) -> int:
        """Remove the runs that ended before a time."""
        removed: int = (await self._server.fetch(_PRUNE, before_ms, patience=_LONG)).rows[0][0]
        return removed

    async def fence(self) -> int:
        """Take every run that has not ended from its driver, after the database was restored; how many."""
        fenced: int = (await self._server.fetch(_FENCE, patience=_LONG)).rows[0][0]
        return fenced

    async def close(self) -> None:
        """Close the connections; a pool of the user's stays open."""
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # -- asking

    def _now(self) -> int | None:
        """The time that counts; None: the server's."""
        return None if self._given_clock is None else self._given_clock.now()

    async def _ask(self, statement: str, *arguments: Any) -> Answer:
        """A verb that looks at the clock, its last argument."""
        return await self._server.fetch(statement, *arguments, self._now())

    async def _acted(self, answer: Answer, run_id: str, kind: str, actor: str, act: str, body: bytes) -> Written | None:
        """An act's row. If the connection died and it was made again, a refusal may be of its own first attempt."""
        written = _written(answer.rows[0])
        if written is not None or not answer.repeated:
            return written
        row = await self.find_act(run_id, act)
        if row is None or (row.kind, row.actor, row.body) != (kind, actor, body):
            return None
        return Written(row.seq, row.status, row.at_ms)

    async def _is_mine(self, run_id: str, creator: str, owner: str, body: bytes, opens: str | None) -> bool:
        """Whether a run is the one that a first attempt of ours has made."""
        head, rows = await self.head(run_id), await self.history(run_id, limit=1)
        if head is None or not rows or (head.status == "running" and head.owner != owner):
            return False
        return (head.creator, rows[0].body, rows[0].opens) == (creator, body, opens)

    # -- integrity

    def _seal(
        self,
        run_id: str,
        kind: str,
        body: bytes,
        *,
        epoch: int | None = None,
        path: str | None = None,
        step: int | None = None,
        attempt: int | None = None,
        opens: str | None = None,
        boundary: str | None = None,
        decision: str | None = None,
        name: str | None = None,
        key: str | None = None,
        actor: str | None = None,
        act: str | None = None,
    ) -> bytes:
        """What a caller vouches for: everything but the time, which is the server's to say."""
        return seal(
            self._secret,
            run_id,
            kind,
            epoch,
            path,
            step,
            attempt,
            opens,
            boundary,
            decision,
            name,
            key,
            actor,
            act,
            0,
            body,
        )

    def _verified(self, run_id: str, row: Row | Sequence[Any]) -> Checkpoint:
        """The row, if its digest is what its columns give."""
        found = Checkpoint.of(run_id, *row[:-1])
        sealed = self._seal(
            run_id, found.kind, found.body, epoch=found.epoch, path=found.path, step=found.step, attempt=found.attempt,
            opens=found.opens, boundary=found.boundary, decision=found.decision, name=found.name, key=found.key,
            actor=found.actor, act=found.act,
        )  # fmt: skip
        if digest(sealed + b"%d:" % found.at_ms, found.seq, found.status) != row[-1]:
            raise CorruptCheckpoint(run_id, found.seq, "its digest does not match its content")
        return found

    def _in_order(self, run_id: str, after: int, rows: Sequence[Any]) -> list[Checkpoint]:
        """The rows after a seq, none missing between them."""
        checkpoints = []
        for place, row in enumerate(rows, after + 1):
            checkpoint = self._verified(run_id, row)
            if checkpoint.seq != place:
                raise CorruptCheckpoint(run_id, place, "it is missing")
            checkpoints.append(checkpoint)
        return checkpoints

    def _snapshot(self, run_id: str, row: Row) -> tuple[int, bytes]:
        seq, body = row[_HEADS], row[_HEADS + 3]
        if snapshot_digest(self._secret, run_id, seq, body) != row[-1]:
            raise CorruptCheckpoint(run_id, seq, "its snapshot's digest does not match its content")
        return seq, body


# -- statements

_CREATE, _CLAIM, _RENEW, _RELEASE = call("create", 12), call("claim", 4), call("renew", 5), call("release", 3)
_APPEND_ALL, _SETTLE = call("append_all", 16), call("settle", 8)
_DECIDE, _EXPIRE, _SIGNAL = call("decide", 10), call("expire", 6), call("signal", 8)
_CANCEL, _RETRY = call("cancel", 6), call("retry", 6)
_EFFECT_BEGIN, _EFFECT_END = call("effect_begin", 8), call("effect_end", 4)
_DUE, _DELETE, _PRUNE = call("due", 2), call("delete", 1), call("prune", 1)

_FENCE = bound(f"WITH fenced AS ({verbs.FENCE} RETURNING run) SELECT count(*) FROM fenced", "")
_HEAD = bound(verbs.HEAD, "run")
_HISTORY = bound(
    verbs.ROWS.replace(":rid", "(SELECT r.run FROM runs r WHERE r.run_id = :run)").replace(":until", str(_ENDLESS)),
    "run after many",
)
_ROW_OF_ACT = bound(verbs.ROW_OF_ACT, "run act")
_RUNS = bound(verbs.RUNS, "status graph before many", before="text")
_BOUNDARIES = bound(verbs.BOUNDARIES, "state many")
_OPEN_BOUNDARIES = bound(verbs.OPEN_BOUNDARIES, "many")
_BOUNDARIES_OF_RUN = bound(verbs.BOUNDARIES_OF_RUN, "run state many")
_OPEN_BOUNDARIES_OF_RUN = bound(verbs.OPEN_BOUNDARIES_OF_RUN, "run many")

_HEAD_COLUMNS = (
    "run_id text, graph text, fingerprint text, parent text, creator text, status text, ending text, seq bigint,"
    " epoch bigint, owner text, lease_until bigint, created bigint, updated bigint, rid bigint"
)
_ROW_COLUMNS = (
    "seq bigint, kind text, status text, body bytea, at_ms bigint, epoch bigint, path text, step bigint, attempt bigint,"
    " opens text, boundary text, decision text, name text, key text, actor text, act text, digest bytea"
)
#: Where the columns of a row begin behind those of a head, and its kind among them.
_HEADS = _HEAD_COLUMNS.count(",") + 1
_KIND = _HEADS + 1


def _names(columns: str) -> str:
    return ", ".join(column.split()[0] for column in columns.split(", "))


def _nulls(columns: str) -> str:
    return ", ".join(f"NULL::{column.split()[1]}" for column in columns.split(", "))


#: A head, its snapshot and its rows in one statement, so as of one moment: a column of another's is null.
_LOAD = bound(
    f"""
WITH head ({_names(_HEAD_COLUMNS)}) AS ({verbs.HEAD}),
     kept AS ({verbs.SNAPSHOT.replace(":rid", "(SELECT rid FROM head)")} AND :after < 0),
     logged ({_names(_ROW_COLUMNS)}) AS ({
        verbs.ROWS.replace(":rid", "(SELECT rid FROM head)")
        .replace(":after", "coalesce((SELECT seq FROM kept), :after)")
        .replace("LIMIT :many", "")
    })
SELECT h.*, {_nulls(_ROW_COLUMNS)} FROM head h
UNION ALL
SELECT {_nulls(_HEAD_COLUMNS)}, seq, 'snapshot', NULL, body, {", ".join(["NULL"] * 12)}, digest FROM kept
UNION ALL
SELECT {_nulls(_HEAD_COLUMNS)}, l.* FROM logged l
""",
    "run after until",
)


# -- rows


def _is_plain(entry: Entry) -> bool:
    """It completes a visit, and nothing but the head's move follows from it."""
    return entry.kind in COMPLETES and entry.opens is None and entry.effect is None and entry.status not in _ASKED_FOR


#: How a run ends only if somebody has asked for it, which has to be looked up.
_ASKED_FOR = ENDED - {"completed"}


def _written(row: Row) -> Written | None:
    return None if row[0] is None else Written(row[0], row[1], row[2])


def _head(row: Row) -> Head:
    return Head(*row[:13])
