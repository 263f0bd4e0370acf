"""Declaring a graph and calling it: what every call starts, tells, gives and refuses."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator
from typing import Any

import pydantic
import pytest

from stategraph import (
    DELETE,
    Checkpointer,
    Event,
    GraphChangedError,
    InvalidRunId,
    RouteError,
    Run,
    RunExists,
    RunNotClaimable,
    StateError,
    StateGraph,
    UnknownRun,
)


def nothing(state: Any) -> None:
    """A node that changes nothing."""


def gated(checkpointer: Checkpointer, **more: Any) -> StateGraph:
    """plan, then pay behind a gate, then done."""
    graph = StateGraph(checkpointer, **more).set_entry_point("plan").add_edge("plan", "pay").add_edge("pay", "done")
    graph.add_node("plan", lambda state: {"amount": 5}).add_node("pay", lambda state: {"paid": True})
    return graph.add_node("done", lambda state: {"told": True}).add_interrupt_before("pay")


async def told(events: AsyncIterator[Event]) -> list[str]:
    return [f"{event.event_type} {event.node_name}" async for event in events]


# -- declaring


async def test_every_add_returns_the_graph(checkpointer: Checkpointer) -> None:
    """So a graph may be written in one breath."""
    graph = StateGraph(checkpointer)
    for answer in (
        graph.add_node("a", nothing),
        graph.add_node("b", nothing),
        graph.set_entry_point("a"),
        graph.add_edge("b", "END"),
        graph.add_conditional_edge("a", lambda state: "b"),
        graph.add_interrupt_before("b"),
        graph.replace_node("a", nothing),
    ):
        assert answer is graph
    assert graph.plan().entry == "a"


async def test_a_sync_and_an_async_node_give_the_same(checkpointer: Checkpointer) -> None:
    """So do a method, a callable object, a builtin and a function that returns something to await."""

    class Adder:
        def __call__(self, state: Any) -> dict[str, Any]:
            return {"n": state["n"] + 1}

        def method(self, state: Any) -> dict[str, Any]:
            return self(state)

        async def later(self, state: Any) -> dict[str, Any]:
            await asyncio.sleep(0)
            return self(state)

    async def add(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    adder = Adder()
    for function in (
        adder,
        adder.method,
        adder.later,
        add,
        lambda state: {"n": state["n"] + 1},
        lambda state: add(state),
    ):
        graph = StateGraph(checkpointer).add_node("a", function).set_entry_point("a")
        assert (await graph.run({"n": 1})).state == {"n": 2}


async def test_nodes_may_be_declared_by_decorator(checkpointer: Checkpointer) -> None:
    """Named by their function or as they are told, which stays what it was."""
    graph = StateGraph(checkpointer)

    @graph.node
    def first(state: Any) -> dict[str, Any]:
        return {"n": 1}

    @graph.node(name="second", tags=["late"])
    def unnamed(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    graph.set_entry_point("first").add_edge("first", "second")
    assert (await graph.run({})).state == {"n": 2}
    assert first({}) == {"n": 1}
    assert graph.plan().nodes["second"].tags == ("late",)


async def test_a_node_without_an_edge_ends_the_run(checkpointer: Checkpointer) -> None:
    """A missing edge means END."""
    graph = StateGraph(checkpointer).add_node("a", nothing).set_entry_point("a")
    assert await told(graph.stream({})) == ["node_start a", "state_update a", "completed END"]


async def test_a_replaced_node_keeps_what_was_declared_of_it(checkpointer: Checkpointer) -> None:
    """Its retries and flags; only the function is another, and another kind of function too."""
    graph = StateGraph(checkpointer).add_node("a", nothing, retry=2, tags=["x"], reads=["n"]).set_entry_point("a")

    async def other(state: Any, ctx: Any) -> dict[str, Any]:
        return {"step": ctx.step}

    node = graph.replace_node("a", other).plan().nodes["a"]
    assert (node.function, node.tags, node.reads, node.retry and node.retry.attempts) == (other, ("x",), ("n",), 2)
    assert (await graph.run({})).state == {"step": 0}


def test_replacing_what_is_not_there_is_a_key_error() -> None:
    """It names the likely node."""
    with pytest.raises(KeyError, match="no node 'refnd' to replace; did you mean 'refund'"):
        StateGraph().add_node("refund", nothing).replace_node("refnd", nothing)


async def test_a_seventh_node_is_a_seventh_result(checkpointer: Checkpointer) -> None:
    """Each node's delta is told, in the order of the edges."""
    graph = StateGraph(checkpointer).set_entry_point("n0")
    for nth in range(7):
        graph.add_node(f"n{nth}", lambda state, nth=nth: {"last": nth})
        graph.add_edge(f"n{nth}", f"n{nth + 1}" if nth < 6 else "END")
    deltas = [event.payload["delta"] async for event in graph.stream({}) if event.event_type == "state_update"]
    assert deltas == [{"last": nth} for nth in range(7)]


# -- starting


@pytest.mark.parametrize(
    "run_id", ["", "a b", "a\n", "\n", "a/b", "ä", "a" * 129, "a" * 10_000, "a\0", 5, b"a", "../x", "%41"]
)
async def test_a_run_id_outside_the_allowed_is_refused_everywhere(checkpointer: Checkpointer, run_id: Any) -> None:
    """By every call that takes one, with a message that is short and says what is allowed."""
    graph = gated(checkpointer)
    calls = (
        graph.run({}, run_id),
        anext(graph.stream({}, run_id)),
        anext(graph.resume(run_id, "approved")),
        anext(graph.resume(run_id)),
        anext(graph.recover(run_id)),
        anext(graph.retry(run_id)),
        graph.decide(run_id, "approved"),
        graph.cancel(run_id),
        graph.fork(run_id),
        graph.info(run_id),
        graph.state(run_id),
        graph.history(run_id),
        graph.boundaries(run_id),
    )
    for call in calls:
        with pytest.raises(InvalidRunId, match="use 1 to 128 of the characters") as caught:
            await call
        assert len(str(caught.value)) < 200
    with pytest.raises(InvalidRunId):
        graph.events(run_id)
    assert await checkpointer.runs() == []


@pytest.mark.parametrize("run_id", ["a", "a" * 128, "A.b_c:d-9"])
async def test_an_allowed_run_id_is_kept_as_it_is(checkpointer: Checkpointer, run_id: str) -> None:
    """All of 128 characters too."""
    graph = gated(checkpointer)
    assert (await graph.run({}, run_id)).run_id == run_id
    assert (await graph.info(run_id)).run_id == run_id


@pytest.mark.parametrize("status", ["pending", "completed", "rejected", "cancelled"])
async def test_a_run_id_that_is_taken_is_refused_whatever_its_status(checkpointer: Checkpointer, status: str) -> None:
    """`stream` never walks through, never restarts, never merges new input."""
    graph = gated(checkpointer)
    await graph.run({"n": 1}, "r")
    if status in ("completed", "rejected"):
        await told(graph.resume("r", "approved" if status == "completed" else "rejected"))
    elif status == "cancelled":
        await graph.cancel("r")
    before = await graph.history("r")
    with pytest.raises(RunExists, match=rf"run 'r' exists \({status}\); resume it, or start a new run") as caught:
        await told(graph.stream({"n": 2}, "r"))
    assert (caught.value.run_id, caught.value.status) == ("r", status)
    assert await graph.history("r") == before


async def test_an_input_that_cannot_be_stored_starts_nothing(checkpointer: Checkpointer) -> None:
    """The error names the key; the id is still free."""
    graph = gated(checkpointer)
    with pytest.raises(StateError, match=r"^\$\.items\[1\]: "):
        await told(graph.stream({"items": [1, {2}]}, "r"))
    assert await checkpointer.head("r") is None
    assert (await graph.run({}, "r")).status == "pending"


async def test_a_fresh_run_id_sorts_by_time(checkpointer: Checkpointer) -> None:
    """A UUID of version 7; two runs never share one."""
    graph = gated(checkpointer)
    ids = [(await graph.run({})).run_id for _ in range(5)]
    assert len(set(ids)) == 5
    assert {(len(run_id), run_id[14]) for run_id in ids} == {(36, "7")}


async def test_a_gate_at_the_entry_is_asked_before_anything_runs(checkpointer: Checkpointer) -> None:
    """The first event is the interruption."""
    ran: list[int] = []
    graph = StateGraph(checkpointer).add_node("a", lambda state: ran.append(1)).set_entry_point("a")
    graph.add_interrupt_before("a")
    assert await told(graph.stream({"n": 1}, "r")) == ["interrupted a"]
    assert ran == []
    assert await told(graph.resume("r", "approved")) == ["node_start a", "state_update a", "completed END"]


async def test_run_awaits_the_end_or_the_pause(checkpointer: Checkpointer) -> None:
    """And gives the run as it stands then."""
    graph = gated(checkpointer)
    run = await graph.run({"n": 1}, "r")
    assert isinstance(run, Run)
    assert (run.status, run.state, run.steps, run.seq) == ("pending", {"n": 1, "amount": 5}, 1, 1)
    assert [(boundary.id, boundary.opening.node) for boundary in run.waiting()] == [("r:1.0", "pay")]


async def test_run_raises_what_a_node_raised(checkpointer: Checkpointer) -> None:
    """The very exception, and the run is `failed` with its text."""
    boom = ZeroDivisionError("boom")

    def fail(state: Any) -> None:
        raise boom

    graph = gated(checkpointer).replace_node("plan", fail)
    with pytest.raises(ZeroDivisionError) as caught:
        await graph.run({}, "r")
    assert caught.value is boom
    run = await graph.info("r")
    assert (run.status, run.error) == ("failed", "ZeroDivisionError: boom")


def test_run_sync_is_for_callers_without_a_loop() -> None:
    """It ends with the run."""
    graph = StateGraph().add_node("a", lambda state: {"n": 1}).set_entry_point("a")
    assert graph.run_sync({}, "r").state == {"n": 1}


async def test_the_sync_calls_say_what_to_await_inside_a_loop(checkpointer: Checkpointer) -> None:
    """A sentence, not a nested loop; nothing was started."""
    graph = gated(checkpointer)
    with pytest.raises(RuntimeError, match=r"an event loop is running here; await graph\.run\(state\) instead"):
        graph.run_sync({}, "r")
    with pytest.raises(RuntimeError, match=r"await graph\.decide\(run_id, decision\) instead"):
        graph.decide_sync("r", "approved")
    assert await checkpointer.head("r") is None


async def test_decide_sync_decides(checkpointer: Checkpointer) -> None:
    """From a thread without a loop, on whatever store."""
    graph = gated(checkpointer)
    await graph.run({}, "r")
    decision = await asyncio.to_thread(graph.decide_sync, "r", "approved", by="alice", note="fine")
    assert (decision.decision, decision.by, decision.note) == ("approved", "alice", "fine")
    assert (await graph.info("r")).status == "ready"


# -- looking


async def test_an_unknown_run_is_a_lookup_error_everywhere(checkpointer: Checkpointer) -> None:
    """That names the run."""
    graph = gated(checkpointer)
    calls = (
        anext(graph.resume("nobody", "approved")),
        anext(graph.resume("nobody")),
        anext(graph.recover("nobody")),
        anext(graph.retry("nobody")),
        anext(aiter(graph.events("nobody"))),
        graph.decide("nobody", "approved"),
        graph.cancel("nobody"),
        graph.fork("nobody"),
        graph.info("nobody"),
        graph.state("nobody"),
        graph.history("nobody"),
        graph.boundaries("nobody"),
    )
    for call in calls:
        with pytest.raises(LookupError, match="no run 'nobody' in this store") as caught:
            await call
        assert isinstance(caught.value, UnknownRun)
        assert caught.value.run_id == "nobody"


async def test_the_state_can_be_read_at_every_checkpoint(checkpointer: Checkpointer) -> None:
    """Now, and as it was."""
    graph = gated(checkpointer)
    await graph.run({"n": 1}, "r")
    await told(graph.resume("r", "approved"))
    states = [await graph.state("r", at) for at in range(5)]
    assert states == [
        {"n": 1},
        {"n": 1, "amount": 5},
        {"n": 1, "amount": 5},
        {"n": 1, "amount": 5, "paid": True},
        {"n": 1, "amount": 5, "paid": True, "told": True},
    ]
    assert await graph.state("r") == states[-1]


@pytest.mark.parametrize("at", [5, 10**6, -1, -100])
async def test_a_checkpoint_that_is_not_there_is_a_lookup_error(checkpointer: Checkpointer, at: int) -> None:
    """It says where the log ends; -1 is no way to say the last."""
    graph = gated(checkpointer)
    await graph.run({"n": 1}, "r")
    with pytest.raises(LookupError, match=f"run 'r' has no checkpoint {at}; its log ends at 1"):
        await graph.state("r", at)


async def test_the_history_is_the_log(checkpointer: Checkpointer) -> None:
    """Every row in order, gap-free, with who did what."""
    graph = gated(checkpointer)
    await graph.run({}, "r")
    await told(graph.resume("r", "approved", by="alice", note="ok"))
    rows = await graph.history("r")
    assert [(row.seq, row.kind, row.node, row.status) for row in rows] == [
        (0, "start", None, "running"),
        (1, "node", "plan", "pending"),
        (2, "decision", "pay", "ready"),
        (3, "node", "pay", "running"),
        (4, "node", "done", "completed"),
    ]
    assert (rows[2].actor, rows[2].decision, rows[2].content["note"]) == ("alice", "approved", "ok")


async def test_boundaries_tell_what_was_asked_and_decided(checkpointer: Checkpointer) -> None:
    """Open ones, then closed ones with who, what and when."""
    graph = gated(checkpointer)
    await graph.run({}, "r")
    (open_one,) = await graph.boundaries("r")
    assert (open_one.id, open_one.node, open_one.state, open_one.decided) == ("r:1.0", "pay", "open", None)
    await graph.decide("r", "rejected", by="bob", note="too much")
    (closed,) = await graph.boundaries("r")
    assert closed.state == "rejected"
    assert closed.decided is not None
    assert (closed.decided.by, closed.decided.decision, closed.decided.note) == ("bob", "rejected", "too much")


# -- going on


async def test_resuming_an_ended_run_runs_nothing(checkpointer: Checkpointer) -> None:
    """It tells how the run ended, and the log stays as it is."""
    ran: list[str] = []
    graph = gated(checkpointer).replace_node("done", lambda state: ran.append("done"))
    await graph.run({}, "r")
    await told(graph.resume("r", "approved"))
    before = await graph.history("r")
    for again in (graph.resume, graph.recover):
        assert await told(again("r")) == ["completed END"]
    assert await graph.history("r") == before
    assert ran == ["done"]


async def test_a_waiting_run_cannot_be_driven_past_its_gate(checkpointer: Checkpointer) -> None:
    """By none of the calls that drive; the message names what it waits for."""
    graph = gated(checkpointer)
    await graph.run({}, "r")
    for call in (graph.resume, graph.recover, graph.retry):
        with pytest.raises(
            RunNotClaimable, match=r"run 'r' is pending; it waits for a decision of r:1\.0 \(before 'pay'\)"
        ):
            await told(call("r"))
    assert (await graph.info("r")).status == "pending"


@pytest.mark.parametrize("call", ["retry", "resume"])
async def test_a_status_that_does_not_allow_a_call_is_named(checkpointer: Checkpointer, call: str) -> None:
    """`retry` is for a failed run, `resume` for one that is not."""
    graph = gated(checkpointer)
    if call == "resume":
        graph.replace_node("plan", lambda state: {"bad": {1}})
        with pytest.raises(StateError):
            await graph.run({}, "r")
        with pytest.raises(RunNotClaimable, match=r"run 'r' is failed; retry it \(StateError: \$\.bad"):
            await told(graph.resume("r"))
    else:
        await graph.run({}, "r")
        await told(graph.resume("r", "approved"))
        with pytest.raises(RunNotClaimable, match="run 'r' is completed; nothing is left to do"):
            await told(graph.retry("r"))


async def test_a_run_in_another_threads_loop_goes_on_here(checkpointer: Checkpointer) -> None:
    """A store is shared between threads; a run started in one is finished in another."""
    graph = gated(checkpointer)

    def start() -> None:
        asyncio.run(_run(graph))

    thread = threading.Thread(target=start)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert await told(graph.resume("r", "approved")) == [
        "node_start pay",
        "state_update pay",
        "node_start done",
        "state_update done",
        "completed END",
    ]


async def _run(graph: StateGraph) -> None:
    await graph.run({}, "r")


# -- a graph that changed while its run waited


def rebuilt(checkpointer: Checkpointer, **names: str) -> StateGraph:
    """The gated graph with some of its nodes renamed."""
    plan, pay, done = (names.get(name, name) for name in ("plan", "pay", "done"))
    graph = StateGraph(checkpointer).set_entry_point(plan).add_edge(plan, pay).add_edge(pay, done)
    return graph.add_node(plan, nothing).add_node(pay, lambda state: {"paid": True}).add_node(done, nothing)


@pytest.mark.parametrize(
    ("name", "hint"), [("payy", "did you mean 'payy'"), ("settle", "its nodes are 'plan', 'settle'")]
)
async def test_a_pending_node_that_was_renamed_is_an_explicit_error(
    checkpointer: Checkpointer, name: str, hint: str
) -> None:
    """Old name and candidates; nothing was decided, nothing ran, and under the old graph it goes on."""
    graph = gated(checkpointer)
    await graph.run({}, "r")
    changed = rebuilt(checkpointer, pay=name).add_interrupt_before(name)
    before = await graph.history("r")
    calls = (
        lambda: told(changed.resume("r", "approved")),
        lambda: told(changed.resume("r")),
        lambda: told(changed.recover("r")),
        lambda: told(changed.retry("r")),
        lambda: changed.decide("r", "approved"),
        lambda: changed.fork("r"),
    )
    for call in calls:
        with pytest.raises(GraphChangedError, match="it stands at 'pay'") as caught:
            await call()
        assert hint in str(caught.value)
        assert caught.value.run_id == "r"
    assert await graph.history("r") == before
    assert (await told(graph.resume("r", "approved")))[-1] == "completed END"


async def test_a_finished_node_may_be_renamed_and_a_later_one_added(checkpointer: Checkpointer) -> None:
    """Only where the run stands has to exist."""
    await gated(checkpointer).run({}, "r")
    changed = rebuilt(checkpointer, plan="think").add_interrupt_before("pay")
    changed.add_node("more", lambda state: {"more": True}).add_edge("done", "more")
    assert (await told(changed.resume("r", "approved")))[-3:] == [
        "node_start more",
        "state_update more",
        "completed END",
    ]


async def test_a_gate_added_later_is_asked(checkpointer: Checkpointer) -> None:
    """A run that stands before the node and may go on is asked first: no node runs past a gate without an approval."""
    graph = rebuilt(checkpointer).add_interrupt_before("pay")
    await graph.run({}, "r")
    await graph.decide("r", "approved")
    strict = rebuilt(checkpointer).add_interrupt_before("pay").add_interrupt_before("done")
    events = await told(strict.resume("r"))
    assert events == ["node_start pay", "state_update pay", "interrupted done"]
    assert (await told(strict.resume("r", "approved")))[-1] == "completed END"


async def test_a_gate_added_before_the_very_node_that_is_next_is_asked(checkpointer: Checkpointer) -> None:
    """The run was left `ready` before the node; under the stricter graph it waits there."""
    plain = rebuilt(checkpointer)
    ran = asyncio.Event()

    async def hold(state: Any) -> None:
        ran.set()
        await asyncio.get_running_loop().create_future()

    events = plain.replace_node("pay", hold).stream({}, "r")
    await anext(events)
    await ran.wait()
    await events.aclose()
    strict = rebuilt(checkpointer).add_interrupt_before("pay")
    assert await told(strict.resume("r")) == ["interrupted pay"]
    assert (await told(strict.resume("r", "approved")))[:2] == ["node_start pay", "state_update pay"]


async def test_a_gate_that_was_removed_still_holds_the_run_that_waits_at_it(checkpointer: Checkpointer) -> None:
    """What was asked has to be answered."""
    await gated(checkpointer).run({}, "r")
    loose = rebuilt(checkpointer)
    with pytest.raises(RunNotClaimable):
        await told(loose.resume("r"))
    assert (await told(loose.resume("r", "approved")))[0] == "node_start pay"


async def test_a_run_of_another_graph_is_refused_by_name(checkpointer: Checkpointer) -> None:
    """Two graphs in one store do not take each other's runs."""
    await gated(checkpointer, name="refunds").run({}, "r")
    with pytest.raises(GraphChangedError, match="it is a run of graph 'refunds', and this is 'orders'"):
        await told(gated(checkpointer, name="orders").resume("r", "approved"))


class Old(pydantic.BaseModel):
    amount: int = 0
    paid: bool = False
    told: bool = False


class New(pydantic.BaseModel):
    cents: int
    currency: str
    paid: bool = False
    told: bool = False


def migrated(checkpointer: Checkpointer) -> StateGraph:
    graph = gated(checkpointer, state=New, version="2").replace_node("plan", lambda state: {"cents": 500})

    @graph.migrate("1")
    def to_cents(values: dict[str, Any]) -> dict[str, Any]:
        return {"cents": values["amount"] * 100, "currency": "EUR", "amount": DELETE}

    return graph


async def test_a_new_required_key_is_an_explicit_error(checkpointer: Checkpointer) -> None:
    """Without a migration; every key that does not fit is named."""
    await gated(checkpointer, state=Old).run({}, "r")
    with pytest.raises(GraphChangedError) as caught:
        await told(gated(checkpointer, state=New).resume("r", "approved"))
    assert "its state has no 'cents', which New requires (give it a default, or add a migration)" in str(caught.value)
    assert "its state has 'amount', which New does not know" in str(caught.value)
    assert (await gated(checkpointer, state=Old).info("r")).status == "pending"


@dataclasses.dataclass
class OldRecord:
    amount: int = 0
    paid: bool = False
    told: bool = False


@dataclasses.dataclass
class NewRecord(OldRecord):
    tags: list[str] = dataclasses.field(default_factory=lambda: ["new"])


class NewModel(Old):
    tags: list[str] = ["new"]


@pytest.mark.parametrize(("old", "new"), [(Old, NewModel), (OldRecord, NewRecord)])
async def test_a_new_key_with_a_default_needs_no_migration(checkpointer: Checkpointer, old: Any, new: Any) -> None:
    """A run that began before the key was declared has the default: in its nodes, and for whoever reads its state."""
    seen: list[Any] = []
    await gated(checkpointer, state=old).run({}, "r")
    graph = gated(checkpointer, state=new).replace_node("done", lambda state: seen.append(state.tags))
    assert (await graph.state("r")).tags == ["new"]
    assert (await told(graph.resume("r", "approved")))[-1] == "completed END"
    assert seen == [["new"]]


async def test_a_migration_brings_a_waiting_run_up(checkpointer: Checkpointer) -> None:
    """Once, and stored before anything runs on it; the state is of the new type from then on."""
    await gated(checkpointer, state=Old).run({}, "r")
    graph = migrated(checkpointer)
    assert (await told(graph.resume("r", "approved")))[-1] == "completed END"
    assert await graph.state("r") == New(cents=500, currency="EUR", paid=True, told=True)
    rows = await graph.history("r")
    assert [row.kind for row in rows] == ["start", "node", "decision", "settled", "node", "node"]
    run = await graph.info("r")
    assert (run.version, run.fingerprint) == ("2", graph.plan().fingerprint)


async def test_migrations_follow_each_other(checkpointer: Checkpointer) -> None:
    """From the run's version to the graph's, in the order in which they were registered."""
    await gated(checkpointer, version="1").run({"log": []}, "r")
    graph = gated(checkpointer, version="3")
    graph.migrate("1")(lambda values: {"log": [*values["log"], 1]})
    graph.migrate("2")(lambda values: {"log": [*values["log"], 2]})
    await told(graph.resume("r", "approved"))
    assert (await graph.state("r"))["log"] == [1, 2]


async def test_a_migration_that_fails_leaves_the_run_where_it_was(checkpointer: Checkpointer) -> None:
    """Nothing is decided, nothing is held: with a mended one it goes on."""
    await gated(checkpointer).run({}, "r")
    graph = gated(checkpointer, version="2")

    @graph.migrate("1")
    def broken(values: dict[str, Any]) -> dict[str, Any]:
        return {"n": {1}}

    with pytest.raises(StateError, match=r"\$\.n"):
        await told(graph.resume("r", "approved"))
    graph.migrate("1")(lambda values: {"n": 1})
    run = await graph.info("r")
    assert run.status in ("pending", "ready")
    events = await told(graph.resume("r", "approved" if run.status == "pending" else None))
    assert events[-1] == "completed END"
    assert (await graph.state("r"))["n"] == 1


# -- what a node or a router gives


@pytest.mark.parametrize(
    ("value", "path"),
    [({1}, "$.v"), ([1, object()], "$.v[1]"), (float("nan"), "$.v"), ({"a": b"x"}, "$.v.a"), (10**5000, "$.v")],
    ids=["set", "object", "nan", "bytes", "huge"],
)
async def test_what_cannot_be_stored_fails_the_node_with_its_place(
    checkpointer: Checkpointer, value: Any, path: str
) -> None:
    """Typed, with the key and the node; the run is `failed`, never stuck, and a retry goes on from there."""
    graph = gated(checkpointer).replace_node("plan", lambda state: {"v": value})
    with pytest.raises(StateError) as caught:
        await graph.run({"n": 1}, "r")
    assert (caught.value.path, caught.value.node) == (path, "plan")
    assert "returned by node 'plan'" in str(caught.value)
    run = await graph.info("r")
    assert (run.status, run.state) == ("failed", {"n": 1})
    graph.replace_node("plan", lambda state: {"v": 1})
    assert (await told(graph.retry("r")))[-1] == "interrupted pay"


@pytest.mark.parametrize("returned", [5, "text", [("a", 1)], True, iter(()), StateGraph])
async def test_a_node_that_returns_no_mapping_fails_with_what_it_returned(
    checkpointer: Checkpointer, returned: Any
) -> None:
    """The message names node, value and what to return."""
    graph = gated(checkpointer).replace_node("plan", lambda state: returned)
    with pytest.raises(TypeError, match=r"node 'plan' returned .*; return a mapping of the keys it changes, or None"):
        await graph.run({}, "r")
    assert (await graph.info("r")).status == "failed"


@pytest.mark.parametrize("answer", [None, "", "nowhere", ["pay"], 5], ids=repr)
async def test_a_router_that_answers_nonsense_loses_nothing(checkpointer: Checkpointer, answer: Any) -> None:
    """The node's work is stored, the run fails at its router; mended, only the router runs again."""
    ran: list[str] = []
    answers = [answer, "pay"]

    def plan(state: Any) -> dict[str, Any]:
        ran.append("plan")
        return {"amount": 7}

    graph = gated(checkpointer).replace_node("plan", plan)
    graph.add_conditional_edge("plan", lambda state: answers.pop(0), ["pay", "END"])
    with pytest.raises(RouteError, match="the router after 'plan' answered"):
        await graph.run({}, "r")
    run = await graph.info("r")
    assert (run.status, run.state) == ("failed", {"amount": 7})
    assert await told(graph.retry("r")) == ["interrupted pay"]
    assert ran == ["plan"]


async def test_delete_may_be_a_persons_change_too(checkpointer: Checkpointer) -> None:
    """In the edit of an approval."""
    graph = gated(checkpointer)
    await graph.run({"secret": 1}, "r")
    await told(graph.resume("r", "approved", edit={"secret": DELETE}))
    assert "secret" not in await graph.state("r")
