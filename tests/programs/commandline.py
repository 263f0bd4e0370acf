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

REFUND = '''
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
'''


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
        assert self.err.isprintable() or self.err.rstrip("\n").isprintable(), repr(self.err)
        return self.err.removeprefix("stategraph: ").rstrip("\n")


class Folder:
    """A folder to type commands in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("STATEGRAPH_", "NO_COLOR"))}

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, name: str) -> str:
        file = self.path / name
        return file.read_text(encoding="utf-8") if file.exists() else ""

    @contextmanager
    def start(self, *words: str, cwd: str = ".", **env: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs while the test goes on."""
        with subprocess.Popen(
            [*COMMAND, *words], cwd=self.path / cwd, env={**self.env, **env}, text=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()

    def type(self, *words: str, cwd: str = ".", **env: str) -> Done:
        """A command, carried out."""
        with self.start(*words, cwd=cwd, **env) as process:
            out, err = process.communicate(timeout=50)
        return Done(process.returncode, out, err)

    def python(self, *words: str) -> Done:
        """Another program of Python's."""
        done = subprocess.run(
            [sys.executable, *words], cwd=self.path, env=self.env, text=True, encoding="utf-8", capture_output=True,
            timeout=50, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def type_all(self, *commands: tuple[str, ...]) -> list[Done]:
        """Several commands, two at a time: most of a command's time is its start."""
        done = []
        for first in range(0, len(commands), 2):
            pair = [self.start(*words) for words in commands[first : first + 2]]
            processes = [started.__enter__() for started in pair]
            for started, process in zip(pair, processes, strict=True):
                out, err = process.communicate(timeout=50)
                started.__exit__(None, None, None)
                done.append(Done(process.returncode, out, err))
        return done
