"""A graph, and a run in it, as pictures and as text."""

import asyncio
import tempfile
from pathlib import Path

from checkpointers import MemoryCheckpointer
from stategraph import AgentState, StateGraph


def check(state: AgentState) -> dict[str, str]:
    return {"known": "yes" if state["customer"] == "ann" else "no"}


def pay(state: AgentState) -> dict[str, str]:
    return {"status": "paid"}


async def main() -> None:
    graph = StateGraph(MemoryCheckpointer(), name="payment")
    graph.add_node("check", check, reads=["customer"], writes=["known"])
    graph.add_node("pay", pay, irreversible=True, writes=["status"])
    graph.set_entry_point("check")
    graph.add_conditional_edge("check", lambda state: state["known"], {"yes": "pay", "no": "END"})
    graph.add_interrupt_before("pay", approvers=["bob"], expires_in=3600)

    with tempfile.TemporaryDirectory() as folder:
        for name in ("payment.svg", "payment.dot", "payment.mmd", "payment.md"):
            graph.draw(Path(folder) / name)  # the suffix says what is drawn
            print(name, "written")

        run = await graph.run({"customer": "ann"})
        graph.draw(Path(folder) / "run.svg", run=run, history=await graph.history(run.run_id))
        print("run.svg written, it shows:", run.status)

    print(graph.draw(format="table"), end="")


if __name__ == "__main__":
    asyncio.run(main())
