"""The physical limit: the node functions in a bare loop, and one INSERT and commit per step on sqlite3 itself."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from benchmarks.job import Job, Stopwatch
from benchmarks.nodes import END, Task, task_of

__all__ = ["drive", "walk"]

encode = json.JSONEncoder(separators=(",", ":")).encode
#: Keeps one row: its step and what it holds.
Keep = Callable[[int, str, dict[str, Any]], object]


def drive(job: Job, watch: Stopwatch) -> None:
    """Behind `Contender.drive`."""
    if job.path is None:
        with watch:
            walk(task_of(job.task, job.steps), None)
        return
    connection = connect(job.path, job.synchronous)
    if job.task == "pauses":
        with watch:
            pause(connection, job)
    elif job.task == "crowd":
        with watch:
            crowd(connection, job)
    elif job.task == "resume":
        with watch:
            resume(connection, job, watch)
    else:
        keep = keeper(connection, 0)
        with watch:
            state = walk(task_of(job.task, job.steps), keep)
            if job.task == "blob":  # what W4's target was measured against: its 2.1 MB are the input and the result
                keep(job.steps + 1, END, state)
    connection.close()


def connect(path: str, synchronous: str) -> sqlite3.Connection:
    """A connection that commits each statement, to a file that has one table."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS steps (run INTEGER, step INTEGER, body TEXT, PRIMARY KEY (run, step))"
    )
    connection.execute("CREATE TABLE IF NOT EXISTS folded (run INTEGER PRIMARY KEY, step INTEGER, body TEXT)")
    return connection


def crowd(connection: sqlite3.Connection, job: Job) -> None:
    """Runs in step, what they keep in one transaction a step."""
    task = task_of("cycle", job.steps)
    states, nodes = [dict(task.start) for _ in range(job.runs)], [task.entry] * job.runs
    for step in range(job.steps + 1):
        connection.execute("BEGIN IMMEDIATE")
        for run, state in enumerate(states):
            keep, node = keeper(connection, run), nodes[run]
            if step == 0:
                keep(0, "", state)
                continue
            delta = task.nodes[node](state)
            take(state, delta)
            keep(step, node, delta)
            nodes[run] = task.edges[node] if node in task.edges else task.routers[node](state)
        connection.execute("COMMIT")


def keeper(connection: sqlite3.Connection, run: int) -> Keep:
    """One INSERT and commit a step: what changed, not what there is."""

    def keep(step: int, node: str, delta: dict[str, Any]) -> None:
        connection.execute("INSERT INTO steps VALUES (?, ?, ?)", (run, step, encode([node, delta])))

    return keep


def walk(task: Task, keep: Keep | None) -> dict[str, Any]:
    """The state after the task, or at its gate."""
    state, node, step = dict(task.start), task.entry, 0
    state.update((key, list(value)) for key, value in task.start.items() if key == "messages")
    nodes, edges, routers, gate = task.nodes, task.edges, task.routers, task.gate
    if keep is not None:
        keep(step, "", state)
    while node != END and node != gate:
        delta = nodes[node](state)
        take(state, delta)
        if keep is not None:
            step += 1
            keep(step, node, delta)
        node = edges[node] if node in edges else routers[node](state)
    return state


def take(state: dict[str, Any], delta: dict[str, Any]) -> None:
    """What a node returned, into the state."""
    if "messages" in delta:
        state["messages"] += delta["messages"]
        delta = {key: value for key, value in delta.items() if key != "messages"}
    state.update(delta)


# -- W8: the last folded state, the rows after it, a decision, one node


def pause(connection: sqlite3.Connection, job: Job) -> None:
    """Runs at their gate; the folded state is kept where our own was last: it need not be the last row's."""
    for run in range(job.runs):
        state = walk(task_of("pauses", job.steps), keeper(connection, run))
        early = {**state, "messages": state["messages"][: -job.steps // 10], "count": job.steps - job.steps // 10}
        connection.execute("INSERT INTO folded VALUES (?, ?, ?)", (run, early["count"], encode(early)))


def resume(connection: sqlite3.Connection, job: Job, watch: Stopwatch) -> None:
    """Each run past its approval to its end."""
    task = task_of("pauses", job.steps)
    assert task.gate is not None
    for run in range(job.runs):
        step, body = connection.execute("SELECT step, body FROM folded WHERE run = ?", (run,)).fetchone()
        state = json.loads(body)
        later = connection.execute(
            "SELECT body FROM steps WHERE run = ? AND step > ? ORDER BY step", (run, step)
        ).fetchall()
        for (body,) in later:
            take(state, json.loads(body)[1])
        keep = keeper(connection, run)
        keep(job.steps + 1, "", {"decision": "approved"})
        delta = task.nodes[task.gate](state)
        take(state, delta)
        keep(job.steps + 2, task.gate, delta)
        watch.lap()
