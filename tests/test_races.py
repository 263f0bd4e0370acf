"""Who acts at the same moment: one is first, the others are told who was; real processes and threads on one file."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import Checkpointer, DecisionRefused, Run, StateGraph
from stategraph.checkpoint import Checkpoint
from tests.programs.ledger import lines
from tests.programs.processes import at_once, started
from tests.programs.racer import build


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What has really happened, outside any store."""
    file = tmp_path / "ledger"
    file.touch()
    return file


def pause(path: Path, ledger: Path, *run_ids: str) -> None:
    """Runs that wait at their gate."""

    async def run() -> None:
        async with SqliteCheckpointer(path) as store:
            for run_id in run_ids:
                await build(store, ledger).run({"order": run_id}, run_id)

    asyncio.run(run())


def look(path: Path, *run_ids: str) -> list[tuple[Run, list[Checkpoint]]]:
    """How the runs stand, and their logs."""

    async def read() -> list[tuple[Run, list[Checkpoint]]]:
        async with SqliteCheckpointer(path) as store:
            graph = build(store, "")
            return [(await graph.info(run_id), await graph.history(run_id)) for run_id in run_ids]

    return asyncio.run(read())


def one_winner(answers: list[dict[str, Any]], many: int) -> dict[str, Any]:
    """The only one who has decided; all others were told who it was, what and when."""
    assert len(answers) == many
    assert not [answer for answer in answers if "error" in answer]
    winners = [answer for answer in answers if "done" in answer]
    assert len(winners) == 1, winners
    (winner,) = winners
    for loser in answers:
        if loser is not winner:
            assert loser["by"] == winner["who"], loser
            assert loser["decision"] == winner["who"].split()[0], loser
            assert isinstance(loser["at_ms"], int), loser
            assert winner["who"] in loser["refused"], loser
    return winner


async def test_a_hundred_approvers_of_one_program_have_one_winner(checkpointer: Checkpointer, ledger: Path) -> None:
    """Ninety-nine are told who won, what and when; nothing has run yet."""
    graph = build(checkpointer, ledger)
    await graph.run({"order": "a"}, "a")

    async def approve(who: str) -> Any:
        try:
            return await graph.decide("a", "approved", by=who, boundary="a:1.0")
        except DecisionRefused as refused:
            return refused

    answers = await asyncio.gather(*(approve(f"approver {number}") for number in range(100)))
    refusals = [answer for answer in answers if isinstance(answer, DecisionRefused)]
    (won,) = [answer for answer in answers if not isinstance(answer, DecisionRefused)]
    assert len(refusals) == 99
    assert {(refused.by, refused.decision, refused.at_ms) for refused in refusals} == {(won.by, "approved", won.at_ms)}
    assert lines(ledger) == ["a plan"]


@pytest.mark.parametrize("other", ["approved", "rejected"])
async def test_two_clicks_at_once_do_the_work_once(checkpointer: Checkpointer, ledger: Path, other: str) -> None:
    """Yes and yes, yes and no, in one program: each caller gets its own answer, the loser has started nothing."""
    graph = build(checkpointer, ledger)

    async def click(run_id: str, word: str, who: str) -> list[str] | DecisionRefused:
        try:
            return [event.event_type async for event in graph.resume(run_id, word, boundary="1.0", by=who)]
        except DecisionRefused as refused:
            return refused

    for run_id in [f"r{number}" for number in range(10)]:
        await graph.run({"order": run_id}, run_id)
        answers = await asyncio.gather(click(run_id, "approved", "ann"), click(run_id, other, "bob"))
        won = 0 if isinstance(answers[1], DecisionRefused) else 1
        told = answers[1 - won]
        assert isinstance(told, DecisionRefused)
        assert (told.by, told.decision) == (("ann", "approved"), ("bob", other))[won]
        assert isinstance(answers[won], list)
        paid = lines(ledger).count(f"{run_id} pay")
        assert (answers[won][-1:], paid) == ((["completed"], 1) if told.decision == "approved" else (["rejected"], 0))  # type: ignore[index]


@pytest.mark.parametrize(("processes", "threads", "rounds"), [(4, 5, 12), (4, 25, 6)])
def test_approvers_in_many_processes_have_one_winner(
    tmp_path: Path, ledger: Path, processes: int, threads: int, rounds: int
) -> None:
    """Twenty, then a hundred, each with a connection of its own: exactly one decision, and it is in the log once."""
    path, runs = tmp_path / "runs.db", [f"r{number}" for number in range(rounds)]
    pause(path, ledger, *runs)
    with started("racer", processes, path, ledger, threads) as crowd:
        for run_id in runs:
            orders = [
                [["decide", run_id, f"approved by {process}.{thread}"] for thread in range(threads)]
                for process in range(processes)
            ]
            answers = list(itertools.chain(*at_once(crowd, orders)))
            winner = one_winner(answers, processes * threads)
            assert {answer["at_ms"] for answer in answers if answer is not winner} == {winner["done"]["at_ms"]}
    for run, log in look(path, *runs):
        assert (run.status, [row.kind for row in log]) == ("ready", ["start", "node", "decision"])
    assert lines(ledger) == [f"{run_id} plan" for run_id in runs]


@pytest.mark.parametrize("other", ["approved", "rejected"])
def test_two_processes_that_resume_at_once_do_the_work_once(tmp_path: Path, ledger: Path, other: str) -> None:
    """Yes and yes, yes and no: one is stored, each caller gets its own answer, the loser before any work."""
    path, runs = tmp_path / "runs.db", [f"r{number}" for number in range(20)]
    pause(path, ledger, *runs)
    before = len(lines(ledger))
    expected = []
    with started("racer", 2, path, ledger, 1, 0.05) as crowd:
        for run_id in runs:
            orders = [[["resume", run_id, "approved by a"]], [["resume", run_id, f"{other} by b"]]]
            winner = one_winner(list(itertools.chain(*at_once(crowd, orders))), 2)
            if winner["who"].startswith("approved"):
                expected += [f"{run_id} pay", f"{run_id} close"]
                assert winner["done"] == ["node_start", "state_update"] * 2 + ["completed"]
            else:
                assert winner["done"] == ["rejected"]
    assert lines(ledger)[before:] == expected
    statuses = {run.status for run, _ in look(path, *runs)}
    assert statuses <= ({"completed"} if other == "approved" else {"completed", "rejected"})


def approve(path: Path, *run_ids: str) -> None:
    """Release the runs; nobody drives them yet."""

    async def decide() -> None:
        async with SqliteCheckpointer(path) as store:
            for run_id in run_ids:
                await build(store, "").decide(run_id, "approved", by="ann")

    asyncio.run(decide())


def test_processes_that_recover_at_once_drive_once(tmp_path: Path, ledger: Path) -> None:
    """Three engines each in two processes race for a run and its effect: one has the lease and does it, the others are told."""
    path, runs = tmp_path / "runs.db", [f"r{number}" for number in range(20)]
    pause(path, ledger, *runs)
    approve(path, *runs)
    before = len(lines(ledger))
    with started("racer", 2, path, ledger, 3) as crowd:
        for run_id in runs:
            orders = [[["recover", run_id, f"{process}.{thread}"] for thread in range(3)] for process in range(2)]
            answers = list(itertools.chain(*at_once(crowd, orders)))
            drove = [answer for answer in answers if len(answer.get("done", ())) == 5]
            assert len(drove) == 1, answers
            for answer in answers:
                late = answer.get("done") == ["completed"] or "is completed" in answer.get("said", "")
                assert answer in drove or late or answer.get("error") == "LeaseHeld", answer
    assert lines(ledger)[before:] == [f"{run_id} {node}" for run_id in runs for node in ("pay", "close")]
    for run, log in look(path, *runs):
        assert (run.status, [row.seq for row in log]) == ("completed", list(range(5)))


def test_four_workers_that_poll_do_a_run_once(tmp_path: Path, ledger: Path) -> None:
    """Whoever is first drives it, the others find it held and then ended."""
    path, runs = tmp_path / "runs.db", [f"r{number}" for number in range(10)]
    pause(path, ledger, *runs)
    approve(path, *runs)
    before = len(lines(ledger))
    with started("racer", 4, path, ledger) as crowd:
        for run_id in runs:
            answers = at_once(crowd, [[["poll", run_id, str(process)]] for process in range(4)])
            assert max(answer["done"] for (answer,) in answers) == 5, answers
    assert lines(ledger)[before:] == [f"{run_id} {node}" for run_id in runs for node in ("pay", "close")]
    assert {len(log) for _, log in look(path, *runs)} == {5}


def test_processes_may_open_a_new_file_at_once(tmp_path: Path, ledger: Path) -> None:
    """One of them makes it, all use it; 25 rounds."""
    with started("racer", 3, tmp_path / "unused.db", ledger, 2) as crowd:
        for number in range(25):
            path = tmp_path / f"{number}.db"
            orders = [[["make", str(path), f"{process}.{thread}"] for thread in range(2)] for process in range(3)]
            answers = list(itertools.chain(*at_once(crowd, orders)))
            assert [answer.get("done") for answer in answers] == ["pending"] * 6, answers
            names = [f"{process}.{thread}" for process in range(3) for thread in range(2)]
            assert {run.status for run, _ in look(path, *names)} == {"pending"}


def test_yes_no_and_stop_have_one_outcome(tmp_path: Path, ledger: Path) -> None:
    """Approvals, rejections and cancels of one run at once: one decision at most, one end, and nothing after it."""
    path, runs = tmp_path / "runs.db", [f"r{number}" for number in range(15)]
    pause(path, ledger, *runs)
    with started("racer", 3, path, ledger, 6) as crowd:
        for run_id in runs:
            orders = [
                [
                    ["cancel", run_id, f"stop {process}.{thread}"]
                    if thread % 3 == 0
                    else ["decide", run_id, f"{'approved' if thread % 3 == 1 else 'rejected'} by {process}.{thread}"]
                    for thread in range(6)
                ]
                for process in range(3)
            ]
            answers = list(itertools.chain(*at_once(crowd, orders)))
            assert not [answer for answer in answers if "error" in answer], answers
            ((run, log),) = look(path, run_id)
            decisions = [row for row in log if row.kind == "decision"]
            stopped = [row for row in log if row.kind == "cancel"]
            decided = [answer for answer in answers if isinstance(answer.get("done"), dict)]
            stops = [answer for answer in answers if answer.get("done") is True]
            assert (len(decided), len(stops)) == (len(decisions), len(stopped)), answers
            assert len(decisions) <= 1
            assert len(stopped) <= 1
            if decisions and decisions[0].decision == "rejected":
                assert (run.status, stopped) == ("rejected", [])
            else:
                assert (run.status, len(stopped)) == ("cancelled", 1)
            assert (log[-1].status, log[-1].seq) == (run.status, run.seq)
    assert len(lines(ledger)) == len(runs)


async def test_one_store_may_be_shared_by_threads(tmp_path: Path, ledger: Path) -> None:
    """Each thread with an event loop of its own: every run goes its way, every append is answered in its loop."""
    async with SqliteCheckpointer(tmp_path / "runs.db") as store:
        graph = StateGraph(store, 60, name="long").set_entry_point("work")
        graph.add_node("work", lambda state: {"round": state["round"] + 1})
        graph.add_conditional_edge("work", lambda state: "work" if state["round"] < 50 else "END")
        together: list[Callable[[], Run]] = [
            lambda name=f"{thread}.{task}": graph.run_sync({"round": 0}, name)  # type: ignore[misc]
            for thread in range(4)
            for task in range(3)
        ]
        runs = await asyncio.gather(*(asyncio.to_thread(run) for run in together))
        assert {(run.status, run.seq) for run in runs} == {("completed", 50)}


async def test_many_runs_at_once_lose_nothing(checkpointer: Checkpointer) -> None:
    """Their appends are committed together and answered apart."""
    graph = StateGraph(checkpointer, name="short").set_entry_point("a").add_edge("a", "b")
    for node in "ab":
        graph.add_node(node, lambda state, node=node: {node: state["name"]})
    started_runs: list[Coroutine[Any, Any, Run]] = [graph.run({"name": n}, f"r{n}") for n in range(400)]
    runs = await asyncio.gather(*started_runs)
    assert all(run.state == {"name": n, "a": n, "b": n} for n, run in enumerate(runs))
    assert [head.seq for head in await checkpointer.runs(status="completed", limit=1000)] == [2] * 400
