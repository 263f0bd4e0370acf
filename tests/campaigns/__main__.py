"""All campaigns at length, as one table.

python -m tests.campaigns                          the model, then every campaign
python -m tests.campaigns kills powercuts          some of them; parts of the model by their names: walks, medium, ...
python -m tests.campaigns kills --cases 10000      more cases, or fewer
python -m tests.campaigns kills --seed 4711        one case again, by the seed that was printed when it failed
python -m tests.campaigns kills --broken --cases 9 with a promise of the library taken back: it has to be found
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
from importlib import import_module
from typing import cast

import apsw

from tests.campaigns.broken import BROKEN
from tests.campaigns.running import HEADING, Campaign, Tally, run

NAMES = (
    "lines", "kills", "stops", "powercuts", "relaxed", "full", "errors", "flips", "races", "cancels", "leavers", "clocks",
    "cuts",
)  # fmt: skip
#: So many of the seeds that found something are told in full.
TOLD = 20


def say(text: str = "") -> None:
    """A line, at once: a campaign takes its time."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell(name: str, tally: Tally) -> None:
    """The campaign's line, what happened in it, and whatever was wrong."""
    say(tally.row(name))
    for seed, found in sorted(tally.wrong.items())[:TOLD]:
        for wrong in found:
            say(f"  {wrong.kind}: {wrong.what}\n  again with: python -m tests.campaigns {name} --seed {seed}")


def campaigns(names: list[str], first: int, many: int | None, shares: int) -> bool:
    """Run these campaigns; whether nothing was wrong."""
    say(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, apsw's SQLite {apsw.sqlite_lib_version()}"
    )
    say(HEADING)
    facts, good = [], True
    for name in names:
        campaign = cast("Campaign", import_module(f"tests.campaigns.{name}"))
        tally = run(campaign, range(first, first + (many or campaign.MANY)), shares)
        tell(name, tally)
        good = good and not tally.wrong and tally.cases > 0
        facts.append(f"{name}: " + ", ".join(f"{what} {count:,}" for what, count in sorted(tally.facts.items())))
    say("\nWhat happened in them:")
    for line in facts:
        say(line)
    return good


def main() -> int:
    """Run what is named, else all of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help=", ".join(NAMES))
    parser.add_argument(
        "--cases", type=int, help="how many, from the seed on (each campaign's own number; 1 with --seed)"
    )
    parser.add_argument("--seed", type=int, help="of the first case (1)")
    parser.add_argument("--shares", type=int, default=os.cpu_count(), help="processes side by side (one for each core)")
    parser.add_argument(
        "--broken", action="store_true", help="take a promise back first, one that the campaign is about"
    )
    given, rest = parser.parse_known_args()
    if rest or not given.names or not set(given.names) <= set(NAMES):
        from tests.model import __main__ as model  # its searches are not for who asks for one campaign

        if given.names or rest:
            return model.main()
        if model.main([]):
            return 1
    if given.broken:
        for name in given.names:
            for take_back in BROKEN[name]:
                take_back()
    many = given.cases or (1 if given.seed is not None else None)
    return 0 if campaigns(given.names or list(NAMES), given.seed or 1, many, given.shares) else 1


if __name__ == "__main__":
    sys.exit(main())
