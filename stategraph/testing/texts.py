"""Whatever is stored comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stategraph.checkpoint import Checkpointer
from stategraph.context import Context
from stategraph.encoding import encode
from stategraph.errors import CheckpointerError
from stategraph.graph import StateGraph
from stategraph.state import AgentState
from stategraph.testing.byhand import GATE, begin, claimed, create, decide, paused, visit
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

    async def test_a_name_with_a_nul_is_told_apart(self, store: Checkpointer) -> None:
        """Text is compared whole, not up to its first NUL."""
        await paused(store, "r", replace(GATE, needed=2, approvers=("ann", "ann\x00b")))
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
