"""One transition of the model: who did what, whether the store took it, and what is wrong with it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tests.model.log import Row
from tests.model.store import Token

__all__ = [
    "Act",
    "Append",
    "Attach",
    "Begin",
    "Cancel",
    "Claim",
    "Crash",
    "Decide",
    "Effect",
    "End",
    "Expire",
    "Lapse",
    "Release",
    "Renew",
    "Retry",
    "Settle",
    "Signal",
    "Start",
    "Step",
    "Tick",
]


class Claim(NamedTuple):
    epoch: int

    def __str__(self) -> str:
        return f"claims the run, epoch {self.epoch}"


class Attach(NamedTuple):
    epoch: int

    def __str__(self) -> str:
        return f"joins epoch {self.epoch}"


class Renew(NamedTuple):
    epoch: int

    def __str__(self) -> str:
        return "renews its lease and reads the log"


class Release(NamedTuple):
    epoch: int

    def __str__(self) -> str:
        return "puts the run back"


class Append(NamedTuple):
    epoch: int
    seen: int
    rows: tuple[Row, ...]
    status: str
    node: str
    snapshot: bool = False

    def __str__(self) -> str:
        rows = " and ".join(f"{row.kind}{' (router raised)' if row.phase == 'route' else ''}" for row in self.rows)
        opens = ", ".join(kind for row in self.rows for kind, _ in row.opens)
        more = f", which opens {opens}" if opens else ""
        more += ", with a snapshot" if self.snapshot else ""
        return f"appends {rows} of {self.node}{more}; it has seen row {self.seen} and proposes {self.status!r}"


class Settle(NamedTuple):
    epoch: int
    seen: int
    status: str
    migrates: bool = False

    def __str__(self) -> str:
        what = "a migration" if self.migrates else repr(self.status)
        return f"settles {what}; it has seen row {self.seen}"


class Start(NamedTuple):
    """A node starts to run: a local act."""

    path: str
    node: str

    def __str__(self) -> str:
        return f"starts {self.node}"


class Begin(NamedTuple):
    epoch: int
    token: Token
    keyed: bool
    #: What the driver is told: `mine`, `known` or `doubt`.
    told: str = ""

    def __str__(self) -> str:
        return f"begins the effect{': ' + self.told if self.told else ''}"


class Effect(NamedTuple):
    """The effect itself, in the world."""

    def __str__(self) -> str:
        return "does the effect"


class End(NamedTuple):
    token: Token

    def __str__(self) -> str:
        return "records the effect's outcome"


class Crash(NamedTuple):
    def __str__(self) -> str:
        return "vanishes"


class Decide(NamedTuple):
    boundary: int
    decision: str
    node: str
    kind: str

    def __str__(self) -> str:
        return f"decides the {self.kind} before {self.node}: {self.decision}"


class Expire(NamedTuple):
    boundary: int
    node: str
    kind: str

    def __str__(self) -> str:
        return f"lets the {self.kind} before {self.node} expire"


class Signal(NamedTuple):
    #: Nothing, or what it has another of than the waits: `name` or `key`.
    other: str = ""

    def __str__(self) -> str:
        return f"sends a signal of another {self.other}" if self.other else "sends the signal"


class Cancel(NamedTuple):
    def __str__(self) -> str:
        return "cancels the run"


class Retry(NamedTuple):
    limit: int = 0
    edits: bool = False

    def __str__(self) -> str:
        more = f" with {self.limit} steps" if self.limit else " with another state" if self.edits else ""
        return f"retries the run{more}"


class Tick(NamedTuple):
    """Time passes: a boundary's has come."""

    boundary: int
    node: str
    kind: str

    def __str__(self) -> str:
        return f"passes the time of the {self.kind} before {self.node}"


class Lapse(NamedTuple):
    """Time passes: a lease is over."""

    alive: bool

    def __str__(self) -> str:
        return f"passes the end of the lease, whose owner {'is only paused' if self.alive else 'is gone'}"


Act: TypeAlias = (
    Claim
    | Attach
    | Renew
    | Release
    | Append
    | Settle
    | Start
    | Begin
    | Effect
    | End
    | Crash
    | Decide
    | Expire
    | Signal
    | Cancel
    | Retry
    | Tick
    | Lapse
)


class Step(NamedTuple):
    """An act and how it went."""

    who: str
    act: Act
    #: The store's answer: the status after it, where it answers one; "refused".
    answer: str = ""
    #: Counted in the scope's luck: the way to an end must not need it.
    unlucky: bool = False
    #: The caller does not hear the answer.
    unheard: bool = False

    @property
    def accepted(self) -> bool:
        """The store took it."""
        return self.answer != "refused"

    def __str__(self) -> str:
        heard = ", but nobody hears the answer" if self.unheard else ""
        return f"{self.who} {self.act}{f' -> {self.answer}' if self.answer else ''}{heard}"
