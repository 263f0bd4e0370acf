"""The benchmarks: `python benchmarks/run.py [W2 W4 ...] [--json FILE]` measures, and says which targets hold.

Databases go to STATEGRAPH_BENCH_DIR, by default the folder for temporary files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import disk
from benchmarks.figure import Figure, summary, table
from benchmarks.workloads import WORKLOADS

__all__: list[str] = []

#: Figures that come with another workload's rounds.
PARTS = {"W2b": "W2"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure stategraph beside the physical limit.")
    parser.add_argument("workloads", nargs="*", metavar="W", help=f"which to run: {', '.join([*WORKLOADS, *PARTS])}")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    given = parser.parse_args()
    if unknown := [name for name in given.workloads if name not in WORKLOADS and name not in PARTS]:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join([*WORKLOADS, *PARTS])}")
    wanted = dict.fromkeys(PARTS.get(name, name) for name in given.workloads or WORKLOADS)
    print(machine(), end="\n\n")
    figures: list[Figure] = []
    for name in wanted:
        began = time.perf_counter()
        figures += WORKLOADS[name]()
        print(f"{name} done in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(table(figures))
    print(summary(figures))
    if given.json:
        Path(given.json).write_text(json.dumps({"machine": machine(), "figures": list(map(asdict, figures))}, indent=1))


def machine() -> str:
    """What the figures were measured on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{cores} cores, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, databases on "
        f"{disk.filesystem(disk.folder())}. Medians of contenders in turn; ratios are within a round."
    )


if __name__ == "__main__":
    main()
