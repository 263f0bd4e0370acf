"""What earlier and later versions of a store have left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from stategraph.checkpoint import ENDED, Checkpointer
from stategraph.clock import ManualClock
from stategraph.errors import StoreForeign
from stategraph.run import fold
from stategraph.testing.byhand import create, paused
from stategraph.testing.golden import KEPT, fill, go_on, workflow
from stategraph.testing.suite import Suite

__all__ = ["Versions"]


async def check_kept(store: Checkpointer) -> None:
    """Each run is in its status, its log is sound, and its fold is the same with the snapshot and without."""
    assert {head.run_id: head.status for head in await store.runs()} == KEPT
    for run_id in KEPT:
        log, rows = await store.load(run_id), await store.history(run_id)
        assert log is not None
        assert [row.seq for row in rows] == [*range(log.head.seq + 1)]
        shortened = fold(run_id, log.checkpoints, log.snapshot[1] if log.snapshot else None)
        assert shortened.content() == fold(run_id, rows).content()
        assert (log.snapshot is not None) == (run_id == "long")
    doubt = await store.boundaries("doubt", state="open")
    assert [boundary.kind for boundary in doubt] == ["in_doubt"]


async def check_it_goes_on(store: Checkpointer) -> None:
    """Each run is brought to its end by the code of today."""
    for run_id, status in KEPT.items():
        assert await go_on(store, run_id) == (status if status in ENDED else "completed")
        run = await workflow(store).info(run_id)
        if run.status == "completed":
            assert (run.state["paid"], run.state["closed"]) == (7, True)
            assert [row.seq for row in await store.history(run_id)] == [*range(run.seq + 1)]
    assert await store.boundaries(state="open") == []
    for run_id in KEPT:
        assert await store.delete(run_id) is True
    assert await store.runs() == []


class Versions(Suite):
    """What earlier and later versions of a store have left."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each golden store."""
        if "kept" in metafunc.fixturenames:
            kept = list(self.golden)
            none = f"{type(self).__name__} keeps nothing of earlier versions: fill a store, and name its copy in golden"
            nothing = pytest.param(None, marks=pytest.mark.skip(none))
            metafunc.parametrize("kept", kept or [nothing], ids=[path.name for path in kept] or ["none"])

    async def test_what_an_earlier_version_stored_goes_on(self, folder: Path, clock: ManualClock, kept: Path) -> None:
        """Every run of it is read, found sound, and brought to its end by the code of today."""
        await self.restore(kept, folder)
        clock.advance(3600)  # whoever drove one of them then is dead
        async with self.open(folder, clock) as store:
            await check_kept(store)
            await check_it_goes_on(store)

    async def test_what_this_version_stores_can_be_kept(self, store: Checkpointer, clock: ManualClock) -> None:
        """A store that is filled today has a run in every status, and each goes on."""
        await fill(store)
        clock.advance(3600)
        await check_kept(store)
        await check_it_goes_on(store)

    @pytest.mark.parametrize("verb", ["runs", "create"])
    async def test_what_a_later_version_stored_is_left_alone(self, folder: Path, clock: ManualClock, verb: str) -> None:
        """Nothing of it is read or written, and the error says what it is."""
        async with self.open(folder, clock) as store:
            await paused(store)
            if not store.durable:
                pytest.skip(f"{type(store).__name__} is not durable: no version but this one ever meets its runs")
        await self.make_newer(folder)
        verbs: dict[str, Callable[[Checkpointer], Awaitable[object]]] = {
            "runs": lambda store: store.runs(),
            "create": lambda store: create(store, "new"),
        }
        for _ in range(2):
            with pytest.raises(StoreForeign):
                async with self.open(folder, clock) as store:
                    await verbs[verb](store)
