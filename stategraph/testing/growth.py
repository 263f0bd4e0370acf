"""What a long history must not cost: space and work, counted, as far as the author says how."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from stategraph.checkpoint import Checkpointer, Lease
from stategraph.clock import ManualClock
from stategraph.testing.byhand import cancel, create, decide, paused, visit
from stategraph.testing.suite import Suite

__all__ = ["Growth"]

#: Rows of one append, appends of one portion.
ROWS, APPENDS = 10, 30


async def grow(store: Checkpointer, run_id: str, seen: int, appends: int = APPENDS) -> int:
    """The run's log, longer by a portion of equal rows; where it ends then."""
    lease = Lease(run_id, "w", 1, 0)
    for _ in range(appends):
        rows = [visit(seen + row, body=b'{"n":"%s"}' % (b"x" * 200)) for row in range(ROWS)]
        written = await store.append(lease, seen, rows)
        assert written is not None
        seen = written.seq
    return seen


class Growth(Suite):
    """What a long history must not cost: space and work, counted, as far as the author says how."""

    async def test_a_row_takes_no_more_space_in_a_long_log(self, folder: Path, clock: ManualClock) -> None:
        """Of five equal portions the last makes the closed store grow by no more than the second does."""
        sizes, seen = [], 0
        for portion in range(5):
            async with self.open(folder, clock) as store:
                if portion == 0:
                    await create(store)
                seen = await grow(store, "r", seen)
            size = await self.size(folder)
            if size is None:
                pytest.skip(f"{type(self).__name__} cannot tell how much a closed store takes: write size(folder)")
            sizes.append(size)
        growth = [after - before for before, after in pairwise(sizes)]
        assert growth[0] > 0
        assert growth[-1] < 1.5 * growth[0], growth

    async def _worked(self, store: Checkpointer) -> int:
        """What the store has done by now."""
        work = await self.work(store)
        if work is None:
            pytest.skip(f"{type(self).__name__} cannot tell what its store has done: write work(store)")
        return work

    async def test_a_row_is_no_more_work_in_a_long_log(self, store: Checkpointer) -> None:
        """An append after a thousand rows does about what one after thirty does."""
        await create(store)
        seen, costs = await grow(store, "r", 0, 3), []
        for appends in (100, 0):
            before = await self._worked(store)
            seen = await grow(store, "r", seen, 5)
            costs.append(await self._worked(store) - before)
            seen = await grow(store, "r", seen, appends)
        assert costs[1] < 1.5 * costs[0], costs

    async def test_a_poll_is_no_more_work_when_much_has_ended(self, store: Checkpointer) -> None:
        """A worker asks for what is due again and again, and most runs have ended or wait."""
        costs = []
        await create(store, "free", "ready")
        for many in (6, 60):
            for number in range(many):
                await paused(store, f"ended-{many}-{number}")
                await cancel(store, run_id=f"ended-{many}-{number}")
                await paused(store, f"waits-{many}-{number}")
            before = await self._worked(store)
            assert await store.due() == (["free"], [])
            costs.append(await self._worked(store) - before)
        assert costs[1] < 1.5 * costs[0] + 10, costs

    async def test_a_decision_is_no_more_work_among_many(self, store: Checkpointer) -> None:
        """Whatever other runs there are, and however long this one is."""
        costs = []
        for many in (6, 60):
            for number in range(many):
                await paused(store, f"waits-{many}-{number}")
            await create(store, f"r{many}")
            seen = await grow(store, f"r{many}", 0, many // 5)
            await store.settle(Lease(f"r{many}", "w", 1, 0), seen, "pending", b"{}")
            before = await self._worked(store)
            assert await decide(store, run_id=f"waits-{many}-5") is not None
            costs.append(await self._worked(store) - before)
        assert costs[1] < 1.5 * costs[0] + 10, costs
