"""Child processes of the tests: real ones, started together, told what to do and asked what happened, line by line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: `-P`: the child imports the stategraph that is installed, as the test does; the checkout comes last, for `tests` alone.
START = "import sys; sys.path.append(sys.argv.pop(1)); from tests.programs.{0} import main; main(*sys.argv[1:])"


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that runs `main(*arguments)` of `tests.programs.<program>`."""
    command = [sys.executable, "-P", "-W", "error", "-c", START.format(program), str(ROOT), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def hear(process: subprocess.Popen[str]) -> Any:
    """The next line that the process tells, as JSON."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the process has ended ({process.wait()}) and told nothing more"
    return json.loads(line)


def tell(process: subprocess.Popen[str], message: object) -> None:
    """A line of JSON for the process."""
    assert process.stdin is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def end(process: subprocess.Popen[str], code: int = 0, patience: float = 60) -> str:
    """Wait for the process to end by itself, with this code; what it told last."""
    out, _ = process.communicate(timeout=patience)
    assert process.returncode == code, (process.returncode, out)
    return out


@contextmanager
def started(program: str, many: int, *arguments: object) -> Iterator[list[subprocess.Popen[str]]]:
    """So many processes of one program, each ready when the block begins, none left when it ends."""
    processes = [start(program, *arguments) for _ in range(many)]
    try:
        for process in processes:
            assert hear(process) == "ready"
        yield processes
        for process in processes:
            end(process)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def at_once(processes: Sequence[subprocess.Popen[str]], messages: Sequence[object]) -> list[Any]:
    """Each process does what its message says, all at the same time; their answers."""
    for process, message in zip(processes, messages, strict=True):
        tell(process, message)
    return [hear(process) for process in processes]
