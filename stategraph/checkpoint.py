"""What is stored, and the protocol between the engine and a store.

One log per run: most rows are a driver's, the others somebody's act. A store gives each row its `seq` and evaluates the
predicates; everything else is the fold's and the engine's. docs/architecture.md tells the protocol in words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeAlias

from stategraph.clock import Clock
from stategraph.encoding import decode
from stategraph.errors import CorruptCheckpoint, InvalidRunId

__all__ = [
    "ENDED",
    "Boundary",
    "BoundaryKind",
    "BoundaryState",
    "Checkpoint",
    "Checkpointer",
    "Decision",
    "Effect",
    "Entry",
    "Head",
    "Kind",
    "Lease",
    "Log",
    "Opening",
    "Policy",
    "Status",
    "Verdict",
    "Written",
    "check_run_id",
    "check_secret",
    "digest",
    "seal",
    "snapshot_digest",
    "verified",
]

Status: TypeAlias = Literal["ready", "running", "pending", "failed", "completed", "rejected", "cancelled"]
Kind: TypeAlias = Literal[
    "start", "node", "route", "join", "failed", "asked", "settled", "decision", "signal", "cancel", "retry"
]
BoundaryKind: TypeAlias = Literal["approval", "question", "timer", "signal", "in_doubt"]
BoundaryState: TypeAlias = Literal["open", "approved", "rejected", "retry", "expired", "withdrawn"]
Verdict: TypeAlias = Literal["approved", "rejected", "retry"]
Policy: TypeAlias = Literal["ask", "keyed"]

#: The statuses that no verb leaves.
ENDED: frozenset[str] = frozenset({"completed", "rejected", "cancelled"})
#: The kinds of row that complete a visit.
COMPLETES: frozenset[str] = frozenset({"node", "route", "join"})

_UNREAD: dict[str, Any] = {}
#: Of a body that is no JSON.
UNREADABLE = "what it says cannot be read; if the store is encrypted, give the keys of this run"
_PLAIN_PATH = re.compile(r"[0-9./]*").fullmatch
_RUN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def check_run_id(run_id: object) -> str:
    """The run id, or `InvalidRunId`."""
    if isinstance(run_id, str) and _RUN_ID.fullmatch(run_id):
        return run_id
    raise InvalidRunId(run_id)


@dataclass(frozen=True, slots=True)
class Opening:
    """A boundary as the row that opens it declares it: the visit it holds, what was shown, how it ends."""

    kind: BoundaryKind
    path: str
    step: int
    node: str
    #: SHA-256 (hex) of what was shown; a decision must name it.
    digest: str
    #: A rejection or an expiry ends the run; otherwise the position is routed.
    final: bool = False
    on_reject: str | None = None
    on_expire: str | None = None
    needed: int = 1
    approvers: tuple[str, ...] | None = None
    four_eyes: bool = False
    #: The key of the effect that is in doubt.
    effect: str | None = None
    name: str | None = None
    key: str | None = None
    #: Milliseconds since the Unix epoch.
    expires_at: int | None = None


_OPENING_DEFAULTS = {
    field.name: field.default
    for field in Opening.__dataclass_fields__.values()
    if field.name not in ("kind", "path", "step", "node", "digest")
}
_compact = json.JSONEncoder(separators=(",", ":")).encode


def dump_openings(openings: Sequence[Opening]) -> str | None:
    """The `opens` column of a row: JSON of what differs from the defaults; None for no boundary."""
    if not openings:
        return None
    items = []
    for opening in openings:
        item = {name: getattr(opening, name) for name in Opening.__slots__}
        items.append(
            {
                name: value
                for name, value in item.items()
                if name not in _OPENING_DEFAULTS or value != _OPENING_DEFAULTS[name]
            }
        )
    return _compact(items)


def load_openings(opens: str | None) -> tuple[Opening, ...]:
    """The openings in an `opens` column."""
    if not opens:
        return ()
    items = json.loads(opens)
    for item in items:
        if item.get("approvers") is not None:
            item["approvers"] = tuple(item["approvers"])
    return tuple(Opening(**item) for item in items)


@dataclass(frozen=True)
class Checkpoint:
    """One row of a run's log; append-only."""

    run_id: str
    seq: int
    kind: Kind
    #: The run's status after this row.
    status: Status
    body: bytes
    #: Milliseconds since the Unix epoch, by the store's clock.
    at_ms: int
    epoch: int | None = None
    path: str | None = None
    step: int | None = None
    attempt: int | None = None
    opens: str | None = None
    boundary: str | None = None
    decision: str | None = None
    name: str | None = None
    key: str | None = None
    actor: str | None = None
    act: str | None = None

    @classmethod
    def of(cls, *columns: Any) -> Self:
        """The same as the constructor, by place, in a third of its time: a frozen dataclass sets field by field."""
        made = object.__new__(cls)
        made.__dict__.update(zip(_COLUMNS, columns, strict=False))
        return made

    @property
    def content(self) -> dict[str, Any]:
        """The body, decoded once; whoever keeps a part of it copies it."""
        content: dict[str, Any] = self.__dict__.get("_content", _UNREAD)
        if content is _UNREAD:  # not a cached_property: before Python 3.12 it takes a lock
            try:
                content = self.__dict__["_content"] = decode(self.body) if self.body else {}
            except ValueError:
                raise CorruptCheckpoint(self.run_id, self.seq, UNREADABLE) from None
        return content

    def knows(self, content: dict[str, Any]) -> None:
        """Spare `content` the decoding: this is what the body was encoded from, and nobody changes it any more."""
        self.__dict__["_content"] = content

    @property
    def node(self) -> str | None:
        """The node of a driver's row."""
        node: str | None = self.content.get("node")
        return node

    @property
    def openings(self) -> tuple[Opening, ...]:
        return load_openings(self.opens)


_COLUMNS = tuple(Checkpoint.__dataclass_fields__)


class Entry(NamedTuple):
    """A row that a driver appends: a visit's, at one attempt. `status` is what it proposes for the run."""

    kind: Literal["node", "route", "join", "failed", "asked"]
    path: str
    step: int
    attempt: int
    status: Status
    body: bytes
    opens: str | None = None
    #: The key of the effect that an `asked` row is about.
    effect: str | None = None


class Written(NamedTuple):
    """A verb's row: its seq, the run's status after it, the store's time (ms)."""

    seq: int
    status: Status
    at_ms: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to drive a run. `epoch` fences: whoever claims next has a higher one."""

    run_id: str
    owner: str
    epoch: int
    #: The seq of the last row when the lease was taken or renewed.
    seq: int
    #: Set when the run was asked to end: nothing more may start.
    ending: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The run's row: where it stands and who has it. Times are milliseconds since the Unix epoch."""

    run_id: str
    graph: str
    fingerprint: str
    parent: str | None
    creator: str
    status: Status
    ending: str | None
    seq: int
    epoch: int
    owner: str | None
    lease_until: int | None
    created_ms: int
    updated_ms: int


@dataclass(frozen=True, slots=True)
class Log:
    """A run as it was read: its head, a snapshot (seq, body) if one was used, the verified rows after it."""

    head: Head
    snapshot: tuple[int, bytes] | None
    checkpoints: tuple[Checkpoint, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Who decided a boundary, what and when. `act` is the caller's id of the decision."""

    decision: str
    by: str
    at_ms: int
    act: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Boundary:
    """One visit of an interrupt point: open, or closed for good."""

    run_id: str
    #: `<run_id>:<seq of the row that opened it>.<n>`
    id: str
    opened: int
    kind: BoundaryKind
    path: str
    step: int
    node: str
    digest: str
    final: bool
    needed: int
    approvals: int
    approvers: tuple[str, ...] | None
    four_eyes: bool
    state: BoundaryState
    effect: str | None
    name: str | None
    key: str | None
    expires_at: int | None
    opened_ms: int
    decided: Decision | None


@dataclass(frozen=True, slots=True)
class Effect:
    """What the store knows of an effect: whose execution holds its intent, and its outcome once there is one."""

    token: str
    outcome: bytes | None
    #: The intent was another execution's, and was handed on under the same key.
    handed_on: bool = False


class Checkpointer(Protocol):
    """A store of runs. Every verb is one atomic step and answers None when its predicate refused it, leaving no trace.

    Errors: `CheckpointerError` when the store itself could not do it; the run is then where it was.
    """

    clock: Clock
    #: Whether a run outlives this process.
    durable: bool

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
        """Row 0 of a new run: `running` (the lease is the answer), `ready` or `pending`. None: the id is taken."""
        ...

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        """Take a run that is `ready`, or `running` with its lease over; the epoch grows by one."""
        ...

    async def renew(self, lease: Lease, lease_ms: int) -> Lease | None:
        """Hold the run for longer; the answer's `seq` and `ending` tell of decisions and cancels. None: it is lost."""
        ...

    async def release(self, lease: Lease) -> bool:
        """Put a `running` run back to `ready`. False: it was not held by this epoch any more."""
        ...

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        """A driver's rows, in one transaction; the last one's status counts if `seen` was the log's end, else `running`.

        `completed` always counts: when nothing is left, no row that was not seen can change that.

        None: another epoch, another status, a visit that is completed, or an attempt that has its row: read the log.
        """
        ...

    async def settle(self, lease: Lease, seen: int, status: Status, body: bytes) -> Written | None:
        """A driver's row without a visit; refused unless `seen` is exactly the log's end."""
        ...

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
        ...

    async def expire(self, run_id: str, boundary: str, *, body: bytes = b"{}") -> Written | None:
        """The clock's decision of one open boundary whose time has come."""
        ...

    async def signal(self, run_id: str, name: str, key: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """A row that the oldest open wait for (name, key) takes, or the next that opens."""
        ...

    async def cancel(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """End a run that nobody holds; ask the driver of a held one to."""
        ...

    async def retry(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """Release a `failed` run's failed positions."""
        ...

    async def effect_begin(
        self, lease: Lease, key: str, *, path: str, step: int, policy: Policy, token: str
    ) -> Effect | None:
        """An effect's intent, before it runs. The answer's token is ours: run it. None: the lease is lost or the run ending."""
        ...

    async def effect_end(self, run_id: str, key: str, token: str, outcome: bytes) -> bytes | None:
        """An effect's outcome, once. None: a person was asked meanwhile, or the intent was handed on."""
        ...

    async def head(self, run_id: str) -> Head | None:
        """The run's row. None: no such run."""
        ...

    async def load(self, run_id: str, *, after: int = -1, until: int | None = None) -> Log | None:
        """The rows with `after < seq <= until`, each verified; from the start the latest usable snapshot stands for the rows before it."""
        ...

    async def history(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[Checkpoint]:
        """The log's rows in order, each verified; never a snapshot. Empty: no such run, or no such rows."""
        ...

    async def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        """The row of an act, by the caller's id of it."""
        ...

    async def runs(
        self, *, status: str | None = None, graph: str | None = None, limit: int = 100, before: str | None = None
    ) -> list[Head]:
        """Runs, newest first; `before` is the last run id of the page before."""
        ...

    async def boundaries(
        self, run_id: str | None = None, *, state: str | None = None, limit: int = 1000
    ) -> list[Boundary]:
        """Boundaries, oldest first: of one run or of all."""
        ...

    async def due(self, *, limit: int = 100) -> tuple[list[str], list[str]]:
        """What a worker may do now: run ids to claim, and ids of open boundaries whose time has come."""
        ...

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run and everything of it. False: it does not exist or has not ended."""
        ...

    async def prune(self, before_ms: int) -> int:
        """Remove the runs that ended before this time (ms since the epoch); the answer is how many."""
        ...

    async def close(self) -> None:
        """Give back what the store holds. Closing twice is fine; any other use afterwards is `StoreClosed`."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


# -- integrity: a keyed seal over what the caller of a verb knows, then a digest over it, the seq and the status


def seal(
    secret: bytes,
    run_id: str,
    kind: str,
    epoch: int | None,
    path: str | None,
    step: int | None,
    attempt: int | None,
    opens: str | None,
    boundary: str | None,
    decision: str | None,
    name: str | None,
    key: str | None,
    actor: str | None,
    act: str | None,
    at_ms: int,
    body: bytes,
) -> bytes:
    """BLAKE2b-128 over a row's columns as a JSON array, a newline and the body."""
    plain = opens is boundary is decision is name is key is actor is act is None
    if plain and epoch is not None and (path == "" or (path is not None and _PLAIN_PATH(path))):
        # A driver's plain row: the same bytes without the encoder. A run id needs no escapes.
        text = f'["{run_id}","{kind}",{epoch},"{path}",{step},{attempt},null,null,null,null,null,null,null,{at_ms}]\n'
    else:
        columns = (run_id, kind, epoch, path, step, attempt, opens, boundary, decision, name, key, actor, act, at_ms)
        text = _compact(columns) + "\n"
    return blake2b(text.encode() + body, digest_size=16, key=secret).digest()


def digest(sealed: bytes, seq: int, status: str) -> bytes:
    """The 16 bytes stored with a row: what only the store knows is added last. The seal itself is not stored."""
    return sha256(b"%b%d:%b" % (sealed, seq, status.encode())).digest()[:16]


def check_secret(secret: bytes) -> bytes:
    """The key of the digests, or a `ValueError`."""
    if len(secret) > 64:
        raise ValueError(f"secret has {len(secret)} bytes; BLAKE2b takes at most 64")
    return secret


def snapshot_digest(secret: bytes, run_id: str, seq: int, body: bytes) -> bytes:
    """The 16 bytes stored with a snapshot."""
    return digest(blake2b(run_id.encode() + b"\n" + body, digest_size=16, key=secret).digest(), seq, "snapshot")


def verified(secret: bytes, row: Checkpoint, stored: bytes) -> Checkpoint:
    """The row, if its stored digest is what its content and columns give; else `CorruptCheckpoint`."""
    if type(row.body) is bytes:
        sealed = seal(
            secret, row.run_id, row.kind, row.epoch, row.path, row.step, row.attempt, row.opens, row.boundary,
            row.decision, row.name, row.key, row.actor, row.act, row.at_ms, row.body,
        )  # fmt: skip
        if digest(sealed, row.seq, row.status) == stored:
            return row
    raise CorruptCheckpoint(row.run_id, row.seq, "its digest does not match its content")
