"""Whatever user code does to the state it is handed, nobody else sees it: every way in that was found is tried here."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import json
import operator
import pickle
import pprint
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Literal

import pydantic
import pytest
import typing_extensions

from stategraph import Checkpointer, StateGraph, append, merge
from stategraph.isolation import IsolatedState, copied
from stategraph.state import Schema


class Record(typing_extensions.TypedDict):
    counter: int
    blob: list[str]
    meta: dict[str, list[int]]


class Model(pydantic.BaseModel):
    counter: int
    blob: list[str]
    meta: dict[str, list[int]]


@dataclasses.dataclass
class Plain:
    counter: int
    blob: list[str]
    meta: dict[str, list[int]]


@dataclasses.dataclass(slots=True)
class Slotted:
    counter: int
    blob: list[str]
    meta: dict[str, list[int]]


@dataclasses.dataclass(frozen=True)
class Frozen:
    counter: int
    blob: list[str]
    meta: dict[str, list[int]]


def value() -> dict[str, Any]:
    return {"counter": 1, "blob": ["a", "b"], "meta": {"k": [1, 2]}}


def matched(state: Any) -> Any:
    match state:
        case {"blob": blob}:
            return blob
    raise AssertionError


def rest_matched(state: Any) -> Any:
    match state:
        case {"counter": _, **rest}:
            return rest["blob"]
    raise AssertionError


def updated(state: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    made.update(state)
    return made


def merged(state: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    made |= state
    return made


def keywords(**given: Any) -> dict[str, Any]:
    return given


def executed(state: Any) -> list[str]:
    found: list[list[str]] = []
    exec("found(blob)", {"found": found.append}, state)  # noqa: S102  # a way to read a mapping
    return found[0]


#: Ways to get at the list `blob` of a state that is a dict.
DICT_WAYS: dict[str, Callable[[Any], Any]] = {
    "state['blob']": lambda s: s["blob"],
    "state.get('blob')": lambda s: s.get("blob"),
    "for value in state.values()": lambda s: next(v for v in s.values() if isinstance(v, list)),
    "for key, value in state.items()": lambda s: next(v for _, v in s.items() if isinstance(v, list)),
    "{**state}": lambda s: {**s}["blob"],
    "dict(state)": lambda s: dict(s)["blob"],
    "state.copy()": lambda s: s.copy()["blob"],
    "copy.copy(state)": lambda s: copy.copy(s)["blob"],
    "copy.deepcopy(state)": lambda s: copy.deepcopy(s)["blob"],
    "state | {}": lambda s: (s | {})["blob"],
    "{} | state": lambda s: ({} | s)["blob"],
    "d |= state": lambda s: merged(s)["blob"],
    "d.update(state)": lambda s: updated(s)["blob"],
    "match {'blob': b}": matched,
    "match {'counter': _, **rest}": rest_matched,
    "f(**state)": lambda s: keywords(**s)["blob"],
    "state.pop('blob')": lambda s: s.pop("blob"),
    "state.pop('blob', None)": lambda s: s.pop("blob", None),
    "state.setdefault('blob', [])": lambda s: s.setdefault("blob", []),
    "state.popitem()": lambda s: dict([s.popitem(), s.popitem()])["blob"],
    "operator.itemgetter": operator.itemgetter("blob"),
    "ChainMap(state)": lambda s: collections.ChainMap(s)["blob"],
    "defaultdict(list, state)": lambda s: collections.defaultdict(list, s)["blob"],
    "OrderedDict(state)": lambda s: collections.OrderedDict(s)["blob"],
    "UserDict(state)": lambda s: collections.UserDict(s)["blob"],
    "MappingProxyType(state)": lambda s: MappingProxyType(s)["blob"],
    "list(state.values())[1]": lambda s: list(s.values())[1],
    "min(state.items())": lambda s: min(s.items(), key=str)[1],
    "map(state.get, state)": lambda s: list(map(s.get, s))[1],
    "exec in state": executed,
    "pickle": lambda s: pickle.loads(pickle.dumps(s))["blob"],  # noqa: S301  # our own bytes
    "{'x': state['blob']}": lambda s: {"x": s["blob"]}["x"],
}

#: Ways to get at the list `blob` of a state that is a model or a dataclass.
TYPED_WAYS: dict[str, Callable[[Any], Any]] = {
    "state.blob": lambda s: s.blob,
    "getattr": lambda s: getattr(s, "blob", None),
    "operator.attrgetter": operator.attrgetter("blob"),
    "vars(state)": lambda s: vars(s)["blob"],
    "state.__dict__": lambda s: s.__dict__["blob"],
    "model_copy / replace": lambda s: (s.model_copy() if isinstance(s, Model) else dataclasses.replace(s)).blob,
    "copy.copy(state)": lambda s: copy.copy(s).blob,
    "copy.deepcopy(state)": lambda s: copy.deepcopy(s).blob,
    "model_dump / asdict": lambda s: (s.model_dump() if isinstance(s, Model) else dataclasses.asdict(s))["blob"],
    "iteration / astuple": lambda s: dict(s)["blob"] if isinstance(s, Model) else dataclasses.astuple(s)[1],
    "match Kind(blob=b)": lambda s: typed_match(s),
    "pickle": lambda s: pickle.loads(pickle.dumps(s)).blob,  # noqa: S301
    "Model.__iter__(state)": lambda s: dict(type(s).__iter__(s))["blob"] if isinstance(s, Model) else s.blob,
}


def typed_match(state: Any) -> list[str]:
    match state:
        case Model(blob=blob) | Plain(blob=blob) | Frozen(blob=blob):
            return blob
    raise AssertionError


@pytest.mark.parametrize("way", DICT_WAYS.values(), ids=DICT_WAYS)
@pytest.mark.parametrize("kind", [None, Record], ids=["untyped", "TypedDict"])
def test_no_way_into_a_dict_leads_to_what_is_stored(kind: type | None, way: Callable[[Any], Any]) -> None:
    """The list that user code gets hold of is its own."""
    stored = value()
    found = way(Schema(kind).view(stored))
    assert found == ["a", "b"]
    found.append("X")
    assert stored == value()


@pytest.mark.parametrize("way", TYPED_WAYS.values(), ids=TYPED_WAYS)
@pytest.mark.parametrize("kind", [Model, Plain, Frozen])
def test_no_way_into_a_typed_state_leads_to_what_is_stored(kind: type, way: Callable[[Any], Any]) -> None:
    """Fields are made at the first access, whatever makes it."""
    stored = value()
    found = way(Schema(kind).view(stored))
    assert found == ["a", "b"]
    found.append("X")
    assert stored == value()


@pytest.mark.parametrize("kind", [Model, Plain, Slotted, Frozen])
def test_what_lies_deeper_is_the_readers_own_too(kind: type) -> None:
    """A nested list is as isolated as the field that holds it; and the reader keeps its changes."""
    stored = value()
    state = Schema(kind).view(stored)
    state.meta["k"].append(9)
    assert (stored, state.meta) == (value(), {"k": [1, 2, 9]})


def test_what_lies_deeper_in_a_dict_is_the_readers_own_too() -> None:
    """`state["meta"]["k"]` is a copy, and stays the same one."""
    stored = value()
    state = Schema().view(stored)
    state["meta"]["k"].append(9)
    assert (stored, state["meta"]) == (value(), {"k": [1, 2, 9]})


@pytest.mark.parametrize("kind", [None, Record, Model, Plain, Slotted, Frozen])
def test_two_views_of_one_state_do_not_see_each_other(kind: type | None) -> None:
    """A node's view is not its router's."""
    schema, stored = Schema(kind), value()
    first, second = schema.view(stored), schema.view(stored)
    blob = operator.itemgetter("blob") if kind in (None, Record) else operator.attrgetter("blob")
    blob(first).append("X")
    assert blob(second) == ["a", "b"]


# -- a view is used like the real thing


DICT_READS: dict[str, Callable[[Any], bool]] = {
    "json.dumps": lambda s: bool(json.loads(json.dumps(s)) == value()),
    "json.dumps, indented": lambda s: bool(json.loads(json.dumps(s, indent=1)) == value()),
    "pickle is a plain dict": lambda s: type(pickle.loads(pickle.dumps(s))) is dict,  # noqa: S301
    "deepcopy is a plain dict": lambda s: type(copy.deepcopy(s)) is dict and copy.deepcopy(s) == value(),
    "isinstance dict": lambda s: isinstance(s, dict),
    "its lists are lists": lambda s: type(s["blob"]) is list and type(s["meta"]) is dict,
    "equals a dict both ways": lambda s: bool(s == value() and value() == s) and not operator.ne(s, value()),
    "repr": lambda s: repr(s) == repr(value()),
    "pprint": lambda s: "'blob': ['a', 'b']" in pprint.pformat(s),
    "format_map": lambda s: "{counter} {blob}".format_map(s) == "1 ['a', 'b']",
    "len, in, keys, reversed": lambda s: len(s) == 3 and "blob" in s and [*s.keys()] == [*reversed([*reversed(s)])],
    "pydantic takes it": lambda s: bool(pydantic.TypeAdapter(Record).validate_python(s) == value()),
    "get with a default": lambda s: s.get("nothing") is None and s.get("nothing", 7) == 7,
    "missing key": lambda s: raises(KeyError, lambda: s["nothing"]) and raises(KeyError, lambda: s.pop("nothing")),
    "no hash": lambda s: raises(TypeError, lambda: hash(s)),
}


def raises(error: type[Exception], call: Callable[[], Any]) -> bool:
    with pytest.raises(error):
        call()
    return True


@pytest.mark.parametrize("read", DICT_READS.values(), ids=DICT_READS)
@pytest.mark.parametrize("kind", [None, Record], ids=["untyped", "TypedDict"])
def test_a_dict_view_reads_like_the_dict(kind: type | None, read: Callable[[Any], bool]) -> None:
    """A program cannot tell, short of asking for the type."""
    assert read(Schema(kind).view(value()))


TYPED_READS: dict[str, Callable[[Any, Any], bool]] = {
    "isinstance": lambda s, k: isinstance(s, type(k)),
    "state == Kind(...)": lambda s, k: bool(s == k),
    "Kind(...) == state": lambda s, k: bool(k == s),
    "not equal to another": lambda s, k: bool(s != type(k)(counter=2, blob=[], meta={})),
    "pickle": lambda s, k: bool(pickle.loads(pickle.dumps(s)) == k),  # noqa: S301
    "a pickle is a plain instance": lambda s, k: type(pickle.loads(pickle.dumps(s))) is type(k),  # noqa: S301
    "repr": lambda s, k: repr(s) == repr(k),
    "dump": lambda s, k: (s.model_dump() if isinstance(s, Model) else dataclasses.asdict(s)) == value(),
    "json": lambda s, k: json.loads(s.model_dump_json() if isinstance(s, Model) else json.dumps(vars(s))) == value(),
    "missing attribute": lambda s, k: raises(AttributeError, lambda: s.nothing),
}


@pytest.mark.parametrize("read", TYPED_READS.values(), ids=TYPED_READS)
@pytest.mark.parametrize("kind", [Model, Plain, Frozen])
def test_a_typed_view_reads_like_an_instance(kind: Any, read: Callable[[Any, Any], bool]) -> None:
    """Equality, dumps, pickles and the repr are those of the type."""
    assert read(Schema(kind).view(value()), kind(**value()))


def test_a_dict_view_may_be_written_by_its_owner() -> None:
    """A node may work on its own copy; it returns what it wants to keep."""
    stored = value()
    state = Schema().view(stored)
    state["n"] = 1
    state["blob"] += ["c"]
    del state["meta"]
    state.update(counter=5)
    assert (state, stored) == ({"counter": 5, "blob": ["a", "b", "c"], "n": 1}, value())
    state.clear()
    assert (state, stored) == ({}, value())


@pytest.mark.parametrize("kind", [Model, Plain, Slotted])
def test_a_typed_view_may_be_written_by_its_owner(kind: type) -> None:
    """What was assigned is what is read: it is not made again from what is stored."""
    stored = value()
    state = Schema(kind).view(stored)
    mine = ["mine"]
    state.blob = mine
    state.counter += 1
    assert state.blob is mine
    assert (state.counter, state.meta, stored) == (2, {"k": [1, 2]}, value())


def test_a_deleted_field_is_gone() -> None:
    """As from any instance: an AttributeError, no second life from what is stored."""
    state = Schema(Plain).view(value())
    del state.blob
    with pytest.raises(AttributeError):
        _ = state.blob


def test_a_frozen_view_refuses_writes_and_still_isolates() -> None:
    """The failed write does not open a way to what is stored."""
    stored = value()
    state = Schema(Frozen).view(stored)
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.blob = []
    state.blob.append("X")
    assert stored == value()


class Rich(pydantic.BaseModel):
    price: int
    _cache: dict[str, int] = pydantic.PrivateAttr(default_factory=dict)

    @pydantic.computed_field
    def doubled(self) -> int:
        return self.price * 2

    @functools.cached_property
    def tripled(self) -> int:
        return self.price * 3

    def remember(self) -> int:
        return self._cache.setdefault("price", self.price)


def test_a_models_own_methods_and_private_attributes_work_in_a_view() -> None:
    """A view is whole: what the class computes, caches or remembers is there, and it still equals an instance."""
    state = Schema(Rich).view({"price": 5})
    assert (state.doubled, state.tripled, state.remember()) == (10, 15, 5)
    instance = Rich(price=5)
    instance.remember()
    assert state == instance
    assert instance == state
    assert state.model_dump() == {"price": 5, "doubled": 10}


def test_a_frozen_view_has_the_hash_of_its_instance() -> None:
    """It may be a key wherever the instance may be one."""

    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int

    assert hash(Schema(Point).view({"x": 3})) == hash(Point(3))


def test_only_what_is_read_is_copied() -> None:
    """An untouched list costs nothing: it is looked at by nobody."""
    made: list[str] = []

    def make(key: str, stored: Any) -> Any:
        made.append(key)
        return copied(stored)

    state = IsolatedState(value(), make)
    _ = state["counter"], state["meta"], state["meta"], "blob" in state, len(state), list(state)
    assert made == ["counter", "meta"]


# -- in a run


async def test_a_node_that_mutates_and_returns_nothing_changes_nothing(checkpointer: Checkpointer) -> None:
    """Neither the next node, nor events told already, nor the caller's input, nor the store, nor the live result."""
    given = {"items": [1], "deep": {"list": [1]}}

    def mutate(state: Any) -> None:
        state["items"].append("X")
        state["deep"]["list"].append("X")
        state["new"] = "X"

    def look(state: Any) -> dict[str, Any]:
        return {"seen": [state["items"], state["deep"]["list"], "new" in state]}

    graph = StateGraph(checkpointer).add_node("mutate", mutate).add_node("look", look)
    graph.set_entry_point("mutate").add_edge("mutate", "look")
    events = [event async for event in graph.stream(given, "r")]
    clean = {"items": [1], "deep": {"list": [1]}, "seen": [[1], [1], False]}
    assert events[-1].payload["final_state"] == clean
    assert await graph.state("r") == clean
    assert given == {"items": [1], "deep": {"list": [1]}}


async def test_what_a_node_returned_is_stored_as_it_was_then(checkpointer: Checkpointer) -> None:
    """Mutating the returned object afterwards does not reach the state."""
    kept: list[str] = ["one"]

    def give(state: Any) -> dict[str, Any]:
        return {"messages": kept, "latest": kept}

    def spoil(state: Any) -> None:
        kept.append("spoiled")

    graph = StateGraph(checkpointer).add_node("give", give).add_node("spoil", spoil)
    graph.set_entry_point("give").add_edge("give", "spoil")
    assert (await graph.run({}, "r")).state == {"messages": ["one"], "latest": ["one"]}
    assert await graph.state("r") == {"messages": ["one"], "latest": ["one"]}


async def test_what_the_caller_does_to_its_input_does_not_reach_the_run(checkpointer: Checkpointer) -> None:
    """The input is stored when the run starts."""
    given: dict[str, Any] = {"items": ["a"]}
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).set_entry_point("a").add_interrupt_before("a")
    async for event in graph.stream(given, "r"):
        given["items"].append("X")
        assert event.payload["state"] == {"items": ["a"]}
    assert await graph.state("r") == {"items": ["a"]}


async def test_a_router_that_mutates_changes_nothing(checkpointer: Checkpointer) -> None:
    """A router sees its own view, its node's patch included."""

    def route(state: Any) -> str:
        state["items"].append("X")
        state["messages"].append("X")
        return "b"

    graph = StateGraph(checkpointer).add_node("a", lambda state: {"items": [1], "messages": ["hello"]})
    graph.add_node("b", lambda state: {"seen": [*state["items"], *state["messages"]]})
    graph.set_entry_point("a").add_conditional_edge("a", route, ["b"])
    run = await graph.run({"messages": ["hi"]}, "r")
    assert run.state == {"items": [1], "messages": ["hi", "hello"], "seen": [1, "hi", "hello"]}
    assert await graph.state("r") == run.state


async def test_what_a_reader_does_to_an_event_reaches_nobody(checkpointer: Checkpointer) -> None:
    """Each event's payload is its reader's own, and so is what `state` and `info` give."""
    graph = StateGraph(checkpointer).add_node("a", lambda state, ctx: ctx.emit({"n": [1]}) or {"items": [1]})
    graph.add_node("b", lambda state: {"seen": state["items"]}).set_entry_point("a").add_edge("a", "b")
    async for event in graph.stream({}, "r"):
        spoil(event.payload)
    spoil(await graph.state("r"))
    spoil((await graph.info("r")).state)
    async for event in graph.events("r"):
        spoil(event.payload)
    assert await graph.state("r") == {"items": [1], "seen": [1]}
    assert [event.payload async for event in graph.events("r")][1] == {"n": [1]}


def spoil(value: Any) -> None:
    """Change everything that can be changed."""
    if isinstance(value, dict):
        for inner in value.values():
            spoil(inner)
        value["spoiled"] = True
    elif isinstance(value, list):
        for inner in value:
            spoil(inner)
        value.append("spoiled")


@pytest.mark.parametrize("kind", [None, Record, Model, Plain, Slotted])
async def test_a_view_that_somebody_keeps_still_shows_its_moment(checkpointer: Checkpointer, kind: type | None) -> None:
    """A node's state kept in a closure or by a task, a router's too: what happens later in the run does not reach it."""
    kept: list[Any] = []

    def route(state: Any) -> Literal["grow", "END"]:
        kept.append(state)
        return "END" if len(kept) > 3 else "grow"

    def grow(state: Any) -> dict[str, Any]:
        kept.append(state)
        return {"blob": ["c"], "meta": {"l": [3]}, "counter": 2}

    graph = StateGraph(checkpointer, state=kind, reducers={"blob": append, "meta": merge})
    graph.add_node("grow", grow).set_entry_point("grow").add_conditional_edge("grow", route)
    await graph.run(value())
    after = [(1, 2), (2, 3), (2, 3), (2, 4)]  # counter, length of blob: the node's view, the router's, and once more
    for state, (counter, length) in zip(kept, after, strict=True):
        found = state if isinstance(state, dict) else {key: getattr(state, key) for key in value()}
        assert (found["counter"], len(found["blob"]), "l" in found["meta"]) == (counter, length, counter == 2)


@pytest.mark.parametrize("kind", [Model, Plain, Slotted, Record])
async def test_a_typed_state_is_isolated_in_a_run_too(checkpointer: Checkpointer, kind: type) -> None:
    """Mutating a field and returning nothing leaves the next node and the store alone."""

    def mutate(state: Any) -> None:
        blob = state["blob"] if kind is Record else state.blob
        blob.append("X")

    graph = StateGraph(checkpointer, state=kind).add_node("mutate", mutate).set_entry_point("mutate")
    await graph.run(value(), "r")
    assert await graph.state("r") == (value() if kind is Record else kind(**value()))
