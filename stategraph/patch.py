"""A patch: what one checkpoint changes, key by key, as operations that fold back without user code.

In memory `{key: (operation, value)}`; stored grouped by operation, `{"set": {...}, "append": {...}}`, which is short.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

__all__ = ["DELETE", "Patch", "applied", "apply", "changes", "dump", "load"]


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

_OPERATIONS: tuple[Operation, ...] = ("set", "append", "merge")


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


def load(grouped: Mapping[str, Any]) -> Patch:
    """The patch in a stored body; keys of the body that are no operation are left alone."""
    patch: Patch = {}
    for operation in _OPERATIONS:
        for key, value in grouped.get(operation, {}).items():
            patch[key] = (operation, value)
    for key in grouped.get("delete", ()):
        patch[key] = ("delete", None)
    return patch


def changes(patch: Patch) -> dict[str, Any]:
    """What a reader of events is shown: each written key with what was written to it, None where it was removed."""
    return {key: value for key, (_, value) in patch.items()}
