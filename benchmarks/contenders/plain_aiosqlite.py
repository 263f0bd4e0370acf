"""What a plain asynchronous program pays: the bare loop, with aiosqlite's `execute` and `commit` for each step."""

from __future__ import annotations

import asyncio
import json

import aiosqlite

from benchmarks.job import Job, Stopwatch
from benchmarks.nodes import END, task_of

__all__ = ["drive"]

encode = json.JSONEncoder(separators=(",", ":")).encode


def drive(job: Job, watch: Stopwatch) -> None:
    """Behind `Contender.drive`: the cycle alone."""
    asyncio.run(walk(job, watch))


async def walk(job: Job, watch: Stopwatch) -> None:
    """The task, a row a step."""
    assert job.path is not None
    task, insert = task_of(job.task, job.steps), "INSERT INTO steps VALUES (?, ?)"
    async with aiosqlite.connect(job.path) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute(f"PRAGMA synchronous={job.synchronous}")
        await connection.execute("CREATE TABLE steps (step INTEGER PRIMARY KEY, body TEXT)")
        with watch:
            state, node, step = dict(task.start), task.entry, 0
            while node != END:
                delta, step = task.nodes[node](state), step + 1
                state.update(delta)
                await connection.execute(insert, (step, encode([node, delta])))
                await connection.commit()
                node = task.edges[node] if node in task.edges else task.routers[node](state)
