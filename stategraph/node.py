"""A node: a function of the state, and what is declared about running it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from stategraph.context import Context

__all__ = ["Delta", "Node", "NodeFunction", "Retry", "is_async", "takes_state"]

#: What a node returns: the keys it changes, or nothing.
Delta: TypeAlias = Mapping[str, Any] | None
NodeFunction: TypeAlias = Callable[..., Delta | Awaitable[Delta]]


#: The longest time that may be declared, in seconds: a hundred years.
LONGEST = 3.2e9


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failing node is run again by itself, and when. `attempts` counts the first run too; delays are seconds."""

    attempts: int = 3
    delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 60.0
    on: tuple[type[Exception], ...] = (Exception,)

    def delay_after(self, failures: int) -> float:
        """Seconds to wait after the n-th failure (from 1)."""
        try:
            return min(self.delay * self.factor ** (failures - 1), self.max_delay)
        except OverflowError:
            return self.max_delay

    def misfit(self) -> str:
        """What makes it no policy; nothing if it is one."""
        if self.attempts < 1:
            return f"attempts={self.attempts}, which counts the first run too; give it 1 or more"
        for name in ("delay", "factor", "max_delay"):
            if not 0 <= getattr(self, name) <= LONGEST:
                return f"{name}={getattr(self, name)}; give it 0 to {LONGEST:g}"
        return ""

    def allows(self, failures: int, error: Exception) -> bool:
        """Whether there is another attempt after this many failures, the last one being `error`."""
        return failures < self.attempts and isinstance(error, self.on)


@dataclass(frozen=True, slots=True)
class Node:
    """A declared node, with what its function's signature says about calling it."""

    name: str
    function: NodeFunction
    retry: Retry | None = None
    #: Seconds; for async and `blocking` nodes.
    timeout: float | None = None
    irreversible: bool = False
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] | None = None
    blocking: bool = False
    tags: tuple[str, ...] = ()
    takes_context: bool = False
    is_async: bool = False


def make_node(name: str, function: NodeFunction, **declared: Any) -> Node:
    """The node of a function: `state -> delta` or `(state, ctx) -> delta`, sync or async."""
    return Node(name, function, takes_context=_takes_context(function), is_async=is_async(function), **declared)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await, as far as its definition tells."""
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(inspect.unwrap(called))


def takes_state(node: Node) -> bool:
    """Whether the node's function can be called as it will be, as far as its signature tells."""
    try:
        inspect.signature(node.function).bind(*(("state", "context") if node.takes_context else ("state",)))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def _takes_context(function: NodeFunction) -> bool:
    """A node is handed its context when its second positional parameter is required or annotated `Context`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    positional = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 2:
        return False
    second = positional[1]
    return second.default is second.empty or second.annotation in (Context, "Context", "stategraph.Context")
