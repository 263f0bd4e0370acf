"""Many who go for the same thing at once: tasks, threads, connections and processes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pytest

from stategraph.checkpoint import Checkpointer, Opening
from stategraph.clock import ManualClock
from stategraph.graph import StateGraph
from stategraph.testing.byhand import GATE, create, decide, paused, signal, states, visit
from stategraph.testing.child import children
from stategraph.testing.contest import CONTESTS
from stategraph.testing.suite import Reopen, Suite

__all__ = ["Races"]

Answer = TypeVar("Answer")

TASKS, THREADS, PROCESSES, ROUNDS = 50, 8, 3, 4


async def one_winner(store: Checkpointer, contest: str, run_id: str, answers: Sequence[Sequence[object]]) -> None:
    """Exactly one was accepted, the store tells whom, and the log has one row of it."""
    assert [what for _, what in answers if not isinstance(what, bool)] == [], "a loser is answered, not failed"
    winners = [who for who, won in answers if won]
    assert len(winners) == 1, f"{contest}: {winners} have won, of {len(answers)}"
    told = await CONTESTS[contest].winner(store, run_id)
    assert told in (None, *winners), f"{contest}: {winners[0]} has won, and the store tells {told}"
    log = await store.history(run_id)
    assert [row.seq for row in log] == [*range(CONTESTS[contest].rows)]


def in_threads(tries: Sequence[Callable[[], Coroutine[Any, Any, Answer]]]) -> list[Answer]:
    """Each in a thread and an event loop of its own, all at the same moment."""
    barrier = threading.Barrier(len(tries))

    def act(go: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        barrier.wait()
        return asyncio.run(go())

    patience = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # else a thread may be done before the next one runs, and nothing races
    try:
        with ThreadPoolExecutor(len(tries)) as pool:
            return list(pool.map(act, tries))
    finally:
        sys.setswitchinterval(patience)


class Races(Suite):
    """Many who go for the same thing at once: tasks, threads, connections and processes."""

    @pytest.mark.parametrize("contest", CONTESTS)
    async def test_of_many_tasks_one_wins(self, store: Checkpointer, contest: str) -> None:
        """A decision, a claim, a visit, an effect, an id, an end: one of fifty gets it, the others are refused."""
        race, names = CONTESTS[contest], [f"task {number}" for number in range(TASKS)]
        await race.prepare(store, "r")
        won = await asyncio.gather(*(race.go(store, "r", name) for name in names))
        await one_winner(store, contest, "r", [*zip(names, won, strict=True)])

    @pytest.mark.parametrize("contest", CONTESTS)
    async def test_of_many_threads_one_wins(self, store: Checkpointer, contest: str) -> None:
        """They share one store, each from an event loop of its own, as the thread that renews leases does."""
        race, names = CONTESTS[contest], [f"thread {number}" for number in range(THREADS)]
        for run_id in (f"r{number}" for number in range(ROUNDS)):
            await race.prepare(store, run_id)
            tries = [partial(race.go, store, run_id, name) for name in names]
            won = await asyncio.to_thread(in_threads, tries)
            await one_winner(store, contest, run_id, [*zip(names, won, strict=True)])

    @pytest.mark.parametrize("contest", CONTESTS)
    async def test_of_many_stores_one_wins(self, store: Checkpointer, reopen: Reopen, contest: str) -> None:
        """Each is opened on the same runs."""
        race, others = CONTESTS[contest], {f"store {number}": reopen() for number in range(4)}
        for other in others.values():
            await other.runs(limit=1)
        for run_id in (f"r{number}" for number in range(ROUNDS)):
            await race.prepare(store, run_id)
            won = await asyncio.gather(*(race.go(other, run_id, name) for name, other in others.items()))
            await one_winner(store, contest, run_id, [*zip(others, won, strict=True)])

    async def test_of_many_processes_one_wins(
        self, store: Checkpointer, reopen: Reopen, folder: Path, clock: ManualClock
    ) -> None:
        """Each of two threads in each of three processes has a store of its own."""
        await store.runs()
        with children(self, folder, clock.now(), PROCESSES, threads=2) as crowd:
            for contest, race in CONTESTS.items():
                for run_id in (f"{contest}-{number}" for number in range(ROUNDS)):
                    await race.prepare(store, run_id)
                    for number, child in enumerate(crowd):
                        names = [f"process {number}.{thread}" for thread in range(2)]
                        child.tell({"contest": contest, "tries": [(run_id, name) for name in names]})
                    answers = [await asyncio.to_thread(child.hear) for child in crowd]
                    await one_winner(store, contest, run_id, [*chain(*answers)])

    async def test_each_of_many_signals_is_taken_once(self, store: Checkpointer) -> None:
        """As many waits are closed as there were signals, whoever came first."""
        wait = Opening("signal", "", 1, "paid", "d", name="paid", key="7")
        await paused(store, "r", *[wait] * 12)
        assert all(await asyncio.gather(*(signal(store, f"transfer {number}") for number in range(9))))
        assert await states(store) == ["approved"] * 9 + ["open"] * 3
        assert [row.seq for row in await store.history("r")] == [*range(11)]

    @pytest.mark.parametrize("by", ["tasks", "threads"])
    async def test_rows_that_are_appended_at_once_leave_no_gap(self, store: Checkpointer, by: str) -> None:
        """Of one run, by lines of it that are executed side by side: each gets a seq of its own, and is told it."""
        lease = await create(store)
        calls = [partial(store.append, lease, 0, [visit(0, path=f"0.{line}")]) for line in range(16)]
        answers = await (
            asyncio.to_thread(in_threads, calls) if by == "threads" else asyncio.gather(*(c() for c in calls))
        )
        assert sorted(answer.seq for answer in answers if answer) == [*range(1, 17)]
        rows = await store.history("r")
        assert [row.seq for row in rows] == [*range(17)]
        for line, answer in enumerate(answers):
            assert answer is not None
            assert rows[answer.seq].path == f"0.{line}"

    async def test_a_driver_that_rests_misses_no_decision(self, store: Checkpointer) -> None:
        """A pause and the decision of an earlier gate at once: the run waits only if it has seen it."""
        for number in range(20):
            run_id = f"r{number}"
            lease = await create(store, run_id)
            await store.append(lease, 0, [visit(0, "running", GATE)])
            calls = store.settle(lease, 1, "pending", b"{}"), decide(store, run_id=run_id)
            first, second = calls if number % 2 else calls[::-1]
            await asyncio.gather(first, second)
            head = await store.head(run_id)
            assert head is not None
            assert head.status in ("running", "ready"), "it rests, and nobody will wake it"

    async def test_many_runs_in_many_loops_lose_nothing(self, store: Checkpointer) -> None:
        """Whole runs by threads that share the store: every one goes its way."""
        graph = StateGraph(store, 60, name="long").set_entry_point("work")
        graph.add_node("work", lambda state: {"round": state["round"] + 1})
        graph.add_conditional_edge("work", lambda state: "work" if state["round"] < 20 else "END")
        runs = await asyncio.gather(
            *(asyncio.to_thread(graph.run_sync, {"round": 0}, f"thread-{number}") for number in range(4)),
            *(graph.run({"round": 0}, f"task-{number}") for number in range(4)),
        )
        assert {(run.status, run.seq, run.state["round"]) for run in runs} == {("completed", 20, 20)}
