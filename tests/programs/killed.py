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
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from checkpointers.memory import MemoryCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph.checkpoint import Policy
from stategraph.clock import SystemClock
from tests.programs.interposed import interposed
from tests.programs.ledger import lines
from tests.programs.order import NODES, build, finish, judged, report

#: A process that has not ended after so many seconds is stuck.
PATIENCE = 30
#: The files whose lines are moments, by the ends of their paths.
TRACED = tuple(
    f"/{name}.py"
    for name in (
        "stategraph/driver", "stategraph/engine", "stategraph/execution", "stategraph/graph", "stategraph/deciding",
        "stategraph/stream", "checkpointers/sqlite", "checkpointers/database",
    )
)  # fmt: skip


class Ahead(SystemClock):
    """A clock that goes so many hours ahead: for who has it, the lease of a dead driver is over."""

    def __init__(self, hours: int) -> None:
        self._ahead = hours * 3_600_000

    def now(self) -> int:
        return super().now() + self._ahead


class Moments:
    """Counts the moments of a process's life and kills it at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.fatal = fatal
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, what: str) -> None:
        with self._lock:
            self.count += 1
            if self.count == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, verb: str, phase: Literal["before", "after"]) -> None:
        """A call of the store begins, or has returned."""
        self(f"{phase} {verb}")

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        """Each line of the library that is executed is a moment too."""
        if not frame.f_code.co_filename.endswith(TRACED):
            return None
        if event == "line":
            self(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self.trace


async def live(path: Path, policy: Policy, generation: int, moments: Moments, lines_too: bool) -> dict[str, Any]:
    """One generation: bring the run to its end, then report."""
    ledger = path.with_suffix(".ledger")
    around = moments.around if not lines_too else _nothing
    moment: Callable[[str], None] = moments if not lines_too else _silent
    async with SqliteCheckpointer(path, clock=Ahead(generation)) as inner:
        store = interposed(inner, around)
        await finish(build(store, ledger, policy, moment), ledger, moment)
        moments.fatal, many = None, moments.count
        return {**await report(build(inner, ledger)), "moments": many}


async def _nothing(verb: str, phase: str) -> None: ...


def _silent(what: str) -> None: ...


def generation(path: Path, policy: Policy, number: int, fatal: int | None, lines_too: bool, after: float | None) -> Any:
    """A forked process that lives one generation: its report, or None if it was killed, by its own hand or after a time."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        moments = Moments(fatal)
        if lines_too:
            threading.settrace(moments.trace)
            sys.settrace(moments.trace)
        lived = asyncio.run(live(path, policy, number, moments, lines_too))
        sys.settrace(None)
        os.write(write, json.dumps(lived).encode())
        os._exit(0)
    os.close(write)
    if after is not None:
        time.sleep(after)
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
    path: Path, policy: Policy, fatal: tuple[int | None, ...], lines_too: bool, after: float | None
) -> tuple[list[str], dict[str, int]]:
    """Kill one generation after the other, let the last one finish: what is wrong with what came of it, and what came."""
    wrong: list[str] = []
    told, number = None, 0
    for number, moment in enumerate((*fatal, None)):
        finished, ran = standing(path)
        told = generation(path, policy, number, moment, lines_too, after if number == 0 else None)
        again = {node: count for node, count in (standing(path)[1] - ran).items() if node in finished}
        if again:
            wrong.append(f"generation {number} ran finished nodes again: {again}")
        if told is not None:
            break
    assert told is not None
    ledger = lines(path.with_suffix(".ledger"))
    facts = {
        "killed": number,
        "asked": len(told["doubts"]),
        "recovered": sum(emit["recovered"] for emit in told["emits"]),
        "dedup_hits": sum(emit["provider_dedup_hit"] for emit in told["emits"]),
        "rerun": sum(line.startswith("run ") for line in ledger) - len(NODES),
    }
    return wrong + judged(told, ledger, policy), facts


def main(folder: str, policy: Policy, kind: str, share: str, shares: str, stride: str = "1") -> None:
    """Tell a line for each campaign of this share that went wrong, then how many there were and what happened in them.

    `kind` is what a process is killed at: each `moment` (calls of the store, effects, events), `pairs` of them, each
    `line` of the library, or a random `time`.
    """
    print('"ready"', flush=True)
    root = Path(folder)
    build(MemoryCheckpointer(), "").plan()  # what is loaded on first use is loaded before the first fork
    lines_too = kind == "line"
    whole = generation(root / f"whole{share}.db", policy, 0, None, lines_too, None)
    many, dice = whole["moments"], random.Random(policy + kind)
    points: list[tuple[int | None, ...]]
    seconds: list[float | None] = [None]
    if kind == "pairs":
        points = [(dice.randrange(1, many), dice.randrange(1, many // 2)) for _ in range(int(stride))]
    elif kind == "time":
        began = time.monotonic()
        generation(root / f"timed{share}.db", policy, 0, None, False, None)
        took = time.monotonic() - began
        points = [(None,)] * int(stride)
        seconds = [dice.random() * took for _ in points]
    else:
        points = [(moment,) for moment in range(1, many + 1, int(stride))]
    facts: Counter[str] = Counter(moments=many)
    for number in range(int(share), len(points), int(shares)):
        path = root / f"{kind}{number}.db"
        wrong, happened = campaign(path, policy, points[number], lines_too, seconds[number % len(seconds)])
        facts.update(happened, tried=1)
        if wrong:
            print(json.dumps({"point": points[number], "wrong": wrong, "where": str(path)}), flush=True)
        else:
            for suffix in (".db", ".db-wal", ".db-shm", ".ledger"):
                path.with_suffix(suffix).unlink(missing_ok=True)
    print(json.dumps(facts), flush=True)
