"""Relaxed durability: plain steps are written on the event loop's own thread, and nothing else changes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointers import SqliteCheckpointer
from stategraph import StateGraph

#: SQLite's page, in bytes, and how many of them a WAL holds before it is copied back into the file.
PAGE, COPIED_BACK = 4096, 2000

OpenStore = Callable[..., SqliteCheckpointer]


@pytest.fixture
async def relaxed(open_store: OpenStore) -> SqliteCheckpointer:
    """A store that leaves plain steps to the next fsync."""
    return open_store(durability="relaxed", timeout=30.0)


def counting(store: SqliteCheckpointer, steps: int, **nodes: Callable[[Any], Any]) -> StateGraph:
    """A run of so many steps that only counts; a node of that name may be given instead."""
    graph = StateGraph(store, steps, name="count").set_entry_point("count")
    graph.add_node("count", nodes.get("count", lambda state: {"n": state["n"] + 1}))
    return graph.add_conditional_edge(
        "count", lambda state: "END" if state["n"] >= steps else "count", ["count", "END"]
    )


def commits(store: SqliteCheckpointer) -> list[str]:
    """Filled with the COMMIT of each transaction from now on."""
    seen: list[str] = []
    store._database.set_trace_callback(lambda sql: seen.append(sql) if sql == "COMMIT" else None)
    return seen


async def test_each_step_is_a_commit_of_its_own(relaxed: SqliteCheckpointer) -> None:
    """Written at once or by the thread: a row that was told of is in the file."""
    graph = counting(relaxed, 100)
    await relaxed.head("r")
    seen = commits(relaxed)
    before: list[int] = []
    async for event in graph.stream({"n": 0}, "r"):
        if event.event_type == "state_update":
            connection = sqlite3.connect(relaxed.path)
            before.append(connection.execute("SELECT max(seq) FROM checkpoints").fetchone()[0] - (event.seq or 0))
            connection.close()
    assert len(before) == 100
    assert min(before) >= 0
    assert len(seen) == 101


async def test_the_loop_goes_on_while_a_step_waits_for_a_locked_file(relaxed: SqliteCheckpointer) -> None:
    """A step that meets another program's lock waits for it in the thread: here it is the loop that has to end the lock."""
    other = sqlite3.connect(relaxed.path, isolation_level=None)
    locked = asyncio.Event()

    def count(state: Any) -> dict[str, Any]:
        if state["n"] == 20:
            other.execute("BEGIN IMMEDIATE")
            locked.set()
        return {"n": state["n"] + 1}

    async def unlock() -> None:
        await locked.wait()
        other.execute("ROLLBACK")

    await relaxed.head("r")
    unlocking = asyncio.ensure_future(unlock())
    async with asyncio.timeout(20):
        run = await counting(relaxed, 40, count=count).run({"n": 0}, "r")
    await unlocking
    other.close()
    assert (run.status, run.state["n"]) == ("completed", 40)
    assert [row.seq for row in await relaxed.history("r")] == list(range(41))


async def test_a_long_run_keeps_its_wal_short(relaxed: SqliteCheckpointer) -> None:
    """Steps that are written at once never copy the WAL back, so now and then the thread gets one."""
    # So large a state is not worth a snapshot, which would be the thread's, before the end.
    await counting(relaxed, 2000).run({"n": 0, "blob": "x" * 500_000}, "r")
    wal = Path(f"{relaxed.path}-wal").stat().st_size
    assert wal < 2.5 * COPIED_BACK * PAGE  # 2,000 steps write five times as much


async def test_what_several_runs_append_in_one_turn_of_the_loop_goes_together(relaxed: SqliteCheckpointer) -> None:
    """One run is written at once; many would block the loop one after the other."""
    runs, steps = 40, 5
    await relaxed.head("r")
    seen = commits(relaxed)
    graph = counting(relaxed, steps)
    ended = await asyncio.gather(*(graph.run({"n": 0}, f"r{number}") for number in range(runs)))
    assert [run.status for run in ended] == ["completed"] * runs
    assert len(seen) < runs + runs * steps / 2  # a start is a commit of its own


async def test_a_pause_and_an_end_survive_power_loss(relaxed: SqliteCheckpointer) -> None:
    """Only a plain step is left to the next fsync; a start, a pause, a decision and an end wait for their own."""
    graph = StateGraph(relaxed, name="pays").set_entry_point("ask").add_edge("ask", "quote")
    for name in ("ask", "quote", "pay"):
        graph.add_node(name, lambda state: {"n": state["n"] + 1})
    graph.add_edge("quote", "pay").add_edge("pay", "END").add_interrupt_before("pay")
    await relaxed.head("r")
    now, levels = "FULL", []

    def trace(sql: str) -> None:
        nonlocal now
        pragma, _, level = sql.partition("=")
        if pragma == "PRAGMA synchronous":
            now = level
        elif sql == "COMMIT":
            levels.append(now)

    relaxed._database.set_trace_callback(trace)
    run = await graph.run({"n": 0}, "r")
    assert run.status == "pending"
    assert levels == ["FULL", "NORMAL", "FULL"]
    levels.clear()
    told = [event.event_type async for event in graph.resume("r", "approved", by="alice")]
    assert told[-1] == "completed"
    assert set(levels) == {"FULL"}
