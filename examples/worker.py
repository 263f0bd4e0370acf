"""Orders are submitted here and driven there: two worker processes share them, and each is done once."""

import asyncio
import sys
import tempfile
from pathlib import Path

from checkpointers import SqliteCheckpointer
from stategraph import AgentState, StateGraph, Worker


def price(state: AgentState) -> dict[str, int]:
    return {"price": state["pieces"] * 100}


def ship(state: AgentState) -> dict[str, bool]:
    return {"shipped": True}


def build(store: SqliteCheckpointer) -> StateGraph:
    graph = StateGraph(store, name="order")
    graph.add_node("price", price).add_node("ship", ship)
    graph.set_entry_point("price").add_edge("price", "ship").add_edge("ship", "END")
    return graph


async def work(path: Path) -> None:
    """What a worker process does until it is told to stop; this one stops when nothing is due."""
    async with SqliteCheckpointer(path) as store:
        worker = Worker(build(store), concurrency=3)
        while await worker.poll():
            pass


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.db"
        async with SqliteCheckpointer(path) as store:
            graph = build(store)
            for number in range(10):
                await graph.submit({"pieces": number}, run_id=f"order-{number}")
            print("submitted:", {head.status for head in await store.runs()})
            workers = [await asyncio.create_subprocess_exec(sys.executable, __file__, str(path)) for _ in range(2)]
            codes = [await worker.wait() for worker in workers]
            print("workers ended with", codes)
            runs = [await graph.info(f"order-{number}") for number in range(10)]
            print("driven:", {run.status for run in runs}, "steps:", {run.steps for run in runs})


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])) if len(sys.argv) > 1 else main())
