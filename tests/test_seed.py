"""The program that stategraph grew from: it runs here as it was written, but for its imports and `await` on the store."""

# Its functions say no types:
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from checkpointers import SqliteCheckpointer
from stategraph import AgentState, Checkpointer, Event, StateGraph

# -- the program


def build_workflow(checkpointer, refund_log):
    graph = StateGraph(checkpointer)
    graph.add_node("planner", lambda state: {"action": "refund", "amount": 1000})
    graph.add_node("human_approval", lambda state: {"approval_recorded": True})

    def refund(state):
        # Simulation only. A real payment API needs a stable business idempotency key.
        refund_log.append(state["amount"])
        return {"status": "success", "messages": [{"role": "tool", "content": "Simulated refund"}]}

    graph.add_node("refund", refund)
    graph.set_entry_point("planner")
    graph.add_conditional_edge("planner", lambda state: "human_approval" if state["amount"] > 500 else "refund")
    graph.add_edge("human_approval", "refund")
    graph.add_edge("refund", "END")
    graph.add_interrupt_before("human_approval")
    return graph


async def main():
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "checkpoints.sqlite3")
        refunds = []
        store = SqliteCheckpointer(path)
        workflow = build_workflow(store, refunds)
        events = [event async for event in workflow.stream(AgentState(messages=[]))]
        run_id = events[-1].run_id
        await store.close()
        # Reopen storage and rebuild the graph to simulate a worker restart.
        store = SqliteCheckpointer(path)
        workflow = build_workflow(store, refunds)
        async for event in workflow.resume(run_id, "approved"):
            print(event.event_type, event.node_name)  # noqa: T201  # the program prints
        await store.close()
        print("Simulated refunds:", refunds)  # noqa: T201


# -- what it must do


@pytest.fixture
def refunds() -> list[int]:
    """Every refund that was made."""
    return []


@pytest.fixture
def workflow(checkpointer: Checkpointer, refunds: list[int]) -> StateGraph:
    graph: StateGraph = build_workflow(checkpointer, refunds)
    return graph


async def told(events: AsyncIterator[Event]) -> list[tuple[str, str]]:
    return [(event.event_type, event.node_name) async for event in events]


PAUSE = [("node_start", "planner"), ("state_update", "planner"), ("interrupted", "human_approval")]
REST = [
    ("node_start", "human_approval"),
    ("state_update", "human_approval"),
    ("node_start", "refund"),
    ("state_update", "refund"),
    ("completed", "END"),
]


def test_the_script_prints_what_the_seed_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Line by line: five events after the restart, then the one refund."""
    asyncio.run(main())
    assert capsys.readouterr().out.splitlines() == [*map(" ".join, REST), "Simulated refunds: [1000]"]


async def test_it_stops_before_the_approval_and_has_run_no_gated_node(workflow: StateGraph, refunds: list[int]) -> None:
    """planner starts and updates, then the run is `pending` before human_approval and nothing was refunded."""
    assert await told(workflow.stream({"messages": []}, "r")) == PAUSE
    run = await workflow.info("r")
    assert (run.status, refunds, "approval_recorded" in run.state) == ("pending", [], False)


async def test_an_approval_is_followed_by_exactly_the_seeds_events(workflow: StateGraph, refunds: list[int]) -> None:
    """Five events in the seed's order, and one refund."""
    await told(workflow.stream({"messages": []}, "r"))
    assert await told(workflow.resume("r", "approved")) == REST
    assert refunds == [1000]


async def test_the_payloads_are_the_seeds(workflow: StateGraph) -> None:
    """Starts are empty, updates carry the delta, the pause the state, the end the final state; all one run id."""
    events = [event async for event in workflow.stream({"messages": []}, "r")]
    events += [event async for event in workflow.resume("r", "approved")]
    planned = {"action": "refund", "amount": 1000}
    message = {"role": "tool", "content": "Simulated refund"}
    assert [event.payload for event in events] == [
        {},
        {"delta": planned},
        {"state": {"messages": [], **planned}},
        {},
        {"delta": {"approval_recorded": True}},
        {},
        {"delta": {"status": "success", "messages": [message]}},
        {"final_state": {"messages": [message], **planned, "approval_recorded": True, "status": "success"}},
    ]
    assert {event.run_id for event in events} == {"r"}


async def test_a_run_without_an_id_gets_one_that_all_its_events_carry(workflow: StateGraph) -> None:
    """The last event's run id resumes the run, as the seed's script does it."""
    events = [event async for event in workflow.stream(AgentState(messages=[]))]
    (run_id,) = {event.run_id for event in events}
    assert (await workflow.info(run_id)).status == "pending"


async def test_a_small_amount_goes_straight_to_the_refund(workflow: StateGraph, refunds: list[int]) -> None:
    """The router sees the planner's amount: 400 needs no approval."""
    workflow.replace_node("planner", lambda state: {"action": "refund", "amount": 400})
    events = await told(workflow.stream({"messages": []}))
    assert ("node_start", "refund") in events
    assert all(node != "human_approval" for _, node in events)
    assert refunds == [400]


async def test_a_rejection_tells_one_event_and_refunds_nothing(workflow: StateGraph, refunds: list[int]) -> None:
    """`rejected` is final: the refund log stays empty and a later approval is a ValueError."""
    await told(workflow.stream({"messages": []}, "r"))
    assert await told(workflow.resume("r", "rejected")) == [("rejected", "human_approval")]
    with pytest.raises(ValueError, match="already rejected"):
        await told(workflow.resume("r", "approved"))
    assert ((await workflow.info("r")).status, refunds) == ("rejected", [])


async def test_another_word_than_the_two_is_a_value_error_and_the_run_still_waits(workflow: StateGraph) -> None:
    """`resume(id, "maybe")` changes nothing."""
    await told(workflow.stream({"messages": []}, "r"))
    before = await workflow.history("r")
    with pytest.raises(ValueError, match="decision must be 'approved' or 'rejected', not 'maybe'"):
        await told(workflow.resume("r", "maybe"))
    assert await workflow.history("r") == before
    assert (await workflow.info("r")).status == "pending"


async def test_an_approval_is_consumed_by_its_first_use(workflow: StateGraph, refunds: list[int]) -> None:
    """The second claim is a ValueError and refunds nothing more."""
    await told(workflow.stream({"messages": []}, "r"))
    await told(workflow.resume("r", "approved"))
    with pytest.raises(ValueError, match="already approved"):
        await told(workflow.resume("r", "approved"))
    assert refunds == [1000]


async def test_a_decision_too_early_is_a_value_error(workflow: StateGraph, refunds: list[int]) -> None:
    """Nothing waits while the planner runs: the approval is refused at the first event asked for, the run pauses later."""
    planned = asyncio.Event()

    async def planner(state: Any) -> dict[str, Any]:
        await planned.wait()
        return {"action": "refund", "amount": 1000}

    events = workflow.replace_node("planner", planner).stream({"messages": []}, "r")
    await anext(events)
    with pytest.raises(ValueError, match="no boundary is open; the run is running"):
        await anext(workflow.resume("r", "approved"))
    planned.set()
    assert await told(events) == PAUSE[1:]
    assert refunds == []


async def test_a_failing_node_raises_its_own_error_and_leaves_the_run_failed(workflow: StateGraph) -> None:
    """The exception reaches the caller as it was raised; the status is `failed`."""

    def broken(state: Any) -> None:
        raise ZeroDivisionError("no amount")

    workflow.replace_node("planner", broken)
    with pytest.raises(ZeroDivisionError, match="no amount"):
        await told(workflow.stream({"messages": []}, "r"))
    assert (await workflow.info("r")).status == "failed"


async def test_a_loop_ends_with_the_seeds_budget_error(checkpointer: Checkpointer) -> None:
    """A self-loop stops after exactly 20 runs of its node with `step budget exhausted`."""
    ran: list[int] = []
    graph = StateGraph(checkpointer).add_node("loop", lambda state: ran.append(1)).set_entry_point("loop")
    graph.add_conditional_edge("loop", lambda state: "loop", ["loop", "END"])
    with pytest.raises(RuntimeError, match="step budget exhausted"):
        await told(graph.stream({}))
    assert len(ran) == 20


async def test_two_messages_from_two_nodes_are_two_messages(checkpointer: Checkpointer) -> None:
    """`messages` appends, every other key is replaced."""
    graph = StateGraph(checkpointer).set_entry_point("a").add_edge("a", "b")
    graph.add_node("a", lambda state: {"messages": ["one"], "last": "a"})
    graph.add_node("b", lambda state: {"messages": ["two"], "last": "b"})
    assert (await graph.run({"messages": ["zero"]})).state == {"messages": ["zero", "one", "two"], "last": "b"}
