"""What an attacker, a careless caller or a damaged file may try, each found once and kept."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from checkpointers import SqliteCheckpointer
from stategraph import (
    Checkpointer,
    Context,
    CorruptCheckpoint,
    DecisionRefused,
    GraphChangedError,
    GraphError,
    Retry,
    StateError,
    StateGraph,
    StoreUnavailable,
)


def gated(store: Checkpointer, ran: list[Any], **gate: Any) -> StateGraph:
    def pay(state: Any) -> None:
        ran.append(state.get("amount"))

    graph = StateGraph(store, name="g").add_node("pay", pay).set_entry_point("pay")
    return graph.add_interrupt_before("pay", **gate)


class Anything:
    """Equal to whatever it is compared with."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


async def test_nothing_but_the_word_is_an_approval(checkpointer: Checkpointer) -> None:
    """An object that claims to equal "approved" releases nothing, nor does a truth value."""
    ran: list[Any] = []
    graph = gated(checkpointer, ran)
    await graph.run({}, "r")
    for decision in (Anything(), True, 1, b"approved"):
        with pytest.raises(DecisionRefused):
            async for _ in graph.resume("r", decision):  # type: ignore[arg-type]
                pass
    assert ran == []


@pytest.mark.parametrize("given", [{"by": 1234}, {"by": True}, {"decision_id": 7}, {"note": 1.5}, {"by": "\ud800"}])
async def test_names_that_no_store_gives_back_are_refused(checkpointer: Checkpointer, given: dict[str, Any]) -> None:
    """Who, why and which id are text: SQLite would turn a number into text, and the row would look forged for ever."""
    graph = gated(checkpointer, [])
    await graph.run({}, "r")
    with pytest.raises(DecisionRefused):
        await graph.decide("r", "approved", **given)
    assert (await graph.info("r")).status == "pending"


async def test_an_older_worker_does_not_take_back_a_migration(checkpointer: Checkpointer) -> None:
    """Else the next newer one would migrate again: cents would become cents twice."""

    def version(number: str, ran: list[Any]) -> StateGraph:
        graph = gated(checkpointer, ran)
        graph.version = number
        return graph

    old, new = version("1", []), version("2", [])
    new.migrate("1")(lambda values: {"amount": values["amount"] * 100})
    await old.run({"amount": 5}, "r")
    await new.decide("r", "approved")
    await anext(aiter(new.resume("r")))
    with pytest.raises(GraphChangedError, match="of version '2', this graph of '1', with no migration"):
        await anext(aiter(old.resume("r")))


async def test_an_effect_in_doubt_is_not_settled_by_a_bare_yes(checkpointer: Checkpointer) -> None:
    """A second click that was meant for another gate must not say that money has moved."""

    async def charge(state: Any, ctx: Context) -> dict[str, Any]:
        async def pay() -> int:
            raise OSError("the line is dead")

        return {"receipt": await ctx.once("charge", pay)}

    graph = StateGraph(checkpointer, name="g").add_node("charge", charge).set_entry_point("charge")
    with pytest.raises(OSError, match="dead"):
        await graph.run({}, "r")
    async for _ in graph.retry("r"):
        pass
    with pytest.raises(DecisionRefused, match="in doubt: approve it with answer="):
        await graph.decide("r", "approved")
    await graph.decide("r", "approved", answer=None)
    async for _ in graph.resume("r"):
        pass
    assert await graph.state("r") == {"receipt": None}


async def test_an_approval_is_of_what_was_shown(checkpointer: Checkpointer) -> None:
    """Whoever retries with another state asks again: the approval was given for the old one."""
    attempts: list[int] = []

    def pay(state: Any) -> None:
        attempts.append(state["amount"])
        if len(attempts) == 1:
            raise ConnectionError("the bank is away")

    graph = StateGraph(checkpointer, name="g").add_node("pay", pay).set_entry_point("pay").add_interrupt_before("pay")
    await graph.run({"amount": 10}, "r")
    with pytest.raises(ConnectionError, match="the bank is away"):
        [event async for event in graph.resume("r", "approved")]
    events = [event.event_type async for event in graph.retry("r", {"amount": 1_000_000})]
    assert (events, attempts) == (["interrupted"], [10])


@pytest.mark.parametrize(
    "declared",
    [
        lambda g: g.add_interrupt_before("pay", expires_in=float("nan")),
        lambda g: g.add_interrupt_before("pay", expires_in=1e30),
        lambda g: g.add_interrupt_before("pay", approvers=[object()]),
        lambda g: g.add_node("more", lambda state: None, retry=Retry(delay=float("inf"))),
        lambda g: g.add_node("more", lambda state: None, blocking=True, timeout=float("nan")),
    ],
)
def test_times_beyond_the_calendar_are_faults(checkpointer: Checkpointer, declared: Any) -> None:
    """A time that cannot be stored is found by plan(), not after the node before it has run."""
    graph = StateGraph(checkpointer, name="g").add_node("pay", lambda state: None).set_entry_point("pay")
    declared(graph)
    with pytest.raises(GraphError):
        graph.plan()


async def test_lists_that_hold_each_other_twice_are_refused_in_time(checkpointer: Checkpointer) -> None:
    """Forty-five of them would be 2**45 lists as JSON."""
    nested: list[Any] = []
    for _ in range(45):
        nested = [nested, nested]
    graph = StateGraph(checkpointer, name="g").add_node("a", lambda state: {"x": nested}).set_entry_point("a")
    with pytest.raises(StateError, match=r"\$\.x: more than 1,000,000 lists and dicts"):
        await graph.run({}, "r")
    assert (await graph.info("r")).status == "failed"


@pytest.mark.parametrize(
    ("change", "gate", "by"),
    [
        ("UPDATE boundaries SET approvers = NULL", {"approvers": ["ann"]}, "eve"),
        ("UPDATE boundaries SET shown_digest = 'another'", {}, "ann"),
    ],
)
async def test_a_changed_projection_releases_nothing(tmp_path: Path, change: str, gate: Any, by: str) -> None:
    """What a boundary says is in its verified row: the table beside it is checked against that."""
    ran: list[Any] = []
    async with SqliteCheckpointer(tmp_path / "runs.db", secret=b"key") as store:
        graph = gated(store, ran, **gate)
        await graph.run({}, "r")
        with sqlite3.connect(tmp_path / "runs.db") as connection:
            connection.execute(change)
        connection.close()
        with pytest.raises(CorruptCheckpoint):
            [event async for event in graph.resume("r", "approved", by=by)]
    assert ran == []


@pytest.mark.parametrize("status", ["completed", "compmeted"])
async def test_a_head_that_says_more_than_the_log_is_noticed(tmp_path: Path, status: str) -> None:
    """A run never looks finished that is not."""
    async with SqliteCheckpointer(tmp_path / "runs.db") as store:
        graph = gated(store, [])
        await graph.run({}, "r")
        with sqlite3.connect(tmp_path / "runs.db") as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute("UPDATE runs SET status = ?", (status,))
        connection.close()
        with pytest.raises(CorruptCheckpoint, match="its log says 'pending'"):
            await graph.info("r")


async def test_one_broken_append_disturbs_no_other_run(tmp_path: Path) -> None:
    """Runs whose appends are committed together are answered each on its own."""
    async with SqliteCheckpointer(tmp_path / "runs.db") as store:
        graph = StateGraph(store, name="g").add_node("a", lambda state: {"n": 1}).set_entry_point("a")
        huge = StateGraph(store, name="h").add_node("a", lambda state: {"x": "x" * 70_000_000}).set_entry_point("a")
        runs = [graph.run({}, f"r{number}") for number in range(20)]
        answers = await asyncio.gather(*runs[:10], huge.run({}, "huge"), *runs[10:], return_exceptions=True)
    assert isinstance(answers.pop(10), StateError)
    assert [run.status for run in answers if not isinstance(run, BaseException)] == ["completed"] * 20


@pytest.mark.parametrize("path", ["a\0b", "/dev/null"])
async def test_what_is_no_regular_file_is_no_store(path: str) -> None:
    """A NUL in the name, a device: refused with the path, and nothing is made beside it."""
    async with SqliteCheckpointer(path) as store:
        with pytest.raises(StoreUnavailable):
            await store.runs()
