"""Folds that a driver leaves, so that a long log need not be read whole."""

from __future__ import annotations

from typing import Any

from stategraph.checkpoint import Checkpointer
from stategraph.clock import ManualClock
from stategraph.encoding import encode
from stategraph.graph import StateGraph
from stategraph.run import fold, fold_log
from stategraph.testing.byhand import LONGER, claimed, create, decide, visit
from stategraph.testing.suite import Suite

__all__ = ["Snapshots", "looping"]


def looping(store: Checkpointer) -> StateGraph:
    """A graph whose run is long and heavy enough for snapshots, and waits once."""

    def work(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": ["x" * 5000], "round": state.get("round", 0) + 1}

    graph = (
        StateGraph(store, 100, name="looping").add_node("work", work).add_node("rest", lambda state: {"rested": True})
    )
    graph.set_entry_point("work").add_interrupt_before("rest")
    return graph.add_conditional_edge("work", lambda state: "work" if state["round"] < 30 else "rest")


class Snapshots(Suite):
    """Folds that a driver leaves, so that a long log need not be read whole."""

    async def test_a_snapshot_stands_for_the_rows_before_it(self, store: Checkpointer) -> None:
        """The fold from it equals the fold of the whole log, now and at every earlier point."""
        graph = looping(store)
        await graph.run({"messages": []}, "long")
        await graph.decide("long", "approved", by="ann")
        log, rows = await store.load("long"), await store.history("long")
        assert log is not None
        assert log.snapshot is not None
        assert 0 < len(log.checkpoints) < len(rows)
        whole = fold("long", rows)
        assert fold_log(log).content() == whole.content()
        for until in range(0, len(rows), 3):
            part = await store.load("long", until=until)
            assert part is not None
            folded = fold("long", part.checkpoints, part.snapshot[1] if part.snapshot else None)
            assert folded.content() == fold("long", rows[: until + 1]).content()
        assert [event.event_type async for event in graph.resume("long")][-1] == "completed"

    async def test_a_log_without_newer_keys_still_folds(self, store: Checkpointer) -> None:
        """What a first release wrote: only what a row cannot do without, and keys that nobody knows any more."""
        start = {
            "graph": "g",
            "version": "1",
            "fingerprint": "f",
            "max_steps": 20,
            "at": "plan",
            "set": {"x": 1},
            "gone": 0,
        }
        node = {"node": "plan", "at": "pay", "set": {"y": 2}, "gone": [1]}
        gate = '[{"kind":"approval","path":"","step":1,"node":"pay","digest":"shown"}]'
        lease = await create(store, body=encode(start))
        entry = visit(0, "pending", body=encode(node))._replace(opens=gate)
        assert await store.append(lease, 0, [entry]) is not None
        assert await decide(store, body=b"{}") is not None
        run = fold("r", await store.history("r"))
        assert (run.status, run.state, run.steps) == ("ready", {"x": 1, "y": 2}, 1)
        assert [position.node for position in run.runnable()] == ["pay"]

    async def test_a_refused_rows_snapshot_is_not_kept(self, store: Checkpointer, clock: ManualClock) -> None:
        """A driver that has lost the run leaves no fold of it; whoever has it leaves one of what it had seen."""
        old = await create(store)
        clock.advance(LONGER)
        lease = await claimed(store)
        assert await store.append(old, 0, [visit(0)], b"of the dead") is None
        log = await store.load("r")
        assert log is not None
        assert log.snapshot is None
        assert await store.append(lease, 0, [visit(0)], b"mine") is not None
        log, whole = await store.load("r"), await store.load("r", after=0)
        assert log is not None
        assert whole is not None
        assert log.snapshot == (0, b"mine")
        assert [row.seq for row in log.checkpoints] == [1]
        assert whole.snapshot is None, "whoever has row 0 asks for rows"
