"""One decision per boundary: recorded once, before anything runs, never changed; every other click is told who was first."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import AsyncIterator
from typing import Any

import pydantic
import pytest

from stategraph import (
    DELETE,
    Checkpointer,
    Context,
    DecisionRefused,
    Event,
    ManualClock,
    RunNotClaimable,
    StateError,
    StateGraph,
)
from stategraph.deciding import decide


@pytest.fixture
def ran() -> list[str]:
    """Every node that ran, in order."""
    return []


@pytest.fixture
def two_gates(checkpointer: Checkpointer, ran: list[str]) -> StateGraph:
    """start, then first and second, each behind a gate."""
    graph = StateGraph(checkpointer).set_entry_point("start").add_edge("start", "first").add_edge("first", "second")
    for name in ("start", "first", "second"):
        graph.add_node(name, lambda state, name=name: ran.append(name))
    return graph.add_interrupt_before("first").add_interrupt_before("second")


def one_gate(checkpointer: Checkpointer, ran: list[str], **gate: Any) -> StateGraph:
    """start, then pay behind a gate; `drop` is where a rejection may lead."""
    graph = StateGraph(checkpointer).set_entry_point("start").add_edge("start", "pay")
    for name in ("start", "pay"):
        graph.add_node(name, lambda state, name=name: ran.append(name))
    others: set[str] = {name for key, name in gate.items() if key in ("on_reject", "on_expire")}
    for name in others - {"END", "start"}:
        graph.add_node(name, lambda state, name=name: ran.append(name))
    return graph.add_interrupt_before("pay", **gate)


async def told(events: AsyncIterator[Event]) -> list[str]:
    return [f"{event.event_type} {event.node_name}" async for event in events]


# -- one boundary, one decision


async def test_two_gates_in_a_row_are_two_decisions(two_gates: StateGraph, ran: list[str]) -> None:
    """An approval skips only its own boundary."""
    assert await told(two_gates.stream({}, "r")) == ["node_start start", "state_update start", "interrupted first"]
    assert await told(two_gates.resume("r", "approved")) == [
        "node_start first",
        "state_update first",
        "interrupted second",
    ]
    assert ran == ["start", "first"]
    assert (await told(two_gates.resume("r", "approved")))[-1] == "completed END"
    assert ran == ["start", "first", "second"]


async def test_a_stale_click_does_not_open_the_next_gate(two_gates: StateGraph, ran: list[str]) -> None:
    """The first approval sent twice: the second send is refused, and says who decided what and when."""
    events = [event async for event in two_gates.stream({}, "r")]
    first = events[-1].boundary.id  # type: ignore[union-attr]
    await told(two_gates.resume("r", "approved", boundary=first, by="alice"))
    for verdict in ("approved", "rejected"):
        with pytest.raises(
            DecisionRefused, match=r"boundary 'r:1\.0': already approved by alice at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        ) as caught:
            await told(two_gates.resume("r", verdict, boundary=first, by="bob"))
        assert (caught.value.by, caught.value.decision, caught.value.boundary) == ("alice", "approved", first)
        assert caught.value.at_ms is not None
    assert ran == ["start", "first"]
    assert [boundary.state for boundary in await two_gates.boundaries("r")] == ["approved", "open"]


async def test_the_same_decision_id_is_answered_as_the_first_time(two_gates: StateGraph, ran: list[str]) -> None:
    """A repeated click runs nothing and opens nothing: neither the gate it was about nor the next."""
    await told(two_gates.stream({}, "r"))
    first = await two_gates.decide("r", "approved", by="alice", note="ok", decision_id="click")
    again = await two_gates.decide("r", "approved", by="alice", decision_id="click")
    assert again == first
    await told(two_gates.resume("r"))
    assert await told(two_gates.resume("r", "approved", decision_id="click")) == []
    assert await two_gates.decide("r", "approved", decision_id="click") == first
    assert ran == ["start", "first"]
    assert (await two_gates.info("r")).status == "pending"


async def test_a_decision_id_that_was_used_for_something_else_is_refused(two_gates: StateGraph) -> None:
    """Another verdict, or another boundary."""
    await told(two_gates.stream({}, "r"))
    await two_gates.decide("r", "approved", by="alice", decision_id="click")
    with pytest.raises(DecisionRefused, match=r"decision id 'click' was used for another act \(approved by alice\)"):
        await two_gates.decide("r", "rejected", decision_id="click")
    await told(two_gates.resume("r"))
    (waiting,) = (await two_gates.info("r")).waiting()
    with pytest.raises(DecisionRefused, match="was used for another act"):
        await two_gates.decide("r", "approved", boundary=waiting.id, decision_id="click")
    assert (await two_gates.info("r")).status == "pending"


async def test_a_boundary_nobody_knows_is_refused_with_those_that_are_open(two_gates: StateGraph) -> None:
    """A typo, another run's, a future one."""
    await told(two_gates.stream({}, "r"))
    for boundary in ("r:9.0", "other:1.0", "nonsense", "", ":", "r:1.00"):
        with pytest.raises(DecisionRefused, match=r"run 'r' has no such boundary; open: r:1\.0"):
            await two_gates.decide("r", "approved", boundary=boundary)
    assert (await two_gates.decide("r", "approved", boundary="1.0")).decision == "approved"


@pytest.mark.parametrize(
    "verdict", ["maybe", "", "Approved", "approve", True, False, 1, ["approved"], "expired", "withdrawn"]
)
async def test_only_the_two_words_decide(two_gates: StateGraph, verdict: Any) -> None:
    """Everything else is a ValueError that says so, and the run is where it was."""
    await told(two_gates.stream({}, "r"))
    before = await two_gates.history("r")
    for call in (lambda: two_gates.decide("r", verdict), lambda: told(two_gates.resume("r", verdict))):
        with pytest.raises(ValueError, match="decision must be 'approved' or 'rejected', not "):
            await call()
    assert await two_gates.history("r") == before


async def test_retry_is_a_word_for_effects_in_doubt_alone(two_gates: StateGraph) -> None:
    """An approval is given or not."""
    await told(two_gates.stream({}, "r"))
    with pytest.raises(DecisionRefused, match="only an effect in doubt is retried"):
        await two_gates.decide("r", "retry")


async def test_a_missing_decision_is_no_decision(two_gates: StateGraph) -> None:
    """`resume(run_id, None)` drives; a run that waits is refused with what it waits for."""
    await told(two_gates.stream({}, "r"))
    with pytest.raises(RunNotClaimable, match=r"it waits for a decision of r:1\.0 \(before 'first'\)"):
        await told(two_gates.resume("r", None))


@pytest.mark.parametrize("ending", ["completed", "rejected", "cancelled"])
async def test_an_ended_run_takes_no_decision(checkpointer: Checkpointer, ran: list[str], ending: str) -> None:
    """The refusal says what happened to the boundary."""
    graph = one_gate(checkpointer, ran)
    await graph.run({}, "r")
    if ending == "cancelled":
        await graph.cancel("r", by="alice")
    else:
        await told(graph.resume("r", "approved" if ending == "completed" else "rejected", by="alice"))
    reason = {"completed": "already approved by alice", "rejected": "already rejected by alice"}.get(
        ending, "withdrawn when the run ended"
    )
    before = list(ran)
    with pytest.raises(DecisionRefused, match=reason):
        await told(graph.resume("r", "approved"))
    assert ran == before
    assert (await graph.info("r")).status == ending


async def test_two_decisions_at_once_are_one(two_gates: StateGraph, ran: list[str]) -> None:
    """Yes and no race: one is stored, each caller gets its own answer."""
    await told(two_gates.stream({}, "r"))
    answers = await asyncio.gather(
        *(two_gates.decide("r", "approved" if nth % 2 else "rejected", by=f"person {nth}") for nth in range(20)),
        return_exceptions=True,
    )
    stored = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(stored) == 1
    refused = [answer for answer in answers if isinstance(answer, DecisionRefused)]
    assert len(refused) == 19
    assert {(error.by, error.decision) for error in refused} == {(stored[0].by, stored[0].decision)}


# -- deciding is not driving


async def test_a_decision_runs_nothing(checkpointer: Checkpointer, ran: list[str]) -> None:
    """After `decide` the effect count is 0, after `resume` 1."""
    graph = one_gate(checkpointer, ran)
    await graph.run({}, "r")
    decision = await graph.decide("r", "approved")
    assert decision.by == getpass.getuser()
    assert (ran, (await graph.info("r")).status) == (["start"], "ready")
    assert await told(graph.resume("r")) == ["node_start pay", "state_update pay", "completed END"]
    assert ran == ["start", "pay"]


async def test_a_decision_needs_no_functions(checkpointer: Checkpointer, ran: list[str]) -> None:
    """Another program with another implementation of the graph may decide; nothing of it is run."""
    graph = one_gate(checkpointer, ran)
    await graph.run({}, "r")
    other: list[str] = []
    await one_gate(checkpointer, other).decide("r", "approved", by="alice")
    assert other == []
    await told(graph.resume("r"))
    assert ran == ["start", "pay"]


async def test_who_decided_why_and_when_is_kept(checkpointer: Checkpointer, clock: ManualClock, ran: list[str]) -> None:
    """With the boundary, in the log, and for every later reader."""
    graph = one_gate(checkpointer, ran)
    await graph.run({}, "r")
    clock.advance(86_400)
    await graph.decide("r", "rejected", by="bob", note="too much\nby far", decision_id="mail-17")
    (boundary,) = await graph.boundaries("r")
    decided = boundary.decided
    assert decided is not None
    assert (decided.by, decided.note, decided.act, decided.at_ms) == (
        "bob",
        "too much\nby far",
        "mail-17",
        clock.now(),
    )
    assert (boundary.opened_ms, boundary.state) == (clock.now() - 86_400_000, "rejected")


async def test_pause_decide_and_read_may_be_three_processes(open_store: Any, ran: list[str]) -> None:
    """Each with a store and a graph of its own on one file."""
    first = open_store()
    await one_gate(first, ran).run({}, "r")
    await first.close()
    second = open_store()
    await one_gate(second, ran).decide("r", "rejected", by="bob", note="not this one")
    await second.close()
    third = one_gate(open_store(), ran)
    (boundary,) = await third.boundaries("r")
    assert boundary.decided is not None
    assert (boundary.decided.by, boundary.decided.note) == ("bob", "not this one")
    assert ((await third.info("r")).status, ran) == ("rejected", ["start"])


@pytest.mark.parametrize(("by", "decision_id"), [(":clock", None), ("alice", ":expire 1.0")])
async def test_the_stores_own_names_cannot_be_taken(
    checkpointer: Checkpointer, ran: list[str], by: str, decision_id: str | None
) -> None:
    """Nobody decides in the clock's name."""
    graph = one_gate(checkpointer, ran)
    await graph.run({}, "r")
    with pytest.raises(DecisionRefused, match="must not be empty or begin with ':'"):
        await graph.decide("r", "approved", by=by, decision_id=decision_id)
    assert (await graph.info("r")).status == "pending"


async def test_a_decision_about_something_else_than_what_is_stored_is_refused(
    checkpointer: Checkpointer, ran: list[str]
) -> None:
    """The digest of what the person was shown must be that of the boundary: a stale page decides nothing."""
    graph = one_gate(checkpointer, ran)
    events = [event async for event in graph.stream({"amount": 5}, "r")]
    shown = events[-1].boundary.digest  # type: ignore[union-attr]
    await graph.run({"amount": 6}, "other")
    (other,) = await graph.boundaries("other")
    assert other.digest != shown
    with pytest.raises(DecisionRefused, match="what was shown is not what is stored"):
        await graph.decide("r", "approved", digest=other.digest)
    assert (await graph.decide("r", "approved", digest=shown)).decision == "approved"


async def test_the_digest_is_of_this_visit(checkpointer: Checkpointer, ran: list[str]) -> None:
    """The same node with the same state is another boundary when it is visited again."""
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).set_entry_point("a").add_interrupt_before("a")
    graph.add_conditional_edge("a", lambda state: "a", ["a", "END"])
    await graph.run({}, "r")
    await told(graph.resume("r", "approved"))
    first, second = await graph.boundaries("r")
    assert first.digest != second.digest


# -- rejection


async def test_a_rejection_ends_the_run(checkpointer: Checkpointer, ran: list[str]) -> None:
    """The gated node runs 0 times; history has who and why; a later approval is refused."""
    graph = one_gate(checkpointer, ran)
    await graph.run({}, "r")
    assert await told(graph.resume("r", "rejected", by="bob", note="no")) == ["rejected pay"]
    assert (await graph.info("r")).status == "rejected"
    with pytest.raises(DecisionRefused, match="already rejected by bob"):
        await told(graph.resume("r", "approved"))
    assert await told(graph.resume("r")) == ["rejected pay"]
    assert ran == ["start"]
    assert (await graph.history("r"))[-1].content["note"] == "no"


async def test_a_rejection_may_lead_somewhere(checkpointer: Checkpointer, ran: list[str]) -> None:
    """To `on_reject`: the gated node runs 0 times, costs no step, and the run goes on."""
    graph = one_gate(checkpointer, ran, on_reject="drop")
    await graph.run({}, "r")
    assert await told(graph.resume("r", "rejected")) == ["node_start drop", "state_update drop", "completed END"]
    run = await graph.info("r")
    assert (ran, run.status, run.steps) == (["start", "drop"], "completed", 2)


async def test_a_rejection_may_lead_to_the_end(checkpointer: Checkpointer, ran: list[str]) -> None:
    """`on_reject="END"` completes the run instead of rejecting it."""
    graph = one_gate(checkpointer, ran, on_reject="END")
    await graph.run({}, "r")
    assert await told(graph.resume("r", "rejected")) == ["completed END"]
    assert (await graph.info("r")).status == "completed"


async def test_a_rejection_may_lead_back_and_the_gate_is_asked_again(
    checkpointer: Checkpointer, ran: list[str]
) -> None:
    """A new visit is a new boundary."""
    graph = one_gate(checkpointer, ran, on_reject="start")
    await graph.run({}, "r")
    events = await told(graph.resume("r", "rejected"))
    assert events == ["node_start start", "state_update start", "interrupted pay"]
    assert [boundary.state for boundary in await graph.boundaries("r")] == ["rejected", "open"]
    await told(graph.resume("r", "approved"))
    assert ran == ["start", "start", "pay"]


async def test_a_rejection_may_lead_to_another_gate(checkpointer: Checkpointer, ran: list[str]) -> None:
    """Which is asked like any other."""
    graph = one_gate(checkpointer, ran, on_reject="drop").add_interrupt_before("drop")
    await graph.run({}, "r")
    assert await told(graph.resume("r", "rejected")) == ["interrupted drop"]
    assert ran == ["start"]


async def test_a_denial_can_be_the_next_nodes_input(checkpointer: Checkpointer, ran: list[str]) -> None:
    """A node at `on_reject` may store what the program needs of it: the run does not end rejected."""
    graph = one_gate(checkpointer, ran, on_reject="denied")
    graph.replace_node("denied", lambda state: {"approved": False})
    graph.add_node("after", lambda state: {"saw": state["approved"]}).add_edge("denied", "after")
    await graph.run({}, "r")
    await told(graph.resume("r", "rejected"))
    assert await graph.state("r") == {"approved": False, "saw": False}


# -- approval with an edit


class Payment(pydantic.BaseModel):
    amount: int = 5
    tags: list[str] = []


async def test_an_edit_at_the_approval_is_what_the_node_sees(checkpointer: Checkpointer) -> None:
    """Each key is replaced, also one that appends; DELETE removes one."""
    seen: list[Any] = []
    graph = StateGraph(checkpointer).add_node("pay", lambda state: seen.append(dict(state))).set_entry_point("pay")
    graph.add_interrupt_before("pay")
    await graph.run({"amount": 5, "messages": ["a"], "secret": 1}, "r")
    await told(graph.resume("r", "approved", edit={"amount": 3, "messages": ["b"], "secret": DELETE}))
    assert seen == [{"amount": 3, "messages": ["b"]}]
    assert (await graph.history("r"))[1].content["edit"] == {
        "set": {"amount": 3, "messages": ["b"]},
        "delete": ["secret"],
    }


@pytest.mark.parametrize(
    ("edit", "path"),
    [({"amount": "much"}, "$.amount"), ({"tags": [1]}, "$.tags[0]"), ({"amuont": 1}, "$.amuont"), ({5: 1}, "$")],
)
async def test_an_edit_that_does_not_fit_decides_nothing(checkpointer: Checkpointer, edit: Any, path: str) -> None:
    """It is validated like a node's delta, before the decision is recorded."""
    graph = StateGraph(checkpointer, state=Payment).add_node("pay", lambda state: None).set_entry_point("pay")
    graph.add_interrupt_before("pay")
    await graph.run({}, "r")
    with pytest.raises(StateError) as caught:
        await graph.decide("r", "approved", edit=edit)
    assert caught.value.path == path
    assert (await graph.info("r")).status == "pending"


async def test_what_would_change_nothing_is_refused(checkpointer: Checkpointer, ran: list[str]) -> None:
    """An edit with a rejection, an answer to an approval."""
    graph = one_gate(checkpointer, ran, on_reject="drop")
    await graph.run({}, "r")
    with pytest.raises(DecisionRefused, match="only an approval can change the state"):
        await graph.decide("r", "rejected", edit={"amount": 1})
    with pytest.raises(DecisionRefused, match="an approval takes no answer"):
        await graph.decide("r", "approved", answer=5)
    assert (await graph.info("r")).status == "pending"


# -- who may decide


async def test_only_an_approver_may_decide(checkpointer: Checkpointer, ran: list[str]) -> None:
    """Neither approve nor reject; the refusal names who may."""
    graph = one_gate(checkpointer, ran, approvers=["alice", "bob"])
    await graph.run({}, "r")
    for verdict in ("approved", "rejected"):
        with pytest.raises(DecisionRefused, match="'mallory' may not decide it; approvers: alice, bob"):
            await graph.decide("r", verdict, by="mallory")
    assert (await graph.info("r")).status == "pending"
    assert (await graph.decide("r", "approved", by="bob")).by == "bob"


async def test_the_approvers_are_those_at_the_pause(checkpointer: Checkpointer, ran: list[str]) -> None:
    """A changed declaration does not change who was asked."""
    await one_gate(checkpointer, ran, approvers=["alice"]).run({}, "r")
    changed = one_gate(checkpointer, ran, approvers=["mallory"])
    with pytest.raises(DecisionRefused, match="approvers: alice"):
        await changed.decide("r", "approved", by="mallory")


# -- a slow human


async def test_waiting_costs_nothing(checkpointer: Checkpointer, clock: ManualClock, ran: list[str]) -> None:
    """An answer a day later, node timeouts and budgets notwithstanding."""

    async def pay(state: Any) -> None:
        ran.append("pay")

    graph = StateGraph(checkpointer, 2).add_node("start", lambda state: ran.append("start"))
    graph.add_node("pay", pay, timeout=1).set_entry_point("start").add_edge("start", "pay").add_interrupt_before("pay")
    await graph.run({}, "r")
    clock.advance(86_400)
    assert (await told(graph.resume("r", "approved")))[-1] == "completed END"
    run = await graph.info("r")
    assert (ran, run.steps, run.usage["active_ms"] < 60_000) == (["start", "pay"], 2, True)


@pytest.mark.parametrize(
    ("gate", "events", "status"),
    [
        ({}, ["rejected pay"], "rejected"),
        ({"on_reject": "drop"}, ["node_start drop", "state_update drop", "completed END"], "completed"),
        (
            {"on_reject": "drop", "on_expire": "late"},
            ["node_start late", "state_update late", "completed END"],
            "completed",
        ),
        ({"on_reject": "drop", "on_expire": "END"}, ["completed END"], "completed"),
    ],
    ids=["nothing declared", "on_reject", "on_expire", "on_expire END"],
)
async def test_a_boundary_expires(
    checkpointer: Checkpointer, clock: ManualClock, ran: list[str], gate: Any, events: list[str], status: str
) -> None:
    """When its time has come, the declared edge is taken at the next drive; the gated node does not run."""
    graph = one_gate(checkpointer, ran, expires_in=3600, **gate)
    paused = [event async for event in graph.stream({}, "r")]
    assert paused[-1].boundary.expires_at == clock.now() + 3_600_000  # type: ignore[union-attr]
    clock.advance(3599.999)
    with pytest.raises(RunNotClaimable):
        await told(graph.resume("r"))
    clock.advance(0.001)
    assert await told(graph.resume("r")) == events
    assert (await graph.info("r")).status == status
    assert "pay" not in ran
    assert (await graph.boundaries("r"))[0].state == "expired"


@pytest.mark.parametrize("call", ["decide", "resume"])
async def test_a_late_yes_is_refused(checkpointer: Checkpointer, clock: ManualClock, ran: list[str], call: str) -> None:
    """As late: the clock was first."""
    graph = one_gate(checkpointer, ran, expires_in=60, on_reject="drop")
    await graph.run({}, "r")
    clock.advance(60)
    with pytest.raises(DecisionRefused, match="expired"):
        await (graph.decide("r", "approved") if call == "decide" else told(graph.resume("r", "approved")))
    await told(graph.resume("r"))
    assert ran == ["start", "drop"]


async def test_a_late_yes_is_refused_before_the_clock_has_decided(
    checkpointer: Checkpointer, clock: ManualClock, ran: list[str]
) -> None:
    """By the store itself, for whoever decides without the graph."""
    await one_gate(checkpointer, ran, expires_in=60).run({}, "r")
    clock.advance(60)
    with pytest.raises(DecisionRefused, match="it expired at"):
        await decide(checkpointer, "r", "approved")
    (boundary,) = await checkpointer.boundaries("r")
    assert boundary.state == "open"


async def test_a_yes_in_time_stops_the_clock(checkpointer: Checkpointer, clock: ManualClock, ran: list[str]) -> None:
    """A decided boundary does not expire, however late its run goes on."""
    graph = one_gate(checkpointer, ran, expires_in=60)
    await graph.run({}, "r")
    await graph.decide("r", "approved")
    clock.advance(86_400)
    assert (await told(graph.resume("r")))[-1] == "completed END"
    assert ran == ["start", "pay"]


# -- cancelling a run that waits


async def test_cancelling_a_waiting_run_is_compare_and_set(checkpointer: Checkpointer, ran: list[str]) -> None:
    """True, then False; an approval afterwards is refused, and nothing runs."""
    graph = one_gate(checkpointer, ran)
    await graph.run({}, "r")
    assert await graph.cancel("r", by="alice", note="enough") is True
    assert await graph.cancel("r") is False
    assert (await graph.info("r")).status == "cancelled"
    with pytest.raises(DecisionRefused, match="withdrawn when the run ended"):
        await told(graph.resume("r", "approved"))
    (boundary,) = await graph.boundaries("r")
    assert (boundary.state, ran) == ("withdrawn", ["start"])
    assert (await graph.history("r"))[-1].content == {"note": "enough"}


# -- an approved effect


async def test_an_approved_nodes_result_is_its_delta(checkpointer: Checkpointer) -> None:
    """The effect runs at the resume, once, and what it gave is in the state."""

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        return {"receipt": await ctx.once("charge", lambda: {"id": 17})}

    graph = StateGraph(checkpointer).add_node("pay", pay).set_entry_point("pay").add_interrupt_before("pay")
    await graph.run({}, "r")
    await told(graph.resume("r", "approved"))
    assert await graph.state("r") == {"receipt": {"id": 17}}


async def test_a_run_between_two_people_says_so(two_gates: StateGraph) -> None:
    """An approved run that nobody has driven yet is `ready`, and its next boundary does not exist."""
    await told(two_gates.stream({}, "r"))
    await two_gates.decide("r", "approved", by="alice")
    with pytest.raises(DecisionRefused, match="already approved by alice"):
        await two_gates.decide("r", "approved", by="bob")
    run = await two_gates.info("r")
    assert (run.status, run.waiting()) == ("ready", [])
