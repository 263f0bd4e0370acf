"""A process dies in the middle of a node, without a goodbye; another one goes on from the last checkpoint."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checkpointers import SqliteCheckpointer
from stategraph import AgentState, LeaseHeld, StateGraph


def build(store: SqliteCheckpointer, log: Path) -> StateGraph:
    def reserve(state: AgentState) -> dict[str, bool]:
        note(log, "reserve")
        return {"reserved": True}

    def pack(state: AgentState) -> dict[str, bool]:
        note(log, "pack")
        if log.read_text().count("pack") == 1:
            os._exit(1)  # as a power cut would: no exception, nothing is cleaned up
        return {"packed": True}

    def ship(state: AgentState) -> dict[str, bool]:
        note(log, "ship")
        return {"shipped": True}

    graph = StateGraph(store, name="parcel", lease=1.0)  # a dead driver keeps its run for a second, not for 30
    graph.add_node("reserve", reserve).add_node("pack", pack).add_node("ship", ship)
    return graph.set_entry_point("reserve").add_edge("reserve", "pack").add_edge("pack", "ship")


def note(log: Path, what: str) -> None:
    with log.open("a") as file:
        file.write(what + "\n")


async def start(folder: Path) -> None:
    async with SqliteCheckpointer(folder / "runs.db") as store:
        await build(store, folder / "log").run({}, run_id="parcel-1")


async def go_on(folder: Path) -> None:
    async with SqliteCheckpointer(folder / "runs.db") as store:
        graph = build(store, folder / "log")
        print("found:    ", await graph.info("parcel-1"))
        while True:
            try:
                async for event in graph.recover("parcel-1"):
                    print("recovered:", event.event_type, event.node_name)
                return
            except LeaseHeld:  # the dead process's lease is not over
                await asyncio.sleep(0.1)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        child = subprocess.run([sys.executable, __file__, name], check=False)
        print("child died with exit code", child.returncode)
        asyncio.run(go_on(folder))
        print("what ran: ", *(folder / "log").read_text().split())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(start(Path(sys.argv[1])))
    else:
        main()
