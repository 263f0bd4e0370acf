"""What a process does before it dies: it tells each answer that it has had, then ends without any farewell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from stategraph.checkpoint import Checkpointer
from stategraph.context import Context
from stategraph.graph import StateGraph
from stategraph.state import AgentState
from stategraph.testing.byhand import GATE, begin, create, decide, signal, visit

__all__ = ["DEAD", "ORDEALS", "Tell", "walk"]

#: The exit code of a process that died as it should.
DEAD = 9
Tell = Callable[[object], None]


async def in_a_row(store: Checkpointer, tell: Tell) -> NoReturn:
    """Every kind of answer, one after the other; it dies while one more row is on its way."""
    lease = await create(store)
    for step in range(5):
        written = await store.append(lease, step, [visit(step, body=b'{"n":%d}' % step)], b"{}" if step == 3 else None)
        tell(["row", written])
    tell(["row", await store.append(lease, 5, [visit(5, "running", GATE)])])
    tell(["row", await decide(store, boundary="6.0")])
    await signal(store, "transfer")
    tell(["row", [8, "running", store.clock.now()]])
    effect = await begin(store, lease, "told", "told", step=6)
    assert effect is not None
    assert await store.effect_end("r", "told", "told", b'{"sent":1}') is not None
    tell(["outcome", "told"])
    await begin(store, lease, "lost", "lost", step=6)
    tell(["intent", "lost"])
    under_way = asyncio.ensure_future(store.append(lease, 8, [visit(7)]))
    await asyncio.sleep(0)  # it has begun
    assert not under_way.cancelled()
    os._exit(DEAD)


async def side_by_side(store: Checkpointer, tell: Tell) -> NoReturn:
    """Many runs at once; it dies as soon as so many rows are acknowledged, in the middle of the others'."""
    told = 0

    async def drive(run_id: str) -> None:
        nonlocal told
        lease = await create(store, run_id)
        for step in range(100):
            written = await store.append(lease, step, [visit(step)])
            tell([run_id, written])
            told += 1
            if told == 100:
                os._exit(DEAD)

    await asyncio.gather(*(drive(f"r{number}") for number in range(8)))
    raise AssertionError("it has survived")


def walk(store: Checkpointer, work: Callable[[], None] = lambda: None) -> StateGraph:
    """first -> mail (an effect) -> last; each counts how often it has run, and `work` is what the last does."""

    async def mail(state: AgentState, ctx: Context) -> dict[str, Any]:
        return {"mail": await ctx.once("mail", lambda: "sent")}

    def last(state: AgentState) -> dict[str, Any]:
        work()
        return {"last": state["first"] + 1}

    graph = StateGraph(store, name="walk").add_node("first", lambda state: {"first": state.get("first", 0) + 1})
    graph.add_node("mail", mail).add_node("last", last)
    return graph.set_entry_point("first").add_edge("first", "mail").add_edge("mail", "last")


async def in_a_node(store: Checkpointer, tell: Tell) -> NoReturn:
    """A graph's run; it dies in the last node."""
    await walk(store, lambda: os._exit(DEAD)).run({}, "r")
    raise AssertionError("it has survived")


ORDEALS: dict[str, Callable[[Checkpointer, Tell], Coroutine[Any, Any, NoReturn]]] = {
    "in a row": in_a_row,
    "side by side": side_by_side,
    "in a node": in_a_node,
}
