"""JSON that is given on the command line: as it stands, as `@file`, or as `@-` from standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from stategraph.cli.refusal import Refused
from stategraph.cli.text import within

__all__ = ["given_json", "given_mapping"]


def given_json(option: str, text: str, parse_float: Callable[[str], Any] = float) -> Any:
    """The value; `Refused` names the option, the place and the fault."""
    written = _read(option, text[1:]) if text.startswith("@") else text
    try:
        return json.loads(
            written, parse_constant=_refuse_constant, parse_float=parse_float, object_pairs_hook=_each_key_once
        )
    except json.JSONDecodeError as error:
        found = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets, NaN
        found = str(error)
    raise Refused(f"{option} is no JSON: {found}; write it like {option} '{{\"key\": 1}}' or {option} @file.json")


def given_mapping(option: str, text: str | None) -> dict[str, Any]:
    """The JSON object, its fractions as `Decimal` so that no digit is lost; an empty one if the option was left out."""
    if text is None:
        return {}
    value = given_json(option, text, Decimal)
    if not isinstance(value, dict):
        raise Refused(
            f"{option} must be a JSON object of state keys, like '{{\"key\": 1}}', not {within(json.dumps(value, default=str), 60)}"
        )
    return value


def _read(option: str, name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, ValueError) as error:  # no such file, a NUL in its name, bytes that are no UTF-8
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Refused(f"{option} names the file {name!r}, which cannot be read ({reason}); check the path") from None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; one that says two things of a key says nothing."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {within(json.dumps(twice), 60)} is there twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} has no place in JSON")
