"""The rows that a driver appends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from stategraph.checkpoint import Checkpoint, Checkpointer, Written
from stategraph.clock import ManualClock
from stategraph.errors import CheckpointerError
from stategraph.testing.byhand import (
    GATE,
    LEASE_MS,
    LONGER,
    begin,
    cancel,
    claimed,
    create,
    decide,
    paused,
    retry,
    signal,
    states,
    visit,
    written,
)
from stategraph.testing.suite import Suite

__all__ = ["Rows"]


class Rows(Suite):
    """The rows that a driver appends."""

    async def test_a_drivers_row_is_the_logs_next(self, store: Checkpointer, clock: ManualClock) -> None:
        """The store gives the seq and the time; the row comes back as it was written."""
        lease = await create(store)
        clock.advance(1)
        written = await store.append(lease, 0, [visit(0, "completed", path="0.1/3.0", attempt=0)])
        assert written == Written(1, "completed", clock.now())
        row = (await store.history("r"))[1]
        assert row == Checkpoint("r", 1, "node", "completed", b'{"n":1}', clock.now(), 1, "0.1/3.0", 0, 0)
        assert await store.find_act("r", "nothing of that name") is None

    async def test_a_lost_acknowledgement_repeats_nothing(self, store: Checkpointer) -> None:
        """The same append again, with any attempt and any kind, is refused: the visit is completed once."""
        lease = await create(store)
        assert await store.append(lease, 0, [visit(0)]) is not None
        await self.refused(
            store,
            store.append(lease, 0, [visit(0)]),
            store.append(lease, 1, [visit(0)]),
            store.append(lease, 1, [visit(0, attempt=1)]),
            store.append(lease, 1, [visit(0, kind="route")]),
            store.append(lease, 1, [visit(0, kind="join", attempt=3)]),
            store.append(lease, 1, [visit(0, "failed", kind="failed", attempt=1)]),
            store.append(lease, 1, [visit(0, "pending", GATE, kind="asked", attempt=2)]),
        )

    async def test_a_failed_attempt_leaves_the_visit_to_the_next(self, store: Checkpointer) -> None:
        """One row per attempt; the visit is completed by a later one."""
        lease = await create(store)
        assert await store.append(lease, 0, [visit(0, "failed", kind="failed")]) is not None
        assert await retry(store) is not None
        lease = await claimed(store)
        await self.refused(
            store,
            store.append(lease, 2, [visit(0)]),
            store.append(lease, 2, [visit(0, "failed", kind="failed")]),
            store.append(lease, 2, [visit(0, "pending", kind="asked")]),
        )
        assert await store.append(lease, 2, [visit(0, attempt=1)]) is not None
        await self.refused(store, store.append(lease, 3, [visit(0, attempt=1)]))

    async def test_a_stale_driver_writes_nothing(self, store: Checkpointer, clock: ManualClock) -> None:
        """Once another has claimed the run, no verb of the old lease is accepted."""
        old = await create(store)
        clock.advance(LONGER)
        new = await claimed(store)
        await self.refused(
            store,
            store.append(old, 0, [visit(0)]),
            store.append(old, 0, [visit(0, "failed", kind="failed")]),
            store.append(replace(old, epoch=3), 0, [visit(0)]),
            store.settle(old, 0, "failed", b"{}"),
            store.renew(old, LEASE_MS),
            store.release(old),
            begin(store, old, "t"),
        )
        assert await store.append(new, 0, [visit(0)]) is not None

    async def test_the_driver_of_a_removed_run_writes_nothing_into_a_new_one(
        self, store: Checkpointer, clock: ManualClock
    ) -> None:
        """Both runs have the same id and count their epochs from the beginning, but a lease is its owner's as well."""
        old = await create(store)
        clock.advance(LONGER)
        assert await cancel(store) is not None
        assert await store.delete("r")
        await create(store, status="ready")
        new = await claimed(store)
        assert (new.epoch, new.owner) != (old.epoch, old.owner)
        stale = replace(old, epoch=new.epoch)
        await self.refused(
            store,
            store.append(stale, 0, [visit(0)]),
            store.append(stale, 0, [visit(0, "failed", kind="failed")]),
            store.append(stale, 0, [visit(0), visit(1)]),
            store.settle(stale, 0, "failed", b"{}"),
            store.renew(stale, LEASE_MS),
            store.release(stale),
            begin(store, stale, "t"),
        )
        assert await store.append(new, 0, [visit(0)]) is not None

    async def test_only_a_running_run_is_written_by_its_driver(self, store: Checkpointer) -> None:
        """Waiting, decided, failed and ended runs take no driver's row even with the last epoch."""
        lease = await paused(store)
        rows = [visit(5)], [visit(5, "failed", kind="failed")]
        await self.refused(store, *(store.append(lease, 1, row) for row in rows))
        await decide(store)
        await self.refused(store, *(store.append(lease, 2, row) for row in rows))
        await self.refused(store, store.settle(lease, 2, "completed", b"{}"))
        await cancel(store)
        await self.refused(store, *(store.append(lease, 3, row) for row in rows))

    async def test_two_appends_of_one_visit_have_one_winner(self, store: Checkpointer) -> None:
        """Also when they are under way at the same time."""
        lease = await create(store)
        answers = await asyncio.gather(*(store.append(lease, 0, [visit(0)]) for _ in range(20)))
        assert [answer for answer in answers if answer is not None] == [await written(store, 1)]
        assert (await store.history("r"))[-1].seq == 1

    async def test_a_stop_counts_only_for_who_has_seen_everything(self, store: Checkpointer) -> None:
        """A signal that the driver has not seen turns its pause into running: no wakeup is lost."""
        lease = await create(store)
        assert await signal(store, "s1")
        answer = await store.append(lease, 0, [visit(0, "pending", GATE)])
        assert answer is not None
        assert (answer.seq, answer.status) == (2, "running")
        assert await states(store) == ["open"]
        answer = await store.append(lease, 2, [visit(1, "pending")])
        assert answer is not None
        assert answer.status == "pending"

    async def test_a_rest_needs_the_logs_end_exactly(self, store: Checkpointer) -> None:
        """A driver that settles has seen every row, and invents none."""
        lease = await create(store)
        await signal(store, "s1")
        await self.refused(store, *(store.settle(lease, seen, "pending", b"{}") for seen in (-1, 0, 2)))
        assert await store.settle(lease, 1, "pending", b"{}") == await written(store, 2)
        await self.refused(store, store.settle(lease, 2, "completed", b"{}"))

    async def test_the_rows_of_one_append_stand_or_fall_together(self, store: Checkpointer) -> None:
        """A node's row and its router's failure get consecutive seqs; if the second cannot be, the first is not."""
        lease = await create(store)
        both = [visit(0), visit(1, "failed", kind="failed")]
        answer = await store.append(lease, 0, both)
        assert answer is not None
        assert (answer.seq, answer.status) == (2, "failed")
        assert [row.status for row in await store.history("r")] == ["running", "running", "failed"]
        await retry(store)
        lease = await claimed(store)
        before = await self.everything(store)
        with pytest.raises(CheckpointerError):
            await store.append(lease, 3, [visit(2), visit(0)])
        assert await self.everything(store) == before
        await self.refused(store, store.append(lease, 3, both))

    async def test_one_and_the_same_row_twice_in_an_append_leaves_no_trace(self, store: Checkpointer) -> None:
        """The second cannot be, so the first is not, even if they are one object."""
        lease = await create(store)
        before, row = await self.everything(store), visit(0)
        with pytest.raises(CheckpointerError):
            await store.append(lease, 0, [row, row])
        assert await self.everything(store) == before

    async def test_a_run_does_not_end_as_nobody_asked(self, store: Checkpointer) -> None:
        """`rejected` and `cancelled` need a request: proposed without one they are an error, and nothing is stored."""
        lease = await create(store)
        before = await self.everything(store)
        for status in ("rejected", "cancelled"):
            with pytest.raises(CheckpointerError):
                await store.append(lease, 0, [visit(0, status)])
            with pytest.raises(CheckpointerError):
                await store.settle(lease, 0, status, b"{}")
        assert await self.everything(store) == before

    async def test_appends_of_many_runs_at_once_are_each_on_their_own(self, store: Checkpointer) -> None:
        """Committed together, answered apart: a stale one, a twin and a broken one spoil nothing for the others."""
        leases = [await create(store, f"r{number}") for number in range(4)]
        alone, twin, other, stale, broken, failed = await asyncio.gather(
            store.append(leases[0], 0, [visit(0)]),
            store.append(leases[1], 0, [visit(0)]),
            store.append(leases[1], 0, [visit(0)]),
            store.append(replace(leases[2], epoch=7), 0, [visit(0)]),
            store.append(leases[2], 0, [visit(0, "rejected")]),
            store.append(leases[3], 0, [visit(0, "failed", kind="failed")]),
            return_exceptions=True,
        )
        assert isinstance(broken, CheckpointerError)
        assert (alone, failed) == (await written(store, 1, "r0"), await written(store, 1, "r3"))
        assert {twin, other} == {await written(store, 1, "r1"), None}
        assert stale is None
        assert [(head.seq, head.status) for head in await store.runs()] == [
            (1, "failed"), (0, "running"), (1, "running"), (1, "running"),
        ]  # fmt: skip

    async def test_a_mistaken_append_leaves_no_trace(self, store: Checkpointer) -> None:
        """Rows that exclude each other, or that open what cannot be read: an error, and nothing of them is stored."""
        lease = await create(store)
        before = await self.everything(store)
        for mistaken in (
            [visit(1, "running", GATE), visit(1)],
            [visit(1), visit(1, "failed", kind="failed", attempt=1)],
            [visit(1, "failed", kind="failed"), visit(1, "pending", kind="asked")],
            [visit(1), visit(2)._replace(opens="[")],
        ):
            with pytest.raises((CheckpointerError, ValueError)):
                await store.append(lease, 0, mistaken, b"{}")
            assert await self.everything(store) == before
        assert await store.append(lease, 0, [visit(0)]) is not None

    @pytest.mark.parametrize("turns", range(6))
    async def test_an_append_that_is_given_up_is_there_or_not(self, store: Checkpointer, turns: int) -> None:
        """Cancelled while it is under way, after so many turns of the loop: whole or not at all, and the store goes on."""
        lease = await create(store)
        await store.append(lease, 0, [visit(0)])
        under_way = [asyncio.ensure_future(store.append(lease, 1, [visit(1), visit(2, "running", GATE)])) for _ in "ab"]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        answer = await store.append(lease, 1, [visit(1), visit(2, "running", GATE)])
        assert answer in (None, Written(3, "running", store.clock.now()))
        rows = await store.history("r")
        assert [(row.seq, row.step) for row in rows] == [(0, None), (1, 0), (2, 1), (3, 2)]
        assert await states(store) == ["open"]
        assert await store.append(lease, 3, [visit(3)]) is not None
