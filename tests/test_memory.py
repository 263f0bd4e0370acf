"""What is peculiar to the store in memory; what every store promises is in the contract suite."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType
from typing import Any

import pytest

from checkpointers.memory import MemoryCheckpointer
from stategraph.checkpoint import Entry, Lease, Opening, Status, Written, dump_openings
from stategraph.clock import ManualClock
from stategraph.errors import CheckpointerError, CorruptCheckpoint, StoreClosed

GATE = Opening("approval", "", 1, "pay", digest="shown", expires_at=1_700_000_060_000)
RACERS = 16


@pytest.fixture
def store() -> MemoryCheckpointer:
    return MemoryCheckpointer(clock=ManualClock(), secret=b"of this test")


async def create(store: MemoryCheckpointer, run_id: str = "r", status: Status = "running") -> Lease:
    lease = await store.create(
        run_id, graph="g", fingerprint="f", creator="carol", body=b'{"n":1}', status=status, owner="w", lease_ms=30_000
    )
    assert lease is not None
    return lease


def visit(step: int, status: Status = "running", *openings: Opening) -> Entry:
    return Entry("node", "", step, 0, status, b'{"n":2}', dump_openings(openings))


def decide(store: MemoryCheckpointer, run_id: str, actor: str) -> Coroutine[Any, Any, Written | None]:
    return store.decide(
        run_id, "1.0", digest="shown", decision="approved", actor=actor, act=f"act of {actor}", body=b""
    )


def vote(store: MemoryCheckpointer, run_id: str, racer: int) -> Coroutine[Any, Any, Written | None]:
    return decide(store, run_id, f"racer {racer}")


async def in_threads(act: Callable[[int], Coroutine[Any, Any, Written | None]]) -> list[Written]:
    """What was accepted of as many acts at once as there are racers, each in a thread and a loop of its own."""
    barrier = threading.Barrier(RACERS)

    def racer(number: int) -> Written | None:
        barrier.wait()
        return asyncio.run(act(number))

    loop, patience = asyncio.get_running_loop(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # else a thread is done before the next one runs, and nothing races
    try:
        with ThreadPoolExecutor(RACERS) as pool:
            answers = await asyncio.gather(*(loop.run_in_executor(pool, racer, number) for number in range(RACERS)))
    finally:
        sys.setswitchinterval(patience)
    return [answer for answer in answers if answer is not None]


def operations(verb: Coroutine[Any, Any, object]) -> int:
    """How many bytecodes the verb executes."""
    executed = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal executed
        frame.f_trace_opcodes = True
        executed += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        verb.send(None)
    except StopIteration:
        return executed
    finally:
        sys.settrace(before)
    raise AssertionError("a verb of the memory store never waits")


async def test_a_url_names_the_store_and_nothing_more() -> None:
    """`memory:` opens an empty store that does not outlive the process; a path after it is refused, with the fix."""
    assert not MemoryCheckpointer.from_url("").durable
    with pytest.raises(ValueError, match="no place and no name: write memory:"):
        MemoryCheckpointer.from_url("runs.db")


async def test_a_closed_store_refuses_every_verb(store: MemoryCheckpointer) -> None:
    """After the block, and after closing twice, each use says that the store is closed."""
    async with store:
        lease = await create(store)
    await store.close()
    uses: list[Coroutine[Any, Any, object]] = [
        store.create("s", graph="g", fingerprint="f", creator="c", body=b"", status="ready"),
        store.claim("r", "w", 1),
        store.renew(lease, 1),
        store.release(lease),
        store.append(lease, 0, [visit(0)]),
        store.settle(lease, 0, "pending", b""),
        decide(store, "r", "ann"),
        store.expire("r", "1.0"),
        store.signal("r", "paid", "7", actor="ann", act="a", body=b""),
        store.cancel("r", actor="ann", act="a", body=b""),
        store.retry("r", actor="ann", act="a", body=b""),
        store.effect_begin(lease, "key", path="", step=0, policy="ask", token="t"),
        store.effect_end("r", "key", "t", b""),
        store.head("r"),
        store.load("r"),
        store.history("r"),
        store.find_act("r", "a"),
        store.runs(),
        store.boundaries(),
        store.due(),
        store.delete("r"),
        store.prune(0),
        store.__aenter__(),
    ]
    for use in uses:
        with pytest.raises(StoreClosed, match="was closed"):
            await use


async def test_of_threads_that_decide_one_boundary_exactly_one_wins(store: MemoryCheckpointer) -> None:
    """One decision is recorded, the other threads are refused, and the log has one row more."""
    for number in range(20):
        lease = await create(store, f"r{number}")
        await store.append(lease, 0, [visit(0, "pending", GATE)])
        winners = await in_threads(partial(vote, store, lease.run_id))
        assert [(winner.seq, winner.status) for winner in winners] == [(2, "ready")]
        assert [row.kind for row in await store.history(lease.run_id)] == ["start", "node", "decision"]


async def test_rows_that_threads_append_at_once_leave_no_gap(store: MemoryCheckpointer) -> None:
    """Each thread's visit gets a seq of its own, and the head stands at the last."""
    lease = await create(store)
    written = await in_threads(lambda number: store.append(lease, 0, [visit(number)]))
    assert sorted(row.seq for row in written) == list(range(1, RACERS + 1))
    log = await store.load("r")
    assert log is not None
    assert [row.seq for row in log.checkpoints] == list(range(RACERS + 1))
    assert log.head.seq == RACERS


async def test_a_refused_verb_leaves_no_trace(store: MemoryCheckpointer) -> None:
    """Whatever was refused or mistaken, the whole store reads as before."""
    await create(store, "ended", "ready")
    await store.cancel("ended", actor="ann", act="first", body=b"")
    lease = await create(store)
    await store.append(lease, 0, [visit(0, "running", GATE)])
    stale, gone = Lease("r", "w", 0, 0), Lease("none", "w", 1, 0)

    async def everything() -> object:
        logs = [await store.load(run_id) for run_id in ("r", "ended")]
        return logs, await store.boundaries(), await store.runs(), await store.due()

    before = await everything()
    for refused in [
        store.create(
            "r", graph="g", fingerprint="f", creator="c", body=b"", status="ready", opens=dump_openings([GATE])
        ),
        store.claim("r", "other", 1),
        store.renew(stale, 1),
        store.append(stale, 1, [visit(1)], b"{}"),
        store.append(gone, 1, [visit(1)]),
        store.append(lease, 1, [visit(0, "completed", GATE)], b"{}"),
        store.settle(lease, 0, "pending", b""),
        decide(store, "r", ":clock"),
        decide(store, "ended", "ann"),
        store.expire("r", "1.0"),
        store.signal("ended", "paid", "7", actor="ann", act="a", body=b""),
        store.cancel("ended", actor="ann", act="a", body=b""),
        store.retry("r", actor="ann", act="a", body=b""),
        store.effect_end("r", "key", "t", b""),
    ]:
        assert await refused is None
    assert not await store.release(stale)
    assert not await store.delete("r")
    for mistaken, error in {
        store.append(lease, 1, [visit(1, "running", GATE), visit(0)], b"{}"): CheckpointerError,
        store.append(lease, 1, [visit(1), visit(1)]): CheckpointerError,
        store.append(lease, 1, [visit(1), Entry("node", "", 2, 0, "running", b"{}", opens="[")]): ValueError,
        store.append(lease, 1, [visit(1, "cancelled")], b"{}"): CheckpointerError,
    }.items():
        with pytest.raises(error):
            await mistaken
    assert await everything() == before


async def test_what_a_poll_costs_does_not_depend_on_what_has_finished(store: MemoryCheckpointer) -> None:
    """`due` executes as many bytecodes beside 300 finished runs and their closed boundaries as beside one."""

    async def finish(number: int) -> None:
        lease = await create(store, f"r{number}")
        await store.append(lease, 0, [visit(0, "pending", GATE)])
        assert await decide(store, lease.run_id, "ann")
        claimed = await store.claim(lease.run_id, "w", 30_000)
        assert claimed is not None
        assert await store.append(claimed, 2, [visit(1, "completed")])

    await create(store, "waiting", "ready")
    await finish(0)
    few = operations(store.due())
    for number in range(1, 301):
        await finish(number)
    assert await store.due() == (["waiting"], [])
    assert operations(store.due()) == few


async def test_a_reader_cannot_change_what_is_stored(store: MemoryCheckpointer) -> None:
    """A row's decoded body belongs to who has read it."""
    await create(store)
    (row,) = await store.history("r")
    row.content["n"] = "changed"
    (again,) = await store.history("r")
    assert again.content == {"n": 1}


@pytest.mark.parametrize("damage", ["altered", "missing", "cut"])
async def test_damage_is_noticed(store: MemoryCheckpointer, damage: str) -> None:
    """A row that is not what was written, or not there, is an error that names it, and never a shorter history."""
    lease = await create(store)
    await store.append(lease, 0, [visit(0), visit(1)])
    rows = store._runs["r"].rows
    if damage == "altered":
        rows[1] = (*rows[1][:3], b'{"n":3}', *rows[1][4:])
    else:
        del rows[1 if damage == "missing" else 2]
    with pytest.raises(CorruptCheckpoint, match=f"'r', checkpoint {2 if damage == 'cut' else 1}: it"):
        await store.load("r")


async def test_a_removed_run_leaves_nothing(store: MemoryCheckpointer) -> None:
    """Its id and its effects' keys are free again, and no index still knows it."""
    lease = await create(store)
    await store.effect_begin(lease, "key", path="", step=0, policy="ask", token="first")
    await store.append(lease, 0, [visit(0, "pending", GATE)])
    await store.cancel("r", actor="ann", act="a", body=b"")
    assert await store.prune(store.clock.now()) == 0
    assert await store.prune(store.clock.now() + 1) == 1
    assert await store.boundaries() == []
    effect = await store.effect_begin(await create(store), "key", path="", step=0, policy="ask", token="second")
    assert effect is not None
    assert effect.token == "second"


async def test_a_changed_snapshot_is_noticed(store: MemoryCheckpointer) -> None:
    """A fold that nobody made is served to nobody."""
    lease = await create(store)
    await store.append(lease, 0, [visit(0)], snapshot=b'{"n":1}')
    seq, _, digest = store._runs["r"].snapshot or (0, b"", b"")
    store._runs["r"].snapshot = seq, b'{"n":9}', digest
    with pytest.raises(CorruptCheckpoint, match="its snapshot's digest"):
        await store.load("r")
