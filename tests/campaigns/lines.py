"""A process killed at each line of the library that it executes, and before and after each call of the store.

Its first generation is killed at every one; then the second, which takes over where the first one died in the middle;
then the third. A seed is a place: the policy, the generation, and which of its lines or calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, product
from pathlib import Path
from typing import NamedTuple, get_args

from checkpointers.memory import MemoryCheckpointer
from stategraph.checkpoint import Policy
from tests.campaigns.verdict import Case, Exhausted, Found, sorted_out
from tests.programs.killed import ALL, Death, campaign, generation, removed
from tests.programs.order import build

#: More than there are: every place has its turn.
MANY = 100_000
SHARES = 64
#: Where the generations before died, as parts of the moments of an undisturbed life: in the first effect, after the gate.
BEFORE = ((), (0.4,), (0.75,), (0.4, 0.5))


class Stretch(NamedTuple):
    """All moments of one generation's life, of one kind."""

    policy: Policy
    traced: tuple[str, ...]
    before: tuple[Death, ...]
    moments: int


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """The lives are lived once to count their moments."""
    build(MemoryCheckpointer(), "").plan()  # what is loaded on first use is loaded before the first fork
    stretches = [
        _counted(folder / "counted.db", policy, traced, parts)
        for traced, policy, parts in product(((), ALL), get_args(Policy), BEFORE)
    ]
    ends = list(accumulate(stretch.moments for stretch in stretches))

    def case(seed: int) -> Found:
        place = seed - 1
        if place >= ends[-1]:
            raise Exhausted
        number = bisect_right(ends, place)
        stretch = stretches[number]
        moment = place - (ends[number] - stretch.moments) + 1
        path = folder / f"{seed}.db"
        wrong, facts = campaign(path, stretch.policy, (*stretch.before, Death(moment)), stretch.traced)
        removed(path)
        return Found(sorted_out(wrong), Counter(facts))

    yield case


def _counted(path: Path, policy: Policy, traced: tuple[str, ...], parts: tuple[float, ...]) -> Stretch:
    """How many moments the generation after these deaths has."""
    before: list[Death] = []
    for part in parts:
        report = _lived(path, policy, traced, before)
        before.append(Death(round(report * part)))
    return Stretch(policy, traced, tuple(before), _lived(path, policy, traced, before))


def _lived(path: Path, policy: Policy, traced: tuple[str, ...], before: list[Death]) -> int:
    for number, death in enumerate(before):
        assert generation(path, policy, number, death, traced) is None
    report = generation(path, policy, len(before), Death(), traced)
    removed(path)
    return int(report["moments"])
