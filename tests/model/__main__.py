"""The campaign: every search, walk and mutant at length, as tables.

python -m tests.model                        everything but the largest scopes
python -m tests.model wrong medium           some of its parts: small wrong medium large walks mutants
python -m tests.model walks --seed 7         other walks; a walk that fails is repeated by its seed
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph.checkpoint import Checkpointer
from stategraph.clock import Clock
from tests.model.bench import Bench, Dial
from tests.model.conform import Conformance, Tally, Tour
from tests.model.equivalents import EQUIVALENT
from tests.model.hunt import noticed
from tests.model.mutants import Mutant, mutants
from tests.model.rules import Rules
from tests.model.scope import Case, Scope
from tests.model.scopes import LARGE, MEDIUM, SMALL
from tests.model.search import Result, explore
from tests.model.tours import tours
from tests.model.variants import HARMLESS, WRONG

#: The stores that are walked.
STORES: dict[str, Callable[[Clock], Checkpointer]] = {
    "memory": lambda clock: MemoryCheckpointer(clock=clock),
    "sqlite": lambda clock: SqliteCheckpointer(":memory:", clock=clock),
}
#: How many random walks each mutant is hunted with, at most.
HUNTS = 150


def say(text: str = "") -> None:
    """A line, at once: a campaign takes its time."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def searched(scopes: Iterable[Scope]) -> bool:
    """The protocol in these scopes."""
    results = []
    say(f"{'scope':44}{'states':>11}{'transitions':>13}{'seconds':>9}  result")
    for scope in scopes:
        results.append(explore(Case(Rules(), scope)))
        say(f"{scope.name:44}{_row(results[-1])}")
        for fault in results[-1].faults:
            say(str(fault))
    states, transitions, seconds = (sum(figures) for figures in zip(*(result[:3] for result in results), strict=True))
    say(f"{'together':44}{states:11,}{transitions:13,}{seconds:9.1f}")
    return all(result.complete and not result.faults for result in results)


def _row(result: Result) -> str:
    word = f"{len(result.faults)} faults" if result.faults else "holds" if result.complete else "not finished"
    return f"{result.states:11,}{result.transitions:13,}{result.seconds:9.1f}  {word}"


def varied() -> bool:
    """The tempting variants, each with its shortest counterexample; the harmless ones with none."""
    good = True
    for variant in WRONG:
        result = explore(variant.case, first=True)
        good = good and bool(result.faults)
        say(f"\n{variant.name}: {f'after {result.states:,} states' if result.faults else 'NO COUNTEREXAMPLE'}")
        for fault in result.faults[:1]:
            say(str(fault))
    for variant in HARMLESS:
        result = explore(variant.case)
        good = good and result.complete and not result.faults
        say(f"\n{variant.name}: {' '.join(_row(result).split())}")
    return good


def walked(seed: int, many: int) -> bool:
    """Every store along the model's walks; where one goes another way, the campaign ends with the walk."""
    say(f"seed {seed}")
    say(f"{'store':12}{'walks':>9}{'steps':>11}{'worlds':>11}{'refused':>11}{'seconds':>9}  result")
    for name, open_store in STORES.items():
        began, clock = time.process_time(), Dial()
        tally = asyncio.run(_walked(Bench(open_store(clock), clock), seed, many))
        seconds = time.process_time() - began
        say(f"{name:12}{tally.walks:9,}{tally.steps:11,}{tally.worlds:11,}{tally.refused:11,}{seconds:9.1f}  agrees")
    return True


async def _walked(bench: Bench, seed: int, many: int) -> Tally:
    async with Conformance(bench) as conformance:
        await conformance.tour(chosen(), share=0.3)
        await conformance.wander([Case(Rules(), scope) for scope in (*SMALL, *MEDIUM)], many, seed, share=0.2)
    return conformance.tally


def hunted() -> bool:
    """Every mutant: those that survive are the equivalent ones."""
    began, names = time.time(), [mutant.name for mutant in every()]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        notices = dict(zip(names, pool.map(hunt, range(len(names))), strict=True))
    survivors = {name for name, notice in notices.items() if notice is None}
    for name in names:
        if name in survivors:
            say(f"{'equivalent' if name in EQUIVALENT else 'SURVIVED':12}{name}: {EQUIVALENT.get(name, '')}")
        elif name in EQUIVALENT:
            say(f"NOT EQUIVALENT {name}: {notices[name]}")
    say(f"{len(names) - len(survivors)} of {len(names)} mutants noticed, in {time.time() - began:,.0f} seconds")
    return survivors == set(EQUIVALENT)


def hunt(number: int) -> str | None:
    """Hunt one mutant, in a process of its own."""
    return asyncio.run(noticed(every()[number], cases(), chosen(), HUNTS))


@cache
def every() -> list[Mutant]:
    return mutants()


@cache
def cases() -> list[Case]:
    return [Case(Rules(), scope) for scope in SMALL]


@cache
def chosen() -> list[Tour]:
    return tours(cases())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are named, else all but the large scopes."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help="small, wrong, medium, large, walks, mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the walks (1)")
    parser.add_argument("--walks", type=int, default=2_000, help="random ones for each store (2000)")
    given = parser.parse_args(arguments)
    parts: dict[str, Callable[[], bool]] = {
        "small": partial(searched, SMALL),
        "wrong": varied,
        "medium": partial(searched, MEDIUM),
        "large": partial(searched, LARGE),
        "walks": partial(walked, given.seed, given.walks),
        "mutants": hunted,
    }
    if unknown := set(given.parts) - set(parts):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    good = True
    for name in given.parts or [name for name in parts if name != "large"]:
        say(f"\n== {name} ==")
        good = parts[name]() and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
