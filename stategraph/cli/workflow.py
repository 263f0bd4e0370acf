"""A workflow: the graph that a FILE names. The file is the user's and is executed, as Python would."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from stategraph.checkpoint import Checkpointer
from stategraph.cli.refusal import Refused
from stategraph.cli.text import within
from stategraph.errors import GraphError, did_you_mean, shortened
from stategraph.graph import StateGraph

__all__ = ["Workflow", "load_workflow"]

SHAPES = "write path.py, path.py:name or module:name"


@dataclass(frozen=True, slots=True)
class Workflow:
    """A loaded FILE: a graph, or the function that builds it around a store."""

    file: str
    #: The name in it.
    name: str
    found: StateGraph | Callable[[Checkpointer], Any]

    @property
    def store(self) -> Checkpointer | None:
        """The store of a graph that is built already, which cannot be given another; None for a function."""
        return self.found.checkpointer if isinstance(self.found, StateGraph) else None

    def graph(self, checkpointer: Checkpointer) -> StateGraph:
        """The graph, around this store if it is built here; faults of the graph are `GraphError`."""
        if isinstance(self.found, StateGraph):
            return self.found
        try:
            inspect.signature(self.found).bind(checkpointer)
        except TypeError:
            raise self._refused("cannot be called with a checkpointer alone") from None
        try:
            graph = self.found(checkpointer)
        except GraphError:
            raise
        except (Exception, SystemExit) as error:
            raise broken(self.file, error) from error
        if inspect.iscoroutine(graph):
            graph.close()
        if not isinstance(graph, StateGraph):
            raise self._refused(f"returned {shortened(graph, 60)} instead of a StateGraph")
        if graph.checkpointer is not checkpointer:
            raise self._refused("built its graph around another store than the checkpointer it was given")
        return graph

    def _refused(self, what: str) -> Refused:
        return Refused(
            f"{self.file}: {self.name} {what}; "
            f"write `def {self.name}(checkpointer)` that returns StateGraph(checkpointer)"
        )


def load_workflow(file: str, folder: Path | None = None) -> Workflow:
    """Execute the file and find its graph; `Refused` in one sentence, whatever is wrong with it.

    A module's name is looked up from `folder` (the working directory) as well.
    """
    where, name = _split(file)
    with _importing_from(folder or Path.cwd()):
        module = _by_path(file, Path(where)) if where.endswith(".py") else _by_name(file, where)
    names = vars(module)
    chosen = name or _usual_name(file, names)
    if chosen not in names:
        hint = did_you_mean(chosen, _candidates(names)) or f"; {_offer(names)}"
        raise Refused(f"{file}: it defines no {chosen!r}{hint}")
    found = names[chosen]
    if not isinstance(found, StateGraph) and not callable(found):
        raise Refused(
            f"{file}: {chosen} is {shortened(found, 60)}, neither a StateGraph nor a function that builds one; "
            f"{_offer(names)}"
        )
    return Workflow(file, chosen, found)


def _split(file: str) -> tuple[str, str]:
    """(path or module, name); the name is empty where it was left out."""
    if file.endswith(".py"):
        return file, ""
    where, colon, name = file.rpartition(":")
    if not colon or not where or not name.isidentifier():
        hint = f"; did you mean {file + '.py'!r}?" if os.path.isfile(f"{file}.py") else f"; {SHAPES}"
        raise Refused(f"{file!r} names no workflow{hint}")
    return where, name


def _by_path(file: str, path: Path) -> ModuleType:
    if not os.path.isfile(path):  # not path.is_file(), which raises for a name that is too long
        what = "is a folder" if os.path.isdir(path) else "does not exist"
        near = did_you_mean(path.name, (other.name for other in _siblings(path)))
        raise Refused(f"{within(path, 200)!r} {what}{near}; {SHAPES}")
    name = f"stategraph_workflow_{path.stem if path.stem.isidentifier() else 'file'}_{uuid4().hex[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints are looked up through it
    with _importing_from(path.resolve().parent):
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise broken(file, error) from error
    return module


def _by_name(file: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise broken(file, error) from error
        raise Refused(f"no module {error.name!r} can be imported from here; {SHAPES}") from None
    except (Exception, SystemExit) as error:
        raise broken(file, error) from error


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """The folder first on the path, as for `python file.py`; last afterwards, for what a node imports when it runs."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the file has changed the path itself
            sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def _siblings(path: Path) -> list[Path]:
    return list(path.parent.glob("*.py")) if os.path.isdir(path.parent) else []


def _usual_name(file: str, names: Mapping[str, Any]) -> str:
    """`build`, else the one graph, else `graph`."""
    if callable(names.get("build")):
        return "build"
    graphs = {id(value): name for name, value in names.items() if isinstance(value, StateGraph)}
    if len(graphs) == 1:
        return next(iter(graphs.values()))
    if "graph" in names:
        return "graph"
    raise Refused(f"{file}: it defines neither `build(checkpointer)` nor one StateGraph; {_offer(names)}")


def _candidates(names: Mapping[str, Any]) -> list[str]:
    """What a file offers: its graphs, and its functions of a checkpointer."""
    return [
        name
        for name, value in names.items()
        if isinstance(value, StateGraph)
        or (inspect.isfunction(value) and next(iter(inspect.signature(value).parameters), "") == "checkpointer")
    ]


def _offer(names: Mapping[str, Any]) -> str:
    found = ", ".join(_candidates(names))
    return (
        f"name one of its own with FILE:name ({found})"
        if found
        else "add `def build(checkpointer)` that returns a StateGraph"
    )


def broken(file: str, error: BaseException) -> Refused:
    """A user's file that raised: the line of it that is to blame, and what was raised."""
    text = str(error) if not isinstance(error, SyntaxError) else error.msg
    place = _place(file, error)
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return Refused(
        f"{place}: {said}; mend it and try again (--traceback shows how it came to it)", kind=type(error).__name__
    )


def _place(file: str, error: BaseException) -> str:
    """The file and the line: of a syntax error itself, else the innermost line that no library wrote."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{_near(error.filename)}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return f"{_near(frames[-1].filename)}, line {frames[-1].lineno}" if frames else file


def _is_users(filename: str) -> bool:
    """Whether the code is neither the standard library's, nor installed, nor ours."""
    installed = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return not filename.startswith(("<", *installed, str(Path(__file__).parents[1])))


def _near(filename: str) -> str:
    """The path as short as it can be told from here."""
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
