"""A clock of which no two readings are the same, so that a row is known by its time."""

from __future__ import annotations

from stategraph import ManualClock


class Ticking(ManualClock):
    """A millisecond later at each look."""

    def now(self) -> int:
        """Milliseconds since the Unix epoch."""
        self._now += 1
        return self._now
