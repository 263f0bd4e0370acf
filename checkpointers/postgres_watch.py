"""Connections on which a server says nothing: they are given up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from checkpointers.postgres_connections import Connection

__all__ = ["Watch"]


class Watch:
    """Ends the connections of a loop on which a call has waited for too long.

    It looks from time to time, by one timer for all: a timer for each call is a good part of what a call costs here.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        #: Until when the call that is under way on a connection may wait, by the loop's clock.
        self._until: dict[Connection, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, connection: Connection, patience: float) -> None:
        """A call is made that may take so many seconds."""
        loop = asyncio.get_running_loop()
        self._until[connection] = loop.time() + patience
        if self._timer is None:
            self._timer = loop.call_later(self._interval, self._look, loop)

    def end(self, connection: Connection) -> bool:
        """The call is over; whether it was not given up."""
        return self._until.pop(connection, None) is not None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in [connection for connection, until in self._until.items() if until <= now]:
            self.end(connection)
            with suppress(asyncpg.InterfaceError):  # a pool has just taken it back
                connection.terminate()
        self._timer = loop.call_later(self._interval, self._look, loop) if self._until else None
