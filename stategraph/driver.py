"""Starting and taking over runs: what has to hold before an engine drives one, and the lease that lets it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from stategraph.checkpoint import ENDED, Checkpoint, Checkpointer, Head, Lease, Log, Status, check_run_id, dump_openings
from stategraph.deciding import operating_user
from stategraph.encoding import check_json, encode
from stategraph.engine import Engine, approval
from stategraph.errors import (
    CheckpointerError,
    GraphChangedError,
    LeaseHeld,
    RunExists,
    RunNotClaimable,
    UnknownRun,
    did_you_mean,
    moment,
)
from stategraph.events import Cursor, Event
from stategraph.isolation import copied
from stategraph.patch import DELETE, Patch, applied
from stategraph.plan import END, Plan
from stategraph.run import Run, fold, fold_log, fold_on
from stategraph.state import Schema
from stategraph.stream import EventBuffer, closing, read_events, stream_events

__all__ = ["Driver", "Migration", "load_log", "new_run_id"]

#: Stored values of the old version -> what it changes of them.
Migration: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]


class Driver:
    """Brings runs of one plan and one store under way; each call is on its own."""

    def __init__(
        self, plan: Plan, checkpointer: Checkpointer, lease_ms: int, migrations: Mapping[str, Migration]
    ) -> None:
        self.plan = plan
        self.checkpointer = checkpointer
        self._lease_ms = lease_ms
        self._migrations = migrations

    async def start(
        self, state: object, run_id: str | None, told: Callable[[Event], None]
    ) -> tuple[Engine, Checkpoint]:
        """Store row 0 of a new run; the engine that holds its lease, and the row."""
        plan, store = self.plan, self.checkpointer
        run_id, content, opens = self._beginning(state, run_id)
        body = encode(content)
        status: Status = "pending" if opens else "running"
        lease = await self._created(run_id, body, status, opens, _owner())
        row = Checkpoint(run_id, 0, "start", status, body, store.clock.now(), opens=opens)
        row.knows({**content, "set": copied(content["set"])})  # a copy costs less than reading the bytes back
        return Engine(plan, store, fold(run_id, [row]), lease, self._lease_ms, told, (0, len(body))), row

    async def submit(self, state: object, run_id: str | None) -> str:
        """Store row 0 of a new run that nobody drives yet; its id."""
        run_id, content, opens = self._beginning(state, run_id)
        await self._created(run_id, encode(content), "pending" if opens else "ready", opens)
        return run_id

    def _beginning(self, state: object, run_id: str | None) -> tuple[str, dict[str, Any], str | None]:
        """A new run's id, what its row 0 says, and the boundary that this row opens if a gate stands at the entry."""
        plan = self.plan
        run_id = check_run_id(run_id) if run_id is not None else new_run_id()
        values = plan.schema.start(state)
        content = {
            "graph": plan.name,
            "version": plan.version,
            "fingerprint": plan.fingerprint,
            "max_steps": plan.max_steps,
            "set": values,
            "at": plan.entry,
        }
        if plan.schema.secrets:
            content["secrets"] = sorted(plan.schema.secrets)
        gate = plan.gates.get(plan.entry)
        now = self.checkpointer.clock.now()
        return run_id, content, dump_openings([approval(gate, run_id, "", 0, values, now)] if gate else [])

    async def _created(self, run_id: str, body: bytes, status: Status, opens: str | None, owner: str = "") -> Lease:
        plan, store = self.plan, self.checkpointer
        lease = await self._taken(
            store.create(
                run_id,
                graph=plan.name,
                fingerprint=plan.fingerprint,
                creator=operating_user(),
                body=body,
                status=status,
                opens=opens,
                owner=owner,
                lease_ms=self._lease_ms,
            )
        )
        if lease is None:
            head = await store.head(run_id)
            raise RunExists(run_id, head.status if head else None)
        return lease

    async def go_on(self, run: Run, patience: float | None = None) -> AsyncGenerator[Event, None]:
        """Claim a run that was read, drive it and tell what follows; a retry is waited for so many seconds at most."""
        store, run_id = self.checkpointer, run.run_id
        while (lease := await self._taken(store.claim(run_id, _owner(), self._lease_ms))) is None:
            refused = await self.refusal(run_id)
            free = refused.status == "ready" or (refused.status == "running" and not isinstance(refused, LeaseHeld))
            if not free:  # else its driver has let go of it just now, or its lease was over in between
                raise refused
        buffer = EventBuffer()
        try:
            run = await self.caught_up(run)
            self.must_fit(run)
            patience_ms = None if patience is None else round(patience * 1000)
            engine = Engine(self.plan, store, run, lease, self._lease_ms, buffer.put, run.weight, patience_ms)
            while run.version != self.plan.version and run.status == "running":  # again, if somebody wrote meanwhile
                await engine.migrate(self.plan.version, self._migrated(run))
        except BaseException:
            await store.release(lease)
            raise
        async with closing(stream_events(engine, buffer)) as events:
            async for event in events:
                yield event

    async def fitting(self, run_id: str) -> Run:
        """The run as it is now, boundaries whose time has come expired, if this graph can take it on."""
        run = await self._expired(fold_log(await load_log(self.checkpointer, run_id)))
        if not run.ended:
            self.must_fit(run)
        return run

    async def caught_up(self, run: Run) -> Run:
        """The run as it is now: of what was read before only the new rows are read, verified and folded."""
        log = await self.checkpointer.load(run.run_id, after=run.seq)
        if log is None:
            raise UnknownRun(run.run_id)
        if log.head.created_ms != run.created_ms or log.head.seq < run.seq:  # removed meanwhile, and its id used again
            return fold_log(await load_log(self.checkpointer, run.run_id))
        return fold_on(run, log)

    async def ending(self, run_id: str, after: int) -> list[Event]:
        """The last event of the rows after a seq: how a run ended. No node started just now."""
        cursor = Cursor(after, 1 << 30) if after >= 0 else None
        return [event async for event in read_events(self.checkpointer, run_id, after=cursor, acts=False)][-1:]

    async def refusal(self, run_id: str) -> RunNotClaimable:
        """Why a run cannot be driven now, and the way out."""
        log = await load_log(self.checkpointer, run_id)
        run, head = fold_log(log), log.head
        if head.status == "running" and (head.lease_until or 0) > self.checkpointer.clock.now():
            return LeaseHeld(run_id, head.owner, head.lease_until)
        return RunNotClaimable(run_id, head.status, _way_out(run, head))

    def must_fit(self, run: Run) -> None:
        """Raise `GraphChangedError` where the run stands on something that this graph does not have."""
        plan = self.plan
        reasons = [] if run.graph == plan.name else [f"it is a run of graph {run.graph!r}, and this is {plan.name!r}"]
        if run.version != plan.version and run.version not in self._migrations:
            reasons.append(
                f"it is of version {run.version!r}, this graph of {plan.version!r}, with no migration from that; "
                f"@graph.migrate({run.version!r}), which may change nothing, or run it with its own graph"
            )
        reasons += [
            f"it stands at {name!r} ({position.phase}), which this graph does not have"
            f"{did_you_mean(name, plan.nodes)}; its nodes are {', '.join(map(repr, plan.nodes))}"
            for position in run.positions.values()
            for name in (position.node, position.target)
            if name is not None and name not in plan.nodes and name != END
        ]
        values = self.brought_up(run)
        if plan.schema.kind is not None:
            reasons += plan.schema.misfits(values)
        if reasons:
            raise GraphChangedError(run.run_id, reasons)

    def brought_up(self, run: Run) -> dict[str, Any]:
        """The run's stored state as this graph's version has it."""
        return run.state if run.version == self.plan.version else applied(run.state, self._migrated(run))

    def _migrated(self, run: Run) -> Patch:
        """What the registered migrations, from the run's version on, change of its stored state."""
        versions = list(self._migrations)
        if run.version not in versions:
            return {}
        values = dict(Schema().view(run.state))
        patch: Patch = {}
        for version in versions[versions.index(run.version) :]:
            for key, value in self._migrations[version](dict(values)).items():
                if value is not DELETE:
                    check_json(value, f"$.{key}")
                patch[key] = ("delete", None) if value is DELETE else ("set", value)
            values = applied(values, patch)
        return patch

    async def _taken(self, taking: Coroutine[Any, Any, Lease | None]) -> Lease | None:
        """The lease that a verb answers. A caller that is cancelled meanwhile gives it back: nobody else knows of it."""
        task, cancelled = asyncio.ensure_future(taking), None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is None:
            return task.result()
        if task.exception() is None and (lease := task.result()) is not None:
            with suppress(CheckpointerError):  # then it is free once its lease is over
                await self.checkpointer.release(lease)
        raise cancelled

    async def _expired(self, run: Run) -> Run:
        now = self.checkpointer.clock.now()
        due = [b for b in run.boundaries.values() if b.opening.expires_at is not None and b.opening.expires_at <= now]
        if run.status != "pending" or not due:
            return run
        for boundary in due:
            await self.checkpointer.expire(run.run_id, boundary.short_id, body=boundary.decided_body())
        return fold_log(await load_log(self.checkpointer, run.run_id))


async def load_log(checkpointer: Checkpointer, run_id: str, until: int | None = None) -> Log:
    """The run's log, or `UnknownRun`."""
    log = await checkpointer.load(check_run_id(run_id), until=until)
    if log is None:
        raise UnknownRun(run_id)
    return log


def new_run_id() -> str:
    """A UUIDv7 (RFC 9562): sorts by time."""
    value = (time.time_ns() // 1_000_000 << 80) | (uuid.uuid4().int & ((1 << 80) - 1))
    value = value & ~(0xF << 76) | (0x7 << 76)
    return str(uuid.UUID(int=value & ~(0x3 << 62) | (0x2 << 62)))


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def _way_out(run: Run, head: Head) -> str:
    if head.status == "running":
        return "its driver has gone; recover it"
    if head.status == "pending":
        timer = run.timer()
        if timer is not None and not run.waiting():
            return f"it waits to run {timer.opening.node!r} again at {moment(timer.opening.expires_at or 0)}; recover it then"
        waiting = ", ".join(f"{b.id} (before {b.opening.node!r})" for b in run.waiting())
        return f"it waits for a decision of {waiting}; resume it with 'approved' or 'rejected'"
    if head.status == "failed":
        return f"retry it ({run.error})"
    if head.status in ENDED:
        return "nothing is left to do"
    return "it has not failed and nobody drives it; resume it"
