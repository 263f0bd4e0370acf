"""The stores that a case may have: in memory, or in a file with full or relaxed durability."""

from __future__ import annotations

import random
from pathlib import Path

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import Checkpointer
from stategraph.clock import Clock


def any_store(dice: random.Random, folder: Path, clock: Clock) -> Checkpointer:
    """One of them, with nothing in it."""
    for file in folder.glob("runs.*"):
        file.unlink()
    kind = dice.choice(["memory", "full", "relaxed"])
    if kind == "memory":
        return MemoryCheckpointer(clock=clock)
    return SqliteCheckpointer(folder / "runs.db", clock=clock, durability=kind)  # type: ignore[arg-type]
