"""A run is the fold of its checkpoints: valid at every prefix, equal twice, and equal from a snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpointers import MemoryCheckpointer
from stategraph import (
    Checkpoint,
    Checkpointer,
    Context,
    CorruptCheckpoint,
    ManualClock,
    Retry,
    Run,
    StateGraph,
    append,
    merge,
)
from stategraph.encoding import decode, encode
from stategraph.run import fold

#: A busy machine is no failure.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


STATUSES = {"ready", "running", "pending", "failed", "completed", "rejected", "cancelled"}
PHASES = {"ready", "gate", "turned", "route", "asked", "timer", "failed"}


async def passed(events: AsyncIterator[Any], *errors: type[Exception]) -> None:
    """Let a run go on, and the error that is part of its story."""
    try:
        async for _ in events:
            pass
    except errors:
        pass


@pytest.fixture(params=["memory", "sqlite"])
async def checkpointer(request: pytest.FixtureRequest, open_store: Any, clock: ManualClock) -> Checkpointer:
    """Every store in turn; long runs do not wait for the disk."""
    if request.param == "memory":
        return MemoryCheckpointer(clock=clock)
    store: Checkpointer = open_store(durability="relaxed")
    return store


# -- runs with every kind of row in their logs


class Moods:
    """What the nodes of the graph below do next; `ok` once nothing is said."""

    def __init__(self, **moods: list[str]) -> None:
        self.moods = moods

    def next(self, name: str) -> str:
        moods = self.moods.get(name)
        return moods.pop(0) if moods else "ok"


def made(checkpointer: Checkpointer, moods: Moods, version: str = "1") -> StateGraph:
    """plan -> (gate) pay -> check -> plan again or END; a rejection leads to `drop`."""
    graph = StateGraph(checkpointer, 12, reducers={"log": append, "seen": merge, "total": add}, version=version)

    def plan(state: Any) -> dict[str, Any]:
        if moods.next("plan") == "fail":
            raise OSError("no plan")
        return {"log": ["plan"], "seen": {str(len(state["log"])): True}, "total": 1, "messages": [{"n": [1]}]}

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        receipt = await ctx.once("charge", lambda: charge(moods.next("pay")))
        ctx.emit({"paid": receipt})
        return {"log": ["pay"], "receipt": receipt, "total": 10}

    def charge(mood: str) -> str:
        if mood == "fail":
            raise OSError("no money")
        return mood

    def check(state: Any) -> dict[str, Any]:
        if moods.next("check") == "fail":
            raise OSError("no check")
        return {"log": ["check"]}

    def route(state: Any) -> str:
        mood = moods.next("route")
        return {"again": "plan", "ok": "END"}[mood]

    graph.add_node("plan", plan).add_node("pay", pay).add_node("drop", lambda state: {"log": ["drop"], "dropped": True})
    graph.add_node("check", check, retry=Retry(attempts=3, delay=10))
    graph.set_entry_point("plan").add_edge("plan", "pay").add_edge("pay", "check")
    graph.add_conditional_edge("check", route, ["plan", "END"])
    graph.add_interrupt_before("pay", on_reject="drop", expires_in=3600)
    return graph


def add(current: int | None, update: int) -> int:
    return (current or 0) + update


async def straight(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    await graph.run({"log": []}, "r")
    await passed(graph.resume("r", "approved", by="alice"))


async def edited_and_looped(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["route"] = ["again", "again"]
    await graph.run({"log": []}, "r")
    for nth in range(3):
        await passed(graph.resume("r", "approved", edit={"note": nth, "log": ["edited"]}))


async def turned_down(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    await graph.run({"log": []}, "r")
    await passed(graph.resume("r", "rejected", note="no"))


async def expired(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    await graph.run({"log": []}, "r")
    clock.advance(7200)
    await passed(graph.resume("r"))


async def failed_and_retried(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["plan"] = ["fail", "fail"]
    await passed(graph.stream({"log": []}, "r"), OSError)
    await passed(graph.retry("r"), OSError)
    await passed(graph.retry("r", {"log": ["patched"]}))
    await passed(graph.resume("r", "approved"))


async def router_failed(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["route"] = ["nonsense", "nonsense"]
    await graph.run({"log": []}, "r")
    await passed(graph.resume("r", "approved"), KeyError)
    await passed(graph.retry("r"), KeyError)
    await passed(graph.retry("r"))


async def backed_off(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["check"] = ["fail", "fail"]
    await graph.run({"log": []}, "r")
    async for event in graph.resume("r", "approved"):
        if event.event_type == "retrying":
            clock.advance(100)


async def in_doubt(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["pay"] = ["fail"]
    await graph.run({"log": []}, "r")
    await passed(graph.resume("r", "approved"), OSError)
    await passed(graph.retry("r"))
    await passed(graph.resume("r", "retry"))


async def done_by_hand(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["pay"] = ["fail"]
    await graph.run({"log": []}, "r")
    await passed(graph.resume("r", "approved"), OSError)
    await passed(graph.retry("r"))
    await passed(graph.resume("r", "approved", answer="by hand"))


async def not_done(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["pay"] = ["fail"]
    await graph.run({"log": []}, "r")
    await passed(graph.resume("r", "approved"), OSError)
    await passed(graph.retry("r"))
    await passed(graph.resume("r", "rejected"))


async def out_of_budget(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    moods.moods["route"] = ["again"] * 5
    await graph.run({"log": []}, "r")
    for _ in range(4):
        await passed(graph.resume("r", "approved"), RuntimeError)
    await passed(graph.retry("r", max_steps=30))
    await passed(graph.resume("r", "approved"))
    await passed(graph.resume("r", "approved"))


async def cancelled(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    await graph.run({"log": []}, "r")
    await graph.cancel("r", note="enough")


async def left(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    async def endless(state: Any) -> None:
        await asyncio.get_running_loop().create_future()

    events = graph.replace_node("plan", endless).stream({"log": []}, "r")
    await anext(events)
    await events.aclose()


async def forked(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    await graph.run({"log": []}, "source")
    await passed(graph.resume("source", "approved"))
    await graph.fork("source", 2, {"note": "forked"}, new_run_id="r")
    await passed(graph.resume("r", "approved"))


async def migrated(graph: StateGraph, clock: ManualClock, moods: Moods) -> None:
    await graph.run({"log": []}, "r")
    newer = made(graph.checkpointer, moods, version="2")
    newer.migrate("1")(lambda values: {"log": [*values["log"], "migrated"], "new": 1})
    await passed(newer.resume("r", "approved"))


STORIES: list[Callable[[StateGraph, ManualClock, Moods], Any]] = [
    straight, edited_and_looped, turned_down, expired, failed_and_retried, router_failed, backed_off, in_doubt,
    done_by_hand, not_done, out_of_budget, cancelled, left, forked, migrated,
]  # fmt: skip


@pytest.fixture(params=STORIES, ids=lambda story: story.__name__)
def story(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
async def rows(story: Any, clock: ManualClock) -> list[Checkpoint]:
    """The log of a run that has lived through a story."""
    moods = Moods()
    graph = made(MemoryCheckpointer(clock=clock), moods)
    await story(graph, clock, moods)
    return await graph.history("r")


def whole(run: Run) -> Any:
    """Everything that the fold knows, as a value of its own."""
    return decode(encode(run.content()))


async def test_the_fold_of_a_prefix_is_what_the_run_was(
    checkpointer: Checkpointer, clock: ManualClock, story: Any
) -> None:
    """A load up to a row, the state at it and the fold of the rows tell the same; the end is that of the story."""
    moods = Moods()
    graph = made(checkpointer, moods)
    await story(graph, clock, moods)
    rows = await graph.history("r")
    for row in rows:
        log = await checkpointer.load("r", until=row.seq)
        assert log is not None
        loaded = fold("r", log.checkpoints, log.snapshot[1] if log.snapshot else None)
        assert whole(loaded) == whole(fold("r", rows[: row.seq + 1]))
        assert await graph.state("r", row.seq) == loaded.state
    statuses = {cancelled: "cancelled", left: "ready", not_done: "failed"}
    assert (await graph.info("r")).status == statuses.get(story, "completed")


def test_every_prefix_of_a_log_folds_and_twice_to_the_same(rows: list[Checkpoint]) -> None:
    """The empty one too; the same rows give the same run again, and are not changed by it."""
    contents = [decode(encode(row.content)) for row in rows]
    for length in range(len(rows) + 1):
        run = fold("r", rows[:length])
        assert whole(run) == whole(fold("r", rows[:length]))
        assert run.seq == length - 1
        assert run.status in STATUSES
        assert {position.phase for position in run.positions.values()} <= PHASES
        assert run.ended == (run.status in {"completed", "rejected", "cancelled"})
    assert [row.content for row in rows] == contents


def test_a_fold_may_go_on_from_a_snapshot_of_any_prefix(rows: list[Checkpoint]) -> None:
    """The run after a snapshot and the rows behind it is the run from the start."""
    everything = whole(fold("r", rows))
    for length in range(1, len(rows) + 1):
        snapshot = fold("r", rows[:length]).snapshot()
        assert whole(fold("r", rows[length:], snapshot)) == everything


def test_the_status_of_a_prefix_is_that_of_its_last_row(rows: list[Checkpoint]) -> None:
    """And a run that nobody has to drive rests as its fold says."""
    for row in rows:
        run = fold("r", rows[: row.seq + 1])
        assert run.status == row.status
        if row.status not in ("running", "ready"):
            assert run.resting() == row.status


def test_a_log_with_a_row_missing_or_twice_is_corrupt(rows: list[Checkpoint]) -> None:
    """Never skipped, never applied twice."""
    for place in range(len(rows) - 1):
        with pytest.raises(CorruptCheckpoint, match=f"checkpoint {place + 1}: it follows checkpoint"):
            fold("r", [*rows[:place], *rows[place + 1 :]])
        with pytest.raises(CorruptCheckpoint):
            fold("r", [*rows[: place + 1], *rows[place:]])


async def test_nothing_follows_the_end(checkpointer: Checkpointer) -> None:
    """A row after `completed` was not written by us."""
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).set_entry_point("a")
    await graph.run({}, "r")
    rows = await graph.history("r")
    more = Checkpoint("r", len(rows), "settled", "ready", b"{}", 0)
    with pytest.raises(CorruptCheckpoint, match=r"it follows the run's end \(completed\)"):
        fold("r", [*rows, more])


@pytest.mark.parametrize(
    "row",
    [
        Checkpoint("r", 1, "node", "running", b'{"node":"b","at":"END","ms":0}', 0, 1, "", 1, 0),
        Checkpoint("r", 1, "node", "running", b'{"node":"a","at":"END","ms":0}', 0, 1, "0.1", 0, 0),
        Checkpoint("r", 1, "decision", "running", b"{}", 0, boundary="0.0", decision="approved", actor="x", act="y"),
        Checkpoint("r", 1, "join", "running", b"{}", 0, 1, "", 0, 0),
        Checkpoint("r", 1, "route", "running", b'{"node":"a","at":"END"}', 0, 1, "", 0, 0),
    ],
    ids=["another step", "another path", "no such boundary", "an unknown kind", "no router was due"],
)
def test_a_row_that_does_not_fit_is_corrupt(row: Checkpoint) -> None:
    """The error names run and checkpoint."""
    body = b'{"graph":"g","version":"1","fingerprint":"f","max_steps":20,"at":"a"}'
    start = Checkpoint("r", 0, "start", "running", body, 0)
    with pytest.raises(CorruptCheckpoint, match=r"run 'r', checkpoint 1: ") as caught:
        fold("r", [start, row])
    assert (caught.value.run_id, caught.value.seq) == ("r", 1)


def test_a_log_of_the_first_version_still_folds() -> None:
    """Bodies without what later versions may add, and with keys that this one does not know."""
    rows = [
        Checkpoint(
            "r", 0, "start", "running",
            b'{"graph":"refunds","version":"1","fingerprint":"f","max_steps":20,"set":{"messages":[]},"at":"plan","later":1}',
            0,
        ),
        Checkpoint(
            "r", 1, "node", "pending",
            b'{"node":"plan","set":{"amount":1000},"append":{"messages":["m"]},"at":"pay","ms":3,"later":{"x":1}}',
            0, 1, "", 0, 0,
            '[{"kind":"approval","path":"","step":1,"node":"pay","digest":"d","final":true}]',
        ),
        Checkpoint("r", 2, "decision", "ready", b"{}", 0, boundary="1.0", decision="approved", actor="a", act="x"),
        Checkpoint("r", 3, "node", "completed", b'{"node":"pay","set":{"paid":true},"at":"END","ms":1}', 0, 2, "", 1, 0),
    ]  # fmt: skip
    for run in (fold("r", rows), fold("r", rows[2:], fold("r", rows[:2]).snapshot())):
        assert (run.status, run.steps, run.usage) == ("completed", 2, {"active_ms": 4})
        assert run.state == {"messages": ["m"], "amount": 1000, "paid": True}


def test_the_empty_fold_is_a_run_that_has_not_begun() -> None:
    """n = 0 is a prefix too."""
    run = fold("r", [])
    assert (run.seq, run.state, run.positions, run.ended) == (-1, {}, {}, False)


# -- what a run knows


async def test_a_run_says_where_it_stands(checkpointer: Checkpointer) -> None:
    """In one line, for a person."""
    graph = made(checkpointer, Moods())
    await graph.run({"log": []}, "r")
    assert repr(await graph.info("r")) == "<Run 'r' of 'graph': pending at pay gate, seq 1>"
    await passed(graph.resume("r", "approved"))
    assert repr(await graph.info("r")) == "<Run 'r' of 'graph': completed at END, seq 4>"


async def test_a_rejected_run_is_rejected_where_nothing_else_was_declared(checkpointer: Checkpointer) -> None:
    """The status that no story above ends in, with the node that was turned down."""
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).set_entry_point("a").add_interrupt_before("a")
    await graph.run({}, "r")
    await graph.decide("r", "rejected")
    run = await graph.info("r")
    assert (run.status, run.ended, run.turned_down, run.waiting()) == ("rejected", True, "a", [])


@untimed
@given(st.lists(st.sampled_from(["a", "bb", "c" * 300]), max_size=120))
async def test_a_long_run_folds_from_its_snapshot_as_from_its_start(texts: list[str]) -> None:
    """Whatever was written when the snapshot was taken: the store's and the log's run are one."""
    graph = StateGraph(MemoryCheckpointer(), 200).add_node("loop", lambda state: loop(state)).set_entry_point("loop")

    def loop(state: Any) -> dict[str, Any]:
        return {"messages": texts[state["n"] : state["n"] + 1] * 10, "n": state["n"] + 1}

    graph.add_conditional_edge("loop", lambda state: "END" if state["n"] > len(texts) else "loop", ["loop", "END"])
    await graph.run({"messages": [], "n": 0}, "r")
    rows = await graph.history("r")
    log = await graph.checkpointer.load("r")
    assert log is not None
    assert whole(fold("r", log.checkpoints, log.snapshot[1] if log.snapshot else None)) == whole(fold("r", rows))
    assert (log.snapshot is None) == (len(log.checkpoints) == len(rows))


# -- growth, in bytes and rows


async def looped(
    checkpointer: Checkpointer, steps: int, run_id: str, given: dict[str, Any], reducer: Any = append
) -> StateGraph:
    """A run of so many steps that each append 200 bytes."""
    graph = StateGraph(checkpointer, steps, reducers={"items": reducer})
    graph.add_node("loop", lambda state: {"items": ["x" * 198], "n": state["n"] + 1}).set_entry_point("loop")
    graph.add_conditional_edge("loop", lambda state: "END" if state["n"] >= steps else "loop", ["loop", "END"])
    await graph.run({"items": [], "n": 0, **given}, run_id)
    return graph


async def stored(checkpointer: Checkpointer, run_id: str) -> tuple[int, int, int]:
    """Bytes of the log, bytes of the snapshot, and rows that a reader of the present state gets."""
    rows = await checkpointer.history(run_id)
    log = await checkpointer.load(run_id)
    assert log is not None
    return sum(len(row.body) for row in rows), len(log.snapshot[1]) if log.snapshot else 0, len(log.checkpoints)


async def test_storage_grows_with_what_is_appended(checkpointer: Checkpointer) -> None:
    """Linear: at most three times the payload, from 50 steps to 800."""
    for steps in (50, 200, 800):
        await looped(checkpointer, steps, f"r{steps}", {})
        rows, snapshot, _ = await stored(checkpointer, f"r{steps}")
        assert rows + snapshot <= 3 * 200 * steps


async def test_reading_the_present_state_does_not_read_the_whole_log(checkpointer: Checkpointer) -> None:
    """The rows after the snapshot weigh no more than the snapshot, whatever the length of the run."""
    await looped(checkpointer, 800, "r", {})
    _, snapshot, read = await stored(checkpointer, "r")
    assert snapshot > 0
    assert read < 800
    log = await checkpointer.load("r")
    assert log is not None
    assert sum(len(row.body) for row in log.checkpoints) <= max(snapshot, 16 * 1024) + 1024


async def test_a_state_that_does_not_grow_is_read_from_few_rows(checkpointer: Checkpointer) -> None:
    """The rows that a reader gets are bounded, not a share of the log: 400 steps or 1,600."""
    read = {}
    for steps in (400, 1600):
        await looped(checkpointer, steps, f"r{steps}", {}, reducer=lambda current, update: update)
        _, _, read[steps] = await stored(checkpointer, f"r{steps}")
    assert max(read.values()) <= 120


async def test_an_untouched_field_is_stored_about_once(checkpointer: Checkpointer) -> None:
    """A hundred steps beside 200 KB."""
    await looped(checkpointer, 100, "r", {"field": "y" * 200_000})
    rows, snapshot, _ = await stored(checkpointer, "r")
    assert rows + snapshot <= 2 * 200_000


async def test_a_state_too_large_for_a_snapshot_is_read_from_its_log(
    checkpointer: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step fits, the whole does not: the run goes on all the same."""
    from stategraph import encoding

    monkeypatch.setattr(encoding, "MAX_BYTES", 20_000)
    graph = await looped(checkpointer, 200, "r", {})
    run = await graph.info("r")
    assert (run.status, len(run.state["items"])) == ("completed", 200)


def test_a_snapshot_without_newer_keys_still_folds() -> None:
    """A snapshot that an older release left has what it had then."""
    start = {"graph": "g", "version": "1", "fingerprint": "f", "max_steps": 20, "at": "plan", "set": {"x": 1}}
    run = fold("r", [Checkpoint("r", 0, "start", "running", encode(start), 1)])
    content = run.content()
    for newer in ("turned_down", "usage", "error", "ending", "parent"):
        del content[newer]
    again = fold("r", [], encode(content))
    assert again.content() == run.content()
