"""A router: a function of the state that names the next node, and the names it may answer."""

from __future__ import annotations

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
    returned = _return_type(function)
    answers_list = get_origin(returned) is list
    if targets is not None:
        mapping = dict(targets) if isinstance(targets, Mapping) else {name: name for name in targets}
        return Router(source, function, mapping, "declared", answers_list)
    literals = tuple(_literals(returned))
    if literals:
        return Router(source, function, {name: name for name in literals}, "typed", answers_list)
    found = [name for name in dict.fromkeys(_constants(_code(function))) if name in nodes]
    if found:
        return Router(source, function, {name: name for name in found}, "inferred", answers_list)
    return Router(source, function, None, "unknown", answers_list)


def _return_type(function: Callable[..., Any]) -> Any:
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(inspect.unwrap(called)).get("return")
    except (NameError, TypeError, AttributeError):  # a name of a block under TYPE_CHECKING, or no function at all
        return None


def _literals(annotation: Any) -> Iterator[str]:
    """The strings of a `Literal`, also inside a union or an alias."""
    if get_origin(annotation) is Literal:
        yield from (value for value in get_args(annotation) if isinstance(value, str))
    elif get_origin(annotation) in (typing.Union, types.UnionType):
        for argument in get_args(annotation):
            yield from _literals(argument)


def _code(function: Any) -> types.CodeType | None:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _constants(code: types.CodeType | None) -> Iterator[str]:
    for constant in code.co_consts if code else ():
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, types.CodeType):
            yield from _constants(constant)
        elif isinstance(constant, (tuple, frozenset)):
            yield from (item for item in constant if isinstance(item, str))
