"""A refund: a small one goes straight through, a large one waits until a person has approved it."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from stategraph import Checkpointer, Context, StateGraph, append


class Refund(BaseModel):
    """What a run knows: the order, the amount in whole euros, and what has been done about it."""

    order: str
    amount: int = Field(gt=0)
    action: str | None = None
    approval_recorded: bool = False
    status: str | None = None
    messages: Annotated[list[dict[str, str]], append] = []


def planner(state: Refund) -> dict[str, object]:
    return {"action": "refund"}


def amount(state: Refund) -> Literal["over 500", "up to 500"]:
    return "over 500" if state.amount > 500 else "up to 500"


def human_approval(state: Refund) -> dict[str, object]:
    return {"approval_recorded": True}


def refund(state: Refund, ctx: Context) -> dict[str, object]:
    """Simulated: it adds a line to the file that REFUND_LEDGER names, if it names one.

    A payment provider would be given a key that names this refund in the business, not only in this run.
    """
    if ledger := os.environ.get("REFUND_LEDGER"):
        with open(ledger, "a", encoding="utf-8") as file:
            file.write(f"{ctx.run_id} order {state.order} amount {state.amount}\n")
    done = f"Simulated refund of {state.amount} for order {state.order}"
    return {"status": "success", "messages": [{"role": "tool", "content": done}]}


def build(checkpointer: Checkpointer) -> StateGraph:
    graph = StateGraph(checkpointer, state=Refund, name="refund")
    graph.add_node("planner", planner, reads=["order", "amount"], writes=["action"])
    graph.add_node("human_approval", human_approval, writes=["approval_recorded"])
    graph.add_node("refund", refund, irreversible=True, reads=["order", "amount"], writes=["status", "messages"])
    graph.set_entry_point("planner")
    graph.add_conditional_edge("planner", amount, {"over 500": "human_approval", "up to 500": "refund"})
    graph.add_edge("human_approval", "refund")
    graph.add_edge("refund", "END")
    graph.add_interrupt_before("human_approval")
    return graph
