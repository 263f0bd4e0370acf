"""SIGSTOP at any moment of a driver's life, past its lease; another one finishes the run; SIGCONT: the first writes nothing.

It is stopped before or after a call of the store, an effect or an event, at a line of the library, or at a random instant.
An effect that it was just about to request it requests all the same: no store can stop that, so the receiver honours the
key. How often that happened is counted as `again under its key`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
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


async def drive(path: Path, policy: Policy, hours: int, moments: Moments) -> str:
    """A driver that is stopped; what it is told in the end."""
    ledger = path.with_suffix(".ledger")
    async with SqliteCheckpointer(path, clock=Ahead(hours), timeout=1) as inner:
        store = inner if moments.traced else interposed(inner, moments.around)
        try:
            await finish(build(store, ledger, policy, _silent if moments.traced else moments), ledger)
        except StateGraphError as error:
            return type(error).__name__
    return "ended"


async def take_over(path: Path, policy: Policy) -> dict[str, Any]:
    """Another driver, for whom the first one's lease is over; it waits only shortly for a lock that the first may hold."""
    ledger = path.with_suffix(".ledger")
    async with SqliteCheckpointer(path, clock=Ahead(2), timeout=0.2) as store:
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
    """The log and the head, read past the library; nothing while its tables are not made yet."""
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.OperationalError):
        log = connection.execute("SELECT run, seq, kind, status, epoch, at_ms, digest FROM checkpoints ORDER BY seq")
        return log.fetchall() + connection.execute("SELECT seq, status, epoch, owner FROM runs").fetchall()
    return []


def epoch(path: Path) -> int:
    """How often the run was claimed."""
    *_, head = rows(path) or [(0, "", 0, "")]
    return int(head[2])


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """The lives are lived once, to know how long they are."""
    build(MemoryCheckpointer(), "").plan()  # what is loaded on first use is loaded before the first fork
    counted: dict[tuple[str, ...], int] = {
        traced: int(generation(folder / f"{len(traced)}.db", "ask", 0, Death(), traced)["moments"])
        for traced in ((), ALL)
    }
    whole = lifetime(folder / "timed.db", "ask")

    def case(seed: int) -> Found:
        dice, path = random.Random(seed), folder / f"{seed}.db"
        policy: Policy = dice.choice(["ask", "keyed"])
        traced = dice.choice(list(counted))
        if dice.random() < 0.2:
            first = Stopped(path, policy, 0, Moments(None), dice.random() * whole)
        else:
            first = Stopped(path, policy, 0, Moments(dice.randint(1, counted[traced]), traced, signal.SIGSTOP))
        # Before or after a call of the store, never in the middle of a commit: the first one has to be able to go on.
        moments = Moments(dice.randint(1, counted[()] // 2), (), signal.SIGSTOP)
        with ExitStack() as stack:
            stack.callback(first.close)

            def second() -> Stopped:
                made = Stopped(path, policy, 1, moments)
                stack.callback(made.close)
                return made

            found = judge(path, policy, dice, first, second if dice.random() < 0.5 else None)
        removed(path)
        return found

    yield case


class Stopped:
    """A driver that is stopped at some moment of its life, if it gets there."""

    def __init__(self, path: Path, policy: Policy, hours: int, moments: Moments, seconds: float | None = None) -> None:
        self.process, self._read = forked(lambda: drive(path, policy, hours, moments), moments)
        self.gone = False
        if seconds is not None:
            time.sleep(seconds)
            os.kill(self.process, signal.SIGSTOP)
        self.there = self._stands()

    def _stands(self) -> bool:
        _, state = os.waitpid(self.process, os.WUNTRACED)
        if not os.WIFSTOPPED(state):
            os.close(self._read)
            self.gone = True
        return os.WIFSTOPPED(state)

    def a_little_later(self, seconds: float) -> None:
        """Stop it once more, after it has gone on for so long."""
        os.kill(self.process, signal.SIGCONT)
        time.sleep(seconds)
        os.kill(self.process, signal.SIGSTOP)
        self.there = self._stands()

    def goes_on(self) -> str:
        """Let it live to its end; what it is told."""
        os.kill(self.process, signal.SIGCONT)
        self.there, self.gone = False, True
        return str(answer(self.process, self._read))

    def close(self) -> None:
        """Leave no process behind that stands still for ever."""
        if not self.gone:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            os.close(self._read)


def judge(
    path: Path, policy: Policy, dice: random.Random, first: Stopped, second: Callable[[], Stopped] | None
) -> Found:
    """Another driver takes the run over while the first one is stopped, perhaps is stopped too; then the first goes on."""
    found = Found()
    if not first.there:
        found.facts["ended before"] += 1
        return found
    if second is not None:
        held = epoch(path)
        between = second()
        if between.there:
            before, now = rows(path), epoch(path)
            told = first.goes_on()
            found.facts["went on beside another"] += now > held
            # It may decide, and claim a run that the other one has left at its gate, like anybody else.
            stale = [row for row in rows(path)[:-1] if row not in before and (row[4] or now + 1) <= now]
            if now > held and stale:
                found.wrong.append(Wrong("doubled", f"the stale driver has written, and was told {told}"))
            first = between
    report: dict[str, Any] = {}
    while not report:
        report = answer(*forked(lambda: take_over(path, policy), Moments(None)))
        if (
            not report and first.there
        ):  # stopped in the middle of a commit, so that nobody else can write: a little later
            found.facts["stopped in a commit"] += 1
            first.a_little_later(dice.random() / 500)
    before, ledger = rows(path), lines(path.with_suffix(".ledger"))
    if first.there:
        found.facts[f"told {first.goes_on()}"] += 1
    if rows(path) != before:
        found.wrong.append(Wrong("doubled", "the stale driver has written"))
    after = lines(path.with_suffix(".ledger"))
    found.facts["again under its key"] += len(after) - len(received(after))
    if "run pay" in after[len(ledger) :] and "click" not in ledger:
        found.wrong.append(Wrong("unapproved", "the stale driver has paid"))
    found.wrong += sorted_out(judged(report, received(after), policy))
    return found
