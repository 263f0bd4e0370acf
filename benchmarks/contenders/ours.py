"""stategraph as its users call it: a graph, its events consumed, its store opened before and closed after the watch."""

from __future__ import annotations

import asyncio

from benchmarks.job import Job, Stopwatch
from benchmarks.nodes import Task, task_of
from checkpointers import SqliteCheckpointer
from stategraph import StateGraph

__all__ = ["drive"]


def drive(job: Job, watch: Stopwatch) -> None:
    """Behind `Contender.drive`."""
    asyncio.run(walk(job, watch))


async def walk(job: Job, watch: Stopwatch) -> None:
    """The job's runs, from their start, or from their gate."""
    task = task_of({"resume": "pauses", "crowd": "cycle"}.get(job.task, job.task), job.steps)
    if job.path is None:
        graph = build(task, None, job.steps)
        graph.plan()
        with watch:
            await start(graph, task, "run")
        return
    async with SqliteCheckpointer(job.path, durability="full" if job.synchronous == "FULL" else "relaxed") as store:
        graph = build(task, store, job.steps + 1)
        graph.plan()
        await store.head("run")  # the file is opened at the first use
        with watch:
            if job.task == "crowd":
                await asyncio.gather(*(start(graph, task, f"run-{number:032}") for number in range(job.runs)))
                return
            for number in range(job.runs):
                if job.task == "resume":
                    await take_on(graph, f"run-{number:032}")
                    watch.lap()
                else:
                    await start(graph, task, f"run-{number:032}")


def build(task: Task, store: SqliteCheckpointer | None, budget: int) -> StateGraph:
    """The task as a graph."""
    graph = StateGraph(store, max_steps=budget).set_entry_point(task.entry)
    for name, function in task.nodes.items():
        graph.add_node(name, function)
    for source, target in task.edges.items():
        graph.add_edge(source, target)
    for source, router in task.routers.items():
        graph.add_conditional_edge(source, router)
    return graph.add_interrupt_before(task.gate) if task.gate is not None else graph


async def start(graph: StateGraph, task: Task, run_id: str) -> None:
    """A run to its end or its gate, every event taken."""
    last = ""
    async for event in graph.stream(task.start, run_id):
        last = event.event_type
    assert last in ("completed", "interrupted"), last


async def take_on(graph: StateGraph, run_id: str) -> None:
    """A paused run past its approval to its end."""
    last = ""
    async for event in graph.resume(run_id, "approved", by="reviewer"):
        last = event.event_type
    assert last == "completed", last
