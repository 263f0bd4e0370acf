"""Contenders in turn, A B A B: each measurement in a process of its own, each ratio within one round."""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from benchmarks import disk
from benchmarks.job import Job

__all__ = ["Measured", "Rounds", "cpu_of", "fsyncs_of", "growth", "measure"]

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process said of its job. Seconds and bytes; `commits` as the WAL has them; `memory` at its peak."""

    cpu: float
    wall: float
    laps: list[float]
    commits: int | None
    size: int | None
    memory: int


@dataclass(frozen=True, slots=True)
class Rounds:
    """The measurements of one workload by contender; the n-th of each were made one after the other."""

    of: dict[str, list[Measured]]

    @classmethod
    def of_jobs(cls, jobs: Sequence[Job], rounds: int, given: Mapping[str, Path] | None = None) -> Self:
        """Do each job `rounds` times, in turn. `given`: the database that a contender's job starts from."""
        done: dict[str, list[Measured]] = {job.contender: [] for job in jobs}
        for number in range(rounds):
            for job in jobs if number % 2 == 0 else reversed(jobs):
                done[job.contender].append(measure(job, (given or {}).get(job.contender)))
        return cls(done)

    def median(self, contender: str, read: Callable[[Measured], float]) -> float:
        """A contender's figure."""
        return statistics.median(map(read, self.of[contender]))

    def ratio(self, contender: str, other: str, read: Callable[[Measured], float]) -> float:
        """The median, over the rounds, of one contender's figure by another's."""
        pairs = zip(self.of[contender], self.of[other], strict=True)
        return statistics.median(read(mine) / read(theirs) for mine, theirs in pairs)


def measure(job: Job, given: Path | None = None, kept: Path | None = None) -> Measured:
    """One job in a fresh process; its database begins as `given` and ends as `kept`, or is gone."""
    with tempfile.TemporaryDirectory(prefix="stategraph-bench-", dir=disk.folder()) as folder:
        path = Path(folder, job.path) if job.path is not None else None
        if given is not None and path is not None:
            shutil.copy(given, path)
        measured = Measured(**json.loads(_output(_command(job, path))))
        if kept is not None and path is not None:
            shutil.copy(path, kept)
        return measured


def fsyncs_of(job: Job) -> int | None:
    """How often a job's process asked the disk to keep what it has; None where strace is missing or may not look."""
    if shutil.which("strace") is None or job.path is None:
        return None
    with tempfile.TemporaryDirectory(prefix="stategraph-bench-", dir=disk.folder()) as folder:
        report = Path(folder, "strace")
        traced = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(report)]
        try:
            _output([*traced, *_command(job, Path(folder, job.path))])
        except subprocess.CalledProcessError:
            return None
        rows = [line.split() for line in report.read_text().splitlines()]
    return sum(int(row[3]) for row in rows if row and row[-1] in ("fsync", "fdatasync"))


def cpu_of(program: str) -> float:
    """The CPU seconds of a fresh interpreter that runs a program."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def growth(points: Iterable[tuple[float, float]]) -> float:
    """The exponent k of the power law y = c * x**k that fits the points best."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    return statistics.linear_regression([x for x, _ in logs], [y for _, y in logs]).slope


def _command(job: Job, path: Path | None) -> list[str]:
    given = asdict(replace(job, path=None if path is None else str(path)))
    return [sys.executable, "-m", "benchmarks.measure", json.dumps(given)]


def _output(command: list[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # where a contender's own interpreter finds `benchmarks`
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
