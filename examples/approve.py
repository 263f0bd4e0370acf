"""A run waits in one process and is approved in another: all they share is a SQLite file."""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from checkpointers import SqliteCheckpointer
from stategraph import AgentState, DecisionRefused, StateGraph


def ship(state: AgentState) -> dict[str, bool]:
    return {"shipped": True}


def build(store: SqliteCheckpointer) -> StateGraph:
    graph = StateGraph(store, name="order")
    graph.add_node("ship", ship).set_entry_point("ship").add_interrupt_before("ship")
    return graph


async def start(path: Path) -> None:
    async with SqliteCheckpointer(path) as store:
        async for event in build(store).stream({"order": "A-17"}, run_id="order-1"):
            print("first process: ", event.event_type, event.node_name)


async def approve(path: Path, by: str) -> None:
    async with SqliteCheckpointer(path) as store:
        try:
            async for event in build(store).resume("order-1", "approved", by=by):
                print("second process:", event.event_type, event.node_name, flush=True)
        except DecisionRefused as refused:
            print(f"too late, {by}: {refused.by} has {refused.decision} it")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        asyncio.run(start(path))
        subprocess.run([sys.executable, __file__, str(path)], check=True)
        asyncio.run(approve(path, by="bob"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(approve(Path(sys.argv[1]), by="ann"))
    else:
        main()
