"""A fork is a new run from any point of another's log: it inherits the state, and no approval."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pydantic
import pytest

from stategraph import (
    DELETE,
    Checkpointer,
    Context,
    Event,
    ForkRefused,
    GraphChangedError,
    InvalidRunId,
    RunExists,
    StateError,
    StateGraph,
)


@pytest.fixture
def ran() -> list[str]:
    """Every node that ran, with its run."""
    return []


@pytest.fixture
def graph(checkpointer: Checkpointer, ran: list[str]) -> StateGraph:
    """plan, then pay behind a gate (with an effect), then done."""

    def plan(state: Any, ctx: Context) -> dict[str, Any]:
        ran.append(f"{ctx.run_id} plan")
        return {"amount": state.get("amount", 5), "messages": ["plan"]}

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        def charge() -> list[int]:
            ran.append(f"{ctx.run_id} charge")
            return [state["amount"]]

        receipt = await ctx.once("charge", charge)
        return {"receipt": receipt, "messages": ["pay"], "key": ctx.idempotency_key}

    def done(state: Any, ctx: Context) -> dict[str, Any]:
        ran.append(f"{ctx.run_id} done")
        return {"messages": ["done"]}

    graph = StateGraph(checkpointer).add_node("plan", plan).add_node("pay", pay).add_node("done", done)
    graph.set_entry_point("plan").add_edge("plan", "pay").add_edge("pay", "done")
    return graph.add_interrupt_before("pay")


async def told(events: AsyncIterator[Event]) -> list[str]:
    return [f"{event.event_type} {event.node_name}" async for event in events]


REST = ["node_start pay", "state_update pay", "node_start done", "state_update done", "completed END"]


@pytest.fixture
async def source(graph: StateGraph) -> str:
    """A run that was approved by alice and completed: start, plan (gate opens), decision, pay, done."""
    await graph.run({}, "source")
    assert await told(graph.resume("source", "approved", by="alice")) == REST
    return "source"


@pytest.mark.parametrize("at", [1, 2], ids=["before the approval", "after the approval"])
async def test_a_fork_at_a_gate_is_asked_again(graph: StateGraph, source: str, ran: list[str], at: int) -> None:
    """Neither spends the old approval, and nothing runs before the new one."""
    ran.clear()
    run = await graph.fork(source, at, new_run_id="new")
    assert (run.status, run.parent, ran) == ("pending", f"source@{at}", [])
    (boundary,) = run.waiting()
    assert boundary.id == "new:0.0"
    (old,) = await graph.boundaries(source)
    assert boundary.opening.digest != old.digest
    assert await told(graph.resume("new", "approved", by="bob")) == REST
    assert ran == ["new charge", "new done"]
    assert [b.decided and b.decided.by for b in await graph.boundaries(source)] == ["alice"]


@pytest.mark.parametrize("at", [0, 3])
async def test_a_fork_elsewhere_goes_on_from_there(graph: StateGraph, source: str, at: int) -> None:
    """`ready`, with what was done; earlier nodes do not run again."""
    run = await graph.fork(source, at, new_run_id="new")
    assert run.status == "ready"
    events = await told(graph.resume("new"))
    assert events == (["node_start plan", "state_update plan", "interrupted pay"] if at == 0 else REST[2:])


async def test_a_fork_leaves_its_source_alone(graph: StateGraph, source: str) -> None:
    """Log, state and boundaries."""
    before = await graph.history(source), await graph.state(source), await graph.boundaries(source)
    for at in range(4):
        run = await graph.fork(source, at, {"messages": ["forked"]})
        await told(graph.resume(run.run_id, "approved" if run.status == "pending" else None))
    assert (await graph.history(source), await graph.state(source), await graph.boundaries(source)) == before


async def test_a_fork_has_effects_of_its_own(graph: StateGraph, source: str, ran: list[str]) -> None:
    """Another run's result is not reused, and its idempotency key is another."""
    ran.clear()
    await graph.fork(source, 2, {"amount": 7}, new_run_id="new")
    await told(graph.resume("new", "approved"))
    old, new = await graph.state(source), await graph.state("new")
    assert (old["receipt"], new["receipt"], ran[0]) == ([5], [7], "new charge")
    assert old["key"] != new["key"]


async def test_a_patch_changes_the_state_that_the_fork_starts_with(graph: StateGraph, source: str) -> None:
    """Each key replaced or removed; what is asked shows the patched state."""
    run = await graph.fork(source, 1, {"amount": 9, "messages": DELETE}, new_run_id="new")
    assert run.state == {"amount": 9}
    events = [event async for event in graph.events("new")]
    assert events[-1].payload == {"state": {"amount": 9}}
    await told(graph.resume("new", "approved"))
    assert (await graph.state("new"))["messages"] == ["pay", "done"]


async def test_a_patch_that_cannot_be_stored_forks_nothing(graph: StateGraph, source: str) -> None:
    """With its key; the new id is still free."""
    with pytest.raises(StateError, match=r"^\$\.amount"):
        await graph.fork(source, 1, {"amount": {1}}, new_run_id="new")
    assert (await graph.fork(source, 1, new_run_id="new")).run_id == "new"


async def test_a_fork_of_a_waiting_run_waits_beside_it(graph: StateGraph, ran: list[str]) -> None:
    """Two runs, two decisions."""
    await graph.run({}, "source")
    await graph.fork("source", new_run_id="new")
    await told(graph.resume("new", "rejected"))
    assert [(await graph.info(run_id)).status for run_id in ("source", "new")] == ["pending", "rejected"]


@pytest.mark.parametrize("ending", ["rejected", "cancelled"])
async def test_a_run_that_was_ended_by_somebody_can_be_forked(graph: StateGraph, ending: str) -> None:
    """It stands where it stood: at the gate, which is asked again."""
    await graph.run({}, "source")
    await (graph.cancel("source") if ending == "cancelled" else graph.decide("source", "rejected"))
    assert (await graph.fork("source", new_run_id="new")).status == "pending"
    assert await told(graph.resume("new", "approved")) == REST


async def test_a_failed_run_is_released_by_a_fork(graph: StateGraph, source: str) -> None:
    """The failed node runs again, with a patch that mends it."""

    def fail(state: Any) -> None:
        if not state.get("mended"):
            raise OSError("down")

    graph.replace_node("done", fail)
    await graph.run({}, "broken")
    with pytest.raises(OSError, match="down"):
        await told(graph.resume("broken", "approved"))
    run = await graph.fork("broken", patch={"mended": True}, new_run_id="new")
    assert (run.status, run.error) == ("ready", None)
    assert await told(graph.resume("new")) == REST[2:]


async def test_a_failed_router_is_all_that_a_fork_runs_again(graph: StateGraph, ran: list[str]) -> None:
    """The node's work came along."""
    answers = ["nowhere", "END"]
    graph.add_conditional_edge("plan", lambda state: answers.pop(0), ["pay", "END"])
    with pytest.raises(RuntimeError, match="answered 'nowhere'"):
        await graph.run({}, "source")
    await graph.fork("source", new_run_id="new")
    assert await told(graph.resume("new")) == ["completed END"]
    assert ran == ["source plan"]


async def test_the_budget_goes_on_counting(checkpointer: Checkpointer) -> None:
    """Steps before the fork count after it."""
    graph = StateGraph(checkpointer, 3).add_node("loop", lambda state: None).set_entry_point("loop")
    graph.add_conditional_edge("loop", lambda state: "loop", ["loop", "END"])
    with pytest.raises(RuntimeError, match="step budget exhausted"):
        await graph.run({}, "source")
    await graph.fork("source", 2, new_run_id="new")
    with pytest.raises(RuntimeError, match="step budget exhausted: 3 steps are done"):
        await told(graph.resume("new"))
    assert (await graph.info("new")).steps == 3


async def test_a_fork_can_be_forked(graph: StateGraph, source: str) -> None:
    """Each knows its parent; all give the same in the end."""
    parent = source
    for nth in range(3):
        run = await graph.fork(parent, 0 if nth else 3, new_run_id=f"new{nth}")
        assert run.parent == f"{parent}@{0 if nth else 3}"
        parent = run.run_id
    await told(graph.resume(parent))
    assert (await graph.state(parent))["messages"] == ["plan", "pay", "done"]


@pytest.mark.parametrize("at", [4, None])
async def test_there_is_nothing_to_fork_at_the_end(graph: StateGraph, source: str, at: int | None) -> None:
    """The refusal says so, and from where to fork."""
    with pytest.raises(ForkRefused, match="checkpoint 4: the run has reached END there; fork from an earlier"):
        await graph.fork(source, at)


@pytest.mark.parametrize("at", [5, 99, -1])
async def test_a_checkpoint_that_is_not_there_cannot_be_forked(graph: StateGraph, source: str, at: int) -> None:
    """It says where the log ends."""
    with pytest.raises((ForkRefused, LookupError), match="its log ends at 4"):
        await graph.fork(source, at)


async def test_a_fork_needs_a_free_and_proper_id(graph: StateGraph, source: str) -> None:
    """Like any new run."""
    with pytest.raises(RunExists):
        await graph.fork(source, 1, new_run_id=source)
    with pytest.raises(InvalidRunId):
        await graph.fork(source, 1, new_run_id="a/b")


async def test_a_fork_under_a_changed_graph_is_checked(graph: StateGraph, source: str) -> None:
    """The place where it would stand has to exist; places that it has passed need not."""
    changed = StateGraph(graph.checkpointer).add_node("plan", lambda state: None).set_entry_point("plan")
    with pytest.raises(GraphChangedError, match="it stands at 'pay'"):
        await changed.fork(source, 1)
    assert (await changed.fork(source, 0)).status == "ready"


class Cents(pydantic.BaseModel):
    cents: int
    messages: list[str] = []
    receipt: list[int] | None = None
    key: str | None = None


async def test_a_fork_of_an_older_versions_run_is_migrated(graph: StateGraph, source: str) -> None:
    """The state comes up with the graph, and the gate shows the new one."""
    newer = StateGraph(graph.checkpointer, state=Cents, version="2").add_interrupt_before("pay")
    newer.add_node("pay", lambda state: {"messages": [str(state.cents)]}).set_entry_point("pay")
    newer.migrate("1")(lambda values: {"cents": values["amount"] * 100, "amount": DELETE})
    run = await newer.fork(source, 1, {"messages": []}, new_run_id="new")
    assert (run.state, run.version) == ({"cents": 500, "messages": []}, "2")
    assert (await told(newer.resume("new", "approved")))[-1] == "completed END"
    assert await newer.state("new") == Cents(cents=500, messages=["500"])
