"""What can be read of a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stategraph.checkpoint import Checkpointer, Effect, Opening
from stategraph.clock import ManualClock
from stategraph.errors import CheckpointerError
from stategraph.testing.byhand import (
    GATE,
    ROUTED,
    begin,
    cancel,
    claimed,
    create,
    decide,
    paused,
    retry,
    states,
    verbs,
    visit,
)
from stategraph.testing.suite import Suite

__all__ = ["Reading"]


class Reading(Suite):
    """What can be read of a store."""

    async def test_an_unknown_run_is_empty(self, store: Checkpointer) -> None:
        """Every way to read answers so, and every verb refuses."""
        await create(store)
        assert await store.head("nobody") is None
        assert await store.load("nobody") is None
        assert await store.history("nobody") == []
        assert await store.boundaries("nobody") == []
        assert await store.find_act("nobody", "x") is None
        await self.refused(
            store,
            store.claim("nobody", "w", 1),
            cancel(store, run_id="nobody"),
            retry(store, run_id="nobody"),
            decide(store, run_id="nobody"),
            store.expire("nobody", "1.0"),
            store.delete("nobody"),
        )

    async def test_runs_are_told_newest_first_page_by_page(self, store: Checkpointer) -> None:
        """Each once, by status or graph if that is asked for."""
        for number in range(10):
            await create(
                store, f"r{number}", "ready" if number % 2 else "running", graph="odd" if number % 2 else "even"
            )
        pages: list[list[str]] = [[head.run_id for head in await store.runs(limit=3)]]
        for _ in range(3):
            pages.append([head.run_id for head in await store.runs(limit=3, before=pages[-1][-1])])
        assert [len(page) for page in pages] == [3, 3, 3, 1]
        assert await store.runs(limit=3, before=pages[-1][-1]) == []
        assert [run_id for page in pages for run_id in page] == [f"r{number}" for number in reversed(range(10))]
        assert [head.run_id for head in await store.runs(status="ready", limit=2)] == ["r9", "r7"]
        assert [head.run_id for head in await store.runs(graph="even", before="r4")] == ["r2", "r0"]
        assert await store.runs(status="failed") == []
        assert await store.runs(before="nobody") == []

    async def test_a_page_does_not_move_when_runs_are_added(self, store: Checkpointer) -> None:
        """Whoever reads on gets what was there, once each, however many runs have begun or gone on meanwhile."""
        for number in range(6):
            await create(store, f"old{number}", "ready")
        told = [head.run_id for head in await store.runs(limit=2)]
        for added in range(3):
            await create(store, f"new{added}")
            await claimed(store, f"old{2 * added}")
            told += [head.run_id for head in await store.runs(limit=2, before=told[-1])]
        assert told == [f"old{number}" for number in reversed(range(6))]
        assert await store.runs(limit=0) == []
        assert len(await store.runs(limit=10**6)) == 9

    async def test_a_log_is_read_from_and_to_anywhere(self, store: Checkpointer) -> None:
        """`after` is what the reader has, `until` and `limit` where it stops."""
        lease = await create(store)
        for step in range(5):
            await store.append(lease, step, [visit(step)])

        async def seqs(**given: int) -> list[int]:
            log = await store.load("r", **given)
            assert log is not None
            return [row.seq for row in log.checkpoints]

        assert await seqs() == [0, 1, 2, 3, 4, 5]
        assert await seqs(after=2) == [3, 4, 5]
        assert await seqs(after=2, until=4) == [3, 4]
        assert await seqs(until=0) == [0]
        assert await seqs(until=99) == [0, 1, 2, 3, 4, 5]
        assert await seqs(after=5) == []
        assert await seqs(after=99) == []
        assert [row.seq for row in await store.history("r", after=1, limit=2)] == [2, 3]
        assert [row.seq for row in await store.history("r", after=4, limit=9)] == [5]
        assert await store.history("r", after=5) == []

    async def test_boundaries_are_told_oldest_first(self, store: Checkpointer, clock: ManualClock) -> None:
        """Of a run or of all, of one state if that is asked for."""
        await paused(store, "a", ROUTED, replace(ROUTED, step=2))
        clock.advance(1)
        await paused(store, "b")
        await decide(store, run_id="a", boundary="1.1")

        async def ids(run_id: str | None = None, **given: Any) -> list[str]:
            return [boundary.id for boundary in await store.boundaries(run_id, **given)]

        assert await ids() == ["a:1.0", "a:1.1", "b:1.0"]
        assert await ids("a") == ["a:1.0", "a:1.1"]
        assert await ids(state="open") == ["a:1.0", "b:1.0"]
        assert await ids("a", state="approved") == ["a:1.1"]
        assert await ids(limit=2) == ["a:1.0", "a:1.1"]

    async def test_a_boundary_comes_back_as_it_was_declared(self, store: Checkpointer, clock: ManualClock) -> None:
        """Every field of the opening."""
        opening = Opening(
            "question",
            "0.1",
            4,
            "ask",
            "d" * 64,
            True,
            None,
            None,
            2,
            ("ann", "bob"),
            True,
            None,
            "name",
            "key",
            1 << 45,
        )
        await paused(store, "r", opening)
        (boundary,) = await store.boundaries("r")
        fields = set(Opening.__slots__) - {"on_reject", "on_expire"}
        assert {name: getattr(boundary, name) for name in fields} == {name: getattr(opening, name) for name in fields}
        assert (boundary.opened, boundary.opened_ms, boundary.approvals) == (1, clock.now(), 0)
        (row,) = await store.history("r", after=0)
        assert row.openings == (opening,)

    async def test_a_worker_is_told_what_it_may_do(self, store: Checkpointer, clock: ManualClock) -> None:
        """Free runs and abandoned ones; not those that are held, wait or have ended."""
        await create(store, "free", "ready")
        await create(store, "held")
        await create(store, "abandoned", lease_ms=1000)
        await paused(store, "waits")
        done = await create(store, "done")
        await store.append(done, 0, [visit(0, "completed")])
        assert await store.due() == (["free"], [])
        clock.advance(1)
        runs, boundaries = await store.due()
        assert (sorted(runs), boundaries) == (["abandoned", "free"], [])
        assert len((await store.due(limit=1))[0]) == 1

    async def test_nothing_that_is_due_is_never_told(self, store: Checkpointer, clock: ManualClock) -> None:
        """A worker that takes a few at a time comes to all of them."""
        for number in range(5):
            await create(store, f"r{number}", "ready")
            await paused(store, f"w{number}", replace(GATE, expires_at=clock.now() + 1 + number))
        clock.advance(1)
        told: list[str] = []
        for _ in range(5):
            runs, boundaries = await store.due(limit=2)
            assert len(runs) <= 2
            assert len(boundaries) <= 2
            told += [*runs, *boundaries]
            for run_id in runs:
                await claimed(store, run_id)
            for boundary in boundaries:
                await store.expire(*boundary.split(":"))
        assert sorted(told) == [f"r{number}" for number in range(5)] + [f"w{number}:1.0" for number in range(5)]
        assert await store.due() == ([], [])

    async def test_a_log_is_read_in_pages(self, store: Checkpointer) -> None:
        """Each row once, in order, also while more are added."""
        lease = await create(store)
        told: list[int] = []
        for step in range(6):
            if step < 4:
                assert await store.append(lease, step, [visit(step)]) is not None
            page = await store.history("r", after=told[-1] if told else -1, limit=1 + step % 2)
            told += [row.seq for row in page]
        assert told == [0, 1, 2, 3, 4]

    async def test_only_ended_runs_are_removed(self, store: Checkpointer, clock: ManualClock) -> None:
        """With everything of them: their id, boundaries and effects are free again."""
        untold = await self.untold(store)
        lease = await create(store, "done")
        await begin(store, lease, "t")
        await store.append(lease, 0, [visit(0, "running", GATE)], snapshot=b"{}")
        await self.refused(store, store.delete("done"))
        await store.append(lease, 1, [visit(1, "completed")])
        await paused(store, "waits")
        await self.refused(store, store.delete("waits"))
        assert await store.delete("done") is True
        assert [head.run_id for head in await store.runs()] == ["waits"]
        assert [boundary.run_id for boundary in await store.boundaries()] == ["waits"]
        assert await self.untold(store) == untold
        lease = await create(store, "done")
        assert await begin(store, lease, "u") == Effect("u", None)
        assert await states(store, "done") == []

    async def test_old_ended_runs_are_pruned(self, store: Checkpointer, clock: ManualClock) -> None:
        """Those that ended before the time; a waiting run stays however old it is."""
        await paused(store, "waits")
        for name in ("old", "new"):
            clock.advance(10)
            lease = await create(store, name)
            await store.append(lease, 0, [visit(0, "completed")])
        assert await store.prune(clock.now()) == 1
        assert sorted(head.run_id for head in await store.runs()) == ["new", "waits"]
        assert await store.prune(clock.now()) == 0
        assert await store.prune(clock.now() + 1) == 1
        assert await store.boundaries(state="approved") == []

    @pytest.mark.parametrize(
        "run_id", ["", "' OR '1'='1", "%", "a\x00", "r\x00", "r ", "R", "\ud800", "r:1.0", "x" * 10_000]
    )
    async def test_an_id_that_names_no_run_finds_none(self, store: Checkpointer, run_id: str) -> None:
        """Whatever is in it: a verb answers as for any run that is not there, or says that it is no id."""
        await paused(store)
        before = await self.everything(store)
        for verb, call in verbs(store, run_id).items():
            if verb in ("create", "due", "prune", "renew", "release", "append", "settle", "effect_begin"):
                continue  # they are about no run that exists, or about one that the store itself has given a lease of
            try:
                assert await call() in (None, False, [])
            except CheckpointerError:
                assert not run_id.isprintable(), f"{verb} fails for {run_id!r}"
        assert await self.everything(store) == before
