"""`CancelledError` at any await of a driver and its readers, once or impatiently, again and again.

The run is released, never failed; what was decided stays; nothing finished runs again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.campaigns.stores import any_store
from tests.campaigns.ticking import Ticking
from tests.campaigns.verdict import Case, Found, Wrong, concluded
from tests.programs.cancelled import interrupted_at
from tests.programs.order import build, finish

MANY = 10_000
SHARES = 64
#: In a file a life has about so many suspensions, in memory fewer: what is beyond the end cancels nothing.
SUSPENSIONS = 45


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """Whoever drives is cancelled, up to three times; then somebody finishes the run."""
    ledger = folder / "runs.ledger"

    async def case(dice: random.Random) -> Found:
        found, clock, acknowledged = Found(), Ticking(), Acknowledged()
        policy: Policy = dice.choice(["ask", "keyed"])
        store = any_store(dice, folder, clock)
        for nth in range(1, dice.choice([1, 1, 2, 3]) + 1):
            graph = build(acknowledged.of(store), ledger, policy)
            fatal = dice.randint(1, SUSPENSIONS // nth)
            found.facts["cancelled"] += await interrupted_at(finish(graph, ledger), fatal, dice.choice([1, 1, 2, 4]))
            head = await store.head("r")
            if head is not None and head.status not in ("ready", "pending", "completed"):
                found.wrong.append(Wrong("stuck", f"left {head.status}"))
        found.wrong += await concluded(store, ledger, policy, acknowledged)
        await store.close()
        return found

    def sync(seed: int) -> Found:
        ledger.unlink(missing_ok=True)
        return asyncio.run(case(random.Random(seed)))

    yield sync
