"""Keys that are declared secret: nodes have their values, and nobody is shown them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

import pytest
from pydantic import TypeAdapter

from checkpointers import EncryptedCheckpointer, SqliteCheckpointer
from stategraph import Checkpointer, Context, GraphError, StateGraph, Worker
from stategraph.cli.app import main
from stategraph.errors import RouteError, shortened
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


def says(text: Callable[[Any], str]) -> Callable[[Any], None]:
    """A node that fails, and says what it has."""

    def node(state: Any) -> None:
        raise ValueError(text(state))

    return node


def refuses(old: Any, new: Any) -> Any:
    """A reducer that shows what it was given."""
    raise ValueError(f"{new} after {old}")


KEY_FILE = "-----BEGIN-----\n" + "'canary\\\"é" * 12


@pytest.mark.parametrize(
    ("node", "card"),
    [
        (says(lambda state: repr(state["card"])), 'it\'s "canary"\n'),
        (says(lambda state: json.dumps(state["card"])), "canaryé\n"),
        (says(lambda state: shortened(state["card"])), KEY_FILE),
        (says(lambda state: repr(state["card"])[-90:]), KEY_FILE),
        (says(lambda state: str(TypeAdapter(int).validate_python(state["card"]))), KEY_FILE),
        (says(lambda state: state["card"]), "4111-canary"),
        (lambda state: {"card": datetime(2030, 1, 31, tzinfo=UTC), "canary": object()}, "4111"),
        (lambda state: {"card": {"canary": CANARY, "at": object()}}, "4111"),
        (lambda state: {"found": CANARY}, "4111"),
        (lambda state: [CANARY], "4111"),
        (lambda state: {"messages": CANARY}, "4111"),
    ],
)
async def test_no_failure_tells_a_secret_however_it_says_it(node: Any, card: str) -> None:
    """Quoted, cut short, one within another, or not stored yet because the node has just returned it."""
    graph = StateGraph(name="says", secrets=["bin", "card", "found", "messages"], reducers={"found": refuses})
    graph.add_node("n", node).set_entry_point("n").add_edge("n", "END")
    with pytest.raises((ValueError, TypeError)):
        await graph.run({"card": card, "bin": "4111", "found": None, "messages": []}, "r")
    run = await graph.info("r")
    told = f"{run.error}" + "".join([event.model_dump_json() async for event in graph.events("r")])
    assert "***" in told
    assert not [part for part in ("canary", CANARY, "2030", "BEGIN") if part in told.replace('"canary"', "")]


@pytest.mark.parametrize("route", [lambda state: state["card"], lambda state: refuses(None, state["card"])])
async def test_no_router_tells_a_secret_that_its_node_has_just_found(route: Any) -> None:
    """The node's row and its router's failure are stored together."""
    graph = (
        StateGraph(name="routes", secrets=["card"]).set_entry_point("n").add_node("n", lambda state: {"card": CANARY})
    )
    graph.add_conditional_edge("n", route, ["n", "END"])
    with pytest.raises((RouteError, ValueError)):
        await graph.run({}, "r")
    assert "***" in f"{(await graph.info('r')).error}"
    assert not [event for event in [e async for e in graph.events("r")] if CANARY in event.model_dump_json()]


def declared_late(store: Checkpointer, version: str) -> StateGraph:
    """The same graph; its second version knows what is secret."""
    graph = StateGraph(store, name="late", version=version, secrets=["card"] if version == "2" else [])
    graph.add_node("n", lambda state: {}).set_entry_point("n").add_edge("n", "END").add_interrupt_before("n")
    if version == "2":
        graph.migrate("1")(lambda values: {})
    return graph


async def test_a_run_takes_secrets_that_were_declared_after_its_start(checkpointer: Checkpointer) -> None:
    """With the version that declares them, in a fork as in a migration."""
    await declared_late(checkpointer, "1").run({"card": CANARY}, "r")
    newer = declared_late(checkpointer, "2")
    await newer.fork("r", new_run_id="f")
    for run_id in ("f", "r"):
        told = [event.model_dump_json() async for event in newer.resume(run_id, "approved", by="ann")]
        assert any('"card":"***"' in line for line in told)
        assert not [line for line in told if CANARY in line]
        assert (await newer.info(run_id)).secrets == ["card"]


async def test_a_worker_logs_no_secret_of_a_run_that_cannot_be_driven(
    checkpointer: Checkpointer, caplog: pytest.LogCaptureFixture
) -> None:
    """A migration that fails may say anything."""
    older = StateGraph(checkpointer, name="late", secrets=["card"]).set_entry_point("n").add_edge("n", "END")
    await older.add_node("n", lambda state: {}).submit({"card": CANARY}, "r")
    newer = (
        StateGraph(checkpointer, name="late", version="2", secrets=["card"]).set_entry_point("n").add_edge("n", "END")
    )
    newer.add_node("n", lambda state: {}).migrate("1")(lambda values: refuses(None, values["card"]))
    worker = Worker(newer)
    for _ in range(3):
        await worker.poll()
    assert "*** after None" in caplog.text
    assert CANARY not in caplog.text
    assert list(worker.parked) == ["r"]


def test_the_history_hides_what_a_person_says_of_an_irreversible_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its answer is a change of the state, and masked like one."""

    async def hangs(state: Any) -> None:
        await asyncio.Event().wait()

    async def fill() -> None:
        async with SqliteCheckpointer(tmp_path / "runs.db") as store:
            graph = StateGraph(store, name="d", secrets=["card"]).set_entry_point("n").add_edge("n", "END")
            graph.add_node("n", hangs, irreversible=True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await graph.run({}, "r")
            told = [event.event_type async for event in graph.recover("r")]
            assert told[-1] == "interrupted"
            await graph.decide("r", "approved", by="ann", answer={"card": CANARY})

    asyncio.run(fill())
    monkeypatch.chdir(tmp_path)
    assert main(["history", "r", "--json"]) == 0
    out, error = capsys.readouterr()
    assert '"card":"***"' in out
    assert CANARY not in out + error


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
