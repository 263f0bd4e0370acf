"""A process of racers: each has a thread, an event loop and a connection of its own, and all act at the same moment."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from checkpointers import PostgresCheckpointer, SqliteCheckpointer
from stategraph import AgentState, Checkpointer, Context, DecisionRefused, StateGraph, StateGraphError
from tests.programs.ledger import note


def build(checkpointer: Checkpointer, ledger: str | Path, seconds: float = 0.0) -> StateGraph:
    """plan -> [gate] pay -> close; each writes a line to the ledger when it runs, paying is an effect and takes its time."""

    def plan(state: AgentState) -> dict[str, Any]:
        note(ledger, f"{state['order']} plan")
        return {"plan": True}

    async def pay(state: AgentState, ctx: Context) -> dict[str, Any]:
        await ctx.once("pay", lambda: note(ledger, f"{state['order']} pay"))
        await asyncio.sleep(seconds)
        return {"pay": True}

    async def close(state: AgentState) -> dict[str, Any]:
        note(ledger, f"{state['order']} close")
        return {"close": True}

    graph = StateGraph(checkpointer, name="race").add_node("plan", plan).add_node("pay", pay).add_node("close", close)
    return graph.set_entry_point("plan").add_edge("plan", "pay").add_edge("pay", "close").add_interrupt_before("pay")


def opened(path: str) -> SqliteCheckpointer | PostgresCheckpointer:
    """The store of a file, or of a PostgreSQL server's URL."""
    if path.startswith("postgresql:"):
        return PostgresCheckpointer(path, timeout=30)
    return SqliteCheckpointer(path, timeout=30)


class Racer:
    """One of them."""

    def __init__(self, path: str, ledger: str, seconds: float) -> None:
        self.runner = asyncio.Runner()
        self.store = opened(path)
        self.graph = build(self.store, ledger, seconds)
        self.ledger, self.seconds = ledger, seconds

    def act(self, barrier: threading.Barrier, verb: str, run_id: str, who: str) -> dict[str, Any]:
        """Wait for the others, then do it; what came of it."""
        self.runner.run(self.store.head(run_id))  # so that nobody is late because of opening the file
        barrier.wait()
        try:
            answer = self.runner.run(getattr(self, verb)(run_id, who))
        except DecisionRefused as error:
            return {"who": who, "refused": str(error), "by": error.by, "decision": error.decision, "at_ms": error.at_ms}
        except StateGraphError as error:
            return {"who": who, "error": type(error).__name__, "said": str(error)}
        return {"who": who, "done": answer}

    async def decide(self, run_id: str, who: str) -> Any:
        decided = await self.graph.decide(run_id, who.split()[0], by=who, boundary="1.0")
        return {"by": decided.by, "decision": decided.decision, "at_ms": decided.at_ms}

    async def resume(self, run_id: str, who: str) -> Any:
        events = [event async for event in self.graph.resume(run_id, who.split()[0], by=who, boundary="1.0")]
        return [event.event_type for event in events]

    async def cancel(self, run_id: str, who: str) -> Any:
        return await self.graph.cancel(run_id, by=who)

    async def recover(self, run_id: str, who: str) -> Any:
        return [event.event_type async for event in self.graph.recover(run_id)]

    async def poll(self, run_id: str, who: str) -> Any:
        """Work as a worker does until the run has ended; how much of it was done here."""
        told = 0
        while not (await self.graph.info(run_id)).ended:
            runs, _ = await self.store.due()
            if run_id in runs:
                with suppress(StateGraphError):  # another was faster
                    told += len([event async for event in self.graph.recover(run_id)])
            await asyncio.sleep(0.001)
        return told

    async def make(self, path: str, who: str) -> Any:
        """Open a store that may not have been made yet, and start a run in it."""
        async with opened(path) as store:
            run = await build(store, self.ledger).run({"order": who}, who)
            return run.status


def main(path: str, ledger: str, threads: str = "1", seconds: str = "0") -> None:
    racers = [Racer(path, ledger, float(seconds)) for _ in range(int(threads))]
    with ThreadPoolExecutor(len(racers)) as pool:
        print('"ready"', flush=True)
        for line in sys.stdin:
            acts = json.loads(line)
            barrier = threading.Barrier(len(acts))
            answers = [pool.submit(racer.act, barrier, *act) for racer, act in zip(racers, acts, strict=False)]
            print(json.dumps([answer.result() for answer in answers]), flush=True)
        for racer in racers:
            pool.submit(racer.runner.run, racer.store.close()).result()
            racer.runner.close()
