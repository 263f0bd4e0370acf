"""StateGraph: what users declare and call."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from stategraph import render
from stategraph.checkpoint import (
    ENDED,
    Boundary,
    Checkpoint,
    Checkpointer,
    Decision,
    Head,
    Log,
    check_run_id,
    dump_openings,
)
from stategraph.context import effect_key
from stategraph.deciding import check_verdict, decide, operating_user
from stategraph.encoding import check_json, encode
from stategraph.engine import Engine, approval
from stategraph.errors import (
    DeltaError,
    ForkRefused,
    GraphChangedError,
    GraphError,
    LeaseHeld,
    RunExists,
    RunNotClaimable,
    UnknownRun,
    did_you_mean,
)
from stategraph.events import Cursor, Event
from stategraph.forking import fork
from stategraph.gate import Gate
from stategraph.node import Node, NodeFunction, Retry, make_node
from stategraph.patch import DELETE, Patch, dump
from stategraph.plan import END, Declared, Plan
from stategraph.router import RouterFunction, Targets, make_router
from stategraph.run import Run, fold, fold_log
from stategraph.state import Reducer, Schema
from stategraph.story import tell
from stategraph.stream import EventBuffer, read_events, stream_events

__all__ = ["StateGraph"]

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
#: Stored values of the old version -> what it changes of them.
Migration = Callable[[dict[str, Any]], Mapping[str, Any]]


class StateGraph:
    """A workflow as a graph: nodes, edges, routers and interrupt-before points, and the calls that run it.

    `state` is a pydantic model, a dataclass or a TypedDict; without it the state is a dict of JSON values in which
    `messages` appends. `max_steps` counts node runs. `lease` (seconds) is how long a driver that died keeps its run.
    """

    def __init__(
        self,
        checkpointer: Checkpointer | None = None,
        max_steps: int = 20,
        *,
        state: type | None = None,
        name: str | None = None,
        version: str = "1",
        reducers: Mapping[str, Reducer] | None = None,
        lease: float = 30.0,
    ) -> None:
        if not isinstance(max_steps, int) or max_steps < 1:
            raise GraphError([f"max_steps={max_steps!r}: a graph needs a budget of at least one step"])
        self.name = name or "graph"
        self.version = version
        self.max_steps = max_steps
        self.schema = Schema(state, reducers)
        self._given = checkpointer
        self._private: Checkpointer | None = None
        self._lease_ms = round(lease * 1000)
        self._nodes: list[Node] = []
        self._edges: list[tuple[str, str]] = []
        self._routers: list[tuple[str, RouterFunction, Targets | None]] = []
        self._gates: list[Gate] = []
        self._entry: str | None = None
        self._migrations: dict[str, Migration] = {}
        self._plan: Plan | None = None

    # -- declaring

    def add_node(
        self,
        name: str,
        function: NodeFunction,
        *,
        retry: Retry | int | None = None,
        timeout: float | None = None,
        irreversible: bool = False,
        reads: Sequence[str] | None = None,
        writes: Sequence[str] | None = None,
        blocking: bool = False,
        tags: Sequence[str] = (),
    ) -> Self:
        """Add a node: `state -> delta` or `(state, ctx) -> delta`, sync or async; a delta is a mapping or None.

        `timeout` is seconds. `irreversible` stores an intent first and never repeats silently. `blocking` runs a sync
        function in a thread. `reads` and `writes` name state keys, for pictures and checks.
        """
        self._nodes.append(
            make_node(
                _checked_name(name),
                function,
                retry=Retry(attempts=retry) if isinstance(retry, int) else retry,
                timeout=timeout,
                irreversible=irreversible,
                reads=None if reads is None else tuple(reads),
                writes=None if writes is None else tuple(writes),
                blocking=blocking,
                tags=tuple(tags),
            )
        )
        return self._changed()

    @overload
    def node(self, function: Function, /) -> Function: ...

    @overload
    def node(self, /, *, name: str | None = None, **declared: Any) -> Callable[[Function], Function]: ...

    def node(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None, **declared: Any) -> Any:
        """`add_node` as a decorator: `@graph.node`, or `@graph.node(irreversible=True)`."""

        def add(function: Function) -> Function:
            self.add_node(name or str(getattr(function, "__name__", type(function).__name__)), function, **declared)
            return function

        return add if function is None else add(function)

    def replace_node(self, name: str, function: NodeFunction) -> Self:
        """Put another function in a node's place, for tests and faults; `KeyError` for a name that is not there."""
        for place, node in enumerate(self._nodes):
            if node.name == name:
                self._nodes[place] = make_node(name, function, **_declared(node))
                return self._changed()
        raise KeyError(f"no node {name!r} to replace{did_you_mean(name, [node.name for node in self._nodes])}")

    def set_entry_point(self, name: str) -> Self:
        """Say where a run starts."""
        self._entry = name
        return self._changed()

    def add_edge(self, source: str, target: str) -> Self:
        """Lead from one node to the next; a node without an edge leads to END."""
        self._edges.append((source, target))
        return self._changed()

    def add_conditional_edge(self, source: str, router: RouterFunction, targets: Targets | None = None) -> Self:
        """Let a function of the state choose the next node.

        Its answers come from `targets` (a list of names, or a mapping answer -> node), else from its `Literal` return
        type, else from the strings in its code that name nodes.
        """
        self._routers.append((source, router, targets))
        return self._changed()

    def add_interrupt_before(
        self,
        node: str,
        *,
        on_reject: str | None = None,
        on_expire: str | None = None,
        expires_in: float | None = None,
        approvers: Sequence[str] | None = None,
    ) -> Self:
        """Stop before a node until somebody decides; a rejection leads to `on_reject`, or ends the run.

        `expires_in` is seconds; an expiry leads to `on_expire`, else to `on_reject`, else ends the run. `approvers`
        names who may decide.
        """
        self._gates.append(
            Gate(node, on_reject, on_expire, expires_in, None if approvers is None else tuple(approvers))
        )
        return self._changed()

    def migrate(self, from_version: str) -> Callable[[Migration], Migration]:
        """Register what brings the state of runs of an older version up: stored values -> the keys that change."""

        def add(migration: Migration) -> Migration:
            self._migrations[from_version] = migration
            return migration

        return add

    def plan(self) -> Plan:
        """Check and freeze the graph; `GraphError` lists every fault with its fix."""
        if self._plan is None:
            names = [END, *(node.name for node in self._nodes)]
            self._plan = Plan(
                Declared(
                    name=self.name,
                    version=self.version,
                    max_steps=self.max_steps,
                    entry=self._entry,
                    nodes=self._nodes,
                    edges=self._edges,
                    routers=[make_router(source, router, targets, names) for source, router, targets in self._routers],
                    gates=self._gates,
                    schema=self.schema,
                    checkpointed=self._given is not None,
                )
            )
        return self._plan

    def _changed(self) -> Self:
        self._plan = None
        return self

    # -- running

    @property
    def checkpointer(self) -> Checkpointer:
        """The store; a private one in memory where none was given."""
        if self._given is not None:
            return self._given
        if self._private is None:
            from checkpointers.memory import MemoryCheckpointer  # the one store that the core falls back to

            self._private = MemoryCheckpointer()
        return self._private

    async def stream(self, state: object, run_id: str | None = None) -> AsyncGenerator[Event, None]:
        """Start a run and tell what happens, until it waits or ends.

        Raises `RunExists` for an id that is taken, `StateError` for an input that cannot be stored, and what a failing
        node raised, after its `failed` event. Closing the generator releases the run, `ready` to be continued.
        """
        engine, buffer, row = await self._start(state, run_id)
        for event in tell(engine.run, row):
            yield event
        if engine.run.status == "running":
            async with _closing(stream_events(engine, buffer)) as events:
                async for event in events:
                    yield event

    async def resume(
        self,
        run_id: str,
        decision: str | None = None,
        *,
        boundary: str | None = None,
        by: str | None = None,
        note: str | None = None,
        edit: Mapping[str, Any] | None = None,
        answer: Any = None,
        decision_id: str | None = None,
        digest: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Decide the open boundary (with a decision), then drive the run and tell what follows.

        `boundary` may be left out while exactly one is open. Raises `DecisionRefused` for a bad, stale, late or repeated
        decision, `GraphChangedError` where this graph cannot take the run on, before anything is recorded.
        """
        plan = self.plan()
        if decision is not None:
            check_verdict(run_id, decision)
        run = await self._fitting(plan, run_id)
        if decision is not None:
            await self._decide(plan, run, decision, boundary, by, note, edit, answer, decision_id, digest)
            seen = run.seq
            run = fold_log(await self._load(run_id))
            if run.ended:
                for event in await self._last_events(run_id, after=seen):
                    yield event
                return
            if decision_id is not None and run.status == "pending":
                return  # the same decision again: it was answered, and the run has gone on since
        else:
            run = await self._expired(run)
            if run.ended:
                for event in await self._last_events(run_id, after=run.seq - 1):
                    yield event
                return
        if run.status != "ready":
            raise _not_drivable(run, await self.checkpointer.head(run_id))
        async with _closing(self._continue(plan, run_id)) as events:
            async for event in events:
                yield event

    async def recover(self, run_id: str) -> AsyncGenerator[Event, None]:
        """Take over a run whose driver has gone, and tell what follows.

        Raises `LeaseHeld` while the driver's lease is not over.
        """
        plan = self.plan()
        run = await self._expired(await self._fitting(plan, run_id))
        if run.ended:
            for event in await self._last_events(run_id, after=run.seq - 1):
                yield event
            return
        async with _closing(self._continue(plan, run_id)) as events:
            async for event in events:
                yield event

    async def retry(
        self,
        run_id: str,
        patch: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        *,
        by: str | None = None,
        note: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Release a failed run's failed position, with changed state or a larger budget, and tell what follows."""
        plan = self.plan()
        run = await self._fitting(plan, run_id)
        body = {**dump(self._patch(plan, patch)), **_noted(note)}
        if max_steps is not None:
            if max_steps <= run.max_steps:
                raise ValueError(f"max_steps={max_steps}: the run has {run.max_steps} already; give it more")
            body["max_steps"] = max_steps
        act = uuid.uuid4().hex
        if await self.checkpointer.retry(run_id, actor=by or operating_user(), act=act, body=encode(body)) is None:
            raise _not_drivable(run, await self.checkpointer.head(run_id))
        async with _closing(self._continue(plan, run_id)) as events:
            async for event in events:
                yield event

    async def run(self, state: object, run_id: str | None = None) -> Run:
        """Start a run and await its end or its pause; raises what a failing node raised."""
        engine, _, _ = await self._start(state, run_id, told=_nobody)
        if engine.run.status == "running":
            await engine.drive()
        if engine.failure is not None:
            raise engine.failure
        return engine.run

    def run_sync(self, state: object, run_id: str | None = None) -> Run:
        """`run`, for callers without an event loop."""
        return _at_the_edge(self.run(state, run_id), "run(state)")

    # -- acting on a run

    async def decide(
        self,
        run_id: str,
        decision: str,
        *,
        boundary: str | None = None,
        by: str | None = None,
        note: str | None = None,
        edit: Mapping[str, Any] | None = None,
        answer: Any = None,
        decision_id: str | None = None,
        digest: str | None = None,
    ) -> Decision:
        """Record a decision; nothing runs. `digest` is that of what the person was shown."""
        check_verdict(run_id, decision)
        plan = self.plan()
        run = await self._fitting(plan, run_id)
        return await self._decide(plan, run, decision, boundary, by, note, edit, answer, decision_id, digest)

    def decide_sync(self, run_id: str, decision: str, **more: Any) -> Decision:
        """`decide`, for callers without an event loop."""
        return _at_the_edge(self.decide(run_id, decision, **more), "decide(run_id, decision)")

    async def cancel(self, run_id: str, *, by: str | None = None, note: str | None = None) -> bool:
        """End a run, or ask its driver to. False: it had ended already, or was asked before."""
        check_run_id(run_id)
        body = encode(_noted(note))
        act, actor = uuid.uuid4().hex, by or operating_user()
        if await self.checkpointer.cancel(run_id, actor=actor, act=act, body=body) is not None:
            return True
        if await self.checkpointer.head(run_id) is None:
            raise UnknownRun(run_id)
        return False

    async def fork(
        self,
        run_id: str,
        at: int | None = None,
        patch: Mapping[str, Any] | None = None,
        *,
        new_run_id: str | None = None,
        by: str | None = None,
    ) -> Run:
        """A new run from checkpoint `at` of another (its last by default); `resume` drives it. No approval is inherited."""
        plan = self.plan()
        log = await self._load(run_id, until=at)
        source = fold(run_id, log.checkpoints, log.snapshot[1] if log.snapshot else None)
        if at is not None and source.seq != at:
            raise ForkRefused(run_id, at, f"its log ends at {log.head.seq}")
        self._must_fit(plan, source)
        new_id = check_run_id(new_run_id) if new_run_id is not None else _new_run_id()
        await fork(plan, self.checkpointer, source, new_id, self._patch(plan, patch), by)
        return await self.info(new_id)

    # -- reading

    async def info(self, run_id: str) -> Run:
        """The run as it is now."""
        return fold_log(await self._load(run_id))

    async def state(self, run_id: str, at: int | None = None) -> Any:
        """The state now or after checkpoint `at`, as an instance of the schema."""
        log = await self._load(run_id, until=at)
        run = fold(run_id, log.checkpoints, log.snapshot[1] if log.snapshot else None)
        if at is not None and run.seq != at:
            raise LookupError(f"run {run_id!r} has no checkpoint {at}; its log ends at {log.head.seq}")
        return self.schema.instance(run.state)

    async def history(self, run_id: str) -> list[Checkpoint]:
        """The run's log: every checkpoint in order."""
        rows = await self.checkpointer.history(check_run_id(run_id))
        if not rows:
            raise UnknownRun(run_id)
        return rows

    async def boundaries(self, run_id: str) -> list[Boundary]:
        """The run's boundaries, open and closed, oldest first."""
        return await self.checkpointer.boundaries(check_run_id(run_id))

    def events(self, run_id: str, *, after: Cursor | None = None, follow: bool = False) -> AsyncIterator[Event]:
        """The run's durable events after a cursor, acts too, from its log; `follow` goes on until the run has ended."""
        return read_events(self.checkpointer, check_run_id(run_id), after=after, follow=follow)

    # -- drawing

    def draw(
        self, path: str | Path | None = None, *, format: str | None = None, run: Run | None = None,
        history: Sequence[Checkpoint] = (),
    ) -> str | bytes:  # fmt: skip
        """The graph, with a run's path on it if one is given, as `svg`, `png`, `dot`, `mermaid` or `table`.

        The format is that of the path's suffix (`.md` is the table), else SVG. Raises `RenderError` where nothing can draw.
        """
        drawn = render.picture(self.plan(), format or render.format_of(path), run, history)
        if path is not None:
            Path(path).write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())
        return drawn

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return render.mimebundle(self.plan())

    # -- parts

    async def _start(
        self, state: object, run_id: str | None, told: Callable[[Event], None] | None = None
    ) -> tuple[Engine, EventBuffer, Checkpoint]:
        """Row 0, the engine that holds its lease, and the buffer that it tells to."""
        plan, store = self.plan(), self.checkpointer
        run_id = check_run_id(run_id) if run_id is not None else _new_run_id()
        values = plan.schema.start(state)
        body = encode(
            {
                "graph": plan.name,
                "version": plan.version,
                "fingerprint": plan.fingerprint,
                "max_steps": plan.max_steps,
                "set": values,
                "at": plan.entry,
            }
        )
        gate, opens = plan.gates.get(plan.entry), None
        if gate is not None:
            opens = dump_openings([approval(plan, gate, run_id, "", 0, values, store.clock.now())])
        lease = await store.create(
            run_id,
            graph=plan.name,
            fingerprint=plan.fingerprint,
            creator=operating_user(),
            body=body,
            status="pending" if opens else "running",
            opens=opens,
            owner=_owner(),
            lease_ms=self._lease_ms,
        )
        if lease is None:
            head = await store.head(run_id)
            raise RunExists(run_id, head.status if head else None)
        status = "pending" if opens else "running"
        row = Checkpoint(run_id, 0, "start", status, body, store.clock.now(), opens=opens)  # type: ignore[arg-type]
        run, buffer = fold(run_id, [row]), EventBuffer()
        engine = Engine(plan, store, run, lease, self._lease_ms, told or buffer.put, (0, len(body)))
        return engine, buffer, row

    async def _continue(self, plan: Plan, run_id: str) -> AsyncGenerator[Event, None]:
        """Claim a run and drive it."""
        store = self.checkpointer
        lease = await store.claim(run_id, _owner(), self._lease_ms)
        if lease is None:
            raise _not_drivable(fold_log(await self._load(run_id)), await store.head(run_id))
        buffer = EventBuffer()
        try:
            log = await self._load(run_id)
            run = fold_log(log)
            self._must_fit(plan, run)
            engine = Engine(plan, store, run, lease, self._lease_ms, buffer.put, _weight(log))
            if run.version != plan.version:
                await engine.migrate(plan.version, self._migrated(plan, run))
        except BaseException:
            await store.release(lease)
            raise
        async with _closing(stream_events(engine, buffer)) as events:
            async for event in events:
                yield event

    async def _decide(
        self,
        plan: Plan,
        run: Run,
        decision: str,
        boundary: str | None,
        by: str | None,
        note: str | None,
        edit: Mapping[str, Any] | None,
        answer: Any,
        decision_id: str | None,
        digest: str | None,
    ) -> Decision:
        return await decide(
            self.checkpointer,
            run.run_id,
            decision,
            boundary=boundary,
            by=by,
            note=note,
            edit=self._patch(plan, edit),
            answer=self._answer(plan, run, boundary, answer),
            decision_id=decision_id,
            digest=digest,
        )

    async def _expired(self, run: Run) -> Run:
        """The run after the boundaries whose time has come were closed by the clock."""
        now = self.checkpointer.clock.now()
        due = [b for b in run.boundaries.values() if b.opening.expires_at is not None and b.opening.expires_at <= now]
        if run.status != "pending" or not due:
            return run
        for boundary in due:
            await self.checkpointer.expire(run.run_id, boundary.id.rpartition(":")[2])
        return fold_log(await self._load(run.run_id))

    async def _last_events(self, run_id: str, after: int) -> list[Event]:
        """What the rows after a seq tell, but for the acts: an ended run tells its end."""
        cursor = Cursor(after, 1 << 30) if after >= 0 else None
        return [event async for event in read_events(self.checkpointer, run_id, after=cursor, acts=False)]

    async def _load(self, run_id: str, until: int | None = None) -> Log:
        log = await self.checkpointer.load(check_run_id(run_id), until=until)
        if log is None:
            raise UnknownRun(run_id)
        return log

    async def _fitting(self, plan: Plan, run_id: str) -> Run:
        run = fold_log(await self._load(run_id))
        if not run.ended:
            self._must_fit(plan, run)
        return run

    def _must_fit(self, plan: Plan, run: Run) -> None:
        """Raise `GraphChangedError` where the run stands on something that this graph does not have."""
        reasons = []
        if run.graph != plan.name:
            reasons.append(f"it is a run of graph {run.graph!r}, and this is {plan.name!r}")
        reasons += [
            f"it stands at {name!r} ({position.phase}), which this graph does not have"
            f"{did_you_mean(name, plan.nodes)}; its nodes are {', '.join(map(repr, plan.nodes))}"
            for position in run.positions.values()
            for name in (position.node, position.target)
            if name is not None and name not in plan.nodes and name != END
        ]
        if plan.schema.kind is not None:
            values = dict(run.state)
            if run.version != plan.version:
                for key, (operation, value) in self._migrated(plan, run).items():
                    values.pop(key, None) if operation == "delete" else values.update({key: value})
            reasons += plan.schema.misfits(values)
        if reasons:
            raise GraphChangedError(run.run_id, reasons)

    def _migrated(self, plan: Plan, run: Run) -> Patch:
        """What the registered migrations, from the run's version on, change of its state."""
        versions = list(self._migrations)
        if run.version not in versions:
            return {}
        values = plan.schema.view(run.state) if plan.schema.kind is None else Schema().view(run.state)
        patch: Patch = {}
        for version in versions[versions.index(run.version) :]:
            for key, value in self._migrations[version](dict(values)).items():
                patch[key] = ("delete", None) if value is DELETE else ("set", value)
                values.pop(key, None) if value is DELETE else values.update({key: value})
        return patch

    @staticmethod
    def _answer(plan: Plan, run: Run, boundary: str | None, answer: Any) -> Any:
        """What a person says that an effect in doubt gave, in stored form: an irreversible node's is its delta."""
        for waiting in run.waiting():
            opening = waiting.opening
            if opening.kind != "in_doubt" or boundary not in (None, waiting.id, waiting.id.rpartition(":")[2]):
                continue
            if opening.effect == effect_key(run.run_id, opening.path, opening.step, opening.node, "irreversible"):
                if not isinstance(answer, Mapping | None):
                    raise DeltaError(opening.node, answer)
                return plan.schema.delta(answer or {}, opening.node)
        check_json(answer, "$.answer")
        return answer

    @staticmethod
    def _patch(plan: Plan, delta: Mapping[str, Any] | None) -> Patch:
        """A person's change of the state: each key replaced, validated like a node's."""
        stored = plan.schema.delta(delta or {}, None)
        return {key: ("delete", None) if value is DELETE else ("set", value) for key, value in stored.items()}


class _closing:
    """Close an async generator at the end of the block, whatever ends it."""

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncGenerator[Event, None]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        await self._events.aclose()


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable() or name == END:
        raise GraphError([f"{name!r:.60} is no name for a node; use 1 to 200 printable characters other than {END!r}"])
    return name


def _declared(node: Node) -> dict[str, Any]:
    return {
        "retry": node.retry, "timeout": node.timeout, "irreversible": node.irreversible, "reads": node.reads,
        "writes": node.writes, "blocking": node.blocking, "tags": node.tags,
    }  # fmt: skip


def _noted(note: str | None) -> dict[str, Any]:
    return {} if note is None else {"note": note}


def _weight(log: Log) -> tuple[int, int]:
    """Bytes of the patches since the last snapshot, and of that snapshot (or of the start)."""
    rows = log.checkpoints if log.snapshot else log.checkpoints[1:]
    return sum(len(row.body) for row in rows), len(log.snapshot[1] if log.snapshot else log.checkpoints[0].body)


def _nobody(event: Event) -> None:
    """Who hears the events of `run`."""


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def _new_run_id() -> str:
    """A UUIDv7 (RFC 9562): sorts by time."""
    value = (time.time_ns() // 1_000_000 << 80) | (uuid.uuid4().int & ((1 << 80) - 1))
    value = value & ~(0xF << 76) | (0x7 << 76)
    return str(uuid.UUID(int=value & ~(0x3 << 62) | (0x2 << 62)))


def _not_drivable(run: Run, head: Head | None) -> RunNotClaimable:
    """Why a run cannot be driven now, and the way out."""
    if head is not None and head.status == "running":
        return LeaseHeld(run.run_id, head.owner, head.lease_until)
    if run.status == "pending":
        waiting = ", ".join(f"{boundary.id} ({boundary.opening.node})" for boundary in run.waiting())
        way_out = f"it waits for a decision of {waiting}"
    elif run.status == "failed":
        way_out = f"retry it ({run.error})"
    elif run.status in ENDED:
        way_out = "nothing is left to do"
    else:
        way_out = "it is neither failed nor held; resume it"
    return RunNotClaimable(run.run_id, run.status, way_out)


def _at_the_edge(call: Coroutine[Any, Any, Result], instead: str) -> Result:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    call.close()
    raise RuntimeError(f"an event loop is running here; await graph.{instead} instead")
