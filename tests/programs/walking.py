"""A random walk over the verbs of two stores at once; nobody drives, so that senseless calls are as likely as sensible ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

from stategraph import Checkpointer, ManualClock
from stategraph.checkpoint import Boundary, Entry, Head, Lease, Opening, Status, dump_openings
from stategraph.errors import CheckpointerError
from tests.programs.kept import effects

#: A call of the same verb on any store.
Call: TypeAlias = Callable[[Checkpointer], Awaitable[Any]]

RUNS = ("a", "b")
ACTORS = ("ann", "bob", "carol", "dan")
PATHS = ("", "", "", "0.0")
KEYS = ("k1", "k2", "k3")
TOKENS = ("t1", "t2", "t3")
WAITS = (("paid", "7"), ("paid", "8"), ("sent", "7"))
#: What a driver proposes; it mostly goes on.
STATUSES: list[Status] = [
    "running",
    "running",
    "running",
    "running",
    "pending",
    "pending",
    "completed",
    "ready",
    "failed",
]


class Walk:
    """Two stores and what a walker knows of them; `step` takes one step on both and compares."""

    def __init__(self, one: Checkpointer, other: Checkpointer, clock: ManualClock, dice: Random) -> None:
        self.one, self.other, self.clock, self.dice = one, other, clock, dice
        self.leases: dict[str, list[Lease]] = {}
        self.acts = 0
        self.trace: list[str] = []
        #: Each walk likes other moves, so that rare sequences are met.
        self.taste = [weight * dice.choice((0.2, 1.0, 1.0, 3.0)) for weight in MOVES.values()]

    async def step(self) -> None:
        """One move, with the same answer and the same traces on both stores."""
        run_id = self.dice.choice(RUNS)
        head = await self.one.head(run_id)
        (move,) = self.dice.choices(list(MOVES), self.taste)
        if head is not None and not self.rarely(0.3):
            move = self.dice.choice(SENSIBLE[head.status])
        what, call = (move.__name__, await move(self, head)) if head else ("create", self.create(run_id))
        answers = [await answer(call, store) for store in (self.one, self.other)]
        self.trace.append(f"{what} {run_id} -> {answers[0]}")
        assert answers[0] == answers[1], f"{what}: {answers[0]} and {answers[1]}"
        for lease in answers[0] if isinstance(answers[0], list) else answers[:1]:
            if isinstance(lease, Lease):
                self.leases.setdefault(run_id, []).append(lease)
        if answers[0] is not None or self.rarely(0.3):
            after = max(head.seq - 1, -1) if head else -1
            here, there = [
                await asyncio.gather(store.load(run_id, after=after), store.boundaries(run_id), effects(store))
                for store in (self.one, self.other)
            ]
            assert here == there, f"after {what}: {here} and {there}"

    # -- what is given to the verbs

    def rarely(self, share: float = 0.15) -> bool:
        return self.dice.random() < share

    def act(self) -> str:
        """A new act; now and then a used one, the clock's or none."""
        if self.rarely(0.1):
            return self.dice.choice(["", ":act", f"act {self.dice.randrange(self.acts + 1)}"])
        self.acts += 1
        return f"act {self.acts}"

    def actor(self) -> str:
        return self.dice.choice(["", ":clock", "role"]) if self.rarely(0.1) else self.dice.choice(ACTORS)

    def lease(self, run_id: str) -> Lease:
        """The last one of the run; now and then an older one, another run's or one that was never given."""
        leases = self.leases.get(run_id) or [Lease(run_id, "w", 0, 0)]
        if self.rarely():
            leases = [*leases, replace(leases[-1], epoch=leases[-1].epoch + 1), replace(leases[-1], run_id="nobody")]
            return self.dice.choice(leases)
        return leases[-1]

    def lasting(self) -> int:
        return self.dice.choice((1_000, 30_000, 60_000))

    def opening(self, path: str, step: int) -> Opening:
        kind: Any = self.dice.choice(("approval",) * 4 + ("question", "timer", "signal", "in_doubt"))
        name, key = self.dice.choice(WAITS) if kind == "signal" else (None, None)
        return Opening(
            kind,
            path,
            step,
            "node",
            "shown",
            final=self.rarely(0.3),
            needed=self.dice.choice((1, 1, 1, 2)),
            approvers=self.dice.choice((None,) * 6 + (("ann", "role"),) * 3 + ((),)),
            four_eyes=self.rarely(),
            effect=self.dice.choice(KEYS) if kind == "in_doubt" else None,
            name=name,
            key=key,
            expires_at=self.clock.now() + self.dice.choice((5_000, 50_000))
            if kind == "timer" or self.rarely(0.3)
            else None,
        )

    def opens(self, path: str, step: int, share: float = 0.3) -> str | None:
        many = self.dice.choice((1, 1, 2, 3)) if self.rarely(share) else 0
        return dump_openings([self.opening(path, step) for _ in range(many)])

    async def entry(self, run_id: str) -> Entry:
        """The next row of a visit; now and then one that has been, or leaves some out."""
        rows = await self.one.history(run_id)
        path = self.dice.choice(PATHS)
        done = [row.step for row in rows if row.path == path and row.kind in ("node", "route", "join")]
        step = (
            self.dice.randrange(4)
            if self.rarely()
            else max((place + 1 for place in done if place is not None), default=0)
        )
        attempt = (
            sum((row.path, row.step) == (path, step) for row in rows) if not self.rarely() else self.dice.randrange(3)
        )
        kind: Any = self.dice.choice(("node",) * 8 + ("route", "join", "failed", "failed", "asked"))
        status: Status = "failed" if kind == "failed" and not self.rarely() else self.dice.choice(STATUSES)
        if self.rarely(0.03):
            status = self.dice.choice(("rejected", "cancelled"))
        effect = self.dice.choice(KEYS) if kind == "asked" and not self.rarely(0.4) else None
        opens = self.opens(path, step + 1, 0.9 if status == "pending" else 0.15)
        return Entry(kind, path, step, attempt, status, b'{"x":%d}' % self.dice.randrange(9), opens, effect)

    def seen_by_driver(self, head: Head) -> int:
        return head.seq + self.dice.choice((-1, 1, -2)) if self.rarely() else head.seq

    async def boundary(self, run_id: str, to_expire: bool) -> Boundary | None:
        boundaries = await self.one.boundaries(run_id)
        still_open = [boundary for boundary in boundaries if boundary.state == "open"]
        now = self.clock.now()
        come = [boundary for boundary in still_open if boundary.expires_at is not None and boundary.expires_at <= now]
        still_open = come if to_expire else [boundary for boundary in still_open if boundary not in come]
        return self.dice.choice(still_open if still_open and not self.rarely() else boundaries) if boundaries else None

    # -- the moves

    def create(self, run_id: str) -> Call:
        status: Status = self.dice.choice(("running", "running", "ready", "pending"))
        opens = self.opens("", 0, 1.0 if status == "pending" else 0.1)
        creator, owner, lease_ms = self.dice.choice(ACTORS), self.dice.choice(("w", "v")), self.lasting()
        return lambda store: store.create(
            run_id, graph=run_id, fingerprint="f", creator=creator, body=b"{}", status=status, opens=opens, owner=owner,
            lease_ms=lease_ms,
        )  # fmt: skip

    async def create_again(self, head: Head) -> Call:
        return self.create(head.run_id)

    async def claim(self, head: Head) -> Call:
        owner, lease_ms = self.dice.choice(("w", "v")), self.lasting()
        return lambda store: store.claim(head.run_id, owner, lease_ms)

    async def renew(self, head: Head) -> Call:
        lease, lease_ms = self.lease(head.run_id), self.lasting()
        return lambda store: store.renew(lease, lease_ms)

    async def release(self, head: Head) -> Call:
        lease = self.lease(head.run_id)
        return lambda store: store.release(lease)

    async def append(self, head: Head) -> Call:
        lease, seen, entries = self.lease(head.run_id), self.seen_by_driver(head), [await self.entry(head.run_id)]
        if self.rarely():
            entries.append(entries[0]._replace(kind="failed", step=entries[0].step + 1, attempt=0, status="failed"))
        elif self.rarely(0.05):
            entries.append(await self.entry(head.run_id))
        snapshot = b"fold %d" % seen if 0 <= seen <= head.seq and self.rarely() else None
        return lambda store: store.append(lease, seen, entries, snapshot)

    async def append_many(self, head: Head) -> Call:
        """Several drivers at the same moment."""
        rows = []
        for _ in range(self.dice.choice((2, 3, 5))):
            other = await self.one.head(self.dice.choice(RUNS))
            if other is not None:
                rows.append((self.lease(other.run_id), self.seen_by_driver(other), [await self.entry(other.run_id)]))
        return lambda store: asyncio.gather(*(answer(lambda at, row=row: at.append(*row), store) for row in rows))  # type: ignore[misc]

    async def settle(self, head: Head) -> Call:
        lease, seen = self.lease(head.run_id), self.seen_by_driver(head)
        status = head.ending if head.ending and not self.rarely() else self.dice.choice(STATUSES)
        return lambda store: store.settle(lease, seen, status, b"{}")  # type: ignore[arg-type]

    async def decide(self, head: Head) -> Call:
        about = await self.boundary(head.run_id, to_expire=False)
        name = f"{about.id.rpartition(':')[2]}" if about and not self.rarely(0.05) else "7.7"
        decision: Any = self.dice.choice(("approved", "approved", "rejected", "retry"))
        digest = "stale" if self.rarely(0.1) else "shown"
        actor, act, roles = self.actor(), self.act(), self.dice.choice(((), (), ("role",), ("x", "y")))
        body = self.dice.choice((b"{}", b'{"note":"n"}', b'{"result":1}', b"null"))
        return lambda store: store.decide(
            head.run_id, name, digest=digest, decision=decision, actor=actor, act=act, body=body, roles=roles
        )

    async def expire(self, head: Head) -> Call:
        about = await self.boundary(head.run_id, to_expire=True)
        name = about.id.rpartition(":")[2] if about else "1.0"
        return lambda store: store.expire(head.run_id, name, body=b'{"kind":"x"}')

    async def signal(self, head: Head) -> Call:
        (name, key), actor, act = self.dice.choice(WAITS), self.actor(), self.act()
        return lambda store: store.signal(head.run_id, name, key, actor=actor, act=act, body=b"{}")

    async def cancel(self, head: Head) -> Call:
        actor, act = self.actor(), self.act()
        return lambda store: store.cancel(head.run_id, actor=actor, act=act, body=b'{"note":"stop"}')

    async def retry(self, head: Head) -> Call:
        actor, act = self.actor(), self.act()
        return lambda store: store.retry(head.run_id, actor=actor, act=act, body=b"{}")

    async def effect_begin(self, head: Head) -> Call:
        lease, key, token = self.lease(head.run_id), self.dice.choice(KEYS), self.dice.choice(TOKENS)
        policy: Any = self.dice.choice(("ask", "keyed"))
        return lambda store: store.effect_begin(lease, key, path="", step=0, policy=policy, token=token)

    async def effect_end(self, head: Head) -> Call:
        key, token, outcome = self.dice.choice(KEYS), self.dice.choice(TOKENS), b"%d" % self.dice.randrange(9)
        kept = await effects(self.one)
        if kept and not self.rarely():
            key, _, _, token, _ = self.dice.choice(kept)
        return lambda store: store.effect_end(head.run_id, key, token, outcome)

    async def wait(self, _: Head) -> Call:
        expiries = [b.expires_at for b in await self.one.boundaries(state="open") if b.expires_at is not None]
        until = self.dice.choice(expiries) - self.clock.now() - self.dice.choice((1, 0, 0)) if expiries else 0
        self.clock.advance(
            until / 1000 if until > 0 and not self.rarely(0.3) else self.dice.choice((0.001, 4, 31, -20))
        )
        return lambda store: due(store)

    async def read(self, head: Head) -> Call:
        after, until = (
            self.dice.randrange(-1, head.seq + 3),
            self.dice.choice((None, self.dice.randrange(-1, head.seq + 3))),
        )
        limit, name = self.dice.choice((None, 0, 1, 3)), self.dice.choice((None, *RUNS, "nobody"))
        status: Any = self.dice.choice((None, "running", "pending", "open", "approved", "withdrawn"))
        act = f"act {self.dice.randrange(self.acts + 1)}"
        return lambda store: asyncio.gather(
            store.load(head.run_id, after=after, until=until),
            store.history(head.run_id, after=after, limit=limit),
            store.find_act(head.run_id, act),
            store.runs(status=status, graph=name, limit=9 if limit is None else limit, before=name),
            store.boundaries(head.run_id, state=status, limit=9 if limit is None else limit),
        )

    async def delete(self, head: Head) -> Call:
        return lambda store: store.delete(head.run_id)

    async def prune(self, _: Head) -> Call:
        before = self.clock.now() - self.dice.choice((0, 10_000))
        return lambda store: store.prune(before)


async def answer(call: Call, store: Checkpointer) -> Any:
    """What the store answers; that it could not do it is an answer too."""
    try:
        return await call(store)
    except CheckpointerError as error:
        return type(error)


async def due(store: Checkpointer) -> list[list[str]]:
    """What a worker may do, in no order: whose turn is first is the store's business."""
    return [sorted(ids) for ids in await store.due(limit=1000)]


MOVES: dict[Callable[[Walk, Head], Awaitable[Call]], float] = {
    Walk.create_again: 0.2,
    Walk.claim: 3,
    Walk.renew: 0.5,
    Walk.release: 0.4,
    Walk.append: 6,
    Walk.append_many: 1,
    Walk.settle: 0.7,
    Walk.decide: 3,
    Walk.expire: 1,
    Walk.signal: 1,
    Walk.cancel: 0.4,
    Walk.retry: 1,
    Walk.effect_begin: 1.5,
    Walk.effect_end: 1,
    Walk.wait: 1,
    Walk.read: 1,
    Walk.delete: 0.3,
    Walk.prune: 0.1,
}

#: What somebody would do to a run that stands so.
SENSIBLE: dict[Status, tuple[Callable[[Walk, Head], Awaitable[Call]], ...]] = {
    "ready": (Walk.claim, Walk.claim, Walk.claim, Walk.signal),
    "running": (
        Walk.append, Walk.append, Walk.append, Walk.append_many, Walk.decide, Walk.effect_begin, Walk.effect_begin,
        Walk.effect_end, Walk.wait, Walk.claim, Walk.settle, Walk.expire, Walk.signal,
    ),
    "pending": (Walk.decide, Walk.decide, Walk.decide, Walk.expire, Walk.wait, Walk.signal),
    "failed": (Walk.retry, Walk.decide),
    "completed": (Walk.delete,),
    "rejected": (Walk.delete,),
    "cancelled": (Walk.delete,),
}  # fmt: skip
