"""Clocks that jump by up to a day, forwards and back, at any look, while several drivers want the same run.

A lease may be over at once, or last for ever; clocks decide who may try, the epoch who writes. A driver that is replaced
may be in the middle of an effect, so that the receiver honours the key.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from stategraph import ManualClock, StateGraphError
from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.campaigns.stores import any_store
from tests.campaigns.verdict import Case, Found, concluded
from tests.programs.interposed import interposed
from tests.programs.order import build, finish

MANY = 5_000
SHARES = 64
DAY = 86_400


class Jumping(ManualClock):
    """It goes on by a millisecond at each look; now and then by up to a day, either way."""

    def __init__(self, dice: random.Random, share: float) -> None:
        super().__init__()
        self._dice = dice
        self._share = share
        self.jumps = 0

    def now(self) -> int:
        """Milliseconds since the Unix epoch, if one believes it."""
        self._now += 1
        if self._dice.random() < self._share:
            self.jumps += 1
            self._now += self._dice.randint(-DAY, DAY) * 1000
        return self._now


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """Three drivers on one store, each starting, recovering and clicking as if it were alone."""
    ledger = folder / "runs.ledger"

    async def case(dice: random.Random) -> Found:
        found, acknowledged = Found(), Acknowledged()
        policy: Policy = dice.choice(["ask", "keyed"])
        clock = Jumping(dice, dice.choice([0.02, 0.1, 0.3]))
        store = any_store(dice, folder, clock)

        async def around(verb: str, phase: Literal["before", "after"]) -> None:
            for _ in range(dice.randrange(6)):
                await asyncio.sleep(0)

        async def drive() -> None:
            for _ in range(8):
                try:
                    await finish(build(interposed(acknowledged.of(store), around), ledger, policy), ledger)
                except (StateGraphError, AssertionError) as error:
                    found.facts[type(error).__name__] += 1

        await asyncio.gather(*(drive() for _ in range(3)))
        found.facts["jumps"] += clock.jumps
        clock._share = 0.0
        clock.advance(3 * DAY)
        for _ in range(3):  # a lease from the future is waited for
            head = await store.head("r")
            if head is not None and head.lease_until is not None:
                clock.advance(max(0, head.lease_until - clock.now()) / 1000 + 1)
        found.wrong += await concluded(store, ledger, policy, acknowledged, replaced=True)
        await store.close()
        return found

    def sync(seed: int) -> Found:
        ledger.unlink(missing_ok=True)
        return asyncio.run(case(random.Random(seed)))

    yield sync
