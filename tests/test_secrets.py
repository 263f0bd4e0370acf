"""Keys that are declared secret: nodes have their values, and nobody is shown them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, TypedDict

import pytest

from checkpointers import EncryptedCheckpointer, SqliteCheckpointer
from stategraph import Checkpointer, Context, GraphError, StateGraph, Worker
from stategraph.cli.app import main
from stategraph.events import Event

CANARY = "canary-4111-1111"
KEY = bytes(32)


def paying(store: Checkpointer | None, *, fails: bool = False) -> StateGraph:
    """quote, a gate, pay; the card is secret, and so is what is found out about it."""
    graph = StateGraph(store, name="pays", secrets=["card", "found", "messages"])
    graph.set_entry_point("quote").add_edge("quote", "pay").add_edge("pay", "END")

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        assert state["card"] == CANARY
        if fails:
            raise OSError(f"the bank does not know {state['card']} nor {state['found']['number']}")
        return {"paid": True, "found": {"number": f"{CANARY}-2"}}

    graph.add_node("quote", lambda state: {"found": {"number": state["card"]}, "messages": [state["card"]], "price": 7})
    return graph.add_node("pay", pay).add_interrupt_before("pay")


async def told(graph: StateGraph) -> list[Event]:
    """Every event of a run that is approved with an edit, live and from the log."""
    heard = [event async for event in graph.stream({"card": CANARY, "order": "A-1"}, "r")]
    edit = {"card": CANARY, "order": "A-2"}
    heard += [event async for event in graph.resume("r", "approved", by="ann", edit=edit)]
    return heard + [event async for event in graph.events("r")]


async def test_no_event_tells_a_secret(checkpointer: Checkpointer) -> None:
    """What is not secret is told, and where a secret was set there is a mask."""
    graph = paying(checkpointer)
    lines = [event.model_dump_json() for event in await told(graph)]
    assert not [line for line in lines if CANARY in line]
    assert [line for line in lines if '"card":"***"' in line]
    assert [line for line in lines if '"order":"A-2"' in line]
    assert (await graph.info("r")).state["card"] == CANARY


async def test_a_failure_is_stored_and_logged_without_secrets(
    checkpointer: Checkpointer, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a node says in its exception; whoever drives it is given the exception as it was raised."""
    graph = paying(checkpointer, fails=True)
    await graph.run({"card": CANARY}, "r")
    await graph.decide("r", "approved", by="ann")
    with caplog.at_level(logging.DEBUG):
        await Worker(graph).poll()
    run = await graph.info("r")
    assert (run.status, run.error) == ("failed", "OSError: the bank does not know *** nor ***")
    assert "the bank does not know ***" in caplog.text
    assert CANARY not in caplog.text
    assert not [event for event in [e async for e in graph.events("r")] if CANARY in event.model_dump_json()]
    with pytest.raises(OSError, match=CANARY):
        _ = [event async for event in graph.retry("r")]


async def test_a_fork_and_a_snapshot_keep_the_secrets(checkpointer: Checkpointer) -> None:
    """Both are the run as it was, its secret keys among it."""
    graph = paying(checkpointer)
    await graph.run({"card": CANARY}, "r")
    await graph.fork("r", new_run_id="f")
    lines = [event.model_dump_json() async for event in graph.resume("f", "approved", by="ann")]
    assert lines
    assert not [line for line in lines if CANARY in line]
    looping = StateGraph(checkpointer, 200, name="long", secrets=["card"]).set_entry_point("n")
    looping.add_node("n", lambda state: {"n": state["n"] + 1, "messages": ["x" * 400]})
    looping.add_conditional_edge("n", lambda state: "END" if state["n"] >= 100 else "n", ["n", "END"])
    await looping.run({"n": 0, "card": CANARY}, "long")
    log = await checkpointer.load("long")
    assert log is not None
    assert log.snapshot is not None
    assert (await looping.info("long")).shown({"card": CANARY}) == {"card": "***"}


class Order(TypedDict):
    """A schema with a card."""

    card: str
    price: int


def test_a_secret_that_the_schema_does_not_know_is_refused() -> None:
    """A typo would show what it was meant to hide."""
    with pytest.raises(GraphError, match="secrets= names 'cart'"):
        StateGraph(state=Order, secrets=["cart"])
    assert StateGraph(state=Order, secrets=["card"]).schema.secrets == {"card"}


def test_a_secret_is_found_nowhere_outside_of_its_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not in an encrypted store's files, and in no output of any command that reads it."""

    async def fill() -> None:
        async with EncryptedCheckpointer(SqliteCheckpointer(tmp_path / "runs.db"), KEY) as store:
            await told(paying(store))
            failing = paying(store, fails=True)
            await failing.run({"card": CANARY}, "failed")
            await failing.decide("failed", "approved", by="ann")
            await Worker(failing).poll()
            await paying(store).run({"card": CANARY}, "waits")

    asyncio.run(fill())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STATEGRAPH_KEYS", KEY.hex())
    for command in ("show", "history", "events"):
        for run_id in ("r", "failed", "waits"):
            for form in ([], ["--json"]):
                assert main([command, run_id, *form]) == 0
    assert main(["runs"]) == 0
    assert main(["doctor"]) == 0
    out, error = capsys.readouterr()
    assert "***" in out
    assert CANARY not in out + error
    assert CANARY.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
