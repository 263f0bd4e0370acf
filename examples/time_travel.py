"""A run's past: its state after every checkpoint, and a new run that starts from one of them."""

import asyncio
from typing import Literal

from checkpointers import MemoryCheckpointer
from stategraph import AgentState, StateGraph


def price(state: AgentState) -> dict[str, int]:
    return {"price": state["pieces"] * 100}


def discount(state: AgentState) -> dict[str, int]:
    return {"price": state["price"] * 9 // 10}


def invoice(state: AgentState) -> dict[str, str]:
    return {"invoice": f"{state['pieces']} pieces: {state['price']}"}


def size(state: AgentState) -> Literal["discount", "invoice"]:
    return "discount" if state["price"] >= 1000 else "invoice"


async def main() -> None:
    graph = StateGraph(MemoryCheckpointer(), name="sale")
    graph.add_node("price", price).add_node("discount", discount).add_node("invoice", invoice)
    graph.set_entry_point("price").add_conditional_edge("price", size).add_edge("discount", "invoice")
    graph.add_interrupt_before("invoice")

    async for _ in graph.stream({"pieces": 9}, run_id="sale-9"):
        pass
    async for _ in graph.resume("sale-9", "approved", by="ann"):
        pass
    for row in await graph.history("sale-9"):
        print(row.seq, row.kind, row.node or "", "->", dict(await graph.state("sale-9", at=row.seq)))

    # What if it had been twelve pieces? The new run has the state of checkpoint 0, one key changed, and no approval.
    fork = await graph.fork("sale-9", at=0, patch={"pieces": 12}, new_run_id="sale-12")
    print("forked:", fork)
    async for event in graph.resume("sale-12"):
        print(event.event_type, event.node_name)
    async for event in graph.resume("sale-12", "approved", by="ann"):
        print(event.event_type, event.node_name)
    print((await graph.state("sale-9"))["invoice"], "|", (await graph.state("sale-12"))["invoice"])


if __name__ == "__main__":
    asyncio.run(main())
