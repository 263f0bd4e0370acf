"""What the verbs answer is of exactly the declared types."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from stategraph.checkpoint import (
    Boundary,
    Checkpoint,
    Checkpointer,
    Effect,
    Head,
    Lease,
    Log,
    Written,
)
from stategraph.clock import ManualClock
from stategraph.testing.byhand import (
    GATE,
    LEASE_MS,
    begin,
    cancel,
    claimed,
    create,
    decide,
    logged,
    paused,
    visit,
)
from stategraph.testing.suite import Suite

__all__ = ["Answers"]


def wrong(value: Any, hint: Any, place: str = "answer") -> list[str]:
    """Where a value is not of its declared type: the type itself, no subclass, nothing that merely resembles it."""
    origin, given = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        faults = [wrong(value, one, place) for one in given]
        return [] if [] in faults else min(faults, key=len)
    if origin is Literal:
        return [] if type(value) is str and value in given else [f"{place} is {value!r}"]
    if origin in (tuple, list):
        if type(value) is not origin:
            return [f"{place} is {value!r}"]
        hints = given if origin is tuple and given[-1] is not Ellipsis else given[:1] * len(value)
        items = enumerate(zip(value, hints, strict=True))
        return [fault for nth, (item, one) in items for fault in wrong(item, one, f"{place}[{nth}]")]
    if type(value) is not (NoneType if hint is None else hint):
        return [f"{place} is {value!r}"]
    if is_dataclass(hint) or hint is Written:
        fields = get_type_hints(hint)
        return [fault for name in fields for fault in wrong(getattr(value, name), fields[name], f"{place}.{name}")]
    return []


class Answers(Suite):
    """What the verbs answer is of exactly the declared types."""

    async def test_every_answer_is_of_its_declared_type(self, store: Checkpointer, clock: ManualClock) -> None:
        """Bytes are bytes, numbers are whole, approvers are a tuple: in every field of all that a verb answers."""
        await logged(store)
        gate = replace(GATE, approvers=("ann", "bob"), needed=2, expires_at=clock.now() + 1, four_eyes=True)
        lease = await create(store, "waits", body=b"\x00\xff")
        answers: list[tuple[Any, Any]] = [
            (lease, Lease),
            (await begin(store, lease, "t", "of waits"), Effect),
            (await store.effect_end("waits", "of waits", "t", b"\x00"), bytes),
            (await begin(store, lease, "t", "of waits"), Effect),
            (await store.renew(lease, LEASE_MS), Lease),
            (await store.append(lease, 0, [visit(0)], b"{}"), Written),
            (
                await store.append(lease, 1, [visit(1, "pending", gate, replace(gate, kind="timer", final=False))]),
                Written,
            ),
            (await decide(store, run_id="waits", boundary="2.0", body=b'{"note":"n"}'), Written),
            (await store.signal("waits", "n", "k", actor="bank", act="s", body=b""), Written),
        ]
        clock.advance(1)
        answers += [
            (await store.due(), tuple[list[str], ...]),
            (await store.expire("waits", "2.1"), Written),
            (await claimed(store, "waits"), Lease),
            (await store.settle(Lease("waits", "v", 2, 0), 5, "failed", b""), Written),
            (await store.retry("waits", actor="ops", act="r", body=b""), Written),
            (await store.release(await claimed(store, "waits")), bool),
            (await store.release(lease), bool),
            (await cancel(store, run_id="waits"), Written),
            (await store.head("waits"), Head),
            (await store.head("r"), Head),
            (await store.runs(), list[Head]),
            (await store.load("waits"), Log),
            (await store.load("r"), Log),
            (await store.history("r"), list[Checkpoint]),
            (await store.find_act("r", "s"), Checkpoint),
            (await store.boundaries(), list[Boundary]),
            (await store.delete("r"), bool),
            (await store.delete("r"), bool),
            (await store.prune(clock.now() + 1), int),
        ]
        assert [
            fault for answer, hint in answers for fault in wrong(answer, hint, getattr(hint, "__name__", "answer"))
        ] == []

    async def test_an_answer_is_the_askers_own(self, store: Checkpointer) -> None:
        """What somebody does with a list, or with the content of a row, is not seen by whoever asks next."""
        await paused(store)
        (await store.runs()).clear()
        (await store.history("r")).clear()
        (await store.boundaries()).clear()
        (await store.history("r"))[0].content["n"] = 7
        assert [head.run_id for head in await store.runs()] == ["r"]
        assert [row.content for row in await store.history("r")] == [{"n": 0}, {"n": 1}]
        assert len(await store.boundaries()) == 1
