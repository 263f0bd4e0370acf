"""A consumer that closes its stream (`aclose`) at any event, after any wait; others that do the same come after it.

The run is released at once, and whoever resumes it finishes it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

from stategraph import Event, StateGraph, UnknownRun
from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.campaigns.stores import any_store
from tests.campaigns.ticking import Ticking
from tests.campaigns.verdict import Case, Found, Wrong, concluded
from tests.programs.ledger import note
from tests.programs.order import build, truth

MANY = 10_000
SHARES = 64


async def next_stream(graph: StateGraph, ledger: Path) -> AsyncIterator[Event] | None:
    """What a consumer of the run `r` would read next."""
    try:
        run = await graph.info("r")
    except UnknownRun:
        return graph.stream({"amount": 7}, "r")
    if run.ended:
        return None
    if run.status != "pending":
        return graph.recover("r")
    (waiting, *_) = run.waiting()
    if waiting.opening.kind == "approval":
        note(ledger, "click")
        return graph.resume("r", "approved", boundary=waiting.id, by="ann", decision_id="click")
    decision, answer = truth(waiting.opening.node, ledger)
    return graph.resume("r", decision, boundary=waiting.id, by="ops", answer=answer)


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """Each consumer takes some events, lets the loop turn a few times, and leaves."""
    ledger = folder / "runs.ledger"

    async def case(dice: random.Random) -> Found:
        found, acknowledged = Found(), Acknowledged()
        policy: Policy = dice.choice(["ask", "keyed"])
        store = any_store(dice, folder, Ticking())
        graph = build(acknowledged.of(store), ledger, policy)
        for _ in range(dice.randint(1, 6)):
            events = await next_stream(graph, ledger)
            if events is None:
                break
            many = dice.randint(0, 6)
            async with aclosing(events) as stream:  # type: ignore[type-var]
                while many and await anext(stream, None) is not None:
                    many -= 1
                for _ in range(dice.randrange(4)):
                    await asyncio.sleep(0)
            found.facts["left"] += not many
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
