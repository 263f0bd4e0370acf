"""A worker drives what nobody drives, each run once, and no run that is bad, foreign or held stops the others."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from checkpointers import SqliteCheckpointer
from stategraph import Checkpointer, ManualClock, Retry, RunExists, RunNotClaimable, StateGraph, Worker
from stategraph.errors import (
    CorruptCheckpoint,
    StoreClosed,
    StoreForeign,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from stategraph.run import Run
from tests.conftest import OpenStore


def step(state: Any) -> dict[str, Any]:
    """Counts."""
    return {"n": state.get("n", 0) + 1}


def paying(store: Checkpointer, name: str = "pays", **gate: Any) -> StateGraph:
    """quote, a gate, pay."""
    graph = StateGraph(store, name=name, lease=30).set_entry_point("quote").add_edge("quote", "pay")
    graph.add_node("quote", step).add_node("pay", step).add_edge("pay", "END")
    return graph.add_interrupt_before("pay", **gate)


def counting(store: Checkpointer, name: str = "counts", node: Any = step) -> StateGraph:
    """A single node."""
    return StateGraph(store, name=name).add_node("count", node).set_entry_point("count").add_edge("count", "END")


async def statuses(store: Checkpointer) -> dict[str, str]:
    return {head.run_id: head.status for head in await store.runs()}


@pytest.fixture
async def stop() -> AsyncIterator[asyncio.Event]:
    """Set at the test's end, whatever happened."""
    event = asyncio.Event()
    yield event
    event.set()


async def test_a_submitted_run_is_driven_to_its_gate_and_past_it(checkpointer: Checkpointer) -> None:
    """New and approved runs are due at once; a run that waits for a person is not."""
    graph = paying(checkpointer)
    worker = Worker(graph)
    assert await graph.submit({}, "r") == "r"
    assert await statuses(checkpointer) == {"r": "ready"}
    assert await worker.poll() == 1
    assert await statuses(checkpointer) == {"r": "pending"}
    assert await worker.poll() == 0
    await graph.decide("r", "approved", by="alice")
    assert await worker.poll() == 1
    assert (await graph.info("r")).state == {"n": 2}
    assert await statuses(checkpointer) == {"r": "completed"}
    assert await worker.poll() == 0


async def test_a_run_is_submitted_once(checkpointer: Checkpointer) -> None:
    """A second one of the same id is refused and the first is as it was."""
    graph = counting(checkpointer)
    await graph.submit({"n": 5}, "r")
    with pytest.raises(RunExists):
        await graph.submit({"n": 6}, "r")
    assert (await graph.info("r")).state == {"n": 5}


async def test_a_gate_at_the_entry_waits_before_any_worker(checkpointer: Checkpointer) -> None:
    """Such a run is submitted pending: it is a person's first."""
    graph = counting(checkpointer).add_interrupt_before("count")
    await graph.submit({}, "r")
    assert await statuses(checkpointer) == {"r": "pending"}
    assert await Worker(graph).poll() == 0
    await graph.decide("r", "approved", by="alice")
    assert await Worker(graph).poll() == 1
    assert await statuses(checkpointer) == {"r": "completed"}


async def test_a_routed_rejection_is_driven_on(checkpointer: Checkpointer) -> None:
    """A run that was turned down at a gate with a way out is due like an approved one."""
    graph = paying(checkpointer, on_reject="quote")
    await graph.run({}, "r")
    await graph.decide("r", "rejected", by="alice")
    assert await Worker(graph).poll() == 1
    assert (await graph.info("r")).state == {"n": 2}
    assert await statuses(checkpointer) == {"r": "pending"}


async def test_a_dead_drivers_run_is_taken_over_when_its_lease_is_over(
    checkpointer: Checkpointer, clock: ManualClock
) -> None:
    """Not a moment earlier."""
    graph = counting(checkpointer)
    await graph.submit({}, "r")
    assert await checkpointer.claim("r", "dead", 30_000) is not None
    worker = Worker(graph)
    assert await worker.poll() == 0
    clock.advance(29.9)
    assert await worker.poll() == 0
    clock.advance(0.2)
    assert await worker.poll() == 1
    assert await statuses(checkpointer) == {"r": "completed"}


async def test_a_boundary_whose_time_has_come_expires(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """The clock decides it, and the run goes on from there."""
    graph = paying(checkpointer, expires_in=60, on_reject="quote", on_expire="quote")
    await graph.run({}, "r")
    worker = Worker(graph)
    assert await worker.poll() == 0
    clock.advance(61)
    assert await worker.poll() == 1
    decided = [(row.actor, row.decision) for row in await checkpointer.history("r") if row.kind == "decision"]
    assert decided == [(":clock", "expired")]
    assert (await graph.info("r")).state == {"n": 2}


async def test_the_oldest_runs_come_first_and_no_more_than_fit(checkpointer: Checkpointer) -> None:
    """A poll takes as many runs as the worker drives at once."""
    graph = counting(checkpointer)
    for number in range(5):
        await graph.submit({}, f"r{number}")
    worker = Worker(graph, concurrency=2)
    done: list[list[str]] = []
    while await worker.poll():
        done.append(sorted(name for name, status in (await statuses(checkpointer)).items() if status == "completed"))
    assert done == [["r0", "r1"], ["r0", "r1", "r2", "r3"], ["r0", "r1", "r2", "r3", "r4"]]


async def test_several_runs_are_driven_at_once(checkpointer: Checkpointer) -> None:
    """Each waits here for all of the others."""
    together = asyncio.Barrier(3)

    async def meet(state: Any) -> dict[str, Any]:
        await together.wait()
        return {"met": True}

    graph = counting(checkpointer, node=meet)
    for number in range(3):
        await graph.submit({}, f"r{number}")
    async with asyncio.timeout(20):
        assert await Worker(graph, concurrency=3).poll() == 3
    assert set((await statuses(checkpointer)).values()) == {"completed"}


async def test_four_workers_do_the_work_of_one(checkpointer: Checkpointer) -> None:
    """They poll the same new runs side by side, and each node runs once."""
    ran: list[str] = []

    async def note(state: Any) -> dict[str, Any]:
        ran.append(state["id"])
        await asyncio.sleep(0)
        return {}

    graphs = [counting(checkpointer, node=note) for _ in range(4)]
    names = [f"r{number}" for number in range(12)]
    for name in names:
        await graphs[0].submit({"id": name}, name)
    while "ready" in (await statuses(checkpointer)).values():
        await asyncio.gather(*(Worker(graph).poll() for graph in graphs))
    assert sorted(ran) == sorted(names)
    assert set((await statuses(checkpointer)).values()) == {"completed"}


async def test_a_run_that_fails_waits_for_a_person_and_the_others_go_on(
    checkpointer: Checkpointer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its failure is logged; a retry makes it due again, as often as somebody wants."""

    def fails(state: Any) -> dict[str, Any]:
        if state.get("bad"):
            raise OSError("the bank is closed")
        return {"done": True}

    graph = counting(checkpointer, node=fails)
    await graph.submit({"bad": True}, "bad")
    await graph.submit({}, "good")
    worker = Worker(graph)
    assert await worker.poll() == 2
    assert await statuses(checkpointer) == {"bad": "failed", "good": "completed"}
    assert "the bank is closed" in caplog.text
    for _ in range(5):
        with pytest.raises(OSError, match="closed"):
            [event async for event in graph.retry("bad")]
        assert await worker.poll() == 0
    assert worker.parked == {}


async def test_a_run_that_raises_at_every_poll_is_parked(
    checkpointer: Checkpointer, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that was removed while the run waited: after three polls it is left alone, and the log says why."""
    older = paying(checkpointer)
    await older.run({}, "old")
    await older.decide("old", "approved", by="alice")
    newer = counting(checkpointer, name="pays")
    await newer.submit({}, "new")
    worker = Worker(newer, concurrency=1)
    polls = [await worker.poll() for _ in range(6)]
    assert polls == [1, 1, 1, 1, 0, 0]
    assert await statuses(checkpointer) == {"old": "ready", "new": "completed"}
    assert "'pay'" in str(worker.parked["old"])
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "WARNING", "ERROR"]
    assert "old is left alone" in caplog.text
    assert await Worker(paying(checkpointer)).poll() == 1  # its own graph still takes it on


async def test_runs_of_other_graphs_are_left_to_other_workers(checkpointer: Checkpointer) -> None:
    """However many there are, they do not hide this worker's own."""
    other, own = counting(checkpointer, name="other"), counting(checkpointer, name="own")
    for number in range(30):
        await other.submit({}, f"other-{number}")
    await own.submit({}, "own")
    worker = Worker(own, concurrency=2)
    polls = [await worker.poll() for _ in range(20)]
    assert sum(polls) == 1
    found = await statuses(checkpointer)
    assert found.pop("own") == "completed"
    assert set(found.values()) == {"ready"}


async def test_a_worker_stops_at_once_and_releases_what_it_holds(
    checkpointer: Checkpointer, stop: asyncio.Event
) -> None:
    """A node that would wait for ever is cancelled, its run is ready for another worker."""
    reached: asyncio.Queue[str] = asyncio.Queue()

    async def stuck(state: Any) -> dict[str, Any]:
        reached.put_nowait("here")
        await asyncio.Event().wait()
        return {}

    graph = counting(checkpointer, node=stuck)
    for number in range(3):
        await graph.submit({}, f"r{number}")
    working = asyncio.ensure_future(Worker(graph).run(stop))
    async with asyncio.timeout(20):
        for _ in range(3):
            await reached.get()
        assert set((await statuses(checkpointer)).values()) == {"running"}
        stop.set()
        await working
    assert set((await statuses(checkpointer)).values()) == {"ready"}
    assert await Worker(counting(checkpointer)).poll() == 3


async def test_a_worker_finds_runs_that_come_while_it_works(checkpointer: Checkpointer, stop: asyncio.Event) -> None:
    """It looks again and again until it is stopped."""
    done: asyncio.Queue[str] = asyncio.Queue()
    graph = counting(checkpointer)
    worker = Worker(
        graph, told=lambda event: done.put_nowait(event.run_id) if event.event_type == "completed" else None
    )
    working = asyncio.ensure_future(worker.run(stop, every=0.01))
    async with asyncio.timeout(20):
        for number in range(3):
            await graph.submit({}, f"r{number}")
            assert await done.get() == f"r{number}"
        stop.set()
        await working


class Heard(logging.Handler):
    """Sets an event when something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.warned = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.warned.set()


async def test_a_worker_outlives_a_store_that_cannot_be_read(
    open_store: OpenStore, stop: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that is locked for longer than the store waits is logged, and looked at again."""
    before = open_store()
    await counting(before).submit({}, "r")
    await before.close()
    locking = sqlite3.connect(before.path, isolation_level=None)
    locking.execute("PRAGMA locking_mode=EXCLUSIVE")
    locking.execute("BEGIN EXCLUSIVE")
    done, heard = asyncio.Event(), Heard()
    logging.getLogger("stategraph.worker").addHandler(heard)
    graph = counting(open_store(timeout=0.01))
    worker = Worker(graph, told=lambda event: done.set() if event.event_type == "completed" else None)
    working = asyncio.ensure_future(worker.run(stop, every=0.02))
    try:
        async with asyncio.timeout(30):
            await heard.warned.wait()
            assert "cannot be read" in caplog.text
            locking.execute("ROLLBACK")
            locking.close()
            await done.wait()
            stop.set()
            await working
    finally:
        logging.getLogger("stategraph.worker").removeHandler(heard)


async def test_runs_behind_those_of_other_graphs_are_found_at_the_first_look(checkpointer: Checkpointer) -> None:
    """However many there are that are not for this worker."""
    other, mine = counting(checkpointer, "other"), counting(checkpointer, "mine")
    for number in range(25):
        await other.submit({}, f"other-{number}")
    await mine.submit({}, "mine")
    assert await Worker(mine, concurrency=2).poll() == 1
    assert (await mine.info("mine")).status == "completed"


async def test_a_run_that_cannot_be_read_when_its_boundarys_time_has_come_is_parked(
    checkpointer: Checkpointer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is due at every look, and nothing that a worker does makes it less so."""
    graph = paying(checkpointer, expires_in=60)
    await graph.run({}, "r")
    clock.advance(61)

    async def damaged(run_id: str, **more: Any) -> None:
        raise CorruptCheckpoint(run_id, 0, "it is damaged")

    monkeypatch.setattr(checkpointer, "load", damaged)
    worker = Worker(graph)
    assert [await worker.poll() for _ in range(4)] == [1, 1, 1, 0]
    assert "damaged" in str(worker.parked["r"])


@pytest.mark.parametrize("ails", [StoreFull, StoreReadOnly, StoreLocked, StoreUnavailable])
async def test_what_ails_the_store_is_no_runs_fault(
    checkpointer: Checkpointer, monkeypatch: pytest.MonkeyPatch, ails: type[Exception]
) -> None:
    """A disk that is full for a while parks nothing: the runs go on when there is room."""
    graph = counting(checkpointer)
    await graph.submit({}, "r")
    worker = Worker(graph)

    async def fails(*_: Any) -> None:
        raise ails("no room")

    with monkeypatch.context() as full:
        full.setattr(checkpointer, "claim", fails)
        for _ in range(5):
            await worker.poll()
    assert worker.parked == {}
    assert await worker.poll() == 1
    assert await statuses(checkpointer) == {"r": "completed"}


async def test_a_worker_of_a_closed_store_ends(open_store: OpenStore, stop: asyncio.Event) -> None:
    """A store that was closed is not opened again: there is nothing to wait for."""
    store = open_store()
    graph = counting(store)
    await graph.submit({}, "r")
    await store.close()
    with pytest.raises(StoreClosed):
        await Worker(graph).run(stop)


async def test_a_worker_does_not_wait_for_a_file_of_another_program(
    open_store: OpenStore, tmp_path: Path, stop: asyncio.Event
) -> None:
    """It will never be ours: whoever started the worker has mistyped its name."""
    (tmp_path / "runs.db").write_text("no database " * 500)
    with pytest.raises(StoreForeign):
        await Worker(counting(open_store())).run(stop)


async def test_what_a_listener_raises_stops_no_run(
    checkpointer: Checkpointer, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged; a node in the middle of its work is not stopped for it."""
    ran: list[str] = []

    async def node(state: Any) -> None:
        await asyncio.sleep(0.01)
        ran.append("once")

    def told(event: Any) -> None:
        raise OSError("the screen is broken")

    graph = counting(checkpointer, node=node)
    await graph.submit({}, "r")
    worker = Worker(graph, told=told)
    assert await worker.poll() == 1
    assert (ran, worker.parked, await statuses(checkpointer)) == (["once"], {}, {"r": "completed"})
    assert "the screen is broken" in caplog.text


async def test_a_worker_that_is_cancelled_twice_releases_what_it_holds(
    checkpointer: Checkpointer, stop: asyncio.Event
) -> None:
    """Its caller may close the store as soon as it is back."""
    begun = asyncio.Event()

    async def tidy(state: Any) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)

    graph = counting(checkpointer, node=tidy)
    await graph.submit({}, "r")
    working = asyncio.ensure_future(Worker(graph).run(stop))
    await begun.wait()
    for _ in range(2):
        working.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await statuses(checkpointer) == {"r": "ready"}


@pytest.mark.parametrize(
    ("graphs", "options", "sentence"),
    [
        (lambda a, b: [], {}, "nothing to drive"),
        (lambda a, b: [counting(a)], {"concurrency": 0}, "at least one run"),
        (lambda a, b: [counting(a), counting(b, "other")], {}, "share one checkpointer"),
        (lambda a, b: [counting(a), counting(a)], {}, "the same name"),
    ],
)
def test_a_worker_that_cannot_work_is_refused(
    open_store: OpenStore, graphs: Any, options: dict[str, Any], sentence: str
) -> None:
    """With one sentence that says what to do."""
    with pytest.raises(ValueError, match=sentence):
        Worker(*graphs(open_store(), open_store("other.db")), **options)


async def test_a_poll_costs_the_same_however_many_runs_have_ended(open_store: OpenStore) -> None:
    """Counted in steps of SQLite's machine: finished history is not looked at."""
    store = open_store(durability="relaxed")
    graph = counting(store)
    worker = Worker(graph)
    steps: list[int] = []
    for runs in (3, 400):
        await asyncio.gather(*(graph.run({}, f"{runs}-{number}") for number in range(runs)))
        await worker.poll()
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        store._database.set_progress_handler(count, 1)
        assert await worker.poll() == 0
        store._database.set_progress_handler(None, 1)
        steps.append(counted)
    assert steps[1] <= steps[0]


WORKFLOW = """
import asyncio
from stategraph import StateGraph

async def wait(state):
    print("started", flush=True)
    if state.get("stuck"):
        await asyncio.Event().wait()
    return {"done": True}

def build(checkpointer):
    graph = StateGraph(checkpointer, name="waits")
    return graph.add_node("wait", wait).set_entry_point("wait").add_edge("wait", "END")
"""


def stategraph(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "stategraph", *arguments]  # the default store is runs.db in the folder
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, error = process.communicate(timeout=60)
    return process.returncode, out, error


def test_the_command_drives_what_was_submitted(tmp_path: Path) -> None:
    """`submit` prints the id, `worker --once` a line for each run that comes to rest."""
    (tmp_path / "waits.py").write_text(WORKFLOW)
    assert finished(stategraph(tmp_path, "submit", "waits.py", "--run-id", "r1", "--input", "{}")) == (0, "r1\n", "")
    assert finished(stategraph(tmp_path, "worker", "waits.py", "--once")) == (0, "started\nr1: completed END\n", "")
    submitted = finished(stategraph(tmp_path, "submit", "waits.py", "--run-id", "r2", "--json"))
    assert json.loads(submitted[1]) == {"run_id": "r2"}
    code, out, _ = finished(stategraph(tmp_path, "worker", "waits.py", "--once", "--json"))
    told = [json.loads(line)["event_type"] for line in out.splitlines() if line.startswith("{")]
    assert (code, told) == (0, ["node_start", "state_update", "completed"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_command_releases_its_runs_when_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    """It ends with code 0, and the run that it drove is ready for the next worker."""
    (tmp_path / "waits.py").write_text(WORKFLOW)
    given = ["--run-id", "r", "--input", '{"stuck": true}']
    assert finished(stategraph(tmp_path, "submit", "waits.py", *given))[0] == 0
    worker = stategraph(tmp_path, "worker", "waits.py")
    assert worker.stdout is not None
    assert [worker.stdout.readline(), worker.stdout.readline()] == [
        "working on runs of waits; Ctrl-C stops\n", "started\n"
    ]  # fmt: skip
    worker.send_signal(number)
    assert finished(worker)[::2] == (0, "")
    async with SqliteCheckpointer(tmp_path / "runs.db") as store:
        head = await store.head("r")
    assert head is not None
    assert (head.status, head.owner) == ("ready", None)


def test_the_command_ends_when_nobody_reads_what_it_prints(tmp_path: Path) -> None:
    """As `stategraph worker --json | head -1` does it; no run is given up for that."""
    (tmp_path / "waits.py").write_text(WORKFLOW.replace('print("started", flush=True)', "await asyncio.sleep(0.2)"))
    for run_id in ("r1", "r2"):
        finished(stategraph(tmp_path, "submit", "waits.py", "--run-id", run_id))
    worker = stategraph(tmp_path, "worker", "waits.py", "--json", "-c", "1")
    assert worker.stdout is not None
    worker.stdout.readline()
    worker.stdout.close()
    assert worker.wait(timeout=60) == 141
    assert worker.stderr is not None
    assert "left alone" not in worker.stderr.read()
    worker.stderr.close()


def test_the_command_says_what_it_needs(tmp_path: Path) -> None:
    """Without a graph, and with one that keeps its runs elsewhere."""
    assert finished(stategraph(tmp_path, "worker"))[::2] == (
        2,
        "stategraph: no graph is named: type stategraph worker FILE, or list workflows under [tool.stategraph] in "
        "pyproject.toml\n",
    )
    (tmp_path / "own.py").write_text("from stategraph import StateGraph\ngraph = StateGraph(name='own')\n"
                                     "graph.add_node('a', lambda s: {}).set_entry_point('a')\n")  # fmt: skip
    assert "store of its own" in finished(stategraph(tmp_path, "worker", "own.py"))[2]
    assert "in memory alone" in finished(stategraph(tmp_path, "submit", "own.py"))[2]


def test_a_run_in_memory_is_a_workers_too() -> None:
    """A worker may share a process with those who submit."""

    async def main() -> Run:
        graph = counting(StateGraph().checkpointer)
        run_id = await graph.submit({})
        await Worker(graph).poll()
        return await graph.info(run_id)

    assert asyncio.run(main()).status == "completed"


def test_what_a_worker_logs_has_its_own_name() -> None:
    """So that it can be configured apart."""
    assert logging.getLogger("stategraph.worker").handlers == []


def test_a_retry_that_is_waited_for_survives_the_workers_death(tmp_path: Path) -> None:
    """The next worker waits for the time that is left, not for a person."""

    async def main() -> str:
        clock = ManualClock()
        async with SqliteCheckpointer(tmp_path / "runs.db", clock=clock) as store:
            tries: list[int] = []

            def flaky(state: Any) -> dict[str, Any]:
                tries.append(1)
                if len(tries) == 1:
                    raise OSError("busy")
                return {"done": True}

            graph = StateGraph(store, name="flaky").add_node("f", flaky, retry=Retry(2, delay=60))
            graph.set_entry_point("f").add_edge("f", "END")
            await graph.submit({}, "r")
            stop = asyncio.Event()
            dying = asyncio.ensure_future(Worker(graph, told=lambda event: stop.set()).run(stop))
            await dying
            clock.advance(61)
            await Worker(graph).poll()
            return (await graph.info("r")).status

    assert asyncio.run(main()) == "completed"


async def test_a_retry_in_an_hour_keeps_no_other_run_waiting(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Its run rests, pending, and is due when the time has come; a retry in a moment is waited for."""
    failing = {"far", "near"}

    def flaky(state: Any) -> dict[str, Any]:
        if state["id"] in failing:
            failing.discard(state["id"])
            raise OSError("busy")
        return {"done": True}

    graph = StateGraph(checkpointer, name="flaky").set_entry_point("choose").add_edge("f", "END").add_edge("g", "END")
    graph.add_node("choose", lambda state: {}).add_node("f", flaky, retry=Retry(2, delay=3600))
    graph.add_node("g", flaky, retry=Retry(2, delay=0.0))
    graph.add_conditional_edge("choose", lambda state: "f" if state["id"] == "far" else "g", ["f", "g"])
    for name in ("far", "near", "fine"):
        await graph.submit({"id": name}, name)
    worker = Worker(graph, concurrency=1)
    async with asyncio.timeout(20):
        assert [await worker.poll() for _ in range(4)] == [1, 1, 1, 0]
    assert await statuses(checkpointer) == {"far": "pending", "near": "completed", "fine": "completed"}
    with pytest.raises(RunNotClaimable, match="it waits to run 'f' again at"):
        _ = [event async for event in graph.resume("far")]
    clock.advance(3601)
    assert await worker.poll() == 1
    assert (await graph.info("far")).status == "completed"


async def test_a_worker_does_one_thing_at_a_time(checkpointer: Checkpointer, stop: asyncio.Event) -> None:
    """A poll beside a run would release what the run drives; it is refused, and possible again afterwards."""
    worker = Worker(counting(checkpointer))
    working = asyncio.ensure_future(worker.run(stop))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="at work already"):
        await worker.poll()
    stop.set()
    await working
    assert await worker.poll() == 0
