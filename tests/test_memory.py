"""What is peculiar to the store in memory; what every store promises is in the contract suite."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from checkpointers.memory import MemoryCheckpointer
from stategraph.clock import ManualClock
from stategraph.errors import CorruptCheckpoint
from stategraph.testing.byhand import GATE, create, decide, visit

TIMED = replace(GATE, expires_at=1_700_000_060_000)


@pytest.fixture
def store() -> MemoryCheckpointer:
    return MemoryCheckpointer(clock=ManualClock(), secret=b"of this test")


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


async def test_what_a_poll_costs_does_not_depend_on_what_has_finished(store: MemoryCheckpointer) -> None:
    """`due` executes as many bytecodes beside 300 finished runs and their closed boundaries as beside one."""

    async def finish(number: int) -> None:
        lease = await create(store, f"r{number}")
        await store.append(lease, 0, [visit(0, "pending", TIMED)])
        assert await decide(store, run_id=lease.run_id)
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


async def test_a_changed_snapshot_is_noticed(store: MemoryCheckpointer) -> None:
    """A fold that nobody made is served to nobody."""
    lease = await create(store)
    await store.append(lease, 0, [visit(0)], snapshot=b'{"n":1}')
    seq, _, digest = store._runs["r"].snapshot or (0, b"", b"")
    store._runs["r"].snapshot = seq, b'{"n":9}', digest
    with pytest.raises(CorruptCheckpoint, match="its snapshot's digest"):
        await store.load("r")
