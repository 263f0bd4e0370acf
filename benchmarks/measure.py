"""One measurement in this process: `python -m benchmarks.measure JOB`, JSON in and a line of JSON out."""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import replace
from importlib import import_module
from typing import cast

from benchmarks import disk
from benchmarks.job import Contender, Job, Stopwatch

__all__: list[str] = []


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    contender = cast("Contender", import_module(f"benchmarks.contenders.{job.contender}"))
    if job.warm:
        path = None if job.path is None else job.path + ".warm"
        contender.drive(replace(job, steps=20, path=path), Stopwatch())
    watch = Stopwatch(job.path)
    contender.drive(job, watch)
    measured: dict[str, object] = {"cpu": watch.cpu, "wall": watch.wall, "laps": watch.laps, "commits": watch.commits}
    measured["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    measured["size"] = None if job.path is None else disk.size(job.path)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
