"""The physical limit of keeping the whole state in one row: read it, decode it, write all of it again."""

from __future__ import annotations

import json
import sqlite3

from benchmarks.contenders.raw import connect, encode, take, walk
from benchmarks.job import Job, Stopwatch
from benchmarks.nodes import task_of

__all__ = ["drive"]


def drive(job: Job, watch: Stopwatch) -> None:
    """Behind `Contender.drive`: W8 alone."""
    assert job.path is not None
    connection = connect(job.path, job.synchronous)
    with watch:
        if job.task == "pauses":
            for run in range(job.runs):
                connection.execute(
                    "INSERT INTO folded VALUES (?, 0, ?)", (run, encode(walk(task_of("pauses", job.steps), None)))
                )
        else:
            resume(connection, job, watch)
    connection.close()


def resume(connection: sqlite3.Connection, job: Job, watch: Stopwatch) -> None:
    """Each run past its approval to its end."""
    task = task_of("pauses", job.steps)
    assert task.gate is not None
    for run in range(job.runs):
        (body,) = connection.execute("SELECT body FROM folded WHERE run = ?", (run,)).fetchone()
        state = json.loads(body)
        state["decision"] = "approved"
        connection.execute("UPDATE folded SET body = ? WHERE run = ?", (encode(state), run))
        take(state, task.nodes[task.gate](state))
        connection.execute("UPDATE folded SET body = ? WHERE run = ?", (encode(state), run))
        watch.lap()
