"""Runs kept in this process: the fastest store, evaluating what every store does; it is gone with the process."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import count, islice
from threading import Lock
from types import TracebackType
from typing import Literal, Self, TypeAlias

from checkpointers.boundaries import note_of
from stategraph.checkpoint import (
    COMPLETES,
    ENDED,
    Boundary,
    BoundaryState,
    Checkpoint,
    Checkpointer,
    Decision,
    Effect,
    Entry,
    Head,
    Kind,
    Lease,
    Log,
    Opening,
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
from stategraph.errors import CheckpointerError, CorruptCheckpoint, StoreClosed

__all__ = ["MemoryCheckpointer"]

#: The columns of a `Checkpoint` after its run id, in its order, then the digest. A plain tuple: it is ten times cheaper
#: to make, and each reader gets a `Checkpoint` of its own, whose decoded content it cannot change for others.
_Row: TypeAlias = tuple[
    int, Kind, Status, bytes, int, int | None, str | None, int | None, int | None, str | None, str | None, str | None,
    str | None, str | None, str | None, str | None, bytes,
]  # fmt: skip
_Decided: TypeAlias = Verdict | Literal["expired"]


@dataclass(slots=True, eq=False)
class _Run:
    """A run's head, its log, and what the predicates look at."""

    #: Grows with each run of the store: which of two is older.
    number: int
    run_id: str
    graph: str
    fingerprint: str
    parent: str | None
    creator: str
    created_ms: int
    updated_ms: int
    status: Status = "ready"
    ending: Literal["rejected", "cancelled"] | None = None
    seq: int = -1
    epoch: int = 0
    owner: str | None = None
    lease_until: int | None = None
    rows: list[_Row] = field(default_factory=list)
    #: Visits (path, step) that are completed.
    completed: set[tuple[str, int]] = field(default_factory=set)
    #: Attempts (path, step, attempt) that failed or asked.
    tried: set[tuple[str, int, int]] = field(default_factory=set)
    #: Who has voted: (boundary, actor).
    votes: set[tuple[str, str]] = field(default_factory=set)
    #: The seq of each act's row.
    acts: dict[str, int] = field(default_factory=dict)
    boundaries: dict[str, _Boundary] = field(default_factory=dict)
    #: Those of them that are open, oldest first.
    open: dict[str, _Boundary] = field(default_factory=dict)
    #: How many signals of a (name, key) no wait has taken yet.
    untaken: dict[tuple[str | None, str | None], int] = field(default_factory=dict)
    #: The keys of its effects.
    effects: set[str] = field(default_factory=set)
    #: The latest fold that a driver left: seq, body, digest.
    snapshot: tuple[int, bytes, bytes] | None = None

    def is_held(self, now: int) -> bool:
        """A driver has the run and its lease has not run out."""
        return self.status == "running" and self.lease_until is not None and self.lease_until > now

    def is_claimable(self, now: int) -> bool:
        """Nobody drives the run, and somebody should."""
        return self.status in ("ready", "running") and not self.is_held(now)

    def wait_for(self, name: str, key: str) -> _Boundary | None:
        """The oldest open wait that a signal (name, key) is for."""
        for boundary in self.open.values():
            opening = boundary.opening
            if opening.kind == "signal" and opening.name == name and opening.key == key:
                return boundary
        return None

    def written(self) -> Written:
        """The answer to who wrote its last row."""
        return Written(self.seq, self.status, self.updated_ms)

    def lease(self) -> Lease:
        """The right that its owner has now."""
        return Lease(self.run_id, self.owner or "", self.epoch, self.seq, self.ending)

    def head(self) -> Head:
        """Its row, as it is told."""
        return Head(
            self.run_id, self.graph, self.fingerprint, self.parent, self.creator, self.status, self.ending, self.seq,
            self.epoch, self.owner, self.lease_until, self.created_ms, self.updated_ms,
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class _Boundary:
    """One visit of an interrupt point, as the predicates see it."""

    #: Grows with each boundary of the store: which of two is older.
    number: int
    run: _Run
    name: str
    opened: int
    opened_ms: int
    opening: Opening
    state: BoundaryState = "open"
    approvals: int = 0
    #: The seq of the row that closed it.
    decided: int | None = None

    @property
    def id(self) -> str:
        """Its name outside the run."""
        return f"{self.run.run_id}:{self.name}"

    def may_decide(self, decision: Verdict, digest: str, actor: str, roles: Sequence[str], now: int) -> bool:
        """Such a decision is possible, it is about what was shown, in time, and the actor's to take."""
        opening = self.opening
        return (
            self.state == "open"
            and opening.digest == digest
            and opening.kind in ("approval", "question", "in_doubt")
            and (opening.expires_at is None or opening.expires_at > now)
            and (decision in ("approved", "rejected") or (decision == "retry" and opening.kind == "in_doubt"))
            and (opening.approvers is None or not {actor, *roles}.isdisjoint(opening.approvers))
            and not (opening.four_eyes and self.run.creator == actor)
        )

    def is_over(self, now: int) -> bool:
        """It is open, and its time has come."""
        expires_at = self.opening.expires_at
        return self.state == "open" and expires_at is not None and expires_at <= now

    def is_closed_by(self, decision: _Decided) -> bool:
        """The decision is the last that it needs."""
        return decision != "approved" or self.approvals + 1 >= self.opening.needed

    def status_after(self, decision: _Decided, now: int) -> Status:
        """The run's status after such a decision."""
        run = self.run
        if self.opening.final and decision in ("rejected", "expired"):
            return "running" if run.is_held(now) else "rejected"
        return "ready" if run.status == "pending" and self.is_closed_by(decision) else run.status


@dataclass(slots=True, eq=False)
class _Intent:
    """An effect: whose execution holds its intent, and its outcome once there is one."""

    run: _Run
    policy: Policy
    token: str
    outcome: bytes | None = None


class MemoryCheckpointer(Checkpointer):
    """A store in this process's memory, safe to share between threads; nothing outlives the process."""

    durable = False

    def __init__(self, *, clock: Clock | None = None, secret: bytes = b"") -> None:
        self.clock = clock or SystemClock()
        self._secret = check_secret(secret)
        self._lock = Lock()
        self._closed = False
        self._numbers = count()
        #: By run id, oldest first.
        self._runs: dict[str, _Run] = {}
        #: Those that are `ready` or `running`: all that a worker's poll looks at.
        self._working: dict[str, _Run] = {}
        #: The open boundaries of all runs, oldest first.
        self._open: dict[str, _Boundary] = {}
        #: When the open boundaries expire, the first one first: (expires_at, boundary id).
        self._expiries: list[tuple[int, str]] = []
        #: By effect key.
        self._intents: dict[str, _Intent] = {}

    @classmethod
    def from_url(cls, rest: str) -> Self:
        """The store that `memory:` names; nothing may follow the colon."""
        if rest:
            raise ValueError("a memory store has no place and no name: write memory: and nothing after it")
        return cls()

    async def close(self) -> None:
        """Forget everything; closing twice is fine."""
        with self._lock:
            self._closed = True
            for kept in (self._runs, self._working, self._open, self._expiries, self._intents):
                kept.clear()

    async def __aenter__(self) -> Self:
        with self._lock:
            self._check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # -- a run and who drives it

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
        """Row 0 of a new run, with the boundaries it opens. None: the id is taken."""
        check_run_id(run_id)
        if not creator:
            raise CheckpointerError(f"run {run_id!r} needs a creator: the name of who starts it")
        openings = load_openings(opens)
        with self._lock:
            self._check_open()
            if run_id in self._runs:
                return None
            now = self.clock.now()
            run = _Run(next(self._numbers), run_id, graph, fingerprint, parent, creator, now, now)
            _check_end(run, status)
            if status == "running":
                run.status, run.epoch, run.owner, run.lease_until = "running", 1, owner, now + lease_ms
            self._write(run, now, "start", status, body, opens=opens)
            self._move(run, status)
            self._open_boundaries(run, openings, now)
            self._runs[run_id] = run
            return run.lease()

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        """Take a run that is `ready`, or `running` with its lease over; the epoch grows by one."""
        with self._lock:
            run, now = self._find(run_id), self.clock.now()
            if run is None or not run.is_claimable(now):
                return None
            run.epoch += 1
            run.status, run.owner, run.lease_until = "running", owner, now + lease_ms
            return run.lease()

    async def renew(self, lease: Lease, lease_ms: int) -> Lease | None:
        """Hold the run for longer, and hear where its log stands. None: the lease is lost."""
        with self._lock:
            run = self._driven(lease)
            if run is None:
                return None
            run.lease_until = self.clock.now() + lease_ms
            return run.lease()

    async def release(self, lease: Lease) -> bool:
        """Put a `running` run back to `ready`. False: the lease was lost before."""
        with self._lock:
            run = self._driven(lease)
            if run is None:
                return False
            self._move(run, "ready")
            return True

    # -- a driver's rows

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        """A driver's rows, all or none. None: the lease is lost, or a visit or an attempt has its row: read the log."""
        with self._lock:
            run = self._driven(lease)
            if run is None or not self._admits(run, entries[0]):
                return None
            if len(entries) > 1:
                self._check_followers(run, entries)
            now, end, last = self.clock.now(), run.seq, entries[-1]
            proposed = last.status if end == seen or last.status == "completed" else "running"
            _check_end(run, proposed)
            rows = [(entry, load_openings(entry.opens)) for entry in entries]  # may raise, so before the first is in
            if snapshot is not None:
                self._keep_snapshot(run, seen, snapshot)
            for entry, openings in rows:
                self._append(run, now, entry, proposed if entry is last else "running")
                if openings:
                    self._open_boundaries(run, openings, now)
            return run.written()

    async def settle(self, lease: Lease, seen: int, status: Status, body: bytes) -> Written | None:
        """A driver's row without a visit; refused unless `seen` is exactly the log's end."""
        with self._lock:
            run = self._driven(lease)
            if run is None or run.seq != seen:
                return None
            _check_end(run, status)
            self._write(run, self.clock.now(), "settled", status, body, run.epoch)
            return run.written()

    def _admits(self, run: _Run, entry: Entry) -> bool:
        """The visit is not completed, its attempt has no row, and an effect it asks about is without outcome."""
        path, step = entry.path, entry.step
        if (path, step) in run.completed or (run.tried and (path, step, entry.attempt) in run.tried):
            return False
        return entry.effect is None or self._is_in_doubt(run, entry.effect)

    def _check_followers(self, run: _Run, entries: Sequence[Entry]) -> None:
        """What follows a new row can have none yet: else the caller is mistaken, and reading the log would not help."""
        for index, entry in enumerate(entries[1:], 1):
            if not self._admits(run, entry) or any(_excludes(earlier, entry) for earlier in entries[:index]):
                raise CheckpointerError(
                    f"run {run.run_id!r}: {entry.kind} of step {entry.step} cannot follow in this append; "
                    f"the visit is completed, its attempt has its row, or no effect is in doubt"
                )

    def _is_in_doubt(self, run: _Run, effect: str) -> bool:
        """The run has the effect's intent, and nobody knows its outcome."""
        intent = self._intents.get(effect)
        return intent is not None and intent.run is run and intent.outcome is None

    def _append(self, run: _Run, now: int, entry: Entry, status: Status) -> None:
        """One row of a visit, and what follows from it."""
        kind, path, step, attempt = entry.kind, entry.path, entry.step, entry.attempt
        self._write(run, now, kind, status, entry.body, run.epoch, path, step, attempt, entry.opens)
        if kind in COMPLETES:
            run.completed.add((path, step))
        else:
            run.tried.add((path, step, attempt))
        if entry.effect is not None:  # the lost execution loses it for good: a person is asked
            self._intents[entry.effect].token = "in doubt"

    def _keep_snapshot(self, run: _Run, seen: int, body: bytes) -> None:
        """The fold at `seen`, if the log has that row and no later fold is known."""
        if 0 <= seen <= run.seq and (run.snapshot is None or run.snapshot[0] <= seen):
            run.snapshot = seen, body, snapshot_digest(self._secret, run.run_id, seen, body)

    # -- people's rows, and the clock's

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
        """Somebody's decision of one open boundary (`<seq>.<n>`), naming the digest of what was shown."""
        with self._lock:
            about, now = self._find_boundary(run_id, boundary), self.clock.now()
            if about is None or not _is_name(actor) or not _is_name(act):
                return None
            if not about.may_decide(decision, digest, actor, roles, now):
                return None
            return self._decide(about, decision, actor, act, body, now)

    async def expire(self, run_id: str, boundary: str, *, body: bytes = b"{}") -> Written | None:
        """The clock's decision of one open boundary whose time has come."""
        with self._lock:
            about, now = self._find_boundary(run_id, boundary), self.clock.now()
            if about is None or not about.is_over(now):
                return None
            return self._decide(about, "expired", ":clock", f":expire {boundary}", body, now)

    async def signal(self, run_id: str, name: str, key: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """A row that the oldest open wait for (name, key) takes, or the next that opens."""
        with self._lock:
            run = self._find(run_id)
            if run is None or not _is_name(actor) or not _is_name(act) or act in run.acts:
                return None
            if run.status in ENDED or run.ending is not None:
                return None
            wait = run.wait_for(name, key)
            status: Status = "ready" if wait is not None and run.status == "pending" else run.status
            self._write(run, self.clock.now(), "signal", status, body, name=name, key=key, actor=actor, act=act)
            if wait is not None:
                self._close_boundary(wait, "approved")
            else:
                run.untaken[name, key] = run.untaken.get((name, key), 0) + 1
            return run.written()

    async def cancel(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """End a run that nobody holds; ask the driver of a held one to. Asking again finishes an old request."""
        with self._lock:
            run, now = self._find(run_id), self.clock.now()
            if run is None or not actor or not _is_name(act) or act in run.acts or run.status in ENDED:
                return None
            if run.ending is not None and run.is_held(now):
                return None
            status: Status = "running" if run.is_held(now) else run.ending or "cancelled"
            self._write(run, now, "cancel", status, body, actor=actor, act=act)
            run.ending = run.ending or "cancelled"
            self._withdraw(run)
            return run.written()

    async def retry(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """Release a `failed` run's failed positions."""
        with self._lock:
            run = self._find(run_id)
            if run is None or not actor or not _is_name(act) or act in run.acts or run.status != "failed":
                return None
            self._write(run, self.clock.now(), "retry", "ready", body, actor=actor, act=act)
            return run.written()

    def _decide(
        self, boundary: _Boundary, decision: _Decided, actor: str, act: str, body: bytes, now: int
    ) -> Written | None:
        """The row of a decision that the boundary allows, unless the act or the vote was used; then what follows."""
        run, name = boundary.run, boundary.name
        if act in run.acts or (name, actor) in run.votes:
            return None
        self._write(
            run, now, "decision", boundary.status_after(decision, now), body,
            boundary=name, decision=decision, actor=actor, act=act,
        )  # fmt: skip
        run.votes.add((name, actor))
        if boundary.is_closed_by(decision):
            self._close_boundary(boundary, decision)
        boundary.approvals += decision == "approved"
        if boundary.opening.effect is not None:
            self._answer_doubt(boundary.opening.effect, decision, body)
        if boundary.opening.final and decision in ("rejected", "expired"):
            run.ending = run.ending or "rejected"
        if run.ending is not None:
            self._withdraw(run)
        return run.written()

    # -- effects

    async def effect_begin(
        self, lease: Lease, key: str, *, path: str, step: int, policy: Policy, token: str
    ) -> Effect | None:
        """An effect's intent, before it runs; with our token in the answer it is ours to run."""
        with self._lock:
            run = self._driven(lease)
            if run is None or run.ending is not None:
                return None
            intent, handed_on = self._intents.get(key), False
            if intent is None:
                intent = self._intents[key] = _Intent(run, policy, token)
                run.effects.add(key)
            elif intent.run is not run:
                return None
            elif intent.policy == policy == "keyed" and intent.outcome is None:
                intent.token, handed_on = token, intent.token != token
            return Effect(intent.token, intent.outcome, handed_on)

    async def effect_end(self, run_id: str, key: str, token: str, outcome: bytes) -> bytes | None:
        """An effect's outcome, once; the lease is not asked for, as what has happened may be told late."""
        with self._lock:
            run, intent = self._find(run_id), self._intents.get(key)
            if intent is None or intent.run is not run or intent.token != token:
                return None
            if intent.outcome is None:
                intent.outcome = outcome
            return intent.outcome

    def _answer_doubt(self, effect: str, decision: _Decided, outcome: bytes) -> None:
        """What a person says of an effect in doubt: it happened, or it is to be tried again."""
        intent = self._intents.get(effect)
        if intent is None or intent.outcome is not None:
            return
        if decision == "approved":
            intent.outcome = outcome
        elif decision == "retry":
            del self._intents[effect]
            intent.run.effects.discard(effect)

    # -- reading

    async def head(self, run_id: str) -> Head | None:
        """The run's row. None: no such run."""
        with self._lock:
            run = self._find(run_id)
            return None if run is None else run.head()

    async def load(self, run_id: str, *, after: int = -1, until: int | None = None) -> Log | None:
        """The verified rows with `after < seq <= until`; from the start a snapshot stands for the rows before it."""
        with self._lock:
            run = self._find(run_id)
            if run is None:
                return None
            head = run.head()
            last = head.seq if until is None else min(until, head.seq)
            snapshot = self._snapshot(run, last) if after == -1 else None
            first = snapshot[0] + 1 if snapshot else max(after + 1, 0)
            rows = run.rows[first : last + 1]
        return Log(head, snapshot, tuple(self._verified(run_id, rows, first, last)))

    async def history(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[Checkpoint]:
        """The verified rows in order, never a snapshot. Empty: no such run, or no such rows."""
        with self._lock:
            run = self._find(run_id)
            if run is None:
                return []
            first = max(after + 1, 0)
            last = run.seq if limit is None else min(run.seq, first + limit - 1)
            rows = run.rows[first : last + 1]
        return self._verified(run_id, rows, first, last)

    async def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        """The row of an act, by the caller's id of it."""
        with self._lock:
            run = self._find(run_id)
            return None if run is None or act not in run.acts else self._checkpoint(run, run.acts[act])

    async def runs(
        self, *, status: str | None = None, graph: str | None = None, limit: int = 100, before: str | None = None
    ) -> list[Head]:
        """Runs, newest first; `before` is the last run id of the page before."""
        with self._lock:
            self._check_open()
            anchor = None if before is None else self._runs.get(before)
            if before is not None and anchor is None:
                return []
            chosen = (
                run.head()
                for run in reversed(self._runs.values())
                if (anchor is None or run.number < anchor.number)
                and (status is None or run.status == status)
                and (graph is None or run.graph == graph)
            )
            return list(islice(chosen, limit))

    async def boundaries(
        self, run_id: str | None = None, *, state: str | None = None, limit: int = 1000
    ) -> list[Boundary]:
        """Boundaries, oldest first: of one run or of all."""
        with self._lock:
            self._check_open()
            chosen = (b for b in self._boundaries(run_id, state) if state is None or b.state == state)
            return [self._told(boundary) for boundary in islice(chosen, limit)]

    async def due(self, *, limit: int = 100) -> tuple[list[str], list[str]]:
        """What a worker may do now: run ids to claim, and ids of open boundaries whose time has come; oldest first."""
        with self._lock:
            self._check_open()
            now = self.clock.now()
            claimable = (run for run in self._working.values() if run.is_claimable(now))
            runs = [run.run_id for run in nsmallest(limit, claimable, key=lambda run: run.number)]
            come = bisect_left(self._expiries, (now + 1,))
            return runs, [boundary for _, boundary in self._expiries[: min(limit, come)]]

    # -- removing

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run and everything of it. False: it does not exist or has not ended."""
        with self._lock:
            run = self._find(run_id)
            if run is None or run.status not in ENDED:
                return False
            self._remove(run)
            return True

    async def prune(self, before_ms: int) -> int:
        """Remove the runs that ended before this time (ms since the epoch); the answer is how many."""
        with self._lock:
            self._check_open()
            old = [run for run in self._runs.values() if run.status in ENDED and run.updated_ms < before_ms]
            for run in old:
                self._remove(run)
            return len(old)

    def _remove(self, run: _Run) -> None:
        for boundary in list(run.open.values()):
            self._forget_open(boundary)
        for effect in run.effects:
            del self._intents[effect]
        del self._runs[run.run_id]

    # -- what the verbs share; all of it under the lock

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the memory store was closed, and what it held is gone; make a new MemoryCheckpointer")

    def _find(self, run_id: str) -> _Run | None:
        """The run with this id, if there is one."""
        if self._closed:
            self._check_open()
        return self._runs.get(run_id)

    def _find_boundary(self, run_id: str, boundary: str) -> _Boundary | None:
        """The boundary with this name in the run, if there is one."""
        run = self._find(run_id)
        return None if run is None else run.boundaries.get(boundary)

    def _driven(self, lease: Lease) -> _Run | None:
        """The lease's run, if the lease is not lost."""
        run = self._find(lease.run_id)
        if run is None or run.epoch != lease.epoch or run.owner != lease.owner:  # nobody owns a run that rests
            return None
        return run

    def _write(
        self,
        run: _Run,
        now: int,
        kind: Kind,
        status: Status,
        body: bytes,
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
    ) -> None:
        """The run's next row, sealed, and its head with it."""
        seq = run.seq + 1
        sealed = seal(
            self._secret, run.run_id, kind, epoch, path, step, attempt, opens, boundary, decision, name, key, actor,
            act, now, body,
        )  # fmt: skip
        row = (
            seq, kind, status, body, now, epoch, path, step, attempt, opens, boundary, decision, name, key, actor, act,
            digest(sealed, seq, status),
        )  # fmt: skip
        run.rows.append(row)
        run.seq, run.updated_ms = seq, now
        if act is not None:
            run.acts[act] = seq
        if status != run.status:
            self._move(run, status)

    def _move(self, run: _Run, status: Status) -> None:
        """Give the run its status; only `running` keeps the lease."""
        run.status = status
        if status != "running":
            run.owner = run.lease_until = None
        if status in ("ready", "running"):
            self._working[run.run_id] = run
        else:
            self._working.pop(run.run_id, None)

    def _open_boundaries(self, run: _Run, openings: Sequence[Opening], now: int) -> None:
        """The boundaries that the run's last row opens; one that has nothing to wait for is closed at once."""
        for nth, opening in enumerate(openings):
            boundary = _Boundary(next(self._numbers), run, f"{run.seq}.{nth}", run.seq, now, opening)
            run.boundaries[boundary.name] = run.open[boundary.name] = self._open[boundary.id] = boundary
            if opening.expires_at is not None:
                insort(self._expiries, (opening.expires_at, boundary.id))
            awaited = opening.name, opening.key
            if run.ending is not None:
                self._close_boundary(boundary, "withdrawn")
            elif opening.kind == "signal" and run.untaken.get(awaited):
                run.untaken[awaited] -= 1
                self._close_boundary(boundary, "approved")

    def _close_boundary(self, boundary: _Boundary, state: BoundaryState) -> None:
        """Close it for good, by the run's last row."""
        boundary.state, boundary.decided = state, boundary.run.seq
        self._forget_open(boundary)

    def _forget_open(self, boundary: _Boundary) -> None:
        del boundary.run.open[boundary.name], self._open[boundary.id]
        if boundary.opening.expires_at is not None:
            del self._expiries[bisect_left(self._expiries, (boundary.opening.expires_at, boundary.id))]

    def _withdraw(self, run: _Run) -> None:
        """Close what is still open: the run ends."""
        for boundary in list(run.open.values()):
            self._close_boundary(boundary, "withdrawn")

    def _boundaries(self, run_id: str | None, state: str | None) -> Sequence[_Boundary]:
        """Where to look for boundaries in a state, oldest first."""
        if run_id is not None:
            run = self._runs.get(run_id)
            found = {} if run is None else run.open if state == "open" else run.boundaries
            return list(found.values())
        if state == "open":
            return list(self._open.values())
        of_all = (boundary for run in self._runs.values() for boundary in run.boundaries.values())
        return sorted(of_all, key=lambda boundary: boundary.number)

    def _told(self, boundary: _Boundary) -> Boundary:
        """The boundary for its reader."""
        run, opening = boundary.run, boundary.opening
        return Boundary(
            run_id=run.run_id,
            id=boundary.id,
            opened=boundary.opened,
            kind=opening.kind,
            path=opening.path,
            step=opening.step,
            node=opening.node,
            digest=opening.digest,
            final=opening.final,
            needed=opening.needed,
            approvals=boundary.approvals,
            approvers=opening.approvers,
            four_eyes=opening.four_eyes,
            state=boundary.state,
            effect=opening.effect,
            name=opening.name,
            key=opening.key,
            expires_at=opening.expires_at,
            opened_ms=boundary.opened_ms,
            decided=self._decision(boundary),
        )

    def _decision(self, boundary: _Boundary) -> Decision | None:
        """Whose act closed the boundary. None: it is open, or was closed by the very row that opened it."""
        if boundary.decided is None or boundary.decided == boundary.opened:
            return None
        row = self._checkpoint(boundary.run, boundary.decided)
        return Decision(row.decision or row.kind, row.actor or "", row.at_ms, row.act or "", note_of(row.body))

    def _checkpoint(self, run: _Run, seq: int) -> Checkpoint:
        """One verified row."""
        return self._verified(run.run_id, run.rows[seq : seq + 1], seq, seq)[0]

    def _verified(self, run_id: str, rows: Sequence[_Row], first: int, last: int) -> list[Checkpoint]:
        """The rows, if they are what was written and none from the first to the last is missing."""
        checkpoints = [verified(self._secret, Checkpoint.of(run_id, *row[:-1]), row[-1]) for row in rows]
        for index, seq in enumerate(range(first, last + 1)):
            if index == len(checkpoints) or checkpoints[index].seq != seq:
                raise CorruptCheckpoint(run_id, seq, "it is missing")
        return checkpoints

    def _snapshot(self, run: _Run, last: int) -> tuple[int, bytes] | None:
        """The run's snapshot, if it is not of a later row; it is what was written."""
        if run.snapshot is None or run.snapshot[0] > last:
            return None
        seq, body, stored = run.snapshot
        if snapshot_digest(self._secret, run.run_id, seq, body) != stored:
            raise CorruptCheckpoint(run.run_id, seq, "its snapshot's digest does not match its content")
        return seq, body


def _is_name(text: str) -> bool:
    """A name that people may take: those that begin with a colon are the store's own."""
    return text != "" and text[0] != ":"


def _excludes(earlier: Entry, later: Entry) -> bool:
    """After the earlier row the later one has no place."""
    if (earlier.path, earlier.step) != (later.path, later.step):
        return False
    return earlier.kind in COMPLETES or earlier.attempt == later.attempt


def _check_end(run: _Run, status: Status) -> None:
    """A run ends so only if it was asked to; anything else is the caller's mistake, and nothing is written."""
    if status in ("rejected", "cancelled") and run.ending != status:
        raise CheckpointerError(f"run {run.run_id!r} cannot be {status}: nobody has asked it to end so")
