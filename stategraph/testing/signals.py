"""Signals and the waits that take them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stategraph.checkpoint import Checkpointer, Opening
from stategraph.testing.byhand import claimed, create, paused, signal, states, visit
from stategraph.testing.suite import Suite

__all__ = ["Signals"]


class Signals(Suite):
    """Signals and the waits that take them."""

    async def test_each_signal_is_taken_by_one_wait(self, store: Checkpointer) -> None:
        """Oldest wait first, whichever comes first; a signal of another key or name wakes nobody."""
        wait = Opening("signal", "", 1, "paid", "d", name="paid", key="7")
        lease = await create(store)
        assert await signal(store, "s1")
        assert not await signal(store, "s1"), "the same act"
        assert await signal(store, "else", key="8")
        assert await signal(store, "other", name="shipped")
        assert await store.append(lease, 3, [visit(0, "pending", wait, wait, wait)]) is not None
        assert await states(store) == ["approved", "open", "open"]
        assert await signal(store, "s2")
        assert await states(store) == ["approved", "approved", "open"]
        head = await store.head("r")
        assert head is not None
        assert head.status == "ready"
        lease = await claimed(store)
        for number in range(12):  # ids of two digits: '12.0' is younger than '4.2'
            assert await store.append(lease, 0, [visit(0, "running", wait, path=f"0.{number}")]) is not None
        for taken in (3, 4):
            assert await signal(store, f"s{taken}")
            assert await states(store) == ["approved"] * taken + ["open"] * (15 - taken)
        first, third = (await store.boundaries("r"))[:3:2]
        assert first.decided is None, "it was closed by the row that opened it"
        assert third.decided is not None
        assert (third.decided.by, third.decided.act) == ("bank", "s3")

    @pytest.mark.parametrize(
        ("act", "actor"), [("", "bank"), (":x", "bank"), ("s", ""), ("s", ":clock"), ("used", "bank")]
    )
    async def test_a_signal_is_somebodys_and_new(self, store: Checkpointer, act: str, actor: str) -> None:
        """As every act is."""
        await create(store)
        await signal(store, "used")
        await self.refused(store, signal(store, act, actor=actor))

    async def test_a_signal_wakes_only_who_waits_for_it(self, store: Checkpointer) -> None:
        """Not a wait for another name or key, and nothing but a wait, whatever it is called."""
        wait = Opening("signal", "", 1, "paid", "d", name="paid", key="7")
        question = replace(wait, kind="question", step=2)
        others = replace(wait, name="sent", step=3), replace(wait, key="8", step=4)
        await paused(store, "r", question, *others, wait)
        assert await signal(store, "else", name="other")
        assert await signal(store, "more", key="9")
        head = await store.head("r")
        assert head is not None
        assert (head.status, await states(store)) == ("pending", ["open"] * 4)
        assert await signal(store, "this")
        assert await states(store) == ["open", "open", "open", "approved"]
        head = await store.head("r")
        assert head is not None
        assert head.status == "ready"

    async def test_a_signal_that_came_first_is_kept_for_a_wait(self, store: Checkpointer) -> None:
        """What opens before the wait and is only called like it takes nothing from it."""
        wait = Opening("signal", "", 1, "paid", "d", name="paid", key="7")
        lease = await create(store)
        assert await signal(store, "s1")
        question, other = replace(wait, kind="question", step=2), replace(wait, key="8", step=3)
        assert await store.append(lease, 1, [visit(0, "running", question, other)]) is not None
        assert await store.append(lease, 2, [visit(1, "running", wait, replace(wait, step=4))]) is not None
        assert await states(store) == ["open", "open", "approved", "open"]
