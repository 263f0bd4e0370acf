"""A process of its own for a test: it opens the store through the test's class, and does what it is told, line by line."""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stategraph.checkpoint import Checkpointer
from stategraph.clock import ManualClock
from stategraph.errors import StateGraphError
from stategraph.testing.contest import CONTESTS
from stategraph.testing.ordeal import ORDEALS
from stategraph.testing.suite import Suite

__all__ = ["Child", "children", "main"]

#: Seconds after which a process that hangs ends, and shows where.
PATIENCE = 100
#: The child imports what its parent would.
START = """
import json, sys
told = json.loads(sys.argv[1])
sys.path[:] = told["path"]
from stategraph.testing.child import main
main(told)
"""


class Child:
    """The process, seen from its parent: told and heard in lines of JSON."""

    def __init__(self, suite: Suite, folder: Path, now: int, threads: int = 1) -> None:
        kind = type(suite)
        place = sys.modules[kind.__module__].__file__
        assert place is not None, f"{kind.__module__} has no file that another process could import"
        told = {
            "path": sys.path,
            # From where the class's module is imported by its name: pytest may know it without any entry of the path.
            "root": str(Path(place).resolve().parents[kind.__module__.count(".")]),
            "module": kind.__module__,
            "class": kind.__qualname__,
            "set": {name: value for name, value in vars(suite).items() if isinstance(value, (str, int, float))},
            "folder": str(folder),
            "now": now,
            "threads": threads,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(told)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, message: object) -> None:
        """A line for the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """The next line that it tells; None: it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ended(self) -> int:
        """Wait for its end: its exit code."""
        self.process.communicate()
        return self.process.returncode


@contextmanager
def children(suite: Suite, folder: Path, now: int, many: int, threads: int = 1) -> Iterator[Sequence[Child]]:
    """So many processes, each with its stores open when the block begins; none is left when it ends."""
    started = [Child(suite, folder, now, threads) for _ in range(many)]
    try:
        for child in started:
            assert child.hear() == "ready", (
                "the process that opens the store by itself has failed; what it says is above"
            )
        yield started
    finally:
        for child in started:
            child.process.kill()
            child.process.communicate()


# -- in the process itself


class Racer:
    """A thread of the process: an event loop and a store of its own."""

    def __init__(self, suite: Suite, folder: Path, now: int) -> None:
        self.runner = asyncio.Runner()
        self.store: Checkpointer = self.runner.run(self.opened(suite, folder, now))

    async def opened(self, suite: Suite, folder: Path, now: int) -> Checkpointer:
        """The store, when it has answered for the first time: nobody is late because of opening it."""
        store = suite.open(folder, ManualClock(now))
        await store.runs(limit=1)
        return store

    def go(self, barrier: threading.Barrier, contest: str, run_id: str, who: str) -> tuple[str, bool | str]:
        """Wait for the others, then try: who it was, and what came of it."""
        barrier.wait()
        try:
            return who, self.runner.run(CONTESTS[contest].go(self.store, run_id, who))
        except StateGraphError as error:
            return who, f"{type(error).__name__}: {error}"

    def close(self) -> None:
        """In the loop in which it was opened."""
        self.runner.run(self.store.close())
        self.runner.close()


def main(told: dict[str, Any]) -> None:
    """Open the stores, then do what each line says: tries that race, or an ordeal that the process does not survive."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    sys.path.append(told["root"])
    found: Any = importlib.import_module(told["module"])
    for name in told["class"].split("."):
        found = getattr(found, name)
    suite: Suite = found()
    for name, value in told["set"].items():
        setattr(suite, name, value)
    pools = [ThreadPoolExecutor(1) for _ in range(told["threads"])]  # each racer stays in its thread
    racers = [pool.submit(Racer, suite, Path(told["folder"]), told["now"]).result() for pool in pools]
    _tell("ready")
    for line in sys.stdin:
        order = json.loads(line)
        if "ordeal" in order:
            pools[0].submit(racers[0].runner.run, ORDEALS[order["ordeal"]](racers[0].store, _tell)).result()
            os._exit(0)  # unreachable if the ordeal does what it says; its parent expects another code
        tries = order["tries"]
        barrier = threading.Barrier(len(tries))
        answers = [
            pool.submit(racer.go, barrier, order["contest"], *given)
            for pool, racer, given in zip(pools, racers, tries, strict=False)
        ]
        _tell([answer.result() for answer in answers])
    for pool, racer in zip(pools, racers, strict=True):
        pool.submit(racer.close).result()


def _tell(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
