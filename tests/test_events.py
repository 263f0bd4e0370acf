"""What is told of a run: live, from the log, and to a reader who was away; each durable event once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pydantic
import pytest

from checkpointers import MemoryCheckpointer
from stategraph import (
    Checkpointer,
    Context,
    Cursor,
    Event,
    ManualClock,
    Retry,
    StateGraph,
    UnknownRun,
    parse_event,
)
from stategraph.checkpoint import Entry, Lease, Written
from stategraph.events import (
    Cancelled,
    CancelRequested,
    Completed,
    Custom,
    Decided,
    Failed,
    Interrupted,
    NodeStart,
    Rejected,
    Retried,
    Retrying,
    Signalled,
    StateUpdate,
    Token,
)

ACTS = ("decided", "retried", "cancel_requested", "signalled")


async def told(events: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in events]


async def told_through(heard: list[Event], events: AsyncIterator[Event], clock: ManualClock) -> None:
    """Keep what is told, errors and all, the clock moving on."""
    try:
        async for event in events:
            heard.append(event)
            clock.advance(60)
    except (OSError, KeyError):
        pass


def plain(event: Event) -> tuple[Any, ...]:
    """An event without its cursor, which what is told before its row does not have."""
    return (
        event.event_type,
        event.node_name,
        event.run_id,
        event.path,
        event.payload,
        getattr(event, "boundary", None),
    )


def durable(events: Sequence[Event], acts: bool = False) -> list[tuple[Any, ...]]:
    return [plain(e) for e in events if e.event_type != "token" and (acts or e.event_type not in ACTS)]


@pytest.fixture
async def live(checkpointer: Checkpointer, clock: ManualClock) -> list[Event]:
    """All that was told live of a run `r` with a pause, custom events, tokens, retries, failures and an effect in doubt."""
    moods = ["flaky", "fine", "broken", "fine"]
    answers: list[str | KeyError] = [KeyError("no answer"), "charge"]

    def call(state: Any, ctx: Context) -> dict[str, Any]:
        ctx.emit({"attempt": ctx.attempt})
        ctx.token("...")
        mood = moods.pop(0)
        if mood == "flaky":
            raise OSError("flaky")
        if mood == "broken":
            raise KeyError("broken")
        return {"messages": [mood]}

    def route(state: Any) -> str:
        answer = answers.pop(0) if len(state["messages"]) > 1 else "call"
        if isinstance(answer, KeyError):
            raise answer
        return answer

    async def charge(state: Any, ctx: Context) -> dict[str, Any]:
        ctx.emit({"charging": True})

        def effect() -> int:
            if not state.get("mended"):
                raise OSError("no till")
            return 5

        return {"receipt": await ctx.once("charge", effect)}

    graph = StateGraph(checkpointer).set_entry_point("plan").add_edge("plan", "call")
    graph.add_node("plan", lambda state: {"planned": {"deep": [1]}})
    graph.add_node("call", call, retry=Retry(on=(OSError,))).add_conditional_edge("call", route, ["call", "charge"])
    graph.add_node("charge", charge).add_interrupt_before("call", expires_in=10**6)
    heard: list[Event] = []
    await told_through(heard, graph.stream({"messages": []}, "r"), clock)
    await told_through(heard, graph.resume("r", "approved"), clock)
    await told_through(heard, graph.resume("r", "approved"), clock)
    await told_through(heard, graph.retry("r"), clock)
    await told_through(heard, graph.retry("r"), clock)
    await told_through(heard, graph.retry("r", {"mended": True}), clock)
    await told_through(heard, graph.resume("r", "retry"), clock)
    assert heard[-1].event_type == "completed"
    return heard


@pytest.fixture
async def replay(checkpointer: Checkpointer, live: list[Event]) -> list[Event]:
    """The same run as its log tells it."""
    return await told(StateGraph(checkpointer).add_node("any", lambda state: None).set_entry_point("any").events("r"))


def test_a_replay_tells_the_live_story(live: list[Event], replay: list[Event]) -> None:
    """Every event but the tokens, in the same order, with the same payloads."""
    assert durable(replay) == durable(live)
    assert {event.event_type for event in live} == {
        "node_start",
        "state_update",
        "interrupted",
        "custom",
        "token",
        "retrying",
        "failed",
        "completed",
    }


def test_readers_of_the_log_see_the_acts_too(live: list[Event], replay: list[Event]) -> None:
    """Decisions and retries, where they happened; the caller of `resume` knows its own."""
    acts = [event.event_type for event in replay if event.event_type in ACTS]
    assert acts == ["decided", "decided", "retried", "retried", "retried", "decided"]
    assert not [event for event in live if event.event_type in ACTS]


def test_cursors_grow_and_never_repeat(live: list[Event], replay: list[Event]) -> None:
    """Live and replayed: an event's cursor is its own, and the same for both."""
    for events in (live, replay):
        cursors = [event.cursor for event in events if event.cursor is not None]
        assert cursors == sorted(set(cursors))
    places = {event.cursor: plain(event) for event in replay}
    assert all(event.cursor is not None for event in replay)
    for event in live:
        if event.cursor is not None:
            assert places[event.cursor] == plain(event)
        else:
            assert event.event_type in ("node_start", "custom", "token")


async def test_a_reader_that_comes_back_sees_the_rest_once(checkpointer: Checkpointer, replay: list[Event]) -> None:
    """With the cursor of any event, of any kind."""
    graph = StateGraph(checkpointer).add_node("any", lambda state: None).set_entry_point("any")
    for place, event in enumerate(replay):
        assert await told(graph.events("r", after=event.cursor)) == replay[place + 1 :]
    assert await told(graph.events("r", after=Cursor(10**6, 0))) == []


async def test_a_live_reader_that_comes_back_sees_the_rest_once(
    checkpointer: Checkpointer, live: list[Event], replay: list[Event]
) -> None:
    """With the last cursor it has seen before it left, wherever that was."""
    graph = StateGraph(checkpointer).add_node("any", lambda state: None).set_entry_point("any")
    for place in range(1, len(live)):
        seen = [event.cursor for event in live[:place] if event.cursor is not None]
        rest = await told(graph.events("r", after=seen[-1] if seen else None))
        told_twice = len(
            [e for e in live[:place] if e.cursor is None and e.event_type != "token" and after_last(e, live[:place])]
        )
        assert durable(live[:place]) + durable(rest)[told_twice:] == durable(live)


def after_last(event: Event, events: Sequence[Event]) -> bool:
    """Whether an event without a cursor came after the last that has one: its row tells it again."""
    last = max((place for place, other in enumerate(events) if other.cursor is not None), default=-1)
    return any(other is event for other in events[last + 1 :])


def test_a_cursor_is_written_as_two_numbers() -> None:
    """As the id of a server-sent event."""
    assert str(Cursor(12, 3)) == "12.3"
    assert Cursor(2, 9) < Cursor(10, 0)


async def test_events_of_an_unknown_run_are_a_lookup_error(checkpointer: Checkpointer) -> None:
    """At the first event asked for, with a cursor or without."""
    graph = StateGraph(checkpointer).add_node("any", lambda state: None).set_entry_point("any")
    for after in (None, Cursor(0, 0), Cursor(7, 1)):
        with pytest.raises(UnknownRun):
            await told(graph.events("nobody", after=after))


async def test_ends_and_acts_are_told_from_the_log(checkpointer: Checkpointer) -> None:
    """Rejected and cancelled runs, with who did it."""
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).set_entry_point("a").add_interrupt_before("a")
    await graph.run({}, "rejected")
    await graph.decide("rejected", "rejected", by="bob", note="no")
    await graph.run({}, "cancelled")
    await graph.cancel("cancelled", by="eve", note="enough")
    rejected = (await told(graph.events("rejected")))[1:]
    assert [(event.event_type, event.node_name, event.payload) for event in rejected] == [
        ("decided", "a", {"boundary": "rejected:0.0", "decision": "rejected", "by": "bob", "note": "no", "edit": {}}),
        ("rejected", "a", {}),
    ]
    cancelled = (await told(graph.events("cancelled")))[1:]
    assert [(event.event_type, event.node_name, event.payload) for event in cancelled] == [
        ("cancel_requested", "a", {"by": "eve", "note": "enough"}),
        ("cancelled", "a", {}),
    ]


async def test_a_signal_is_an_act_too(checkpointer: Checkpointer) -> None:
    """Told with its name, its key and who sent it."""
    graph = StateGraph(checkpointer).add_node("a", lambda state: None).set_entry_point("a").add_interrupt_before("a")
    await graph.run({}, "r")
    await checkpointer.signal("r", "paid", "42", actor="bank", act="x", body=b"{}")
    event = (await told(graph.events("r")))[-1]
    assert (event.event_type, event.payload) == ("signalled", {"name": "paid", "key": "42", "by": "bank"})


# -- events as values


EVENTS: list[Event] = [
    NodeStart(node_name="a", payload={}, run_id="r"),
    StateUpdate(node_name="a", payload={"delta": {"n": [1, None, "\ud800", "\0", "ä"]}}, run_id="r", seq=1, index=1),
    Interrupted.model_validate(
        {
            "node_name": "a",
            "payload": {"state": {}},
            "run_id": "r",
            "boundary": {"id": "r:1.0", "kind": "approval", "node": "a", "digest": "d", "final": True},
        }
    ),
    *(
        kind(node_name="a", payload={"x": 1}, run_id="r", seq=3, index=0)
        for kind in (
            Rejected, Completed, Failed, Retrying, Cancelled, Custom, Token, Decided, Retried, CancelRequested, Signalled,
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.event_type)
def test_an_event_comes_back_from_its_line_of_json(event: Event) -> None:
    """As its own type, told apart by `event_type`."""
    back = parse_event(event.model_dump_json())
    assert type(back) is type(event)
    assert back == event


@pytest.mark.parametrize(
    "line", ["{}", "[]", "", '{"event_type":"nonsense","node_name":"a","payload":{},"run_id":"r"}']
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    """With what pydantic says of it."""
    with pytest.raises(pydantic.ValidationError):
        parse_event(line)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.event_type)
def test_an_event_is_frozen(event: Event) -> None:
    """Nobody rewrites what was told."""
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        event.node_name = "b"


async def test_events_are_matched_with_case(checkpointer: Checkpointer) -> None:
    """By class or by attribute."""
    graph = StateGraph(checkpointer).add_node("a", lambda state: {"n": 1}).set_entry_point("a")
    found = []
    async for event in graph.stream({}):
        match event:
            case StateUpdate(payload={"delta": delta}):
                found.append(delta)
            case Completed(payload={"final_state": state}):
                found.append(state)
            case NodeStart(node_name=name):
                found.append(name)
    assert found == ["a", {"n": 1}, {"n": 1}]


# -- readers that are slower than the run


@pytest.fixture(params=["memory", "sqlite"])
def roomy(request: pytest.FixtureRequest, open_store: Any) -> Checkpointer:
    """Every store in turn; long runs do not wait for the disk."""
    if request.param == "memory":
        return MemoryCheckpointer()
    store: Checkpointer = open_store(durability="relaxed")
    return store


class Loop:
    """A run of many steps that can be held at one of them, until a reader says go."""

    def __init__(self, checkpointer: Checkpointer, steps: int, hold_at: int = -1, emits: int = 0) -> None:
        self.held, self.go = asyncio.Event(), asyncio.Event()
        self.graph = StateGraph(checkpointer, steps).set_entry_point("loop")

        async def node(state: Any, ctx: Context) -> dict[str, Any]:
            for nth in range(emits):
                ctx.emit({"nth": nth})
            if state["n"] == hold_at:
                self.held.set()
                await self.go.wait()
            return {"n": state["n"] + 1}

        self.graph.add_node("loop", node)
        self.graph.add_conditional_edge("loop", lambda s: "END" if s["n"] >= steps else "loop", ["loop", "END"])

    def stream(self) -> Any:
        return self.graph.stream({"n": 0}, "r")

    async def ended(self) -> None:
        """Return when the run has ended, read by somebody or not."""
        while await self.graph.checkpointer.runs(status="running"):  # noqa: ASYNC110  # a store has no event to wait for
            await asyncio.sleep(0)

    async def replay(self) -> list[tuple[Any, ...]]:
        return durable(await told(self.graph.events("r")))


async def test_a_reader_that_is_away_does_not_hold_the_run(roomy: Checkpointer) -> None:
    """It goes on to its end, more than a thousand events ahead; then each event is told once, in order."""
    loop = Loop(roomy, 1200)
    events = loop.stream()
    first = await anext(events)
    await loop.ended()
    assert durable([first, *await told(events)]) == await loop.replay()


async def test_a_reader_may_fall_behind_while_it_catches_up(roomy: Checkpointer) -> None:
    """It reads the log of what it has missed, and meanwhile the run goes on to its end."""
    loop = Loop(roomy, 1400, hold_at=700)
    events = loop.stream()
    heard = [await anext(events)]
    await loop.held.wait()
    heard += [await anext(events) for _ in range(10)]  # from the log, up to the step that is held
    loop.go.set()
    await loop.ended()
    assert durable([*heard, *await told(events)]) == await loop.replay()


async def test_a_reader_that_is_behind_is_told_the_story_and_not_the_acts(roomy: Checkpointer) -> None:
    """As one that kept up: of a cancel it hears the end."""
    loop = Loop(roomy, 800, hold_at=700)
    events = loop.stream()
    heard = [await anext(events)]
    await loop.held.wait()
    await loop.graph.cancel("r", by="eve")
    loop.go.set()
    await loop.ended()
    heard += await told(events)
    assert heard[-1].event_type == "cancelled"
    assert not [event for event in heard if event.event_type in ACTS]
    assert durable(heard) == await loop.replay()


async def test_a_reader_catches_up_and_goes_on_live(roomy: Checkpointer) -> None:
    """Behind, level again at the held step, then live to the end."""
    loop = Loop(roomy, 720, hold_at=700)
    events = loop.stream()
    heard = [await anext(events)]
    await loop.held.wait()
    while len(heard) < 2 * 700 + 1:
        heard.append(await anext(events))
    assert (heard[-1].event_type, heard[-1].cursor) == ("node_start", None)
    loop.go.set()
    heard += await told(events)
    assert durable(heard) == await loop.replay()


@pytest.mark.parametrize("taken", [0, 1, 300, 1000])
async def test_a_node_that_tells_more_than_a_reader_holds_loses_nothing(roomy: Checkpointer, taken: int) -> None:
    """Thousands of custom events of one node, of which the reader had some live and some not."""
    loop = Loop(roomy, 1, hold_at=0, emits=2500)
    events = loop.stream()
    heard = [await anext(events)]
    await loop.held.wait()
    heard += [await anext(events) for _ in range(taken)]
    loop.go.set()
    await loop.ended()
    heard += await told(events)
    assert durable(heard) == await loop.replay()
    assert len(heard) == 1 + 2500 + 2


@pytest.mark.parametrize("taken", [0, 1, 300, 1000])
async def test_a_node_that_tells_much_is_heard_while_it_runs(roomy: Checkpointer, taken: int) -> None:
    """A reader that has fallen behind in the middle of a node goes on live with what the node tells."""
    loop = Loop(roomy, 1, hold_at=0, emits=2500)
    events = loop.stream()
    heard = [await anext(events)]
    await loop.held.wait()
    heard += [await anext(events) for _ in range(2500)]
    loop.go.set()
    heard += await told(events)
    assert durable(heard) == await loop.replay()


class Slow(MemoryCheckpointer):
    """A store whose acknowledgement of one row is late: the log has it before its driver knows."""

    def __init__(self, late: int) -> None:
        super().__init__()
        self.late = late
        self.stored, self.acknowledge = asyncio.Event(), asyncio.Event()

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        written = await super().append(lease, seen, entries, snapshot)
        if written is not None and written.seq == self.late:
            self.stored.set()
            await self.acknowledge.wait()
        return written


async def test_a_row_that_the_log_has_before_its_driver_knows_is_told_once() -> None:
    """A reader that catches up from the log at that moment does not hear of it again."""
    store = Slow(late=700)
    loop = Loop(store, 720)
    events = loop.stream()
    heard = [await anext(events)]
    await store.stored.wait()
    reading = asyncio.ensure_future(told(events))
    for _ in range(100):  # the reader takes all that it can have
        await asyncio.sleep(0)
    store.acknowledge.set()
    heard += await reading
    assert durable(heard) == await loop.replay()


async def test_a_reader_that_leaves_while_it_is_behind_releases_the_run(roomy: Checkpointer) -> None:
    """As anywhere else."""
    loop = Loop(roomy, 800, hold_at=700)
    events = loop.stream()
    await anext(events)
    await loop.held.wait()
    for _ in range(5):
        await anext(events)
    await events.aclose()
    loop.go.set()
    assert (await loop.graph.info("r")).status == "ready"
    assert (await told(loop.graph.resume("r")))[-1].event_type == "completed"


async def test_ten_thousand_events_are_read_by_many_at_once(roomy: Checkpointer) -> None:
    """Every reader sees each once, in order, wherever it starts; the run is unaffected."""
    loop = Loop(roomy, 100, emits=98)
    await told(loop.stream())
    everything = await told(loop.graph.events("r"))
    assert len(everything) == 100 * 100 + 1
    cursors = [event.cursor for event in everything]
    assert cursors == sorted(set(cursors))  # type: ignore[type-var]
    starts = (None, *cursors[::2500])
    readers = await asyncio.gather(*(told(loop.graph.events("r", after=start)) for start in starts))
    for start, read in zip(starts, readers, strict=True):
        place = 0 if start is None else cursors.index(start) + 1
        assert read == everything[place:]
    assert (await loop.graph.info("r")).status == "completed"


async def test_a_follower_sees_the_run_to_its_end(roomy: Checkpointer) -> None:
    """From another task, through a pause and past it, acts included; then it stops by itself."""
    graph = StateGraph(roomy).add_node("a", lambda state: None).set_entry_point("a").add_edge("a", "b")
    graph.add_node("b", lambda state: None).add_interrupt_before("b")
    await graph.run({}, "r")
    paused = asyncio.Event()
    heard: list[str] = []

    async def follow() -> None:
        async for event in graph.events("r", follow=True):
            heard.append(event.event_type)
            if event.event_type == "interrupted":
                paused.set()

    following = asyncio.ensure_future(follow())
    await paused.wait()
    await told(graph.resume("r", "approved"))
    await following
    assert heard == ["node_start", "state_update", "interrupted", "decided", "node_start", "state_update", "completed"]


async def test_a_follower_of_an_ended_run_stops_at_its_end(roomy: Checkpointer) -> None:
    """With its last cursor too."""
    graph = StateGraph(roomy).add_node("a", lambda state: None).set_entry_point("a")
    await graph.run({}, "r")
    everything = await told(graph.events("r", follow=True))
    assert everything[-1].event_type == "completed"
    assert await told(graph.events("r", after=everything[-1].cursor, follow=True)) == []
