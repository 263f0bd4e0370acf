"""What a person sees: a display that moves in a terminal, lines that stay, colours only where they are wanted."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.commandline import COMMAND, Folder, Typist

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals there", allow_module_level=True)

import pexpect

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MOVES = re.compile(r"\x1b\[\??[0-9;]*[A-HJKlhm]")

SLOW = r"""
import time
from stategraph import StateGraph

def fetch(state):
    time.sleep(0.7)
    print("a print of the node's")
    return {"page": "hello \x1b[2J\x07"}

async def send(state, ctx):
    for word in ("dear ", "Ana"):
        ctx.token(word)
    raise ValueError("refused \x1b]0;title\x07")

def build(checkpointer):
    graph = StateGraph(checkpointer, name="letters")
    graph.add_node("fetch", fetch).add_node("send", send).set_entry_point("fetch").add_edge("fetch", "send")
    return graph.add_interrupt_before("send")
"""


@pytest.fixture(scope="module")
def typist() -> Iterator[Typist]:
    """Types this module's commands."""
    typist = Typist()
    yield typist
    typist.close()


@pytest.fixture
def folder(tmp_path: Path, typist: Typist) -> Folder:
    """A folder with a workflow in it that takes its time and says hostile things."""
    folder = Folder(tmp_path, typist)
    folder.write("slow.py", SLOW)
    return folder


def watch(folder: Folder, *words: str, **env: str) -> tuple[int | None, str]:
    """A command in a terminal of 100 columns: its exit code, and everything it wrote."""
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *words],
        cwd=str(folder.path),
        env={**folder.env, "TERM": "xterm-256color", **env},
        dimensions=(24, 100),
        encoding="utf-8",
        timeout=50,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.before is not None
    return child.exitstatus, child.before


def stays(written: str) -> list[str]:
    """The lines that are left on the screen, as a terminal would have them."""
    screen: list[str] = [""]
    row = 0
    for part in re.split(r"(\r\n|\r|\x1b\[\??[0-9;]*[A-Za-z])", written):
        if part == "\r\n":
            row += 1
        elif part == "\x1b[1A":
            row -= 1
        elif part == "\x1b[2K":
            screen[row] = ""
        elif part and not part.startswith(("\r", "\x1b")):
            screen[row] += part
        screen += [""] * (row + 1 - len(screen))
    return screen


def test_a_terminal_shows_the_nodes_while_they_run_and_keeps_the_lines(folder: Folder) -> None:
    """Each node with a sign and its word; when the run rests the board is gone, the lines and what to type stay."""
    code, written = watch(folder, "run", "slow.py", "--run-id", "r1")
    assert code == 3
    text = COLOUR.sub("", written)
    for moment in ("▸ fetch  running", "✓ fetch  done", "‖ send   waits for a decision"):
        assert moment in text
    left = stays(written)
    assert not any(line.startswith(("▸", "✓", "‖", "·")) for line in left)
    words = [line.split()[0] for line in left if line and line != "a print of the node's"]
    assert words[:6] == ["run", "node_start", "state_update", "interrupted", "pending:", "boundary"]
    assert "a print of the node's" in left
    assert "  approve: stategraph approve r1 --boundary r1:1.0 --file slow.py" in left


def test_what_nodes_say_never_moves_the_terminal(folder: Folder) -> None:
    """Control characters of the state, of tokens and of errors arrive as what they are called."""
    folder.type("run", "slow.py", "--run-id", "r1")
    code, written = watch(folder, "approve", "r1", "--file", "slow.py", "--note", "as \x9b31m\u202eyou like")
    assert code == 1
    assert "✗ send   failed: ValueError: refused \\x1b]0;title\\x07" in COLOUR.sub("", written)
    assert any(line.startswith("token") and line.endswith("dear Ana") for line in stays(written))
    assert "as \\x9b31m\\u202eyou like" in written
    for done in folder.type_all(("show", "r1"), ("history", "r1"), ("events", "r1"), ("runs",)):
        assert done.code == 0
        written += done.out
    rest = MOVES.sub("", written).replace("\r", "").replace("\n", "")
    assert rest.isprintable()


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_can_be_declined(folder: Folder, env: dict[str, str]) -> None:
    """NO_COLOR leaves the display and takes the colours; a dumb terminal has lines alone."""
    code, written = watch(folder, "run", "slow.py", "--run-id", "r1", **env)
    assert code == 3
    colours = {found for found in COLOUR.findall(written) if re.search(r"[349][0-7]", found)}
    assert colours == set()
    assert ("\x1b" in written) == ("NO_COLOR" in env)
    assert ("▸ fetch" in MOVES.sub("", written)) == ("NO_COLOR" in env)


def test_a_pipe_and_plain_get_nothing_but_lines(folder: Folder) -> None:
    """No escape sequence reaches a file, nor a terminal that asked for --plain."""
    piped = folder.type("run", "slow.py", "--run-id", "r1")
    _, plain = watch(folder, "show", "r1", "--plain")
    code, driven = watch(folder, "run", "slow.py", "--plain", "--run-id", "r2")
    assert code == 3
    assert "\x1b" not in piped.out + plain + driven


def test_a_terminal_without_signs_gets_letters(folder: Folder) -> None:
    """An ASCII terminal sees `+ fetch done`, and what it cannot show as its code."""
    code, written = watch(
        folder, "run", "slow.py", "--run-id", "r1", "--input", '{"name": "Zoë"}', PYTHONIOENCODING="ascii"
    )
    assert code == 3
    assert "+ fetch  done" in COLOUR.sub("", written)
    assert '  name = "Zo\\xeb"' in stays(written)
