"""A walk of the model on a real store: after each step the store is what the model says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from stategraph.checkpoint import Boundary as Told
from stategraph.checkpoint import (
    Checkpoint,
    Decision,
    Effect,
    Entry,
    Lease,
    Opening,
    Policy,
    Status,
    Written,
    dump_openings,
)
from stategraph.encoding import encode
from stategraph.run import Run, fold, fold_log
from tests.model.bench import AFTER, BEFORE, EXPIRES, LEASE_MS, SHOWN, Bench
from tests.model.log import Boundary, Log, Row, apply, expires, resting, runnable
from tests.model.scope import Case
from tests.model.shape import CREATOR, PEOPLE, Fork, Node
from tests.model.step import (
    Append,
    Begin,
    Cancel,
    Claim,
    Decide,
    End,
    Expire,
    Lapse,
    Release,
    Renew,
    Retry,
    Settle,
    Signal,
    Step,
)
from tests.model.store import IN_DOUBT, Token
from tests.model.world import Move, World, beginning

__all__ = ["Differs", "Walk", "told"]

NAME, KEY = "paid", "7"


class Differs(AssertionError):
    """The store and the model disagree."""


class Walk:
    """One run in one store, beside the model's world."""

    def __init__(self, bench: Bench, case: Case, run_id: str, dice: Random) -> None:
        self.bench, self.store, self.clock = bench, bench.store, bench.clock
        self.case, self.run_id, self.dice = case, run_id, dice
        self.world = beginning(case)
        self.rows: list[Checkpoint] = []
        #: The store's names of the model's boundaries.
        self.names: list[str] = []
        #: Those that had nothing to wait for when they were opened.
        self.closed_at_once: set[str] = set()
        self.acts = 0
        #: What the effect's row says happened, once it is known.
        self.outcome = OUTCOME
        self.trace: list[str] = []
        gates = [node.gate for node in case.nodes.values() if node.gate]
        #: The library's own fold knows this graph: one line, and no waits for signals.
        self.folds = not case.shape.forks() and all(gate.kind == "approval" for gate in gates)

    async def begin(self) -> None:
        """Create the run."""
        log, status = self.world.store.log, self.world.store.status
        first = self.case.shape.item(0, 0)
        assert isinstance(first, Node)
        body: dict[str, Any] = {
            "graph": "g",
            "version": "1" if log.migrated else "0",
            "fingerprint": "f",
            "max_steps": self.case.shape.max_steps or 1_000,
            "set": {},
            "at": first.name,
        }
        created = await self.store.create(
            self.run_id,
            graph="g",
            fingerprint="f",
            creator=CREATOR,
            body=encode(body),
            status=told(status),
            opens=dump_openings([self.opening(boundary) for boundary in log.boundaries]),
            owner="w",
            lease_ms=LEASE_MS,
        )
        if created != Lease(self.run_id, "w" if status == "running" else "", self.world.store.epoch, 0):
            raise Differs(f"create answered {created}")
        self.names = [f"0.{index}" for index in range(len(log.boundaries))]
        await self.compare()

    async def take(self, move: Move) -> None:
        """One step of the model, on the store."""
        step, after, _ = move
        self.trace.append(str(step))
        answer = await self.execute(step)
        self.check_answer(step, after, answer)
        opened = after.store.log.boundaries[len(self.names) :]
        for nth, boundary in enumerate(opened):
            self.names.append(f"{after.store.log.seq}.{nth}")
            if boundary.state != "open":
                self.closed_at_once.add(f"{self.run_id}:{self.names[-1]}")
        before, self.world = self.world, after
        if after.store is not before.store:
            await self.compare()

    # -- the verbs, by what the model calls them

    def lease(self, epoch: int) -> Lease:
        return Lease(self.run_id, "w", epoch, 0)

    @property
    def effect(self) -> str:
        return f"{self.run_id}/E"

    def act(self) -> str:
        self.acts += 1
        return f"act {self.acts}"

    def at(self, boundary: int) -> None:
        """Set the clock to what the model says about the boundary's time."""
        self.clock.at = AFTER if boundary in self.world.store.late else BEFORE

    async def execute(self, step: Step) -> Any:
        """The step's verb and the store's answer; NotImplemented for what does not touch the store."""
        self.clock.at = BEFORE
        match step.act:
            case Claim():
                return await self.store.claim(self.run_id, "w", LEASE_MS)
            case Renew(epoch):
                return await self.store.renew(self.lease(epoch), LEASE_MS)
            case Lapse():
                return await self.store.renew(self.lease(self.world.store.epoch), 0)
            case Release(epoch):
                return await self.store.release(self.lease(epoch)) or None
            case Append():
                return await self.append(step.act)
            case Settle():
                return await self.settle(step.act)
            case Begin(epoch, token, keyed):
                return await self.effect_begin(epoch, told_token(token), "keyed" if keyed else "ask")
            case End(token):
                return await self.effect_end(token)
            case Decide(boundary, decision):
                return await self.decide(boundary, decision, step.who)
            case Expire(boundary):
                self.at(boundary)
                body = self.about(self.world.store.log.boundaries[boundary])
                return await self.store.expire(self.run_id, self.names[boundary], body=body)
            case Signal(other):
                name, key = {"name": "sent"}.get(other, NAME), {"key": "8"}.get(other, KEY)
                return await self.store.signal(self.run_id, name, key, actor="bank", act=self.act(), body=b"{}")
            case Cancel():
                return await self.store.cancel(self.run_id, actor="ops", act=self.act(), body=b"{}")
            case Retry(limit, edits):
                changes = {"set": {"edited": self.acts}} if edits else {}
                body = encode({"max_steps": limit, **changes} if limit else changes)
                return await self.store.retry(self.run_id, actor="ops", act=self.act(), body=body)
        return NotImplemented

    async def append(self, act: Append) -> Written | None:
        """A driver's rows; now and then among others that the store commits together with them."""
        lease, entries = self.lease(act.epoch), self.entries(act.rows, act.status, self.view(act.seen))
        snapshot = self.snapshot(act.seen) if act.snapshot else None
        if self.dice.random() < 0.5:
            return await self.store.append(lease, act.seen, entries, snapshot)
        nobody, stale = replace(lease, run_id="nobody"), replace(lease, epoch=lease.epoch + 7)
        answers = await asyncio.gather(
            self.store.append(nobody, act.seen, entries),
            self.store.append(stale, act.seen, entries),
            self.store.append(lease, act.seen, entries, snapshot),
            self.store.append(lease, act.seen, entries),  # the same once more, at the same moment
            self.store.append(nobody, act.seen, entries),
        )
        if any(answers[place] is not None for place in (0, 1, 3, 4)):
            raise Differs(f"of appends at one moment these were taken: {answers}")
        return answers[2]

    async def settle(self, act: Settle) -> Written | None:
        body = encode({"version": "1", "fingerprint": "f"} if act.migrates else {})
        return await self.store.settle(self.lease(act.epoch), act.seen, told(act.status), body)

    async def decide(self, boundary: int, decision: Any, actor: str) -> Written | None:
        self.at(boundary)
        about, roles = self.world.store.log.boundaries[boundary], PEOPLE[actor]
        happened = about.kind == "in_doubt" and decision == "approved"
        body = self.about(about, roles=list(roles), **({"result": 1} if happened else {}))
        if happened and not self.world.store.outcome:
            self.outcome = body
        return await self.store.decide(
            self.run_id,
            self.names[boundary],
            digest=SHOWN,
            decision=decision,
            actor=actor,
            act=self.act(),
            body=body,
            roles=roles,
        )

    async def effect_end(self, token: Token) -> bytes | None:
        if not self.world.store.outcome:
            self.outcome = OUTCOME
        return await self.store.effect_end(self.run_id, self.effect, told_token(token), OUTCOME)

    async def effect_begin(self, epoch: int, token: str, policy: Policy) -> Any:
        return await self.store.effect_begin(
            self.lease(epoch), self.effect, path="", step=2, policy=policy, token=token
        )

    # -- rows and boundaries as they are stored

    def view(self, seen: int) -> Log:
        """What a driver knows that has seen this row; it matters for what a row opens, and that is its own visit's."""
        views = [worker.view for worker in self.world.workers if worker.view.seq == seen]
        return views[0] if views else self.world.store.log

    def entries(self, rows: Sequence[Row], status: str, log: Log) -> list[Entry]:
        """The rows as a driver appends them, with the bodies that the engine would write."""
        entries = []
        for row in rows:
            after = apply(self.case, log, row) if log.is_free(row) else log
            opened = [self.opening(boundary) for boundary in after.boundaries[len(log.boundaries) :]]
            entries.append(
                Entry(
                    row.kind,  # type: ignore[arg-type]
                    row.path,
                    row.step,
                    row.attempt,
                    told(status),  # of the first of two rows it does not count
                    self.body(row, log, after),
                    dump_openings(opened),
                    self.effect if any(kind == "in_doubt" for kind, _ in row.opens) else None,
                )
            )
            log = after
        return entries

    def body(self, row: Row, before: Log, after: Log) -> bytes:
        """What the library's fold needs of a row."""
        line, moved = before.line(row.path), after.line(row.path)
        item = self.case.shape.item(line.where, line.place) if line and line.phase != "arrived" else None
        body: dict[str, Any] = {"node": item.name if isinstance(item, Node) else "join"}
        if row.kind == "failed":
            return encode({**body, "error": {"type": "Trouble", "message": "raised"}})
        if row.kind == "asked":
            return encode(body)
        if row.phase == "route":
            return encode({**body, "ms": 0, "phase": "route"})
        return encode({**body, "ms": 0, "at": self.target(moved.where, moved.place) if moved else "END"})

    def target(self, where: int, place: int) -> str:
        """The name of what stands at a place of a line."""
        items = self.case.shape.lines[where]
        item = items[place] if place < len(items) else "END"
        return item.name if isinstance(item, Node) else "fork" if isinstance(item, Fork) else item

    def opening(self, boundary: Boundary) -> Opening:
        """A boundary as the row that opens it declares it."""
        kind, node = boundary.kind, self.case.nodes[boundary.node]
        plain = Opening(kind, boundary.path, boundary.step, node.name, SHOWN)  # type: ignore[arg-type]
        if kind == "in_doubt":
            return replace(plain, effect=self.effect)
        due = EXPIRES if expires(self.case, boundary) else None
        if kind == "timer" or node.gate is None:
            return replace(plain, expires_at=due)
        gate = node.gate
        where, place = next(
            (where, items.index(node)) for where, items in enumerate(self.case.shape.lines) if node in items
        )
        gated = replace(plain, final=gate.final, expires_at=due, name=NAME, key=KEY)  # an approval's mean nothing
        if kind == "signal":
            return gated
        return replace(
            gated,
            on_reject=None if gate.final else self.target(where, place + 1),
            needed=gate.needed,
            approvers=gate.approvers,
            four_eyes=gate.four_eyes,
        )

    def about(self, boundary: Boundary, **more: Any) -> bytes:
        """The body of a decision."""
        return encode({"node": boundary.node, "kind": boundary.kind, "shown": SHOWN, **more})

    def snapshot(self, seen: int) -> bytes:
        """The fold at a row, as a driver keeps it."""
        return self.folded(self.rows[: seen + 1]).snapshot() if self.folds else b'{"seq":%d}' % seen

    async def loaded(self) -> Run:
        """The run as a driver loads it."""
        log = await self.store.load(self.run_id)
        if log is None:
            raise Differs("the run is gone")
        return fold_log(log)

    def folded(self, rows: Sequence[Checkpoint], snapshot: bytes | None = None) -> Run:
        return fold(self.run_id, rows, snapshot)

    # -- the answer is what the model says

    def check_answer(self, step: Step, after: World, answer: Any) -> None:
        """The verb was taken or refused as the model says, and told so."""
        if answer is NotImplemented:
            return
        store, act = after.store, step.act
        if (answer is not None) != step.accepted:
            raise Differs(f"{step}: the store answered {answer}")
        ending = store.log.ending or None
        expected: Any = None
        if isinstance(answer, Written):
            expected = (store.log.seq, store.status)
            answer = (answer.seq, answer.status)
        elif isinstance(answer, Lease):
            expected = Lease(self.run_id, "w", store.epoch, store.log.seq, ending)
        elif isinstance(act, Begin) and answer is not None:
            before = self.world.store
            handed = act.told == "mine" and before.intent not in (None, act.token)
            expected = Effect(told_token(store.intent), self.outcome if store.outcome else None, handed)
        elif isinstance(act, End) and answer is not None:
            expected = self.outcome
        else:
            return
        if answer != expected:
            raise Differs(f"{step}: the store answered {answer}, the model {expected}")

    # -- the store is what the model says

    async def compare(self) -> None:
        """Head, rows, boundaries and effects; and the library's own fold of them."""
        self.clock.at = BEFORE
        store, log = self.world.store, self.world.store.log
        head = await self.store.head(self.run_id)
        if head is None:
            raise Differs("the run is gone")
        leased = head.lease_until is not None and head.lease_until > self.clock.now()
        here = (head.status, head.ending or "", head.seq, head.epoch, leased, head.owner is not None)
        there = (store.status, log.ending, log.seq, store.epoch, store.leased, store.status == "running")
        if here != there:
            raise Differs(f"the head is {here}, the model's {there}")
        rows = await self.store.history(self.run_id)
        if [row.seq for row in rows] != list(range(log.seq + 1)) or rows[: len(self.rows)] != self.rows:
            raise Differs(f"the log is {rows}, it was {self.rows}")
        new = [row.status for row in rows[len(self.rows) :]]
        if new and new != ["running"] * (len(new) - 1) + [store.status]:
            raise Differs(f"the new rows say {new}, and the run is {store.status!r}")
        self.rows = rows
        if (head.created_ms, head.updated_ms) != (rows[0].at_ms, rows[-1].at_ms):
            raise Differs(f"the head says when: {head}, the rows {rows}")
        await self.compare_boundaries()
        await self.compare_effect()
        if store.snapshot is not None:
            await self.compare_snapshot()
        if self.folds:
            self.compare_fold(await self.loaded())

    async def compare_boundaries(self) -> None:
        told_boundaries = await self.store.boundaries(self.run_id)
        here = [(b.id, b.state, b.approvals, declared(b)) for b in told_boundaries]
        there = [
            (f"{self.run_id}:{name}", b.state, approvals(b), replace(self.opening(b), on_reject=None))
            for name, b in zip(self.names, self.world.store.log.boundaries, strict=True)
        ]
        if here != there:
            raise Differs(f"the boundaries are {here}, the model's {there}")
        for boundary in told_boundaries:
            if boundary.opened_ms != self.rows[boundary.opened].at_ms:
                raise Differs(f"row {boundary.opened} does not tell of {boundary}")
            if boundary.state == "open" or boundary.id in self.closed_at_once:
                known: list[Decision | None] = [None]
            else:
                known = [decision_of(row) for row in self.rows[boundary.opened + 1 :] if row.actor]
            if boundary.decided not in known:
                raise Differs(f"no row tells of {boundary.decided}")

    async def compare_effect(self) -> None:
        if self.bench.peek is None:
            return
        store = self.world.store
        here = [(row[3], row[4]) for row in await self.bench.effects() if row[0] == self.effect]
        outcome = self.outcome if store.outcome else None
        there = [] if store.intent is None else [(told_token(store.intent), outcome)]
        if here != there:
            raise Differs(f"the effect is {here}, the model's {there}")

    async def compare_snapshot(self) -> None:
        """What is loaded from the snapshot on is the run."""
        kept = self.world.store.snapshot
        log = await self.store.load(self.run_id)
        if kept is None or log is None or log.snapshot is None or log.snapshot[0] != kept.seq:
            raise Differs(f"the snapshot is {log and log.snapshot}, the model's is of row {kept and kept.seq}")
        if list(log.checkpoints) != self.rows[kept.seq + 1 :]:
            raise Differs(f"after the snapshot of row {kept.seq} come {log.checkpoints}")
        before = await self.store.load(self.run_id, until=kept.seq - 1) if kept.seq else None
        if before is not None and (before.snapshot, list(before.checkpoints)) != (None, self.rows[: kept.seq]):
            raise Differs(f"before the snapshot of row {kept.seq} come {before}")
        if self.folds and self.folded(log.checkpoints, log.snapshot[1]).content() != self.folded(self.rows).content():
            raise Differs("the run that is loaded from its snapshot is another run")

    def compare_fold(self, run: Run) -> None:
        """The library's fold knows where the run stands, what may start and how it rests."""
        log, counted = self.world.store.log, bool(self.case.shape.max_steps)
        here = {path: (p.node, p.phase, p.step, p.attempt, p.approved is not None) for path, p in run.positions.items()}
        there = {
            line.path: (self.target(line.where, line.place), line.phase, line.step, line.attempt, line.approved)
            for line in log.lines
        }
        if here != there:
            raise Differs(f"the fold stands at {here}, the model at {there}")
        rests = {"ready": "running"}.get(run.resting(), run.resting())
        still_open = [name for name, b in zip(self.names, log.boundaries, strict=True) if b.state == "open"]
        known = (
            run.seq, run.status, run.ending or "", rests, [p.path for p in run.runnable()], run.version == "1",
            [b.short_id for b in run.boundaries.values()], run.steps * counted, run.max_steps * counted,
        )  # fmt: skip
        model = (
            log.seq, self.world.store.status, log.ending, resting(self.case, log),
            [line.path for line in runnable(self.case, log)], log.migrated, still_open, log.steps, log.limit,
        )  # fmt: skip
        if known != model:
            raise Differs(f"the fold is {known}, the model's {model}")


OUTCOME = encode({"result": 1})


def declared(boundary: Told) -> Opening:
    """A stored boundary as the row that opened it declared it, but for where its line goes on."""
    names = [name for name in Opening.__slots__ if name not in ("on_reject", "on_expire")]
    return Opening(**{name: getattr(boundary, name) for name in names})


def approvals(boundary: Boundary) -> int:
    """How many approvals a store counts: a signal is none."""
    if boundary.kind == "approval":
        return len(boundary.votes)
    return int(boundary.kind == "in_doubt" and boundary.state == "approved")


def decision_of(row: Checkpoint) -> Decision:
    """Who did what by somebody's row."""
    return Decision(row.decision or row.kind, row.actor or "", row.at_ms, row.act or "")


def told(status: str) -> Status:
    """The status as the library types it."""
    return status  # type: ignore[return-value]


def told_token(token: Token | None) -> str:
    """The model's token as text."""
    return "in doubt" if token == IN_DOUBT else ".".join(map(str, token or ()))
