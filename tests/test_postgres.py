"""What is peculiar to the PostgreSQL store; what every store promises is in test_checkpointers, on this one too."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from checkpointers import MemoryCheckpointer, PostgresCheckpointer, postgres_server
from checkpointers.postgres_clock import ServerClock
from checkpointers.postgres_schema import VERSION, statements
from checkpointers.postgres_server import GROUP, LANES
from stategraph import (
    AgentState,
    CheckpointerError,
    CorruptCheckpoint,
    ManualClock,
    StateGraph,
    StoreClosed,
    StoreForeign,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
    Worker,
    open_checkpointer,
)
from stategraph.checkpoint import Lease, Written
from stategraph.testing.byhand import GATE, LEASE_MS, cancel, create, decide, paused, visit
from tests.conftest import ALONE, EMPTY, OpenPostgres
from tests.programs.commandline import REFUND, Folder, Typist
from tests.programs.kept import everything
from tests.programs.ledger import lines, note
from tests.programs.postgres import Server, execute, fetch, of_database, pooler, server
from tests.programs.processes import at_once, started
from tests.programs.racer import build
from tests.programs.verbs import life
from tests.programs.walking import Walk
from tests.programs.wire import Cut, Wire, wired

SECRET = "s3cr3t"
#: The connections of the stores under test.
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'stategraph'"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What has really happened, outside any store."""
    file = tmp_path / "ledger"
    file.touch()
    return file


@pytest.fixture
async def wire(postgres: str, open_postgres: OpenPostgres) -> AsyncIterator[tuple[Wire, PostgresCheckpointer]]:
    """A wire, and at its end a store of one connection that has sent all its statements once."""
    async with wired(postgres) as (wire, near):
        store = open_postgres(url=near, connections=1)
        for _, call in life(store, "before"):
            await call()
        yield wire, store
        await store.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that the test may do with as it likes."""
    with server() as own:
        yield own


@pytest.fixture
async def pooled(postgres: str) -> AsyncIterator[str]:
    """The tests' database behind a transaction pooler."""
    with pooler(postgres) as url:
        yield url


@asynccontextmanager
async def locked(url: str, run_id: str) -> AsyncIterator[None]:
    """Somebody else's transaction sits on the run's row."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT FROM stategraph.runs WHERE run_id = $1 FOR UPDATE", run_id)
            yield
    finally:
        await connection.close()


async def until(url: str, what: str, count: int) -> None:
    """Return when the server counts so many."""
    connection = await asyncpg.connect(url)
    try:
        while await connection.fetchval(f"SELECT count(*) {what}") != count:
            pass  # the server tells nobody when that changes; asking lets the others go on
    finally:
        await connection.close()


def workflow(name: str) -> ModuleType:
    """A file of workflows/, loaded as users load it."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "workflows" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counting(store: PostgresCheckpointer, ledger: Path, steps: int) -> StateGraph:
    """A graph that counts to a number, each step noted in the ledger."""

    def count(state: AgentState) -> dict[str, int]:
        note(ledger, f"{state['name']} {state['count']}")
        return {"count": state["count"] + 1}

    graph = StateGraph(store, steps + 1, name="counting").add_node("count", count).set_entry_point("count")
    return graph.add_conditional_edge(
        "count", lambda state: "count" if state["count"] < steps else "END", ["count", "END"]
    )


# -- from end to end


async def test_a_refund_waits_for_its_approval_and_goes_on_elsewhere(open_postgres: OpenPostgres) -> None:
    """It stops at its gate; another store, as in another process, decides and takes it to its end."""
    refund = workflow("refund").build
    waiting = await refund(open_postgres()).run({"order": "A1", "amount": 900}, run_id="refund-1")
    assert waiting.status == "pending"
    graph = refund(open_postgres())
    events = [event.event_type async for event in graph.resume("refund-1", "approved", by="ann", note="a\x00")]
    assert events[-1] == "completed"
    state = (await graph.info("refund-1")).state
    assert (state["status"], state["approval_recorded"]) == ("success", True)
    (boundary,) = await open_postgres().boundaries("refund-1")
    assert boundary.decided is not None
    assert (boundary.decided.by, boundary.decided.note) == ("ann", "a\x00")


async def test_each_verb_is_one_round_trip(wire: tuple[Wire, PostgresCheckpointer]) -> None:
    """Two rows at once, a snapshot and boundaries too; and each is accepted."""
    line, store = wire
    for name, call in life(store, "r"):
        before = line.turns
        answer = await call()
        assert answer is not None, name
        assert answer is not False, name
        assert line.turns - before == 1, name


async def test_many_runs_at_once_share_their_round_trips(wire: tuple[Wire, PostgresCheckpointer]) -> None:
    """More runs than a group takes: each row is answered, by far fewer round trips than there are rows."""
    line, store = wire
    leases = [await create(store, f"r{number}") for number in range(GROUP + 40)]
    before = line.turns
    answers = await asyncio.gather(*(store.append(lease, 0, [visit(0)]) for lease in leases))
    assert [answer and (answer.seq, answer.status) for answer in answers] == [(1, "running")] * len(leases)
    assert line.turns - before <= LANES + 4
    assert {head.seq for head in await store.runs(limit=1000)} == {1}


# -- the same answers as in memory

WALKS, STEPS, SHARES = 320, 30, 8


@pytest.mark.parametrize("share", range(SHARES))
async def test_the_store_answers_as_that_in_memory_does(
    open_postgres: OpenPostgres, postgres: str, clock: ManualClock, share: int
) -> None:
    """Whatever sequence of verbs, sensible or not: each answer and all that can be read are equal after every step."""
    store = open_postgres()
    for number in range(share, WALKS, SHARES):
        await execute(postgres, EMPTY)
        await walk_through(store, clock, number)


async def walk_through(store: PostgresCheckpointer, clock: ManualClock, number: int) -> None:
    async with MemoryCheckpointer(clock=clock) as memory:
        walk = Walk(memory, store, clock, Random(number))
        try:
            for _ in range(STEPS):
                await walk.step()
            assert await everything(memory) == await everything(store)
        except BaseException as error:
            error.add_note(f"walk {number}: " + " | ".join(walk.trace))
            raise


# -- races


@pytest.mark.parametrize(("processes", "threads", "rounds"), [(4, 5, 10), (4, 15, 4)])
def test_approvers_in_many_processes_have_one_winner(
    postgres: str, ledger: Path, processes: int, threads: int, rounds: int
) -> None:
    """Each with a connection of its own: exactly one decision, the others are told whose, and it is in the log once."""
    runs = [f"r{number}" for number in range(rounds)]
    asyncio.run(pause(postgres, ledger, runs))
    with started("racer", processes, postgres, ledger, threads) as crowd:
        for run_id in runs:
            orders = [
                [["decide", run_id, f"approved by {process}.{thread}"] for thread in range(threads)]
                for process in range(processes)
            ]
            answers = list(itertools.chain(*at_once(crowd, orders)))
            (winner,) = [answer for answer in answers if "done" in answer]
            told = {(answer["by"], answer["at_ms"]) for answer in answers if answer is not winner}
            assert told == {(winner["who"], winner["done"]["at_ms"])}
    assert asyncio.run(logs(postgres, runs)) == [["start", "node", "decision"]] * rounds
    assert lines(ledger) == [f"{run_id} plan" for run_id in runs]


def test_workers_in_many_processes_do_each_step_once(postgres: str, ledger: Path) -> None:
    """All of them try to take every run on: the lease is one's, and the ledger has each step of each run once."""
    runs = [f"r{number}" for number in range(6)]
    asyncio.run(pause(postgres, ledger, runs))
    with started("racer", 3, postgres, ledger, 2, 0.01) as crowd:
        for run_id in runs:
            at_once(crowd[:1], [[["decide", run_id, "approved by ann"]]])
            at_once(crowd, [[["poll", run_id, "worker"]] * 2 for _ in crowd])
    done = ["start", "node", "decision", "node", "node"]
    assert asyncio.run(logs(postgres, runs)) == [done] * len(runs)
    assert sorted(lines(ledger)) == sorted(f"{run_id} {what}" for run_id in runs for what in ("plan", "pay", "close"))


async def test_workers_share_the_runs_of_a_server(open_postgres: OpenPostgres, ledger: Path) -> None:
    """Each run is driven by one of them, though all look at the same moment; each step is done once."""
    workers = [Worker(counting(open_postgres(), ledger, 3)) for _ in range(3)]
    graph = counting(open_postgres(), ledger, 3)
    for number in range(12):
        await graph.submit({"name": f"r{number}", "count": 0}, f"r{number}")
    while sum(await asyncio.gather(*(worker.poll() for worker in workers))):
        pass
    assert {(head.status, head.epoch) for head in await open_postgres().runs()} == {("completed", 1)}
    assert sorted(lines(ledger)) == sorted(f"r{run} {step}" for run in range(12) for step in range(3))


def test_processes_that_make_the_schema_at_once_all_find_it(new_postgres: str, ledger: Path) -> None:
    """An empty database, opened by twelve at the same moment: it is made once, and each starts a run in it."""
    with started("racer", 4, new_postgres, ledger, 3) as crowd:
        orders = [[["make", new_postgres, f"{process}.{thread}"] for thread in range(3)] for process in range(4)]
        answers = list(itertools.chain(*at_once(crowd, orders)))
    assert [answer.get("done") for answer in answers] == ["pending"] * 12, answers
    assert len(asyncio.run(fetch(new_postgres, "SELECT version FROM stategraph.version"))) == 1


async def pause(url: str, ledger: Path, runs: list[str]) -> None:
    """Runs that wait at their gate."""
    async with PostgresCheckpointer(url) as store:
        for run_id in runs:
            await build(store, ledger).run({"order": run_id}, run_id)


async def logs(url: str, runs: list[str]) -> list[list[str]]:
    """The kinds of the rows of each run."""
    async with PostgresCheckpointer(url) as store:
        return [[row.kind for row in await store.history(run_id)] for run_id in runs]


async def test_an_append_waits_for_nobody_elses_run(open_postgres: OpenPostgres, postgres: str) -> None:
    """Somebody sits on the row of one run: its own append is refused in the end as locked, the others are not held up."""
    store = open_postgres()
    leases = [await create(store, f"r{number}") for number in range(3 * LANES)]
    async with locked(postgres, "r0"):
        answers = await asyncio.gather(
            *(store.append(lease, 0, [visit(0)]) for lease in leases), return_exceptions=True
        )
    assert isinstance(answers[0], StoreLocked)
    assert [answer.seq for answer in answers if isinstance(answer, Written)] == [1] * (3 * LANES - 1)
    assert await store.append(leases[0], 0, [visit(0)]) is not None


@pytest.mark.parametrize("kinds", [("node", "failed"), ("failed", "node"), ("node", "route"), ("failed", "failed")])
async def test_a_visit_that_two_executors_finish_at_once_has_one_row(
    open_postgres: OpenPostgres, postgres: str, kinds: tuple[str, str]
) -> None:
    """Both hold the same lease and have waited for the run's row: whoever gets it first writes, the other is refused."""
    stores = [open_postgres(), open_postgres()]
    lease = await create(stores[0])
    await stores[1].head("r")
    appends = []
    async with locked(postgres, "r"):
        for store, kind in zip(stores, kinds, strict=True):
            appends.append(asyncio.create_task(store.append(lease, 0, [visit(0, kind=kind)])))
            await until(postgres, f"{OURS} AND wait_event_type = 'Lock'", len(appends))
    answers = await asyncio.gather(*appends)
    assert [answer and answer.seq for answer in answers] == [1, None]
    assert [row.kind for row in await stores[0].history("r", after=0)] == [kinds[0]]


async def test_two_branches_that_step_at_once_both_step(open_postgres: OpenPostgres, postgres: str) -> None:
    """Rows of different visits do not refuse each other, though the second one's driver has not seen the first's."""
    stores = [open_postgres(), open_postgres()]
    lease = await create(stores[0])
    await stores[1].head("r")
    appends = []
    async with locked(postgres, "r"):
        for number, store in enumerate(stores):
            appends.append(asyncio.create_task(store.append(lease, 0, [visit(0, path=f"0.{number}")])))
            await until(postgres, f"{OURS} AND wait_event_type = 'Lock'", len(appends))
    answers = await asyncio.gather(*appends)
    assert [answer and (answer.seq, answer.status) for answer in answers] == [(1, "running"), (2, "running")]


async def test_one_broken_append_disturbs_no_other_run(open_postgres: OpenPostgres) -> None:
    """Runs whose appends go together are answered each on its own."""
    store = open_postgres()
    leases = [await create(store, f"r{number}") for number in range(20)]
    appends = [store.append(lease, 0, [visit(0, path="\x00" if lease.run_id == "r10" else "")]) for lease in leases]
    answers = await asyncio.gather(*appends, return_exceptions=True)
    assert isinstance(answers.pop(10), CheckpointerError)
    assert [answer.seq for answer in answers if isinstance(answer, Written)] == [1] * 19


# -- time


async def test_the_time_is_the_servers(open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine whose clock is an hour ahead a lease still lasts, and what is told of the time is right."""
    real = time.time_ns
    before = real() // 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: real() + 3600 * 10**9)
    store = open_postgres()
    lease = await create(store)
    written = await store.append(lease, 0, [visit(0)])
    assert written is not None
    assert before - 1000 < written.at_ms < before + 60_000
    assert await store.claim("r", "other", LEASE_MS) is None
    assert abs(store.clock.now() - real() // 1_000_000) < 60_000
    head = await store.head("r")
    assert head is not None
    assert head.lease_until is not None
    assert head.lease_until < before + 60_000 + LEASE_MS


def test_what_is_known_of_the_servers_clock_lies_between_question_and_answer() -> None:
    """It is moved no further than it must be, so that a slow answer does not unsettle it."""
    clock = ServerClock()
    clock.hear(told=5_000, asked=1_000, heard=1_010)
    assert clock._ahead == 3_990
    clock.hear(told=6_000, asked=1_500, heard=3_000)
    assert clock._ahead == 3_990
    clock.hear(told=7_000, asked=6_990, heard=7_000)
    assert clock._ahead == 10


async def test_the_servers_clock_is_slept_by() -> None:
    clock = ServerClock()
    due = clock.now() + 30
    await clock.sleep_until(due)
    assert due <= clock.now() < due + 5_000


# -- leases are renewed from another thread


@pytest.mark.parametrize("with_url", [True, False], ids=["url", "pool"])
async def test_a_lease_outlives_a_node_that_takes_its_time(
    postgres: str, open_postgres: OpenPostgres, with_url: bool
) -> None:
    """Renewed over the store's own connections, or through the user's pool, while the node is at work."""
    async with asyncpg.create_pool(postgres, min_size=1, max_size=2) as pool:
        store = PostgresCheckpointer(postgres) if with_url else PostgresCheckpointer(pool=pool)
        seen: list[Lease | None] = []

        async def work(state: AgentState) -> dict[str, Any]:
            for _ in range(4):
                await asyncio.sleep(0.3)
                seen.append(await open_postgres().claim("r", "thief", LEASE_MS))
            return {"done": True}

        graph = StateGraph(store, name="slow", lease=0.6).add_node("work", work).set_entry_point("work")
        assert (await graph.run({}, "r")).status == "completed"
        assert seen == [None] * 4
        await store.close()


async def test_a_lease_outlives_a_node_that_blocks_its_loop(postgres: str, open_postgres: OpenPostgres) -> None:
    """The heart's thread has its own way to the server."""
    store = open_postgres()

    def block(state: AgentState) -> dict[str, Any]:
        time.sleep(1.5)
        return {"done": True}

    graph = StateGraph(store, name="block", lease=0.6).add_node("block", block).set_entry_point("block")
    with pytest.warns(RuntimeWarning, match="blocking=True"):
        assert (await graph.run({}, "r")).status == "completed"
    head = await store.head("r")
    assert head is not None
    assert head.epoch == 1


def test_a_store_serves_one_loop_after_the_other(postgres: str) -> None:
    """And leaves no connection behind when a loop ends, though nobody has closed it."""
    store = PostgresCheckpointer(postgres)
    for number in range(3):
        asyncio.run(create_and_look(store, f"r{number}"))
    ((left,),) = asyncio.run(
        fetch(postgres, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stategraph'")
    )
    assert left == 0


async def create_and_look(store: PostgresCheckpointer, run_id: str) -> None:
    await create(store, run_id)
    assert await store.head(run_id) is not None


async def test_a_store_serves_two_loops_at_once(open_postgres: OpenPostgres) -> None:
    """Rows from this loop and from another thread's are in one log."""
    store = open_postgres()
    lease = await create(store)

    def elsewhere() -> Written | None:
        return asyncio.run(store.append(lease, 1, [visit(1)]))

    assert await store.append(lease, 0, [visit(0)]) is not None
    written = await asyncio.get_running_loop().run_in_executor(None, elsewhere)
    assert written is not None
    assert written.seq == 2


# -- the command line


def test_the_commands_work_on_a_server(postgres: str, tmp_path: Path) -> None:
    """From the run's start to its end, each in a process of its own; and the doctor finds nothing broken."""
    typist = Typist()
    folder = Folder(tmp_path, typist)
    folder.write("refund.py", REFUND)
    commands = [
        (("run", "refund.py", "--input", '{"amount": 900}', "--run-id", "r1"), "pending"),
        (("approve", "r1", "--file", "refund.py", "--by", "ann"), "completed"),
        (("show", "r1"), "completed"),
        (("runs",), "r1"),
        (("doctor",), "every digest as it was written"),
    ]
    try:
        for words, what in commands:
            done = folder.type(*words, STATEGRAPH_STORE=postgres)
            assert what in done.out, (words, done)
    finally:
        typist.close()


# -- what is acknowledged is kept


async def test_a_commit_is_durable_though_the_database_says_otherwise(new_postgres: str) -> None:
    """A database's, a role's or a session's `synchronous_commit = off` is not for us; `remote_apply` is stronger."""
    async with PostgresCheckpointer(new_postgres) as store:
        await store.runs()
    connection = await asyncpg.connect(new_postgres)
    try:
        for setting, means in {"off": "on", "local": "on", "on": "on", "remote_apply": "remote_apply"}.items():
            async with connection.transaction():
                await connection.execute(f"SET LOCAL synchronous_commit TO {setting}")
                await connection.fetch("SELECT * FROM stategraph.sg_release('nobody', 1, 'w')")
                assert await connection.fetchval("SHOW synchronous_commit") == means
    finally:
        await connection.close()


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_connection_that_dies_in_a_verb_costs_nothing(
    wire: tuple[Wire, PostgresCheckpointer], clock: ManualClock, cut: Cut
) -> None:
    """Not heard, or carried out and not told of: each verb is made again, and what is stored is as if nothing had been.

    An append that was carried out is refused, as its driver expects: it reads the log. All else is answered as if heard.
    """
    line, store = wire
    async with MemoryCheckpointer(clock=clock) as memory:
        for (name, call), (_, same) in zip(life(store, "r"), life(memory, "r"), strict=True):
            line.cut = cut
            answer, expected = await call(), await same()
            assert line.cut is None, name
            if cut == "after" and name in ("append", "settle"):
                assert answer in (None, expected), name
            elif name not in ("runs", "due"):  # of the other run, too
                assert answer == expected, name
            if name != "delete":
                assert await store.load("r") == await memory.load("r"), name
                assert await store.boundaries("r") == await memory.boundaries("r"), name
        assert await store.head("r") is None


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_server_that_is_restarted_loses_no_step(own_server: Server, ledger: Path, mode: str) -> None:
    """Stopped twice in the middle of ten runs, gently and by force: all go on, and no node has run twice."""
    async with PostgresCheckpointer(own_server.url, timeout=60) as store:
        graph = counting(store, ledger, 40)
        runs = [
            asyncio.create_task(graph.run({"name": f"r{number}", "count": 0}, f"r{number}")) for number in range(10)
        ]
        for share in (60, 200):
            while len(lines(ledger)) < share:  # noqa: ASYNC110  # a file tells nobody that it grows
                await asyncio.sleep(0.01)
            await asyncio.to_thread(own_server.control, "restart", "-m", mode)
        for run in await asyncio.gather(*runs):
            assert (run.status, run.seq) == ("completed", 40)
    assert sorted(lines(ledger)) == sorted(f"r{run} {step}" for run in range(10) for step in range(40))


async def test_a_server_that_is_gone_is_said_to_be(own_server: Server) -> None:
    """After the time that it was given; and when it is back, the same store goes on."""
    async with PostgresCheckpointer(own_server.url, timeout=0.5) as store:
        lease = await create(store)
        await asyncio.to_thread(own_server.control, "stop", "-m", "fast")
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="postgresql://"):
                await store.append(lease, 0, [visit(0)])
        await asyncio.to_thread(own_server.start)
        assert await store.append(lease, 0, [visit(0)]) is not None


async def test_a_server_that_says_nothing_is_given_up(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a firewall forgets a connection; the verb is not made again, as nobody knows what has become of it."""
    monkeypatch.setattr(postgres_server, "PATIENCE", 0.4)
    async with wired(postgres) as (line, near), PostgresCheckpointer(near, connections=1) as store:
        lease = await create(store)
        line.silent = True
        for call in (store.head("r"), store.append(lease, 0, [visit(0)])):
            with pytest.raises(StoreUnavailable, match=r"postgresql://.*nothing for 0.4 s"):
                await call
            line.silent = False
            assert await store.head("r") is not None
            line.silent = True
        line.silent = False
        assert await store.append(lease, 0, [visit(0)]) is not None


async def test_a_verb_that_is_cancelled_while_it_waits_is_given_up(open_postgres: OpenPostgres, postgres: str) -> None:
    """Its connection goes with it, the next verb gets another, and the log holds the row or does not."""
    store = open_postgres(connections=1)
    lease = await create(store)
    async with locked(postgres, "r"):
        append = asyncio.create_task(store.append(lease, 0, [visit(0)]))
        await until(postgres, f"{OURS} AND wait_event_type = 'Lock'", 1)
        append.cancel()
        with pytest.raises(asyncio.CancelledError):
            await append
        assert await store.head("r") is not None
    await until(postgres, f"{OURS} AND wait_event_type = 'Lock'", 0)
    await until(postgres, OURS, 1)
    log = await store.load("r")
    assert log is not None
    assert (await store.append(lease, 0, [visit(0)]) is None) is (log.head.seq == 1)


@pytest.mark.parametrize("opened", [False, True], ids=["opening", "opened"])
async def test_a_verb_cancelled_at_any_moment_leaves_nothing_behind(
    open_postgres: OpenPostgres, postgres: str, opened: bool
) -> None:
    """Later and later, until it is done before: no connection is lost or left in a transaction, each verb is whole."""
    store, cancelled = open_postgres(connections=1), True
    lease = await create(store)
    for number in itertools.count():
        if not opened:
            await store.close()
            store = open_postgres(connections=1)
        append = asyncio.create_task(store.append(lease, number, [visit(number)]))
        await asyncio.wait({append}, timeout=0.0001 * number)
        append.cancel()
        (answer,) = await asyncio.gather(append, return_exceptions=True)
        cancelled = isinstance(answer, asyncio.CancelledError)
        head = await store.head("r")
        assert head is not None
        if head.seq == number:
            assert cancelled
            await store.append(lease, number, [visit(number)])
        if not cancelled:
            break
    await until(postgres, OURS, 1)
    await until(postgres, f"{OURS} AND state <> 'idle'", 0)
    rows = await store.history("r", after=0)
    assert [row.step for row in rows] == list(range(len(rows)))


async def test_a_first_use_cancelled_at_any_moment_leaves_no_half_made_schema(new_postgres: str) -> None:
    """It is made whole or not at all, and whoever comes next makes it."""
    for number in itertools.count():
        async with PostgresCheckpointer(new_postgres, connections=1) as store:
            use = asyncio.create_task(store.runs())
            await asyncio.wait({use}, timeout=0.004 * number)
            use.cancel()
            (answer,) = await asyncio.gather(use, return_exceptions=True)
        await until(new_postgres, OURS, 0)
        if answer == []:
            break
        assert isinstance(answer, asyncio.CancelledError)
    assert await fetch(new_postgres, "SELECT version FROM stategraph.version") == [(VERSION,)]


async def test_a_verb_cancelled_at_any_moment_gives_the_pool_its_connection_back(postgres: str) -> None:
    """The same with the user's own pool of one."""
    async with asyncpg.create_pool(postgres, min_size=1, max_size=1) as pool:
        store = PostgresCheckpointer(pool=pool)
        await create(store)
        for number in range(40):
            renewal = asyncio.create_task(store.renew(Lease("r", "w", 1, 0), LEASE_MS))
            await asyncio.wait({renewal}, timeout=0.00005 * number)
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
            assert await store.head("r") is not None
        await store.close()
        assert await pool.fetchval("SELECT count(*) FROM pg_locks WHERE relation = 'stategraph.runs'::regclass") == 0
        assert pool.get_idle_size() == pool.get_size() == 1


async def test_another_isolation_is_no_obstacle(new_postgres: str) -> None:
    """A database that defaults to serializable transactions undoes some of them: they are made again."""
    name = urlsplit(new_postgres).path[1:]
    await execute(new_postgres, f"ALTER DATABASE {name} SET default_transaction_isolation TO 'serializable'")
    async with PostgresCheckpointer(new_postgres) as store:
        await paused(store, "r", replace(GATE, needed=8))
        answers = await asyncio.gather(*(decide(store, actor=f"person {number}") for number in range(8)))
        assert sorted(answer.seq for answer in answers if answer is not None) == list(range(2, 10))


# -- poolers and pools


async def test_everything_works_behind_a_transaction_pooler(pooled: str, ledger: Path, clock: ManualClock) -> None:
    """Three connections for all: verbs of two stores at once, a walk, and a graph from end to end."""
    async with PostgresCheckpointer(pooled, clock=clock) as one, PostgresCheckpointer(pooled, clock=clock) as other:
        for name, call in life(one, "r"):
            assert await call() is not None, name
        graphs = [counting(store, ledger, 8) for store in (one, other)]
        runs = await asyncio.gather(*(graphs[n % 2].run({"name": f"c{n}", "count": 0}, f"c{n}") for n in range(20)))
        assert {(run.status, run.seq) for run in runs} == {("completed", 8)}
        for run in runs:
            await one.delete(run.run_id)
        for number in range(5):
            await walk_through(one, clock, number)
            for head in await one.runs():
                await execute(pooled, f"DELETE FROM stategraph.runs WHERE run_id = '{head.run_id}'")
            await execute(pooled, "DELETE FROM stategraph.effects")


@pytest.mark.parametrize("options", [{}, {"statement_cache_size": 0}], ids=["plain", "uncached"])
async def test_the_users_own_pool_is_used_and_left_open(postgres: str, options: dict[str, Any]) -> None:
    """No other connection is made, and the pool is the user's after the store was closed."""
    async with asyncpg.create_pool(postgres, min_size=1, max_size=3, **options) as pool:
        store = PostgresCheckpointer(pool=pool)
        assert repr(store) == "PostgresCheckpointer('the pool')"
        for name, call in life(store, "r"):
            assert await call() is not None, name
        lease = await create(store)
        leases = [await create(store, f"r{number}") for number in range(20)]
        answers = await asyncio.gather(*(store.append(lease, 0, [visit(0)]) for lease in leases))
        assert [answer and answer.seq for answer in answers] == [1] * 20
        assert await store.renew(lease, LEASE_MS) is not None
        await store.close()
        assert await pool.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stategraph'") == 0
        with pytest.raises(StoreClosed):
            await store.head("r")


async def test_a_pool_is_asked_in_the_loop_that_has_it(postgres: str) -> None:
    """Though another thread's loop comes first; and not when that loop is closed, which is said."""
    async with asyncpg.create_pool(postgres, min_size=1, max_size=2) as pool:
        store = PostgresCheckpointer(pool=pool)
        await asyncio.to_thread(lambda: asyncio.run(create_and_look(store, "r")))
        assert await store.head("r") is not None
        await store.close()


def test_a_pool_whose_loop_is_closed_is_no_way_to_the_server(postgres: str) -> None:
    """Its connections are of no use to another loop."""

    async def opened() -> PostgresCheckpointer:
        async with asyncpg.create_pool(postgres, min_size=1, max_size=2) as pool:
            return PostgresCheckpointer(pool=pool)

    store = asyncio.run(opened())
    with pytest.raises(StoreClosed, match="make another pool"):
        asyncio.run(create_and_look(store, "r"))


async def test_a_pool_that_was_closed_is_said_to_be(postgres: str) -> None:
    pool = await asyncpg.create_pool(postgres, min_size=1, max_size=2)
    store = PostgresCheckpointer(pool=pool)
    await create(store)
    await pool.close()
    with pytest.raises(CheckpointerError, match="the pool: pool is clos"):
        await store.head("r")
    await store.close()


async def test_a_pools_dead_connection_is_replaced(postgres: str) -> None:
    """Though the pool did not know that it was dead."""
    async with asyncpg.create_pool(postgres, min_size=2, max_size=2) as pool:
        store = PostgresCheckpointer(pool=pool)
        lease = await create(store)
        await execute(postgres, ALONE)
        assert await store.append(lease, 0, [visit(0)]) is not None
        await store.close()


def test_a_store_needs_a_server() -> None:
    """A URL or a pool, and at least one connection."""
    with pytest.raises(ValueError, match="url='postgresql://"):
        PostgresCheckpointer()
    with pytest.raises(ValueError, match="at least one"):
        PostgresCheckpointer("postgresql://", connections=0)


# -- opening


def test_a_url_opens_the_store_and_nothing_is_connected() -> None:
    """Under both names of the scheme."""
    for url in ("postgresql://ana:secret@db.example:6432/runs", "postgres://ana:secret@db.example:6432/runs"):
        store = open_checkpointer(url)
        assert isinstance(store, PostgresCheckpointer)
        assert repr(store) == "PostgresCheckpointer('postgresql://db.example:6432/runs')"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:{}@x@db/runs", "postgresql://ana:a/{}@db/runs", "postgresql://ana:a?{}@db/runs",
        "postgresql://ana:1?{}@db/runs", "postgresql://ana:a#{}@db", "postgresql://ana:{}/runs", "postgresql://ana:[{}@db",
        "postgresql://ana:{}]@db", "postgresql://ana:a {}@db", "postgresql:ana:{}@db", "postgresql:/ana:{}@db",
        "postgresql://[{}]:1/db", "postgresql://ana:x@db:{}/runs", "postgresql://ana:x@db/runs?{}",
        "postgresql://host=db password={}", "postgresql://ana:x@db,{}:y/runs",
    ],
)  # fmt: skip
def test_a_malformed_url_is_refused_without_a_word_of_it(url: str) -> None:
    """Where a URL is malformed anything may be the password."""
    with pytest.raises(ValueError, match="malformed; write postgresql://user:password@host") as caught:
        PostgresCheckpointer(url.format(SECRET))
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ana:{SECRET}@127.0.0.1:1/runs", f"postgresql://127.0.0.1:1/runs?user=ana&password={SECRET}",
        f"postgresql://ana:{SECRET}@/runs?host=/nowhere", f"postgresql://ana:{SECRET}@nowhere.invalid/runs",
        f"postgresql://ana:{SECRET}@127.0.0.1:1/runs?sslmode={SECRET}",
    ],
)  # fmt: skip
async def test_a_server_that_is_not_there_is_named_without_the_password(url: str) -> None:
    """At once: it was never there."""
    store = PostgresCheckpointer(url)
    with pytest.raises((StoreUnavailable, CheckpointerError), match="postgresql://") as caught:
        await store.runs()
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(store) + repr(vars(store))
    await store.close()


async def test_a_wrong_password_is_not_told(own_server: Server) -> None:
    """The server refuses it; who, where and what to do is said."""
    rules = own_server.folder / "pg_hba.conf"
    rules.write_text("local all ana scram-sha-256\n" + rules.read_text())
    await execute(own_server.url, f"CREATE ROLE ana LOGIN PASSWORD '{SECRET}right'", "SELECT pg_reload_conf()")
    async with PostgresCheckpointer(urlsplit(own_server.url)._replace(netloc=f"ana:{SECRET}@").geturl()) as store:
        with pytest.raises(StoreUnavailable, match=r'failed for user "ana".*check the user, the password') as caught:
            await store.runs()
    assert SECRET not in "".join(traceback.format_exception(caught.value))


async def test_an_unknown_database_is_named(postgres_server: str) -> None:
    store = PostgresCheckpointer(of_database(postgres_server, "nothere"))
    with pytest.raises(StoreUnavailable, match='database "nothere" does not exist'):
        await store.runs()
    await store.close()


async def test_a_newer_schema_is_not_touched(new_postgres: str) -> None:
    """Nor one of another program."""
    async with PostgresCheckpointer(new_postgres) as store:
        await store.runs()
    await execute(new_postgres, "UPDATE stategraph.version SET version = version + 1")
    async with PostgresCheckpointer(new_postgres) as store:
        with pytest.raises(StoreForeign, match=f"version {VERSION + 1}, this stategraph knows {VERSION}"):
            await store.runs()
    await execute(
        new_postgres, "DROP SCHEMA stategraph CASCADE", "CREATE SCHEMA stategraph", "CREATE TABLE stategraph.runs ()"
    )
    async with PostgresCheckpointer(new_postgres) as store:
        with pytest.raises(StoreForeign, match="another program"):
            await store.runs()
    await execute(new_postgres, "DROP SCHEMA stategraph CASCADE")


async def test_a_schema_that_is_taken_away_is_missed(new_postgres: str) -> None:
    """What was there and is gone is not made anew: somebody else has done that."""
    async with PostgresCheckpointer(new_postgres) as store:
        await create(store)
        await execute(new_postgres, "DROP SCHEMA stategraph CASCADE")
        with pytest.raises(StoreForeign, match="restore it from a backup"):
            await store.head("r")


async def test_a_role_needs_no_more_than_the_schema(new_postgres: str) -> None:
    """One that may not make it is told so; once it was made and given to it, it works."""
    name = urlsplit(new_postgres).path[1:]
    role = f"role_{name}"
    await execute(new_postgres, f"CREATE ROLE {role} LOGIN")
    parts = urlsplit(new_postgres)
    store = PostgresCheckpointer(parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}").geturl())
    with pytest.raises(StoreReadOnly, match="let one that may create it connect first"):
        await create(store)
    async with PostgresCheckpointer(new_postgres) as owner:
        await owner.runs()
    await execute(
        new_postgres,
        f"GRANT USAGE ON SCHEMA stategraph TO {role}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stategraph TO {role}",
    )
    await create(store)
    await store.close()
    await execute(new_postgres, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


async def test_a_read_only_server_can_be_read(new_postgres: str) -> None:
    """As a standby can."""
    async with PostgresCheckpointer(new_postgres) as store:
        await paused(store)
    await execute(
        new_postgres, f"ALTER DATABASE {urlsplit(new_postgres).path[1:]} SET default_transaction_read_only TO on"
    )
    async with PostgresCheckpointer(new_postgres) as store:
        assert len(await store.history("r")) == 2
        with pytest.raises(StoreReadOnly, match="name the primary"):
            await decide(store)


async def test_a_forked_child_opens_a_store_of_its_own(
    open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_postgres()
    await create(store)
    own = os.getpid()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: own + 1)
        with pytest.raises(StoreClosed, match="forked"):
            await store.head("r")
    assert await store.head("r") is not None


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the URL and by the class."""
    for module in [name for name in sys.modules if name.startswith("checkpointers.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'stategraph\[postgres\]'"):
        importlib.import_module("checkpointers.postgres")
    with pytest.raises(ValueError, match=r"pip install 'stategraph\[postgres\]'"):
        open_checkpointer("postgresql://db/runs")


def test_a_change_of_the_schema_is_a_new_version() -> None:
    """What a database holds was made by the version that it names: change the text, and VERSION and this change too."""
    text = "\n".join(" ".join(statement.split()) for statement in statements())
    assert (VERSION, sha256(text.encode()).hexdigest()[:12]) == (1, "630ca3f8cbc8")


# -- integrity


#: What is written over each column of a row.
CHANGES = {
    "kind": "CASE kind WHEN 'node' THEN 'route' ELSE 'node' END",
    "status": "status || 'x'",
    "epoch": "coalesce(epoch, 0) + 1",
    "path": "coalesce(path, '') || '0.0'",
    "step": "coalesce(step, 0) + 100",
    "attempt": "coalesce(attempt, 0) + 100",
    "opens": "coalesce(opens, '[]') || ' '",
    "boundary": "coalesce(boundary, '') || '1'",
    "decision": "CASE decision WHEN 'approved' THEN 'rejected' ELSE 'approved' END",
    "name": "coalesce(name, '') || 'x'",
    "key": "coalesce(key, '') || 'x'",
    "actor": "coalesce(actor, '') || 'x'",
    "act": "coalesce(act, '') || 'x'",
    "body": "body || '\\x20'::bytea",
    "at_ms": "at_ms + 1",
    "digest": "'\\x00000000000000000000000000000000'::bytea",
}


@pytest.mark.parametrize("column", CHANGES)
async def test_a_changed_column_is_noticed(open_postgres: OpenPostgres, postgres: str, column: str) -> None:
    """Whatever is changed behind the store's back: run and row are named, nothing is served."""
    store = open_postgres()
    await paused(store)
    await decide(store)
    await cancel(store)
    for seq in range(4):
        await execute(
            postgres,
            "CREATE TEMPORARY TABLE sound AS SELECT * FROM stategraph.checkpoints",
            f"UPDATE stategraph.checkpoints SET {column} = {CHANGES[column]} WHERE seq = {seq}",
        )
        for read in (store.load, store.history):
            with pytest.raises(CorruptCheckpoint) as caught:
                await read("r")
            assert (caught.value.run_id, caught.value.seq) == ("r", seq)
        await execute(postgres, EMPTY)
        await paused(store)
        await decide(store)
        await cancel(store)


@pytest.mark.parametrize("seq", [0, 1, 3])
async def test_a_row_that_was_cut_out_is_noticed(open_postgres: OpenPostgres, postgres: str, seq: int) -> None:
    """The first, one in the middle, the last: the head knows how long the log is."""
    store = open_postgres()
    await paused(store)
    await decide(store)
    await cancel(store)
    await execute(postgres, f"DELETE FROM stategraph.checkpoints WHERE seq = {seq}")
    with pytest.raises(CorruptCheckpoint) as caught:
        await store.load("r")
    assert caught.value.seq == seq


async def test_a_changed_snapshot_is_noticed(open_postgres: OpenPostgres, postgres: str) -> None:
    store = open_postgres()
    lease = await create(store)
    await store.append(lease, 0, [visit(0)], b"fold")
    await execute(postgres, "UPDATE stategraph.snapshots SET body = 'gold'")
    with pytest.raises(CorruptCheckpoint, match="snapshot"):
        await store.load("r")


@pytest.mark.parametrize(("change", "by"), [("approvers = NULL", "eve"), ("shown_digest = 'another'", "ann")])
async def test_a_changed_projection_releases_nothing(
    open_postgres: OpenPostgres, postgres: str, change: str, by: str
) -> None:
    """What a boundary says is in its verified row: the table beside it is checked against that."""
    ran: list[str] = []
    graph = StateGraph(open_postgres(secret=b"key"), name="g").add_node("pay", lambda state: ran.append("pay"))
    graph.set_entry_point("pay").add_interrupt_before("pay", approvers=["ann"])
    await graph.run({}, "r")
    await execute(postgres, f"UPDATE stategraph.boundaries SET {change}")
    with pytest.raises(CorruptCheckpoint):
        [event async for event in graph.resume("r", "approved", by=by)]
    assert ran == []


async def test_a_head_that_says_more_than_the_log_is_noticed(open_postgres: OpenPostgres, postgres: str) -> None:
    """A run never looks finished that is not."""
    graph = StateGraph(open_postgres(), name="g").add_node("pay", lambda state: None).set_entry_point("pay")
    await graph.add_interrupt_before("pay").run({}, "r")
    await execute(postgres, "UPDATE stategraph.runs SET status = 'completed'")
    with pytest.raises(CorruptCheckpoint, match="its log says 'pending'"):
        await graph.info("r")


async def test_whoever_has_no_key_forges_nothing(open_postgres: OpenPostgres) -> None:
    """With `secret` a row that another key has sealed is not sound, whatever it says."""
    await paused(open_postgres(secret=b"of the deployment"))
    assert len(await open_postgres(secret=b"of the deployment").history("r")) == 2
    for other in (open_postgres(secret=b"guessed"), open_postgres()):
        with pytest.raises(CorruptCheckpoint):
            await other.load("r")


# -- text


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
async def test_text_that_postgres_cannot_keep_is_refused(open_postgres: OpenPostgres, text: str) -> None:
    """A NUL or half a surrogate pair in a name; in a body both come back, see test_checkpointers."""
    store = open_postgres()
    await paused(store)
    before = await everything(store)
    opens_for = [replace(GATE, approvers=(text,)), replace(GATE, node=text)]
    for refused in [
        decide(store, actor=text),
        decide(store, act=text),
        store.signal("r", text, "7", actor="ann", act="a", body=b"{}"),
        *(create(store, "new", "pending", opening) for opening in opens_for),
    ]:
        with pytest.raises(CheckpointerError):
            await refused
    assert await everything(store) == before
