"""A program that is interrupted while its node is at work."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import AgentState, StateGraph


def main(path: str, ledger: str) -> None:
    async def work(state: AgentState) -> dict[str, Any]:
        print('"in the node"', flush=True)
        await asyncio.sleep(60)
        return {}

    async def drive() -> None:
        async with SqliteCheckpointer(path) as store:
            graph = StateGraph(store, name="work").add_node("work", work).set_entry_point("work")
            async for _ in graph.stream({}, "r"):
                pass

    print('"ready"', flush=True)
    try:
        asyncio.run(drive())
    except KeyboardInterrupt:
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
