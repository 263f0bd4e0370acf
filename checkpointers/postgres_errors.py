"""What an error of the driver or the server means for a run."""

from __future__ import annotations

import errno

import asyncpg

from stategraph.errors import (
    CheckpointerError,
    StoreForeign,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)

__all__ = ["UNDONE", "is_lost", "is_passing", "translated"]

#: The server has undone it, and it may be asked again.
UNDONE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)

_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # it is shutting down
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
    OSError,
)
_NOT_LOST = (asyncpg.DataError, asyncpg.QueryCanceledError)
_STARTING = (asyncpg.CannotConnectNowError, asyncpg.TooManyConnectionsError)
_GONE = (asyncpg.PostgresConnectionError, ConnectionError, FileNotFoundError, TimeoutError)


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, and nobody knows whether the server has done what it was asked."""
    return isinstance(error, _LOST) and not isinstance(error, _NOT_LOST)


def is_passing(error: BaseException, was_there: bool) -> bool:
    """Whether a server that could not be reached is likely to be back soon."""
    return isinstance(error, _STARTING) or (was_there and isinstance(error, _GONE))


def translated(error: BaseException, where: str, text: str) -> BaseException:
    """A driver's error as ours; `text` is what it said, without secrets."""
    text = f"{where}: {text or type(error).__name__}"
    for kinds, means, way_out in _MEANINGS:
        if isinstance(error, kinds):
            return means(f"{text}{way_out}")
    if isinstance(error, (asyncpg.PostgresError, asyncpg.InterfaceError, UnicodeEncodeError)):
        return CheckpointerError(text)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return StoreFull(text)
    if isinstance(error, OSError):
        return StoreUnavailable(f"{text}; see that the server is up and can be reached from here")
    return StoreUnavailable(text) if isinstance(error, asyncpg.InternalClientError) else error


_MEANINGS: tuple[tuple[tuple[type[BaseException], ...], type[CheckpointerError], str], ...] = (
    (
        (asyncpg.LockNotAvailableError, asyncpg.SerializationError, asyncpg.DeadlockDetectedError),
        StoreLocked,
        ": somebody else has held the run's row for too long; try again when that is done",
    ),
    ((asyncpg.DiskFullError,), StoreFull, "; make room on the server, then go on with recover"),
    (
        (asyncpg.ReadOnlySQLTransactionError,),
        StoreReadOnly,
        "; this server is a standby or set to read only: name the primary",
    ),
    (
        (asyncpg.InsufficientPrivilegeError,),
        StoreReadOnly,
        "; give this role the schema 'stategraph' and all in it, or let one that may create it connect first",
    ),
    (
        (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError, asyncpg.InvalidSchemaNameError),
        StoreForeign,
        "; the schema 'stategraph' was changed by somebody else: restore it from a backup",
    ),
    (
        (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError),
        StoreUnavailable,
        "; check the user, the password and the database's name in the URL",
    ),
    (
        (asyncpg.InsufficientResourcesError, asyncpg.OperatorInterventionError, asyncpg.PostgresConnectionError),
        StoreUnavailable,
        "",
    ),
)
