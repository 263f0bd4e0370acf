"""A patch: what one checkpoint changes, key by key, as operations that fold back without user code.

In memory `{key: (operation, value)}`; stored grouped by operation, `{"set": {...}, "append": {...}}`, which is short.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

__all__ = ["DELETE", "Patch", "applied", "apply", "apply_stored", "changes", "dump"]


class _Delete:
    """The value that removes its key."""

    _only: _Delete | None = None

    def __new__(cls) -> _Delete:
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "DELETE"

    def __copy__(self) -> _Delete:
        return self

    def __deepcopy__(self, memo: object) -> _Delete:
        return self


#: Returned by a node as a key's value: the key is removed from the state.
DELETE = _Delete()

Operation: TypeAlias = Literal["set", "append", "merge", "delete"]
Patch: TypeAlias = dict[str, tuple[Operation, Any]]

_WRITES: tuple[Operation, ...] = ("set", "append", "merge")
#: The keys of a body that change the state.
WRITES = frozenset({*_WRITES, "delete"})
_NOTHING: Mapping[str, Any] = {}
_GROWING = frozenset({list, dict})


def apply(values: dict[str, Any], patch: Patch) -> None:
    """Change `values` in place; the cost is that of the patch. Lists and dicts in `values` belong to the caller."""
    for key, (operation, value) in patch.items():
        if operation == "set":
            values[key] = value
        elif operation == "append":
            values.setdefault(key, []).extend(value)
        elif operation == "merge":
            values.setdefault(key, {}).update(value)
        else:
            values.pop(key, None)


def apply_stored(values: dict[str, Any], grouped: Mapping[str, Any]) -> None:
    """`apply` for a patch in its stored form, as it stands in a checkpoint's body."""
    for key, value in grouped.get("set", _NOTHING).items():
        values[key] = value.copy() if type(value) in _GROWING else value  # what grows later must not grow in the row
    for key, items in grouped.get("append", _NOTHING).items():
        values.setdefault(key, []).extend(items)
    for key, items in grouped.get("merge", _NOTHING).items():
        values.setdefault(key, {}).update(items)
    for key in grouped.get("delete", ()):
        values.pop(key, None)


def applied(values: Mapping[str, Any], patch: Patch) -> dict[str, Any]:
    """The values after a patch; `values` and what is in it stay as they are."""
    after = dict(values)
    for key, (operation, value) in patch.items():
        if operation == "append":
            after[key] = [*after.get(key, ()), *value]
        elif operation == "merge":
            after[key] = {**after.get(key, {}), **value}
        else:
            apply(after, {key: (operation, value)})
    return after


def dump(patch: Patch) -> dict[str, Any]:
    """The stored form: operations by kind."""
    grouped: dict[str, Any] = {}
    for key, (operation, value) in patch.items():
        if operation == "delete":
            grouped.setdefault("delete", []).append(key)
        else:
            grouped.setdefault(operation, {})[key] = value
    return grouped


def changes(grouped: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader is shown of a stored patch: each key with what was written to it, None where it was removed."""
    changed: dict[str, Any] = {}
    for operation in _WRITES:
        if operation in grouped:
            changed.update(grouped[operation])
    changed.update(dict.fromkeys(grouped.get("delete", ())))
    return changed
