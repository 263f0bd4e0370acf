"""What the strict encoder takes comes back equal in value and type; what it cannot give back it refuses, with the place."""

from __future__ import annotations

import sys
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from math import copysign, inf, nan
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stategraph import StateError, encoding
from stategraph.encoding import check_json, decode, digest_of, encode

#: A busy machine is no failure.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner), max_leaves=30
)


def alike(a: Any, b: Any) -> bool:
    """Equal in value and type, all the way down; 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return a == b and copysign(1, a) == copysign(1, b)
    return bool(a == b)


@untimed
@given(JSON)
def test_every_json_value_comes_back_equal_in_value_and_type(value: Any) -> None:
    """Surrogates, NUL, big integers, -0.0, the order of keys: all of it."""
    check_json(value, "$")
    assert alike(decode(encode(value)), value)


@untimed
@given(JSON)
def test_the_bytes_are_ascii(value: Any) -> None:
    """So no database and no wire has a say in what is stored."""
    assert encode(value).isascii()


@pytest.mark.parametrize(
    "value", ["a\0b", "\ud800", "\udfff\ud800", 2**70, -(2**70), -0.0, 5e-324, "", [], {}, {"": 0}]
)
def test_the_hard_values_come_back(value: Any) -> None:
    """What databases and other encoders lose."""
    assert alike(decode(encode(value)), value)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Text(str):
    """A subclass would come back as its base."""

    __slots__ = ()


@pytest.mark.parametrize(
    "value",
    [
        {1},
        (1,),
        b"x",
        Decimal(1),
        datetime(2024, 1, 1, tzinfo=UTC),
        Colour.RED,
        Level.HIGH,
        Text("x"),
        OrderedDict(a=1),
        range(3),
        1j,
        object(),
        len,
        nan,
        inf,
        -inf,
    ],
    ids=repr,
)
def test_what_would_not_come_back_is_refused_with_its_place(value: Any) -> None:
    """However deep it sits, the path leads to it."""
    with pytest.raises(StateError) as caught:
        check_json({"a": [0, {"b": value}]}, "$.key")
    assert caught.value.path == "$.key.a[1].b"


@pytest.mark.parametrize("key", [1, None, True, 1.5, (1, 2), Colour.RED])
def test_a_key_that_is_no_string_is_refused_with_the_place_of_its_dict(key: Any) -> None:
    """json.dumps would turn it into text, or fail without a place."""
    with pytest.raises(StateError, match="keys are str") as caught:
        check_json({"a": {key: 1}}, "$")
    assert caught.value.path == "$.a"


def test_a_hundred_levels_are_stored_and_one_more_is_refused() -> None:
    """The limit keeps every reader's stack."""
    deep: Any = 1
    for _ in range(encoding.MAX_DEPTH):
        deep = [deep]
    check_json(deep, "$")
    with pytest.raises(StateError, match="nested deeper than 100 levels"):
        check_json([deep], "$")


def test_a_value_that_holds_itself_is_refused() -> None:
    """A cycle ends at the depth limit, not at the interpreter's."""
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(StateError, match="nested deeper"):
        check_json(cycle, "$")


def test_an_integer_beyond_the_interpreters_digits_is_a_state_error() -> None:
    """It could be stored, but no reader could decode it."""
    with pytest.raises(StateError, match="digits"):
        encode(10 ** (sys.get_int_max_str_digits() + 1))


def test_too_large_a_value_is_a_state_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how large it is, and how large it may be."""
    monkeypatch.setattr(encoding, "MAX_BYTES", 100)
    assert encode("x" * 98)
    with pytest.raises(StateError, match=r"101 bytes are more than one checkpoint may hold \(100\)"):
        encode("x" * 99)


@untimed
@given(st.dictionaries(st.text(), SCALARS, max_size=5))
def test_a_digest_does_not_depend_on_the_order_of_keys(value: dict[str, Any]) -> None:
    """Equal content, equal digest."""
    assert digest_of(value) == digest_of(dict(reversed(value.items())))


def test_a_digest_tells_values_of_different_types_apart() -> None:
    """True is not 1, 1 is not 1.0, and the text of a number is no number."""
    assert len({digest_of(value) for value in (True, 1, 1.0, "1", None, [1], {"1": 1})}) == 7


def test_a_digest_is_the_same_in_every_version() -> None:
    """A decision names a digest that another process, or an older release, has computed."""
    digest = digest_of(["r", "", 1, "pay", None, {"amount": 1000, "who": "Ä\ud800"}])
    assert digest == "f67994984d9480115b6a3f16d140918f04f2da7de3f9735164f4abbd6970537b"
