"""Connections to a PostgreSQL server: those that we open, and those of the user's own pool."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from checkpointers.postgres_address import Address
from checkpointers.postgres_errors import is_passing, translated

__all__ = ["Connection", "Connections", "OwnConnections", "PooledConnections"]

Connection: TypeAlias = "asyncpg.Connection[Any] | PoolConnectionProxy[Any]"


class Connections(Protocol):
    """Where the calls of one event loop get their connections."""

    async def take(self) -> Connection:
        """A connection for one call; waits while all are taken."""
        ...

    def give_back(self, connection: Connection) -> None:
        """It may be taken again."""
        ...

    def drop(self, connection: Connection) -> None:
        """It is in the middle of something."""
        ...

    def lose(self, connection: Connection) -> None:
        """It is dead."""
        ...

    async def close(self) -> None:
        """Close what is ours."""
        ...


class OwnConnections:
    """Opened when they are needed and kept, at most `limit` of them.

    Behind a pooler a prepared statement may be gone at the next call, or be somebody else's under the same name: there
    none is kept, and a call sends its statement first. A pooler is known by the process id that it invents.
    """

    def __init__(self, address: Address, limit: int, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._free = asyncio.Semaphore(limit)
        self._idle: list[asyncpg.Connection[Any]] = []
        self._was_there = False
        self._is_pooler = False
        self._closed = False

    async def take(self) -> Connection:
        """An idle connection, or a new one."""
        await self._free.acquire()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        try:
            return await self._connect()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep it for the next call."""
        self._free.release()
        if self._closed:
            connection.terminate()
        elif not connection.is_closed():
            self._idle.append(connection)  # type: ignore[arg-type]  # it is one of ours

    def drop(self, connection: Connection) -> None:
        """Forget it."""
        self._free.release()
        if not connection.is_closed():
            connection.terminate()

    def lose(self, connection: Connection) -> None:
        """Forget it, and the idle ones with it: they went to the same server."""
        self.drop(connection)
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Close the idle ones now, and the others when they are given back."""
        self._closed = True
        while self._idle:
            connection = self._idle.pop()
            try:
                await connection.close(timeout=self._timeout)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()

    async def _connect(self) -> asyncpg.Connection[Any]:
        """A new connection. One that was there before is waited for: a server that is restarted comes back."""
        deadline, pause = time.monotonic() + self._timeout, 0.05
        while True:
            try:
                connection = await self._open()
            except Exception as error:  # noqa: BLE001  # whatever it is, its text may hold the password
                if not is_passing(error, self._was_there) or time.monotonic() + pause > deadline:
                    raise translated(error, str(self._address), self._address.scrubbed(error)) from None
            else:
                self._was_there = True
                return connection
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.5)

    async def _open(self) -> asyncpg.Connection[Any]:
        connection = await self._driver()
        if self._is_pooler or await self._is_direct(connection):
            return connection
        self._is_pooler = True
        await connection.close(timeout=self._timeout)
        return await self._driver()

    async def _is_direct(self, connection: asyncpg.Connection[Any]) -> bool:
        """Whether the process at the other end is the one that the server named when it was called."""
        named = connection.get_server_pid()
        try:
            answer = await connection.execute(f"SELECT 1 WHERE pg_backend_pid() = {named:d}", timeout=self._timeout)
        except BaseException:
            connection.terminate()
            raise
        return answer == "SELECT 1"

    async def _driver(self) -> asyncpg.Connection[Any]:
        return await asyncpg.connect(
            self._address.url,
            timeout=self._timeout,
            statement_cache_size=0 if self._is_pooler else 100,
            server_settings=None if self._address.is_named else {"application_name": "stategraph"},
        )


class PooledConnections:
    """The user's own pool: how its connections are made, and how many there are, is the user's business."""

    def __init__(self, pool: asyncpg.Pool[Any], timeout: float) -> None:
        self._pool = pool
        self._timeout = timeout
        self._given_back: set[asyncio.Task[None]] = set()

    async def take(self) -> Connection:
        """One of the pool's."""
        try:
            return await self._pool.acquire(timeout=self._timeout)
        except Exception as error:  # noqa: BLE001  # whatever it is, its text may be of the user's connection
            raise translated(error, "the pool", str(error)) from None

    def give_back(self, connection: Connection) -> None:
        """Let the pool have it; the pool resets it, which nobody waits for."""
        task = asyncio.get_running_loop().create_task(self._pool.release(connection))  # type: ignore[arg-type]
        self._given_back.add(task)
        task.add_done_callback(self._was_given_back)

    def drop(self, connection: Connection) -> None:
        """Let the pool have it closed."""
        with suppress(asyncpg.InterfaceError):  # the pool has found out by itself, and has taken it back
            connection.terminate()
        self.give_back(connection)

    def lose(self, connection: Connection) -> None:
        """The same; which others are dead the pool finds out."""
        self.drop(connection)

    def _was_given_back(self, task: asyncio.Task[None]) -> None:
        self._given_back.discard(task)
        if not task.cancelled():
            task.exception()  # the pool replaces what could not be reset; nobody needs to be told

    async def close(self) -> None:
        """Leave the pool as it was."""
        await asyncio.gather(*self._given_back, return_exceptions=True)
