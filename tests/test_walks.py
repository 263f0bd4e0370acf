"""The model's steps on the real stores: equal after every step, and what the model disables touches no row."""

from __future__ import annotations

import pytest

from checkpointers import MemoryCheckpointer
from stategraph import Checkpointer
from tests.model.bench import Bench, Dial
from tests.model.conform import Conformance, Tour
from tests.model.rules import Rules
from tests.model.scope import Case
from tests.model.scopes import MEDIUM, SMALL
from tests.model.tours import tours

#: Scopes whose searches are quick and whose transitions are of many kinds.
QUICK = ("timers", "approvers and four eyes", "snapshots", "a wait that ends the run")


@pytest.fixture
def clock() -> Dial:
    """The clock of the `checkpointer`."""
    return Dial()


@pytest.fixture(scope="module")
def chosen() -> list[Tour]:
    """Walks that show every kind of transition of the quick scopes."""
    return tours(Case(Rules(), scope) for scope in SMALL if scope.name in QUICK)


async def test_every_kind_of_transition_is_the_stores_too(
    checkpointer: Checkpointer, clock: Dial, chosen: list[Tour]
) -> None:
    """The shortest way to each kind of transition, step by step beside the model."""
    async with Conformance(Bench(checkpointer, clock)) as conformance:
        await conformance.tour(chosen, share=0.05)
    assert conformance.tally.walks == len(chosen)


async def test_a_random_walk_finds_the_store_where_the_model_is(checkpointer: Checkpointer, clock: Dial) -> None:
    """Random walks through every scope, and in each world what may not happen."""
    async with Conformance(Bench(checkpointer, clock)) as conformance:
        await conformance.wander([Case(Rules(), scope) for scope in (*SMALL, *MEDIUM)], many=100, seed=1, share=0.1)
    assert conformance.tally.refused > 5_000


async def test_the_verbs_are_all_that_a_store_has_to_give(checkpointer: Checkpointer, clock: Dial) -> None:
    """Without a look at its effects a store is walked by its answers."""
    async with Conformance(Bench(checkpointer, clock, peek=None)) as conformance:
        await conformance.wander([Case(Rules(), scope) for scope in SMALL], many=10, seed=2, share=0.1)
    assert conformance.tally.walks == 10


async def test_a_walk_notices_another_ones_store(clock: Dial) -> None:
    """A store that something else has written to is not where the model is."""
    async with Conformance(Bench(MemoryCheckpointer(clock=clock), clock)) as conformance:
        await conformance.store.create(
            "walk-0", graph="g", fingerprint="f", creator="carol", body=b"{}", status="ready"
        )
        with pytest.raises(AssertionError, match="create answered None") as caught:
            await conformance.wander([Case(Rules(), SMALL[0])], many=1, seed=1, share=0.0)
    assert "walk-0 of 'a line: router, gate, effect' on a MemoryCheckpointer" in caught.value.__notes__[0]
