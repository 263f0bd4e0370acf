"""Stores that fail, drivers that are interrupted: a typed error, nothing lost, and the run is where it was."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import apsw
import pytest

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import (
    AgentState,
    Checkpointer,
    CheckpointerError,
    Context,
    Cursor,
    DecisionRefused,
    Event,
    LeaseHeld,
    LeaseLost,
    ManualClock,
    RunExists,
    StateGraph,
    StoreClosed,
    StoreForeign,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from stategraph.checkpoint import Lease, Policy
from stategraph.testing import byhand
from stategraph.testing.byhand import create, visit
from tests.campaigns.borrowed import borrowed, on
from tests.campaigns.disk import Disk, refusal
from tests.conftest import OpenStore
from tests.programs import order
from tests.programs.cancelled import interrupted_at
from tests.programs.interposed import interposed
from tests.programs.kept import everything
from tests.programs.ledger import lines, note
from tests.programs.order import build, finish, judged, report
from tests.programs.processes import end, hear, start, tell

LONGER = 31  # seconds: a lease that nobody renews is over


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "runs.ledger"


async def sound(store: Checkpointer, ledger: Path, clock: ManualClock, policy: Policy = "ask") -> None:
    """Whatever has happened to the run `r`: it has not failed, and is finished from here with nothing done twice."""
    head = await store.head("r")
    assert head is None or head.status in ("ready", "running", "pending", "completed"), head
    finished = {row.node for row in await store.history("r") if row.kind == "node"}
    ran = [line for line in lines(ledger) if line.removeprefix("run ") in finished]
    clock.advance(LONGER)
    graph = build(store, ledger, policy)
    await finish(graph, ledger)
    assert [line for line in lines(ledger) if line.removeprefix("run ") in finished] == ran, "a finished node ran again"
    assert judged(await report(graph), lines(ledger), policy) == []


# -- a store that fails at one call


class Failing:
    """Raises at the n-th moment: before a call, or after it, when it is done and its answer is lost."""

    def __init__(self, error: Callable[[], BaseException], fatal: int | None = None) -> None:
        self.error = error
        self.fatal = fatal
        self.count = 0
        self.where = ""

    async def around(self, verb: str, phase: Literal["before", "after"]) -> None:
        self.count += 1
        if self.count == self.fatal:
            self.where = f"{phase} {verb}"
            raise self.error()


Stores = Callable[[], Checkpointer]


@pytest.fixture(params=["memory", "sqlite"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Stores]:
    """As many new stores of one kind as a test wants, on one clock."""
    made: list[Checkpointer] = []

    def new() -> Checkpointer:
        memory, place = request.param == "memory", tmp_path / f"{len(made)}.db"
        made.append(MemoryCheckpointer(clock=clock) if memory else SqliteCheckpointer(place, clock=clock))
        return made[-1]

    yield new
    for store in made:
        await store.close()


@pytest.mark.parametrize(("policy", "error"), [("ask", StoreLocked), ("keyed", StoreFull)])
async def test_a_store_may_fail_at_any_call(
    stores: Stores, tmp_path: Path, clock: ManualClock, policy: Policy, error: type[CheckpointerError]
) -> None:
    """Before a call and after it: its error reaches the caller, the run goes on from where it was, nothing is repeated."""
    counting = Failing(lambda: error("unused"))
    await finish(build(interposed(stores(), counting.around), tmp_path / "whole", policy), tmp_path / "whole")
    assert counting.count >= 40  # a decision makes one call less than it did: the closed boundaries are not read
    for fatal in range(1, counting.count + 1):
        store, ledger = stores(), tmp_path / f"{fatal}.ledger"
        failing = Failing(lambda: error("as a test has it"), fatal)
        with pytest.raises(error, match="as a test has it"):
            await finish(build(interposed(store, failing.around), ledger, policy), ledger)
        assert failing.where
        await sound(store, ledger, clock, policy)


async def test_a_store_that_fails_twice_at_once(stores: Stores, tmp_path: Path, clock: ManualClock) -> None:
    """Not even the release succeeds: the run is free once its lease is over."""
    for fatal in range(1, 40, 3):
        store, ledger = stores(), tmp_path / f"{fatal}.ledger"
        failing = Failing(lambda: StoreLocked("for good"), fatal)

        async def around(verb: str, phase: Literal["before", "after"], failing: Failing = failing) -> None:
            if failing.where:
                raise StoreLocked("for good")
            await failing.around(verb, phase)

        with pytest.raises(StoreLocked, match="for good"):
            await finish(build(interposed(store, around), ledger), ledger)
        await sound(store, ledger, clock)


async def test_no_node_starts_while_its_predecessor_is_unsaved(stores: Stores, ledger: Path) -> None:
    """With a store that takes its time for every call: what a node was started after is in the log."""
    slow = stores()
    saved: list[list[str | None]] = []

    async def around(verb: str, phase: Literal["before", "after"]) -> None:
        await asyncio.sleep(0.005)

    def moment(what: str) -> None:
        if what.startswith("before run"):
            ran.append(what.removeprefix("before run "))
            pending.append(asyncio.ensure_future(look()))

    async def look() -> None:
        saved.append([row.node for row in await slow.history("r") if row.kind == "node"])

    ran: list[str] = []
    pending: list[asyncio.Future[None]] = []
    await finish(build(interposed(slow, around), ledger, moment=moment), ledger)
    await asyncio.gather(*pending)
    assert ran == list(order.NODES)
    for place, nodes in enumerate(saved):
        assert nodes[:place] == list(order.NODES[:place])


# -- SQLite: locked, full, read-only, foreign


@contextmanager
def write_lock(path: Path) -> Iterator[Callable[[], object]]:
    """Another program holds the file's write lock, until the block ends or the answer is called."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield lambda: other.execute("ROLLBACK")
    finally:
        other.close()


async def test_a_lock_that_is_given_back_in_time_is_waited_for(open_store: OpenStore, path: Path, ledger: Path) -> None:
    """The run completes; while it waits the event loop is free for others."""
    store = open_store(timeout=60)
    await store.runs()
    with write_lock(path) as give_back:
        running = asyncio.create_task(build(store, ledger).run({"amount": 7}, "r"))
        for _ in range(300):  # a ticker: it is not stopped by a store that waits
            await asyncio.sleep(0.001)
        assert not running.done()
        assert lines(ledger) == [], "nothing runs before the run is stored"
        give_back()
        assert (await running).status == "pending"


async def test_a_lock_that_is_held_for_too_long_is_named(
    open_store: OpenStore, path: Path, ledger: Path, clock: ManualClock
) -> None:
    """An error that says what is locked and what to do; at most the node in flight is lost, and nothing is done twice."""
    store = open_store(timeout=0.05)
    blocked: list[Any] = []

    def moment(what: str) -> None:
        if what == "after run check":
            blocked.append(write_lock(path))
            blocked.append(blocked[0].__enter__())

    with pytest.raises(StoreLocked, match=r"runs\.db: database is locked: another process has held its write lock"):
        await build(store, ledger, moment=moment).run({"amount": 7}, "r")
    assert lines(ledger) == ["run check"]
    blocked[1]()
    blocked[0].__exit__(None, None, None)
    assert [row.kind for row in await store.history("r")] == ["start"]
    await sound(store, ledger, clock)


async def test_a_process_that_stands_still_in_the_wal_is_a_lock_too(tmp_path: Path) -> None:
    """Stopped while it sets the WAL up: SQLite has a code of its own for it, and the same call may be made again."""

    def watch(sql: str) -> str:
        raise refusal(apsw.SQLITE_PROTOCOL)

    place = str(tmp_path / "runs.db")
    with on(Disk(), place, watch):
        async with borrowed()(place) as store:
            with pytest.raises(StoreLocked, match="try again when it goes on"):
                await store.runs()


async def test_appends_of_many_runs_are_all_told_of_a_lock(open_store: OpenStore, path: Path) -> None:
    """Committed together they fail together: nobody is told that its lease is lost, nobody that its row is stored."""
    store = open_store(timeout=0.05)
    leases = [await create(store, f"r{number}") for number in range(8)]
    with write_lock(path):
        answers = await asyncio.gather(*(store.append(at, 0, [visit(0)]) for at in leases), return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreLocked] * 8
    answers = await asyncio.gather(*(store.append(at, 0, [visit(0)]) for at in leases), return_exceptions=True)
    assert {(answer.seq, answer.status) for answer in answers if not isinstance(answer, BaseException) and answer} == {
        (1, "running")
    }
    assert [head.seq for head in await store.runs()] == [1] * 8


async def limit_pages(store: SqliteCheckpointer, more: int | None) -> None:
    """Let the file grow by so many pages and no more; None: by as many as it likes."""
    connection = store._connection or await store._open()
    cursor = await connection.execute("PRAGMA page_count")
    (pages,) = await cursor.fetchone() or (0,)
    await connection.execute(f"PRAGMA max_page_count={1 << 30 if more is None else pages + more}")


async def test_a_full_disk_loses_nothing(open_store: OpenStore, tmp_path: Path, clock: ManualClock) -> None:
    """However many pages are left: what was acknowledged is there, and with room the run goes on."""
    full = 0
    for more in range(16):
        store, ledger = open_store(f"{more}.db"), tmp_path / f"{more}.ledger"
        await store.runs()
        await limit_pages(store, more)
        graph = build(store, ledger).add_node("fill", lambda state: {"x": "x" * 60_000})
        graph.add_edge("close", "fill")
        try:
            await finish(graph, ledger)
        except StoreFull as error:
            full += f"{more}.db" in str(error)
        await limit_pages(store, None)
        clock.advance(LONGER)
        assert (await finish(graph, ledger)).state == {**order.FINAL, "x": "x" * 60_000}
        assert sum(line.startswith("effect pay") for line in lines(ledger)) == 1
        assert await (
            await (store._connection or await store._open()).execute("PRAGMA integrity_check")
        ).fetchone() == ("ok",)
    assert full > 5


async def test_appends_that_do_not_fit_are_not_told_as_stored(open_store: OpenStore) -> None:
    """A group whose commit fails is undone: no row of it is acknowledged, and each may be written again."""
    store = open_store()
    leases = [await create(store, f"r{number}") for number in range(6)]
    await limit_pages(store, 4)
    rows = [visit(0, body=b'{"x":"%s"}' % (b"x" * 6000)) for _ in leases]
    answers = await asyncio.gather(
        *(store.append(at, 0, [row]) for at, row in zip(leases, rows, strict=True)), return_exceptions=True
    )
    told = [0 if isinstance(answer, BaseException) or answer is None else answer.seq for answer in answers]
    assert {type(answer) for answer in answers if isinstance(answer, BaseException)} == {StoreFull}
    assert None not in answers
    heads = {head.run_id: head.seq for head in await store.runs()}
    assert [heads[at.run_id] for at in leases] == told
    await limit_pages(store, None)
    for at, row, seq in zip(leases, rows, told, strict=True):
        assert (await store.append(at, 0, [row]) is None) == bool(seq)


def can_mount() -> bool:
    """Whether this user may have a file system of its own."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="this user may not mount")
def test_a_real_disk_that_is_full_loses_nothing(tmp_path: Path) -> None:
    """A file system of a few megabytes, filled by another program: the run goes on once there is room."""
    folder = tmp_path / "small"
    folder.mkdir()
    program = Path(__file__).parent / "programs" / "fulldisk.py"
    mount = f"mount -t tmpfs -o size=8m tmpfs {folder}"
    command = f"{mount} && exec {sys.executable} -P -W error {program} {folder}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["full", "completed"]), done.stderr


@pytest.mark.skipif(not Path("/proc/sys/kernel/ostype").exists(), reason="not Linux")
def test_a_file_that_cannot_be_written_is_named() -> None:
    """Not even by root: the kernel's own."""

    async def use() -> None:
        async with SqliteCheckpointer("/proc/sys/kernel/ostype") as store:
            await store.runs()

    with pytest.raises(
        StoreReadOnly, match=r"/proc/sys/kernel/ostype: .*; let this user write the file and its folder"
    ):
        asyncio.run(use())


@pytest.fixture
def immutable(path: Path) -> Iterator[Callable[[], None]]:
    """Makes the file one that nobody can write."""
    made = False

    def make() -> None:
        nonlocal made
        if os.geteuid():
            path.chmod(0o400)
        elif (
            not shutil.which("chattr")
            or subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode
        ):
            pytest.skip("this file system has no immutable files")
        else:
            made = True

    yield make
    if made:
        subprocess.run(["chattr", "-i", path], check=True)


async def test_a_run_in_a_read_only_file_is_where_it_was(
    open_store: OpenStore, path: Path, ledger: Path, clock: ManualClock, immutable: Callable[[], None]
) -> None:
    """Told by name; as soon as the file may be written the run goes on."""
    first = open_store()
    await build(first, ledger).run({"amount": 7}, "r")
    before = await everything(first)
    await first.close()
    immutable()
    with pytest.raises(StoreReadOnly, match=r"runs\.db"):
        await build(open_store(), ledger).decide("r", "approved", by="ann")
    if os.geteuid():
        path.chmod(0o600)
    else:
        subprocess.run(["chattr", "-i", path], check=True)
    again = open_store()
    assert await everything(again) == before
    await sound(again, ledger, clock)


def other_program(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()


def other_application(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id=7")
    connection.execute("PRAGMA user_version=1")
    connection.close()


def ours(path: Path, *statements: str) -> None:
    """One of our files, in which somebody has done something."""

    async def make() -> None:
        async with SqliteCheckpointer(path) as store:
            await create(store)

    asyncio.run(make())
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


NOT_OURS: dict[str, tuple[Callable[[Path], object], type[CheckpointerError], str]] = {
    "of another program": (other_program, StoreForeign, "another program .tables customers.; name another file"),
    "empty, of another program": (other_application, StoreForeign, "another program"),
    "from the future": (
        lambda path: ours(path, "PRAGMA user_version=99"),
        StoreForeign,
        "version 99, this stategraph knows 1: install the newer stategraph",
    ),
    "with a trigger": (
        lambda path: ours(path, "CREATE TRIGGER evil AFTER INSERT ON runs BEGIN DELETE FROM checkpoints; END"),
        StoreForeign,
        "trigger 'evil', which stategraph did not make",
    ),
    "with a view": (lambda path: ours(path, "CREATE VIEW evil AS SELECT 1"), StoreForeign, "view 'evil'"),
    "text": (lambda path: path.write_text("no database at all\n" * 100), StoreForeign, "no SQLite database"),
    "a short text": (lambda path: path.write_text("hello"), StoreForeign, "no SQLite database"),
    "a folder": (lambda path: path.mkdir(), StoreUnavailable, "check the path"),
}


@pytest.mark.parametrize("what", NOT_OURS)
def test_a_file_that_is_not_ours_is_left_alone(path: Path, what: str) -> None:
    """A typed error names it, and not a byte of it is changed."""
    make, error, said = NOT_OURS[what]
    make(path)
    before = path.read_bytes() if path.is_file() else b""

    async def use() -> None:
        async with SqliteCheckpointer(path) as store:
            await create(store, "s")

    for _ in range(2):
        with pytest.raises(error, match=said) as told:
            asyncio.run(use())
        assert str(told.value).count("runs.db") == 1
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And nothing is made in its place."""
    async with SqliteCheckpointer(tmp_path / "nowhere" / "runs.db") as store:
        with pytest.raises(StoreUnavailable, match=r"nowhere/runs\.db: No such file or directory; check the path"):
            await store.runs()
    assert list(tmp_path.iterdir()) == []


async def test_a_damaged_file_is_told_by_name(open_store: OpenStore, path: Path, ledger: Path) -> None:
    """Pages overwritten with rubbish: an error of the store, never of the database, and never a wrong answer."""
    store = open_store("sound.db")
    await finish(build(store, ledger), ledger)
    before = await store.load("r"), await store.history("r"), await store.boundaries()
    await store.close()
    whole = (path.parent / "sound.db").read_bytes()
    refused = 0
    for page in range(1, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 : page * 4096 + 512] = b"\xa5" * 512
        file = path.parent / f"{page}.db"
        file.write_bytes(damaged)
        broken = open_store(file.name)
        try:
            assert (await broken.load("r"), await broken.history("r"), await broken.boundaries()) == before
        except CheckpointerError:
            refused += 1
        await broken.close()
    assert refused > 5


async def break_off(store: SqliteCheckpointer, instruction: int) -> None:
    """Interrupt what SQLite's machine does next at its n-th instruction, and not again; 0 for never."""
    done = 0

    def step() -> int:
        nonlocal done
        done += 1
        return int(done == instruction)

    connection = store._connection or await store._open()
    await connection.set_progress_handler(step, 1 if instruction else 0)


VERBS: dict[str, Callable[[Checkpointer, Lease], Awaitable[Any]]] = {
    "create": lambda store, lease: store.create(
        "new", graph="g", fingerprint="f", creator="c", body=b"{}", status="running", owner="w", lease_ms=1000
    ),
    "append": lambda store, lease: store.append(
        lease, 0, [visit(0), visit(1, "pending", byhand.GATE, kind="asked")], snapshot=b"{}"
    ),
    "settle": lambda store, lease: store.settle(lease, 0, "pending", b"{}"),
    "cancel": lambda store, lease: byhand.cancel(store),
    "effect_begin": lambda store, lease: byhand.begin(store, lease, "t"),
    "decide": lambda store, lease: byhand.decide(store, "rejected", run_id="waits"),
    "delete": lambda store, lease: store.delete("done"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_that_breaks_off_is_undone(open_store: OpenStore, clock: ManualClock, verb: str) -> None:
    """At whatever instruction of SQLite's it is interrupted: all of it is undone, or all of it is done."""

    async def made(name: str) -> tuple[SqliteCheckpointer, Lease]:
        store = open_store(name)
        await byhand.paused(store, "waits", byhand.GATE, byhand.GATE)
        done = await create(store, "done")
        await store.append(done, 0, [visit(0, "completed")])
        return store, await create(store)

    whole, lease = await made("whole.db")
    assert await VERBS[verb](whole, lease)
    after = await everything(whole)
    store, lease = await made("broken.db")
    before, undone = await everything(store), 0
    for instruction in range(1, 5000):
        await break_off(store, instruction)
        try:
            await VERBS[verb](store, lease)
        except CheckpointerError as error:
            assert str(error).endswith("interrupted")  # noqa: PT017  # the last one is not, and must not be
        else:
            break  # as it was done the time before, and only its acknowledgement interrupted
        finally:
            await break_off(store, 0)
        if instruction % 5 == 0:
            now = await everything(store)
            assert now in (before, after), instruction
            undone += now == before
    assert undone > 10
    assert await everything(store) == after


# -- interruption


def ungated(store: Checkpointer, ledger: Path) -> StateGraph:
    """The same nodes without their gate: `run` drives them in its caller's own task."""
    graph = build(store, ledger)
    graph._gates.clear()
    return graph


@pytest.mark.parametrize("times", [1, 4])
async def test_a_driver_may_be_cancelled_at_any_await(stores: Stores, tmp_path: Path, times: int) -> None:
    """Once, or impatiently: the run is released, never failed; who resumes it finishes it, and no finished node runs again."""
    fatal = 0
    while True:
        fatal += 1
        store, ledger = stores(), tmp_path / f"{fatal}.ledger"
        if not await interrupted_at(ungated(store, ledger).run({"amount": 7}, "r"), fatal, times):
            break
        head = await store.head("r")
        assert head is None or head.status in ("ready", "completed"), (fatal, head)
        finished = {row.node for row in await store.history("r") if row.kind == "node"}
        ran = lines(ledger)
        run = await finish(ungated(store, ledger), ledger)
        assert (run.status, run.state) == ("completed", order.FINAL)
        assert not [line for line in lines(ledger)[len(ran) :] if line.removeprefix("run ") in finished]
        assert sum(line.startswith("effect pay") for line in lines(ledger)) == 1
    assert fatal > (10 if isinstance(store, SqliteCheckpointer) else 1)


@pytest.mark.parametrize("times", [1, 4])
async def test_a_reader_may_be_cancelled_at_any_await(
    stores: Stores, tmp_path: Path, clock: ManualClock, times: int
) -> None:
    """Also in the middle of a decision, a claim or a recovery: what was decided stays, what was claimed is released."""
    fatal = 0
    while True:
        fatal += 1
        store, ledger = stores(), tmp_path / f"{fatal}.ledger"
        if not await interrupted_at(finish(build(store, ledger), ledger), fatal, times):
            break
        head = await store.head("r")
        assert head is None or head.status in ("ready", "pending", "completed"), (fatal, head)
        await sound(store, ledger, clock)
    assert fatal > (20 if isinstance(store, SqliteCheckpointer) else 1)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("node", ["check", "ship"])
def test_an_interruption_in_a_node_is_no_failure(
    path: Path, ledger: Path, interruption: type[BaseException], node: str
) -> None:
    """Sync and async: it reaches who runs the program, and the run is ready to be continued."""

    def moment(what: str) -> None:
        if what == f"after run {node}" and lines(ledger).count(f"run {node}") == 1:
            raise interruption

    async def drive() -> None:
        async with SqliteCheckpointer(path) as store:
            await finish(build(store, ledger, moment=moment), ledger)

    with pytest.raises(interruption):
        asyncio.run(drive())

    async def go_on() -> None:
        async with SqliteCheckpointer(path) as store:
            head = await store.head("r")
            assert head is not None
            assert head.status == "ready"
            graph = build(store, ledger, moment=moment)
            await finish(graph, ledger)
            assert judged(await report(graph), lines(ledger), "ask") == []

    asyncio.run(go_on())


async def test_control_c_releases_the_run(path: Path, ledger: Path, open_store: OpenStore) -> None:
    """A real signal to a real process, while a node is at work: the program ends, the run is ready."""
    process = start("interrupted", path, ledger)
    try:
        assert hear(process) == "ready"
        assert hear(process) == "in the node"
        process.send_signal(signal.SIGINT)
        await asyncio.to_thread(end, process, -signal.SIGINT)
    finally:
        process.kill()
        process.communicate()
    head = await open_store().head("r")
    assert head is not None
    assert (head.status, head.seq) == ("ready", 0)


# -- consumers


async def at_rest(store: Checkpointer) -> None:
    """Return when nobody drives the run `r` any more."""
    deadline = asyncio.get_running_loop().time() + 60
    while True:
        head = await store.head("r")
        if head is not None and head.status != "running":
            return
        assert asyncio.get_running_loop().time() < deadline, head
        await asyncio.sleep(0.005)


async def consume(events: AsyncIterator[Event], many: int) -> list[Event]:
    """Take so many events, then leave."""
    taken = []
    async with aclosing(events) as stream:  # type: ignore[type-var]
        if many:
            async for event in stream:
                taken.append(event)
                if len(taken) == many:
                    break
    return taken


async def test_a_consumer_may_leave_at_any_event(stores: Stores, tmp_path: Path, clock: ManualClock) -> None:
    """The run is released at once; whoever resumes it finishes it."""
    whole = stores()
    told = [event async for event in build(whole, tmp_path / "whole").stream({"amount": 7}, "r")]
    assert [event.event_type for event in told] == ["node_start", "state_update"] * 2 + ["interrupted"]
    for many in range(1, len(told) + 1):
        store, ledger = stores(), tmp_path / f"{many}.ledger"
        taken = await consume(build(store, ledger).stream({"amount": 7}, "r"), many)
        assert [event.event_type for event in taken] == [event.event_type for event in told[:many]]
        head = await store.head("r")
        assert head is not None
        assert head.status in ("ready", "pending")
        await sound(store, ledger, clock)
    for many in range(1, 7):
        store, ledger = stores(), tmp_path / f"resumed {many}.ledger"
        await build(store, ledger).run({"amount": 7}, "r")
        note(ledger, "click")
        click = build(store, ledger).resume("r", "approved", by="ann", decision_id="click")
        assert len(await consume(click, many)) == many
        head = await store.head("r")
        assert head is not None
        assert head.status in ("ready", "completed")
        await sound(store, ledger, clock)


async def test_a_consumer_that_only_forgets_its_stream_releases_the_run(stores: Stores, ledger: Path) -> None:
    """`break` without closing: the finaliser does it."""
    store = stores()
    async for event in build(store, ledger).stream({"amount": 7}, "r"):
        assert event.event_type == "node_start"
        break
    await at_rest(store)


async def test_a_slow_consumer_holds_up_nothing(stores: Stores) -> None:
    """The run is finished while the consumer still looks at its first event; then it gets them all, in order, once."""
    store, rounds = stores(), 520  # more events than wait for a reader: the rest it reads from the log
    graph = StateGraph(store, rounds, name="long").set_entry_point("work")
    graph.add_node("work", lambda state: {"round": state.get("round", 0) + 1})
    graph.add_conditional_edge("work", lambda state: "work" if state["round"] < rounds else "END")
    told = []
    async for event in graph.stream({}, "r"):
        told.append(event)
        if len(told) == 1:
            await at_rest(store)
    assert [event.event_type for event in told] == ["node_start", "state_update"] * rounds + ["completed"]
    assert [event.payload["delta"]["round"] for event in told[1::2]] == list(range(1, rounds + 1))


async def test_a_reader_that_comes_back_gets_the_rest(stores: Stores, ledger: Path) -> None:
    """From any event it has seen: each durable event after it once, in order."""
    graph = build(stores(), ledger)
    await finish(graph, ledger)
    whole = [event async for event in graph.events("r")]
    cursors = [event.cursor for event in whole]
    assert cursors == sorted(cursors, key=lambda cursor: cursor or Cursor(0, 0))
    assert len(set(cursors)) == len(cursors)
    for place, event in enumerate(whole):
        assert [later async for later in graph.events("r", after=event.cursor)] == whole[place + 1 :]


async def test_many_readers_at_once_see_the_same(stores: Stores, ledger: Path) -> None:
    """A thousand of one run, while it goes on."""
    store = stores()
    graph = build(store, ledger)
    await graph.run({"amount": 7}, "r")

    async def follow() -> list[Event]:
        return [event async for event in graph.events("r", follow=True)]

    readers = [asyncio.create_task(follow()) for _ in range(1000)]
    await asyncio.sleep(0)
    await finish(graph, ledger)
    whole = [event async for event in graph.events("r")]
    for reader in readers:
        assert await reader == whole


# -- leases


async def test_a_driver_that_was_stopped_and_replaced_records_nothing(
    open_store: OpenStore, path: Path, ledger: Path
) -> None:
    """SIGSTOP past its lease, SIGCONT after another has taken over: its row is refused, and it is told."""
    process = start("stuck", path, ledger, "start", "after run check", 0.4)
    try:
        assert hear(process) == "ready"
        assert hear(process) == "after run check"
        process.send_signal(signal.SIGSTOP)
        graph = build(open_store(), ledger)
        deadline = asyncio.get_running_loop().time() + 20
        while "r" not in (await graph.checkpointer.due())[0]:
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.02)
        assert [event.event_type async for event in graph.recover("r")][-1] == "interrupted"
        before = await graph.history("r")
        tell(process, "go on")
        process.send_signal(signal.SIGCONT)
        assert await asyncio.to_thread(hear, process) == "LeaseLost"
        await asyncio.to_thread(end, process)
    finally:
        process.kill()
        process.communicate()
    assert await graph.history("r") == before
    assert {row.epoch for row in before if row.epoch} == {2}
    assert (await finish(graph, ledger)).status == "completed"


@pytest.mark.parametrize("outcome", ["returns", "raises", "is cancelled"])
async def test_a_loser_never_harms_the_run(stores: Stores, clock: ManualClock, outcome: str) -> None:
    """Whatever the replaced driver's node does in the end: the run is as its new driver has left it."""
    store = stores()
    entered, leave = asyncio.Event(), asyncio.Event()

    async def work(state: AgentState, ctx: Context) -> dict[str, Any]:
        entered.set()
        if ctx.attempt == 0 and not state.get("second"):
            await leave.wait()
            if outcome == "raises":
                raise RuntimeError("the loser's model is down")
        return {"by": "the loser"}

    def graph(function: Any) -> StateGraph:
        made = StateGraph(store, name="work").add_node("work", function).add_node("last", lambda state: {"last": True})
        return made.set_entry_point("work").add_edge("work", "last")

    loser = asyncio.create_task(graph(work).run({}, "r"))
    await entered.wait()
    clock.advance(LONGER)
    winner = graph(lambda state: {"by": "the winner"})
    assert [event.event_type async for event in winner.recover("r")][-1] == "completed"
    before = await everything(store)
    leave.set()
    if outcome == "is cancelled":
        loser.cancel()
    with pytest.raises(asyncio.CancelledError if outcome == "is cancelled" else LeaseLost):
        await loser
    assert await everything(store) == before
    assert (await winner.info("r")).state == {"by": "the winner", "last": True}


async def test_an_outcome_that_comes_before_a_person_is_asked_is_taken(stores: Stores, clock: ManualClock) -> None:
    """The loser's effect ends just when the winner is about to ask about it: nobody is asked, and nothing runs twice."""
    store, entered, leave, runs = stores(), asyncio.Event(), asyncio.Event(), 0

    async def charge() -> str:
        nonlocal runs
        runs += 1
        entered.set()
        await leave.wait()
        return "receipt"

    async def pay(state: AgentState, ctx: Context) -> dict[str, Any]:
        return {"receipt": await ctx.once("charge", charge)}

    def graph(on: Checkpointer) -> StateGraph:
        return StateGraph(on, name="pay").add_node("pay", pay).set_entry_point("pay")

    async def around(verb: str, phase: Literal["before", "after"]) -> None:
        if verb == "append" and phase == "before" and not leave.is_set():
            leave.set()
            with pytest.raises(LeaseLost):
                await loser

    loser = asyncio.create_task(graph(store).run({}, "r"))
    await entered.wait()
    clock.advance(LONGER)
    told = [event.event_type async for event in graph(interposed(store, around)).recover("r")]
    assert told == ["node_start", "node_start", "state_update", "completed"]
    assert ((await graph(store).info("r")).state, runs) == ({"receipt": "receipt"}, 1)


async def test_a_loser_that_fails_first_is_told_too(stores: Stores, clock: ManualClock) -> None:
    """Its failure comes while the winner is still at work: the run goes on."""
    store = stores()
    entered, leave, work_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def fails(state: AgentState) -> None:
        entered.set()
        await leave.wait()
        raise RuntimeError("the loser's model is down")

    async def works(state: AgentState) -> dict[str, Any]:
        leave.set()
        await work_on.wait()
        return {"done": True}

    def graph(function: Any) -> StateGraph:
        return StateGraph(store, name="work").add_node("work", function).set_entry_point("work")

    loser = asyncio.create_task(graph(fails).run({}, "r"))
    await entered.wait()
    clock.advance(LONGER)
    winner = asyncio.create_task(consume(graph(works).recover("r"), 99))
    with pytest.raises(LeaseLost):
        await loser
    work_on.set()
    assert [event.event_type for event in await winner] == ["node_start", "state_update", "completed"]


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_driver_hears_that_it_was_replaced(stores: Stores, clock: ManualClock, stubborn: bool) -> None:
    """In the middle of a node that would wait for ever: it is stopped, and what it makes of that is not recorded."""
    store = stores()
    entered = asyncio.Event()

    async def waits(state: AgentState) -> dict[str, Any]:
        entered.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if not stubborn:
                raise
        return {"by": "the loser"}

    def graph(function: Any) -> StateGraph:
        return StateGraph(store, name="work", lease=0.3).add_node("work", function).set_entry_point("work")

    loser = asyncio.create_task(graph(waits).run({}, "r"))
    await entered.wait()
    told: list[Event] = []
    while not told:
        clock.advance(1)
        with suppress(LeaseHeld):  # its heart goes by another clock, and was just now between the two
            told = await consume(graph(lambda state: {"by": "the winner"}).recover("r"), 99)
    assert told[-1].event_type == "completed"
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(loser, 60)
    assert [row.content.get("set") for row in await store.history("r", after=0)] == [{"by": "the winner"}]


async def test_a_thread_at_work_is_waited_for_and_recorded(stores: Stores) -> None:
    """A cancelled driver cannot stop it: its result is stored, then the run is released."""
    store = stores()
    entered, leave = threading.Event(), threading.Event()

    def work(state: AgentState) -> dict[str, Any]:
        entered.set()
        assert leave.wait(60)
        return {"done": True}

    graph = StateGraph(store, name="thread").add_node("work", work, blocking=True).set_entry_point("work")
    graph.add_node("last", lambda state: {"last": True}).add_edge("work", "last")
    running = asyncio.create_task(graph.run({}, "r"))
    await asyncio.to_thread(entered.wait, 60)
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done()
    leave.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    run = await graph.info("r")
    assert (run.status, run.state) == ("ready", {"done": True})
    assert (await consume(graph.resume("r"), 99))[-1].event_type == "completed"


async def test_the_heart_keeps_a_run_whose_node_blocks(open_store: OpenStore) -> None:
    """Far longer than the lease, the event loop with it: nobody else gets the run, and it is warned of."""
    store = open_store()
    entered, leave = threading.Event(), threading.Event()

    def block(state: AgentState) -> dict[str, Any]:
        entered.set()
        assert leave.wait(60)
        return {"done": True}

    def graph(own: Checkpointer) -> StateGraph:
        made = StateGraph(own, name="block", lease=0.3).add_node("block", block)
        return made.set_entry_point("block")

    def steal() -> set[str]:
        """Try to take the run over until its lease was renewed five times."""

        async def attempts() -> set[str]:
            leases: set[int | None] = set()
            told: set[str] = set()
            async with SqliteCheckpointer(store.path) as own:
                while len(leases) < 6:
                    head = await own.head("r")
                    assert head is not None
                    leases.add(head.lease_until)
                    try:
                        await anext(graph(own).recover("r"))
                        told.add("taken over")
                    except LeaseHeld:
                        told.add("held")
                    await asyncio.sleep(0.01)
            return told

        try:
            assert entered.wait(60)
            return asyncio.run(attempts())
        finally:
            leave.set()

    thief = asyncio.create_task(asyncio.to_thread(steal))
    await asyncio.sleep(0)
    with pytest.warns(RuntimeWarning, match="blocked the event loop .* declare it with blocking=True"):
        run = await graph(store).run({}, "r")
    assert await thief == {"held"}
    assert (run.status, run.epoch) == ("completed", 1)


# -- processes and event loops


def test_a_forked_child_does_not_use_its_parents_connection(path: Path) -> None:
    """It is told so at once, can close it, and can open its own."""
    program = """
import asyncio, os, sys
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StoreClosed

store = SqliteCheckpointer(sys.argv[1])
print(len(asyncio.run(store.runs())), flush=True)
child = os.fork()
if child == 0:
    async def use():
        try:
            await store.runs()
        except StoreClosed as error:
            print("forked" in str(error), flush=True)
        await store.close()
        async with SqliteCheckpointer(sys.argv[1]) as own:
            print(len(await own.runs()), flush=True)
    asyncio.run(use())
    sys.exit(0)
print(os.waitpid(child, 0)[1], flush=True)
print(len(asyncio.run(store.runs())), flush=True)
asyncio.run(store.close())
"""
    assert run(program, path) == ["0", "True", "0", "0", "0"]


def run(program: str, path: Path) -> list[str]:
    """What a program of its own tells, that has to end by itself and without an error."""
    command = [sys.executable, "-P", "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


LOOP_ENDS = """
import asyncio, sys
from checkpointers.sqlite import SqliteCheckpointer
from stategraph.checkpoint import Entry

store = SqliteCheckpointer(sys.argv[1])
def row(step):
    return [Entry("node", "", step, 0, "running", b"{}")]

async def new(name):
    return await store.create(name, graph="g", fingerprint="f", creator="c", body=b"{}", status="running", owner="w", lease_ms=9999)

async def leave(names):
    leases = [await new(name) for name in names]
    for lease in leases:
        asyncio.ensure_future(store.append(lease, 0, row(0)))
    await asyncio.sleep(0)
"""


def test_an_event_loop_may_end_while_appends_are_under_way(path: Path) -> None:
    """What had reached the store is stored, what waited is not; the store serves the next loop, and the program ends."""
    program = (
        LOOP_ENDS
        + """
for number in range(20):
    asyncio.run(leave([f"{letter}{number}" for letter in "abc"]))
async def again():
    print([head.seq for head in await store.runs()])
    lease = await new("last")
    print((await store.append(lease, 0, row(0))).seq)
    await store.close()
asyncio.run(again())
"""
    )
    *seqs, last = run(program, path)
    assert ("".join(seqs), last) == (f"[{','.join(['0,0,1'] * 20)}]", "1")


def test_a_program_may_close_its_loop_in_the_middle_of_an_append(path: Path) -> None:
    """Carelessly, its tasks pending: it ends, and what was under way is stored whole or not at all."""
    program = (
        LOOP_ENDS
        + """
loop = asyncio.new_event_loop()
loop.run_until_complete(leave("abc"))
loop.close()
"""
    )
    assert run(program, path) == []

    async def look() -> list[int]:
        async with SqliteCheckpointer(path) as store:
            return [len(await store.history(head.run_id)) for head in await store.runs()]

    assert asyncio.run(look()) in ([1, 1, 2], [1, 1, 1])


async def test_a_store_may_be_closed_while_it_opens(open_store: OpenStore) -> None:
    """Whoever waited is told; no thread and no file stay behind."""
    store = open_store()
    waiting = asyncio.create_task(store.runs())
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StoreClosed):
        await waiting
    assert store._connection is None


async def test_a_store_may_be_closed_under_a_running_driver(
    open_store: OpenStore, ledger: Path, clock: ManualClock
) -> None:
    """It is told that its store is closed; another store on the file finishes the run."""
    store = open_store()

    def moment(what: str) -> None:
        if what == "after run check":
            closing.append(asyncio.ensure_future(store.close()))

    closing: list[asyncio.Future[None]] = []

    async def around(verb: str, phase: Literal["before", "after"]) -> None:
        if closing:
            await asyncio.wait(closing)

    with pytest.raises(StoreClosed):
        await build(interposed(store, around), ledger, moment=moment).run({"amount": 7}, "r")
    await sound(open_store(), ledger, clock)


# -- clicks that come late, and stops that come early


async def test_a_stale_click_does_not_open_the_next_gate(stores: Stores) -> None:
    """Two gates in a row, the first approval sent twice: the second send is told who decided, the second gate still waits."""
    ran: list[str] = []
    graph = StateGraph(stores(), name="gates").set_entry_point("one").add_edge("one", "two").add_edge("two", "three")
    for node in ("one", "two", "three"):
        graph.add_node(node, lambda state, node=node: ran.append(node))
    graph.add_interrupt_before("two").add_interrupt_before("three")
    await graph.run({}, "r")
    (first,) = await graph.boundaries("r")
    with pytest.raises(DecisionRefused):
        await graph.decide("r", "approved", boundary="r:2.0", by="eve")  # a gate that is not reached yet
    assert [e.event_type async for e in graph.resume("r", "approved", boundary=first.id, by="ann", decision_id="c")] == [
        "node_start", "state_update", "interrupted",
    ]  # fmt: skip
    for by, digest in (("ann", None), ("bob", None), ("ann", first.digest)):
        with pytest.raises(DecisionRefused, match="already approved by ann") as late:
            await anext(graph.resume("r", "approved", boundary=first.id, by=by, digest=digest))
        assert late.value.by == "ann"
    with pytest.raises(DecisionRefused, match="stale page"):  # the page of the first gate, without its name
        await anext(graph.resume("r", "approved", digest=first.digest, by="bob"))
    assert [e async for e in graph.resume("r", "approved", boundary=first.id, by="ann", decision_id="c")] == []
    assert (await graph.info("r")).status == "pending"
    assert ran == ["one", "two"]
    with pytest.raises(RunExists):
        await graph.run({"new": "input"}, "r")
    second = (await graph.boundaries("r"))[1]
    assert [e.event_type async for e in graph.resume("r", "approved", boundary=second.id, by="bob")][-1] == "completed"
    assert ran == ["one", "two", "three"]
    with pytest.raises(DecisionRefused, match="already approved by bob"):
        await graph.decide("r", "rejected", boundary=second.id, by="eve")


async def test_a_gate_that_was_added_meanwhile_is_not_passed(stores: Stores, ledger: Path) -> None:
    """The run stood before its node, released, when the graph had no gate there: whoever goes on is asked."""
    store = stores()
    await consume(ungated(store, ledger).stream({"amount": 7}, "r"), 3)  # until the second node has started
    graph = ungated(store, ledger).add_interrupt_before("mail")
    assert [event.event_type async for event in graph.resume("r")] == ["interrupted"]
    assert not [line for line in lines(ledger) if line.startswith("effect")]
    assert (await graph.info("r")).status == "pending"
    told = [event.event_type async for event in graph.resume("r", "approved", by="ann")]
    assert told[-1] == "completed"


async def test_a_decision_is_never_overwritten(stores: Stores, ledger: Path) -> None:
    """Rejected, then approved: refused, and the run stays as it ended."""
    graph = build(stores(), ledger)
    await graph.run({"amount": 7}, "r")
    await graph.decide("r", "rejected", by="ann", note="too much")
    for word in ("approved", "rejected"):
        with pytest.raises(DecisionRefused, match="already rejected by ann"):
            await graph.decide("r", word, by="bob")
    assert (await graph.info("r")).status == "rejected"
    assert "run pay" not in lines(ledger)
    (boundary,) = await graph.boundaries("r")
    assert boundary.decided is not None
    assert (boundary.decided.by, boundary.decided.note) == ("ann", "too much")


async def test_a_stop_lets_the_node_end_and_starts_nothing_more(stores: Stores, ledger: Path) -> None:
    """Asked for during the first of several nodes: its work is kept, the run is cancelled, and says so."""
    store = stores()
    graph = build(store, ledger)
    asked: list[Awaitable[bool]] = []

    def moment(what: str) -> None:
        if what == "after run mail":
            asked.append(asyncio.ensure_future(graph.cancel("r", by="ops", note="enough")))

    async def around(verb: str, phase: Literal["before", "after"]) -> None:
        if verb == "effect_end":  # the request is in before the node ends
            await asyncio.gather(*asked)

    driven = build(interposed(store, around), ledger, moment=moment)
    told = [event.event_type async for event in driven.stream({"amount": 7}, "r")]
    assert told == ["node_start", "state_update", "node_start", "state_update", "cancelled"]
    run = await graph.info("r")
    assert (run.status, run.state) == ("cancelled", {"amount": 7, "check": 0, "mail": True})
    assert [line for line in lines(ledger) if line.startswith("run")] == ["run check", "run mail"]
    assert await graph.cancel("r") is False
    with pytest.raises(DecisionRefused):
        await graph.decide("r", "approved", by="ann")


async def test_a_router_that_fails_while_the_run_is_stopped_ends_it(stores: Stores) -> None:
    """The failure was recorded without having seen the request: the request is honoured all the same."""
    store = stores()
    graph = StateGraph(store, name="router").set_entry_point("a")
    requests: list[asyncio.Future[bool]] = []

    async def work(state: AgentState) -> dict[str, Any]:
        requests.append(asyncio.ensure_future(graph.cancel("r", by="ops")))
        await requests[0]
        return {"a": 1}

    def broken(state: AgentState) -> str:
        raise RuntimeError("no way")

    graph.add_node("a", work).add_conditional_edge("a", broken, ["END"])
    with pytest.raises(RuntimeError, match="no way"):
        await graph.run({}, "r")
    run = await graph.info("r")
    assert (run.status, run.state) == ("cancelled", {"a": 1})
