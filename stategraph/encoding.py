"""The strict encoder: JSON types in, bytes out, and what went in comes back equal in value and type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from math import isfinite
from typing import Any

from stategraph.errors import StateError, shortened

__all__ = ["MAX_BYTES", "MAX_DEPTH", "check_json", "decode", "digest_of", "encode"]

MAX_DEPTH = 100
MAX_BYTES = 64 * 2**20
MAX_CONTAINERS = 1_000_000

_PLAIN = frozenset({str, int, bool, type(None)})


def _encoder(sort_keys: bool) -> Callable[[Any], str]:
    """ASCII escapes: NUL and lone surrogates survive every store. No NaN: pydantic's own writer would turn it into null."""
    plain = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False, sort_keys=sort_keys)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # not CPython
        return plain.encode
    # What JSONEncoder.encode makes anew for each value, which is half of its time for a small one.
    chunks = make(None, plain.default, json.encoder.encode_basestring_ascii, None, ":", ",", sort_keys, False, False)
    return lambda value: "".join(chunks(value, 0))


_dumps, _canonical = _encoder(sort_keys=False), _encoder(sort_keys=True)
_decode = json.JSONDecoder().raw_decode


def decode(body: bytes) -> Any:
    """The value in bytes that `encode` made."""
    text = body.decode("ascii")
    value, end = _decode(text)
    return value if end == len(text) else json.loads(text)  # which says what is wrong with it


def encode(value: Any) -> bytes:
    """The bytes of a value whose content was checked; too large a value is a `StateError`."""
    try:
        body = _dumps(value).encode("ascii")
    except ValueError as error:  # integers beyond the interpreter's digit limit
        raise StateError(str(error), "$") from None
    if len(body) > MAX_BYTES:
        raise StateError(f"{len(body):,} bytes are more than one checkpoint may hold ({MAX_BYTES:,})", "$")
    return body


def digest_of(value: Any) -> str:
    """SHA-256 (hex) of the value's canonical JSON: the same for equal content in any key order."""
    try:
        return sha256(_canonical(value).encode("ascii")).hexdigest()
    except ValueError as error:
        raise StateError(str(error), "$") from None


def check_json(value: Any, path: str) -> None:
    """Raise `StateError` with the path of the first thing that JSON cannot give back equal in value and type."""
    try:
        fits = _fits(value, MAX_DEPTH, [MAX_CONTAINERS])
    except _TooMany:  # a few lists that hold each other twice are 2**n lists as JSON
        raise StateError(f"more than {MAX_CONTAINERS:,} lists and dicts in one value", path) from None
    if not fits:
        where, reason = next(_misfits(value, path, MAX_DEPTH))
        raise StateError(reason, where)


class _TooMany(Exception):
    pass


def _fits(value: Any, depth: int, left: list[int]) -> bool:
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is float:
        return isfinite(value)
    if depth == 0:
        return False
    left[0] -= 1
    if left[0] < 0:
        raise _TooMany
    if kind is list:
        return _PLAIN.issuperset(map(type, value)) or all(_fits(item, depth - 1, left) for item in value)
    if kind is dict:
        return all(type(key) is str for key in value) and (
            _PLAIN.issuperset(map(type, value.values())) or all(_fits(item, depth - 1, left) for item in value.values())
        )
    return False


def _misfits(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """(path, reason) for everything in the value that `_fits` refuses; only walked once there is something."""
    kind = type(value)
    if kind in _PLAIN or (kind is float and isfinite(value)):
        return
    if kind is float:
        yield path, f"{value!r} has no place in JSON; store None or a string instead"
    elif kind not in (list, dict):
        yield (
            path,
            (
                f"{shortened(value, 60)} is a {kind.__qualname__}, and without a schema only JSON types are stored "
                f"(str, int, float, bool, None, list, dict); convert it, or declare the key's type with StateGraph(state=...)"
            ),
        )
    elif depth == 0:
        yield path[:200], f"nested deeper than {MAX_DEPTH} levels"
    elif kind is list:
        for index, item in enumerate(value):
            yield from _misfits(item, f"{path}[{index}]", depth - 1)
    else:
        for key, item in value.items():
            if type(key) is not str:
                yield path, f"the key {shortened(key, 60)} is a {type(key).__qualname__}; keys are str"
            else:
                yield from _misfits(item, f"{path}.{key}", depth - 1)
