"""Runs in every status, to be kept as a version of a store has stored them; and how each of them goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from stategraph.checkpoint import Checkpointer, Status
from stategraph.context import Context, effect_key
from stategraph.events import Event
from stategraph.graph import StateGraph
from stategraph.state import AgentState
from stategraph.testing.byhand import LEASE_MS

__all__ = ["KEPT", "fill", "go_on", "workflow"]

#: Each run's id, and the status in which it is kept.
KEPT: dict[str, Status] = {
    "ready": "ready",
    "pending": "pending",
    "failed": "failed",
    "completed": "completed",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "doubt": "pending",
    "abandoned": "running",
    "long": "pending",
}


def workflow(store: Checkpointer) -> StateGraph:
    """count (so often as it is told) -> [gate] pay (an effect) -> close.

    It never changes: runs that were stored years ago are of this graph, and an earlier version's are not made again.
    """

    def count(state: AgentState) -> dict[str, Any]:
        if state.get("broken"):
            raise ValueError("it is broken")
        return {"left": state["left"] - 1, "ballast": str(state["left"]).rjust(state.get("weight", 0), "x")}

    async def pay(state: AgentState, ctx: Context) -> dict[str, Any]:
        return {"paid": await ctx.once("pay", lambda: 7)}

    graph = StateGraph(store, 100, name="golden").add_node("count", count).add_node("pay", pay)
    graph.add_node("close", lambda state: {"closed": True}).set_entry_point("count")
    graph.add_conditional_edge("count", lambda state: "count" if state["left"] > 0 else "pay", ["count", "pay"])
    return graph.add_edge("pay", "close").add_interrupt_before("pay")


async def fill(store: Checkpointer) -> None:
    """Store a run in every status: ready, waiting, failed, ended, in doubt, left by its driver, and one with a snapshot."""
    graph = workflow(store)
    for run_id in KEPT:
        state = {"left": 40, "weight": 500} if run_id == "long" else {"left": 2, "broken": run_id == "failed"}
        with suppress(ValueError):  # one is to fail
            await graph.run(state, run_id)
    for run_id in ("ready", "completed", "doubt", "abandoned"):
        await graph.decide(run_id, "approved", by="ann", note="fine")
    await _all(graph.resume("completed"))
    await graph.decide("rejected", "rejected", by="ann")
    await graph.cancel("cancelled", by="ops")
    for run_id in ("doubt", "abandoned"):
        lease = await store.claim(run_id, "a driver that dies", LEASE_MS)
        assert lease is not None
        if run_id == "doubt":
            key = effect_key(run_id, "", 2, "pay", "once:pay")
            await store.effect_begin(lease, key, path="", step=2, policy="ask", token="of the dead")
            await store.release(lease)
            await _all(graph.recover(run_id))


async def go_on(store: Checkpointer, run_id: str) -> Status:
    """What its people and drivers do next with a run that was kept; how it ends."""
    graph = workflow(store)
    if run_id == "failed":
        await _all(graph.retry(run_id, {"broken": False}, by="ops"))
    if run_id in ("pending", "failed", "long"):
        await graph.decide(run_id, "approved", by="ann")
    if run_id == "doubt":
        await graph.decide(run_id, "approved", by="ann", answer=7)
    await _all(graph.recover(run_id))
    return (await graph.info(run_id)).status


async def _all(events: AsyncIterator[Event]) -> None:
    async for _ in events:
        pass
