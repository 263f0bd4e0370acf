"""A hundred deciders of one boundary, some for and some against, then a hundred drivers of one run: all at the same moment.

In a SQLite file and on a PostgreSQL server each has a connection of its own, in four processes; in memory they are tasks.
One decision is stored, everybody is told whose; what was approved is done once, what was rejected never.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from checkpointers.memory import MemoryCheckpointer
from stategraph import Checkpointer, DecisionRefused, StateGraphError
from tests.campaigns.verdict import Case, Found, Wrong
from tests.programs.ledger import lines
from tests.programs.postgres import execute, server
from tests.programs.processes import at_once, started
from tests.programs.racer import build
from tests.programs.racer import opened as opened_at

MANY = 600
SHARES = 1  # it has a hundred threads as it is
PROCESSES, THREADS = 4, 25

#: What each of a hundred answers who acts at once: a verb and a name for each.
Crowd = Callable[[str, Sequence[tuple[str, str]]], list[dict[str, Any]]]


def of_processes(crowd: Any) -> Crowd:
    """Racers in processes and threads."""

    def act(run_id: str, acts: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        orders = [[verb, run_id, who] for verb, who in acts]
        return list(itertools.chain(*at_once(crowd, [orders[nth::PROCESSES] for nth in range(PROCESSES)])))

    return act


def of_tasks(runner: asyncio.Runner, store: Checkpointer, ledger: Path) -> Crowd:
    """Racers in one event loop."""
    graph = build(store, ledger)

    async def one(run_id: str, verb: str, who: str) -> dict[str, Any]:
        try:
            if verb == "decide":
                decided = await graph.decide(run_id, who.split()[0], by=who, boundary="1.0")
                return {"who": who, "done": {"by": decided.by}}
            return {"who": who, "done": [event.event_type async for event in graph.recover(run_id)]}
        except DecisionRefused as error:
            return {"who": who, "refused": str(error), "by": error.by, "decision": error.decision}
        except StateGraphError as error:
            return {"who": who, "error": type(error).__name__, "said": str(error)}

    async def all_of(run_id: str, acts: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        return await asyncio.gather(*(one(run_id, verb, who) for verb, who in acts))

    return lambda run_id, acts: runner.run(all_of(run_id, acts))


class Track:
    """A store on which races are run."""

    def __init__(self, name: str, runner: asyncio.Runner, store: Checkpointer, ledger: Path, crowd: Crowd) -> None:
        self.name = name
        self.runner, self.store, self.ledger, self.crowd = runner, store, ledger, crowd
        self.graph = build(store, ledger)

    def race(self, run_id: str, dice: random.Random) -> Found:
        """A run that waits at its gate, its deciders, then its drivers."""
        found = Found()
        self.runner.run(self.graph.run({"order": run_id}, run_id))
        many = PROCESSES * THREADS
        share = dice.choice([0.5, 0.9, 1.0])
        words = ["approved" if dice.random() < share else "rejected" for _ in range(many)]
        answers = self.crowd(run_id, [("decide", f"{word} by {nth}") for nth, word in enumerate(words)])
        won = [answer for answer in answers if "done" in answer]
        decisions = [row for row in self.runner.run(self.graph.history(run_id)) if row.kind == "decision"]
        self._check(found, len(won) == 1, "doubled" if won else "stuck", f"{len(won)} have decided")
        self._check(
            found, len(decisions) == 1, "doubled" if decisions else "lost", f"{len(decisions)} decisions stored"
        )
        if found.wrong:
            return found
        winner, word = won[0]["who"], won[0]["who"].split()[0]
        self._check(
            found, (decisions[0].actor, decisions[0].decision) == (winner, word), "lost", "another one is stored"
        )
        told = {answer.get("by") for answer in answers if answer is not won[0]}
        self._check(found, told == {winner}, "lost", f"who decided was told as {told}, not {winner}")
        self._check(found, f"{run_id} pay" not in lines(self.ledger), "unapproved", "paid before anybody drove it")
        answers = self.crowd(run_id, [("recover", f"driver {nth}") for nth in range(many)])
        drove = [answer for answer in answers if len(answer.get("done", ())) == 5]
        expected = int(word == "approved")
        paid = lines(self.ledger).count(f"{run_id} pay")
        self._check(found, len(drove) == expected, "doubled" if drove else "stuck", f"{len(drove)} have driven it")
        self._check(found, paid <= expected, "doubled" if expected else "unapproved", f"paid {paid} times")
        self._check(found, paid >= expected, "lost", "not paid")
        status = self.runner.run(self.graph.info(run_id)).status
        self._check(found, status == ("completed" if expected else "rejected"), "stuck", f"it is {status}")
        found.facts[f"{self.name} {word}"] += 1
        return found

    def _check(self, found: Found, holds: bool, kind: Any, what: str) -> None:
        if not holds:
            found.wrong.append(Wrong(kind, f"{self.name}: {what}"))


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """The stores take turns."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        made = stack.enter_context(server())
        asyncio.run(_with_room(made.url))
        made.control("restart")
        tracks: list[Track] = []
        for place in (str(folder / "runs.db"), made.url):
            store, ledger = opened_at(place), folder / f"{len(tracks)}.ledger"
            stack.callback(_closed, runner, store)
            crowd = stack.enter_context(started("racer", PROCESSES, place, ledger, THREADS))
            tracks.append(Track(("sqlite", "postgres")[len(tracks)], runner, store, ledger, of_processes(crowd)))
        memory, ledger = MemoryCheckpointer(), folder / "memory.ledger"
        tracks.append(Track("memory", runner, memory, ledger, of_tasks(runner, memory, ledger)))

        def case(seed: int) -> Found:
            return tracks[seed % len(tracks)].race(f"r{seed}", random.Random(seed))

        yield case


async def _with_room(url: str) -> None:
    """Connections for everybody, from its next start on."""
    await execute(url, "ALTER SYSTEM SET max_connections TO 300")


def _closed(runner: asyncio.Runner, store: Checkpointer) -> None:
    runner.run(store.close())
