"""A worker: takes up what is due, clicks and answers what waits, until every run has ended or somebody kills it."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StateGraphError
from tests.programs.ledger import note
from tests.programs.order import build, truth


async def work(folder: Path, lease: float, dice: random.Random) -> None:
    async with SqliteCheckpointer(folder / "runs.db", timeout=30) as store:

        async def drive(run_id: str) -> None:
            with suppress(StateGraphError):  # another was faster
                async for _ in build(store, folder / f"{run_id}.ledger", lease=lease).recover(run_id):
                    await asyncio.sleep(0)

        while any(head.status not in ("completed", "failed") for head in await store.runs(limit=1000)):
            due, _ = await store.due()
            await asyncio.gather(*map(drive, dice.sample(due, min(len(due), 5))))
            for boundary in await store.boundaries(state="open"):
                ledger = folder / f"{boundary.run_id}.ledger"
                graph = build(store, ledger, lease=lease)
                with suppress(StateGraphError):
                    if boundary.kind == "approval":
                        note(ledger, "click")
                        await graph.decide(
                            boundary.run_id, "approved", boundary=boundary.id, by="ann", decision_id="click"
                        )
                    else:
                        decision, answer = truth(boundary.node, ledger)
                        await graph.decide(boundary.run_id, decision, boundary=boundary.id, by="ops", answer=answer)
            await asyncio.sleep(0.01)


def main(folder: str, lease: str, seed: str) -> None:
    print('"ready"', flush=True)
    asyncio.run(work(Path(folder), float(lease), random.Random(seed)))
