"""How stategraph is used, for the type checkers alone: nothing here runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, assert_type

import pydantic

from checkpointers import MemoryCheckpointer, SqliteCheckpointer
from stategraph import (
    DELETE,
    END,
    AgentState,
    Boundary,
    Checkpoint,
    Checkpointer,
    Clock,
    Context,
    Cursor,
    Decision,
    DecisionRefused,
    Event,
    ManualClock,
    Plan,
    Position,
    Retry,
    Run,
    StateGraph,
    SystemClock,
    append,
    current_context,
    merge,
    open_checkpointer,
    parse_event,
)
from stategraph.events import Completed, Interrupted, NodeStart, StateUpdate
from stategraph.testing import CheckpointerContract, fill

# -- states


class Model(pydantic.BaseModel):
    amount: int = 0
    messages: Annotated[list[str], append] = []
    facts: Annotated[dict[str, int], merge] = {}


@dataclass
class Record:
    amount: int = 0
    messages: Annotated[list[str], append] = field(default_factory=list)


class Typed(TypedDict, total=False):
    amount: int


# -- nodes of every kind, and routers


def plain(state: AgentState) -> dict[str, Any]:
    return {"amount": state["amount"] + 1, "old": DELETE}


def typed(state: Model) -> Mapping[str, Any]:
    return {"amount": state.amount + 1}


def silent(state: Record, ctx: Context) -> None:
    ctx.emit({"key": ctx.idempotency_key, "at": ctx.clock.now()})
    ctx.token(str(ctx.step + ctx.attempt))


async def paying(state: Model, ctx: Context) -> dict[str, Any]:
    receipt = await ctx.once("charge", lambda: {"id": 1}, policy="keyed")
    assert_type(current_context(), Context)
    return {"receipt": receipt}


def route(state: Model) -> Literal["pay", "END"]:
    return "pay" if state.amount else "END"


# -- a graph


def build(checkpointer: Checkpointer | None) -> StateGraph:
    graph = StateGraph(checkpointer, 30, state=Model, name="refunds", version="2", reducers={"log": append}, lease=60)
    assert_type(graph.add_node("plain", plain), StateGraph)
    graph.add_node("pay", paying, retry=Retry(attempts=3, delay=0.5, on=(OSError,)), timeout=5, tags=["money"])
    graph.add_node("silent", silent, irreversible=True, reads=["amount"], writes=[])
    graph.add_node("typed", typed, retry=2, blocking=True)

    @graph.node
    def first(state: Model) -> dict[str, Any]:
        return {"amount": 1}

    @graph.node(name="second", timeout=1.5)
    async def other(state: Model) -> None:
        return None

    assert_type(first(Model()), dict[str, Any])
    graph.set_entry_point("first").add_edge("first", "second").add_edge("pay", END)
    graph.add_conditional_edge("second", route)
    graph.add_conditional_edge("plain", lambda state: "yes", {"yes": "pay", "no": END})
    graph.add_interrupt_before("pay", on_reject="plain", on_expire=END, expires_in=3600.0, approvers=["alice"])

    @graph.migrate("1")
    def upgrade(values: dict[str, Any]) -> dict[str, Any]:
        return {"amount": values["cents"] // 100, "cents": DELETE}

    assert_type(graph.plan(), Plan)
    assert_type(graph.replace_node("pay", plain), StateGraph)
    return graph


# -- its calls


async def use(graph: StateGraph) -> None:
    stream = graph.stream(Model(amount=5), run_id="r")
    assert_type(stream, AsyncGenerator[Event, None])
    async for event in stream:
        match event:
            case NodeStart(node_name=name):
                assert_type(name, str)
            case StateUpdate():
                assert_type(event.payload, dict[str, Any])
            case Interrupted():
                assert_type(event.boundary.id, str)
            case Completed():
                assert_type(event.cursor, Cursor | None)
            case _:
                pass
        if event.event_type == "interrupted":
            assert_type(event, Interrupted)
    await stream.aclose()
    async for event in graph.resume("r", "approved", boundary="1.0", by="alice", note="ok", edit={"amount": 3}):
        assert_type(parse_event(event.model_dump_json()), Event)
    async for _ in graph.recover("r"):
        pass
    async for _ in graph.retry("r", {"amount": 1}, max_steps=50, by="alice"):
        pass
    try:
        assert_type(await graph.decide("r", "rejected", digest="d", decision_id="x"), Decision)
    except DecisionRefused as refused:
        assert_type(refused.by, str | None)
    run = await graph.run({"amount": 5})
    assert_type(run, Run)
    assert_type(run.positions, dict[str, Position])
    assert_type(await graph.cancel("r", note="enough"), bool)
    assert_type(await graph.fork("r", 3, {"amount": 1}, new_run_id="s"), Run)
    assert_type(await graph.history("r"), list[Checkpoint])
    assert_type(await graph.boundaries("r"), list[Boundary])
    assert_type(graph.events("r", after=Cursor(3, 0), follow=True), AsyncIterator[Event])
    state = await graph.state("r", at=2)
    assert_type(state, Any)
    assert_type(graph.draw("graph.svg", run=run), str | bytes)


def at_the_edge(graph: StateGraph) -> None:
    assert_type(graph.run_sync({}), Run)
    assert_type(graph.decide_sync("r", "approved", by="alice"), Decision)


# -- stores and clocks


async def stores(path: Path, clock: Clock) -> None:
    store: Checkpointer = MemoryCheckpointer(clock=ManualClock(), secret=b"x")
    async with SqliteCheckpointer(path, durability="relaxed", timeout=1.0, clock=SystemClock()) as opened:
        store = opened
    assert_type(open_checkpointer("sqlite:runs.db"), Checkpointer)
    assert_type(await store.due(limit=5), tuple[list[str], list[str]])
    assert_type(clock.now(), int)
    build(store)


class TestMine(CheckpointerContract):
    """All that the author of a store writes; the rest may be said too."""

    golden = [Path("mine-1.db")]  # noqa: RUF012  # as an author would

    def open(self, folder: Path, clock: Clock) -> MemoryCheckpointer:
        return MemoryCheckpointer(clock=clock)

    async def size(self, folder: Path) -> int:
        return 0

    async def work(self, store: Checkpointer) -> int:
        await fill(store)
        return 0
