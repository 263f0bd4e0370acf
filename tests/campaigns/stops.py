"""SIGSTOP at any moment of a driver's life, past its lease; another one finishes the run; SIGCONT: the first writes nothing.

It is stopped before or after a call of the store, an effect or an event, at a line of the library, or at a random instant.
An effect that it was just about to request it requests all the same: no store can stop that, so the receiver honours the
key. How often that happened is counted as `again under its key`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StateGraphError, StoreLocked
from stategraph.checkpoint import Policy
from tests.campaigns.verdict import Case, Found, Wrong, received, sorted_out
from tests.programs.interposed import interposed
from tests.programs.killed import ALL, Ahead, Death, Moments, forked, generation, lifetime, removed
from tests.programs.ledger import lines
from tests.programs.order import build, finish, judged, report

MANY = 1_000
SHARES = 64


async def drive(path: Path, policy: Policy, moments: Moments) -> str:
    """The driver that is stopped; what it is told in the end."""
    ledger = path.with_suffix(".ledger")
    async with SqliteCheckpointer(path) as inner:
        store = inner if moments.traced else interposed(inner, moments.around)
        try:
            await finish(build(store, ledger, policy, _silent if moments.traced else moments), ledger)
        except StateGraphError as error:
            return type(error).__name__
    return "ended"


async def take_over(path: Path, policy: Policy) -> dict[str, Any]:
    """Another driver, for whom the first one's lease is over; it waits only shortly for a lock that the first may hold."""
    ledger = path.with_suffix(".ledger")
    async with SqliteCheckpointer(path, clock=Ahead(1), timeout=0.2) as store:
        try:
            graph = build(store, ledger, policy)
            await finish(graph, ledger)
            return await report(graph)
        except StoreLocked:
            return {}


def _silent(what: str) -> None: ...


def answer(child: int, read: int) -> Any:
    """What the process tells when it ends."""
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    if not told:
        raise AssertionError("a process ended without an answer")
    return json.loads(told)


def rows(path: Path) -> list[tuple[Any, ...]]:
    """The log and the head, read past the library."""
    with closing(sqlite3.connect(path)) as connection:
        log = connection.execute("SELECT run, seq, kind, status, epoch, at_ms, digest FROM checkpoints ORDER BY seq")
        return log.fetchall() + connection.execute("SELECT seq, status, epoch, owner FROM runs").fetchall()


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """The lives are lived once, to know how long they are."""
    build(MemoryCheckpointer(), "").plan()  # what is loaded on first use is loaded before the first fork
    counted = {
        traced: int(generation(folder / f"{len(traced)}.db", "ask", 0, Death(), traced)["moments"])
        for traced in ((), ALL)
    }
    whole = lifetime(folder / "timed.db", "ask")

    def case(seed: int) -> Found:
        dice = random.Random(seed)
        policy: Policy = dice.choice(["ask", "keyed"])
        traced, at = dice.choice([(), ALL]), None
        seconds = dice.random() * whole if dice.random() < 0.2 else None
        if seconds is None:
            at = dice.randint(1, counted[traced])
        path = folder / f"{seed}.db"
        moments = Moments(at, () if at is None else traced, signal.SIGSTOP)
        found = stopped(path, policy, moments, seconds, dice)
        removed(path)
        return found

    yield case


def stopped(path: Path, policy: Policy, moments: Moments, seconds: float | None, dice: random.Random) -> Found:
    """Stop a driver, let another one finish, continue the first: what is wrong then."""
    found = Found()
    child, read = forked(lambda: drive(path, policy, moments), moments)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGSTOP)
    _, state = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(state):
        os.close(read)
        found.facts["ended before"] += 1
        return found
    report: dict[str, Any] = {}
    while not report:
        report = answer(*forked(lambda: take_over(path, policy), Moments(None)))
        if not report:  # it was stopped in the middle of a commit, and nobody else can write: a little later
            found.facts["stopped in a commit"] += 1
            os.kill(child, signal.SIGCONT)
            time.sleep(dice.random() / 500)
            os.kill(child, signal.SIGSTOP)
            _, state = os.waitpid(child, os.WUNTRACED)
            if not os.WIFSTOPPED(state):
                os.close(read)
                found.facts["ended before"] += 1
                return found
    before, ledger = rows(path), lines(path.with_suffix(".ledger"))
    os.kill(child, signal.SIGCONT)
    found.facts[f"the first one: {answer(child, read)}"] += 1
    if rows(path) != before:
        found.wrong.append(Wrong("doubled", "the stale driver has written"))
    after = lines(path.with_suffix(".ledger"))
    found.facts["again under its key"] += len(after) - len(received(after))
    if any(line == "run pay" for line in after[len(ledger) :]) and "click" not in ledger:
        found.wrong.append(Wrong("unapproved", "the stale driver has paid"))
    found.wrong += sorted_out(judged(report, received(after), policy))
    return found
