"""A process killed at each line of the library that it executes, and before and after each call of the store.

So is its first generation; the second, which takes over where the first one died; and the third. A seed is a place: the
policy, the generation, and which of its lines or calls, for the how many-th time. The first times all come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_args

from checkpointers.memory import MemoryCheckpointer
from stategraph.checkpoint import Policy
from tests.campaigns.verdict import Case, Exhausted, Found, sorted_out
from tests.programs.killed import ALL, Death, Place, campaign, generation, removed
from tests.programs.order import build

#: More than there are: every place has its turn.
MANY = 100_000
SHARES = 64
#: Where the generations before died, as parts of the moments of an undisturbed life: in the first effect, after the gate.
BEFORE = ((), (0.4,), (0.75,), (0.4, 0.5))


class Life(NamedTuple):
    """One generation, after others that died."""

    policy: Policy
    traced: tuple[str, ...]
    before: tuple[Death, ...]


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """The lives are lived once to see their moments."""
    build(MemoryCheckpointer(), "").plan()  # what is loaded on first use is loaded before the first fork
    lives = [
        _after(folder / "seen.db", Life(policy, traced, ()), parts)
        for traced, policy, parts in product(((), ALL), get_args(Policy), BEFORE)
    ]
    seen = [(life, _lived(folder / "seen.db", life)["places"]) for life in lives]
    places = [
        (life, Place(what, time))
        for time in range(1, max(max(times.values()) for _, times in seen) + 1)
        for life, times in seen
        for what, many in times.items()
        if time <= many
    ]

    def case(seed: int) -> Found:
        if seed > len(places):
            raise Exhausted
        life, place = places[seed - 1]
        path = folder / f"{seed}.db"
        wrong, facts = campaign(path, life.policy, (*life.before, Death(place)), life.traced)
        removed(path)
        times = "for the first time" if place.time == 1 else "again"
        facts[f"{'lines' if life.traced else 'calls'} {times}"] = 1
        return Found(sorted_out(wrong), Counter(facts))

    yield case


def _after(path: Path, life: Life, parts: tuple[float, ...]) -> Life:
    """The life after others, each of which died at a part of its moments."""
    for part in parts:
        life = life._replace(before=(*life.before, Death(round(_lived(path, life)["moments"] * part))))
    return life


def _lived(path: Path, life: Life) -> dict[str, Any]:
    """What a life reports that nobody ends."""
    for number, death in enumerate(life.before):
        assert generation(path, life.policy, number, death, life.traced) is None
    report: dict[str, Any] = generation(path, life.policy, len(life.before), Death(), life.traced)
    removed(path)
    return report
