"""The time, as everything in stategraph is told it: one object, so that a test can hold it still."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """What time it is, and waiting for a time. Clocks give liveness, never safety."""

    def now(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...

    async def sleep_until(self, due: int) -> None:
        """Return when `now()` has reached `due` (milliseconds since the Unix epoch)."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    async def sleep_until(self, due: int) -> None:
        """Return when the wall clock has reached `due`."""
        while (left := due - self.now()) > 0:  # noqa: ASYNC110  # for a time, again: the wall clock may be set back
            await asyncio.sleep(left / 1000)


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._now = now
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> int:
        """Milliseconds since the Unix epoch."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock and wake who waits for a time that has come."""
        self._now += round(seconds * 1000)
        for due, sleeper in self._sleepers:
            if due <= self._now and not sleeper.done():
                sleeper.set_result(None)
        self._sleepers = [(due, sleeper) for due, sleeper in self._sleepers if not sleeper.done()]

    async def sleep_until(self, due: int) -> None:
        """Return when the clock was moved to `due`."""
        if due > self._now:
            sleeper = asyncio.get_running_loop().create_future()
            self._sleepers.append((due, sleeper))
            await sleeper
