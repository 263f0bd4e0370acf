"""Processes that are killed: what is finished stays, what was under way is done again, asked about or driven under the same key.

Each is killed by SIGKILL, and judged by a file outside the store. STATEGRAPH_CRASH_STRIDE=1 kills at every line of the library.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stategraph import DecisionRefused, LeaseHeld, RunNotClaimable, StateGraph, UnknownRun
from stategraph.checkpoint import Policy
from tests.conftest import OpenStore
from tests.programs.ledger import lines
from tests.programs.order import NODES, build, finish, judged, report
from tests.programs.processes import end, hear, start

#: Of the moments at which a line of the library is executed every so many-th is tried.
STRIDE = int(os.environ.get("STATEGRAPH_CRASH_STRIDE", "29"))


def killed(folder: Path, policy: Policy, kind: str, many: int = 1) -> Counter[str]:
    """A campaign by two fork servers side by side: nothing went wrong in it; what happened."""
    servers = [start("killed", folder, policy, kind, share, 2, many) for share in range(2)]
    facts: Counter[str] = Counter()
    try:
        for server in servers:
            assert hear(server) == "ready"
        for server in servers:
            *wrong, total = map(json.loads, end(server, patience=3600).splitlines())
            assert wrong == []
            facts.update(total)
    finally:
        for server in servers:
            server.kill()
            server.communicate()
    return facts


@pytest.mark.parametrize("policy", ["ask", "keyed"])
def test_a_process_may_die_at_any_call_effect_or_event(tmp_path: Path, policy: Policy) -> None:
    """Before and after each call of the store and each effect, and at each event: the next process finishes the run.

    No finished node runs again, each effect is done once or asked about, the approval is asked once and never lost.
    """
    facts = killed(tmp_path, policy, "moment")
    assert facts["tried"] == facts["killed"] == facts["moments"] / 2 > 60
    assert facts["asked"], "no effect was in doubt: nobody was killed where it matters"
    assert facts["rerun"], "no node was under way: nobody was killed where it matters"
    if policy == "keyed":
        assert facts["recovered"] > facts["dedup_hits"] > 0, "no effect was driven again under its key"


@pytest.mark.parametrize("policy", ["ask", "keyed"])
def test_who_finishes_a_run_may_die_too(tmp_path: Path, policy: Policy) -> None:
    """Two deaths, one after the other, at any moments: the third process finishes the run."""
    facts = killed(tmp_path, policy, "pairs", 40)
    assert facts["tried"] == 40
    assert facts["killed"] > 55


def test_a_process_may_die_at_any_line(tmp_path: Path) -> None:
    """Of the engine, the graph, the decision, the stream and the store, its thread's included."""
    facts = killed(tmp_path, "ask", "line", STRIDE)
    assert facts["moments"] / 2 > 1000
    assert facts["killed"] > 0.8 * facts["tried"]


async def test_workers_that_keep_dying_finish_every_run(tmp_path: Path, open_store: OpenStore) -> None:
    """Three at work on the same runs, one of them killed again and again: each run ends, nothing is done twice."""
    store, dice = open_store(timeout=30), random.Random(7)
    runs = {f"r{number}": tmp_path / f"r{number}.ledger" for number in range(24)}
    workers: list[subprocess.Popen[str]] = []
    for run_id, ledger in runs.items():
        stream = build(store, ledger, lease=2).stream({"amount": 7}, run_id)
        await anext(stream)
        await stream.aclose()
    deaths = 0
    try:
        while any(head.status != "completed" for head in await store.runs(limit=100)):
            while len(workers) < 3:
                workers.append(start("worker", tmp_path, 2, len(workers) + deaths))
                assert await asyncio.to_thread(hear, workers[-1]) == "ready"
            if deaths < 12:
                await asyncio.sleep(dice.random() * 0.3)  # it may be anywhere
                dying = workers.pop(dice.randrange(3))
                dying.kill()
                dying.communicate()
                deaths += 1
            await asyncio.sleep(0.02)
        for worker in workers:
            await asyncio.to_thread(end, worker)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    for run_id, ledger in runs.items():
        assert judged(await report(build(store, ledger), run_id), lines(ledger), "ask") == [], run_id


# -- one death, looked at closely


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "runs.ledger"


@contextmanager
def at(
    where: str, path: Path, ledger: Path, verb: str = "start", lease: float = 30, policy: Policy = "ask"
) -> Iterator[subprocess.Popen[str]]:
    """A driver that stands at a moment of its run; it is killed at the end of the block, if not before."""
    process = start("stuck", path, ledger, verb, where, lease, policy)
    try:
        assert hear(process) == "ready"
        assert hear(process).startswith(where)
        yield process
    finally:
        process.kill()
        process.communicate()


async def kill(process: subprocess.Popen[str]) -> None:
    """The process dies, and no handler of it has run."""
    process.send_signal(signal.SIGKILL)
    assert await asyncio.to_thread(process.wait, 10) == -signal.SIGKILL


async def recovered(graph: StateGraph) -> list[str]:
    """What recovering tells, as soon as the dead driver's lease is over."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return [event.event_type async for event in graph.recover("r")]
        except LeaseHeld:
            assert time.monotonic() < deadline, "its lease never ends"
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("place", range(2))
async def test_a_dead_drivers_run_stands_at_its_last_finished_node(
    open_store: OpenStore, path: Path, ledger: Path, place: int
) -> None:
    """Killed in a node: its state is that of the nodes before, it stands at this one, and is taken over after the lease."""
    node = NODES[place]
    with at(f"after run {node}", path, ledger, lease=0.4) as driver:
        graph = build(open_store(), ledger)
        held = await graph.checkpointer.head("r")
        assert held is not None
        with pytest.raises(LeaseHeld) as told:
            await recovered_now(graph)
        assert told.value.owner == held.owner
        assert str(driver.pid) in str(told.value)
        await kill(driver)
    run = await graph.info("r")
    assert run.position is not None
    assert (run.position.node, run.steps) == (node, place)
    assert [key for key in NODES if key in run.state] == list(NODES[:place])
    assert (await recovered(graph))[-1] == "interrupted"
    after = await graph.info("r")
    assert after.status == "pending"
    assert after.usage["active_ms"] >= run.usage["active_ms"]
    assert lines(ledger).count(f"run {node}") == 2
    assert (await finish(graph, ledger)).status == "completed"


async def recovered_now(graph: StateGraph) -> None:
    async for _ in graph.recover("r"):
        pass


async def paused(open_store: OpenStore, ledger: Path, policy: Policy = "ask") -> StateGraph:
    """The run `r` waiting at its gate."""
    graph = build(open_store(), ledger, policy)
    await graph.run({"amount": 7}, "r")
    return graph


async def test_an_approval_survives_who_took_it_up(open_store: OpenStore, path: Path, ledger: Path) -> None:
    """Killed between the claim and the node: recovering goes on, approved, and nobody is asked again."""
    graph = await paused(open_store, ledger)
    with at("before run pay", path, ledger, "approve", lease=0.2) as driver:
        await kill(driver)
    told = await recovered(graph)
    assert "interrupted" not in told[:1]
    assert [row.kind for row in await graph.history("r")].count("decision") == 1
    run = await finish(graph, ledger)
    assert run.status == "completed"
    assert sum(line.startswith("effect pay") for line in lines(ledger)) == 1
    assert [boundary.kind for boundary in await graph.boundaries("r")].count("approval") == 1


async def test_what_was_approved_and_done_is_not_rejected_afterwards(
    open_store: OpenStore, path: Path, ledger: Path
) -> None:
    """Approved, paid, killed: a rejection from another process is told who approved; the payment is in doubt, and asked about."""
    graph = await paused(open_store, ledger)
    with at("after effect pay", path, ledger, "approve", lease=0.2) as driver:
        await kill(driver)
    (approval,) = await graph.boundaries("r")
    with pytest.raises(DecisionRefused, match="already approved by ann") as refused:
        await graph.decide("r", "rejected", boundary=approval.id, by="eve")
    assert (refused.value.by, refused.value.decision) == ("ann", "approved")
    assert await recovered(graph) == ["node_start", "interrupted"]
    (doubt,) = [boundary for boundary in await graph.boundaries("r") if boundary.state == "open"]
    assert (doubt.kind, doubt.node) == ("in_doubt", "pay")
    with pytest.raises(RunNotClaimable):
        await recovered_now(graph)
    assert sum(line.startswith("effect pay") for line in lines(ledger)) == 1, "never repeated silently"
    events = [event async for event in graph.resume("r", "approved", by="ops", answer={"paid": 7})]
    assert events[-1].event_type == "completed"
    assert sum(line.startswith("effect pay") for line in lines(ledger)) == 1


async def test_an_intent_without_its_effect_is_asked_about(open_store: OpenStore, path: Path, ledger: Path) -> None:
    """Killed after the intent and before the effect: it is not requested a second time until somebody says so."""
    with at("before effect mail", path, ledger, lease=0.2) as driver:
        await kill(driver)
    graph = build(open_store(), ledger)
    assert await recovered(graph) == ["node_start", "interrupted"]
    assert not [line for line in lines(ledger) if line.startswith("effect")]
    assert [event.event_type async for event in graph.resume("r", "retry", by="ops")][-1] == "interrupted"
    assert sum(line.startswith("effect mail") for line in lines(ledger)) == 1


@pytest.mark.parametrize(("where", "hit"), [("before effect mail", False), ("after effect mail", True)])
async def test_a_keyed_effect_is_driven_again_under_its_key(
    open_store: OpenStore, path: Path, ledger: Path, where: str, hit: bool
) -> None:
    """Its receiver takes it once; that it was recovered, and whether it had happened before, is told."""
    with at(where, path, ledger, lease=0.2, policy="keyed") as driver:
        await kill(driver)
    graph = build(open_store(), ledger, "keyed")
    await recovered(graph)
    emits = [emit for row in await graph.history("r") for emit in row.content.get("emits", ())]
    assert emits == [{"effect": "mail", "recovered": True, "provider_dedup_hit": hit}]
    assert sum(line.startswith("effect mail") for line in lines(ledger)) == 1
    assert (await graph.info("r")).status == "pending"


async def test_who_recovers_may_die_and_be_recovered(open_store: OpenStore, path: Path, ledger: Path) -> None:
    """Before its lease is over the run is held, after it anybody goes on."""
    with at("after run check", path, ledger, lease=0.2) as first:
        await kill(first)
    graph = build(open_store(), ledger)
    await once_claimable(graph)
    with at("after run check", path, ledger, "recover", lease=0.4) as second:
        with pytest.raises(LeaseHeld):
            await recovered_now(graph)
        await kill(second)
    assert (await recovered(graph))[-1] == "interrupted"
    assert lines(ledger).count("run check") == 3
    head = await graph.checkpointer.head("r")
    assert head is not None
    assert head.epoch == 3


async def once_claimable(graph: StateGraph) -> None:
    """Return when the run can be claimed."""
    deadline = time.monotonic() + 20
    while "r" not in (await graph.checkpointer.due())[0]:
        assert time.monotonic() < deadline, "its lease never ends"
        await asyncio.sleep(0.02)


async def test_a_run_is_there_before_its_first_effect(open_store: OpenStore, path: Path, ledger: Path) -> None:
    """Killed in the first node, or even before it: the run is known by its id and recoverable."""
    with at("before run check", path, ledger, lease=0.2) as driver:
        await kill(driver)
    graph = build(open_store(), ledger)
    assert [row.kind for row in await graph.history("r")] == ["start"]
    assert (await graph.info("r")).state == {"amount": 7}
    assert (await recovered(graph))[-1] == "interrupted"


async def test_a_run_that_has_ended_is_told_and_not_touched(open_store: OpenStore, ledger: Path) -> None:
    """Resuming or recovering it appends nothing and runs nothing."""
    graph = await paused(open_store, ledger)
    await finish(graph, ledger)
    log, ran = await graph.history("r"), lines(ledger)
    assert [event.event_type async for event in graph.resume("r")] == ["completed"]
    assert [event.event_type async for event in graph.recover("r")] == ["completed"]
    assert (await graph.history("r"), lines(ledger)) == (log, ran)


async def test_what_cannot_be_taken_over_is_told_by_its_status(open_store: OpenStore, ledger: Path) -> None:
    """An unknown run is a LookupError, one that cannot be claimed a RuntimeError that says why."""
    graph = await paused(open_store, ledger)
    with pytest.raises(LookupError, match="'nobody'") as unknown:
        await graph.info("nobody")
    assert isinstance(unknown.value, UnknownRun)
    for verb in (graph.recover, graph.resume):
        with pytest.raises(RuntimeError, match="'r' is pending; it waits for a decision of r:") as refused:
            await anext(verb("r"))
        assert isinstance(refused.value, RunNotClaimable)


async def test_a_program_that_forgets_to_close_ends(path: Path, ledger: Path) -> None:
    """The store's thread does not keep the process."""
    program = (
        "import asyncio, sys; from checkpointers.sqlite import SqliteCheckpointer\n"
        "async def main():\n"
        "    store = SqliteCheckpointer(sys.argv[1])\n"
        "    kept.append(store)\n"
        "    print(await store.runs())\n"
        "kept = []\n"
        "asyncio.run(main())\n"
    )
    await ends(program, path, "[]\n")


async def ends(program: str, path: Path, told: str, *, code: int = 0) -> None:
    """The program ends by itself within its time, and tells this."""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-P", "-c", program, str(path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (code, told), done.stderr
