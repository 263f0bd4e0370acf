"""A router: a function of the state that names the next node, and the names it may answer."""

from __future__ import annotations

import dis
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args, get_origin

__all__ = ["Router", "RouterFunction", "Targets"]

RouterFunction: TypeAlias = Callable[[Any], str]
#: A list of node names, or a mapping answer -> node.
Targets: TypeAlias = Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Router:
    """A conditional edge. `targets` maps each answer to its node; None while they are not known."""

    source: str
    function: RouterFunction
    targets: Mapping[str, str] | None
    #: `declared` by targets=, `typed` by a Literal return type, `inferred` from the function's constants, `unknown`.
    known_by: Literal["declared", "typed", "inferred", "unknown"]
    #: The return type promises a list of names: a chosen fork or a map.
    answers_list: bool = False
    #: All strings that the function may answer, as far as its code tells: for the typo that made none of them a node.
    strings: tuple[str, ...] = ()
    #: A return type that is a name which means nothing where the function was defined.
    unresolved: str | None = None

    @property
    def name(self) -> str:
        """What to call the router in pictures and messages; nothing for a lambda."""
        function = self.function
        while isinstance(function, functools.partial):
            function = function.func
        name = getattr(function, "__name__", type(function).__name__)
        return "" if name == "<lambda>" else name


def make_router(source: str, function: RouterFunction, targets: Targets | None, nodes: Collection[str]) -> Router:
    """The router of a function: its targets as declared, else from its `Literal` return type, else from its constants."""
    if isinstance(targets, str):
        raise TypeError(f"targets={targets!r} of the router after {source!r} is one string; give a list or a mapping")
    returned, unresolved = _return_type(function)
    answers_list = get_origin(returned) is list
    if targets is not None:
        mapping = dict(targets) if isinstance(targets, Mapping) else {name: name for name in targets}
        return Router(source, function, mapping, "declared", answers_list)
    literals = tuple(_literals(returned))
    if literals:
        return Router(source, function, {name: name for name in literals}, "typed", answers_list)
    strings = tuple(dict.fromkeys(_strings(function)))
    found = {name: name for name in strings if name in nodes}
    known_by: Literal["inferred", "unknown"] = "inferred" if found else "unknown"
    return Router(source, function, found or None, known_by, answers_list, strings, unresolved)


def _return_type(function: Callable[..., Any]) -> tuple[Any, str | None]:
    """The declared return type, or the name of one that cannot be resolved. Its parameters' types do not matter."""
    called = inspect.unwrap(function if inspect.isroutine(function) else type(function).__call__)
    declared = getattr(called, "__annotations__", {}).get("return")
    holder = types.SimpleNamespace(__annotations__={"return": declared})
    try:
        return typing.get_type_hints(holder, getattr(called, "__globals__", {}), _closure(called)).get("return"), None
    except (NameError, TypeError, AttributeError):  # a name of a block under TYPE_CHECKING, or of another function
        return None, str(declared)


def _literals(annotation: Any) -> Iterator[str]:
    """The strings of a `Literal`, also inside a union or an alias."""
    if get_origin(annotation) is Literal:
        yield from (value for value in get_args(annotation) if isinstance(value, str))
    elif get_origin(annotation) in (typing.Union, types.UnionType):
        for argument in get_args(annotation):
            yield from _literals(argument)


def _function(function: Any) -> Any:
    """The plain function behind partials, wrappers and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return function if hasattr(function, "__code__") else type(function).__call__


def _closure(function: Any) -> dict[str, Any]:
    """The variables of the functions around it that a function uses."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = zip(names, getattr(function, "__closure__", None) or (), strict=False)
    return {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}


def _strings(function: Any) -> Iterator[str]:
    """The strings in a function's code, and in the variables around it that it reads, but for keys and comparisons."""
    function = _function(function)
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType):
        yield from _strings_of(code, {**getattr(function, "__globals__", {}), **_closure(function)})


def _strings_of(code: types.CodeType, variables: Mapping[str, Any]) -> Iterator[str]:
    instructions = list(dis.get_instructions(code))
    for instruction, after in zip(instructions, [*instructions[1:], None], strict=True):
        value = instruction.argval
        if instruction.opname in _READS and isinstance(value, str):
            found = variables.get(value)
            yield from (item for item in (found, value if value == "END" else None) if isinstance(item, str))
        elif "CONST" not in instruction.opname or (after is not None and _looks_up(after)):
            continue
        elif isinstance(value, types.CodeType):
            yield from _strings_of(value, variables)
        elif isinstance(value, (tuple, frozenset)):
            yield from (item for item in value if isinstance(item, str))
        elif isinstance(value, str):
            yield value


_READS = frozenset({"LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_ATTR"})


def _looks_up(instruction: dis.Instruction) -> bool:
    """Whether the instruction uses the value before it as a key, or compares it: then it is no answer."""
    subscript = instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"
    return subscript or instruction.opname in ("BINARY_SUBSCR", "COMPARE_OP")
