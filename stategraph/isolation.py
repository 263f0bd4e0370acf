"""State handed to user code: a copy, made key by key at the first access, so that untouched keys cost nothing.

Measured beside `copy.deepcopy` in docs/why.md. What a node or a router does to its view reaches nobody else.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

__all__ = ["SCALARS", "AgentState", "IsolatedState", "copied", "lend"]

#: The types whose values cannot be changed.
SCALARS = frozenset({str, int, float, bool, type(None)})
_MISSING = object()


def copied(value: Any) -> Any:
    """A deep copy of JSON containers that shares their scalars."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is list:
        return value[:] if SCALARS.issuperset(map(type, value)) else [copied(item) for item in value]
    if kind is dict:
        if SCALARS.issuperset(map(type, value.values())):
            return value.copy()
        return {key: copied(item) for key, item in value.items()}
    return copy.deepcopy(value)


def lend(view: Any) -> Callable[[], None]:
    """What to call when user code is done with a view: what it has not made yet is made, if somebody keeps it."""
    try:
        return partial(_take_back, weakref.ref(view))
    except TypeError:  # a whole instance, with nothing left to make
        return _nothing


def _take_back(lent: weakref.ref[Any]) -> None:
    view = lent()
    if view is not None:  # the lists behind it are about to grow
        view.values() if isinstance(view, dict) else vars(view)


def _nothing() -> None: ...


class AgentState(dict[str, Any]):
    """State without a schema: a plain dict, in which `messages` appends and every other key replaces."""


class IsolatedState(AgentState):
    """A dict whose values are made (copied, or decoded) when first handed out; the originals stay untouched."""

    __slots__ = ("_make", "_raw")
    __hash__ = None  # type: ignore[assignment]  # a mutable dict

    def __init__(self, values: Mapping[str, Any], make: Callable[[str, Any], Any] | None = None) -> None:
        super().__init__(values)
        self._make = make
        self._raw = {key for key, value in values.items() if make is not None or type(value) not in SCALARS}

    def _own(self, key: str) -> None:
        if key in self._raw:
            self._raw.discard(key)
            value = dict.__getitem__(self, key)
            dict.__setitem__(self, key, self._make(key, value) if self._make else copied(value))

    def _own_all(self) -> None:
        for key in tuple(self._raw):
            self._own(key)

    def __getitem__(self, key: str) -> Any:
        self._own(key)
        return dict.__getitem__(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401  # `get` is what is being written

    def __setitem__(self, key: str, value: Any) -> None:
        self._raw.discard(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: str) -> None:
        self._raw.discard(key)
        dict.__delitem__(self, key)

    def pop(self, key: str, default: Any = _MISSING) -> Any:
        self._own(key)
        return dict.pop(self, key) if default is _MISSING else dict.pop(self, key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        self._own(key)
        return dict.setdefault(self, key, default)

    def popitem(self) -> tuple[str, Any]:
        self._own_all()
        return dict.popitem(self)

    def clear(self) -> None:
        self._raw.clear()
        dict.clear(self)

    def items(self) -> Any:
        self._own_all()
        return dict.items(self)

    def values(self) -> Any:
        self._own_all()
        return dict.values(self)

    def __iter__(self) -> Iterator[str]:
        # Overridden on purpose: it takes {**state}, dict(state) and update(state) off CPython's fast path, which reads past __getitem__.
        return dict.__iter__(self)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def copy(self) -> dict[str, Any]:
        self._own_all()
        return dict(dict.items(self))

    def __or__(self, other: Any) -> Any:
        return {**self.copy(), **other}

    def __ror__(self, other: Any) -> Any:
        return {**other, **self.copy()}

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        self._own_all()
        return dict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        self._own_all()
        return dict.__repr__(self)

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (self.copy(),)
