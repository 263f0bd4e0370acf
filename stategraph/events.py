"""What is told of a run: frozen, typed events, told apart by `event_type`; payloads are JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from stategraph.checkpoint import BoundaryKind

__all__ = [
    "CancelRequested",
    "Cancelled",
    "Completed",
    "Cursor",
    "Custom",
    "Decided",
    "Event",
    "Failed",
    "Interrupted",
    "NodeStart",
    "Rejected",
    "Retried",
    "Retrying",
    "Shown",
    "Signalled",
    "StateUpdate",
    "Token",
    "parse_event",
]


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """Where a durable event stands: the seq of its checkpoint, its place among that checkpoint's events."""

    seq: int
    index: int

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """The cursor in `seq.index`; `ValueError` for another text."""
        seq, dot, index = text.partition(".")
        if not (dot and seq.isdecimal() and index.isdecimal()):
            raise ValueError(f"{text!r:.60} is no cursor; write seq.index, as in 12.0")
        return cls(int(seq), int(index))

    def __str__(self) -> str:
        return f"{self.seq}.{self.index}"


class Shown(BaseModel):
    """The boundary that an `interrupted` event tells of: what a decision must name."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    id: str
    kind: BoundaryKind
    node: str
    digest: str
    #: A rejection ends the run.
    final: bool
    expires_at: int | None = None


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    node_name: str
    payload: dict[str, Any]
    run_id: str
    #: The line of the run that it happened on; `""` is the trunk.
    path: str = ""
    #: The cursor: the seq of its checkpoint and the place among that checkpoint's events. None for what is told before
    #: its checkpoint is written, and for tokens.
    seq: int | None = None
    index: int | None = None

    @property
    def cursor(self) -> Cursor | None:
        """Where a durable event stands in the run's log; a reader that comes back names the last one it has seen."""
        return None if self.seq is None or self.index is None else Cursor(self.seq, self.index)

    def model_dump_json(self, *, indent: int | None = None, ensure_ascii: bool = True, **options: Any) -> str:
        """A line of JSON, in ASCII: pydantic's own writer refuses lone surrogates, which a state may hold."""
        separators = (",", ":") if indent is None else None
        dumped = self.model_dump(mode="json", **options)
        return json.dumps(dumped, indent=indent, ensure_ascii=ensure_ascii, separators=separators)


class NodeStart(_Told):
    """A node starts."""

    event_type: Literal["node_start"] = "node_start"


class StateUpdate(_Told):
    """A node is done and stored; `payload["delta"]` is what it changed."""

    event_type: Literal["state_update"] = "state_update"


class Interrupted(_Told):
    """The run waits at a boundary; `payload["state"]` is what the decision is about."""

    event_type: Literal["interrupted"] = "interrupted"
    boundary: Shown


class Rejected(_Told):
    """A rejection, or an expiry, ended the run."""

    event_type: Literal["rejected"] = "rejected"


class Completed(_Told):
    """The run has reached END; `payload["final_state"]`."""

    event_type: Literal["completed"] = "completed"


class Failed(_Told):
    """A node or its router failed; `payload["error"]` has type and message."""

    event_type: Literal["failed"] = "failed"


class Retrying(_Told):
    """A node failed and runs again by itself; `payload` has the error, the failures so far and when (`due`, ms)."""

    event_type: Literal["retrying"] = "retrying"


class Cancelled(_Told):
    """Somebody cancelled the run and it has ended."""

    event_type: Literal["cancelled"] = "cancelled"


class Custom(_Told):
    """What a node told with `ctx.emit`."""

    event_type: Literal["custom"] = "custom"


class Token(_Told):
    """A piece of text from `ctx.token`; live only."""

    event_type: Literal["token"] = "token"


class Decided(_Told):
    """For readers of the log: a decision, a vote or an expiry; `payload` has boundary, decision, by, note."""

    event_type: Literal["decided"] = "decided"


class Retried(_Told):
    """For readers of the log: somebody released the failed positions."""

    event_type: Literal["retried"] = "retried"


class CancelRequested(_Told):
    """For readers of the log: somebody asked the run to end."""

    event_type: Literal["cancel_requested"] = "cancel_requested"


class Signalled(_Told):
    """For readers of the log: a signal came; `payload` has name, key, by."""

    event_type: Literal["signalled"] = "signalled"


Event: TypeAlias = (
    NodeStart
    | StateUpdate
    | Interrupted
    | Rejected
    | Completed
    | Failed
    | Retrying
    | Cancelled
    | Custom
    | Token
    | Decided
    | Retried
    | CancelRequested
    | Signalled
)

#: The events that are somebody's act: told to readers of the log, not by `stream` and `resume`.
ACTS = (Decided, Retried, CancelRequested, Signalled)


@cache
def _adapter() -> TypeAdapter[Event]:
    return TypeAdapter(Annotated[Event, Field(discriminator="event_type")])


def parse_event(data: str | bytes) -> Event:
    """The event in a line of JSON, as `event.model_dump_json()` writes it."""
    try:
        return _adapter().validate_json(data)
    except ValidationError:
        try:
            value = json.loads(data)
        except ValueError:
            pass
        else:  # pydantic's own reader refuses lone surrogates
            return _adapter().validate_python(value)
        raise
