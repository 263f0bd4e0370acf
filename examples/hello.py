"""The smallest graph: two nodes in a row, run to the end in this process."""

from stategraph import AgentState, StateGraph

graph = StateGraph(name="hello")


@graph.node
def greet(state: AgentState) -> dict[str, str]:
    return {"greeting": f"Hello, {state['name']}"}


@graph.node
def cheer(state: AgentState) -> dict[str, str]:
    return {"greeting": state["greeting"] + "!"}


graph.set_entry_point("greet").add_edge("greet", "cheer")

if __name__ == "__main__":
    run = graph.run_sync({"name": "Ann"})
    print(run.status, "-", run.state["greeting"])
