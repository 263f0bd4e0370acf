"""Hunting mutants: whether the walks notice that a store is damaged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.model.conform import Conformance, Tour
from tests.model.mutants import Mutant
from tests.model.scope import Case

__all__ = ["noticed"]

#: Seconds for one part of a hunt: a store that does not answer any more is damaged.
PATIENCE = 60


async def noticed(mutant: Mutant, cases: Sequence[Case], tours: Sequence[Tour], walks: int) -> str | None:
    """What gives the mutant away, or None. Random walks first: most are found by the first ones."""
    try:
        async with Conformance(mutant.bench()) as conformance:
            await asyncio.wait_for(conformance.wander(cases, walks // 4, seed=1, share=0.4), PATIENCE)
            await asyncio.wait_for(conformance.tour(tours, share=0.05), PATIENCE)
            await asyncio.wait_for(conformance.wander(cases, walks, seed=2, share=0.2), PATIENCE)
    except Exception as error:  # noqa: BLE001  # whatever a damaged store does
        return f"{type(error).__name__}: {error}"
    return None
