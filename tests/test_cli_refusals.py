"""Whatever is typed wrongly, or stands in the way: one sentence that says what to type next, and never a traceback."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpointers import SqliteCheckpointer
from stategraph.cli.store import redacted, without_secrets
from tests.programs.commandline import REFUND, Folder, Typist


@pytest.fixture(scope="module")
def typist() -> Iterator[Typist]:
    """Types this module's commands."""
    typist = Typist()
    yield typist
    typist.close()


@pytest.fixture
async def folder(tmp_path: Path, typist: Typist) -> Folder:
    """A folder with a workflow, and a run `r1` that waits at its gate."""
    folder = Folder(tmp_path, typist)
    folder.write("refund.py", REFUND)
    names: dict[str, Any] = {}
    exec(REFUND, names)  # noqa: S102  # ours: the same file without a process, which takes a second to start
    async with SqliteCheckpointer(tmp_path / "runs.db") as store:
        await names["build"](store).run({"amount": 900}, "r1")
    return folder


HOSTILE = ["", "a b", "r1\nr2", "\x1b[2J", "../../etc/passwd", "r" * 10_000, "r1' OR 1=1 --", "é", "${HOME}"]


def test_no_run_id_does_anything_but_name_a_run(folder: Folder) -> None:
    """Newlines, control characters, paths, SQL and 10,000 letters: exit code 2, one short printable line."""
    verbs = ("show", "approve", "cancel", "events", "history", "retry", "recover", "resume", "fork")
    done = folder.type_all(
        *((verb, run_id) for verb, run_id in zip(verbs, HOSTILE, strict=True)),
        ("run", "refund.py", "--run-id", "a\nb"),
        ("run", "refund.py", "--run-id", ""),
        ("show", "r\udcff"),
        ("approve", "r1", "--boundary", "\x1b[2J" * 3000),
    )
    assert [each.code for each in done] == [2] * len(done)
    for each in done:
        assert len(each.sentence) < 2100
        assert "\x1b" not in each.err + each.out


def test_an_unknown_run_is_2_for_every_command(folder: Folder) -> None:
    """And the sentence says where the known ones are, or which one was meant."""
    near, far, file = folder.type_all(
        ("approve", "r12"), ("history", "something-else"), ("retry", "r11", "--file", "refund.py")
    )
    assert (near.code, near.sentence) == (2, "no run 'r12' in this store; did you mean 'r1'?")
    assert (far.code, far.sentence) == (
        2,
        "no run 'something-else' in this store; list its runs with: stategraph runs",
    )
    assert (file.code, file.sentence) == (2, "no run 'r11' in this store; did you mean 'r1'?")


def test_a_command_line_that_is_not_understood_is_2(folder: Folder) -> None:
    """The command's --help is what to type next."""
    unknown, missing, option, number, cursor, taken = folder.type_all(
        ("aprove", "r1"), ("show",), ("runs", "--loud"), ("show", "r1", "--at", "x"),
        ("events", "r1", "--after", "1.x"), ("run", "refund.py", "--run-id", "r1", "--input", '{"amount": 1}'),
    )  # fmt: skip
    assert {each.code for each in (unknown, missing, option, number, cursor, taken)} == {2}
    assert unknown.sentence.endswith("type: stategraph --help")
    assert missing.sentence == "Missing argument 'RUN_ID'; type: stategraph show --help"
    assert option.sentence.endswith("type: stategraph runs --help")
    assert number.sentence.endswith("type: stategraph show --help")
    assert "SEQ.INDEX" in cursor.sentence
    assert taken.sentence.startswith("run 'r1' exists (pending); look at it with: stategraph show r1")


def test_json_that_is_none_is_2_and_nothing_happens(folder: Folder) -> None:
    """The option, the place and the fault are named; a value that does not fit is named by its key."""
    folder.write("deep.json", "[" * 100_000)
    folder.write("typed.py", TYPED)
    comma, constant, kind, deep, missing, wrong, extra, twice = folder.type_all(
        ("run", "refund.py", "--input", '{"amount" 900}'), ("retry", "r1", "--patch", '{"a": NaN}'),
        ("run", "refund.py", "--input", "[1]"), ("approve", "r1", "--edit", "@deep.json"),
        ("run", "refund.py", "--input", "@nowhere.json"), ("run", "typed.py", "--input", '{"amount": "many"}'),
        ("run", "typed.py", "--input", '{"amount": 1, "amuont": 2}'),
        ("run", "typed.py", "--input", '{"amount": 1, "amount": 900}'),
    )  # fmt: skip
    assert {each.code for each in (comma, constant, kind, deep, missing, wrong, extra, twice)} == {2}
    assert 'the key "amount" is there twice' in twice.sentence
    assert "--input is no JSON: Expecting ':' delimiter at line 1, column 11" in comma.sentence
    assert "NaN has no place in JSON" in constant.sentence
    assert "must be a JSON object" in kind.sentence
    assert "--edit is no JSON" in deep.sentence
    assert "'nowhere.json', which cannot be read (No such file or directory)" in missing.sentence
    assert wrong.sentence.startswith("$.amount: ")
    assert "did you mean 'amount'?" in extra.sentence
    assert len(folder.type("runs").lines) == 2


TYPED = """
from typing import TypedDict
from stategraph import StateGraph

class Order(TypedDict):
    amount: int

def build(checkpointer):
    return StateGraph(checkpointer, state=Order).add_node("pay", lambda state: None).set_entry_point("pay")
"""


def test_a_file_that_names_no_graph_is_2(folder: Folder) -> None:
    """Missing, a folder, no Python, no builder, an unknown name: what to write instead."""
    folder.write("plain.py", "x = 1\n")
    folder.write(
        "wrong.py", "def build(a, b): ...\n\ndef make(checkpointer): return 3\n\nasync def later(checkpointer): ...\n"
    )
    done = folder.type_all(
        ("run", "refnud.py"), ("run", "refund"), ("run", "."), ("run", "nowhere.flows:build"), ("run", "plain.py"),
        ("run", "refund.py:biuld"), ("run", "wrong.py"), ("run", "wrong.py:make"), ("run", "wrong.py:later"),
        ("approve", "r1", "--file", "x" * 5000 + ".py"),
    )  # fmt: skip
    assert [each.code for each in done] == [2] * len(done)
    hints = [
        "did you mean 'refund.py'?", "did you mean 'refund.py'?", "path.py:name", "no module 'nowhere'", "def build(checkpointer)",
        "did you mean 'build'?", "def build(checkpointer)", "returned 3 instead of a StateGraph", "instead of a StateGraph",
        "does not exist",
    ]  # fmt: skip
    assert [hint in each.sentence for each, hint in zip(done, hints, strict=True)] == [True] * len(done)


def test_a_file_that_raises_says_which_line_of_it(folder: Folder) -> None:
    """The user's own line, wherever the error comes from; the traceback only where it is asked for."""
    folder.write("broken.py", "import os\n\ndef build(checkpointer:\n    return 1\n")
    folder.write("raises.py", "import json\n\nvalues = json.loads('{')\n")
    folder.write("leaves.py", "import sys\nsys.exit(7)\n")
    folder.write("builds.py", "def build(checkpointer):\n    return {}['graph']\n")
    broken, raises, leaves, builds = folder.type_all(
        ("check", "broken.py"), ("run", "raises.py"), ("draw", "leaves.py"), ("run", "builds.py")
    )
    assert broken.sentence.startswith("broken.py, line 3: SyntaxError: ")
    assert raises.sentence.startswith("raises.py, line 3: JSONDecodeError: ")
    assert leaves.sentence.startswith("leaves.py, line 2: SystemExit: 7; ")
    assert builds.sentence.startswith("builds.py, line 2: KeyError: 'graph'; ")
    assert [each.code for each in (broken, raises, leaves, builds)] == [2] * 4
    asked = folder.type("run", "builds.py", "--traceback")
    assert asked.err.startswith("Traceback")
    assert asked.err.splitlines()[-1] == builds.err.rstrip("\n")


def test_a_file_that_is_no_store_is_2_and_stays_as_it_is(folder: Folder) -> None:
    """Another program's database, one from the future, a text, a folder, nothing at all: none is touched or made."""
    connection = sqlite3.connect(folder.path / "foreign.db")
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.commit()
    connection.close()
    folder.write("text.db", "this is no database\n" * 100)
    shutil.copy(folder.path / "runs.db", folder.path / "future.db")
    connection = sqlite3.connect(folder.path / "future.db")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = {name: (folder.path / name).read_bytes() for name in ("foreign.db", "text.db")}
    foreign, text, future, missing, nowhere, itself, spelled = folder.type_all(
        ("runs", "--store", "sqlite:foreign.db"), ("show", "r1", "--store", "sqlite:text.db"),
        ("run", "refund.py", "--store", "sqlite:future.db", "--input", '{"amount": 1}'),
        ("show", "r1", "--store", "sqlite:missing.db"), ("run", "refund.py", "--store", "sqlite:no/such/runs.db"),
        ("runs", "--store", "sqlite:."), ("runs", "--store", "runs.db"),
    )  # fmt: skip
    assert {each.code for each in (foreign, text, future, missing, nowhere, itself, spelled)} == {2}
    assert "foreign.db: the file is a database of another program (tables bookmarks)" in foreign.sentence
    assert "text.db: file is not a database" in text.sentence
    assert "install the newer stategraph" in future.sentence
    assert "stategraph run FILE" in missing.sentence
    assert "there is no folder 'no/such'" in nowhere.sentence
    assert "is a folder" in itself.sentence
    assert "write 'sqlite:runs.db'" in spelled.sentence
    assert not (folder.path / "missing.db").exists()
    assert before == {name: (folder.path / name).read_bytes() for name in ("foreign.db", "text.db")}


def test_a_locked_store_is_1_and_can_still_be_read(folder: Folder) -> None:
    """Another process holds the write lock: a decision says so after a while, and nothing is decided."""
    connection = sqlite3.connect(folder.path / "runs.db", isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        refused, shown = folder.type_all(("approve", "r1", "--file", "refund.py"), ("show", "r1"))
    finally:
        connection.close()
    assert refused.code == 1
    assert "runs.db" in refused.sentence
    assert "try again when it is done" in refused.sentence
    assert (shown.code, shown.lines[1]) == (0, "pending: waits for a decision before pay")
    assert folder.type("approve", "r1", "--file", "refund.py").code == 0


def test_a_run_of_another_graph_is_2(folder: Folder) -> None:
    """Before anything is recorded: the file is the wrong one."""
    folder.write("other.py", REFUND.replace('name="refund"', 'name="other"'))
    refused = folder.type("approve", "r1", "--file", "other.py")
    assert refused.code == 2
    assert (
        "it is a run of graph 'refund', and this is 'other'; name the file of its graph with --file" in refused.sentence
    )


def test_the_doctor_finds_a_checkpoint_that_was_tampered_with(folder: Folder) -> None:
    """A sound store is 0; one changed byte is 1, by the run and the checkpoint, for readers too."""
    sound = folder.type("doctor")
    assert sound.code == 0
    assert "1 run (1 pending), 2 checkpoints, every digest as it was written" in sound.out
    connection = sqlite3.connect(folder.path / "runs.db", isolation_level=None)
    connection.execute("UPDATE checkpoints SET body = replace(body, '900', '999') WHERE seq = 0")
    connection.close()
    found, shown = folder.type_all(("doctor",), ("show", "r1"))
    assert (found.code, shown.code) == (1, 1)
    assert "run 'r1', checkpoint 0: its digest does not match its content" in found.out
    assert shown.sentence.endswith("check the whole store with: stategraph doctor")


def test_settings_that_cannot_be_read_are_2(folder: Folder) -> None:
    """No TOML, a typo in a key, a wrong kind: the file and the fix."""
    texts = ["[tool.stategraph", "[tool.stategraph]\nworkflow = []\n", "[tool.stategraph]\nworkflows = 'a.py'\n"]
    hints = ["pyproject.toml cannot be read", "did you mean 'workflows'?", "must be a list of files"]
    for text, hint in zip(texts, hints, strict=True):
        folder.write("pyproject.toml", text)
        refused = folder.type("runs")
        assert refused.code == 2
        assert hint in refused.sentence


URLS = [
    "postgresql://ana:s3cret@db/runs", "postgresql:ana:s3cret@db", "postgres://ana:s3@cret:s3cret@db?x=1", "ana:s3cret@db",
    "//:s3cret@", "postgresql://db/runs?user=ana&password=s3cret", "postgresql:host=db password='s3cret' user=ana",
    "postgresql://ana:s3cret", "s3cret@",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS)
def test_a_password_is_never_shown(url: str) -> None:
    """However malformed the URL is, and in messages of others too."""
    assert "s3cret" not in redacted(url)
    assert "s3cret" not in without_secrets(f"cannot connect to {url} as ana with s3cret", url)


def test_a_password_is_in_no_sentence_of_a_command(folder: Folder) -> None:
    """Not in the refusal, and not in what is to be typed next."""
    commands = {
        ("runs", "--store", "postgresql://ana:s3cret@127.0.0.1:1/runs"): 1,  # nobody is there
        ("runs", "--store", URLS[1]): 2,
        ("run", "refund.py", "--store", URLS[3], "--json"): 2,
    }
    for done, code in zip(folder.type_all(*commands), commands.values(), strict=True):
        assert done.code == code
        assert "s3cret" not in done.out + done.err


def test_without_the_extra_one_sentence_says_what_to_install(folder: Folder) -> None:
    """Exit code 2; and the library itself loads nothing of it."""
    code = "import sys; sys.modules['{}'] = None; from stategraph.__main__ import main; sys.exit(main())"
    for name in ("typer", "rich"):
        done = folder.python("-c", code.format(name), "runs")
        if name == "typer":
            assert (done.code, done.sentence) == (
                2,
                "the command line needs typer and rich; pip install 'stategraph[cli]'",
            )
    loaded = folder.python(
        "-c", "import sys, stategraph; print({'typer', 'rich', 'stategraph.cli'} & set(sys.modules))"
    )
    assert loaded.out == "set()\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
def test_a_reader_that_goes_away_is_no_error(folder: Folder) -> None:
    """`stategraph show r1 | head -1` says nothing about it."""
    with folder.start("events", "r1", "--follow") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("run r1")
        process.stdout.close()
        folder.type("reject", "r1")
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(20) == 141
