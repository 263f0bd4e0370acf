"""Every event of a run as it happens, and again from the log for a reader that comes back."""

import asyncio

from stategraph import AgentState, Context, Cursor, StateGraph
from stategraph.events import Completed, Custom, NodeStart, StateUpdate, Token


async def write(state: AgentState, ctx: Context) -> dict[str, str]:
    words = f"A poem about {state['topic']}".split()
    for word in words:
        ctx.token(word + " ")  # heard by who listens now, and not kept
    ctx.emit({"words": len(words)})  # kept with the node's checkpoint
    return {"poem": " ".join(words)}


def praise(state: AgentState) -> dict[str, list[str]]:
    return {"messages": ["Well done"]}


async def main() -> None:
    graph = StateGraph(name="poem")
    graph.add_node("write", write).add_node("praise", praise)
    graph.set_entry_point("write").add_edge("write", "praise")

    seen: list[Cursor] = []
    async for event in graph.stream({"topic": "rain"}, run_id="poem-1"):
        match event:
            case NodeStart():
                print(f"{event.node_name} starts")
            case Token():
                print(f"  token  {event.payload['text']!r}")
            case Custom():
                print(f"  told   {event.payload}")
            case StateUpdate():
                print(f"  stored {event.payload['delta']}")
            case Completed():
                print(f"the end {event.payload['final_state']}")
        if event.cursor is not None:
            seen.append(event.cursor)

    print(f"a reader that had seen {seen[1]} gets the rest:")
    async for event in graph.events("poem-1", after=seen[1]):
        print(f"  {event.cursor} {event.event_type} {event.node_name}")


if __name__ == "__main__":
    asyncio.run(main())
