"""How a run is driven: budgets, failures, retries, timeouts, effects, and whoever leaves or cancels in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpointers import MemoryCheckpointer
from stategraph import (
    Checkpoint,
    Checkpointer,
    Context,
    DecisionRefused,
    DeltaError,
    Event,
    LeaseHeld,
    LeaseLost,
    ManualClock,
    PoisonedRun,
    Retry,
    RouteError,
    RunNotClaimable,
    StateError,
    StateGraph,
    StateGraphError,
    StepBudgetExhausted,
    StoreClosed,
    current_context,
)
from stategraph.checkpoint import Entry, Lease, Written
from stategraph.context import effect_key

#: A busy machine is no failure.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture
def ran() -> list[str]:
    """What has happened, in order."""
    return []


async def told(events: AsyncIterator[Event]) -> list[str]:
    return [f"{event.event_type} {event.node_name}" async for event in events]


async def told_until(error: type[BaseException], events: AsyncIterator[Event]) -> list[Event]:
    """The events before the error that ends them."""
    heard: list[Event] = []
    with pytest.raises(error):
        await read_into(heard, events)
    return heard


async def read_into(heard: list[Event], events: AsyncIterator[Event], clock: ManualClock | None = None) -> None:
    """Keep each event as it comes; a clock that is given moves on a minute with each."""
    async for event in events:
        heard.append(event)
        if clock is not None:
            clock.advance(60)


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def chain(checkpointer: Checkpointer | None, ran: list[str], *names: str, **more: Any) -> StateGraph:
    """Nodes in a row, each of which notes that it ran."""
    graph = StateGraph(checkpointer, **more).set_entry_point(names[0])
    for name in names:
        graph.add_node(name, lambda state, name=name: ran.append(name))
    for source, target in pairwise(names):
        graph.add_edge(source, target)
    return graph


def loop(checkpointer: Checkpointer, ran: list[str], max_steps: int, rounds: int = 1000) -> StateGraph:
    """A node that runs again and again, `rounds` times."""
    graph = StateGraph(checkpointer, max_steps).add_node("loop", lambda state: ran.append("loop"))
    graph.add_conditional_edge("loop", lambda state: "loop" if len(ran) < rounds else "END", ["loop", "END"])
    return graph.set_entry_point("loop")


# -- the budget


@pytest.mark.parametrize("max_steps", [1, 2, 7])
async def test_the_budget_is_exact(checkpointer: Checkpointer, ran: list[str], max_steps: int) -> None:
    """As many node runs as it says, then the error; and a run that needs exactly as many completes."""
    events = await told_until(StepBudgetExhausted, loop(checkpointer, ran, max_steps).stream({}, "r"))
    assert (len(ran), events[-1].event_type) == (max_steps, "failed")
    ran.clear()
    assert (await loop(checkpointer, ran, max_steps, rounds=max_steps).run({})).status == "completed"


async def test_the_budgets_error_says_what_to_do(checkpointer: Checkpointer, ran: list[str]) -> None:
    """A RuntimeError with the words that programs look for, the node and the budget."""
    with pytest.raises(RuntimeError, match="step budget exhausted: 3 steps are done and 'loop' was not run") as caught:
        await loop(checkpointer, ran, 3).run({}, "r")
    assert isinstance(caught.value, StepBudgetExhausted)
    assert (caught.value.node, caught.value.max_steps) == ("loop", 3)


async def test_steps_before_a_pause_count_after_it(checkpointer: Checkpointer, ran: list[str]) -> None:
    """The budget is the run's, not the call's."""
    graph = loop(checkpointer, ran, 3).add_interrupt_before("loop")
    await graph.run({}, "r")
    for _ in range(2):
        await told(graph.resume("r", "approved"))
    with pytest.raises(StepBudgetExhausted):
        await told(graph.resume("r", "approved"))
    assert len(ran) == 3


async def test_a_retry_may_give_more(checkpointer: Checkpointer, ran: list[str]) -> None:
    """The larger budget is stored with the run; one that is not larger is refused."""
    graph = loop(checkpointer, ran, 3)
    await told_until(StepBudgetExhausted, graph.stream({}, "r"))
    for too_few in (3, 1, 0, -1):
        with pytest.raises(ValueError, match=f"max_steps={too_few}: the run has 3 already; give it more"):
            await told(graph.retry("r", max_steps=too_few))
    await told_until(StepBudgetExhausted, graph.retry("r"))
    assert len(ran) == 3
    await told_until(StepBudgetExhausted, graph.retry("r", max_steps=5))
    assert (len(ran), (await graph.info("r")).max_steps) == (5, 5)


async def test_a_gate_behind_a_spent_budget_is_asked_after_the_retry(
    checkpointer: Checkpointer, ran: list[str]
) -> None:
    """Not before it, as nothing could run; and never passed over."""
    graph = chain(checkpointer, ran, "a", "b", max_steps=1).add_interrupt_before("b")
    events = await told_until(StepBudgetExhausted, graph.stream({}, "r"))
    assert [event.event_type for event in events] == ["node_start", "state_update", "failed"]
    assert await graph.boundaries("r") == []
    assert await told(graph.retry("r", max_steps=2)) == ["interrupted b"]
    assert ran == ["a"]
    assert await told(graph.resume("r", "approved")) == ["node_start b", "state_update b", "completed END"]


# -- a node or a router that fails


async def test_a_failed_event_precedes_the_nodes_own_exception(checkpointer: Checkpointer, ran: list[str]) -> None:
    """With its type and text; the very exception reaches the caller."""
    boom = KeyError("boom")

    def fail(state: Any) -> None:
        raise boom

    graph = chain(checkpointer, ran, "a", "b", "c").replace_node("b", fail)
    heard: list[Event] = []
    with pytest.raises(KeyError) as caught:
        await read_into(heard, graph.stream({}, "r"))
    assert caught.value is boom
    assert [event.event_type for event in heard] == ["node_start", "state_update", "node_start", "failed"]
    assert heard[-1].payload["error"] == {"type": "KeyError", "message": "'boom'"}


async def test_a_failed_node_is_retried_and_those_before_it_are_not(checkpointer: Checkpointer, ran: list[str]) -> None:
    """Mend the cause, retry: the run completes."""
    graph = chain(checkpointer, ran, "a", "b", "c").replace_node("b", lambda state: 1 // state["divisor"])
    await told_until(ZeroDivisionError, graph.stream({"divisor": 0}, "r"))
    assert (await graph.info("r")).status == "failed"
    await told_until(DeltaError, graph.retry("r", {"divisor": 1}, by="alice", note="mended"))
    graph.replace_node("b", lambda state: {"seen": state["divisor"]})
    assert (await told(graph.retry("r")))[-1] == "completed END"
    assert (ran, await graph.state("r")) == (["a", "c"], {"divisor": 1, "seen": 1})
    retried = next(row for row in await graph.history("r") if row.kind == "retry")
    assert (retried.actor, retried.content["note"]) == ("alice", "mended")


async def test_a_patch_of_a_retry_that_does_not_fit_releases_nothing(
    checkpointer: Checkpointer, ran: list[str]
) -> None:
    """The run is still `failed`."""
    graph = chain(checkpointer, ran, "a").replace_node("a", lambda state: {"x": {1}})
    await told_until(StateError, graph.stream({}, "r"))
    with pytest.raises(StateError, match=r"^\$\.y"):
        await told(graph.retry("r", {"y": object()}))
    assert (await graph.info("r")).status == "failed"


async def test_a_router_that_raises_repeats_no_work(checkpointer: Checkpointer, ran: list[str]) -> None:
    """A paying node and its router are recorded apart: the retry runs the router alone."""
    answers: list[Any] = [OSError("no network"), "nowhere", "b"]

    def route(state: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    graph = chain(checkpointer, ran, "pay", "b").add_conditional_edge("pay", route, ["b", "END"])
    graph.replace_node("pay", lambda state, ctx: ran.append("pay") or {"paid": 5})  # type: ignore[func-returns-value]
    events = await told_until(OSError, graph.stream({}, "r"))
    assert [event.event_type for event in events] == ["node_start", "state_update", "failed"]
    assert (await graph.info("r")).state == {"paid": 5}
    assert [event.event_type for event in await told_until(RouteError, graph.retry("r"))] == ["failed"]
    assert await told(graph.retry("r")) == ["node_start b", "state_update b", "completed END"]
    assert ran == ["pay", "b"]


async def test_a_failures_text_is_kept_even_if_it_cannot_be_had(checkpointer: Checkpointer, ran: list[str]) -> None:
    """An error whose text raises, or is endless, fails the node like any other."""

    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    for nth, (error, text) in enumerate([(Hostile(), "its text could not be had"), (ValueError("x" * 10**6), "xxx")]):

        def fail(state: Any, error: Exception = error) -> None:
            raise error

        graph = chain(checkpointer, ran, "a").replace_node("a", fail)
        await told_until(type(error), graph.stream({}, f"r{nth}"))
        run = await graph.info(f"r{nth}")
        assert run.status == "failed"
        assert run.error is not None
        assert text in run.error
        assert len(run.error) < 2100


async def test_a_cancellation_from_inside_a_node_is_a_failure(checkpointer: Checkpointer, ran: list[str]) -> None:
    """Of an inner task that somebody cancelled: nobody has cancelled the run, so its reader is told of a failure."""

    async def call(state: Any) -> None:
        inner = asyncio.create_task(forever())
        await asyncio.sleep(0)
        inner.cancel()
        await inner

    graph = chain(checkpointer, ran, "a", "b").replace_node("b", call)
    heard: list[Event] = []
    with pytest.raises(
        RuntimeError, match="node 'b' raised CancelledError, but nobody has cancelled its run"
    ) as caught:
        await read_into(heard, graph.stream({}, "r"))
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert (heard[-1].event_type, (await graph.info("r")).status) == ("failed", "failed")


# -- retrying by itself


@pytest.fixture
def flaky(checkpointer: Checkpointer, ran: list[str]) -> StateGraph:
    """A node that fails as often as the state's `failures` says, then gives its attempt; three attempts, 1 s, 2 s."""
    graph = StateGraph(checkpointer).set_entry_point("call")

    def call(state: Any, ctx: Context) -> dict[str, Any]:
        ran.append(f"attempt {ctx.attempt}")
        if len(ran) <= state["failures"]:
            raise OSError(f"down {len(ran)}")
        return {"attempt": ctx.attempt}

    return graph.add_node("call", call, retry=Retry(attempts=3, delay=1, factor=2))


async def test_a_failing_node_is_retried_with_growing_delays(
    flaky: StateGraph, clock: ManualClock, ran: list[str]
) -> None:
    """Told with the failures so far and when it goes on; never before its time by the clock."""
    start, due = clock.now(), []
    async for event in flaky.stream({"failures": 2}, "r"):
        if event.event_type == "retrying":
            due.append(event.payload["due"] - start)
            assert event.payload["failures"] == len(due) == len(ran)
            assert event.payload["error"] == {"type": "OSError", "message": f"down {len(due)}"}
            clock.advance((due[-1] - (clock.now() - start)) / 1000)
    assert due == [1000, 3000]
    assert ran == ["attempt 0", "attempt 1", "attempt 2"]
    assert (await flaky.info("r")).state["attempt"] == 2


async def test_attempts_are_spent_and_the_last_error_is_raised(
    flaky: StateGraph, clock: ManualClock, ran: list[str]
) -> None:
    """Three attempts, two `retrying`, one `failed`; a person's retry begins a new count."""
    heard: list[Event] = []
    with pytest.raises(OSError, match="down 3"):
        await read_into(heard, flaky.stream({"failures": 4}, "r"), clock)
    assert [event.event_type for event in heard] == [*["node_start", "retrying"] * 2, "node_start", "failed"]
    heard.clear()
    await read_into(heard, flaky.retry("r"), clock)
    assert [event.event_type for event in heard] == [
        "node_start",
        "retrying",
        "node_start",
        "state_update",
        "completed",
    ]
    assert len(ran) == 5


async def test_a_retry_survives_whoever_waited_for_it(flaky: StateGraph, clock: ManualClock, ran: list[str]) -> None:
    """Two failures recorded, budget three: after a crash exactly one more, at the stored time and not before."""
    events = flaky.stream({"failures": 5}, "r")
    async for event in events:
        if event.event_type == "retrying" and event.payload["failures"] == 1:
            clock.advance(1)
        elif event.event_type == "retrying":
            break
    await events.aclose()
    run = await flaky.info("r")
    assert (run.status, len(ran)) == ("ready", 2)
    due = run.timer().opening.expires_at  # type: ignore[union-attr]
    assert due == clock.now() + 2000
    waiting = asyncio.ensure_future(told_until(OSError, flaky.resume("r")))
    while (await flaky.info("r")).status != "running":  # noqa: ASYNC110  # a store has no event to wait for
        await asyncio.sleep(0)
    clock.advance(1.999)
    assert len(ran) == 2
    clock.advance(0.001)
    assert [event.event_type for event in await waiting] == ["node_start", "failed"]
    assert len(ran) == 3


async def test_only_the_named_errors_are_retried(checkpointer: Checkpointer, ran: list[str]) -> None:
    """Another one fails the node at once."""

    def fail(state: Any) -> None:
        ran.append("fail")
        raise KeyError("x")

    graph = StateGraph(checkpointer).add_node("a", fail, retry=Retry(on=(OSError,))).set_entry_point("a")
    await told_until(KeyError, graph.stream({}))
    assert ran == ["fail"]


async def test_a_number_of_attempts_is_a_policy_too(
    checkpointer: Checkpointer, clock: ManualClock, ran: list[str]
) -> None:
    """`retry=2` is one more attempt."""

    def fail(state: Any) -> None:
        ran.append("fail")
        raise KeyError("x")

    graph = StateGraph(checkpointer).add_node("a", fail, retry=2).set_entry_point("a")
    with pytest.raises(KeyError):
        await read_into([], graph.stream({}), clock)
    assert ran == ["fail", "fail"]


def test_delays_grow_up_to_a_limit() -> None:
    """Doubled each time, to a minute."""
    retry = Retry(attempts=10)
    assert [retry.delay_after(failures) for failures in (1, 2, 3, 7, 9)] == [1, 2, 4, 60, 60]


async def test_a_run_that_waits_for_a_retry_can_be_cancelled(flaky: StateGraph, ran: list[str]) -> None:
    """Its driver hears of it before the time has come, and ends the run."""
    quick = StateGraph(flaky.checkpointer, lease=0.2).set_entry_point("call")
    quick.add_node("call", flaky.plan().nodes["call"].function, retry=Retry(attempts=3, delay=86_400))
    heard = []
    async for event in quick.stream({"failures": 5}, "r"):
        heard.append(event.event_type)
        if event.event_type == "retrying":
            assert await quick.cancel("r")
    assert heard == ["node_start", "retrying", "cancelled"]
    assert len(ran) == 1


# -- time and threads


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_node_that_runs_too_long_fails(checkpointer: Checkpointer, ran: list[str], blocking: bool) -> None:
    """With a TimeoutError; what it does later is heard by nobody."""
    release = threading.Event()

    def wait(state: Any) -> dict[str, Any]:
        release.wait()
        return {"late": True}

    async def hang(state: Any) -> None:
        await forever()

    graph = chain(checkpointer, ran, "a").add_node("slow", wait if blocking else hang, blocking=blocking, timeout=0.01)
    graph.add_edge("a", "slow")
    events = await told_until(TimeoutError, graph.stream({}, "r"))
    release.set()
    assert events[-1].event_type == "failed"
    assert (await graph.info("r")).state == {}
    graph.replace_node("slow", nothing_slow(blocking))
    assert (await told(graph.retry("r")))[-1] == "completed END"


def nothing_slow(blocking: bool) -> Callable[[Any], Any]:
    async def quick(state: Any) -> None:
        await asyncio.sleep(0)

    return (lambda state: None) if blocking else quick


async def test_a_blocking_node_leaves_the_loop_to_others(checkpointer: Checkpointer, ran: list[str]) -> None:
    """It runs in another thread: it may even wait for what the loop does."""
    opened = threading.Event()

    def wait(state: Any) -> dict[str, Any]:
        assert opened.wait(60)
        return {"thread": threading.get_ident()}

    graph = StateGraph(checkpointer).add_node("wait", wait, blocking=True).set_entry_point("wait")
    asyncio.get_running_loop().call_soon(opened.set)
    run = await graph.run({})
    assert run.state["thread"] != threading.get_ident()


async def test_the_work_of_a_thread_is_not_lost_when_its_reader_leaves(
    checkpointer: Checkpointer, ran: list[str]
) -> None:
    """A thread cannot be stopped: it is waited for and recorded, then the run is released."""
    started, release = threading.Event(), threading.Event()

    def work(state: Any) -> dict[str, Any]:
        started.set()
        assert release.wait(60)
        return {"worked": True}

    graph = StateGraph(checkpointer).add_node("work", work, blocking=True).set_entry_point("work")
    graph.add_node("b", lambda state: ran.append("b")).add_edge("work", "b")
    events = graph.stream({}, "r")
    await anext(events)
    closing = asyncio.ensure_future(events.aclose())
    assert await asyncio.to_thread(started.wait, 60)
    release.set()
    await closing
    run = await graph.info("r")
    assert (run.status, run.state, ran) == ("ready", {"worked": True}, [])
    assert await told(graph.resume("r")) == ["node_start b", "state_update b", "completed END"]


async def test_a_node_that_blocks_the_loop_for_too_long_is_named(checkpointer: Checkpointer) -> None:
    """Its lease is kept by a thread, but others wait: the warning says what to declare."""
    graph = StateGraph(checkpointer, lease=0.6).set_entry_point("slow").add_edge("slow", "b")
    graph.add_node("slow", lambda state: time.sleep(0.25)).add_node("b", lambda state: None)
    with pytest.warns(
        RuntimeWarning, match=r"node 'slow' blocked the event loop for .*; declare it with blocking=True"
    ):
        await graph.run({})


# -- what a node is handed


async def test_a_context_says_which_visit_it_is(checkpointer: Checkpointer) -> None:
    """Run, path, step, node and attempt; the step grows with each move."""
    seen: list[Any] = []

    def look(state: Any, ctx: Context) -> None:
        seen.append((ctx.run_id, ctx.path, ctx.step, ctx.node, ctx.attempt, ctx.clock is checkpointer.clock))

    graph = StateGraph(checkpointer).add_node("a", look).add_node("b", look).set_entry_point("a").add_edge("a", "b")
    await graph.run({}, "r")
    assert seen == [("r", "", 0, "a", 0, True), ("r", "", 1, "b", 0, True)]


@pytest.mark.parametrize(
    "function",
    [
        lambda state, ctx: {"node": ctx.node},
        lambda state, anything: {"node": anything.node},
        lambda *positional: {"node": "a"} if len(positional) == 1 else {},
        lambda state, limit=5: {"node": "a"} if limit == 5 else {},
        lambda state, *, flag=True: {"node": "a"} if flag else {},
    ],
)
async def test_a_context_is_handed_to_who_asks_for_it(checkpointer: Checkpointer, function: Any) -> None:
    """A second parameter that is required; one with a default keeps it."""
    graph = StateGraph(checkpointer).add_node("a", function).set_entry_point("a")
    assert (await graph.run({})).state == {"node": "a"}


async def test_a_parameter_annotated_as_context_is_handed_one(checkpointer: Checkpointer) -> None:
    """Even if it has a default."""

    def look(state: Any, ctx: Context | None = None, more: int = 1) -> dict[str, Any]:
        return {"asked": ctx is not None}

    def annotated(state: Any, ctx: Context = None) -> dict[str, Any]:  # type: ignore[assignment]
        return {"asked": ctx is not None}

    for function, asked in ((look, False), (annotated, True)):
        graph = StateGraph(checkpointer).add_node("a", function).set_entry_point("a")
        assert (await graph.run({})).state == {"asked": asked}


async def test_the_idempotency_key_is_that_of_the_visit(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """The same on retry, resume and recovery, another for every other visit and run; and the same in every version."""
    keys: list[str] = []

    def call(state: Any, ctx: Context) -> None:
        keys.append(ctx.idempotency_key)
        if len(keys) in (1, 2):
            raise OSError

    graph = StateGraph(checkpointer).add_node("call", call, retry=2).set_entry_point("call")
    graph.add_conditional_edge("call", lambda state: "END" if len(keys) > 3 else "call", ["call", "END"])
    with pytest.raises(OSError):  # noqa: PT011  # any
        await read_into([], graph.stream({}, "r"), clock)
    await told(graph.retry("r"))
    assert len(keys) == 4
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert keys[0] == sha256(b'["r","",0,"call",""]').hexdigest()
    assert keys[3] == sha256(b'["r","",1,"call",""]').hexdigest()
    assert keys[0] == "d3b516ee7d811e1093c183e42c5a3c58f3bd9c8293c050ba25fe6f341d5d8700"


async def test_the_current_context_is_found_deep_below_a_node(checkpointer: Checkpointer) -> None:
    """In a thread, in an async function, in a task; outside of a node it is a LookupError."""

    def key() -> str:
        return current_context().idempotency_key

    async def deep(state: Any, ctx: Context) -> dict[str, Any]:
        found = {key(), await asyncio.to_thread(key), await asyncio.create_task(later())}
        return {"deep": found == {ctx.idempotency_key}}

    async def later() -> str:
        await asyncio.sleep(0)
        return key()

    def thread(state: Any, ctx: Context) -> dict[str, Any]:
        return {"thread": key() == ctx.idempotency_key}

    def plain(state: Any) -> dict[str, Any]:
        return {"plain": current_context().node}

    graph = StateGraph(checkpointer).add_node("deep", deep).add_node("thread", thread, blocking=True)
    graph.add_node("plain", plain).set_entry_point("deep").add_edge("deep", "thread").add_edge("thread", "plain")
    assert (await graph.run({})).state == {"deep": True, "thread": True, "plain": "plain"}
    with pytest.raises(LookupError):
        current_context()


# -- effects


class Till:
    """A payment provider that notes every charge, and does with it what a test says."""

    def __init__(self) -> None:
        self.charges: list[str] = []
        self.charged = asyncio.Event()
        self.hang = False

    def charge(self, result: Any = "receipt") -> Callable[[], Any]:
        async def call() -> Any:
            self.charges.append(current_context().idempotency_key)
            self.charged.set()
            if self.hang:
                await forever()
            return result

        return call


@pytest.fixture
def till() -> Till:
    return Till()


def paying(checkpointer: Checkpointer, till: Till, ran: list[str], **once: Any) -> StateGraph:
    """pay (which charges once), then done; pay fails after the charge while `ran` says so."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        receipt = await ctx.once("charge", till.charge(), **once)
        if "fail" in ran:
            ran.remove("fail")
            raise OSError("after the charge")
        return {"receipt": receipt}

    graph = StateGraph(checkpointer).add_node("pay", pay).add_node("done", lambda state: ran.append("done"))
    return graph.set_entry_point("pay").add_edge("pay", "done")


async def left_in_the_middle(graph: StateGraph, till: Till) -> None:
    """Start `r` and leave it while its charge is under way."""
    till.hang = True
    events = graph.stream({}, "r")
    await anext(events)
    await till.charged.wait()
    await events.aclose()
    till.hang = False


async def test_a_result_is_recorded_and_reused(checkpointer: Checkpointer, till: Till, ran: list[str]) -> None:
    """A node that fails after its effect does not repeat it, and gets the very result again."""
    graph = paying(checkpointer, till, ran)
    ran.append("fail")
    await told_until(OSError, graph.stream({}, "r"))
    await told(graph.retry("r"))
    assert (len(till.charges), await graph.state("r")) == (1, {"receipt": "receipt"})


async def test_the_same_key_again_in_one_visit_is_the_same_effect(checkpointer: Checkpointer, till: Till) -> None:
    """Another key, and the next visit of the node, are others."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        first = await ctx.once("a", till.charge({"n": [1]}))
        first["n"].append("X")
        return {"got": [await ctx.once("a", till.charge()), await ctx.once("b", till.charge("b"))]}

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay")
    graph.add_conditional_edge("pay", lambda state: "END" if len(till.charges) > 3 else "pay", ["pay", "END"])
    assert (await graph.run({})).state == {"got": [{"n": [1]}, "b"]}
    assert len(till.charges) == 4


async def test_a_plain_function_may_be_the_effect(checkpointer: Checkpointer) -> None:
    """Sync, async, or something that returns an awaitable."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        async def later() -> int:
            return 2

        return {
            "got": [await ctx.once("a", lambda: 1), await ctx.once("b", later), await ctx.once("c", lambda: later())]
        }

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay")
    assert (await graph.run({})).state == {"got": [1, 2, 2]}


async def test_an_effect_in_doubt_asks_a_person(checkpointer: Checkpointer, till: Till, ran: list[str]) -> None:
    """After a crash in its middle nothing is repeated silently: the run waits, and says at what."""
    graph = paying(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    assert (await graph.info("r")).status == "ready"
    events = [event async for event in graph.resume("r")]
    assert [event.event_type for event in events] == ["node_start", "interrupted"]
    assert events[-1].boundary.kind == "in_doubt"  # type: ignore[union-attr]
    assert ((await graph.info("r")).status, len(till.charges), ran) == ("pending", 1, [])


@pytest.mark.parametrize(
    ("verdict", "answer", "charges", "status", "state"),
    [
        ("approved", "by hand", 1, "completed", {"receipt": "by hand"}),
        ("approved", None, 1, "completed", {"receipt": None}),
        ("retry", None, 2, "completed", {"receipt": "receipt"}),
        ("rejected", None, 1, "failed", {}),
    ],
)
async def test_a_person_settles_the_doubt(
    checkpointer: Checkpointer,
    till: Till,
    ran: list[str],
    verdict: str,
    answer: Any,
    charges: int,
    status: str,
    state: dict[str, Any],
) -> None:
    """It happened (with its result), it is to be tried again, or the node fails."""
    graph = paying(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    await told(graph.resume("r"))
    events = await told(graph.resume("r", verdict, answer=answer, by="alice"))
    run = await graph.info("r")
    assert (len(till.charges), run.status, run.state) == (charges, status, state)
    assert events[-1] == ("failed pay" if status == "failed" else "completed END")


async def test_a_doubt_that_was_rejected_is_asked_again_by_a_retry(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """A person said that it did not happen; that it may be tried is another decision."""
    graph = paying(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    await told(graph.resume("r"))
    await told(graph.resume("r", "rejected", by="alice"))
    assert "alice says that the effect did not happen" in str((await graph.info("r")).error)
    assert await told(graph.retry("r")) == ["node_start pay", "interrupted pay"]
    await told(graph.resume("r", "retry"))
    assert (len(till.charges), (await graph.info("r")).status) == (2, "completed")


async def test_a_doubt_is_not_settled_by_a_plain_approval(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """Whoever says that it happened says what it gave; the refusal names the ways."""
    graph = paying(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    await told(graph.resume("r"))
    with pytest.raises(DecisionRefused, match="approve it with answer=<what it gave> if it happened"):
        await told(graph.resume("r", "approved"))
    assert (await graph.info("r")).status == "pending"


async def test_an_answer_that_cannot_be_stored_decides_nothing(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """The doubt stays open."""
    graph = paying(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    await told(graph.resume("r"))
    with pytest.raises(StateError, match=r"^\$\.answer"):
        await graph.decide("r", "approved", answer={1})
    assert (await graph.info("r")).status == "pending"


async def test_a_keyed_effect_is_driven_again_under_its_key(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """The receiver honours the key, so nobody has to be asked; the event says that it was recovered."""
    graph = paying(checkpointer, till, ran, policy="keyed")
    await left_in_the_middle(graph, till)
    events = [event async for event in graph.resume("r")]
    assert events[-1].event_type == "completed"
    assert len(till.charges) == 2
    assert len(set(till.charges)) == 1
    custom = next(event for event in events if event.event_type == "custom")
    assert custom.payload == {"effect": "charge", "recovered": True, "provider_dedup_hit": False}


async def test_a_provider_that_knew_the_key_is_told_of(checkpointer: Checkpointer, till: Till) -> None:
    """Live and in every replay."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        return {"receipt": await ctx.once("charge", till.charge({"dedup_hit": True, "id": 1}), policy="keyed")}

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay")
    live = [event.payload async for event in graph.stream({}, "r") if event.event_type == "custom"]
    replayed = [event.payload async for event in graph.events("r") if event.event_type == "custom"]
    assert live == replayed == [{"effect": "charge", "recovered": False, "provider_dedup_hit": True}]


async def test_an_outcome_that_is_no_json_fails_the_node_with_its_place(checkpointer: Checkpointer, till: Till) -> None:
    """And leaves the effect in doubt, as it has happened: a retry asks."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        return {"receipt": await ctx.once("charge", till.charge([1, {2}]))}

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay")
    events = await told_until(StateError, graph.stream({}, "r"))
    assert events[-1].payload["error"]["message"].startswith("$.once('charge')[1]: ")
    assert await told(graph.retry("r")) == ["node_start pay", "interrupted pay"]
    assert len(till.charges) == 1


async def test_an_effect_that_raises_is_in_doubt(checkpointer: Checkpointer, till: Till) -> None:
    """A timeout may have charged: the node fails with the error, and a retry asks before it tries again."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        def charge() -> None:
            till.charges.append("charged")
            raise TimeoutError("no answer")

        return {"receipt": await ctx.once("charge", charge)}

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay")
    await told_until(TimeoutError, graph.stream({}, "r"))
    assert await told(graph.retry("r")) == ["node_start pay", "interrupted pay"]
    assert till.charges == ["charged"]


async def test_a_node_cannot_swallow_that_it_was_stopped(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """A node that catches everything is not recorded past an effect in doubt."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        with contextlib.suppress(BaseException):
            await ctx.once("charge", till.charge())
        return {"receipt": "swallowed"}

    graph = paying(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    assert await told(graph.replace_node("pay", pay).resume("r")) == ["node_start pay", "interrupted pay"]
    run = await graph.info("r")
    assert (run.status, run.state, ran) == ("pending", {}, [])


async def test_a_store_that_fails_inside_an_effect_stops_the_node(ran: list[str]) -> None:
    """The error reaches the caller, whatever the node catches; nothing is recorded of it."""
    store = MemoryCheckpointer()

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        with contextlib.suppress(Exception):
            await ctx.once("charge", store.close)
        return {"receipt": "swallowed"}

    graph = StateGraph(store).add_node("pay", pay).set_entry_point("pay")
    events = await told_until(StoreClosed, graph.stream({}, "r"))
    assert [event.event_type for event in events] == ["node_start"]


async def test_effects_side_by_side_are_effects_of_their_own(checkpointer: Checkpointer, till: Till) -> None:
    """A node may start several at once."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        return {"got": await asyncio.gather(*(ctx.once(f"part {nth}", till.charge(nth)) for nth in range(10)))}

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay")
    assert (await graph.run({})).state == {"got": [*range(10)]}
    assert len(till.charges) == 10


async def test_one_effect_asked_for_twice_at_once_happens_once(checkpointer: Checkpointer, till: Till) -> None:
    """The second waits for the first, and gets its result; nobody is asked about what is under way."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        async def charge() -> str:
            till.charges.append("charged")
            await asyncio.sleep(0)
            return "receipt"

        return {"got": await asyncio.gather(ctx.once("charge", charge), ctx.once("charge", charge))}

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay")
    assert (await graph.run({})).state == {"got": ["receipt", "receipt"]}
    assert till.charges == ["charged"]


# -- nodes that are never repeated silently


def wiring(checkpointer: Checkpointer, till: Till, ran: list[str]) -> StateGraph:
    """An irreversible node behind a gate, then done."""

    async def wire(state: Any) -> dict[str, Any]:
        return {"wired": await till.charge({"id": 1})(), "messages": ["wired"]}

    graph = StateGraph(checkpointer).add_node("wire", wire, irreversible=True)
    graph.add_node("done", lambda state: ran.append("done")).set_entry_point("wire").add_edge("wire", "done")
    return graph


async def test_an_irreversible_node_that_may_have_run_asks(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """Left in its middle, its intent is stored; it does not run again by itself."""
    graph = wiring(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    assert await told(graph.resume("r")) == ["node_start wire", "interrupted wire"]
    assert (len(till.charges), ran) == (1, [])


@pytest.mark.parametrize(
    ("verdict", "answer", "charges", "state"),
    [
        ("approved", {"wired": "by hand", "messages": ["m"]}, 1, {"wired": "by hand", "messages": ["m"]}),
        ("approved", {}, 1, {}),
        ("retry", None, 2, {"wired": {"id": 1}, "messages": ["wired"]}),
    ],
)
async def test_a_person_says_what_an_irreversible_node_gave(
    checkpointer: Checkpointer, till: Till, ran: list[str], verdict: str, answer: Any, charges: int, state: Any
) -> None:
    """Its delta; or that it is to run again."""
    graph = wiring(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    await told(graph.resume("r"))
    assert (await told(graph.resume("r", verdict, answer=answer)))[-1] == "completed END"
    assert (len(till.charges), await graph.state("r"), ran) == (charges, state, ["done"])


async def test_an_irreversible_nodes_delta_is_validated_before_it_is_taken(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """An answer that is no delta decides nothing."""
    graph = wiring(checkpointer, till, ran)
    await left_in_the_middle(graph, till)
    await told(graph.resume("r"))
    for answer in (5, None, ["wired"]):
        with pytest.raises(DecisionRefused, match="'wire' gives a mapping of the keys it changes"):
            await graph.decide("r", "approved", answer=answer)
    with pytest.raises(StateError, match=r"^\$\.wired"):
        await graph.decide("r", "approved", answer={"wired": {1}})
    assert (await graph.info("r")).status == "pending"


async def test_an_irreversible_node_that_failed_asks_before_it_runs_again(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """Nobody knows how far it came; its approval still holds for this visit."""

    def wire(state: Any) -> None:
        till.charges.append("wired")
        raise TimeoutError

    graph = wiring(checkpointer, till, ran).replace_node("wire", wire).add_interrupt_before("wire")
    await graph.run({}, "r")
    await told_until(TimeoutError, graph.resume("r", "approved"))
    assert await told(graph.retry("r")) == ["node_start wire", "interrupted wire"]
    graph.replace_node("wire", lambda state: {"wired": True})
    assert (await told(graph.resume("r", "retry")))[-1] == "completed END"
    assert (till.charges, await graph.state("r")) == (["wired"], {"wired": True})


async def test_an_irreversible_node_that_ends_well_is_like_any_other(
    checkpointer: Checkpointer, till: Till, ran: list[str]
) -> None:
    """Its delta is in the state, with its deletions."""
    graph = wiring(checkpointer, till, ran)
    assert (await graph.run({"messages": ["m"]})).state == {"messages": ["m", "wired"], "wired": {"id": 1}}


# -- whoever leaves


def patient(checkpointer: Checkpointer, ran: list[str]) -> StateGraph:
    """Three async nodes, a gate before the third."""

    def make(name: str) -> Callable[[Any], Any]:
        async def node(state: Any) -> dict[str, Any]:
            await asyncio.sleep(0)
            ran.append(name)
            return {"messages": [name]}

        return node

    graph = (
        StateGraph(checkpointer).set_entry_point("a").add_edge("a", "b").add_edge("b", "c").add_interrupt_before("c")
    )
    for name in "abc":
        graph.add_node(name, make(name))
    return graph


async def carried_on(graph: StateGraph) -> None:
    """Whatever it takes until `r` is completed: resume it, approve it."""
    while not (run := await graph.info("r")).ended:
        assert run.status in ("ready", "pending")
        await told(graph.resume("r", "approved" if run.status == "pending" else None))


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("how", ["aclose", "break", "cancel", "throw"])
async def test_a_reader_that_leaves_at_any_event_leaves_a_run_that_goes_on(
    checkpointer: Checkpointer, ran: list[str], index: int, how: str
) -> None:
    """However it leaves: finished nodes never run again, every result is there once."""
    graph = patient(checkpointer, ran)
    events = graph.stream({"messages": []}, "r")

    async def read() -> None:
        async for event in events:
            if heard(event) > index:
                break

    count = 0

    def heard(event: Event) -> int:
        nonlocal count
        count += 1
        if count > index and how == "throw":
            raise ConnectionResetError
        if count > index and how == "cancel":
            task.cancel()
        return count

    task = asyncio.ensure_future(read())
    with contextlib.suppress(asyncio.CancelledError, ConnectionResetError):
        await task
    if how in ("aclose", "cancel"):
        await events.aclose()
    else:
        del events, task, read
        gc.collect()
        while (await graph.info("r")).status == "running":  # noqa: ASYNC110  # nor has a generator's finaliser
            await asyncio.sleep(0)
    assert (await graph.info("r")).status in ("ready", "pending")
    await carried_on(graph)
    assert (await graph.state("r"))["messages"] == ["a", "b", "c"]
    assert [row.node for row in await graph.history("r") if row.kind == "node"] == ["a", "b", "c"]


async def test_a_reader_that_leaves_after_the_approval_spends_it_once(
    checkpointer: Checkpointer, ran: list[str]
) -> None:
    """The approval is recorded: the run goes on without another."""
    graph = patient(checkpointer, ran)
    await told(graph.stream({"messages": []}, "r"))
    events = graph.resume("r", "approved")
    assert (await anext(events)).event_type == "node_start"
    await events.aclose()
    assert (await graph.info("r")).status == "ready"
    with pytest.raises(DecisionRefused, match="already approved"):
        await told(graph.resume("r", "approved"))
    assert (await told(graph.resume("r")))[-1] == "completed END"


@pytest.mark.parametrize("index", range(3))
async def test_a_reader_may_leave_a_resumed_run_at_any_event(
    checkpointer: Checkpointer, ran: list[str], index: int
) -> None:
    """The decision is recorded, the gated node is done once, and the run comes to its end."""
    graph = patient(checkpointer, ran).add_node("d", lambda state: {"messages": ["d"]}).add_edge("c", "d")
    await told(graph.stream({"messages": []}, "r"))
    events = graph.resume("r", "approved")
    for _ in range(index + 1):
        await anext(events)
    await events.aclose()
    await carried_on(graph)
    assert (await graph.state("r"))["messages"] == ["a", "b", "c", "d"]
    assert [row.node for row in await graph.history("r") if row.kind == "node"] == ["a", "b", "c", "d"]
    assert [boundary.state for boundary in await graph.boundaries("r")] == ["approved"]


async def test_a_resume_that_is_never_read_decides_nothing(checkpointer: Checkpointer, ran: list[str]) -> None:
    """A generator that nobody asks for an event does nothing."""
    graph = patient(checkpointer, ran)
    await told(graph.stream({"messages": []}, "r"))
    events = graph.resume("r", "approved")
    await events.aclose()
    assert (await graph.info("r")).status == "pending"


async def test_a_cancelled_caller_of_run_releases_the_run(checkpointer: Checkpointer, ran: list[str]) -> None:
    """It is no failure: `ready`, and it can be continued."""
    started = asyncio.Event()

    async def hang(state: Any) -> None:
        started.set()
        await forever()

    graph = patient(checkpointer, ran).replace_node("b", hang)
    task = asyncio.ensure_future(graph.run({"messages": []}, "r"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = await graph.info("r")
    assert (run.status, run.error, ran) == ("ready", None, ["a"])
    await carried_on(patient(checkpointer, ran))
    assert ran == ["a", "b", "c"]


async def test_a_node_that_swallows_its_cancellation_is_the_last(checkpointer: Checkpointer, ran: list[str]) -> None:
    """What it returned is kept, and nothing further starts for a reader that has gone."""
    started = asyncio.Event()

    async def stubborn(state: Any) -> dict[str, Any]:
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await forever()
        return {"messages": ["a"]}

    graph = patient(checkpointer, ran).replace_node("a", stubborn)
    events = graph.stream({"messages": []}, "r")
    await anext(events)
    await started.wait()
    await events.aclose()
    run = await graph.info("r")
    assert (run.status, run.state, ran) == ("ready", {"messages": ["a"]}, [])


def test_an_interrupt_from_the_keyboard_is_no_failure(ran: list[str]) -> None:
    """The run is released, and the program ends as it would."""
    store = MemoryCheckpointer()

    def interrupt(state: Any) -> None:
        raise KeyboardInterrupt

    graph = patient(store, ran)
    graph.replace_node("b", interrupt)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(graph.run({"messages": []}, "r"))
    assert asyncio.run(graph.info("r")).status == "ready"


def test_a_program_that_ends_in_the_middle_leaves_a_run_that_goes_on(ran: list[str]) -> None:
    """Its loop closes what it had open: the run is `ready` for the next program."""
    store = MemoryCheckpointer()

    async def main() -> None:
        async for _ in patient(store, ran).stream({"messages": []}, "r"):
            return

    asyncio.run(main())
    graph = patient(store, ran)
    assert asyncio.run(graph.info("r")).status == "ready"
    asyncio.run(carried_on(graph))
    assert asyncio.run(graph.state("r"))["messages"] == ["a", "b", "c"]


# -- who has the run


async def held(graph: StateGraph) -> tuple[Any, asyncio.Event]:
    """The stream of a run `r` whose first node waits for the event."""
    release, started = asyncio.Event(), asyncio.Event()

    async def wait(state: Any) -> dict[str, Any]:
        started.set()
        await release.wait()
        return {"messages": ["first"]}

    events = graph.replace_node("a", wait).stream({"messages": []}, "r")
    await anext(events)
    await started.wait()
    return events, release


async def test_a_run_that_somebody_drives_is_refused_to_others(
    checkpointer: Checkpointer, clock: ManualClock, ran: list[str]
) -> None:
    """With who has it, and until when."""
    graph = patient(checkpointer, ran)
    events, _ = await held(graph)
    for call in (graph.resume, graph.recover, graph.retry):
        with pytest.raises(LeaseHeld, match=r"run 'r' is running; .* drives it and renews its lease") as caught:
            await told(call("r"))
        assert caught.value.owner
        assert caught.value.lease_until == clock.now() + 30_000
    await events.aclose()


class Slow(MemoryCheckpointer):
    """A minute passes after a claim that was refused."""

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        lease = await super().claim(run_id, owner, lease_ms)
        if lease is None:
            assert isinstance(self.clock, ManualClock)
            self.clock.advance(60)
        return lease


class Reused(MemoryCheckpointer):
    """Before a claim the run is removed, and another one has its id."""

    graph: StateGraph | None = None

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        if self.graph is not None:
            graph, self.graph = self.graph, None
            assert isinstance(self.clock, ManualClock)
            self.clock.advance(1)
            assert await graph.cancel(run_id, by="ops")
            assert await self.delete(run_id)
            await graph.submit({}, run_id)
        return await super().claim(run_id, owner, lease_ms)


@pytest.mark.parametrize("how", ["resume", "recover"])
async def test_an_approval_is_not_inherited_by_a_run_of_the_same_id(how: str) -> None:
    """What was read before the claim is another run's: the new one is read, and waits at its own gate."""
    store = Reused(clock=ManualClock())
    paid: list[int] = []
    graph = StateGraph(store, name="pays").set_entry_point("quote").add_edge("quote", "pay").add_edge("pay", "END")
    graph.add_node("quote", lambda state: {"n": 1}).add_node("pay", lambda state: paid.append(1))
    graph.add_interrupt_before("pay")
    await graph.run({}, "r")
    await graph.decide("r", "approved", by="ann")
    store.graph = graph
    events = graph.resume("r") if how == "resume" else graph.recover("r")
    assert [event.event_type async for event in events][-1] == "interrupted"
    assert paid == []
    assert (await graph.info("r")).status == "pending"


async def test_a_lease_that_ends_while_its_refusal_is_explained_is_no_refusal() -> None:
    """Whoever asked a moment too early claims again, and is not told to recover what it is recovering."""
    store = Slow(clock=ManualClock())
    graph = StateGraph(store, name="late").add_node("a", lambda state: {"n": 1}).set_entry_point("a")
    graph.add_edge("a", "END")
    await graph.submit({}, "r")
    assert await store.claim("r", "dead", 30_000) is not None
    assert [event.event_type async for event in graph.recover("r")][-1] == "completed"


async def test_a_run_whose_lease_is_over_can_be_taken_over(
    checkpointer: Checkpointer, clock: ManualClock, ran: list[str]
) -> None:
    """The new driver finishes it; the old one's later work is recorded nowhere, and it is told so."""
    slow = patient(checkpointer, ran)
    events, release = await held(slow)
    clock.advance(30)
    quick = patient(checkpointer, ran)
    assert await told(quick.recover("r")) == [
        "node_start a",
        "state_update a",
        "node_start b",
        "state_update b",
        "interrupted c",
    ]
    release.set()
    with pytest.raises(LeaseLost, match="this driver has stopped and recorded nothing more"):
        await told(events)
    assert (await quick.state("r"))["messages"] == ["a", "b"]


class LateAnswer(MemoryCheckpointer):
    """A store that answers the row that ends a run only when the heart has beaten once more."""

    def __init__(self) -> None:
        super().__init__()
        self.beaten, self.loop = asyncio.Event(), asyncio.get_running_loop()

    async def renew(self, lease: Lease, lease_ms: int) -> Lease | None:
        answer = await super().renew(lease, lease_ms)
        if answer is None:
            self.loop.call_soon_threadsafe(self.beaten.set)
        return answer

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        written = await super().append(lease, seen, entries, snapshot)
        if written is not None and written.status != "running":
            await self.beaten.wait()
        return written


@pytest.mark.parametrize("how", ["stream", "run"])
async def test_a_heart_that_beats_just_when_the_run_ends_takes_nothing_away(ran: list[str], how: str) -> None:
    """The lease is not lost but given back: the end is told, no error is raised, and no caller is cancelled."""
    graph = StateGraph(LateAnswer(), lease=0.03).add_node("a", lambda state: ran.append("a")).set_entry_point("a")
    if how == "stream":
        assert await told(graph.stream({}, "r")) == ["node_start a", "state_update a", "completed END"]
    else:
        assert (await graph.run({}, "r")).status == "completed"
    task = asyncio.current_task()
    assert task is not None
    for _ in range(10):
        await asyncio.sleep(0)
    assert task.cancelling() == 0


async def test_a_run_that_kills_every_driver_is_failed(
    checkpointer: Checkpointer, clock: ManualClock, ran: list[str]
) -> None:
    """After some claims without progress it is not executed any more; a person's retry begins anew."""
    graph = patient(checkpointer, ran)
    events, _ = await held(graph)
    await events.aclose()
    for _ in range(20):
        await checkpointer.claim("r", "one that dies", 1000)
        clock.advance(2)
    await told_until(PoisonedRun, graph.recover("r"))
    run = await graph.info("r")
    assert run.status == "failed"
    assert run.error is not None
    assert "claimed 21 times without progress at 'a'" in run.error
    again = patient(checkpointer, ran)
    assert (await told(again.retry("r")))[-1] == "interrupted c"


async def test_many_runs_at_once_do_not_mix(checkpointer: Checkpointer) -> None:
    """Fifty runs of one graph on one store: each has its own state, none is lost."""

    async def grow(state: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"messages": [state["id"]]}

    graph = StateGraph(checkpointer).add_node("a", grow).add_node("b", grow).add_node("c", grow).set_entry_point("a")
    graph.add_edge("a", "b").add_edge("b", "c")
    runs = await asyncio.gather(*(graph.run({"id": nth}, f"r{nth}") for nth in range(50)))
    for nth, run in enumerate(runs):
        assert (run.status, run.state["messages"]) == ("completed", [nth] * 3)
        assert await graph.state(f"r{nth}") == run.state


# -- whatever people and drivers do


ACTS = st.sampled_from(
    [
        *["approve"] * 4, "reject", "stale", "resume", "resume and leave", "approve and leave", "retry", "retry with more",
        "fail next", "route next", "recover", "fork", "cancel", "wait",
    ]
)  # fmt: skip


class Anything:
    """One graph with two gates and a loop, and somebody who does anything to its run `r`."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryCheckpointer(clock=self.clock)
        self.fail = self.nonsense = False
        self.heard: list[Event] = []
        graph = StateGraph(self.store, 4).add_node("plan", self.node).add_node("pay", self.node)
        graph.add_node("ship", self.node, retry=2).add_node("drop", self.node).set_entry_point("plan")
        graph.add_edge("plan", "pay").add_edge("pay", "ship")
        graph.add_conditional_edge("ship", self.route, ["plan", "END"])
        graph.add_interrupt_before("pay", on_reject="drop").add_interrupt_before("ship", expires_in=3600)
        self.graph = graph

    async def node(self, state: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self.fail:
            self.fail = False
            raise OSError("asked to")
        return {"n": state["n"] + 1}

    def route(self, state: Any) -> Any:
        if self.nonsense:
            self.nonsense = False
            return "nonsense"
        return "plan" if state["n"] < 9 else "END"

    async def do(self, act: str) -> None:
        """The act, and whatever refusal or failure it meets."""
        graph = self.graph
        with contextlib.suppress(StateGraphError, OSError):
            if act in ("fail next", "route next"):
                self.fail, self.nonsense = self.fail or act == "fail next", self.nonsense or act == "route next"
            elif act == "wait":
                self.clock.advance(3600)
            elif act == "stale":
                (first, *_) = await graph.boundaries("r")
                await graph.decide("r", "approved", boundary=first.id)
            elif act == "fork":
                await graph.fork("r", new_run_id=f"fork-{len(await self.store.runs())}")
            elif act == "cancel":
                await graph.cancel("r")
            elif act == "retry with more":
                await self.read(graph.retry("r", max_steps=(await graph.info("r")).max_steps + 1))
            elif act.endswith("and leave"):
                events = graph.resume("r", "approved" if act.startswith("approve") else None)
                await anext(events, None)
                await events.aclose()
            elif act in ("approve", "reject"):
                await self.read(graph.resume("r", "approved" if act == "approve" else "rejected"))
            else:
                await self.read(getattr(graph, act)("r"))

    async def read(self, events: AsyncIterator[Event]) -> None:
        await read_into(self.heard, events, self.clock)


@untimed
@given(st.lists(ACTS, max_size=25))
async def test_whatever_happens_no_node_runs_unapproved_and_none_twice(acts: list[str]) -> None:
    """Any order of clicks, failures, crashes and readers that leave: the logs keep the promises at every step."""
    world = Anything()
    await world.read(world.graph.stream({"n": 0}, "r"))
    for act in acts:
        await world.do(act)
        for head in await world.store.runs():
            run = await world.graph.info(head.run_id)
            rows = await world.store.history(head.run_id)
            check_log(rows)
            nodes = sum(row.kind == "node" for row in rows)
            assert run.status == head.status
            assert run.steps == nodes + rows[0].content.get("fold", {}).get("steps", 0)
            assert run.state["n"] == run.steps <= run.max_steps


@untimed
@given(st.lists(ACTS.filter(lambda act: not act.endswith("and leave")), max_size=25))
async def test_whatever_happens_the_log_tells_what_was_told(acts: list[str]) -> None:
    """Of a run whose readers stay: each event has the same cursor and content live and in the replay, and none is missing."""
    world = Anything()
    await world.read(world.graph.stream({"n": 0}, "r"))
    for act in acts:
        await world.do(act)
    replay = {event.cursor: event async for event in world.graph.events("r")}
    heard = {event.cursor: event for event in world.heard if event.cursor is not None}
    assert all(replay[cursor] == event for cursor, event in heard.items())
    missed = {replay[cursor].event_type for cursor in replay.keys() - heard.keys()}
    # Starts were told before they had a cursor; acts, and the end of a run that nobody drove, are told to others.
    assert missed <= {"node_start", "decided", "retried", "cancel_requested", "cancelled", "rejected"}
    starts = [event.node_name for event in world.heard if event.event_type == "node_start"]
    assert starts == [event.node_name for event in replay.values() if event.event_type == "node_start"]


def check_log(rows: list[Checkpoint]) -> None:
    """Each visit is completed once, each boundary decided once, and nothing ran behind a gate before its approval."""
    visits = [(row.path, row.step) for row in rows if row.kind in ("node", "route")]
    assert len(visits) == len(set(visits))
    asked = {f"{row.seq}.{nth}": opening for row in rows for nth, opening in enumerate(row.openings)}
    decided = [row for row in rows if row.boundary in asked]
    assert len(decided) == len({row.boundary for row in decided})
    approved = {
        asked[row.boundary or ""].step: row.seq
        for row in decided
        if row.decision == "approved" and asked[row.boundary or ""].kind == "approval"
    }
    for row in rows:
        ran = row.kind == "node" or (row.kind == "failed" and row.content["phase"] == "node")
        if ran and row.node in ("pay", "ship"):
            assert row.step in approved
            assert approved[row.step] < row.seq


# -- cancelling a run


async def test_a_run_that_is_driven_ends_after_the_node_in_flight(checkpointer: Checkpointer, ran: list[str]) -> None:
    """Its result is kept, nothing further starts, and the status says so."""
    graph = patient(checkpointer, ran)
    events, release = await held(graph)
    assert await graph.cancel("r", by="alice", note="enough") is True
    assert await graph.cancel("r") is False
    assert (await graph.info("r")).status == "running"
    release.set()
    assert await told(events) == ["state_update a", "cancelled b"]
    run = await graph.info("r")
    assert (run.status, run.state, ran) == ("cancelled", {"messages": ["first"]}, [])
    assert await told(graph.resume("r")) == ["cancelled b"]


async def test_the_end_wins_over_a_cancel_that_came_during_the_last_node(
    checkpointer: Checkpointer, ran: list[str]
) -> None:
    """There is nothing left that could be stopped."""
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).set_entry_point("a")
    events, release = await held(graph)
    assert await graph.cancel("r")
    release.set()
    assert (await told(events))[-1] == "completed END"
    assert (await graph.info("r")).status == "completed"


async def test_a_cancelled_run_opens_no_gate(checkpointer: Checkpointer, ran: list[str]) -> None:
    """What the node in flight leads to is not asked any more."""
    graph = chain(checkpointer, ran, "a", "b").add_interrupt_before("b")
    events, release = await held(graph)
    await graph.cancel("r")
    release.set()
    assert (await told(events))[-1] == "cancelled b"
    assert [boundary.state for boundary in await graph.boundaries("r")] in ([], ["withdrawn"])
    with pytest.raises(DecisionRefused):
        await graph.decide("r", "approved")


@pytest.mark.parametrize("status", ["ready", "failed"])
async def test_a_run_that_nobody_drives_ends_at_once(checkpointer: Checkpointer, ran: list[str], status: str) -> None:
    """And is final: it can neither be resumed nor retried."""
    graph = patient(checkpointer, ran)
    if status == "failed":
        graph.replace_node("a", lambda state: {"x": {1}})
        await told_until(StateError, graph.stream({}, "r"))
    else:
        events, _ = await held(graph)
        await events.aclose()
    assert await graph.cancel("r") is True
    assert (await graph.info("r")).status == "cancelled"
    assert await told(graph.resume("r")) == ["cancelled a"]
    with pytest.raises(RunNotClaimable, match="run 'r' is cancelled; nothing is left to do"):
        await told(graph.retry("r"))
    assert ran == []


# -- what a node tells


async def test_what_a_node_emits_is_told_and_kept(checkpointer: Checkpointer) -> None:
    """`custom` events between its start and its update; tokens are told live alone."""

    async def work(state: Any, ctx: Context) -> None:
        ctx.emit({"progress": 1})
        ctx.token("he")
        ctx.token("llo")
        ctx.emit({"progress": 2})

    graph = StateGraph(checkpointer).add_node("work", work).set_entry_point("work")
    live = [(event.event_type, event.payload) async for event in graph.stream({}, "r")]
    assert live[:6] == [
        ("node_start", {}),
        ("custom", {"progress": 1}),
        ("token", {"text": "he"}),
        ("token", {"text": "llo"}),
        ("custom", {"progress": 2}),
        ("state_update", {"delta": {}}),
    ]
    replayed = [(event.event_type, event.payload) async for event in graph.events("r")]
    assert replayed == [event for event in live if event[0] != "token"]


def test_a_thread_may_tell_too() -> None:
    """In the loop's own time, and in order; a loop in debug mode finds nothing to complain of."""
    heard = threading.Event()

    def work(state: Any, ctx: Context) -> None:
        ctx.emit({"progress": 1})
        assert heard.wait(60)
        ctx.token("...")
        ctx.emit({"progress": 2})

    async def read() -> list[str]:
        graph = StateGraph().add_node("work", work, blocking=True).set_entry_point("work")
        kinds: list[str] = []
        async for event in graph.stream({}):
            kinds.append(event.event_type)
            if event.event_type == "custom":
                heard.set()
        return kinds

    kinds = asyncio.run(read(), debug=True)
    assert kinds == ["node_start", "custom", "token", "custom", "state_update", "completed"]


async def test_what_a_node_left_behind_can_tell_nothing_more(checkpointer: Checkpointer) -> None:
    """Its row is written: a task that outlives it would be told live and kept nowhere, so it is refused."""
    refused: list[str] = []
    tasks: list[asyncio.Task[None]] = []
    over = asyncio.Event()

    async def late(ctx: Context) -> None:
        await over.wait()
        with pytest.raises(RuntimeError, match="node 'a' is over"):
            ctx.emit({"late": 1})
        with pytest.raises(RuntimeError, match="node 'a' is over"):
            ctx.token("late")
        with pytest.raises(RuntimeError, match="node 'a' is over"):
            await ctx.once("late", lambda: refused.append("ran"))
        refused.append("refused")

    async def leave(state: Any, ctx: Context) -> None:
        tasks.append(asyncio.create_task(late(ctx)))

    async def wait(state: Any) -> None:
        over.set()
        await tasks[0]

    graph = StateGraph(checkpointer).add_node("a", leave).add_node("b", wait).set_entry_point("a").add_edge("a", "b")
    live = await told(graph.stream({}, "r"))
    assert live == await told(graph.events("r"))
    assert refused == ["refused"]


@pytest.mark.parametrize("payload", [5, "text", None, [1], {"a": {1}}, {1: 2}])
async def test_what_cannot_be_told_fails_the_node(checkpointer: Checkpointer, payload: Any) -> None:
    """With its place."""
    graph = StateGraph(checkpointer).add_node("a", lambda state, ctx: ctx.emit(payload)).set_entry_point("a")
    with pytest.raises(StateError, match=r"^\$\.emit"):
        await graph.run({})


async def test_what_a_failing_node_emitted_is_kept_too(checkpointer: Checkpointer) -> None:
    """It tells how far the node came."""

    def work(state: Any, ctx: Context) -> None:
        ctx.emit({"progress": 1})
        raise OSError

    graph = StateGraph(checkpointer).add_node("work", work).set_entry_point("work")
    live = [event.event_type for event in await told_until(OSError, graph.stream({}, "r"))]
    assert live == ["node_start", "custom", "failed"]
    assert [event.event_type async for event in graph.events("r")] == live


def test_the_keys_of_effects_never_change() -> None:
    """A receiver that honours them has them stored: of run, path, step, node and index, and of nothing else."""
    assert effect_key("order-7", "", 3, "pay") == "1947cda3bf5549cdc1561bea23fe7aa8707f677ab43b8e42f5167ee559f3dea6"
    assert (
        effect_key("order-7", "0.1/3.0", 0, "pay", "once:mail")
        == "74a830201d7ed4f47eb25f4f3882e7a0456ffdbf5b819a3f0df80ffe8237f756"
    )
