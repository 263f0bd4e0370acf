"""The command line drives, decides and shows runs: each command is its own process, the file is what they share."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from checkpointers import SqliteCheckpointer
from stategraph import parse_event
from stategraph.checkpoint import Status
from stategraph.cli.app import app
from stategraph.cli.listing import StatusName
from tests.programs.commandline import REFUND, Done, Folder, Typist


@pytest.fixture(scope="module")
def typist() -> Iterator[Typist]:
    """Types this module's commands."""
    typist = Typist()
    yield typist
    typist.close()


@pytest.fixture
def folder(tmp_path: Path, typist: Typist) -> Folder:
    """A folder with a workflow in it."""
    folder = Folder(tmp_path, typist)
    folder.write("refund.py", REFUND)
    return folder


@pytest.fixture
async def waiting(folder: Folder) -> Folder:
    """The folder, and a run `r1` in it that waits at its gate."""
    names: dict[str, Any] = {}
    exec(REFUND, names)  # noqa: S102  # ours: the same file without a process, which takes a second to start
    async with SqliteCheckpointer(folder.path / "runs.db") as store:
        assert (await names["build"](store).run({"amount": 900}, "r1")).status == "pending"
    return folder


def run(folder: Folder, run_id: str, *more: str, **state: object) -> Done:
    return folder.type("run", "refund.py", "--input", json.dumps(state), "--run-id", run_id, *more)


def told(done: Done, what: str) -> str:
    """What to type, as a command printed it behind `what:`."""
    (found,) = [line.strip() for line in done.lines if line.strip().startswith(f"{what}: stategraph ")]
    return found.removeprefix(f"{what}: stategraph ")


# -- driving and deciding


def test_a_run_stops_at_its_gate_and_says_what_to_type(folder: Folder) -> None:
    """Exit code 3: a line an event, the status, the boundary with what is shown, and both decisions."""
    done = run(folder, "r1", amount=900)
    assert done.code == 3
    assert [line.split()[:2] for line in done.lines if line.startswith(("node", "state", "inter"))] == [
        ["node_start", "planner"], ["state_update", "planner"], ["interrupted", "pay"],
    ]  # fmt: skip
    assert "pending: waits for a decision before pay" in done.lines
    assert "  amount = 900" in done.lines
    assert told(done, "approve") == "approve r1 --boundary r1:1.0 --file refund.py"
    assert folder.read("ledger.txt") == ""


def test_what_a_command_says_to_type_drives_the_run_to_its_end(waiting: Folder) -> None:
    """Another process approves with the very words that `show` and `run` print, and the node runs once."""
    typed = told(waiting.type("show", "r1"), "approve").replace("FILE", "refund.py")
    done = waiting.type(*shlex.split(typed), "--by", "ana", "--note", "as agreed")
    assert done.code == 0
    assert any(line.startswith("decided") and "approved by ana (r1:1.0): as agreed" in line for line in done.lines)
    assert done.lines[-1] == "completed"
    assert waiting.read("ledger.txt") == "paid\n"
    assert "completed" in waiting.type("runs").lines[1]


def test_a_rejected_run_ends_and_stays_ended(waiting: Folder) -> None:
    """Exit code 4, without the graph; a later approval is told who was first, and nothing is paid."""
    done = waiting.type("reject", "r1", "--by", "bo", "--boundary", "1.0")
    assert (done.code, done.lines[-1]) == (4, "rejected: before pay")
    late = waiting.type("approve", "r1", "--file", "refund.py")
    assert late.code == 1
    assert "already rejected by bo at 2" in late.sentence
    assert waiting.read("ledger.txt") == ""


def test_a_failing_node_is_told_and_can_be_tried_again(waiting: Folder) -> None:
    """Exit code 1 with the node's error; `retry` with a patch asks again, for nobody has approved that state."""
    failed = waiting.type("approve", "r1", "--file", "refund.py", "--edit", '{"card": "expired"}')
    assert failed.code == 1
    assert "failed: pay failed (ValueError: card declined)" in failed.lines
    assert failed.err == ""
    assert told(failed, "try again") == "retry r1 --file refund.py"
    asked = waiting.type("retry", "r1", "--file", "refund.py", "--patch", '{"card": "new"}', "--by", "ana")
    assert asked.code == 3
    again = waiting.type("approve", "r1", "--file", "refund.py", "--by", "ana")
    assert (again.code, again.lines[-1]) == (0, "completed")
    assert waiting.read("ledger.txt") == "paid\n"


def test_a_spent_budget_says_how_to_give_more(folder: Folder) -> None:
    """The command to type has a larger --max-steps."""
    folder.write("loop.py", LOOP)
    failed = folder.type("run", "loop.py", "--run-id", "r1")
    assert "step budget exhausted" in failed.out
    again = folder.type(*shlex.split(told(failed, "try again")))
    assert (again.code, again.lines[-1]) == (0, "completed")


LOOP = """
from stategraph import StateGraph

def count(state):
    return {"n": state.get("n", 0) + 1}

def build(checkpointer):
    graph = StateGraph(checkpointer, max_steps=3).add_node("count", count).set_entry_point("count")
    return graph.add_conditional_edge("count", lambda state: "count" if state["n"] < 5 else "END")
"""


def test_a_decision_can_be_recorded_without_the_graph_and_driven_later(waiting: Folder) -> None:
    """Without FILE, or with --no-drive, the run is ready; it is said how to go on, and `resume` does."""
    done = waiting.type("approve", "r1", "--decision-id", "click-1")
    assert (done.code, waiting.read("ledger.txt")) == (0, "")
    assert "ready: pay runs next" in done.lines
    assert told(done, "go on") == "resume r1 --file FILE"
    assert "nobody drives the run on" in done.sentence
    again = waiting.type("approve", "r1", "--decision-id", "click-1", "--file", "refund.py", "--no-drive")
    assert (again.code, waiting.read("ledger.txt")) == (0, "")
    assert waiting.type("resume", "r1", "--file", "refund.py").code == 0
    assert waiting.read("ledger.txt") == "paid\n"


def test_a_repeated_decision_decides_nothing_that_came_later(folder: Folder) -> None:
    """The same command line with its --decision-id, typed again at the next gate: answered, and the gate stays shut."""
    folder.write("gates.py", GATES)
    folder.type("run", "gates.py", "--run-id", "r1")
    command = ("approve", "r1", "--decision-id", "click", "--edit", '{"x": 1}', "--file", "gates.py")
    first, again = folder.type_all(command, command)
    assert (first.code, again.code, again.err) == (3, 3, "")
    assert "interrupted" in first.out
    assert told(first, "approve") == told(again, "approve") == "approve r1 --boundary r1:2.0 --file gates.py"
    other = folder.type("reject", "r1", "--decision-id", "click")
    assert other.code == 1
    assert "'click' was used for another act" in other.sentence or "already approved" in other.sentence


GATES = """
from stategraph import StateGraph

def build(checkpointer):
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).add_node("b", lambda state: None)
    return graph.set_entry_point("a").add_edge("a", "b").add_interrupt_before("a").add_interrupt_before("b")
"""


def test_resuming_a_run_that_waits_shows_what_it_waits_for(waiting: Folder) -> None:
    """It is no error: exit code 3, and the decisions."""
    done = waiting.type("resume", "r1", "--file", "refund.py")
    assert (done.code, done.err) == (3, "")
    assert told(done, "reject") == "reject r1 --boundary r1:1.0 --file refund.py"


def test_an_edit_needs_the_graph_that_checks_it(waiting: Folder) -> None:
    """Nothing is recorded where the edit cannot be checked."""
    refused = waiting.type("approve", "r1", "--edit", '{"amount": 600}')
    assert refused.code == 2
    assert "--file FILE" in refused.sentence
    assert waiting.type("approve", "r1", "--edit", '{"amount": 600}', "--file", "refund.py").code == 0
    assert "  paid = 600" in waiting.type("show", "r1").lines


def test_an_effect_in_doubt_is_answered(folder: Folder) -> None:
    """A driver dies in the middle of an irreversible node: `recover` asks, and the answer is the node's delta."""
    folder.write("pay.py", IRREVERSIBLE)
    with folder.start("run", "pay.py", "--run-id", "r1") as process:
        wait_for(lambda: folder.read("ledger.txt"))
        process.kill()
        process.wait()
    held = folder.type("recover", "r1", "--file", "pay.py")
    assert held.code == 1
    assert "drives it and holds it until 2" in held.sentence
    assert "its driver" not in folder.type("show", "r1").out
    wait_for(lambda: folder.type("recover", "r1", "--file", "pay.py").code == 3)
    asked = folder.type("resume", "r1", "--file", "pay.py")
    assert "an effect in doubt in pay" in asked.out
    boundary = told(asked, "do it again").split()[3]
    for words, hint in ((["--boundary", boundary], "--answer JSON"), (["--edit", "{}"], "--answer JSON")):
        assert hint in folder.type("approve", "r1", *words).sentence
    done = folder.type("approve", "r1", "--answer", '{"receipt": 7}', "--file", "pay.py")
    assert (done.code, folder.read("ledger.txt")) == (0, "paid\n")
    assert "  receipt = 7" in folder.type("show", "r1").lines


IRREVERSIBLE = """
import time
from stategraph import StateGraph

def pay(state):
    with open("ledger.txt", "a") as ledger:
        ledger.write("paid\\n")
    time.sleep(60)

def build(checkpointer):
    graph = StateGraph(checkpointer, lease=3.0)
    return graph.add_node("pay", pay, irreversible=True).set_entry_point("pay")
"""


def wait_for(holds: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]  # a lambda
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_is_released_and_goes_on(folder: Folder, stop: signal.Signals, code: int) -> None:
    """Ctrl-C and SIGTERM leave the run ready, say how to go on, and lose nothing."""
    run(folder, "r1", amount=900, seconds=60)
    with folder.start("approve", "r1", "--file", "refund.py") as process:
        assert process.stdout is not None
        first = ""
        while "node_start" not in first:
            first += process.stdout.readline()
        process.send_signal(stop)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (code, "")
    assert out.splitlines() == ["ready: pay runs next", "go on: stategraph resume r1 --file refund.py"]


def test_a_run_can_be_cancelled_once(waiting: Folder) -> None:
    """It ends with who and why in its log; a second time there is nothing to cancel."""
    done = waiting.type("cancel", "r1", "--by", "ana", "--note", "not any more")
    assert (done.code, done.out) == (0, "run r1 is cancelled\n")
    again = waiting.type("cancel", "r1")
    assert (again.code, again.sentence) == (1, "run 'r1' is cancelled; nothing is left to cancel")
    assert "by ana: not any more" in waiting.type("history", "r1").out


def test_a_fork_starts_from_any_checkpoint_and_inherits_no_approval(waiting: Folder) -> None:
    """With another state; it waits again where the first run was approved."""
    waiting.type("approve", "r1", "--file", "refund.py")
    made = waiting.type(
        "fork", "r1", "--at", "1", "--patch", '{"amount": 501}', "--run-id", "r2", "--drive", "--file", "refund.py"
    )
    assert made.code == 3
    assert "  amount = 501" in made.lines
    assert waiting.type("approve", "r2", "--file", "refund.py").code == 0
    assert "forked from r1@1" in waiting.type("show", "r2").lines
    refused = waiting.type("fork", "r1", "--at", "99", "--file", "refund.py")
    assert refused.code == 2
    assert "its log ends at 3" in refused.sentence


# -- reading


def test_a_run_can_be_listed_shown_and_told_at_every_checkpoint(waiting: Folder) -> None:
    """`runs`, `show --at`, `history` and `events --after` read; none needs the graph."""
    waiting.type("approve", "r1", "--by", "ana", "--note", "fine", "--file", "refund.py")
    listed, filtered, at, history, events = waiting.type_all(
        ("runs",), ("runs", "--status", "pending", "--graph", "other"), ("show", "r1", "--at", "0"),
        ("history", "r1"), ("events", "r1", "--after", "1.1"),
    )  # fmt: skip
    assert listed.lines[1].split()[:3] == ["r1", "refund", "3"]
    assert filtered.out == "no such runs\n"
    assert at.lines[-2:] == ["state", "  amount = 900"]
    assert [line.split()[4] for line in history.lines] == ["start", "node", "decision", "node"]
    assert "approved by ana (1.0): fine; ready" in history.lines[2]
    assert [line.split()[:2] for line in events.lines[1:]] == [
        ["1.2", "interrupted"], ["2.0", "decided"], ["3.0", "node_start"], ["3.1", "state_update"], ["3.2", "completed"],
    ]  # fmt: skip


def test_events_are_followed_while_another_process_decides(waiting: Folder) -> None:
    """`--follow` tells the decision and what follows it, and ends with the run."""
    with waiting.start("events", "r1", "--follow", "--after", "1.2", "--json") as follower:
        time.sleep(1.0)
        assert follower.poll() is None
        assert waiting.type("approve", "r1", "--by", "ana", "--file", "refund.py").code == 0
        out, err = follower.communicate(timeout=20)
    assert (follower.returncode, err) == (0, "")
    assert [json.loads(line)["event_type"] for line in out.splitlines()] == [
        "decided", "node_start", "state_update", "completed",
    ]  # fmt: skip


def test_json_is_one_object_a_line_everywhere(folder: Folder) -> None:
    """Events are parsed as events, the last line says how the run stands, and a node's print is no part of it."""
    ran = run(folder, "r1", "--json", amount=900)
    assert ran.code == 3
    assert [parse_event(json.dumps(record)).event_type for record in ran.records[:-1]] == [
        "node_start", "state_update", "interrupted",
    ]  # fmt: skip
    last = ran.records[-1]
    assert (list(last), last["status"]) == (["run_id", "status", "boundaries"], "pending")
    assert [boundary["id"] for boundary in last["boundaries"]] == ["r1:1.0"]
    assert ran.err == "planning\n"
    done = folder.type_all(
        ("approve", "r1", "--json", "--file", "refund.py"), ("runs", "--json"), ("show", "r1", "--json"),
        ("history", "r1", "--json"), ("events", "r1", "--json"), ("check", "refund.py", "--json"), ("doctor", "--json"),
        ("draw", "refund.py", "--json"), ("fork", "r1", "--at", "1", "--json", "--file", "refund.py"),
    )  # fmt: skip
    assert [each.code for each in done] == [0] * 9
    assert all(each.records for each in done)
    assert done[0].records[-1] == {"run_id": "r1", "status": "completed", "boundaries": []}
    refused = folder.type("show", "r11", "--json")
    assert (refused.code, refused.out) == (2, "")
    error = json.loads(refused.err)["error"]
    assert (error["type"], error["message"]) == ("UnknownRun", "no run 'r11' in this store; did you mean 'r1'?")


# -- graphs


def test_a_graph_is_checked(folder: Folder) -> None:
    """Every fault with its fix, exit code 1; a sound graph says what it holds."""
    folder.write("faulty.py", FAULTY)
    sound, faulty = folder.type_all(("check", "refund.py"), ("check", "faulty.py"))
    assert (sound.code, sound.out) == (0, "refund.py: refund, version 1, is sound: 2 nodes, 3 ways, 1 gate\n")
    assert faulty.code == 1
    assert "unknown node 'pays'" in faulty.lines[0]
    assert "did you mean 'pay'?" in faulty.lines[0]
    assert faulty.lines[-1] == f"{len(faulty.lines) - 1} faults"


def test_what_is_guessed_of_a_router_is_told(folder: Folder) -> None:
    """A router whose targets nobody declared is no fault: exit code 0, and what to write."""
    folder.write("guessed.py", GUESSED)
    plain, record = folder.type_all(("check", "guessed.py"), ("check", "guessed.py", "--json"))
    assert plain.code == 0
    assert [line.partition(";")[0] for line in plain.lines[1:]] == [
        "guessed.py: that the router after 'a' leads to 'b' was read from its code",
        "guessed.py: nothing says where the router after 'b' leads, so it may lead anywhere",
    ]
    assert len(json.loads(record.out)["guesses"]) == 2


GUESSED = """
from stategraph import StateGraph

def after_a(state):
    return "b"

graph = StateGraph(name="guessed").add_node("a", lambda s: {}).add_node("b", lambda s: {}).set_entry_point("a")
graph.add_conditional_edge("a", after_a).add_conditional_edge("b", lambda state: state["where"])
"""


FAULTY = """
from stategraph import StateGraph

def build(checkpointer):
    graph = StateGraph(checkpointer).add_node("plan", print).add_node("pay", print).set_entry_point("plan")
    return graph.add_edge("plan", "pays").add_interrupt_before("pai")
"""


def test_a_graph_is_drawn_into_a_file_or_onto_the_terminal(waiting: Folder) -> None:
    """By the suffix, or by --format; with a run on it."""
    table, mermaid, dot, unknown = waiting.type_all(
        ("draw", "refund.py"), ("draw", "refund.py", "--format", "mermaid"),
        ("draw", "refund.py", "--run", "r1", "-o", "run.dot"), ("draw", "refund.py", "-o", "run.xyz"),
    )  # fmt: skip
    assert (table.code, mermaid.code, dot.code, unknown.code) == (0, 0, 0, 2)
    assert "| pay |" in table.out
    assert mermaid.out.startswith(("flowchart", "---", "%%"))
    assert "r1:1.0" in waiting.read("run.dot")
    assert ".svg" in unknown.sentence


def test_a_project_names_its_workflows_and_its_store(folder: Folder) -> None:
    """From any folder below pyproject.toml a run's graph is found by its name; flag before environment before file."""
    folder.write("pyproject.toml", '[tool.stategraph]\nworkflows = ["flows/*.py"]\nstore = "sqlite:kept.db"\n')
    folder.write("flows/refund.py", REFUND)
    folder.write("flows/broken.py", "1 +")
    folder.write("deep/down/note.txt", "")
    started = folder.type(
        "run", "../../flows/refund.py", "--run-id", "r1", "--input", '{"amount": 900}', cwd="deep/down"
    )
    assert told(started, "approve") == "approve r1 --boundary r1:1.0"
    assert (folder.path / "kept.db").exists()
    done = folder.type("approve", "r1", cwd="deep/down", LEDGER="../../ledger.txt")
    assert (done.code, done.lines[-1], folder.read("ledger.txt")) == (0, "completed", "paid\n")
    other, flag = (
        folder.type("runs", STATEGRAPH_STORE="sqlite:other.db"),
        folder.type("runs", "--store", "sqlite:kept.db", STATEGRAPH_STORE="sqlite:other.db"),
    )
    assert "there is no store 'sqlite:other.db' yet" in other.sentence
    assert flag.lines[1].startswith("r1 ")


def test_a_workflow_may_be_a_module_an_object_or_another_name(folder: Folder) -> None:
    """`module:name`, `path.py:name`, and a graph in memory, whose runs are gone with the command."""
    folder.write("house/flows.py", REFUND + "\nmake = build\n")
    folder.write("house/near.py", "amount = 7\n")
    folder.write("memory.py", MEMORY)
    by_module, by_name, in_memory, refused = folder.type_all(
        ("check", "house.flows:make"), ("check", "house/flows.py:make"), ("run", "memory.py"),
        ("run", "memory.py", "--store", "sqlite:runs.db"),
    )  # fmt: skip
    assert (by_module.code, by_name.code, in_memory.code, refused.code) == (0, 0, 0, 2)
    assert in_memory.lines[-1] == "completed"
    assert in_memory.sentence == "this run was kept in memory alone and is gone now"
    assert "was built without a checkpointer" in refused.sentence


MEMORY = """
from stategraph import StateGraph

only = StateGraph(name="memory").add_node("add", lambda state: {"sum": 3}).set_entry_point("add")
"""


# -- documentation


def test_runs_can_be_listed_by_every_status() -> None:
    """The option's choices are the statuses that there are."""
    assert {status.value for status in StatusName} == set(get_args(Status))


def test_every_command_and_option_is_on_its_page() -> None:
    """docs/cli.md names them all; its examples are run by test_docs.py."""
    page = (Path(__file__).parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
    group: Any = typer.main.get_command(app)
    names = [
        *group.commands,
        *(name for command in group.commands.values() for each in command.params for name in each.opts),
    ]
    assert len(names) > 100
    assert (
        sorted({name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page)} - ARGUMENTS)
        == []
    )


#: Arguments have no name that is typed.
ARGUMENTS = {"run_id", "file"}


def test_the_command_and_the_module_are_the_same(folder: Folder) -> None:
    """`stategraph` and `python -m stategraph`; without a command both say which there are."""
    script = Path(sys.executable).with_name("stategraph")
    as_script = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    as_module = folder.python("-m", "stategraph", "--version")
    assert as_script.stdout == as_module.out == f"stategraph {version('stategraph')}\n"
    helped = folder.type()
    assert helped.code == 0
    assert "Exit codes: 0 done, 1 failed" in helped.out
