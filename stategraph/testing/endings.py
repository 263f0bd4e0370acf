"""Runs that are asked to end, and failed ones that are released."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stategraph.checkpoint import Checkpointer
from stategraph.clock import ManualClock
from stategraph.testing.byhand import (
    GATE,
    LEASE_MS,
    LONGER,
    cancel,
    create,
    decide,
    paused,
    retry,
    signal,
    states,
    verbs,
    visit,
)
from stategraph.testing.suite import Suite

__all__ = ["Endings"]


class Endings(Suite):
    """Runs that are asked to end, and failed ones that are released."""

    async def test_cancelling_a_free_run_ends_it(self, store: Checkpointer) -> None:
        """Its open boundaries are withdrawn, by whom and when; a second request is told that it has ended."""
        await paused(store)
        answer = await cancel(store)
        assert answer is not None
        assert answer.status == "cancelled"
        (boundary,) = await store.boundaries("r")
        assert boundary.state == "withdrawn"
        assert boundary.decided is not None
        assert boundary.decided.by == "ops"
        await self.refused(store, cancel(store, "again"), decide(store))

    async def test_cancelling_a_held_run_asks_its_driver(self, store: Checkpointer) -> None:
        """What is in flight is recorded; a boundary that it opens is withdrawn; then the driver settles."""
        lease = await create(store)
        answer = await cancel(store)
        assert answer is not None
        assert (answer.seq, answer.status) == (1, "running")
        await self.refused(store, cancel(store, "again"))
        answer = await store.append(lease, 0, [visit(0, "pending", GATE)])
        assert answer is not None
        assert answer.status == "running"
        assert await states(store) == ["withdrawn"]
        (boundary,) = await store.boundaries("r")
        assert boundary.decided is None, "nobody decided it"
        answer = await store.settle(lease, 2, "cancelled", b"{}")
        assert answer is not None
        assert answer.status == "cancelled"

    async def test_cancelling_again_finishes_what_a_dead_driver_was_asked(
        self, store: Checkpointer, clock: ManualClock
    ) -> None:
        """And the run ends as it was asked first: rejected, if a rejection came before."""
        lease = await create(store)
        await store.append(lease, 0, [visit(0, "running", GATE)])
        await decide(store, "rejected")
        clock.advance(LONGER)
        answer = await cancel(store)
        assert answer is not None
        assert answer.status == "rejected"
        head = await store.head("r")
        assert head is not None
        assert (head.status, head.ending) == ("rejected", "rejected")

    async def test_the_row_that_consumes_the_last_position_wins_over_a_request(self, store: Checkpointer) -> None:
        """A run that was asked to end may complete, if its driver has seen the request."""
        lease = await create(store)
        await cancel(store)
        answer = await store.append(lease, 1, [visit(0, "completed")])
        assert answer is not None
        assert answer.status == "completed"

    async def test_a_completion_counts_although_there_are_rows_unseen(self, store: Checkpointer) -> None:
        """When nothing is left, no request that came meanwhile can overtake it: the next cancel finds an ended run."""
        lease = await create(store)
        await cancel(store)
        answer = await store.append(lease, 0, [visit(0), visit(1, "completed", kind="route")])
        assert answer is not None
        assert (answer.seq, answer.status) == (3, "completed")
        await self.refused(store, cancel(store, "once more"), store.claim("r", "v", LEASE_MS))

    @pytest.mark.parametrize(("act", "actor"), [("", "ops"), (":x", "ops"), ("used", "ops"), ("stop", "")])
    async def test_an_operators_act_is_somebodys_and_new(self, store: Checkpointer, act: str, actor: str) -> None:
        """Nobody's, nameless and repeated cancels and retries are refused."""
        lease = await create(store)
        await signal(store, "used")
        await self.refused(store, cancel(store, act, actor))
        await store.append(lease, 1, [visit(0, "failed", kind="failed")])
        await self.refused(store, cancel(store, act, actor), retry(store, act, actor))

    async def test_only_a_failed_run_is_retried(self, store: Checkpointer) -> None:
        """It is ready then; its boundaries were open all the while, and deciding one did not change its status."""
        lease = await create(store)
        await self.refused(store, retry(store))
        await store.append(lease, 0, [visit(0, "running", GATE)])
        await store.append(lease, 1, [visit(1, "failed", kind="failed")])
        answer = await decide(store)
        assert answer is not None
        assert answer.status == "failed"
        answer = await retry(store)
        assert answer is not None
        assert answer.status == "ready"
        await self.refused(store, retry(store, "twice"))

    @pytest.mark.parametrize("end", ["completed", "rejected", "cancelled"])
    async def test_nothing_moves_a_run_that_has_ended(self, store: Checkpointer, clock: ManualClock, end: str) -> None:
        """No verb of its driver, of a person or of the clock; it is not claimed, and no worker is told of it."""
        lease = await create(store)
        await store.append(lease, 0, [visit(0, "running", replace(GATE, expires_at=clock.now() + 1, final=True))])
        if end == "completed":
            await decide(store)
            await store.append(lease, 2, [visit(1, "completed")])
        else:
            await (decide(store, "rejected") if end == "rejected" else cancel(store))
            await store.settle(lease, 2, end, b"{}")  # type: ignore[arg-type]
        head = await store.head("r")
        assert head is not None
        assert (head.status, head.seq, head.owner) == (end, 3, None)
        clock.advance(LONGER)
        calls = verbs(store)
        moves = "claim renew release append settle decide expire signal cancel retry effect_begin"
        await self.refused(store, *(calls[name]() for name in moves.split()))
        await self.refused(
            store,
            store.append(lease, 3, [visit(5)]),
            store.settle(lease, 3, "ready", b"{}"),
            store.signal("r", "paid", "7", actor="bank", act="another", body=b"{}"),
            cancel(store, "another"),
            retry(store, "another"),
        )
        assert await store.due() == ([], [])
