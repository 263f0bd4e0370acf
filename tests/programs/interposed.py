"""A checkpointer with somebody between it and its user: called before and after every verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, cast

from stategraph import Checkpointer

#: Is awaited with the verb's name, before it and after it; what it raises the verb's caller gets.
Around: TypeAlias = Callable[[str, Literal["before", "after"]], Awaitable[None]]

#: The heart renews when its time has come: it is left out, so that the calls of a run can be counted.
VERBS = frozenset(
    {
        "create", "claim", "release", "append", "settle", "decide", "expire", "signal", "cancel", "retry",
        "effect_begin", "effect_end", "head", "load", "history", "find_act", "runs", "boundaries", "due", "delete", "prune",
    }
)  # fmt: skip


def interposed(inner: Checkpointer, around: Around) -> Checkpointer:
    """The same store, with `around` around each call."""
    return cast("Checkpointer", _Interposed(inner, around))


class _Interposed:
    def __init__(self, inner: Checkpointer, around: Around) -> None:
        self._inner = inner
        self._around = around

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in VERBS:
            return attribute

        async def call(*arguments: Any, **more: Any) -> Any:
            await self._around(name, "before")
            answer = await attribute(*arguments, **more)
            await self._around(name, "after")
            return answer

        return call
