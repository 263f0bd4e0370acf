"""Processes that die in the middle: what was acknowledged is there, and the dead drive nothing."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from stategraph.checkpoint import Effect, Lease
from stategraph.clock import ManualClock
from stategraph.testing.byhand import GATE, LEASE_MS, LONGER, begin, claimed, decide, visit
from stategraph.testing.child import children
from stategraph.testing.ordeal import DEAD, walk
from stategraph.testing.suite import Reopen, Suite

__all__ = ["Crashes"]


class Crashes(Suite):
    """Processes that die in the middle: what was acknowledged is there, and the dead drive nothing."""

    async def _survived(self, folder: Path, clock: ManualClock, ordeal: str) -> list[Any]:
        """What a process has told before it died."""
        with children(self, folder, clock.now(), 1) as (child,):
            child.tell({"ordeal": ordeal})
            told = []
            while (answer := await asyncio.to_thread(child.hear)) is not None:
                told.append(answer)
            assert child.ended() == DEAD, "it ended in another way than it should"
            return told

    async def test_what_was_acknowledged_outlives_its_process(
        self, folder: Path, reopen: Reopen, clock: ManualClock
    ) -> None:
        """Rows, a decision, a signal, an outcome and an intent; the row that was on its way is there whole, or not."""
        told = await self._survived(folder, clock, "in a row")
        store = reopen()
        clock.advance(LONGER)
        lease = await claimed(
            store
        )  # from here on nothing of the dead arrives any more: a server may still have had it
        rows = await store.history("r")
        assert [row.seq for row in rows] in ([*range(9)], [*range(10)])
        for what, answer in told:
            if what == "row":
                row = rows[answer[0]]
                assert [row.seq, row.status, row.at_ms] == answer
        assert [row.body for row in rows[1:6]] == [b'{"n":%d}' % step for step in range(5)]
        head, log = await store.head("r"), await store.load("r")
        assert head is not None
        assert log is not None
        assert (head.seq, head.status, head.epoch) == (len(rows) - 1, "running", 2)
        assert log.head == head
        (boundary,) = await store.boundaries("r")
        assert (boundary.state, boundary.decided and boundary.decided.by) == ("approved", "ann")
        assert await begin(store, lease, "mine", "told", step=6) == Effect("told", b'{"sent":1}')
        assert await begin(store, lease, "mine", "lost", step=6) == Effect("lost", None), "it is in doubt"
        doubt = replace(GATE, kind="in_doubt", effect="lost", step=6)
        asks = visit(6, "pending", doubt, kind="asked", effect="lost")
        assert await store.append(lease, len(rows) - 1, [asks]) is not None
        assert await decide(store, boundary=f"{len(rows)}.0") is not None

    async def test_the_dead_are_fenced(self, folder: Path, reopen: Reopen, clock: ManualClock) -> None:
        """Their lease holds until it is over; who claims then has a higher epoch, and theirs writes nothing any more."""
        await self._survived(folder, clock, "in a row")
        store, dead = reopen(), Lease("r", "w", 1, 0)
        assert await store.claim("r", "v", LEASE_MS) is None
        assert (await store.due())[0] == []
        clock.advance(LONGER)
        assert (await store.due())[0] == ["r"]
        lease = await claimed(store)
        seq = len(await store.history("r")) - 1
        assert (lease.epoch, lease.seq) == (2, seq)
        await self.refused(
            store,
            store.append(dead, seq, [visit(8)]),
            store.settle(dead, seq, "pending", b"{}"),
            store.renew(dead, LEASE_MS),
            store.release(dead),
            begin(store, dead, "again", "another", step=8),
        )
        assert await store.append(lease, seq, [visit(8, "completed")]) is not None

    async def test_runs_that_die_together_lose_nothing(self, folder: Path, reopen: Reopen, clock: ManualClock) -> None:
        """Rows that were written together are each there once they are acknowledged, and every log is without a gap."""
        told: dict[str, list[int]] = defaultdict(list)
        for run_id, (seq, _, _) in await self._survived(folder, clock, "side by side"):
            told[run_id].append(seq)
        store = reopen()
        assert sum(map(len, told.values())) == 100
        for run_id, seqs in told.items():
            log = await store.load(run_id)
            assert log is not None
            assert [row.seq for row in log.checkpoints] == [*range(log.head.seq + 1)]
            assert seqs == [*range(1, len(seqs) + 1)]
            assert log.head.seq >= seqs[-1], f"{run_id} has lost an acknowledged row"

    async def test_a_run_goes_on_after_its_process_has_died(
        self, folder: Path, reopen: Reopen, clock: ManualClock
    ) -> None:
        """A graph's: what is finished is not done again, what was under way is."""
        await self._survived(folder, clock, "in a node")
        store = reopen()
        again: list[str] = []
        graph = walk(store, work=lambda: again.append("last"))
        assert (await graph.info("r")).state == {"first": 1, "mail": "sent"}
        clock.advance(3600)
        events = [event.event_type async for event in graph.recover("r")]
        assert events == ["node_start", "state_update", "completed"]
        assert again == ["last"]
        assert (await graph.info("r")).state == {"first": 1, "mail": "sent", "last": 2}
