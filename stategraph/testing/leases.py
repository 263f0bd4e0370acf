"""A run and who drives it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stategraph.checkpoint import Checkpointer, Lease
from stategraph.clock import ManualClock
from stategraph.errors import CheckpointerError, InvalidRunId
from stategraph.testing.byhand import GATE, LEASE_MS, LONGER, cancel, claimed, create, paused, visit
from stategraph.testing.suite import Suite

__all__ = ["Leases"]


class Leases(Suite):
    """A run and who drives it."""

    async def test_a_new_run_is_its_creators_to_drive(self, store: Checkpointer, clock: ManualClock) -> None:
        """The lease of a run that is created running has epoch 1 and stands at row 0."""
        lease = await create(store)
        assert lease == Lease("r", "w", 1, 0)
        head = await store.head("r")
        assert head is not None
        assert (head.status, head.seq, head.epoch, head.owner, head.creator) == ("running", 0, 1, "w", "carol")
        assert head.lease_until == clock.now() + LEASE_MS
        (row,) = await store.history("r")
        assert (row.seq, row.kind, row.status, row.body, row.at_ms) == (0, "start", "running", b'{"n":0}', clock.now())

    async def test_a_run_may_be_created_ready_or_waiting(self, store: Checkpointer) -> None:
        """Nobody holds such a run; what its first row opens is open."""
        await create(store, "free", "ready")
        await create(store, "waits", "pending", replace(GATE, step=0))
        heads = {head.run_id: head for head in await store.runs()}
        assert [(heads[name].status, heads[name].owner, heads[name].epoch) for name in ("free", "waits")] == [
            ("ready", None, 0),
            ("pending", None, 0),
        ]
        (boundary,) = await store.boundaries()
        assert (boundary.id, boundary.state, boundary.node, boundary.digest) == ("waits:0.0", "open", "pay", "shown")

    async def test_an_id_is_taken_once(self, store: Checkpointer) -> None:
        """A second run of the same id is refused whatever its status, and the first is as it was."""
        await create(store)
        again = {"graph": "other", "fingerprint": "x", "creator": "eve", "body": b'{"n":9}'}
        await self.refused(store, store.create("r", status="running", owner="e", lease_ms=1, **again))  # type: ignore[arg-type]
        await cancel(store)
        await self.refused(store, store.create("r", status="ready", **again))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "run_id", ["", "a b", "a/b", "../r", "a\x00b", "a\nb", "é", "\ud800", "a" * 129, "a'--", None, 7]
    )
    async def test_a_hostile_run_id_is_refused(self, store: Checkpointer, run_id: Any) -> None:
        """Only 1 to 128 of `A-Za-z0-9._:-` name a run."""
        with pytest.raises(InvalidRunId):
            await create(store, run_id)
        assert await store.runs() == []

    @pytest.mark.parametrize("run_id", ["a" * 128, "A.z_0:9-", "-", ".."])
    async def test_every_allowed_character_names_a_run(self, store: Checkpointer, run_id: str) -> None:
        """The ids at the edge of what is allowed."""
        await create(store, run_id)
        assert [head.run_id for head in await store.runs()] == [run_id]

    async def test_a_run_needs_a_creator(self, store: Checkpointer) -> None:
        """Without one four eyes could not be told from two."""
        with pytest.raises(CheckpointerError):
            await create(store, creator="")
        assert await store.head("r") is None

    async def test_whoever_claims_next_has_a_higher_epoch(self, store: Checkpointer, clock: ManualClock) -> None:
        """A free run, and a held one whose lease is over, can be claimed; not a moment earlier."""
        await create(store, status="ready")
        first = await claimed(store, owner="a")
        assert (first.epoch, first.owner, first.seq) == (1, "a", 0)
        await self.refused(store, store.claim("r", "b", LEASE_MS))
        clock.advance(LEASE_MS / 1000 - 0.001)
        await self.refused(store, store.claim("r", "b", LEASE_MS))
        clock.advance(0.001)
        second = await claimed(store, owner="b")
        assert (second.epoch, second.owner) == (2, "b")

    async def test_a_run_at_rest_is_not_claimed(self, store: Checkpointer) -> None:
        """Waiting, failed and ended runs, and those that do not exist."""
        await paused(store, "waits")
        lease = await create(store, "broken")
        await store.append(lease, 0, [visit(0, "failed", kind="failed")])
        done = await create(store, "done")
        await store.append(done, 0, [visit(0, "completed")])
        await self.refused(
            store, *(store.claim(run_id, "v", LEASE_MS) for run_id in ("waits", "broken", "done", "nobody"))
        )

    async def test_renewing_holds_the_run_and_tells_what_has_happened(
        self, store: Checkpointer, clock: ManualClock
    ) -> None:
        """The answer has the log's end and whether the run is to end; a lost lease is answered with nothing."""
        lease = await create(store)
        clock.advance(20)
        assert await store.renew(lease, LEASE_MS) == Lease("r", "w", 1, 0)
        clock.advance(20)
        await self.refused(store, store.claim("r", "v", LEASE_MS))
        assert await cancel(store) is not None
        assert await store.renew(lease, LEASE_MS) == Lease("r", "w", 1, 1, "cancelled")
        clock.advance(LONGER)
        assert await store.renew(lease, LEASE_MS) is not None, "late, but nobody has claimed it meanwhile"
        clock.advance(LONGER)
        await claimed(store)
        await self.refused(store, store.renew(lease, LEASE_MS))

    async def test_a_released_run_is_free_at_once(self, store: Checkpointer) -> None:
        """Only its holder releases it, once."""
        lease = await create(store)
        await self.refused(store, store.release(replace(lease, epoch=2)), store.release(replace(lease, epoch=0)))
        assert await store.release(lease) is True
        head = await store.head("r")
        assert head is not None
        assert (head.status, head.owner, head.lease_until) == ("ready", None, None)
        await self.refused(store, store.release(lease), store.renew(lease, LEASE_MS))
        assert (await claimed(store)).epoch == 2
