"""The time of a database server, as it is known here."""

from __future__ import annotations

import asyncio
import time

__all__ = ["ServerClock"]


class ServerClock:
    """This machine's wall clock, set by what the server says with every row that it writes."""

    def __init__(self) -> None:
        #: How far the server is ahead (ms).
        self._ahead = 0

    def now(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000 + self._ahead

    async def sleep_until(self, due: int) -> None:
        """Return when the server's clock has reached `due`."""
        while (left := due - self.now()) > 0:  # noqa: ASYNC110  # for a time, again: the clock may be set meanwhile
            await asyncio.sleep(left / 1000)

    def hear(self, told: int, asked: int, heard: int) -> None:
        """The server said `told` after we asked and before we heard: what is known must lie in between (all ms)."""
        self._ahead = min(max(self._ahead, told - heard), told - asked)
