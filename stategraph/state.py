"""The schema of a run's state: what its keys may hold, how a node's delta becomes a patch, what user code is handed."""

from __future__ import annotations

import dataclasses
import operator
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from stategraph.encoding import check_json
from stategraph.errors import GraphError, StateError, did_you_mean, shortened
from stategraph.isolation import AgentState, IsolatedState, copied
from stategraph.patch import DELETE, Patch

__all__ = ["AgentState", "Reducer", "Schema", "append", "merge"]

#: (current value or None, what the node returned for the key) -> the new value
Reducer: TypeAlias = Callable[[Any, Any], Any]


def append(current: list[Any] | None, update: list[Any]) -> list[Any]:
    """The reducer of a list that only grows: the update's items are added at its end."""
    return [*(current or ()), *update]


def merge(current: dict[str, Any] | None, update: dict[str, Any]) -> dict[str, Any]:
    """The reducer of a dict that is updated key by key, one level deep."""
    return {**(current or {}), **update}


class Key:
    """One key of a schema: how its values are checked, stored and given back."""

    def __init__(self, name: str, annotation: Any, reducer: Reducer | None, default: Callable[[], Any] | None) -> None:
        self.name = name
        self.annotation = annotation
        self.reducer = reducer
        #: Makes the value of a key that the run's input leaves out; None: the input must give it.
        self.default = default
        self.plain = _is_plain(annotation)

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(self.annotation)
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise StateError(
                f"the type {self.annotation!r} cannot be stored ({str(error).splitlines()[0]}); "
                f"use types that pydantic can validate",
                f"$.{self.name}",
            ) from None

    def dump(self, value: Any, node: str | None) -> Any:
        """The JSON value that comes back equal to `value`; a `StateError` if there is none."""
        path, adapter = f"$.{self.name}", self.adapter
        try:
            held = adapter.validate_python(value, strict=True)
            stored = held if self.plain else adapter.dump_python(held, mode="json", warnings="error")
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise StateError(
                f"{first['msg']}, not {shortened(first['input'], 60)}", _joined(path, first["loc"]), node
            ) from None
        except (PydanticSerializationError, RecursionError, ValueError) as error:
            raise StateError(f"{shortened(value, 60)} cannot be stored: {error}", path, node) from None
        try:
            check_json(stored, path)
        except StateError as error:
            raise StateError(error.reason, error.path, node) from None
        if not self.plain and not _same(held, self.load(stored)):
            raise StateError(
                f"{shortened(value, 60)} would come back as {shortened(self.load(stored), 60)}; "
                f"declare a type for the key that says what it is",
                path,
                node,
            )
        return stored

    def load(self, stored: Any) -> Any:
        """The value behind a stored one; shares nothing with it."""
        return copied(stored) if self.plain else self.adapter.validate_python(stored)


class Schema:
    """What `state=` of a graph declares: a pydantic model, a dataclass, a TypedDict, or nothing (`AgentState`)."""

    def __init__(
        self,
        kind: type | None = None,
        reducers: Mapping[str, Reducer] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        #: The keys whose values are shown to nobody.
        self.secrets = frozenset([secrets] if isinstance(secrets, str) else secrets)
        self.keys = _keys_of(kind)
        declared = (
            {"messages": append} if kind is None else {k.name: k.reducer for k in self.keys.values() if k.reducer}
        )
        self.reducers: dict[str, Reducer] = {**declared, **(reducers or {})}
        for given, names in (("reducers", self.reducers), ("secrets", sorted(self.secrets))):
            unknown = [name for name in names if kind is not None and name not in self.keys]
            if unknown:
                hint = did_you_mean(unknown[0], self.keys)
                raise GraphError([f"{given}= names {unknown[0]!r}, which {self.name} does not know{hint}"])

    # -- in: what users give

    def start(self, state: object) -> dict[str, Any]:
        """The stored values of a run's input: a mapping, or an instance of the schema's type."""
        given = self._mapping(state)
        values = {name: self._dump(name, value, None) for name, value in given.items() if value is not DELETE}
        for key in self.keys.values():
            if key.name not in values and key.default is not None and (value := key.default()) is not DELETE:
                values[key.name] = key.dump(value, None)
        if missing := self.missing(values):
            raise StateError(f"the input has no {missing[0]!r}, which {self.name} requires", f"$.{missing[0]}")
        return values

    def parse(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Python values from JSON ones, as a command line or a request brings them.

        Numbers may come as `Decimal` (`json.loads(..., parse_float=Decimal)`), so that no digit of an amount is lost.
        """
        parsed = {}
        for name, value in values.items():
            key = self.keys.get(name)
            try:
                parsed[name] = key.adapter.validate_python(value) if key and not key.plain else _without_decimals(value)
                if key and key.plain:
                    parsed[name] = key.adapter.validate_python(parsed[name])
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                raise StateError(first["msg"], _joined(f"$.{name}", first["loc"])) from None
        return parsed

    def delta(self, delta: Mapping[str, Any], node: str | None) -> dict[str, Any]:
        """A node's delta in stored form, key by key; `DELETE` stays what it is."""
        stored = {}
        for name, value in delta.items():
            if value is DELETE:
                self._may_delete(name, node)
            stored[name] = value if value is DELETE else self._dump(name, value, node)
        return stored

    def patch(self, stored: Mapping[str, Any], values: Mapping[str, Any], node: str | None = None) -> Patch:
        """The operations of a stored delta on `values`. A custom reducer is applied here and its result stored."""
        patch: Patch = {}
        for name, value in stored.items():
            reducer = self.reducers.get(name)
            if value is DELETE:
                patch[name] = ("delete", None)
            elif reducer is None:
                patch[name] = ("set", value)
            elif reducer in (append, merge):
                verb: Literal["append", "merge"] = "append" if reducer is append else "merge"
                self._must_be(list if verb == "append" else dict, verb, name, value, values, node)
                default = None if name in values else self._default(name)
                patch[name] = ("set", reducer(default, value)) if default else (verb, value)
            else:
                patch[name] = ("set", self._reduced(reducer, name, value, values, node))
        return patch

    # -- out: what user code is handed

    def view(self, values: Mapping[str, Any], patch: Patch | None = None) -> Any:
        """The state, after a patch if one is given, as a node or a router sees it: isolated, made key by key as it is read."""
        make = self.load
        if patch:
            values, grown = _patched(values, patch)
            if self.kind is None and not grown:
                return IsolatedState(values)
            if grown:
                make = lambda name, stored: self.load(name, _grow(stored, grown.get(name)))  # noqa: E731  # said once
        elif self.kind is None:
            return IsolatedState(values)
        if self.kind is None or typing_extensions.is_typeddict(self.kind):
            return IsolatedState(values, make)
        if _is_lazy(self.kind):
            return _lazy(self.kind, self._whole(values), make)
        return self.instance({name: _grow(value, patch.get(name) if patch else None) for name, value in values.items()})

    def instance(self, values: Mapping[str, Any]) -> Any:
        """The state as an ordinary instance of the schema's type."""
        held = {name: self.load(name, value) for name, value in self._whole(values).items()}
        if self.kind is None:
            return AgentState(held)
        if issubclass(self.kind, BaseModel):
            return self.kind.model_construct(**held)
        if not dataclasses.is_dataclass(self.kind):
            return held
        made = object.__new__(self.kind)  # not by its constructor: __post_init__ has run when the values were made
        for name, value in held.items():
            object.__setattr__(made, name, value)
        return made

    def load(self, name: str, stored: Any) -> Any:
        """One key's value from its stored form."""
        key = self.keys.get(name)
        return key.load(stored) if key else copied(stored)

    # -- checks

    @property
    def name(self) -> str:
        return self.kind.__name__ if self.kind else "AgentState"

    def missing(self, values: Mapping[str, Any]) -> list[str]:
        """The required keys that these stored values lack."""
        return [key.name for key in self.keys.values() if key.default is None and key.name not in values]

    def misfits(self, values: Mapping[str, Any]) -> list[str]:
        """Why stored values do not fit this schema (it may be newer than they are); empty if they do."""
        reasons = [
            f"its state has no {name!r}, which {self.name} requires (give it a default, or add a migration)"
            for name in self.missing(values)
        ]
        for name, value in values.items():
            if self.kind is not None and name not in self.keys:
                reasons.append(
                    f"its state has {name!r}, which {self.name} does not know{did_you_mean(name, self.keys)}"
                )
                continue
            try:
                self.load(name, value)
            except ValidationError as error:
                why = "" if name in self.secrets else f": {error.errors(include_url=False)[0]['msg']}"
                reasons.append(f"its {name!r} is no {self.name} value{why}")
        return reasons

    # -- parts

    def _default(self, name: str) -> Any:
        """The stored form of a key's default; None if it has none."""
        key = self.keys.get(name)
        value = key.default() if key and key.default else DELETE
        return None if key is None or value is DELETE else key.dump(value, None)

    def _whole(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values, with the defaults of keys that they lack: declared since the run began, or deleted."""
        absent = [name for name in self.keys if name not in values] if len(values) < len(self.keys) else []
        has_default = [name for name in absent if (default := self.keys[name].default) and default() is not DELETE]
        return {**values, **{name: self._default(name) for name in has_default}}

    def _may_delete(self, name: Any, node: str | None) -> None:
        key = self.keys.get(name)
        if type(name) is not str or (key is None and self.kind is not None):
            self._dump(name, None, node)  # raises what it has against the name
        elif key is not None and key.default is None:
            raise StateError(f"{self.name} requires it, so it cannot be deleted", f"$.{name}", node)

    def _mapping(self, state: object) -> Mapping[str, Any]:
        if isinstance(state, Mapping):
            return state
        if self.kind is not None and isinstance(state, self.kind):
            if isinstance(state, BaseModel):
                return {name: getattr(state, name) for name in type(state).model_fields}
            return {key: getattr(state, key) for key in self.keys}
        raise StateError(f"{shortened(state)} is neither a mapping nor an instance of {self.name}", "$")

    def _dump(self, name: Any, value: Any, node: str | None) -> Any:
        if type(name) is not str:
            raise StateError(f"the key {shortened(name, 60)} is a {type(name).__qualname__}; keys are str", "$", node)
        key = self.keys.get(name)
        if key is not None:
            return key.dump(value, node)
        if self.kind is not None:
            raise StateError(f"{self.name} has no key {name!r}{did_you_mean(name, self.keys)}", f"$.{name}", node)
        try:
            check_json(value, f"$.{name}")
        except StateError as error:
            raise StateError(error.reason, error.path, node) from None
        return value

    def _must_be(
        self, kind: type, verb: str, name: str, value: Any, values: Mapping[str, Any], node: str | None
    ) -> None:
        current = values.get(name)
        for what, found in (("the update", value), ("the current value", current)):
            if type(found) is not kind and not (found is current and name not in values):
                raise StateError(
                    f"{what} is {shortened(found, 60)}, but {name!r} is declared to {verb}: a {kind.__name__} is needed",
                    f"$.{name}",
                    node,
                )

    def _reduced(self, reducer: Reducer, name: str, value: Any, values: Mapping[str, Any], node: str | None) -> Any:
        default = values.get(name, self._default(name))
        zero = _zero(self.keys[name].annotation) if name in self.keys else None
        current = zero if default is None and name not in values else self.load(name, default)
        return self._dump(name, reducer(current, self.load(name, value)), node)


# -- a patch that is not applied yet, seen without copying what it grows


def _patched(values: Mapping[str, Any], patch: Patch) -> tuple[dict[str, Any], Patch]:
    """The values after a patch, but for what only grows: that is put together when somebody reads it."""
    after: dict[str, Any] = dict(values)
    grown: Patch = {}
    for name, (operation, value) in patch.items():
        if operation == "set":
            after[name] = value
        elif operation == "delete":
            after.pop(name, None)
        else:
            after.setdefault(name, type(value)())
            grown[name] = (operation, value)
    return after, grown


def _grow(stored: Any, operation: tuple[str, Any] | None) -> Any:
    if operation is None or operation[0] not in ("append", "merge"):
        return stored
    return [*stored, *operation[1]] if operation[0] == "append" else {**stored, **operation[1]}


# -- what a declaration says


def _keys_of(kind: type | None) -> dict[str, Key]:
    if kind is None:
        return {}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: _model_key(name, field) for name, field in kind.model_fields.items()}
    if typing_extensions.is_typeddict(kind):
        # A run may start with any of a TypedDict's keys, as its nodes fill in the rest: no key is required.
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        return {name: _key(name, hint, lambda: DELETE) for name, hint in hints.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        return {
            field.name: _key(field.name, hints[field.name], _field_default(field)) for field in dataclasses.fields(kind)
        }
    raise TypeError(
        f"state={kind!r}: give a pydantic model, a dataclass or a TypedDict, or leave it out for a dict of JSON values"
    )


def _key(name: str, hint: Any, default: Callable[[], Any] | None) -> Key:
    while get_origin(hint) in (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.ReadOnly):
        (hint,) = get_args(hint)
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    plain = get_args(hint)[0] if metadata else hint
    constraints = [item for item in metadata if not _is_reducer(item)]
    annotation = Annotated[plain, *constraints] if constraints else plain
    return Key(name, annotation, _reducer(metadata, plain), default)


def _model_key(name: str, field: Any) -> Key:
    constraints = [item for item in field.metadata if not _is_reducer(item)]
    annotation = Annotated[field.annotation, *constraints] if constraints else field.annotation
    default = None if field.is_required() else lambda: field.get_default(call_default_factory=True, validated_data={})
    return Key(name, annotation, _reducer(field.metadata, field.annotation), default)


def _field_default(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return (lambda: field.default) if field.default is not dataclasses.MISSING else None


def _is_reducer(item: object) -> bool:
    return callable(item) and not isinstance(item, type)  # what pydantic reads in metadata is never called


def _reducer(metadata: typing.Iterable[Any], annotation: Any) -> Reducer | None:
    for item in metadata:
        if _is_reducer(item):
            # `operator.add` on a list is what LangGraph's users write for append; as a custom reducer it would store the whole list.
            return append if item is operator.add and (get_origin(annotation) or annotation) is list else item
    return None


def _zero(annotation: Any) -> Any:
    kind = get_origin(annotation) or annotation
    return kind() if kind in (int, float, str, bool, list, dict, set, tuple) else None


def _is_plain(annotation: Any) -> bool:
    """Whether every value of the annotated type is its own stored form."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (str, int, bool, None, type(None), Any, list, dict):
        return True
    if origin is Annotated:
        return _is_plain(arguments[0])
    if origin is Literal:
        return all(type(argument) in (str, int, bool, type(None)) for argument in arguments)
    if origin is dict:
        return arguments[0] is str and _is_plain(arguments[1])
    if origin in (list, typing.Union, types.UnionType):
        return all(map(_is_plain, arguments))
    return False


def _without_decimals(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_without_decimals(item) for item in value]
    return {key: _without_decimals(item) for key, item in value.items()} if isinstance(value, dict) else value


# -- equal in value and type


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, Enum):
        return a is b
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        factories_differ = isinstance(a, defaultdict) and a.default_factory is not b.default_factory
        return not factories_differ and len(a) == len(b) and all(map(_same, _entries(a), _entries(b)))
    if isinstance(a, (set, frozenset)):
        return {(type(item), item) for item in a} == {(type(item), item) for item in b}
    if isinstance(a, (datetime, time)):
        return bool(a == b) and a.utcoffset() == b.utcoffset()
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, BaseModel) or dataclasses.is_dataclass(a):
        return _same(_attributes(a), _attributes(b))
    equal: bool = a == b
    return bool(equal)


def _entries(value: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return list(value.items())


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return {**vars(value), **(value.__pydantic_extra__ or {})}
    # By field, and by instance: a field outside the constructor may be held by the class alone.
    return {
        **{field.name: getattr(value, field.name) for field in dataclasses.fields(value)},
        **getattr(value, "__dict__", {}),
    }


def _joined(path: str, location: tuple[int | str, ...]) -> str:
    return path + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)


# -- a typed view that makes its fields as they are read

_LAZY: dict[type, type] = {}


def _is_lazy(kind: type) -> bool:
    return issubclass(kind, BaseModel) or not hasattr(kind, "__slots__")


def _lazy_class(kind: type) -> type:
    """A subclass whose instances make a field's value at the first access; `isinstance(state, kind)` stays true."""
    if kind in _LAZY:
        return _LAZY[kind]

    def getattribute(self: Any, name: str) -> Any:
        get = object.__getattribute__
        fields = get(self, "__dict__")
        pending = fields.get("_pending")
        if pending:
            if name in pending:
                pending.discard(name)
                fields[name] = fields["_load"](name, fields[name])
            elif name == "__dict__":  # model_dump, vars, replace, copy and pickle go through it: they take everything
                for field in tuple(pending):
                    pending.discard(field)
                    fields[field] = fields["_load"](field, fields[field])
        if name == "__dict__":
            fields.pop("_pending", None)
            fields.pop("_load", None)
        return get(self, name)

    def written(write: Callable[..., None]) -> Callable[..., None]:
        def change(self: Any, name: str, *value: Any) -> None:
            write(self, name, *value)  # first: a frozen dataclass refuses, and its field stays to be made
            object.__getattribute__(self, "__dict__").get("_pending", set()).discard(name)

        return change

    namespace = {
        "__getattribute__": getattribute,
        "__setattr__": written(kind.__setattr__),
        "__delattr__": written(kind.__delattr__),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__class__": property(lambda self: kind),
        "__reduce_ex__": lambda self, protocol: (_plain, (kind, dict(vars(self)))),
    }
    _LAZY[kind] = type(kind)(kind.__name__, (kind,), namespace)
    return _LAZY[kind]


def _lazy(kind: type, values: dict[str, Any], load: Callable[[str, Any], Any]) -> Any:
    made: Any = object.__new__(_lazy_class(kind))
    object.__setattr__(made, "__dict__", {**values, "_pending": set(values), "_load": load})
    if issubclass(kind, BaseModel):
        object.__setattr__(made, "__pydantic_fields_set__", set(values))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        if kind.__private_attributes__:
            made.model_post_init(None)  # where pydantic makes them
    return made


def _plain(kind: type, fields: dict[str, Any]) -> Any:
    if issubclass(kind, BaseModel):
        return kind.model_construct(**fields)
    made = object.__new__(kind)
    made.__dict__.update(fields)
    return made
