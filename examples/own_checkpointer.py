"""A store of your own: SQLite's, which also tells somebody as soon as a run waits for a decision.

A checkpointer is any object with the methods of `stategraph.Checkpointer`: there is nothing to inherit or to register.
Every verb must be one atomic step that answers None where its predicate refuses it. Changing what a store does around
its verbs, as here, is safe; a store for another database has to keep every predicate (docs/checkpointers.md lists them).
Either is held to the contract by `stategraph.testing` (docs/testing.md), which is why it takes a clock.
"""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from checkpointers import SqliteCheckpointer
from stategraph import AgentState, Clock, StateGraph
from stategraph.checkpoint import Entry, Lease, Written


class TellingCheckpointer(SqliteCheckpointer):
    """Tells of a pause after it is stored, so that nobody is called for a run that a crash then forgets."""

    def __init__(self, path: Path, tell: Callable[[str], None], clock: Clock | None = None) -> None:
        super().__init__(path, clock=clock)
        self.tell = tell

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        written = await super().append(lease, seen, entries, snapshot)
        if written is not None and written.status == "pending":
            self.tell(f"{lease.run_id} waits for a decision, checkpoint {written.seq} is stored")
        return written


def quote(state: AgentState) -> dict[str, int]:
    return {"price": 1200}


def buy(state: AgentState) -> dict[str, bool]:
    return {"bought": True}


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with TellingCheckpointer(Path(folder) / "runs.db", tell=print) as store:
            graph = StateGraph(store, name="purchase")
            graph.add_node("quote", quote).add_node("buy", buy)
            graph.set_entry_point("quote").add_edge("quote", "buy").add_interrupt_before("buy")
            await graph.run({}, run_id="purchase-1")
            async for event in graph.resume("purchase-1", "approved", by="ann"):
                print(event.event_type, event.node_name)


if __name__ == "__main__":
    asyncio.run(main())
