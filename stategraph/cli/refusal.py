"""A refusal: what went wrong and what to type next, in one sentence, with an exit code; never a traceback."""

from __future__ import annotations

from collections.abc import Callable

from stategraph.errors import (
    CorruptCheckpoint,
    DecisionRefused,
    GraphChangedError,
    GraphError,
    LeaseHeld,
    RunExists,
    RunNotClaimable,
    StateGraphError,
    StoreForeign,
    UnknownRun,
    moment,
)

__all__ = ["CODES", "DONE", "FAILED", "INTERRUPTED", "PENDING", "TERMINATED", "UNHEARD", "USAGE", "Refused", "refusal"]

DONE, FAILED, USAGE, PENDING, REJECTED = 0, 1, 2, 3, 4
#: Ctrl-C, SIGPIPE and SIGTERM: 128 and the signal's number, as shells have it.
INTERRUPTED, UNHEARD, TERMINATED = 130, 141, 143

#: What a command that drives exits with, by the status it leaves the run in.
CODES = {"completed": DONE, "pending": PENDING, "rejected": REJECTED}

#: (verb, words) -> the command line to type, with the store and the file that this one was given.
Command = Callable[..., str]


class Refused(Exception):
    """The command line's own refusal; `code` is what the command exits with."""

    def __init__(self, message: str, code: int = USAGE, kind: str = "UsageError") -> None:
        self.code = code
        self.kind = kind
        super().__init__(message)


def refusal(error: Exception, command: Command) -> Refused:
    """Any error as a refusal: what was typed wrongly is 2, what could not be done is 1."""
    if isinstance(error, Refused):
        return error
    return Refused(_sentence(error, command), _code(error), type(error).__name__)


def _code(error: Exception) -> int:
    if isinstance(error, DecisionRefused):  # a ValueError to Python, but well typed: somebody else was faster
        return FAILED
    mistyped = (StoreForeign, UnknownRun, GraphChangedError, ValueError, LookupError)
    return USAGE if _told(error) and isinstance(error, mistyped) else FAILED


def _sentence(error: Exception, command: Command) -> str:
    match error:
        case UnknownRun():
            return f"no run {error.run_id!r} in this store; list its runs with: {command('runs')}"
        case RunExists():
            status = f" ({error.status})" if error.status else ""
            look = command("show", error.run_id)
            return f"run {error.run_id!r} exists{status}; look at it with: {look}, or choose another --run-id"
        case LeaseHeld():
            until = f" until {moment(error.lease_until)}" if error.lease_until is not None else ""
            return (
                f"run {error.run_id!r} is running: {error.owner or 'somebody'} drives it and holds it{until}; "
                f"follow it with: {command('events', error.run_id, '--follow')}, or if its driver has died, "
                f"after that time type: {command('recover', error.run_id)}"
            )
        case RunNotClaimable():
            return f"{error}; look at it with: {command('show', error.run_id)}"
        case DecisionRefused():
            return f"{_refused(error)}; look at it with: {command('show', error.run_id)}"
        case GraphChangedError():
            return f"{error}; name the file of its graph with --file"
        case GraphError():
            return f"the graph cannot be walked: {'; '.join(error.faults)}"
        case CorruptCheckpoint():
            return f"{error}; check the whole store with: {command('doctor')}"
        case _ if _told(error):
            return str(error)
        case _:
            return (
                f"unexpected {type(error).__name__}: {error}; type it again with --traceback and report what it shows"
            )


def _refused(error: DecisionRefused) -> str:
    """The refusal with its times in words."""
    where = f"boundary {error.boundary!r}" if error.boundary else f"run {error.run_id!r}"
    if error.by is None or error.at_ms is None:
        return f"{where}: {error.reason}"
    return f"{where}: already {error.decision} by {error.by} at {moment(error.at_ms)}"


def _told(error: Exception) -> bool:
    """Whether its message was written to be read alone: ours are, Python's own (`KeyError: 'x'`) are not."""
    return isinstance(error, (StateGraphError, OSError)) or type(error) in (ValueError, LookupError)
