"""The workflow that is killed: five nodes, one gate, one effect done once and one irreversible node; and who brings it to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stategraph import AgentState, Checkpointer, Context, DecisionRefused, Run, StateGraph, UnknownRun
from stategraph.checkpoint import Policy
from tests.programs.ledger import lines, note

NODES = ("check", "mail", "pay", "ship", "close")
#: What the run has at its end, however often it was interrupted.
FINAL = {"amount": 7, "check": 0, "mail": True, "paid": 7, "ship": 3, "close": 4}


def build(
    checkpointer: Checkpointer,
    ledger: str | Path,
    policy: Policy = "ask",
    moment: Callable[[str], None] = lambda _: None,
    lease: float = 30,
) -> StateGraph:
    """check -> mail (once) -> [gate] pay (irreversible) -> ship -> close. `moment` is told what is about to happen and what has.

    With `policy="keyed"` the mail's receiver honours the key: it takes the same mail once, and says so.
    """

    def noted(line: str) -> None:
        moment(f"before {line}")
        note(ledger, line)
        moment(f"after {line}")

    def check(state: AgentState) -> dict[str, Any]:
        noted("run check")
        return {"check": 0}

    async def mail(state: AgentState, ctx: Context) -> dict[str, Any]:
        noted("run mail")

        def send() -> dict[str, Any]:
            mail = f"effect mail {ctx.idempotency_key}"
            if policy == "keyed" and mail in lines(ledger):
                return {"sent": True, "dedup_hit": True}
            noted(mail)
            return {"sent": True}

        return {"mail": (await ctx.once("mail", send, policy=policy))["sent"]}

    async def pay(state: AgentState, ctx: Context) -> dict[str, Any]:
        noted("run pay")
        noted(f"effect pay {ctx.idempotency_key}")
        return {"paid": state["amount"]}

    async def ship(state: AgentState) -> dict[str, Any]:
        noted("run ship")
        return {"ship": 3}

    def close(state: AgentState) -> dict[str, Any]:
        noted("run close")
        return {"close": 4}

    graph = StateGraph(checkpointer, name="order", lease=lease)
    graph.add_node("check", check).add_node("mail", mail).add_node("pay", pay, irreversible=True)
    graph.add_node("ship", ship).add_node("close", close).set_entry_point("check").add_interrupt_before("pay")
    graph.add_edge("check", "mail").add_edge("mail", "pay").add_edge("ship", "close")
    return graph.add_conditional_edge("pay", lambda state: "ship" if state["paid"] else "END", ["ship", "END"])


def truth(node: str, ledger: str | Path) -> tuple[str, dict[str, Any] | None]:
    """What a person who looks at the ledger answers to an effect in doubt."""
    if any(line.startswith(f"effect {node} ") for line in lines(ledger)):
        return "approved", {"sent": True} if node == "mail" else {"paid": 7}
    return "retry", None


async def finish(graph: StateGraph, ledger: str | Path, moment: Callable[[str], None] = lambda _: None) -> Run:
    """Bring the run `r` to its end from wherever it is, as a user would: start, click, answer truthfully, recover."""
    for _ in range(12):
        try:
            run = await graph.info("r")
        except UnknownRun:
            events = graph.stream({"amount": 7}, "r")
        else:
            if run.ended:
                return run
            waiting = run.waiting()
            if run.status != "pending":
                events = graph.recover("r")
            elif waiting[0].opening.kind == "approval":
                note(ledger, "click")
                events = graph.resume("r", "approved", boundary=waiting[0].id, by="ann", decision_id="click")
            else:
                decision, answer = truth(waiting[0].opening.node, ledger)
                events = graph.resume("r", decision, boundary=waiting[0].id, by="ops", answer=answer)
        async for event in events:
            moment(f"told {event.event_type} {event.node_name}")
    raise AssertionError(f"stuck: {await graph.info('r')}")


async def click_again(graph: StateGraph, run_id: str = "r") -> list[str]:
    """What is wrong with how a late click is answered: the same one as the first time, another one with a refusal."""
    (approval,) = [boundary for boundary in await graph.boundaries(run_id) if boundary.kind == "approval"]
    wrong = []
    again = await graph.decide(run_id, "approved", boundary=approval.id, by="ann", decision_id="click")
    if approval.decided is None or again.at_ms != approval.decided.at_ms or again.by != "ann":
        wrong.append(f"the same click is answered {again}")
    try:
        await graph.decide(run_id, "rejected", boundary=approval.id, by="eve")
        wrong.append("a later rejection was accepted")
    except DecisionRefused as refused:
        if (refused.by, refused.decision) != ("ann", "approved"):
            wrong.append(f"a later rejection was told {refused}")
    return wrong


async def report(graph: StateGraph, run_id: str = "r") -> dict[str, Any]:
    """What is stored of a finished run."""
    run, log, boundaries = await graph.info(run_id), await graph.history(run_id), await graph.boundaries(run_id)
    return {
        "status": run.status,
        "state": run.state,
        "seqs": [row.seq for row in log],
        "nodes": [row.node for row in log if row.kind == "node"],
        "approvals": [b.id for b in boundaries if b.kind == "approval"],
        "doubts": [[b.node, b.state] for b in boundaries if b.kind == "in_doubt"],
        "decisions": [[row.actor, row.act, row.decision] for row in log if row.act == "click"],
        "emits": [emit for row in log for emit in row.content.get("emits", ())],
        "late": await click_again(graph, run_id),
    }


def judged(told: dict[str, Any], ledger: list[str], policy: Policy) -> list[str]:
    """What is wrong with a finished run, by its log and by what has really happened."""
    mails = [line for line in ledger if line.startswith("effect mail ")]
    pays = [line for line in ledger if line.startswith("effect pay ")]
    clicks = [place for place, line in enumerate(ledger) if line == "click"]
    paid = [place for place, line in enumerate(ledger) if line == "run pay"]
    checks = {
        "completed": told["status"] == "completed",
        "the same state": told["state"] == FINAL,
        "a gap-free log": told["seqs"] == list(range(len(told["seqs"]))),
        "each node recorded once, in order": told["nodes"] == list(NODES),
        "the approval asked once": len(told["approvals"]) == 1,
        "decided once, by who clicked": told["decisions"] == [["ann", "click", "approved"]],
        "nothing paid before the click": clicks and paid and clicks[0] < paid[0],
        "paid once": len(pays) == 1,
        "mailed once": len(mails) == 1,
        "a keyed effect asks nobody": policy == "ask" or "mail" not in [node for node, _ in told["doubts"]],
        "late clicks are told": not told["late"],
    }
    return [f"not {check}" for check, holds in checks.items() if not holds]
