"""A store that is opened again, and stores that are open side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stategraph.checkpoint import Checkpointer, Effect
from stategraph.clock import ManualClock
from stategraph.errors import StoreClosed
from stategraph.testing.byhand import (
    GATE,
    LONGER,
    ROUTED,
    begin,
    claimed,
    create,
    decide,
    logged,
    paused,
    states,
    verbs,
    visit,
)
from stategraph.testing.snapshots import looping
from stategraph.testing.suite import Reopen, Suite

__all__ = ["Reopening"]


class Reopening(Suite):
    """A store that is opened again, and stores that are open side by side."""

    async def test_everything_is_there_again(self, store: Checkpointer, reopen: Reopen, clock: ManualClock) -> None:
        """Every kind of row, boundaries in every state, effects, a snapshot: as they were when it was closed."""
        await logged(store)
        await paused(store, "waits", replace(GATE, expires_at=clock.now() + 1), replace(ROUTED, needed=2, step=2))
        await decide(store, run_id="waits", boundary="1.1", actor="bob")
        await create(store, "free", "ready")
        await looping(store).run({"messages": []}, "long")
        before = await self.everything(store)
        await store.close()
        again = reopen()
        assert await self.everything(again) == before
        assert await decide(again, run_id="waits", boundary="1.1", actor="cid") is not None
        assert await states(again, "waits") == ["open", "approved"]

    async def test_what_was_refused_is_refused_again(
        self, store: Checkpointer, reopen: Reopen, clock: ManualClock
    ) -> None:
        """Completed visits, votes, acts, outcomes and epochs are not forgotten."""
        lease = await create(store)
        await store.append(lease, 0, [visit(0)])
        await begin(store, lease, "t", step=1)
        await store.effect_end("r", "k", "t", b"1")
        await store.append(lease, 1, [visit(1, "pending", replace(GATE, needed=2))])
        await decide(store, boundary="2.0", act="click")
        await store.close()
        again = reopen()
        await self.refused(
            again,
            decide(again, boundary="2.0", act="another click"),
            decide(again, boundary="2.0", actor="bob", act="click"),
            decide(again, boundary="2.0", actor="bob", digest="stale"),
            again.append(lease, 3, [visit(0)]),
        )
        assert await decide(again, boundary="2.0", actor="bob") is not None
        lease = await claimed(again)
        assert lease.epoch == 2
        await self.refused(again, again.append(lease, 4, [visit(0)]), again.append(lease, 4, [visit(1, attempt=1)]))
        assert await begin(again, lease, "u", step=1) == Effect("t", b"1")

    async def test_stores_side_by_side_see_the_same(self, store: Checkpointer, reopen: Reopen) -> None:
        """What one has answered the other tells at once, whichever writes."""
        stores = store, reopen()
        lease = await create(store)
        for step in range(6):
            here, there = stores[step % 2], stores[1 - step % 2]
            assert await here.append(lease, step, [visit(step)]) is not None
            assert await self.everything(there) == await self.everything(here)
            await self.refused(there, there.append(lease, step, [visit(step)]))

    async def test_a_lease_is_fenced_from_another_store(
        self, store: Checkpointer, reopen: Reopen, clock: ManualClock
    ) -> None:
        """Whoever claims through one store, the other refuses the older epoch from then on."""
        other = reopen()
        old = await create(store)
        assert await store.append(old, 0, [visit(0)]) is not None
        clock.advance(LONGER)
        new = await claimed(other)
        await self.refused(store, store.append(old, 1, [visit(1)]), begin(store, old, "t", step=1))
        assert await other.append(new, 1, [visit(1)]) is not None
        assert await store.append(new, 2, [visit(2)]) is not None, "a lease is not one store's"

    async def test_a_closed_store_says_so(self, store: Checkpointer) -> None:
        """Closing twice is fine; every other use is an error of its own."""
        await create(store)
        await store.close()
        await store.close()
        for verb, call in verbs(store).items():
            with pytest.raises(StoreClosed):
                assert await call() is not None, f"{verb} has answered"

    async def test_a_block_closes_its_store(self, store: Checkpointer) -> None:
        """Also when it is left by an error, which goes on."""

        async def leave() -> None:
            async with store as entered:
                assert entered is store
                await create(store)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await leave()
        with pytest.raises(StoreClosed):
            await store.head("r")
