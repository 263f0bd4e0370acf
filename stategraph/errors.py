"""Every error that stategraph raises.

StateGraphError
├── GraphError (ValueError)               the graph cannot be walked: every fault, with its fix
├── GraphChangedError (RuntimeError)      the run stands where this graph cannot take it on
├── StateError (ValueError)               state that cannot be stored
├── DeltaError (TypeError)                a node returned something other than a mapping
├── RouteError (RuntimeError)             a router answered something its graph does not allow
├── StepBudgetExhausted (RuntimeError)    a run may take no more steps
├── PoisonedRun (RuntimeError)            a run that kills every driver that claims it
├── InvalidRunId (ValueError)             a run id outside the allowed characters or length
├── RunExists (ValueError)                the run id is taken
├── UnknownRun (LookupError)              no run has this id
├── RunNotClaimable (RuntimeError)        the run's status does not allow this
│   ├── LeaseHeld                         somebody drives the run
│   └── LeaseLost                         this driver was replaced
├── DecisionRefused (ValueError)          a bad, stale, late, repeated or unknown decision
├── ForkRefused (ValueError)              nothing to fork at this point of a run's log
├── RenderError (RuntimeError)             a picture could not be drawn
└── CheckpointerError (RuntimeError)      the store could not do it; the run is where it was
    ├── StoreLocked                       another process holds the write lock
    ├── StoreFull                         no space left
    ├── StoreReadOnly                     the file or its folder cannot be written
    ├── StoreUnavailable                  the store cannot be opened or read
    ├── StoreForeign                      not a stategraph database, or one of a newer version
    ├── CorruptCheckpoint                 what is stored is not what was written
    └── StoreClosed                       used after close(), or in a forked process
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

__all__ = [
    "CheckpointerError",
    "CorruptCheckpoint",
    "DecisionRefused",
    "DeltaError",
    "ForkRefused",
    "GraphChangedError",
    "GraphError",
    "InvalidRunId",
    "LeaseHeld",
    "LeaseLost",
    "PoisonedRun",
    "RenderError",
    "RouteError",
    "RunExists",
    "RunNotClaimable",
    "StateError",
    "StateGraphError",
    "StepBudgetExhausted",
    "StoreClosed",
    "StoreForeign",
    "StoreFull",
    "StoreLocked",
    "StoreReadOnly",
    "StoreUnavailable",
    "UnknownRun",
    "did_you_mean",
]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The likely typo as a clause for a message, or nothing."""
    close = get_close_matches(name, list(known), n=1) if isinstance(name, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def redacted(url: str) -> str:
    """A store's URL, or what was given for one, without what may be a password."""
    return url if "@" not in url else f"...@{url.rpartition('@')[2]}"


def moment(at_ms: int) -> str:
    """A time (ms since the Unix epoch) as people read it, in UTC."""
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # beyond the calendar: a damaged or hostile row
        return f"{at_ms} ms"


def shortened(value: object, limit: int = 120) -> str:
    """The value's repr, cut, and safe when the repr itself raises."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # a hostile __repr__ must not replace the error being told
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}..."


class StateGraphError(Exception):
    """The root of all errors that stategraph raises."""


class GraphError(StateGraphError, ValueError):
    """The graph cannot be walked; `faults` lists every reason with its fix."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class GraphChangedError(StateGraphError, RuntimeError):
    """The run stands where this graph cannot take it on; nothing was done."""

    def __init__(self, run_id: str, reasons: Sequence[str]) -> None:
        self.run_id = run_id
        self.reasons = tuple(reasons)
        super().__init__(f"run {run_id!r} was started by another graph: " + "; ".join(self.reasons))


class StateError(StateGraphError, ValueError):
    """State that cannot be stored; `path` says where, `node` who returned it."""

    def __init__(self, reason: str, path: str, node: str | None = None) -> None:
        self.reason = reason
        self.path = path
        self.node = node
        super().__init__(f"{path}: {reason}" + (f" (returned by node {node!r})" if node else ""))


class DeltaError(StateGraphError, TypeError):
    """A node returned something other than a mapping or None."""

    def __init__(self, node: str, returned: object) -> None:
        self.node = node
        self.returned = returned
        super().__init__(
            f"node {node!r} returned {shortened(returned)} ({type(returned).__name__}); "
            f"return a mapping of the keys it changes, or None"
        )


class RouteError(StateGraphError, RuntimeError):
    """A router answered something its graph does not allow."""

    def __init__(self, source: str, answer: object, choices: Sequence[str], fix: str = "") -> None:
        self.source = source
        self.answer = answer
        self.choices = tuple(choices)
        hint = did_you_mean(answer, choices) if isinstance(answer, str) else ""
        super().__init__(
            f"the router after {source!r} answered {shortened(answer)}; "
            f"it may answer {', '.join(map(repr, choices)) or 'nothing'}{hint}{fix and '; ' + fix}"
        )


class StepBudgetExhausted(StateGraphError, RuntimeError):
    """A run may take no more steps; `retry(run_id, max_steps=...)` gives it more."""

    def __init__(self, node: str, max_steps: int) -> None:
        self.node = node
        self.max_steps = max_steps
        super().__init__(
            f"step budget exhausted: {max_steps} steps are done and {node!r} was not run; "
            f"retry the run with a larger max_steps"
        )


class PoisonedRun(StateGraphError, RuntimeError):
    """Too many drivers claimed the run and died without recording anything."""

    def __init__(self, run_id: str, node: str, claims: int) -> None:
        self.run_id = run_id
        self.node = node
        self.claims = claims
        super().__init__(
            f"run {run_id!r} was claimed {claims} times without progress at {node!r}; "
            f"find out what kills its driver, then retry the run"
        )


class InvalidRunId(StateGraphError, ValueError):
    """A run id outside `[A-Za-z0-9._:-]{1,128}`."""

    def __init__(self, run_id: object) -> None:
        self.run_id = run_id
        super().__init__(f"{shortened(run_id, 60)} is no run id; use 1 to 128 of the characters A-Z a-z 0-9 . _ : -")


class RunExists(StateGraphError, ValueError):
    """The run id is taken, whatever the status of its run."""

    def __init__(self, run_id: str, status: str | None = None) -> None:
        self.run_id = run_id
        self.status = status
        super().__init__(
            f"run {run_id!r} exists{f' ({status})' if status else ''}; resume it, or start a new run under another id"
        )


class UnknownRun(StateGraphError, LookupError):
    """No run has this id in this store."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"no run {run_id!r} in this store")


class RunNotClaimable(StateGraphError, RuntimeError):
    """The run's status does not allow what was asked for."""

    def __init__(self, run_id: str, status: str, way_out: str) -> None:
        self.run_id = run_id
        self.status = status
        super().__init__(f"run {run_id!r} is {status}; {way_out}")


class LeaseHeld(RunNotClaimable):
    """Somebody drives the run; `owner` and `lease_until` (ms since the epoch) say who and until when."""

    def __init__(self, run_id: str, owner: str | None, lease_until: int | None) -> None:
        self.owner = owner
        self.lease_until = lease_until
        super().__init__(
            run_id,
            "running",
            f"{owner or 'somebody'} drives it and renews its lease"
            f"{'' if lease_until is None else f' (now until {moment(lease_until)})'}; recover it when that is over",
        )


class LeaseLost(RunNotClaimable):
    """This driver was replaced or its run has ended; nothing of its later work is recorded."""

    def __init__(self, run_id: str, status: str = "held by another driver") -> None:
        super().__init__(run_id, status, "this driver has stopped and recorded nothing more")


class DecisionRefused(StateGraphError, ValueError):
    """A bad, stale, late, repeated or unknown decision; `by`, `decision`, `at_ms` say who decided what and when."""

    def __init__(
        self,
        run_id: str,
        boundary: str | None,
        reason: str,
        *,
        decision: str | None = None,
        by: str | None = None,
        at_ms: int | None = None,
    ) -> None:
        self.run_id = run_id
        self.boundary = boundary
        self.reason = reason
        self.decision = decision
        self.by = by
        self.at_ms = at_ms
        where = f"boundary {boundary!r}" if boundary else f"run {run_id!r}"
        super().__init__(f"{where}: {reason}")


class ForkRefused(StateGraphError, ValueError):
    """There is nothing to fork at this point of the run's log."""

    def __init__(self, run_id: str, at: int, reason: str) -> None:
        self.run_id = run_id
        self.at = at
        super().__init__(f"run {run_id!r} cannot be forked at checkpoint {at}: {reason}")


class RenderError(StateGraphError, RuntimeError):
    """A picture could not be drawn; `reason` says why, `way_out` what to do."""

    def __init__(self, reason: str, way_out: str) -> None:
        self.reason = reason
        self.way_out = way_out
        super().__init__(f"{reason}; {way_out}")


class CheckpointerError(StateGraphError, RuntimeError):
    """The store could not do it; nothing was changed, and the same call may be made again."""


class StoreLocked(CheckpointerError):
    """Another process holds the write lock for longer than the store waits."""


class StoreFull(CheckpointerError):
    """No space is left for the store."""


class StoreReadOnly(CheckpointerError):
    """The store's file or folder cannot be written."""


class StoreUnavailable(CheckpointerError):
    """The store cannot be opened or read."""


class StoreForeign(CheckpointerError):
    """Not a stategraph database, or one of a newer version."""


class StoreClosed(CheckpointerError):
    """The checkpointer was closed, or belongs to another process."""


class CorruptCheckpoint(CheckpointerError):
    """What is stored is not what was written; `seq` says where the log breaks."""

    def __init__(self, run_id: str, seq: int, what: str) -> None:
        self.run_id = run_id
        self.seq = seq
        super().__init__(
            f"run {run_id!r}, checkpoint {seq}: {what}; restore the store from a backup, or fork the run from before it"
        )
