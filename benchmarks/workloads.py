"""The workloads and their targets, by name: each does its rounds and answers with its lines of the table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from benchmarks import disk
from benchmarks.distributions import distributions
from benchmarks.figure import Figure
from benchmarks.job import Job
from benchmarks.postgres import postgres
from benchmarks.rounds import Measured, Rounds, cpu_of, fsyncs_of, growth, measure

__all__ = ["WORKLOADS"]

DATABASE = "runs.db"
#: Of W3, in messages.
SIZES = (100, 200, 400, 800, 1600)
#: Of W8: a process takes so many runs on, each with so many messages.
PAUSED, HISTORY = 20, 400


def cycle() -> list[Figure]:
    """W1: two nodes and a router, nothing kept, every event built and taken."""
    rounds = Rounds.of_jobs([Job(name, "cycle", 1000) for name in ("raw", "ours")], 9)
    # 10 us where the raw loop takes 0.33: machines differ, and this one's neighbours do from second to second.
    return [_slower(rounds, "W1", "CPU us/step, nothing kept", 1000, 10 / 0.33, "<= 30x raw (10 us beside 0.33)")]


def full() -> list[Figure]:
    """W2 and W2b: the same, committed after every node so that it survives power loss."""
    steps = 1000
    job = Job("ours", "cycle", steps, DATABASE)
    rounds = Rounds.of_jobs([replace(job, contender="raw"), job], 7)
    ratio = rounds.ratio("raw", "ours", _wall)
    figures = [
        Figure(
            "W2", "steps/s, WAL+FULL", steps / rounds.median("ours", _wall), steps / rounds.median("raw", _wall), ratio,
            ">= 0.70 of raw", ratio >= 0.70,
        ),
        _slower(rounds, "W2", "CPU us/step, WAL+FULL", steps),
        *_counted("W2", "FULL"),
    ]  # fmt: skip
    ours, raw = (rounds.median(name, _size) / steps for name in ("ours", "raw"))
    figures.append(Figure("W2b", "file bytes/step", ours, raw, ours / raw, "<= 200 B", ours <= 200))
    return figures


def relaxed() -> list[Figure]:
    """W2n: the same with `durability="relaxed"`, beside plain aiosqlite too."""
    steps, other = 1000, "plain_aiosqlite"
    job = Job("ours", "cycle", steps, DATABASE, "NORMAL")
    rounds = Rounds.of_jobs([replace(job, contender="raw"), replace(job, contender=other), job], 7)
    figures = []
    # No disk is waited for, so that the steps of a CPU second are what there is to compare.
    for name, read, aimed in (("CPU second", _cpu, True), ("second", _wall, False)):
        for against, least in (("raw", 0.25), (other, 1.0)):
            ours, theirs = (steps / rounds.median(contender, read) for contender in ("ours", against))
            ratio = rounds.ratio(against, "ours", read)
            what = f"steps/{name}, WAL+NORMAL" + (", raw: aiosqlite" if against == other else "")
            target = f">= {least:.2f} of {'raw' if against == 'raw' else 'aiosqlite'}" if aimed else ""
            figures.append(Figure("W2n", what, ours, theirs, ratio, target, ratio >= least if aimed else None))
    return figures + [replace(figure, target="", holds=None) for figure in _counted("W2n", "NORMAL")]


def messages() -> list[Figure]:
    """W3: each step appends a message of 200 bytes; how the file and the time grow with the run."""
    sizes: dict[str, list[tuple[float, float]]] = {"ours": [], "raw": []}
    times: dict[str, list[tuple[float, float]]] = {"ours": [], "raw": []}
    for steps in SIZES:
        jobs = [Job(name, "messages", steps, DATABASE, "NORMAL") for name in ("raw", "ours")]
        rounds = Rounds.of_jobs(jobs, 5)
        for name in ("ours", "raw"):
            sizes[name].append((steps, rounds.median(name, _size)))
            times[name].append((steps, rounds.median(name, _cpu)))
    bytes_grow, time_grows = growth(sizes["ours"]), growth(times["ours"])
    megabytes = sizes["ours"][-1][1] / 1e6
    return [
        Figure(
            "W3", "growth of the file, exponent", bytes_grow, growth(sizes["raw"]), None, "<= 1.05", bytes_grow <= 1.05
        ),
        Figure(
            "W3",
            "growth of the CPU time, exponent",
            time_grows,
            growth(times["raw"]),
            None,
            "<= 1.10",
            time_grows <= 1.1,
        ),
        Figure(
            "W3", "file MB at 1,600 messages", megabytes, sizes["raw"][-1][1] / 1e6, None, "<= 1 MB", megabytes <= 1
        ),
    ]


def blob() -> list[Figure]:
    """W4: a counter beside a megabyte that never changes, the run's start and end included."""
    jobs, steps = [Job(name, "blob", 200, DATABASE, "NORMAL") for name in ("raw", "ours")], 200
    rounds, safe = Rounds.of_jobs(jobs, 7), Rounds.of_jobs([replace(job, synchronous="FULL") for job in jobs], 5)
    ours, raw = (safe.median(name, _wall) / steps * 1e6 for name in ("ours", "raw"))
    megabytes = rounds.median("ours", _size) / 1e6
    return [
        _slower(rounds, "W4", "CPU us/step beside 1 MB, WAL+NORMAL", steps, 2.0, "<= 2x raw"),
        Figure("W4", "us/step beside 1 MB, WAL+FULL", ours, raw, safe.ratio("ours", "raw", _wall)),
        Figure("W4", "file MB", megabytes, rounds.median("raw", _size) / 1e6, None, "<= 2.2 MB", megabytes <= 2.2),
    ]


def crowd() -> list[Figure]:
    """W5: a thousand runs of ten steps in one process; what they store at the same moment shares a commit."""
    runs, steps = 1000, 10
    job = Job("ours", "crowd", steps, DATABASE, "FULL", runs)
    rounds = Rounds.of_jobs([replace(job, contender="raw"), job], 5)
    ratio = rounds.ratio("raw", "ours", _wall)
    ours, raw = (runs / rounds.median(name, _wall) for name in ("ours", "raw"))
    memory = rounds.median("ours", _memory) / 1e6
    return [
        Figure("W5", "runs/s, 1,000 at once, WAL+FULL", ours, raw, ratio, ">= 0.40 of raw", ratio >= 0.40),
        _slower(rounds, "W5", "CPU us/step, 1,000 runs at once", runs * steps),
        Figure("W5", "MB of memory", memory, rounds.median("raw", _memory) / 1e6, None, "<= 60 MB", memory <= 60),
    ]


def resume() -> list[Figure]:
    """W8: a fresh process takes runs with a long history on past their approval, its imports left out."""
    pauses = Job("ours", "pauses", HISTORY, DATABASE, "NORMAL", PAUSED)
    resumes = replace(pauses, task="resume", synchronous="FULL", warm=False)
    names = ("raw", "raw_whole", "ours")
    with tempfile.TemporaryDirectory(prefix="stategraph-bench-", dir=disk.folder()) as folder:
        given = {}
        for name in names:
            given[name] = Path(folder, f"{name}.db")
            measure(replace(pauses, contender=name), kept=given[name])
        rounds = Rounds.of_jobs([replace(resumes, contender=name) for name in names], 7, given)
    figures = []
    for what, against, read in (
        ("CPU ms/resume, raw: the whole state", "raw_whole", _cpu_a_run),
        ("CPU ms/resume, raw: snapshot and patches", "raw", _cpu_a_run),
        ("CPU ms of a process's first resume", "raw", _first_lap),
    ):
        ours, raw = (rounds.median(name, read) for name in ("ours", against))
        figures.append(Figure("W8", what, ours, raw, rounds.ratio("ours", against, read)))
    ratio = rounds.ratio("ours", "raw_whole", _cpu_a_run)
    figures[0] = replace(figures[0], target="<= 0.63x raw (1.0 ms beside 1.6)", holds=ratio <= 1.0 / 1.6)
    return figures


def imports() -> list[Figure]:
    """W9: what `import stategraph` costs a fresh interpreter, and what the plain wheel installs."""
    programs = {
        "bare": "pass",
        "import": "import stategraph",
        "plan": "import stategraph, checkpointers.sqlite, networkx",
    }
    cpu_of(programs["plan"])  # compiles what is not compiled yet
    rounds = [{name: cpu_of(program) * 1e3 for name, program in programs.items()} for _ in range(9)]
    bare = sorted(cpu["bare"] for cpu in rounds)[4]
    alone, planned = (sorted(cpu[name] - cpu["bare"] for cpu in rounds)[4] for name in ("import", "plan"))
    count = distributions("stategraph")
    return [
        Figure("W9", "CPU ms of `import stategraph`, raw: python", alone, bare, None, "<= 200 ms", alone <= 200),
        Figure("W9", "CPU ms with its SQLite store and a first plan", planned, bare),
        Figure("W9", "distributions of the plain wheel", count, None, None, "<= 12", count is not None and count <= 12),
    ]


# -- parts


def _slower(rounds: Rounds, workload: str, what: str, steps: int, limit: float = 0.0, target: str = "") -> Figure:
    """Microseconds of CPU a step, ours by raw."""
    ours, raw = (rounds.median(name, _cpu) / steps * 1e6 for name in ("ours", "raw"))
    ratio = rounds.ratio("ours", "raw", _cpu)
    return Figure(workload, what, ours, raw, ratio, target, ratio <= limit if target else None)


def _counted(workload: str, synchronous: Literal["FULL", "NORMAL"]) -> list[Figure]:
    """What the WAL and the kernel saw: 100 steps more make so many commits and fsyncs more."""
    few, many = 20, 120
    jobs = [Job(name, "cycle", steps, DATABASE, synchronous) for steps in (few, many) for name in ("ours", "raw")]
    commits: list[float | None] = []
    fsyncs: list[float | None] = []
    for short, long in zip(jobs[:2], jobs[2:], strict=True):
        commits.append(_per_step(measure(short).commits, measure(long).commits, many - few))
        fsyncs.append(_per_step(fsyncs_of(short), fsyncs_of(long), many - few))
    return [
        Figure(workload, "commits/step", commits[0], commits[1], None, "exactly 1", commits[0] == 1),
        Figure(
            workload, "fsyncs/step", fsyncs[0], fsyncs[1], None, "at most 1", fsyncs[0] is not None and fsyncs[0] <= 1
        ),
    ]


def _per_step(few: int | None, many: int | None, steps: int) -> float | None:
    return None if few is None or many is None else (many - few) / steps


def _cpu(measured: Measured) -> float:
    return measured.cpu


def _wall(measured: Measured) -> float:
    return measured.wall


def _memory(measured: Measured) -> float:
    return measured.memory


def _size(measured: Measured) -> float:
    assert measured.size is not None
    return measured.size


def _first_lap(measured: Measured) -> float:
    return measured.laps[0] * 1e3


def _cpu_a_run(measured: Measured) -> float:
    return measured.laps[-1] / len(measured.laps) * 1e3


#: What `run.py` is asked for by name.
WORKLOADS: dict[str, Callable[[], list[Figure]]] = {
    "W1": cycle,
    "W2": full,
    "W2n": relaxed,
    "W3": messages,
    "W4": blob,
    "W5": crowd,
    "W8": resume,
    "W9": imports,
    "PG": postgres,
}
