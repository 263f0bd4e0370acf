"""Every block of README.md and docs/ runs, and what they say is there is there.

In a page's blocks, run in order in an empty folder: `python` is executed in one namespace per page, with top-level await;
a first line `# name.py` saves it under that name too. `output` is what the block before it printed. In `console` each
`$ stategraph ...` and `$ python ...` is run, and what follows is what it prints. `...` stands for anything.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import html
import importlib.util
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import isfunction
from pathlib import Path
from types import ModuleType

import pytest

import stategraph
from stategraph import StateGraph
from stategraph.errors import StateGraphError

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = {"python", "output", "console"}
#: Blocks that are shown and not run.
SHOWN = {"text", "sh", "toml", "sql", "{toctree}"}
FENCE = re.compile(r"^(?P<fence>`{3,}) *(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=fence) *$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block and where it begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield Block(found["language"], found["text"], text.count("\n", 0, found.start()) + 1)


def by_name(page: Path) -> str:
    return page.name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What somebody has who stands in a clone and writes into it."""
    for name in ("workflows", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_block_of_a_page_does_what_it_says(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # where dataclasses and models look for their own names
    printed = ""
    with asyncio.Runner() as runner:
        for block in blocks(page):
            place = f"{page.relative_to(ROOT)}:{block.line}"
            if block.language == "python":
                printed = run_python(block, place, module, runner, capsys)
            elif block.language == "output":
                compare(block.text, printed, place)
            elif block.language == "console":
                run_console(block, place, folder)


def run_python(
    block: Block, place: str, module: ModuleType, runner: asyncio.Runner, capsys: pytest.CaptureFixture[str]
) -> str:
    """Execute a block; what it printed."""
    first = block.text.partition("\n")[0]
    if named := re.fullmatch(r"# (\w+\.py)", first):
        Path(named[1]).write_text(block.text, encoding="utf-8")
    text = "\n" * block.line + block.text  # a traceback then shows the page's own line
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(text, place.rpartition(":")[0], "exec", flags=flags, dont_inherit=True)
    running = eval(code, module.__dict__)  # noqa: S307  # our own pages
    if running is not None:
        runner.run(running)
    return capsys.readouterr().out


def run_console(block: Block, place: str, folder: Path) -> None:
    """Run each command of a block and compare what it prints."""
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not commands[0], f"{place}: a console block begins with '$ '"
    for command in commands[1:]:
        line, _, expected = command.partition("\n")
        while line.endswith("\\"):
            more, _, expected = expected.partition("\n")
            line = line[:-1] + more
        compare(expected, run_command(shlex.split(line), place, folder), f"{place} $ {line}")


def run_command(words: list[str], place: str, folder: Path) -> str:
    programs = {"stategraph": [sys.executable, "-m", "stategraph"], "python": [sys.executable]}
    assert words[0] in programs, f"{place}: only {' and '.join(programs)} are run in a console block"
    done = subprocess.run(
        [*programs[words[0]], *words[1:]],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=60, check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    return done.stdout


def compare(expected: str, printed: str, place: str) -> None:
    """`...` stands for anything; space at the end of lines does not count."""
    wanted, got = (re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip("\n") + "\n" for text in (expected, printed))
    matches = doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS)
    assert matches, f"{place}\n--- expected\n{wanted}--- printed\n{got}"


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_a_block_says_what_it_is(page: Path) -> None:
    unknown = [
        f"{block.line}: {block.language or 'nothing'}" for block in blocks(page) if block.language not in RUN | SHOWN
    ]
    assert not unknown


def test_every_page_is_in_the_table_of_contents() -> None:
    lines = [line for block in blocks(ROOT / "docs/index.md") for line in block.text.splitlines()]
    listed = {line for line in lines if line and line[0] != ":"}
    assert {page.stem for page in PAGES[1:]} - {"index"} == listed


def test_everything_public_is_documented() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    methods = {name for name, member in vars(StateGraph).items() if isfunction(member) and name[0] != "_"}
    names = methods | set(stategraph.__all__) | {"checkpointer"}
    assert sorted(name for name in names if not re.search(rf"\b{name}\b", pages)) == []


def test_every_module_has_its_line_on_the_page_of_the_architecture() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    found = {module.name for module in pkgutil.iter_modules(stategraph.__path__)} - {"__main__"}
    assert sorted(name for name in found if f"`{name}`" not in page) == []


def test_every_error_has_its_line_on_the_page_of_errors() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    assert [error.__name__ for error in errors_below(StateGraphError) if f"`{error.__name__}`" not in page] == []


def errors_below(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for error in kind.__subclasses__():
        if error.__module__.split(".")[0] in ("stategraph", "checkpointers"):
            yield from errors_below(error)


def test_the_picture_is_what_the_readmes_graph_draws() -> None:
    """Compared as DOT text: each Graphviz lays it out a little differently. `python docs/draw.py` draws it anew."""
    drawn = asyncio.run(drawing().picture("dot"))
    assert drawn == (ROOT / "docs/refund.dot").read_text(encoding="utf-8"), "draw it anew: python docs/draw.py"
    svg = (ROOT / "docs/refund.svg").read_text(encoding="utf-8")
    written = {html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)}
    labels = {line for label in re.findall(r'label="([^"]*)"', drawn) for line in re.split(r"\\[nl]", label)}
    assert written == labels - {""}


def drawing() -> ModuleType:
    """docs/draw.py, by its path."""
    spec = importlib.util.spec_from_file_location("draw", ROOT / "docs/draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
