"""Fills a small file system beside a store's file, goes on when there is room again, and says how it went."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StateGraph, StoreFull


async def fill(folder: Path) -> None:
    """A run that grows until the disk is full; then what filled it is removed."""
    ballast = folder / "ballast"
    graph = StateGraph(SqliteCheckpointer(folder / "runs.db"), 500, name="grow", lease=0.2)
    graph.add_node("grow", lambda state: {"messages": ["x" * 4000]}).set_entry_point("grow")
    graph.add_conditional_edge("grow", lambda state: "grow" if len(state["messages"]) < 30 else "END")
    async with graph.checkpointer:
        ballast.write_bytes(b"x" * 7_500_000)
        try:
            await graph.run({"messages": []}, "r")
        except StoreFull:
            print("full")
        done = (await graph.info("r")).steps
        ballast.unlink()
        for _ in range(1000):
            if "r" in (await graph.checkpointer.due())[0]:
                break
            await asyncio.sleep(0.02)
        events = [event async for event in graph.recover("r")]
        run = await graph.info("r")
        assert len(events) == 2 * (30 - done) + 1, (len(events), done)
        assert [row.seq for row in await graph.history("r")] == list(range(31))
        print(run.status)


asyncio.run(fill(Path(sys.argv[1])))
