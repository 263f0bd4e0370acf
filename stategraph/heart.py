"""Keeps the leases of this process's drivers: one thread, so that a node that blocks the event loop does not lose its run."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stategraph.checkpoint import Checkpointer, Lease

__all__ = ["renewed"]


@dataclass(slots=True)
class _Pulse:
    """One lease to renew, and whom to tell, in whose loop."""

    checkpointer: Checkpointer
    lease: Lease
    lease_ms: int
    loop: asyncio.AbstractEventLoop
    told: Callable[[Lease | None], None]
    #: By the monotonic clock, in seconds.
    due: float


class _Heart:
    """The thread and what it renews, each lease by a task of its own: one locked store costs no other its lease."""

    def __init__(self) -> None:
        self._pulses: dict[int, _Pulse] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._changed = asyncio.Event()
        self._wakes = 0.0
        self._renewals: set[asyncio.Task[None]] = set()

    def add(self, pulse: _Pulse) -> None:
        with self._lock:
            self._pulses[id(pulse)] = pulse
            if self._thread is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._beat, name="stategraph-heart", daemon=True)
                self._thread.start()
            elif pulse.due < self._wakes:
                self._loop.call_soon_threadsafe(self._changed.set)

    def remove(self, pulse: _Pulse) -> None:
        with self._lock:
            self._pulses.pop(id(pulse), None)

    def _beat(self) -> None:
        self._loop.run_until_complete(self._watch())

    async def _watch(self) -> None:
        while True:
            self._changed.clear()
            for pulse in self._due():
                renewal = self._loop.create_task(self._renew(pulse))
                self._renewals.add(renewal)
                renewal.add_done_callback(self._renewals.discard)
            try:
                async with asyncio.timeout(min(self._wakes - time.monotonic(), 3600.0)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _due(self) -> list[_Pulse]:
        """The leases to renew now; when to look again is noted."""
        with self._lock:
            now = time.monotonic()
            due = [pulse for pulse in self._pulses.values() if pulse.due <= now]
            for pulse in due:
                pulse.due = float("inf")  # while its renewal is under way
            self._wakes = min((pulse.due for pulse in self._pulses.values()), default=float("inf"))
        return due

    async def _renew(self, pulse: _Pulse) -> None:
        third = pulse.lease_ms / 3000
        try:
            answer = await pulse.checkpointer.renew(pulse.lease, pulse.lease_ms)
        except Exception:  # noqa: BLE001  # whatever ails one store: again soon, well before the lease is over
            pulse.due = time.monotonic() + third / 10
            self._changed.set()
            return
        pulse.due = time.monotonic() + third
        self._changed.set()
        with self._lock:
            if id(pulse) not in self._pulses:
                return
        try:
            pulse.loop.call_soon_threadsafe(pulse.told, answer)
        except RuntimeError:  # its loop has been closed: nobody drives any more, the lease may run out
            self.remove(pulse)


_heart = _Heart()


def _start_anew() -> None:
    global _heart
    _heart = _Heart()  # a forked child has no such thread, and its parent's leases are not its own


os.register_at_fork(after_in_child=_start_anew)


@contextmanager
def renewed(
    checkpointer: Checkpointer, lease: Lease, lease_ms: int, told: Callable[[Lease | None], None]
) -> Iterator[None]:
    """Renew the lease at each third of it (`lease_ms`); `told` hears each answer in this event loop, None for a lost lease."""
    pulse = _Pulse(checkpointer, lease, lease_ms, asyncio.get_running_loop(), told, time.monotonic() + lease_ms / 3000)
    heart = _heart
    heart.add(pulse)
    try:
        yield
    finally:
        heart.remove(pulse)
