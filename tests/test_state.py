"""What a schema lets into the state, how a delta becomes a patch, and that every value comes back equal in value and type."""

from __future__ import annotations

import dataclasses
import json
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from functools import partial
from ipaddress import IPv4Address
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pydantic
import pytest
import typing_extensions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stategraph import DELETE, AgentState, Checkpointer, GraphError, StateError, StateGraph, append, merge
from stategraph.encoding import decode, encode
from stategraph.patch import applied, apply, apply_stored, changes, dump
from stategraph.state import Schema, _same

#: A busy machine is no failure.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Colour(Enum):
    RED = "red"
    BLUE = 2


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    YES = "yes"


class Holder:
    class Inner(Enum):
        A = "a"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Order:
    amount: Decimal
    total: Decimal = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = self.amount * 2


class Item(pydantic.BaseModel):
    name: str
    tags: set[str] = set()


class SpecialItem(Item):
    extra: int = 0


def one_key(annotation: Any) -> Schema:
    """A schema of the one key `k`."""
    return Schema(typing_extensions.TypedDict("one_key", {"k": annotation}))  # type: ignore[operator]


def returned(annotation: Any, value: Any) -> Any:
    """The value after it was stored and read again."""
    schema = one_key(annotation)
    return schema.load("k", decode(encode(schema.start({"k": value})))["k"])


# -- round trips


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Colour, Colour.BLUE),
        (Level, Level.LOW),
        (Word, Word.YES),
        (Holder.Inner, Holder.Inner.A),
        (list[Colour], [Colour.RED, Colour.BLUE]),
        (dict[Word, int], {Word.YES: 1}),
        (dict[int, str], {1: "one"}),
        (Order, Order(Decimal("1.50"))),
        (Item, Item(name="a", tags={"x", "y"})),
        (list[Item], [Item(name="a")]),
        (Decimal, Decimal("1.10")),
        (Decimal, Decimal("1E+3")),
        (datetime, datetime(2024, 5, 1, 12, 30, 0, 123456, tzinfo=UTC)),
        (datetime, datetime(2024, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
        (datetime, datetime(2024, 5, 1)),  # noqa: DTZ001  # one without a zone comes back without one
        (date, date(2024, 5, 1)),
        (time, time(12, 30)),
        (timedelta, timedelta(days=-1, microseconds=1)),
        (tuple[int, str], (1, "a")),
        (tuple[int, ...], (1, 2, 3)),
        (Point, Point(1, 2)),
        (set[int], {1, 2}),
        (frozenset[str], frozenset("ab")),
        (defaultdict[str, int], defaultdict(int, a=1)),
        (int, 2**70),
        (int, -1),
        (float, 0.1),
        (float, -0.0),
        (bool, True),
        (str, "a\0b"),
        (str, "\ud800"),
        (bytes, b"plain"),
        (UUID, UUID(int=5)),
        (IPv4Address, IPv4Address("10.0.0.1")),
        (PurePosixPath, PurePosixPath("a/b")),
        (int | str, 5),
        (int | str, "5"),
        (int | float, 5),
        (int | float, 5.0),
        (bool | int, 1),
        (Decimal | None, None),
        (Literal["a", 1], 1),
        (Any, {"a": [1, 2.5, None, True]}),
        (dict[str, Any], {"a": {"b": []}}),
        (list[dict[str, set[int]]], [{"a": {1}}]),
    ],
    ids=repr,
)
def test_a_value_comes_back_equal_in_value_and_type(annotation: Any, value: Any) -> None:
    """Whatever a schema can say, a reload gives the same thing."""
    back = returned(annotation, value)
    assert (type(back), back) == (type(value), value)
    assert _same(back, value)


@untimed
@given(
    st.builds(
        dict,
        when=st.datetimes(timezones=st.timezones()).filter(lambda moment: moment.utcoffset() is not None),
        money=st.decimals(allow_nan=False, allow_infinity=False),
        lasted=st.timedeltas(),
        pair=st.tuples(st.integers(), st.text()),
        members=st.sets(st.integers()),
        number=st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_whatever_is_taken_comes_back_the_same(values: dict[str, Any]) -> None:
    """Of any value a schema takes, the stored form gives the same one back; what it cannot, it refuses with the key."""
    kinds: dict[str, Any] = {
        "when": datetime, "money": Decimal, "lasted": timedelta, "pair": tuple[int, str], "members": set[int],
        "number": int | float,
    }  # fmt: skip
    for name, value in values.items():
        schema = one_key(kinds[name])
        try:
            stored = schema.start({"k": value})
        except StateError:
            continue
        back = schema.load("k", decode(encode(stored))["k"])
        assert type(back) is type(value)
        assert back == value


def test_two_schemas_in_one_program_do_not_mix() -> None:
    """Two classes of one name keep their own views."""

    def make(default: int) -> type:
        class Same(pydantic.BaseModel):
            n: int = default

        return Same

    first, second = Schema(make(1)), Schema(make(2))
    assert (first.view(first.start({})).n, second.view(second.start({})).n) == (1, 2)
    assert isinstance(first.view({"n": 1}), first.kind or object)
    assert not isinstance(first.view({"n": 1}), second.kind or object)


# -- refusals


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (int, "5", "$.k"),
        (int, True, "$.k"),
        (int, 1.5, "$.k"),
        (str, 5, "$.k"),
        (float, float("nan"), "$.k"),
        (float, float("inf"), "$.k"),
        (Decimal, Decimal("NaN"), "$.k"),
        (list[int], [1, "x"], "$.k[1]"),
        (dict[str, list[int]], {"a": [1, None]}, "$.k.a[1]"),
        (Item, {"name": 5}, "$.k.name"),
        (Item, SpecialItem(name="a", extra=1), "$.k"),
        (Colour, "red", "$.k"),
        (Any, {1}, "$.k"),
        (Any, [0, {"a": object()}], "$.k[1].a"),
        (dict[str, Any], {"a": Decimal(1)}, "$.k.a"),
        (bytes, b"\xff", "$.k"),
        (Annotated[int, pydantic.Field(ge=0)], -1, "$.k"),
        (Annotated[str, pydantic.StringConstraints(max_length=2)], "abc", "$.k"),
        (OrderedDict[str, int], {"a": 1}, "$.k"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused_with_its_place(annotation: Any, value: Any, path: str) -> None:
    """At the write, before anything else happens."""
    with pytest.raises(StateError) as caught:
        one_key(annotation).start({"k": value})
    assert caught.value.path == path


@pytest.mark.parametrize("value", [{1}, datetime(2024, 1, 1, tzinfo=UTC), Decimal(1), (1,), Colour.RED, Item(name="a")])
def test_without_a_schema_only_json_is_taken(value: Any) -> None:
    """The message says that a schema would take it."""
    with pytest.raises(StateError, match=r"declare the key's type with StateGraph\(state=\.\.\.\)"):
        Schema().start({"k": value})


def test_a_key_that_the_schema_does_not_have_is_refused_with_the_likely_one() -> None:
    """A typo does not make a new key."""
    with pytest.raises(StateError, match="has no key 'nmae'; did you mean 'name'"):
        Schema(Item).start({"nmae": "a"})


def test_a_required_key_that_is_missing_is_named() -> None:
    """Of a model and of a dataclass."""
    with pytest.raises(StateError, match="the input has no 'name', which Item requires"):
        Schema(Item).start({})


def test_what_no_schema_can_store_is_refused_when_it_is_first_used() -> None:
    """A type that pydantic cannot check is named with its key."""
    with pytest.raises(
        StateError, match=r"^\$\.k: the type .*Opaque.* cannot be stored .*; use types that pydantic can"
    ):
        one_key(type("Opaque", (), {})).start({"k": Fraction(1, 2)})


@pytest.mark.parametrize("state", [5, "text", [("a", 1)], None, object(), Item])
def test_an_input_that_is_no_mapping_is_refused(state: Any) -> None:
    """Nor is it an instance of the schema."""
    with pytest.raises(StateError, match="is neither a mapping nor a"):
        Schema().start(state)


@pytest.mark.parametrize("kind", [int, dict, list[int], "State", Item(name="a")])
def test_a_schema_that_is_none_is_refused_where_it_is_given(kind: Any) -> None:
    """`StateGraph(state=...)` says what it takes."""
    with pytest.raises(TypeError, match="give a pydantic model, a dataclass or a TypedDict"):
        StateGraph(state=kind)


def test_a_reducer_for_an_unknown_key_is_refused_with_the_likely_one() -> None:
    """A typo does not leave a key without its reducer."""
    with pytest.raises(GraphError, match="reducers= names 'tgas', which Item does not know; did you mean 'tags'"):
        StateGraph(state=Item, reducers={"tgas": append})


# -- the four kinds of schema


class Chat(typing_extensions.TypedDict, total=False):
    messages: typing_extensions.Required[Annotated[list[str], append]]
    facts: Annotated[dict[str, int], merge]
    total: Annotated[int, operator.add]
    log: Annotated[list[int], operator.add]
    best: Annotated[int, max]
    scaled: Annotated[int, partial(pow)]
    note: str


class ChatModel(pydantic.BaseModel):
    messages: Annotated[list[str], append] = []
    facts: Annotated[dict[str, int], merge] = {}
    total: Annotated[int, operator.add] = 0
    log: Annotated[list[int], operator.add] = pydantic.Field(default_factory=list)
    best: Annotated[int, max] = 0
    scaled: Annotated[int, partial(pow)] = 2
    note: str = ""


@dataclasses.dataclass
class ChatRecord:
    messages: Annotated[list[str], append] = dataclasses.field(default_factory=list)
    facts: Annotated[dict[str, int], merge] = dataclasses.field(default_factory=dict)
    total: Annotated[int, operator.add] = 0
    log: Annotated[list[int], operator.add] = dataclasses.field(default_factory=list)
    best: Annotated[int, max] = 0
    scaled: Annotated[int, partial(pow)] = 2
    note: str = ""


START = {"messages": [], "facts": {}, "total": 0, "log": [], "best": 0, "scaled": 2, "note": ""}
DELTA = {"messages": ["a"], "facts": {"x": 1}, "total": 5, "log": [1], "best": 3, "scaled": 3, "note": "n"}
AFTER_TWO = {
    "messages": ["a", "a"], "facts": {"x": 1}, "total": 10, "log": [1, 1], "best": 3, "scaled": 512, "note": "n",
}  # fmt: skip


@pytest.mark.parametrize("kind", [Chat, ChatModel, ChatRecord])
async def test_reducers_declared_with_the_type_are_applied(checkpointer: Checkpointer, kind: type) -> None:
    """append, merge, operator.add, a builtin and a callable object, in all kinds of schema; all else replaces."""
    graph = StateGraph(checkpointer, state=kind).add_node("a", lambda state: DELTA).add_node("b", lambda state: DELTA)
    graph.set_entry_point("a").add_edge("a", "b")
    assert (await graph.run(START, "r")).state == AFTER_TWO
    assert await graph.state("r") == (AFTER_TWO if kind is Chat else kind(**AFTER_TWO))


async def test_reducers_may_be_given_beside_the_type(checkpointer: Checkpointer) -> None:
    """`reducers=` declares them for a dict, and `messages` still appends."""
    graph = StateGraph(checkpointer, reducers={"facts": merge, "log": append, "longest": longest})
    graph.add_node("a", lambda state: {"facts": {"b": 2}, "log": [2], "messages": ["m"], "longest": "xx"})
    graph.set_entry_point("a")
    run = await graph.run({"facts": {"a": 1}, "log": [1], "longest": "xxx"})
    assert run.state == {"facts": {"a": 1, "b": 2}, "log": [1, 2], "messages": ["m"], "longest": "xxx"}


def longest(current: str | None, update: str) -> str:
    return max(current or "", update, key=len)


@pytest.mark.parametrize("kind", [Chat, ChatModel, ChatRecord])
def test_only_what_grew_is_stored(kind: type) -> None:
    """append and merge are operations; a custom reducer's result is a set, so no fold needs user code."""
    schema = Schema(kind)
    patch = schema.patch(schema.delta(DELTA, None), schema.start({**START, "total": 100}))
    assert patch == {
        "messages": ("append", ["a"]),
        "facts": ("merge", {"x": 1}),
        "total": ("set", 105),
        "log": ("append", [1]),
        "best": ("set", 3),
        "scaled": ("set", 8),
        "note": ("set", "n"),
    }


def test_a_custom_reducer_of_an_absent_key_starts_from_the_types_zero() -> None:
    """A sum starts at 0."""
    schema = Schema(Chat)
    assert schema.patch(schema.delta({"total": 5}, None), {}) == {"total": ("set", 5)}


def test_a_reducer_that_mutates_what_it_is_handed_changes_nothing_else() -> None:
    """It gets its own copy of the current value."""

    def grow(current: list[int] | None, update: list[int]) -> list[int]:
        current = current if current is not None else []
        current += update
        return current

    schema, values = Schema(None, {"log": grow}), {"log": [1]}
    assert schema.patch({"log": [2]}, values) == {"log": ("set", [1, 2])}
    assert values == {"log": [1]}


@pytest.mark.parametrize(("value", "current"), [("text", []), ({"a": 1}, []), (None, []), ([1], "text"), ([1], {})])
def test_an_update_that_cannot_be_appended_is_refused_with_the_key(value: Any, current: Any) -> None:
    """A string would be appended letter by letter."""
    with pytest.raises(StateError, match="'messages' is declared to append: a list is needed") as caught:
        Schema().patch({"messages": value}, {"messages": current}, "chat")
    assert (caught.value.path, caught.value.node) == ("$.messages", "chat")


def test_an_update_that_cannot_be_merged_is_refused_with_the_key() -> None:
    """A list has no keys."""
    with pytest.raises(StateError, match="'facts' is declared to merge: a dict is needed"):
        Schema(None, {"facts": merge}).patch({"facts": [1]}, {})


async def test_delete_removes_a_key(checkpointer: Checkpointer) -> None:
    """From the state, from what the next node sees, and from what is stored; an absent key may be deleted."""
    seen: list[dict[str, Any]] = []
    graph = StateGraph(checkpointer).set_entry_point("a").add_edge("a", "b")
    graph.add_node("a", lambda state: {"secret": DELETE, "absent": DELETE, "messages": DELETE})
    graph.add_node("b", lambda state: seen.append(dict(state)))
    await graph.run({"secret": 1, "messages": ["m"], "kept": 1}, "r")
    assert seen == [{"kept": 1}]
    assert await graph.state("r") == {"kept": 1}


@pytest.mark.parametrize("kind", [ChatModel, ChatRecord])
async def test_a_deleted_key_of_a_typed_state_is_its_default_again(checkpointer: Checkpointer, kind: Any) -> None:
    """An instance has all of its fields; what appends or adds begins anew from the default."""
    seen: list[Any] = []

    def look(state: Any) -> dict[str, Any]:
        seen.append((state.note, state.scaled, state.messages, state.total))
        return {"messages": ["new"], "scaled": 3, "total": 1}

    graph = StateGraph(checkpointer, state=kind).add_node("look", look).set_entry_point("forget")
    graph.add_node("forget", lambda state: dict.fromkeys(("note", "scaled", "messages", "total"), DELETE))
    graph.add_edge("forget", "look")
    await graph.run({"note": "n", "scaled": 7, "messages": ["old"], "total": 5}, "r")
    assert seen == [("", 2, [], 0)]
    assert await graph.state("r") == kind(messages=["new"], scaled=8, total=1)


class Defaulted(pydantic.BaseModel):
    name: str
    log: Annotated[list[str], append] = ["first"]
    sums: Annotated[dict[str, int], merge] = {"a": 1}
    product: Annotated[int, operator.mul] = 2


def test_what_grows_from_an_absent_key_grows_from_its_default() -> None:
    """A key that was declared after the run began, or deleted since."""
    schema = Schema(Defaulted)
    values = {"name": "x"}
    patch = schema.patch(schema.delta({"log": ["second"], "sums": {"b": 2}, "product": 5}, None), values)
    grown = Defaulted(name="x", log=["first", "second"], sums={"a": 1, "b": 2}, product=10)
    assert schema.instance(applied(values, patch)) == grown
    assert schema.view(values, patch) == grown


@pytest.mark.parametrize(
    ("name", "reason"), [("name", "Defaulted requires it"), ("nmae", "did you mean 'name'"), (5, "keys are str")]
)
def test_what_cannot_be_deleted_is_refused(name: Any, reason: str) -> None:
    """A required key, a key that is not there, a key that is none."""
    with pytest.raises(StateError, match=reason):
        Schema(Defaulted).delta({name: DELETE}, "node")


def test_a_deleted_list_may_be_appended_to_again() -> None:
    """It starts from nothing."""
    values: dict[str, Any] = {"messages": ["old"]}
    schema = Schema()
    apply(values, schema.patch({"messages": DELETE}, values))
    apply(values, schema.patch({"messages": ["new"]}, values))
    assert values == {"messages": ["new"]}


async def test_a_node_is_handed_an_instance_of_the_schema(checkpointer: Checkpointer) -> None:
    """A model, a dataclass; a TypedDict and no schema give a dict. Routers get the same."""
    seen: list[Any] = []

    def route(state: ChatModel) -> Literal["END"]:
        seen.append(state)
        return "END"

    graph = StateGraph(checkpointer, state=ChatModel).add_node("a", lambda state: seen.append(state))
    await graph.set_entry_point("a").add_conditional_edge("a", route).run(ChatModel(note="hi"))
    assert all(isinstance(state, ChatModel) and state.note == "hi" for state in seen)
    assert isinstance(Schema().view({}), AgentState)


async def test_an_input_may_be_an_instance_or_a_mapping(checkpointer: Checkpointer) -> None:
    """Defaults fill what is left out."""
    graph = StateGraph(checkpointer, state=ChatModel).add_node("a", lambda state: None).set_entry_point("a")
    assert (await graph.run(ChatModel(total=3))).state == {**START, "total": 3}
    assert (await graph.run({"total": 3})).state == {**START, "total": 3}


def test_a_field_outside_the_constructor_is_stored_with_an_instance() -> None:
    """What `__post_init__` has made is not made again from nothing."""
    schema = Schema(Order)
    assert schema.instance(decode(encode(schema.start(Order(Decimal(3)))))) == Order(Decimal(3))


async def test_a_subclass_of_the_schema_may_be_the_input(checkpointer: Checkpointer) -> None:
    """But a key that the schema does not have would be lost, so it is refused."""
    graph = StateGraph(checkpointer, state=Item).add_node("a", lambda state: None).set_entry_point("a")
    with pytest.raises(StateError, match="Item has no key 'extra'"):
        await graph.run(SpecialItem(name="a", extra=1))


async def test_a_node_may_not_return_the_whole_state_object(checkpointer: Checkpointer) -> None:
    """A delta is a mapping of what changes; the message says so."""

    def rename(state: Item) -> Any:
        return Item(name="b")

    graph = StateGraph(checkpointer, state=Item).add_node("a", rename).set_entry_point("a")
    with pytest.raises(TypeError, match="return a mapping of the keys it changes, or None"):
        await graph.run({"name": "a"}, "r")


# -- patches


KEYS = st.sampled_from("abc")
PATCHES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "plain": st.just(("delete", None)) | st.tuples(st.just("set"), st.integers() | st.lists(st.integers())),
        "grows": st.just(("delete", None)) | st.tuples(st.just("append"), st.lists(st.integers())),
        "united": st.just(("delete", None)) | st.tuples(st.just("merge"), st.dictionaries(KEYS, st.integers())),
    },
)


@untimed
@given(st.lists(PATCHES))
def test_a_patch_does_the_same_from_its_stored_form(patches: list[Any]) -> None:
    """Applied as it is and applied as it is stored: one state."""
    live: dict[str, Any] = {}
    folded: dict[str, Any] = {}
    for patch in patches:
        stored = decode(encode(dump(patch)))
        apply(live, patch)
        apply_stored(folded, stored)
        assert live == folded
        assert changes(stored) == {key: value for key, (_, value) in patch.items()}


@untimed
@given(st.lists(st.sampled_from([{"log": [1]}, {"facts": {"a": 1}}, {"note": "x"}, {"total": 2}, {"log": DELETE}])))
def test_a_view_after_a_patch_is_the_state_after_it(deltas: list[dict[str, Any]]) -> None:
    """A router sees its node's patch before it is applied: the same as after."""
    schema = Schema(Chat)
    values: dict[str, Any] = schema.start({"messages": []})
    for delta in deltas:
        patch = schema.patch(schema.delta(delta, None), values)
        seen = dict(schema.view(values, patch))
        apply(values, patch)
        assert seen == values


@pytest.mark.parametrize("kind", [None, Chat, ChatModel, ChatRecord])
@pytest.mark.parametrize("delta", [{}, {"log": [7]}, {"facts": {"z": 1}}, {"note": "z"}, {"total": 1}])
def test_a_routers_view_is_equal_for_every_kind_of_schema(kind: type | None, delta: dict[str, Any]) -> None:
    """What grows is put together when it is read."""
    schema = Schema(kind, None if kind else {"log": append, "facts": merge})
    values = schema.start({**START, "log": [1], "facts": {"a": 1}})
    patch = schema.patch(schema.delta(delta, None), values)
    assert schema.view(values, patch) == schema.instance(applied(values, patch))


def test_delete_is_one_thing() -> None:
    """It survives copies, and prints as its name."""
    from copy import copy, deepcopy

    assert copy(DELETE) is deepcopy(DELETE) is DELETE
    assert repr(DELETE) == "DELETE"


@pytest.mark.parametrize(
    ("reducer", "current", "update", "result"),
    [
        (append, None, [1], [1]),
        (append, [1], [2], [1, 2]),
        (merge, None, {"a": 1}, {"a": 1}),
        (merge, {"a": 1, "b": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ],
)
def test_the_reducers_are_functions_too(
    reducer: Callable[[Any, Any], Any], current: Any, update: Any, result: Any
) -> None:
    """They may be called by a custom one, and change neither argument."""
    before = encode([current, update])
    assert reducer(current, update) == result
    assert encode([current, update]) == before


# -- a key that was declared in a way that pydantic cannot adapt, a default that cannot be stored


def test_parse_takes_json_values_as_a_command_line_brings_them() -> None:
    """Text for a Decimal or an Enum, with the place of what does not fit."""
    schema = Schema(typing_extensions.TypedDict("Form", {"amount": Decimal, "colour": Colour}))  # type: ignore[operator]
    assert schema.parse({"amount": "1.50", "colour": "red"}) == {"amount": Decimal("1.50"), "colour": Colour.RED}
    with pytest.raises(StateError) as caught:
        schema.parse({"amount": "much"})
    assert caught.value.path == "$.amount"


def test_a_default_that_cannot_be_stored_is_refused_at_the_start() -> None:
    """With its key, before the run exists."""

    @dataclasses.dataclass
    class Bad:
        n: int = "text"  # type: ignore[assignment]

    with pytest.raises(StateError) as caught:
        Schema(Bad).start({})
    assert caught.value.path == "$.n"


class Bill(pydantic.BaseModel):
    amount: Decimal
    share: float = 0.0
    more: dict[str, Any] = pydantic.Field(default_factory=dict)


def test_json_values_become_python_ones_and_no_digit_is_lost() -> None:
    """What a request brings is parsed by the declared types; fractions may come as Decimal."""
    values = json.loads('{"amount": 12345678901234567.89, "share": 0.5, "more": {"x": 1.25}}', parse_float=Decimal)
    parsed = StateGraph(state=Bill).parse(values)
    assert parsed == {"amount": Decimal("12345678901234567.89"), "share": 0.5, "more": {"x": 1.25}}
    assert type(parsed["share"]) is float
    assert type(parsed["more"]["x"]) is float
    assert StateGraph(state=Bill).parse({"amount": "1500"}) == {"amount": Decimal(1500)}
