"""A run: the fold of its checkpoints. The only way from storage to a live run; it needs no graph and is valid at every prefix."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from stategraph import patch
from stategraph.checkpoint import ENDED, UNREADABLE, Checkpoint, Log, Opening, Status
from stategraph.encoding import decode, encode
from stategraph.errors import CorruptCheckpoint
from stategraph.isolation import copied

__all__ = ["MASK", "OpenBoundary", "Phase", "Position", "Run", "fold"]

#: What is shown in place of a secret.
MASK = "***"
#: Characters: a shorter value is not looked for in texts.
SHORTEST_SECRET = 4
#: Characters: so long a piece of a secret is hidden like the whole.
PIECE = 12

Phase: TypeAlias = Literal["ready", "gate", "turned", "route", "asked", "timer", "failed"]


class Position(NamedTuple):
    """Where a line of the run stands.

    `ready`: may run. `gate`: waits for an approval. `turned`: was turned down and takes the reject edge. `route`: the
    node is stored, its router still to run. `asked`: waits for an answer. `timer`: waits for a time. `failed`.
    """

    path: str
    node: str
    phase: Phase
    step: int = 0
    #: How many rows this visit has had: the next attempt's number.
    attempt: int = 0
    #: How many of them were failures since the last retry by a person.
    failures: int = 0
    #: The open boundary it waits for.
    boundary: str | None = None
    #: The boundary whose approval released this very visit.
    approved: str | None = None
    #: Where a turned position goes.
    target: str | None = None
    #: The phase that a retry goes back to.
    resumes: Literal["ready", "route"] = "ready"
    error: str | None = None


@dataclass(frozen=True, slots=True)
class OpenBoundary:
    """A boundary that waits, as the fold knows it."""

    id: str
    opened: int
    opening: Opening
    voters: tuple[str, ...] = ()

    @property
    def short_id(self) -> str:
        """The id inside its run, as the store's verbs take it."""
        return self.id.rpartition(":")[2]

    def decided_body(self) -> bytes:
        """The body of the row by which the clock decides it."""
        return encode({"node": self.opening.node, "kind": self.opening.kind})


class Run:
    """A run as its log tells it up to `seq`. `apply` is the only way it changes; its cost is that of the checkpoint."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        #: Name, version and fingerprint of the graph it runs in.
        self.graph = ""
        self.version = ""
        self.fingerprint = ""
        self.parent: str | None = None
        self.status: Status = "ready"
        #: Stored (JSON) values by key.
        self.state: dict[str, Any] = {}
        #: The keys of the state whose values are shown to nobody.
        self.secrets: list[str] = []
        #: The last checkpoint applied; -1 before the first.
        self.seq = -1
        self.positions: dict[str, Position] = {}
        #: The open boundaries by id.
        self.boundaries: dict[str, OpenBoundary] = {}
        #: Node visits done: what `max_steps` counts.
        self.steps = 0
        self.max_steps = 0
        #: What the run has used: `active_ms`, the time its nodes took.
        self.usage: dict[str, float] = {"active_ms": 0}
        #: The last failure's message while the run is failed.
        self.error: str | None = None
        self.ending: str | None = None
        #: The node whose boundary ended the run.
        self.turned_down: str | None = None
        #: When its first row was written, by the store's clock: tells it from another run that has had its id.
        self.created_ms = 0
        #: Bytes of the rows that were read after the last snapshot, and of that snapshot (or of the start).
        self.weight: tuple[int, int] = (0, 0)
        #: The epoch of the last driver's row.
        self.epoch = 0

    # -- reading

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self.status in ENDED

    @property
    def position(self) -> Position | None:
        """The trunk's position; None once it has reached END."""
        return self.positions.get("")

    def runnable(self) -> list[Position]:
        """The positions that a driver may start. An ending or a failure makes nothing runnable."""
        if self.ended or self.ending:
            return []
        phases = [p.phase for p in self.positions.values()]
        if "failed" in phases:
            return []
        return [p for p in self.positions.values() if p.phase in ("ready", "route", "turned")]

    def resting(self) -> Status:
        """The status that tells the truth when nobody executes anything."""
        if not self.positions:
            return "completed"
        if self.ending:
            return "rejected" if self.ending == "rejected" else "cancelled"
        if any(p.phase == "failed" for p in self.positions.values()):
            return "failed"
        return "ready" if self.runnable() else "pending"

    def timer(self) -> OpenBoundary | None:
        """The timer that is due first, if one is open."""
        timers = [b for b in self.boundaries.values() if b.opening.kind == "timer"]
        return min(timers, key=lambda b: b.opening.expires_at or 0, default=None)

    def waiting(self) -> list[OpenBoundary]:
        """The open boundaries that a person may decide, oldest first."""
        return [b for b in self.boundaries.values() if b.opening.kind in ("approval", "question", "in_doubt")]

    def shown(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of values of the state as people are shown them: what is secret is masked."""
        if not self.secrets:
            return {name: copied(value) for name, value in values.items()}
        return {name: MASK if name in self.secrets else copied(value) for name, value in values.items()}

    def without_secrets(self, text: str, *given: Mapping[str, Any]) -> str:
        """A text without what secret keys say, in the state or in what was `given`: nor a longer piece of it."""
        if not self.secrets:
            return text
        held = [values[name] for values in (self.state, *given) for name in self.secrets if name in values]
        secrets = sorted({form for value in held for said in _texts(value) for form in _forms(said)}, key=len)
        for secret in reversed(secrets):  # what is a part of another goes last
            text = text.replace(secret, MASK)
        return _without_pieces(text, secrets)

    def __repr__(self) -> str:
        where = ", ".join(f"{p.node} {p.phase}" for p in self.positions.values()) or "END"
        return f"<Run {self.run_id!r} of {self.graph!r}: {self.status} at {where}, seq {self.seq}>"

    # -- changing

    def apply(self, row: Checkpoint) -> None:
        """Take the next checkpoint; raises `CorruptCheckpoint` for one that cannot follow."""
        if row.seq != self.seq + 1:
            raise CorruptCheckpoint(self.run_id, row.seq, f"it follows checkpoint {self.seq}")
        if self.ended:
            raise CorruptCheckpoint(self.run_id, row.seq, f"it follows the run's end ({self.status})")
        try:
            _APPLY[row.kind](self, row)
        except KeyError as error:
            raise CorruptCheckpoint(
                self.run_id, row.seq, f"its {row.kind} row does not fit the log ({error})"
            ) from None
        self.seq = row.seq
        self.status = row.status
        if row.epoch is not None:
            self.epoch = row.epoch
        if row.opens:
            self._open(row)
        if self.ending:
            self.boundaries.clear()  # the store has withdrawn them in the same transaction

    def _start(self, row: Checkpoint) -> None:
        body = row.content
        self.graph, self.version, self.fingerprint = body["graph"], body["version"], body["fingerprint"]
        self.max_steps, self.parent = body["max_steps"], body.get("parent")
        self.secrets = body.get("secrets", [])
        if "fold" in body:
            self._restore(copied(body["fold"]))
            self.seq = -1
        else:
            patch.apply_stored(self.state, body)
            self.positions[""] = Position("", body["at"], "ready")

    def _node(self, row: Checkpoint) -> None:
        body = row.content
        position = self._visit(row, "ready")
        patch.apply_stored(self.state, body)
        self.steps += 1
        self.usage["active_ms"] += body.get("ms", 0)
        if body.get("phase") == "route":
            self.positions[position.path] = Position(position.path, position.node, "route", position.step + 1)
        else:
            self._leave(position, body["at"])

    def _route(self, row: Checkpoint) -> None:
        self._leave(self._visit(row, "route", "turned"), row.content["at"])

    def _failed(self, row: Checkpoint) -> None:
        position = self._visit(row, "ready", "route", "turned")
        error = row.content["error"]
        text = f"{error['type']}: {error['message']}"
        self.positions[position.path] = position._replace(
            phase="failed",
            resumes="route" if position.phase == "route" else "ready",
            attempt=position.attempt + 1,
            failures=position.failures + 1,
            error=text,
        )
        self.error = text

    def _asked(self, row: Checkpoint) -> None:
        position = self._visit(row, "ready")
        self.positions[position.path] = position._replace(phase="asked", attempt=position.attempt + 1)

    def _settled(self, row: Checkpoint) -> None:
        body = row.content
        if "version" in body:  # a migration: the state and the graph it now belongs to
            patch.apply_stored(self.state, body)
            self.version, self.fingerprint = body["version"], body["fingerprint"]
            self.secrets = sorted({*self.secrets, *body.get("secrets", ())})

    def _decision(self, row: Checkpoint) -> None:
        boundary = self.boundaries[f"{self.run_id}:{row.boundary}"]
        opening, position = boundary.opening, self.positions[boundary.opening.path]
        if row.content.get("shown", opening.digest) != opening.digest:
            raise CorruptCheckpoint(self.run_id, row.seq, f"it is about something else than {boundary.id} showed")
        if opening.approvers is not None and row.decision in ("approved", "rejected"):
            who = {row.actor, *row.content.get("roles", ())}
            if who.isdisjoint(opening.approvers):  # the store's projection of the log was changed
                raise CorruptCheckpoint(self.run_id, row.seq, f"{row.actor!r} was no approver of {boundary.id}")
        if row.decision == "approved" and len(boundary.voters) + 1 < opening.needed:
            self.boundaries[boundary.id] = replace(boundary, voters=(*boundary.voters, row.actor or ""))
            return
        del self.boundaries[boundary.id]
        released = position._replace(phase="ready", boundary=None, error=None)
        if opening.kind == "timer" or row.decision == "retry":
            self.positions[position.path] = (
                released if position.resumes == "ready" else released._replace(phase="route")
            )
            self.error = None
        elif row.decision == "approved":
            patch.apply_stored(self.state, row.content.get("edit", {}))
            approved = boundary.id if opening.kind == "approval" else position.approved
            self.positions[position.path] = released._replace(approved=approved)
        elif opening.kind == "in_doubt":
            self.error = f"in doubt: {row.actor} says that the effect did not happen and is not to be tried again"
            self.positions[position.path] = position._replace(phase="failed", boundary=None, error=self.error)
        elif opening.final:
            self.ending, self.turned_down = self.ending or "rejected", position.node
        else:
            target = (row.decision == "expired" and opening.on_expire) or opening.on_reject
            self.positions[position.path] = released._replace(phase="turned", target=target)

    def _signal(self, row: Checkpoint) -> None:
        """Kept for the waits of a later version: a signal alone changes nothing."""

    def _cancel(self, row: Checkpoint) -> None:
        self.ending = self.ending or "cancelled"

    def _retry(self, row: Checkpoint) -> None:
        body = row.content
        patch.apply_stored(self.state, body)
        self.max_steps = max(self.max_steps, body.get("max_steps", 0))  # two may have asked for more at once
        changed = not patch.WRITES.isdisjoint(body)
        self.error = None
        for path, position in self.positions.items():
            if position.phase == "failed":
                approved = None if changed else position.approved  # an approval is of what was shown: ask again
                self.positions[path] = position._replace(
                    phase=position.resumes, failures=0, error=None, approved=approved
                )

    # -- the moves that these share

    def _visit(self, row: Checkpoint, *phases: Phase) -> Position:
        position = self.positions[row.path or ""]
        if position.phase not in phases or position.step != row.step:
            raise CorruptCheckpoint(
                self.run_id,
                row.seq,
                f"it is about step {row.step}, but the run stands at step {position.step} ({position.phase})",
            )
        return position

    def _leave(self, position: Position, at: str) -> None:
        if at == "END":
            del self.positions[position.path]
        else:
            self.positions[position.path] = Position(position.path, at, "ready", position.step + 1)

    def _open(self, row: Checkpoint) -> None:
        for nth, opening in enumerate(row.openings):
            boundary = OpenBoundary(f"{self.run_id}:{row.seq}.{nth}", row.seq, opening)
            self.boundaries[boundary.id] = boundary
            phase: Phase = {"approval": "gate", "timer": "timer"}.get(opening.kind, "asked")  # type: ignore[assignment]
            position = self.positions[opening.path]
            self.positions[opening.path] = position._replace(phase=phase, boundary=boundary.id)

    # -- snapshots: the folded run as one value

    def snapshot(self) -> bytes:
        """The whole run as bytes that `fold` starts from; its size is that of the state."""
        return encode(self.content())

    def content(self) -> dict[str, Any]:
        """The whole run as JSON."""
        return {
            "graph": self.graph,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "parent": self.parent,
            "status": self.status,
            "state": self.state,
            "seq": self.seq,
            "positions": [position._asdict() for position in self.positions.values()],
            "boundaries": [asdict(boundary) for boundary in self.boundaries.values()],
            "steps": self.steps,
            "max_steps": self.max_steps,
            "usage": self.usage,
            "error": self.error,
            "ending": self.ending,
            "turned_down": self.turned_down,
            "epoch": self.epoch,
            **({"secrets": self.secrets} if self.secrets else {}),
        }

    def _restore(self, content: dict[str, Any]) -> None:
        positions, boundaries = content.pop("positions"), content.pop("boundaries")
        for name in _FIELDS:  # by our own list: what is stored names nothing
            setattr(self, name, content.get(name, getattr(self, name)))  # a key that is newer than the snapshot
        self.positions = {item["path"]: Position(**item) for item in positions}
        for item in boundaries:
            opening = item["opening"]
            if opening["approvers"] is not None:
                opening["approvers"] = tuple(opening["approvers"])
            self.boundaries[item["id"]] = OpenBoundary(
                item["id"], item["opened"], Opening(**opening), tuple(item["voters"])
            )


def _texts(value: Any) -> Iterator[str]:
    """What a secret value looks like in a text: long enough not to be found in every one."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, (str, int, float)):
        yield str(value)
    elif value is not None:  # of a schema's type, or what cannot be stored
        with suppress(Exception):  # a hostile one says nothing
            yield repr(value)
        with suppress(Exception):
            yield str(value)


def _forms(said: str) -> Iterator[str]:
    """A text as it stands, and as Python and JSON quote it."""
    if said not in ("True", "False"):
        for form in (said, repr(said)[1:-1], json.dumps(said)[1:-1], json.dumps(said, ensure_ascii=False)[1:-1]):
            if len(form) >= SHORTEST_SECRET:
                yield form


def _without_pieces(text: str, secrets: Iterable[str]) -> str:
    """A text without pieces of longer secrets: messages show the beginning of a long value, or its two ends."""
    told = {text[at : at + PIECE] for at in range(len(text) - PIECE + 1)}  # a secret may be of any length
    found = (secret[at : at + PIECE] for secret in secrets for at in range(len(secret) - PIECE + 1))
    if not (pieces := told.intersection(found)):
        return text
    kept, at = [], 0
    while at < len(text):
        end = at
        while text[end : end + PIECE] in pieces:
            end += 1
        kept.append(MASK if end > at else text[at])
        at = end + PIECE - 1 if end > at else at + 1
    return "".join(kept)


_FIELDS = (
    "graph", "version", "fingerprint", "parent", "status", "state", "seq", "steps", "max_steps", "usage", "error",
    "ending", "turned_down", "epoch", "secrets",
)  # fmt: skip

_APPLY: dict[str, Callable[[Run, Checkpoint], None]] = {
    "start": Run._start,
    "node": Run._node,
    "route": Run._route,
    "failed": Run._failed,
    "asked": Run._asked,
    "settled": Run._settled,
    "decision": Run._decision,
    "signal": Run._signal,
    "cancel": Run._cancel,
    "retry": Run._retry,
}


def fold(run_id: str, checkpoints: Iterable[Checkpoint], snapshot: bytes | None = None) -> Run:
    """The run after these checkpoints, which follow the snapshot if there is one."""
    run = Run(run_id)
    if snapshot is not None:
        try:
            content = decode(snapshot)
        except ValueError:
            raise CorruptCheckpoint(run_id, 0, UNREADABLE) from None
        run._restore(content)
    for row in checkpoints:
        run.apply(row)
    return run


def fold_log(log: Log) -> Run:
    """The run as it was read from a store, with the status of its head."""
    run = fold(log.head.run_id, log.checkpoints, log.snapshot[1] if log.snapshot else None)
    rows = log.checkpoints if log.snapshot else log.checkpoints[1:]
    run.created_ms = log.head.created_ms
    run.weight = sum(len(row.body) for row in rows), len(log.snapshot[1] if log.snapshot else log.checkpoints[0].body)
    return _as_its_head(run, log)


def fold_on(run: Run, log: Log) -> Run:
    """The same run after the rows that were read since: its fold goes on where it was."""
    for row in log.checkpoints:
        run.apply(row)
    since, snapshot = run.weight
    run.weight = since + sum(len(row.body) for row in log.checkpoints), snapshot
    return _as_its_head(run, log)


def _as_its_head(run: Run, log: Log) -> Run:
    if run.seq == log.head.seq:
        status = log.head.status
        if status not in get_args(Status) or (status != run.status and (status in ENDED or run.ended)):
            raise CorruptCheckpoint(
                run.run_id, run.seq, f"the run is said to be {status!r}, its log says {run.status!r}"
            )
        run.status = status
    return run
