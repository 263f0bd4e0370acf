"""What was changed behind the store's back is noticed when it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from stategraph.clock import ManualClock
from stategraph.errors import CorruptCheckpoint
from stategraph.testing.byhand import create, decide, paused, visit
from stategraph.testing.suite import Suite

__all__ = ["Damage"]


class Damage(Suite):
    """What was changed behind the store's back is noticed when it is read."""

    async def test_a_row_that_was_changed_is_served_to_nobody(self, folder: Path, clock: ManualClock) -> None:
        """Run and row are named, however the log is read; what is sound is told as ever."""
        async with self.open(folder, clock) as store:
            for run_id in ("r", "sound"):
                await paused(store, run_id)
                await decide(store, run_id=run_id)
            lease = await store.claim("r", "v", 1)
            assert lease is not None
            await store.append(lease, 2, [visit(1)])
            if not store.durable:
                pytest.skip(f"{type(store).__name__} is not durable: nobody gets at its runs but itself")
        await self.damage(folder)
        async with self.open(folder, clock) as store:
            for read in (store.load, store.history):
                for after in (-1, 0):
                    with pytest.raises(CorruptCheckpoint) as told:
                        await read("r", after=after)
                    assert (told.value.run_id, told.value.seq) == ("r", 1)
            assert [row.seq for row in await store.history("r", limit=1)] == [0]
            assert [row.seq for row in await store.history("r", after=1)] == [2, 3]
            assert [row.seq for row in await store.history("sound")] == [0, 1, 2]
            await create(store, "new")
