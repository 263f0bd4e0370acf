"""One measurement: what a contender is told to do, and the stopwatch around the part that counts."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from benchmarks import disk

__all__ = ["Contender", "Job", "Stopwatch"]


@dataclass(frozen=True, slots=True)
class Job:
    """Walk a task of so many steps. `pauses` leaves `runs` of them at their gate, `resume` takes them on past it.

    `crowd` is `runs` cycles at once.
    """

    contender: str
    task: Literal["cycle", "messages", "blob", "pauses", "resume", "crowd"]
    steps: int
    #: The database; None: nothing is kept.
    path: str | None = None
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    runs: int = 1
    #: A run of a few steps on another file goes first, so that no first call is timed.
    warm: bool = True


class Contender(Protocol):
    """What each module in `contenders` is."""

    def drive(self, job: Job, watch: Stopwatch) -> None:
        """Do the job: open and build first, then under the watch from the first row to the last, then close."""
        ...


class Stopwatch:
    """`with watch:` around what is measured: CPU and wall time of this process, and the commits in its database's WAL."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self.cpu = 0.0
        self.wall = 0.0
        self.commits: int | None = None
        #: CPU seconds of each lap, for jobs of several runs.
        self.laps: list[float] = []
        self._began = (0.0, 0.0)

    def __enter__(self) -> Self:
        gc.collect()
        self._began = time.process_time(), time.perf_counter()
        return self

    def lap(self) -> None:
        """Note the CPU time since the start."""
        self.laps.append(time.process_time() - self._began[0])

    def __exit__(self, *_: object) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        self.cpu, self.wall = cpu - self._began[0], wall - self._began[1]
        if self._path is not None:  # before its last connection is closed, which folds the WAL into the file
            self.commits = disk.commits(self._path)
