"""The wire between a store and its PostgreSQL server: it counts round trips, is cut at the worst moment, or dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urlsplit

from tests.programs.postgres import socket_folder

Cut = Literal["before", "after"]
#: The end of what a server says when it has carried something out and committed it.
READY = b"Z\x00\x00\x00\x05I"


class Wire:
    """Forwards what is said. One turn is what the client says before it waits for the server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._folder = socket_folder(url)
        self._host, self._port = parts.hostname or "localhost", parts.port or 5432
        self.turns = 0
        #: How the next thing that is said ends: cut before the server hears it, or after it was answered.
        self.cut: Cut | None = None
        #: Which turn it is that `cut` is about, if not the next.
        self.cut_at = 0
        #: How often in a row: who says it again is cut again.
        self.cuts = 1
        #: Nothing that is said is heard, and nobody is told so.
        self.silent = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection, until one side ends it."""
        try:
            there = await (
                asyncio.open_unix_connection(f"{self._folder}/.s.PGSQL.{self._port}")
                if self._folder
                else asyncio.open_connection(self._host, self._port)
            )
        except OSError:
            writer.close()
            return
        back = asyncio.create_task(self._back(there[0], writer))
        self._tasks.add(back)
        back.add_done_callback(self._tasks.discard)
        await self._forth(reader, there[1])
        await back

    async def _forth(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while said := await reader.read(1 << 20):
            if self.silent:
                continue
            if self.cut == "before" and self.turns + 1 >= self.cut_at:
                self._was_cut()
                break
            self.turns += 1
            server.write(said)
        server.close()

    def _was_cut(self) -> None:
        self.cuts -= 1
        if self.cuts <= 0:
            self.cut, self.cuts = None, 1

    async def _back(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await server.read(1 << 20):
            if (
                self.cut == "after" and self.turns >= self.cut_at and said.endswith(READY)
            ):  # else it has only been prepared
                self._was_cut()
                break
            writer.write(said)
        writer.close()


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """A wire to the server, and the URL of its near end."""
    wire, parts = Wire(url), urlsplit(url)
    server = await asyncio.start_server(wire.accept, "127.0.0.1", 0)
    near = f"postgresql://{parts.username}@127.0.0.1:{server.sockets[0].getsockname()[1]}{parts.path}?sslmode=disable"
    try:
        yield wire, near
    finally:
        server.close()
        for task in list(wire._tasks):
            task.cancel()
        await asyncio.gather(*wire._tasks, return_exceptions=True)
