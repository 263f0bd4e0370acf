"""Every example does what it says when it is run as a newcomer would: by its path, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stategraph import Checkpointer, StateError

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

PRINTS = {
    "hello": "completed - Hello, Ann!",
    "stream": """\
write starts
  token  'A '
  token  'poem '
  token  'about '
  token  'rain '
  told   {'words': 4}
  stored {'poem': 'A poem about rain'}
praise starts
  stored {'messages': ['Well done']}
the end {'topic': 'rain', 'poem': 'A poem about rain', 'messages': ['Well done']}
a reader that had seen 2.1 gets the rest:
  2.2 completed END""",
    "approve": """\
first process:  interrupted ship
second process: node_start ship
second process: state_update ship
second process: completed END
too late, bob: ann has approved it""",
    "crash": """\
child died with exit code 1
found:     <Run 'parcel-1' of 'parcel': running at pack ready, seq 1>
recovered: node_start pack
recovered: state_update pack
recovered: node_start ship
recovered: state_update ship
recovered: completed END
what ran:  reserve pack pack ship""",
    "time_travel": """\
0 start  -> {'pieces': 9}
1 node price -> {'pieces': 9, 'price': 900}
2 decision invoice -> {'pieces': 9, 'price': 900}
3 node invoice -> {'pieces': 9, 'price': 900, 'invoice': '9 pieces: 900'}
forked: <Run 'sale-12' of 'sale': ready at price ready, seq 0>
node_start price
state_update price
node_start discount
state_update discount
interrupted invoice
node_start invoice
state_update invoice
completed END
9 pieces: 900 | 12 pieces: 1080""",
    "draw": """\
payment.svg written
payment.dot written
payment.mmd written
payment.md written
run.svg written, it shows: pending
**payment · version 1**

| node | before it | leads to | declared |
| --- | --- | --- | --- |
| check | starts here | router: yes → pay; no → END | reads customer; writes known |
| pay | gate: approvers: bob; expires after 1 h; rejected or expired, ends the run | END | irreversible; writes status |""",
    "worker": """\
submitted: {'ready'}
workers ended with [0, 0]
driven: {'completed'} steps: {2}""",
    "own_checkpointer": """\
purchase-1 waits for a decision, checkpoint 1 is stored
node_start buy
state_update buy
completed END""",
    "seed": """\
node_start human_approval
state_update human_approval
node_start refund
state_update refund
completed END
Simulated refunds: [1000]""",
}


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The example, in an empty folder, with every warning an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "COLUMNS": "120"},
    )  # fmt: skip


@pytest.mark.parametrize("name", PRINTS)
def test_an_example_prints_what_it_promises_and_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path)
    assert done.stderr == ""
    assert (done.returncode, done.stdout.rstrip("\n")) == (0, PRINTS[name])
    assert list(tmp_path.iterdir()) == []


def test_every_example_is_run_by_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*PRINTS, "demo"}


def test_the_demo_approves_from_another_process_refunds_once_and_draws(tmp_path: Path) -> None:
    done = run("demo", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, third, last = re.split(r"^\d\. .*\n", done.stdout, flags=re.MULTILINE)[1:]
    assert kinds(first) == ["node_start planner", "state_update planner", "interrupted human_approval"]
    assert kinds(second) == [
        "decided human_approval",
        "node_start human_approval",
        "state_update human_approval",
        "node_start refund",
        "state_update refund",
        "completed END",
    ]
    assert kinds(third) == []
    assert "already approved by ann at " in third
    assert (tmp_path / "demo/ledger.txt").read_text() == "refund-A-17 order A-17 amount 900\n"
    assert "demo/refund.svg" in last
    assert (tmp_path / "demo/refund.svg").read_text().startswith("<svg")


def test_the_demo_can_be_run_again_and_touches_nothing_but_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/mine.txt").write_text("not yours")
    for _ in range(2):
        assert run("demo", tmp_path).returncode == 0
    assert (tmp_path / "demo/mine.txt").read_text() == "not yours"
    assert (tmp_path / "demo/ledger.txt").read_text().count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


@pytest.fixture
def refund(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """workflows/refund.py, loaded by its path, with a ledger."""
    monkeypatch.setenv("REFUND_LEDGER", str(tmp_path / "ledger"))
    spec = importlib.util.spec_from_file_location("refund", ROOT / "workflows/refund.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "refund", module)
    spec.loader.exec_module(module)
    return module


async def test_a_refund_of_900_waits_and_one_of_400_does_not(
    refund: ModuleType, checkpointer: Checkpointer, tmp_path: Path
) -> None:
    graph = refund.build(checkpointer)
    large = await graph.run({"order": "A-17", "amount": 900}, run_id="large")
    small = await graph.run({"order": "A-18", "amount": 400}, run_id="small")
    assert (large.status, small.status) == ("pending", "completed")
    assert (tmp_path / "ledger").read_text() == "small order A-18 amount 400\n"


async def test_a_refund_without_an_amount_or_of_nothing_is_refused_before_it_starts(
    refund: ModuleType, checkpointer: Checkpointer
) -> None:
    graph = refund.build(checkpointer)
    for wrong in ({"order": "A-17"}, {"order": "A-17", "amount": 0}, {"order": "A-17", "amount": "900"}):
        with pytest.raises(StateError, match="amount"):
            await graph.run(wrong)
    assert await checkpointer.runs() == []


async def test_a_refund_whose_ledger_cannot_be_written_asks_whether_it_was_made(
    refund: ModuleType, checkpointer: Checkpointer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REFUND_LEDGER", str(tmp_path))  # a folder
    graph = refund.build(checkpointer)
    with pytest.raises(IsADirectoryError):
        await graph.run({"order": "A-18", "amount": 400}, run_id="small")
    told = [event.event_type async for event in graph.retry("small")]
    (doubt,) = await graph.boundaries("small")
    assert (told, doubt.kind, doubt.state) == (["node_start", "interrupted"], "in_doubt", "open")


def kinds(text: str) -> list[str]:
    """The events in what was printed: type and node."""
    found = re.findall(r"^ *([a-z_]+) +([\w]+)(?:  .*)?$", text, flags=re.MULTILINE)
    return [f"{kind} {node}" for kind, node in found if kind in KINDS]


KINDS = {"node_start", "state_update", "interrupted", "decided", "completed", "rejected", "failed"}
