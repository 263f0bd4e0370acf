"""What a case has found, and the judge: a ledger outside the store against what the store says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from stategraph import Checkpointer, CorruptCheckpoint, StateGraphError
from stategraph.checkpoint import Policy
from tests.campaigns.acknowledged import Acknowledged
from tests.programs.ledger import lines
from tests.programs.order import build, finish, judged, report

Kind = Literal["lost", "stuck", "doubled", "unapproved"]
KINDS: tuple[Kind, ...] = ("lost", "stuck", "doubled", "unapproved")


class Wrong(NamedTuple):
    """One promise that was broken."""

    kind: Kind
    what: str


@dataclass
class Found:
    """What came of a case: what is wrong, and what happened in it."""

    wrong: list[Wrong] = field(default_factory=list)
    facts: Counter[str] = field(default_factory=Counter)


class Exhausted(Exception):
    """There are no cases from this seed on: all have been tried."""


#: A case, by its seed.
Case: TypeAlias = Callable[[int], Found]

#: What each check of `judged` is about.
_ABOUT: dict[str, Kind] = {
    "completed": "stuck",
    "the same state": "lost",
    "a gap-free log": "lost",
    "each node recorded once, in order": "doubled",
    "the approval asked once": "doubled",
    "decided once, by who clicked": "lost",
    "nothing paid before the click": "unapproved",
    "paid once": "doubled",
    "mailed once": "doubled",
    "a keyed effect asks nobody": "stuck",
    "late clicks are told": "lost",
}


def sorted_out(wrong: Iterable[str]) -> list[Wrong]:
    """What `judged` says, by what kind of wrong it is."""
    return [Wrong(_about(what), what) for what in wrong]


def _about(what: str) -> Kind:
    if what.startswith("finished nodes ran again"):
        return "doubled"
    return _ABOUT.get(what.removeprefix("not "), "lost")


def received(ledger: Iterable[str]) -> list[str]:
    """The ledger as a receiver that honours idempotency keys keeps it: each effect once under its key."""
    seen: set[str] = set()
    return [line for line in ledger if not (line.startswith("effect ") and (line in seen or seen.add(line)))]  # type: ignore[func-returns-value]


async def concluded(
    store: Checkpointer,
    ledger: Path,
    policy: Policy,
    acknowledged: Acknowledged | None = None,
    *,
    replaced: bool = False,
) -> list[Wrong]:
    """Bring the run `r` to its end from wherever it is, and judge it.

    `replaced`: a driver that was replaced may have been in the middle of an effect, which no store can stop; there the
    receiver is one that honours the key.
    """
    try:
        wrong = [] if acknowledged is None else await acknowledged.missing(store)
        finished = {row.node for row in await store.history("r") if row.kind == "node"}
        before = lines(ledger)
        graph = build(store, ledger, policy)
        await finish(graph, ledger)
        told, after = await report(graph), lines(ledger)
    except AssertionError as error:
        return [Wrong("stuck", str(error))]
    except CorruptCheckpoint as error:
        return [Wrong("lost", repr(error))]
    except StateGraphError as error:
        return [Wrong("stuck", repr(error))]
    again = [line for line in after[len(before) :] if line.removeprefix("run ") in finished]
    return [
        *(Wrong("lost", what) for what in wrong),
        *(Wrong("doubled", what) for what in (acknowledged.stale if acknowledged else ())),
        *(Wrong("doubled", f"a finished node ran again: {line}") for line in again),
        *sorted_out(judged(told, received(after) if replaced else after, policy)),
    ]
