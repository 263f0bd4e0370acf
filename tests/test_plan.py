"""A broken graph is refused when it is put together, with every fault and its fix; a plan says where each answer leads."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import pytest

import stategraph
from checkpointers import MemoryCheckpointer
from stategraph import END, Checkpointer, GraphError, Plan, Retry, RouteError, StateGraph
from stategraph.plan import Edge

if TYPE_CHECKING:
    from collections import ChainMap


def nothing(state: Any) -> None:
    """A node that changes nothing."""


async def nothing_async(state: Any) -> None:
    """The same."""


def row(*names: str) -> StateGraph:
    """A graph of these nodes one after the other."""
    graph = StateGraph(MemoryCheckpointer())
    for name in names:
        graph.add_node(name, nothing)
    for source, target in pairwise(names):
        graph.add_edge(source, target)
    return graph.set_entry_point(names[0])


def faults(graph: StateGraph) -> tuple[str, ...]:
    with pytest.raises(GraphError) as caught:
        graph.plan()
    assert str(caught.value) == "\n".join(caught.value.faults)
    return caught.value.faults


# -- what is refused


@pytest.mark.parametrize(
    ("declare", "fault"),
    [
        (lambda g: g.add_edge("b", "refnd"), "unknown node 'refnd' (the target of an edge from 'b'); did you mean 'refund'?"),
        (lambda g: g.add_edge("x", "b"), "unknown node 'x' (an edge's source)"),
        (lambda g: g.add_edge("b", None), "unknown node None (the target of an edge from 'b')"),
        (lambda g: g.set_entry_point("nowhere"), "unknown node 'nowhere' (the entry point)"),
        (lambda g: g.add_conditional_edge("y", lambda s: "b"), "unknown node 'y' (a conditional edge's source)"),
        (
            lambda g: g.add_conditional_edge("refund", lambda s: "b", ["b", "planer"]),
            "unknown node 'planer' (a target of the router after 'refund')",
        ),
        (lambda g: g.add_interrupt_before("refnd"), "unknown node 'refnd' (an interrupt-before point); did you mean 'refund'?"),
        (lambda g: g.add_interrupt_before("b", on_reject="c"), "unknown node 'c' (on_reject of the gate before 'b')"),
        (lambda g: g.add_edge("END", "b"), "an edge's source is 'END', the place where a run is completed; name a node"),
        (lambda g: g.set_entry_point("END"), "the entry point is 'END'"),
        (lambda g: g.add_interrupt_before("END"), "an interrupt-before point is 'END'"),
        (lambda g: g.add_node("b", nothing), "node 'b' is added twice; rename one, or use replace_node('b', ...)"),
        (lambda g: g.add_node("lost", nothing), "'lost' can never be reached from 'a'; add an edge to it, or remove it"),
        (
            lambda g: g.add_node("spin", nothing).add_edge("spin", "spin").add_conditional_edge("refund", typed, ["spin", "END"]),
            "'spin' can never reach END; give its loop a way out (a router that may answer 'END')",
        ),
        (lambda g: g.add_edge("a", "refund"), "'a' forks to 'b', 'refund'; forks are not supported in this version"),
        (
            lambda g: g.add_conditional_edge("b", lambda s: "refund").add_conditional_edge("b", lambda s: "refund"),
            "'b' has two routers; one conditional edge per node",
        ),
        (lambda g: g.add_conditional_edge("b", lambda s: "refund", []), "the router after 'b' has no targets"),
        (lambda g: g.add_conditional_edge("b", nothing_async), "the router after 'b' is async; a router is a plain function"),
        (lambda g: g.add_conditional_edge("b", None), "the router after 'b' is no function"),
        (lambda g: g.add_interrupt_before("b").add_interrupt_before("b"), "'b' has two interrupt-before points; declare it once"),
        (lambda g: g.add_interrupt_before("b", on_reject="b"), "the gate before 'b' leads back to itself"),
        (
            lambda g: g.add_interrupt_before("b", on_expire="END", expires_in=5),
            "the gate before 'b' has on_expire but no on_reject",
        ),
        (
            lambda g: g.add_interrupt_before("b", on_reject="END", on_expire="END"),
            "the gate before 'b' has on_expire but never expires",
        ),
        (lambda g: g.add_interrupt_before("b", expires_in=0), "the gate before 'b' has expires_in=0; give it seconds, more than 0"),
        (lambda g: g.add_interrupt_before("b", approvers=[]), "the gate before 'b' has no approvers, so nobody may decide it"),
        (lambda g: more(g, irreversible=True, retry=3), "'more' is irreversible and would be retried by itself"),
        (lambda g: more(g, timeout=5), "'more' has a timeout but blocks the event loop, so nothing can stop it"),
        (lambda g: more(g, nothing_async, timeout=0), "'more' has timeout=0; timeout=<seconds>, more than 0"),
        (lambda g: more(g, nothing_async, blocking=True), "'more' is async, so it does not block; drop blocking=True"),
        (lambda g: more(g, retry=0), "'more' has a retry of attempts=0, which counts the first run too"),
        (lambda g: more(g, retry=Retry(attempts=-1)), "'more' has a retry of attempts=-1, which counts the first run too"),
        (lambda g: more(g, 5), "'more' is 5, which is no function; a node is a function of the state"),
        (lambda g: more(g, StateGraph()), "which is no function; a node is a function of the state"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_names_and_its_fix(declare: Callable[[StateGraph], Any], fault: str) -> None:
    """One fault each, found before anything runs."""
    graph = row("a", "b", "refund")
    declare(graph)
    (found,) = faults(graph)
    assert fault in found


def more(graph: StateGraph, function: Any = nothing, **declared: Any) -> None:
    graph.add_node("more", function, **declared).add_edge("refund", "more")


def test_every_fault_is_told_at_once() -> None:
    """Not one after the other, each after a mend."""
    graph = row("a", "b").add_edge("b", "c").add_interrupt_before("d")
    assert [fault.split(" (")[0] for fault in faults(graph)] == ["unknown node 'c'", "unknown node 'd'"]


def test_an_empty_graph_says_what_it_lacks() -> None:
    """Nodes and an entry point."""
    assert faults(StateGraph()) == (
        "the graph has no nodes; add_node(name, function)",
        "the graph has no entry point; set_entry_point(name)",
    )


def test_a_gate_and_an_irreversible_node_need_a_checkpointer() -> None:
    """What may wait for days, or must never be repeated, cannot live in this process alone."""
    graph = StateGraph().add_node("a", nothing, irreversible=True).set_entry_point("a").add_interrupt_before("a")
    assert faults(graph) == (
        "the gate before 'a' has no checkpointer to wait in; StateGraph(checkpointer)",
        "'a' is irreversible but the graph has no checkpointer; StateGraph(checkpointer)",
    )


@pytest.mark.parametrize("name", ["", "END", "a\nb", "\x00", "a" * 201, "\ud800", 5, None])
def test_a_name_that_nobody_could_read_is_refused_at_once(name: Any) -> None:
    """By `add_node`: later messages would be about it."""
    with pytest.raises(GraphError, match="is no name for a node"):
        StateGraph().add_node(name, nothing)


@pytest.mark.parametrize("max_steps", [0, -1, "5", 2.5])
def test_a_budget_of_no_steps_is_refused(max_steps: Any) -> None:
    """When the graph is made."""
    with pytest.raises(GraphError, match="a graph needs a budget of at least one step"):
        StateGraph(max_steps=max_steps)


def test_a_lease_of_no_time_is_refused() -> None:
    """Every driver would be thought dead."""
    with pytest.raises(GraphError, match="lease=0"):
        StateGraph(lease=0)


def test_a_url_is_no_checkpointer() -> None:
    """The message says how to open it."""
    with pytest.raises(GraphError, match=r"StateGraph\(open_checkpointer\('sqlite:runs\.db'\)\)"):
        StateGraph("sqlite:runs.db")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "declare",
    [
        lambda g: g.add_conditional_edge("a", lambda s: "b", "b"),
        lambda g: g.add_interrupt_before("b", approvers="alice"),
    ],
)
def test_one_string_is_no_list_of_names(declare: Callable[[StateGraph], Any]) -> None:
    """It would be taken letter by letter."""
    graph = row("a", "b")
    with pytest.raises(TypeError, match="is one string"):
        declare(graph).plan()


async def test_a_broken_graph_runs_nothing_and_stores_nothing(checkpointer: Checkpointer) -> None:
    """Every way in checks the plan first."""
    graph = StateGraph(checkpointer).add_node("a", nothing).set_entry_point("a").add_edge("a", "b")
    with pytest.raises(GraphError):
        await graph.run({}, "r")
    with pytest.raises(GraphError):
        await anext(graph.stream({}, "r"))
    assert await checkpointer.runs() == []


async def test_without_a_checkpointer_a_graph_runs_in_memory() -> None:
    """And its runs can be looked at while it lives."""
    graph = StateGraph().add_node("a", lambda state: {"n": 1}).set_entry_point("a")
    assert (await graph.run({}, "r")).status == "completed"
    assert await graph.state("r") == {"n": 1}


# -- routers


def typed(state: Any) -> Literal["b", "END"]:
    return "END"


Answer = Literal["b"]


def aliased(state: Any) -> Answer | Literal["END"]:
    return "b"


def unreadable(state: ChainMap[str, str]) -> str:  # a name that is known to a type checker alone
    return "b" if state else "END"


class Router:
    def __call__(self, state: Any) -> Literal["b", "END"]:
        return "b"


class Plain:
    def route(self, state: Any) -> str:
        return {"b": "b"}.get(state["x"], "END")


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


def with_choice(choice: str, state: Any) -> str:
    return "b" if choice else "END"


@pytest.mark.parametrize(
    ("router", "targets", "known_by", "expected"),
    [
        (lambda s: "b" if s else "END", None, "inferred", {"b", "END"}),
        (lambda s: {"yes": "b"}[s["x"]], None, "inferred", {"b"}),
        (lambda s: next(n for n in ("b", "END") if n), None, "inferred", {"b", "END"}),
        (unreadable, None, "inferred", {"b", "END"}),
        (Plain().route, None, "inferred", {"b", "END"}),
        (functools.partial(with_choice, ""), None, "inferred", {"b", "END"}),
        (typed, None, "typed", {"b", "END"}),
        (aliased, None, "typed", {"b", "END"}),
        (Router(), None, "typed", {"b", "END"}),
        (decorated(typed), None, "typed", {"b", "END"}),
        (lambda s: s["next"], None, "unknown", {"a", "b", "END"}),
        (lambda s: s["next"], ["b"], "declared", {"b"}),
        (typed, ["b"], "declared", {"b"}),
        (lambda s: "yes", {"yes": "b", "no": "END"}, "declared", {"b", "END"}),
    ],
)
def test_a_routers_targets_are_found(router: Any, targets: Any, known_by: str, expected: set[str]) -> None:
    """Declared, typed, or read from its code; a router that may answer anything may answer any node."""
    graph = row("a", "b").add_conditional_edge("a", router, targets)
    plan = graph.plan()
    assert plan.routers["a"].known_by == known_by
    assert {edge.target for edge in plan.edges if edge.source == "a"} == expected
    assert {edge.inferred for edge in plan.edges if edge.source == "a"} == {known_by in ("inferred", "unknown")}


def test_a_mapping_of_answers_labels_the_edges() -> None:
    """The answer is the label, the node is where it leads."""
    plan = row("a", "b").add_conditional_edge("a", lambda s: "yes", {"yes": "b", "no": "END"}).plan()
    assert [(edge.label, edge.target) for edge in plan.edges if edge.source == "a"] == [("yes", "b"), ("no", "END")]
    assert plan.route("a", {}) == "b"


def test_a_router_wins_over_a_plain_edge() -> None:
    """The plain edge does not exist then."""
    plan = row("a", "b", "c").add_conditional_edge("a", lambda s: "c", ["b", "c"]).plan()
    assert plan.route("a", {}) == "c"
    assert [edge.kind for edge in plan.edges if edge.source == "a"] == ["answer", "answer"]


@pytest.mark.parametrize("answer", [None, "", "nowhere", "B", ["b"], ("b",), 5, {}, b"b", object()], ids=repr)
def test_an_answer_outside_the_targets_names_router_answer_and_choices(answer: Any) -> None:
    """Never guessed, never ignored."""
    plan = row("a", "b").add_conditional_edge("a", lambda s: answer, ["b", "END"]).plan()
    with pytest.raises(RouteError, match=r"^the router after 'a' answered .*; it may answer 'b', 'END'") as caught:
        plan.route("a", {})
    assert (caught.value.source, caught.value.answer, caught.value.choices) == ("a", answer, ("b", "END"))


@pytest.mark.parametrize(
    ("answer", "fix"),
    [
        (None, "answer 'END' to end the run"),
        ("", "answer 'END' to end the run"),
        ("reject_order", "did you mean 'reject_orders'"),
        (["reject_orders"], "a router answers one name in this version"),
    ],
)
def test_the_message_of_a_wrong_answer_says_what_to_do(answer: Any, fix: str) -> None:
    """The likely meaning of what was answered."""
    plan = row("a", "reject_orders").add_conditional_edge("a", lambda s: answer, ["reject_orders", "END"]).plan()
    with pytest.raises(RouteError, match=fix):
        plan.route("a", {})


def test_an_inferred_router_that_answers_another_node_is_told_to_declare_it() -> None:
    """What its code does not show cannot be drawn, so it is not taken either."""
    plan = row("a", "b", "c").add_conditional_edge("a", lambda s: "b" if not s else s["next"]).plan()
    with pytest.raises(RouteError, match=r"declare them with targets=\[\.\.\.\] or a Literal return type"):
        plan.route("a", {"next": "c"})


def test_a_coroutine_for_an_answer_is_refused_and_closed() -> None:
    """No warning of a coroutine that was never awaited follows."""
    made: list[Any] = []

    async def late() -> str:
        return "b"

    def route(state: Any) -> Any:
        made.append(late())
        return made[-1]

    plan = row("a", "b").add_conditional_edge("a", route, ["b", "END"]).plan()
    with pytest.raises(RouteError, match="a router is a plain function"):
        plan.route("a", {})
    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_a_router_that_promises_a_list_is_refused() -> None:
    """Chosen forks are not supported in this version, and never taken for a plain step."""

    def both(state: Any) -> list[Literal["b", "END"]]:
        return ["b"]

    router: Any = both
    (fault,) = faults(row("a", "b").add_conditional_edge("a", router, ["b", "END"]))
    assert "answers a list" in fault


# -- the plan


def test_the_edges_are_exactly_the_moves_a_run_can_make() -> None:
    """Plain ones, answers, rejections, expiries, and the missing edge to END."""
    graph = row("a", "b", "c").add_conditional_edge("b", typed, {"b": "c", "END": "END"})
    graph.add_interrupt_before("c", on_reject="a", on_expire="END", expires_in=60)
    assert graph.plan().edges == (
        Edge("a", "b", "plain"),
        Edge("b", "c", "answer", "b"),
        Edge("b", "END", "answer", "END"),
        Edge("c", "END", "plain"),
        Edge("c", "a", "rejected", "rejected"),
        Edge("c", "END", "expired", "expired"),
    )


def test_the_same_edge_twice_is_one_edge() -> None:
    """No fork."""
    assert row("a", "b").add_edge("a", "b").plan().route("a", {}) == "b"


def test_a_plan_does_not_change_when_its_graph_does() -> None:
    """What is walked is frozen; the graph makes a new plan."""
    graph = row("a", "b")
    plan = graph.plan()
    assert graph.plan() is plan
    graph.add_node("c", nothing).add_edge("b", "c")
    assert (plan.route("b", {}), graph.plan().route("b", {})) == ("END", "c")


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.add_node("c", nothing).add_edge("b", "c"),
        lambda g: g.add_interrupt_before("b"),
        lambda g: g.add_conditional_edge("b", typed, {"b": "a", "END": "END"}),
        lambda g: g.set_entry_point("b").add_edge("b", "a").add_conditional_edge("a", typed, ["END"]),
    ],
)
def test_a_fingerprint_tells_graphs_apart(change: Callable[[StateGraph], StateGraph]) -> None:
    """Names, edges, gates and the entry point count."""
    assert row("a", "b").plan().fingerprint != change(row("a", "b")).plan().fingerprint


def test_a_fingerprint_does_not_know_functions_or_the_order_of_declaration() -> None:
    """The same graph with other code is the same graph; so it is in another process."""
    first = row("a", "b").plan().fingerprint
    other = StateGraph(MemoryCheckpointer()).set_entry_point("a").add_edge("a", "b")
    other.add_node("b", lambda state: {"changed": True}).add_node("a", lambda state: None)
    assert other.plan().fingerprint == first
    assert first == "e620ca19ced30d2016c6530fe640ad4a"


def test_name_and_version_are_part_of_the_fingerprint() -> None:
    """A new version is another graph."""

    def make(**more: Any) -> str:
        return StateGraph(**more).add_node("a", nothing).set_entry_point("a").plan().fingerprint

    assert len({make(), make(name="refunds"), make(version="2")}) == 3


def _routed(router: Any) -> Plan:
    graph = StateGraph(name="p").add_node("a", lambda state: None).add_node("b", lambda state: None)
    return graph.set_entry_point("a").add_conditional_edge("a", router).plan()


def test_a_router_that_answers_the_constant_END_may_end_the_run() -> None:
    """The names of the door are answers like the strings that they stand for, imported or as attributes."""
    assert _routed(lambda state: "b" if state["go"] else END).answers("a") == {"b": "b", "END": "END"}
    assert _routed(lambda state: "b" if state["go"] else stategraph.END).answers("a") == {"b": "b", "END": "END"}


def test_a_key_or_a_comparison_is_no_answer() -> None:
    """What a router looks up, or compares with, is not where it goes."""
    graph = StateGraph(name="p").add_node("a", lambda state: None).add_node("b", lambda state: None)
    graph.set_entry_point("a").add_conditional_edge("a", lambda state: {True: "END", False: "END"}[state["b"] == "a"])
    with pytest.raises(GraphError, match="'b' can never be reached"):
        graph.plan()


def test_the_router_with_the_typo_is_named() -> None:
    """A node that nobody reaches because a router misspells it: the message says which router, and what it says."""
    with pytest.raises(GraphError, match="the router after 'a' says 'bb': did you mean 'b'"):
        _routed(lambda state: "bb" if state["x"] else "END")


def test_a_return_type_that_means_nothing_is_a_fault_where_nothing_else_tells_the_answers() -> None:
    """A name that cannot be resolved is not dropped: the router would lead anywhere."""

    def router(state: Any) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        return state["x"]

    with pytest.raises(GraphError, match="returns Nowhere, which means nothing"):
        _routed(router)


def test_a_node_that_takes_no_state_is_a_fault() -> None:
    """A signature that cannot be called is found before anything runs."""
    graph = StateGraph(name="p").add_node("a", lambda: None).set_entry_point("a")
    with pytest.raises(GraphError, match="'a' cannot be called with a state"):
        graph.plan()
