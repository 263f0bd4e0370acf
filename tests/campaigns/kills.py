"""SIGKILL at a random instant, of one driver after the other; who comes last finishes the run.

What a seed repeats is the policy and the times, not the instruction at which the process happens to be by then.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkpointers.memory import MemoryCheckpointer
from stategraph.checkpoint import Policy
from tests.campaigns.verdict import Case, Found, sorted_out
from tests.programs.killed import Death, campaign, lifetime, removed
from tests.programs.order import build

MANY = 10_000
SHARES = 64


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """One death, or two or three: the first anywhere in a whole life, the others in a shorter one."""
    build(MemoryCheckpointer(), "").plan()  # what is loaded on first use is loaded before the first fork
    whole = min(lifetime(folder / f"whole{number}.db", "ask") for number in range(3))

    def case(seed: int) -> Found:
        dice = random.Random(seed)
        policy: Policy = dice.choice(["ask", "keyed"])
        deaths = [Death(seconds=dice.random() * whole / nth) for nth in range(1, dice.choice([1, 1, 2, 3]) + 1)]
        path = folder / f"{seed}.db"
        wrong, facts = campaign(path, policy, deaths)
        removed(path)
        return Found(sorted_out(wrong), Counter(facts))

    yield case
