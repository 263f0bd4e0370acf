"""A fork server of crash campaigns: kills a process at each moment of a run's life, lets others finish it, and judges.

It stays without threads and forks a fresh process for every generation; each is killed by SIGKILL, so that no handler runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph.checkpoint import Policy
from stategraph.clock import SystemClock
from tests.programs.interposed import interposed
from tests.programs.ledger import lines
from tests.programs.order import NODES, build, finish, judged, report

#: A process that has not ended after so many seconds is stuck.
PATIENCE = 30
#: The files whose lines are moments, by what is in their paths: those that a driver's way leads through.
TRACED = tuple(
    f"/{name}.py"
    for name in (
        "stategraph/driver", "stategraph/engine", "stategraph/execution", "stategraph/graph", "stategraph/deciding",
        "stategraph/stream", "checkpointers/sqlite", "checkpointers/database",
    )
)  # fmt: skip
#: All of the library's files.
ALL = ("/stategraph/", "/checkpointers/")


class Place(NamedTuple):
    """A moment by what happens, and for the how many-th time."""

    what: str
    time: int


class Death(NamedTuple):
    """When a generation is killed: at the n-th of its moments, at one by its name, or after so many seconds."""

    moment: int | Place | None = None
    seconds: float | None = None


class Ahead(SystemClock):
    """A clock that goes so many hours ahead: for who has it, the lease of a dead driver is over."""

    def __init__(self, hours: int) -> None:
        self._ahead = hours * 3_600_000

    def now(self) -> int:
        return super().now() + self._ahead


class Moments:
    """Counts the moments of a process's life and kills it at one of them, or sends it another signal."""

    def __init__(self, fatal: int | Place | None, traced: tuple[str, ...] = (), number: int = signal.SIGKILL) -> None:
        self.fatal = fatal
        self.traced = traced
        self.number = number
        self.count = 0
        self.places: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, what: str) -> None:
        with self._lock:
            self.count += 1
            self.places[what] += 1
            if self.fatal in (self.count, (what, self.places[what])):
                os.kill(os.getpid(), self.number)

    async def around(self, verb: str, phase: Literal["before", "after"]) -> None:
        """A call of the store begins, or has returned."""
        self(f"{phase} {verb}")

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        """Each line of the library that is executed is a moment too."""
        if not any(part in frame.f_code.co_filename for part in self.traced):
            return None
        if event == "line":
            self(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self.trace


async def live(path: Path, policy: Policy, generation: int, moments: Moments) -> dict[str, Any]:
    """One generation: bring the run to its end, then report."""
    ledger = path.with_suffix(".ledger")
    told = os.open(path.with_suffix(".told"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def moment(what: str) -> None:
        if what.startswith("told state_update "):
            os.write(told, f"{what.rpartition(' ')[2]}\n".encode())
        if not moments.traced:
            moments(what)

    async with SqliteCheckpointer(path, clock=Ahead(generation)) as inner:
        store = inner if moments.traced else interposed(inner, moments.around)
        await finish(build(store, ledger, policy, moment), ledger, moment)
        moments.fatal, many, places = None, moments.count, dict(moments.places)
        return {**await report(build(inner, ledger)), "moments": many, "places": places}


def forked(work: Callable[[], Coroutine[Any, Any, Any]], moments: Moments) -> tuple[int, int]:
    """A process that does this, with these moments: its id, and the pipe by which it tells what came of it."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        if moments.traced:
            threading.settrace(moments.trace)
            sys.settrace(moments.trace)
        told = asyncio.run(work())
        sys.settrace(None)
        os.write(write, json.dumps(told).encode())
        os._exit(0)
    except BaseException:  # noqa: BLE001  # it must not go on as if it were its parent
        traceback.print_exc()
        os._exit(1)


def generation(path: Path, policy: Policy, number: int, death: Death, traced: tuple[str, ...]) -> Any:
    """A process that lives one generation: its report, or None if it was killed, by its own hand or after a time."""
    moments = Moments(death.moment, traced)
    child, read = forked(lambda: live(path, policy, number, moments), moments)
    if death.seconds is not None:
        time.sleep(death.seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL:
        return None
    if not told:
        raise AssertionError(f"generation {number} ended with {ended:#x}, in {path}")
    return json.loads(told)


def standing(path: Path) -> tuple[set[str], Counter[str]]:
    """The nodes that are finished by now, read past the library; and how often each was run."""
    ran = Counter(line.removeprefix("run ") for line in lines(path.with_suffix(".ledger")) if line.startswith("run "))
    if not path.exists():
        return set(), ran
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT body FROM checkpoints WHERE kind = 'node'").fetchall()
    except sqlite3.OperationalError:  # the file was made, its tables not yet
        rows = []
    finally:
        connection.close()
    return {json.loads(body)["node"] for (body,) in rows}, ran


def campaign(
    path: Path, policy: Policy, deaths: Sequence[Death], traced: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, int]]:
    """Kill one generation after the other, let the last one finish: what is wrong with what came of it, and what came."""
    wrong: list[str] = []
    report, number = None, 0
    for number, death in enumerate((*deaths, Death())):
        finished, ran = standing(path)
        report = generation(path, policy, number, death, traced)
        now, ran_since = standing(path)[0], standing(path)[1] - ran
        again = {node: count for node, count in ran_since.items() if node in finished}
        if again:
            wrong.append(f"finished nodes ran again in generation {number}: {again}")
        missing = set(lines(path.with_suffix(".told"))) - now
        if missing:
            wrong.append(f"told of, and not stored after generation {number}: {missing}")
        if report is not None:
            break
    assert report is not None
    ledger = lines(path.with_suffix(".ledger"))
    facts = {
        "killed": number,
        "asked": len(report["doubts"]),
        "recovered": sum(emit["recovered"] for emit in report["emits"]),
        "dedup_hits": sum(emit["provider_dedup_hit"] for emit in report["emits"]),
        "rerun": sum(line.startswith("run ") for line in ledger) - len(NODES),
    }
    return wrong + judged(report, ledger, policy), facts


def removed(path: Path) -> None:
    """Nothing of a case is kept."""
    for suffix in (".db", ".db-wal", ".db-shm", ".ledger", ".told"):
        path.with_suffix(suffix).unlink(missing_ok=True)


def main(folder: str, policy: Policy, kind: str, share: str, shares: str, stride: str = "1") -> None:
    """Tell a line for each campaign of this share that went wrong, then how many there were and what happened in them.

    `kind` is what a process is killed at: each `moment` (calls of the store, effects, events), `pairs` of them, or each
    `line` of the library.
    """
    print('"ready"', flush=True)
    root = Path(folder)
    build(MemoryCheckpointer(), "").plan()  # what is loaded on first use is loaded before the first fork
    traced = TRACED if kind == "line" else ()
    whole = generation(root / f"whole{share}.db", policy, 0, Death(), traced)
    many, dice = whole["moments"], random.Random(policy + kind)
    points: list[tuple[Death, ...]]
    if kind == "pairs":
        points = [(Death(dice.randrange(1, many)), Death(dice.randrange(1, many // 2))) for _ in range(int(stride))]
    else:
        points = [(Death(moment),) for moment in range(1, many + 1, int(stride))]
    facts: Counter[str] = Counter(moments=many)
    for number in range(int(share), len(points), int(shares)):
        path = root / f"{kind}{number}.db"
        wrong, happened = campaign(path, policy, points[number], traced)
        facts.update(happened, tried=1)
        if wrong:
            print(json.dumps({"point": points[number], "wrong": wrong, "where": str(path)}), flush=True)
        else:
            removed(path)
    print(json.dumps(facts), flush=True)


def lifetime(path: Path, policy: Policy) -> float:
    """The seconds that a generation takes which nobody kills."""
    began = time.monotonic()
    generation(path, policy, 0, Death(), ())
    return time.monotonic() - began
