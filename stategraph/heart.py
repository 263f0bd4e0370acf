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
    """The thread and what it renews; it is started with the first lease and sleeps while there is none."""

    def __init__(self) -> None:
        self._pulses: dict[int, _Pulse] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes = float("inf")

    def add(self, pulse: _Pulse) -> None:
        with self._changed:
            self._pulses[id(pulse)] = pulse
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="stategraph-heart", daemon=True)
                self._thread.start()
            if pulse.due < self._wakes:
                self._changed.notify()

    def remove(self, pulse: _Pulse) -> None:
        with self._changed:
            self._pulses.pop(id(pulse), None)

    def _beat(self) -> None:
        loop = asyncio.new_event_loop()
        while True:
            loop.run_until_complete(self._renew_all(self._due()))

    async def _renew_all(self, due: list[_Pulse]) -> None:
        await asyncio.gather(*map(self._renew, due))  # side by side: one locked store costs no other its lease

    def _due(self) -> list[_Pulse]:
        with self._changed:
            while True:
                now = time.monotonic()
                due = [pulse for pulse in self._pulses.values() if pulse.due <= now]
                if due:
                    return due
                self._wakes = min((pulse.due for pulse in self._pulses.values()), default=float("inf"))
                self._changed.wait(min(self._wakes - now, 3600.0))

    async def _renew(self, pulse: _Pulse) -> None:
        third = pulse.lease_ms / 3000
        try:
            answer = await pulse.checkpointer.renew(pulse.lease, pulse.lease_ms)
        except Exception:  # noqa: BLE001  # whatever ails one store: again soon, well before the lease is over
            pulse.due = time.monotonic() + third / 10
            return
        pulse.due = time.monotonic() + third
        with self._changed:
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
