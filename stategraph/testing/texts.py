"""Whatever is stored comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stategraph.checkpoint import Checkpointer, Effect, Lease, Opening
from stategraph.clock import ManualClock
from stategraph.context import Context
from stategraph.encoding import encode
from stategraph.errors import CheckpointerError
from stategraph.graph import StateGraph
from stategraph.state import AgentState
from stategraph.testing.byhand import GATE, LEASE_MS, begin, claimed, create, decide, paused, states, visit
from stategraph.testing.suite import Suite

__all__ = ["Texts"]

HOSTILE = {
    "nul": "a\x00b",
    "lone": "\ud800",
    "quote": "';--",
    "big": 2**70,
    "deep": [[{"k": [1.5, None]}]],
    "\u2028": "\x7f",
}


#: Texts that a store may mistake for something else; each is one.
NAMES = [
    "Zo\u00eb", "\u540d\u524d", "\u202eltr", "\U0001f642", "\u2028", "a\ufeff", "\t\r\n", " a ", "a'b", 'a"b', "a\\b", "`a`",
    "' OR '1'='1", "'; DROP TABLE runs; --", "$1 %s %(a)s ? :run {0}", "a%_*", "null", "NULL", "0", "1e3", "true", "[]", "{}", "x" * 3000,
]  # fmt: skip
#: Nobody of these is another.
ALIKE = ["ann", "Ann", "ann ", " ann", "a%", "_nn", "*", "\u00e5nn", "a\u030ann", "\u0430nn"]


class Texts(Suite):
    """Whatever is stored comes back."""

    async def test_any_text_in_a_body_comes_back(self, store: Checkpointer) -> None:
        """NUL and lone surrogates, in state, in outcomes and in notes: stored once, and equal."""
        lease = await create(store, body=encode(HOSTILE))
        await store.append(lease, 0, [visit(0, "pending", GATE, body=encode(HOSTILE))], snapshot=encode(HOSTILE))
        await decide(store, body=encode({"note": "a\x00\ud800", **HOSTILE}))
        rows = await store.history("r")
        assert [row.content for row in rows] == [HOSTILE, HOSTILE, {"note": "a\x00\ud800", **HOSTILE}]
        (boundary,) = await store.boundaries("r")
        assert boundary.decided is not None
        assert boundary.decided.note == "a\x00\ud800"
        lease = await claimed(store)
        await begin(store, lease, "t")
        assert await store.effect_end("r", "k", "t", encode(HOSTILE)) == encode(HOSTILE)

    async def test_any_text_in_state_and_outcomes_is_recorded_once(self, store: Checkpointer) -> None:
        """By the engine too: the effect runs once, however often the run is looked at or recovered."""
        calls: list[str] = []

        def effect() -> dict[str, Any]:
            calls.append("call")
            return HOSTILE

        async def work(state: AgentState, ctx: Context) -> dict[str, Any]:
            return {"got": await ctx.once("\x00\ud800", effect), **HOSTILE}

        graph = StateGraph(store, name="hostile").add_node("work", work).set_entry_point("work")
        await graph.run(dict(HOSTILE), "r")
        for _ in range(5):
            assert [event.event_type async for event in graph.recover("r")] == ["completed"]
        assert calls == ["call"]
        assert (await graph.info("r")).state == {**HOSTILE, "got": HOSTILE}

    @pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"by hand"', b'{"note":7}', b"\xff\x00"])
    async def test_a_body_is_the_callers_business(self, store: Checkpointer, body: bytes) -> None:
        """A store keeps any bytes; a note is told where there is one."""
        await paused(store)
        assert await decide(store, body=body) is not None
        (boundary,) = await store.boundaries("r")
        assert boundary.decided is not None
        assert boundary.decided.note is None
        assert (await store.history("r"))[2].body == body

    async def test_a_name_with_a_nul_is_told_apart_or_refused(self, store: Checkpointer) -> None:
        """Text is compared whole, not up to its first NUL; a store that cannot keep one says so at once."""
        lease = await create(store)
        before = await self.everything(store)
        row = visit(0, "pending", replace(GATE, needed=2, approvers=("ann", "ann\x00b")))
        try:
            assert await store.append(lease, 0, [row]) is not None
        except CheckpointerError:
            assert await self.everything(store) == before
        else:
            await self.refused(store, decide(store, actor="ann\x00"), decide(store, actor="ann\x00c"))
            assert await decide(store, actor="ann\x00b") is not None
            assert await decide(store, actor="ann") is not None

    async def test_text_that_is_no_unicode_is_stored_or_refused(self, store: Checkpointer) -> None:
        """A lone surrogate in an actor's name never ends as an error of the database."""
        await paused(store)
        before = await self.everything(store)
        try:
            assert await decide(store, actor="\ud800") is not None
        except CheckpointerError:
            assert await self.everything(store) == before
        else:
            assert (await store.history("r"))[2].actor == "\ud800"

    @pytest.mark.parametrize("text", NAMES)
    async def test_any_name_comes_back(self, store: Checkpointer, clock: ManualClock, text: str) -> None:
        """Of a graph, a creator, an owner, an actor, an act, a node, a signal and an effect: never cut, changed or run."""
        made = await store.create(
            "r", graph=text, fingerprint=text, creator=text, body=b"{}", status="running", parent=text, owner=text,
            lease_ms=LEASE_MS,
        )  # fmt: skip
        assert made is not None
        assert made == Lease("r", text, 1, 0)
        wait = Opening("signal", "", 3, text, text, name=text, key=text)
        gate = replace(GATE, node=text, digest=text, approvers=(text,))
        assert await store.append(made, 0, [visit(0, "running", gate, wait)]) is not None
        assert await begin(store, made, text, text) == Effect(text, None)
        assert await store.effect_end("r", text, text, b"1") == b"1"
        assert await decide(store, digest=text, actor=text, act=text) is not None
        assert await store.signal("r", text, text, actor=text, act=f"{text} again", body=b"{}") is not None
        head = await store.head("r")
        assert head is not None
        assert (head.graph, head.fingerprint, head.creator, head.owner, head.parent) == (text,) * 5
        assert [head.run_id for head in await store.runs(graph=text)] == ["r"]
        first, second = await store.boundaries("r")
        assert first.decided is not None
        assert (first.state, first.node, first.digest, first.approvers) == ("approved", text, text, (text,))
        assert (first.decided.by, first.decided.act) == (text, text)
        assert (second.state, second.name, second.key) == ("approved", text, text)
        assert await store.find_act("r", text) == (await store.history("r"))[2]
        await self.refused(store, decide(store, digest=text, actor="eve", act="click"))

    async def test_names_are_the_same_only_if_they_are_equal(self, store: Checkpointer) -> None:
        """Case, space at the end, another writing of the same letter, a pattern: each is somebody, or something, else."""
        await paused(store, "r", replace(GATE, needed=len(ALIKE)))
        for name in ALIKE:
            assert await decide(store, actor=name, act=name) is not None
        assert await states(store) == ["approved"]
        await paused(store, "s", replace(GATE, approvers=("ann",)))
        await self.refused(store, *(decide(store, run_id="s", actor=name) for name in ALIKE[1:]))
        for name in ALIKE:
            assert await store.find_act("r", name) is not None
        assert await store.find_act("r", "AnN") is None
        for run_id in ("R", "r.", "r_", "r-"):
            await create(store, run_id, graph="G")
        assert [head.run_id for head in await store.runs(graph="g")] == ["s", "r"]
        assert await store.head("S") is None
        assert [boundary.run_id for boundary in await store.boundaries("r_")] == []

    async def test_all_bytes_come_back(self, store: Checkpointer) -> None:
        """Each of the 256, and a million of them: in rows, in outcomes, in snapshots."""
        every = bytes(range(256))
        lease = await create(store, body=every)
        assert await store.append(lease, 0, [visit(0, body=every * 4096)], snapshot=every[::-1] * 4096) is not None
        assert await begin(store, lease, "t") is not None
        assert await store.effect_end("r", "k", "t", every) == every
        assert await begin(store, lease, "u") == Effect("t", every)
        assert [row.body for row in await store.history("r")] == [every, every * 4096]
        log = await store.load("r")
        assert log is not None
        assert log.snapshot in (None, (0, every[::-1] * 4096))
