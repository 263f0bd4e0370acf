"""What a walk has in hand: an open store, the clock that it sets, a look at the effects; the times and texts it knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from stategraph.checkpoint import Checkpointer
from stategraph.clock import Clock
from tests.programs.kept import effects

__all__ = ["AFTER", "BEFORE", "EXPIRES", "LEASE_MS", "SHOWN", "TOKEN", "Bench", "Dial", "Peek"]

#: Milliseconds: before and after the time at which everything expires that does; leases end long after both.
BEFORE, EXPIRES, AFTER, LEASE_MS = 1_000, 10**9, 2 * 10**9, 10**12
#: The digest of what every boundary shows.
SHOWN = "shown"
#: The token of the effects of other runs.
TOKEN = "a bystander's"

#: The effects that a store knows, (key, run id, policy, token, outcome), which no verb tells of.
Peek: TypeAlias = Callable[[Checkpointer], Awaitable[list[tuple[Any, ...]]]]


class Dial(Clock):
    """A clock that goes on from where it was set to, a millisecond each time it is read."""

    def __init__(self) -> None:
        self.at = BEFORE
        self._read = 0

    def now(self) -> int:
        self._read += 1
        return self.at + self._read

    async def sleep_until(self, due: int) -> None:
        raise AssertionError(f"a store does not wait (until {due})")


class Bench(NamedTuple):
    """An empty store on a clock; without `peek` its effects are known by the verbs' answers alone."""

    store: Checkpointer
    clock: Dial
    peek: Peek | None = effects

    async def effects(self) -> list[tuple[Any, ...]]:
        """The effects, as far as one can look at them."""
        return [] if self.peek is None else await self.peek(self.store)
