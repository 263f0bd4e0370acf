"""Encryption at rest: the store sees ciphertext, each piece at its own place, and everything else is as it was."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpointers import EncryptedCheckpointer, MemoryCheckpointer, SqliteCheckpointer
from stategraph import Checkpointer, Context, CorruptCheckpoint, StateGraph
from stategraph.checkpoint import digest, seal
from stategraph.cli.app import main
from tests.conftest import OpenStore

CANARY = "canary-4111-1111-1111-1111"
FIRST, SECOND = bytes(range(32)), bytes(range(1, 33))


def paying(store: Checkpointer) -> StateGraph:
    """quote, a gate, pay: the canary in state, in what is told, and in an effect's outcome."""
    graph = StateGraph(store, name="pays").set_entry_point("quote").add_edge("quote", "pay").add_edge("pay", "END")

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        async def send() -> str:
            return f"sent {state['card']}"

        ctx.emit({"told": state["card"]})
        return {"receipt": await ctx.once("send", send)}

    graph.add_node("quote", lambda state: {"messages": [state["card"]]}).add_node("pay", pay)
    return graph.add_interrupt_before("pay")


async def paid(store: Checkpointer) -> StateGraph:
    """A run that has been approved with a note and an edit, and has ended."""
    graph = paying(store)
    await graph.run({"card": CANARY}, "r")
    edit = {"extra": CANARY}
    told = [e.event_type async for e in graph.resume("r", "approved", by="ann", note=f"for {CANARY}", edit=edit)]
    assert told[-1] == "completed"
    return graph


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file())


async def test_what_a_run_knows_is_found_nowhere_in_the_file(open_store: OpenStore, tmp_path: Path) -> None:
    """Neither in the file nor in its WAL; through the store it is all there."""
    graph = await paid(EncryptedCheckpointer(open_store(), FIRST))
    run = await graph.info("r")
    assert run.state["receipt"] == f"sent {CANARY}"
    assert run.state["extra"] == CANARY
    (boundary,) = await graph.checkpointer.boundaries("r")
    assert boundary.decided is not None
    assert boundary.decided.note == f"for {CANARY}"
    assert CANARY.encode() not in everything_in(tmp_path)
    await paid(open_store("plain.db"))
    assert CANARY.encode() in everything_in(tmp_path)  # the search would have found it


async def test_snapshots_are_encrypted_too(open_store: OpenStore, tmp_path: Path) -> None:
    """A run that is long enough for one goes on from it."""
    store = EncryptedCheckpointer(open_store(), FIRST)
    graph = StateGraph(store, 200, name="long").set_entry_point("n")
    graph.add_node("n", lambda state: {"messages": [CANARY * 20], "n": state["n"] + 1})
    graph.add_conditional_edge("n", lambda state: "END" if state["n"] >= 100 else "n", ["n", "END"])
    await graph.run({"n": 0}, "r")
    log = await store.load("r")
    assert log is not None
    assert log.snapshot is not None
    assert CANARY.encode() in log.snapshot[1]
    assert (await graph.info("r")).state["messages"] == [CANARY * 20] * 100
    assert CANARY.encode() not in everything_in(tmp_path)


async def test_a_key_is_rotated_by_putting_a_new_one_in_front(open_store: OpenStore) -> None:
    """Old rows are read with the old key, new ones written with the new; a missing key is named."""
    inner = open_store()
    graph = paying(EncryptedCheckpointer(inner, FIRST))
    await graph.run({"card": "1"}, "r")
    rotated = paying(EncryptedCheckpointer(inner, SECOND, FIRST))
    assert [e.event_type async for e in rotated.resume("r", "approved", by="ann")][-1] == "completed"
    with pytest.raises(CorruptCheckpoint, match="is not among the 1 given"):
        await paying(EncryptedCheckpointer(inner, SECOND)).info("r")
    with pytest.raises(CorruptCheckpoint, match="its key"):
        await graph.info("r")
    await rotated.run({"card": "2"}, "newer")
    assert (await paying(EncryptedCheckpointer(inner, SECOND)).info("newer")).state["card"] == "2"


async def test_a_row_in_another_rows_place_is_refused(open_store: OpenStore, tmp_path: Path) -> None:
    """Even where whoever moved it has made its digest right, which needs no key unless the store has a secret."""
    inner = open_store()
    store = EncryptedCheckpointer(inner, FIRST)
    graph = StateGraph(store, name="two").set_entry_point("a").add_edge("a", "b").add_edge("b", "END")
    graph.add_node("a", lambda state: {"n": 1}).add_node("b", lambda state: {"n": 2})
    await graph.run({}, "r")
    await graph.run({}, "other")
    rows, others = await inner.history("r"), await inner.history("other")
    for place, body in ((1, rows[2].body), (1, others[1].body), (0, others[0].body)):
        moved = replace(rows[place], body=body)
        sealed = seal(
            b"", "r", moved.kind, moved.epoch, moved.path, moved.step, moved.attempt, None, None, None, None, None, None,
            None, moved.at_ms, body,
        )  # fmt: skip
        connection = sqlite3.connect(tmp_path / "runs.db")
        change = "UPDATE checkpoints SET body = ?, digest = ? WHERE seq = ? AND run = (SELECT run FROM runs WHERE run_id = 'r')"
        connection.execute(change, (body, digest(sealed, moved.seq, moved.status), moved.seq))
        connection.commit()
        assert (await inner.history("r"))[place].body == body  # to the store itself it is whole
        with pytest.raises(CorruptCheckpoint, match="belongs to another place"):
            await graph.info("r")
        original = rows[place]
        sealed = seal(
            b"", "r", original.kind, original.epoch, original.path, original.step, original.attempt, None, None, None, None,
            None, None, None, original.at_ms, original.body,
        )  # fmt: skip
        connection.execute(change, (original.body, digest(sealed, original.seq, original.status), original.seq))
        connection.commit()
        connection.close()
    assert (await graph.info("r")).state == {"n": 2}


async def test_a_rejection_is_not_turned_into_an_approval(open_store: OpenStore, tmp_path: Path) -> None:
    """The verdict is a column of its own, for the store to look at; what is encrypted is bound to it."""
    store = EncryptedCheckpointer(open_store(), FIRST)
    graph = StateGraph(store, name="pays").set_entry_point("pay").add_edge("pay", "END").add_edge("ask", "END")
    graph.add_node("pay", lambda state: {"paid": True}).add_node("ask", lambda state: {})
    graph.add_interrupt_before("pay", on_reject="ask")
    await graph.run({"card": CANARY}, "r")
    await graph.decide("r", "rejected", by="ann")
    row = (await open_store().history("r"))[-1]
    sealed = seal(
        b"", "r", row.kind, None, None, None, None, None, row.boundary, "approved", None, None, row.actor, row.act,
        row.at_ms, row.body,
    )  # fmt: skip
    connection = sqlite3.connect(tmp_path / "runs.db")
    connection.execute(
        "UPDATE checkpoints SET decision = 'approved', digest = ? WHERE seq = ?",
        (digest(sealed, row.seq, row.status), row.seq),
    )
    connection.commit()
    connection.close()
    assert (await open_store().history("r"))[-1].decision == "approved"
    with pytest.raises(CorruptCheckpoint, match="belongs to another place"):
        await graph.info("r")


async def test_rows_that_were_not_encrypted_are_refused(open_store: OpenStore) -> None:
    """A store is encrypted from its first run on."""
    inner = open_store()
    await paying(inner).run({"card": "1"}, "r")
    with pytest.raises(CorruptCheckpoint, match="not encrypted"):
        await paying(EncryptedCheckpointer(inner, FIRST)).info("r")


async def test_what_a_person_says_of_an_effect_in_doubt_is_its_outcome(open_store: OpenStore) -> None:
    """The answer is in a decision's row, and is found there by the effect that asks for it."""
    sent: list[str] = []

    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        async def send() -> str:
            sent.append("sent")
            raise OSError("no answer: was it sent?")

        return {"receipt": await ctx.once("send", send)}

    graph = StateGraph(EncryptedCheckpointer(open_store(), FIRST), name="doubt").add_node("pay", pay)
    graph.set_entry_point("pay").add_edge("pay", "END")
    with pytest.raises(OSError, match="no answer"):
        await graph.run({}, "r")
    assert [event.event_type async for event in graph.retry("r")][-1] == "interrupted"
    told = [event.event_type async for event in graph.resume("r", "approved", by="ann", answer=CANARY)]
    assert told[-1] == "completed"
    assert (await graph.info("r")).state == {"receipt": CANARY}
    assert sent == ["sent"]


@pytest.mark.parametrize("keys", [(), (b"short",), (FIRST, b""), (os.urandom(33),)])
def test_a_key_of_another_length_is_refused(keys: tuple[bytes, ...]) -> None:
    """With what makes a good one."""
    with pytest.raises(ValueError, match="32 bytes"):
        EncryptedCheckpointer(MemoryCheckpointer(), *keys)


async def test_the_same_text_is_never_encrypted_alike(open_store: OpenStore) -> None:
    """A nonce of its own for each piece."""
    inner = open_store()
    graph = StateGraph(EncryptedCheckpointer(inner, FIRST), name="one").set_entry_point("a").add_edge("a", "END")
    graph.add_node("a", lambda state: {"n": 1})
    for number in range(20):
        await graph.run({}, f"r{number}")
    bodies = [row.body for number in range(20) for row in await inner.history(f"r{number}")]
    assert len({body[5:17] for body in bodies}) == len(bodies) == 40


def test_it_is_closed_with_its_store(tmp_path: Path) -> None:
    """`async with` as for any other."""

    async def main() -> None:
        async with EncryptedCheckpointer(SqliteCheckpointer(tmp_path / "runs.db"), FIRST) as store:
            assert await store.runs() == []
            assert (store.durable, repr(store)) == (True, f"EncryptedCheckpointer({store.store!r})")

    asyncio.run(main())


def test_the_commands_take_their_keys_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An encrypted store is listed, decided and copied with its key; without it a run is told to be unreadable."""

    async def fill() -> None:
        async with EncryptedCheckpointer(SqliteCheckpointer(tmp_path / "runs.db"), FIRST) as store:
            await paying(store).run({"card": CANARY}, "r")

    asyncio.run(fill())
    monkeypatch.chdir(tmp_path)
    assert main(["show", "r"]) == 1
    assert "not encrypted" not in (told := capsys.readouterr().err)
    assert CANARY not in told
    monkeypatch.setenv("STATEGRAPH_KEYS", f"{SECOND.hex()} {FIRST.hex()}")
    assert main(["show", "r"]) == 0
    assert CANARY in capsys.readouterr().out
    assert main(["backup", "copy.db"]) == 0
    assert main(["restore", "copy.db", "--store", "sqlite:new.db"]) == 0
    assert main(["show", "r", "--store", "sqlite:new.db"]) == 0
    capsys.readouterr()
    for wrong in ("no hex", "abcd"):
        monkeypatch.setenv("STATEGRAPH_KEYS", wrong)
        assert main(["runs"]) == 2
        assert wrong not in capsys.readouterr().err
    assert CANARY.encode() not in everything_in(tmp_path)


@pytest.mark.parametrize("keys", [None, SECOND.hex()])
def test_nobody_adds_to_a_run_whose_keys_he_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keys: str | None
) -> None:
    """A decision or a cancellation that the others cannot read would make the whole run unreadable."""
    store = SqliteCheckpointer(tmp_path / "runs.db")

    async def fill() -> None:
        async with EncryptedCheckpointer(store, FIRST) as encrypted:
            await paying(encrypted).run({"card": CANARY}, "r")

    async def look() -> str:
        async with EncryptedCheckpointer(SqliteCheckpointer(tmp_path / "runs.db"), FIRST) as encrypted:
            return (await paying(encrypted).info("r")).status

    asyncio.run(fill())
    monkeypatch.chdir(tmp_path)
    if keys is not None:
        monkeypatch.setenv("STATEGRAPH_KEYS", keys)
    for act in (
        ["approve", "r", "--no-drive"],
        ["reject", "r", "--no-drive"],
        ["cancel", "r"],
        ["show", "r"],
        ["history", "r"],
    ):
        assert main(act) == 1
        told = capsys.readouterr().err
        assert "key" in told
        assert "unexpected" not in told
    assert asyncio.run(look()) == "pending"


async def test_an_act_under_keys_of_another_time_is_refused(open_store: OpenStore) -> None:
    """Whoever has a new key alone changes nothing."""
    inner = open_store()
    graph = paying(EncryptedCheckpointer(inner, FIRST))
    await graph.run({"card": CANARY}, "r")
    (boundary,) = await graph.boundaries("r")
    other = EncryptedCheckpointer(inner, SECOND)
    with pytest.raises(CorruptCheckpoint, match="its key"):
        await other.cancel("r", actor="ann", act="1", body=b"{}")
    with pytest.raises(CorruptCheckpoint, match="its key"):
        await other.retry("r", actor="ann", act="1", body=b"{}")
    with pytest.raises(CorruptCheckpoint, match="its key"):
        await other.decide("r", "1.0", digest=boundary.digest, decision="approved", actor="ann", act="1", body=b"{}")
    assert (await graph.info("r")).status == "pending"
