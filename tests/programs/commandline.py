"""The command line as its users have it: real processes in a folder of their own, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "stategraph"]

REFUND = """
import asyncio
import os
from typing import Literal

from stategraph import StateGraph

def planner(state):
    print("planning")
    return {"action": "refund"}

def size(state) -> Literal["pay", "END"]:
    return "pay" if state["amount"] > 500 else "END"

async def pay(state):
    if state.get("card") == "expired":
        raise ValueError("card declined")
    if state.get("seconds"):
        await asyncio.sleep(state["seconds"])
    with open(os.environ.get("LEDGER", "ledger.txt"), "a") as ledger:
        ledger.write("paid\\n")
    return {"paid": state["amount"]}

def build(checkpointer):
    graph = StateGraph(checkpointer, name="refund", lease=2.0)
    graph.add_node("planner", planner)
    graph.add_node("pay", pay)
    graph.set_entry_point("planner")
    graph.add_conditional_edge("planner", size)
    graph.add_interrupt_before("pay")
    return graph
"""


@dataclass(frozen=True)
class Done:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def records(self) -> list[dict[str, Any]]:
        """Every line of standard output as the JSON object that it has to be."""
        return [json.loads(line) for line in self.lines]

    @property
    def sentence(self) -> str:
        """The one line of standard error that a refusal is."""
        assert self.err.startswith("stategraph: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err + self.out
        assert self.err.removesuffix("\n").isprintable(), repr(self.err)
        return self.err.removeprefix("stategraph: ").rstrip("\n")


#: Carries out command lines, each in a process forked from this one: to load everything takes half a second.
TYPIST = """
import gc, json, os, sys
import checkpointers.memory, checkpointers.sqlite, networkx
from stategraph.cli.app import _parser, main

_parser()
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(asked["cwd"])
        os.environ.update(asked["env"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (1, 2):
            os.dup2(os.open(asked["files"][number - 1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = main(asked["words"])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, flush=True)
"""


class Typist:
    """Types commands one after the other."""

    def __init__(self) -> None:
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith(("STATEGRAPH_", "NO_COLOR"))
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", TYPIST], env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def type(self, words: list[str], cwd: Path, env: dict[str, str], files: list[str]) -> int:
        """The exit code; what was printed is in the two files."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"words": words, "cwd": str(cwd), "env": env, "files": files}
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


class Folder:
    """A folder to type commands in."""

    def __init__(self, path: Path, typist: Typist) -> None:
        self.path = path
        self.env = typist.env
        self._typist = typist

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, name: str) -> str:
        file = self.path / name
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def type(self, *words: str, cwd: str = ".", **env: str) -> Done:
        """A command, carried out."""
        files = [str(self.path / ".typed" / name) for name in ("out", "err")]
        (self.path / ".typed").mkdir(exist_ok=True)
        code = self._typist.type(list(words), self.path / cwd, env, files)
        return Done(code, *(Path(file).read_text("utf-8") for file in files))

    def type_all(self, *commands: tuple[str, ...]) -> list[Done]:
        """Several commands, one after the other."""
        return [self.type(*words) for words in commands]

    @contextmanager
    def start(self, *words: str, **env: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs while the test goes on, in a process as users start it."""
        with subprocess.Popen(
            [*COMMAND, *words], cwd=self.path, env={**self.env, **env}, text=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()

    def python(self, *words: str) -> Done:
        """Another program of Python's."""
        done = subprocess.run(
            [sys.executable, *words], cwd=self.path, env=self.env, text=True, encoding="utf-8", capture_output=True,
            timeout=50, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)
