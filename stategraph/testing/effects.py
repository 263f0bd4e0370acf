"""Effects: the intent before, the outcome after."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from stategraph.checkpoint import Checkpointer, Effect, Lease, Opening
from stategraph.clock import ManualClock
from stategraph.testing.byhand import GATE, LONGER, begin, claimed, create, decide, states, visit
from stategraph.testing.suite import Suite

__all__ = ["Effects"]


class Effects(Suite):
    """Effects: the intent before, the outcome after."""

    async def test_an_effect_is_run_by_one_execution(self, store: Checkpointer) -> None:
        """Of three that race on one key one gets its own token; its outcome is the one that everybody gets."""
        lease = await create(store)
        begun = await asyncio.gather(*(begin(store, lease, token) for token in ("a", "b", "c")))
        tokens = {effect.token for effect in begun if effect}
        assert len(tokens) == 1, f"the intent is told to be of each of {tokens}"
        (won,) = tokens
        lost = "b" if won == "a" else "a"
        assert await store.effect_end("r", "k", lost, b"2") is None
        assert await store.effect_end("r", "k", won, b"1") == b"1"
        assert await store.effect_end("r", "k", won, b"9") == b"1", "told twice, the first holds"
        assert await begin(store, lease, "d") == Effect(won, b"1")
        assert await begin(store, lease, "d", policy="keyed") == Effect(won, b"1")

    async def test_an_effect_needs_the_lease(self, store: Checkpointer, clock: ManualClock) -> None:
        """And a run that is not to end; its outcome may be told late, by who has its token."""
        lease = await create(store)
        assert await begin(store, lease, "a") is not None
        await create(store, "s")
        await self.refused(
            store,
            begin(store, replace(lease, epoch=0), "b", "new"),
            begin(store, replace(lease, run_id="nobody"), "b", "new"),
            begin(store, Lease("s", "w", 1, 0), "b"),
            store.effect_end("s", "k", "a", b"1"),
            store.effect_end("r", "unknown", "a", b"1"),
        )
        clock.advance(LONGER)
        await claimed(store)
        await self.refused(store, begin(store, lease, "b", "new"), begin(store, lease, "b"))
        assert await store.effect_end("r", "k", "a", b"1") == b"1"

    async def test_a_foreign_intent_is_in_doubt_and_a_person_is_asked(
        self, store: Checkpointer, clock: ManualClock
    ) -> None:
        """From the question on the lost execution has lost it; the answer is the outcome."""
        await create(store)
        lost = Lease("r", "w", 1, 0)
        await begin(store, lost, "lost")
        clock.advance(LONGER)
        lease = await claimed(store)
        assert await begin(store, lease, "mine") == Effect("lost", None)
        assert await begin(store, lease, "mine", policy="keyed") == Effect("lost", None), "the stored policy counts"
        doubt = replace(GATE, kind="in_doubt", effect="k", step=0)
        asks = visit(0, "pending", doubt, kind="asked", effect="k")
        await self.refused(
            store,
            store.append(lease, 0, [visit(0, "pending", doubt, kind="asked", effect="another")]),
            store.append(lost, 0, [asks]),
        )
        assert await store.append(lease, 0, [asks]) is not None
        await self.refused(store, store.effect_end("r", "k", "lost", b"1"))
        assert await decide(store, body=b'{"result":5}') is not None
        assert await begin(store, await claimed(store), "late") == Effect("in doubt", b'{"result":5}')

    async def test_a_known_outcome_is_not_in_doubt(self, store: Checkpointer) -> None:
        """The question is refused when the outcome came before it."""
        lease = await create(store)
        doubt = replace(GATE, kind="in_doubt", effect="k", step=0)
        asks = visit(0, "pending", doubt, kind="asked", effect="k")
        await self.refused(store, store.append(lease, 0, [asks]))
        await begin(store, lease, "a")
        await store.effect_end("r", "k", "a", b"1")
        await self.refused(store, store.append(lease, 0, [asks]))

    async def test_an_effect_in_doubt_may_be_tried_again(self, store: Checkpointer) -> None:
        """`retry` forgets the intent; a rejection leaves it, so that nobody runs it by accident."""
        for decision, begins in (("retry", Effect("next", None)), ("rejected", Effect("in doubt", None))):
            lease = await create(store, decision)
            await begin(store, lease, "lost", decision)
            doubt = Opening("in_doubt", "", 0, "pay", "shown", effect=decision)
            asks = visit(0, "pending", doubt, kind="asked", effect=decision)
            assert await store.append(lease, 0, [asks]) is not None
            assert await decide(store, decision, run_id=decision) is not None  # type: ignore[arg-type]
            assert await begin(store, await claimed(store, decision), "next", decision) == begins

    async def test_a_keyed_effect_is_handed_on(self, store: Checkpointer, clock: ManualClock) -> None:
        """The next execution gets the intent under the same key, the lost one can tell no outcome any more."""
        lost = await create(store)
        assert await begin(store, lost, "lost", policy="keyed") == Effect("lost", None)
        assert await begin(store, lost, "lost", policy="keyed") == Effect("lost", None), "a lost acknowledgement"
        clock.advance(LONGER)
        lease = await claimed(store)
        assert await begin(store, lease, "other", policy="ask") == Effect("lost", None), "not by another policy"
        assert await begin(store, lease, "mine", policy="keyed") == Effect("mine", None, handed_on=True)
        await self.refused(store, store.effect_end("r", "k", "lost", b"1"))
        assert await store.effect_end("r", "k", "mine", b"2") == b"2"
        assert await begin(store, lease, "later", policy="keyed") == Effect("mine", b"2")

    async def test_a_refused_intent_leaves_no_trace(self, store: Checkpointer, clock: ManualClock) -> None:
        """Whoever may begin the effect afterwards is the first to."""
        old = await create(store)
        clock.advance(LONGER)
        lease = await claimed(store)
        assert await begin(store, old, "of the dead") is None
        assert await store.effect_end("r", "k", "of the dead", b"1") is None
        assert await begin(store, lease, "mine") == Effect("mine", None)

    async def test_an_effect_belongs_to_one_run(self, store: Checkpointer) -> None:
        """Its key is that run's; another run's execution is not handed its outcome."""
        lease = await create(store)
        await begin(store, lease, "t")
        other = await create(store, "s")
        assert await store.effect_end("s", "k", "t", b"2") is None
        doubt = replace(GATE, kind="in_doubt", effect="k", step=0)
        await self.refused(store, store.append(other, 0, [visit(0, "pending", doubt, kind="asked", effect="k")]))
        assert await begin(store, other, "u", "of s") == Effect("u", None)
        assert await store.effect_end("r", "k", "t", b"1") == b"1"

    async def test_a_doubt_is_answered_by_three_words(self, store: Checkpointer) -> None:
        """It happened, it did not, try it again; nothing else, and by nobody who may not."""
        lease = await create(store)
        await begin(store, lease, "lost")
        doubt = replace(GATE, kind="in_doubt", effect="k", step=0, approvers=("ann",))
        assert await store.append(lease, 0, [visit(0, "pending", doubt, kind="asked", effect="k")]) is not None
        words: Any = ("expired", "withdrawn", "open", "", "RETRY")
        await self.refused(store, *(decide(store, word) for word in words), decide(store, "retry", actor="bob"))
        assert await decide(store, "retry") is not None
        assert await states(store) == ["retry"]
