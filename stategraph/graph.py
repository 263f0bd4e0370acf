"""StateGraph: what users declare and call."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from stategraph.checkpoint import Boundary, Checkpoint, Checkpointer, Decision, check_run_id
from stategraph.deciding import IRREVERSIBLE, NO_ANSWER, check_texts, check_verdict, decide, operating_user
from stategraph.driver import Driver, Migration, load_log
from stategraph.driver import new_run_id as fresh_run_id
from stategraph.encoding import check_json, encode
from stategraph.errors import GraphError, UnknownRun, did_you_mean, redacted
from stategraph.events import Cursor, Event
from stategraph.forking import fork
from stategraph.gate import Gate
from stategraph.node import Node, NodeFunction, Retry, make_node
from stategraph.patch import DELETE, Patch, dump
from stategraph.plan import END, Declared, Plan
from stategraph.router import RouterFunction, Targets, make_router
from stategraph.run import Run, fold, fold_log
from stategraph.state import Reducer, Schema
from stategraph.stream import EventBuffer, closing, read_events, stream_events

__all__ = ["StateGraph"]

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


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
        secrets: Sequence[str] = (),
        lease: float = 30.0,
    ) -> None:
        if not isinstance(max_steps, int) or max_steps < 1:
            raise GraphError([f"max_steps={max_steps!r}: a graph needs a budget of at least one step"])
        if not 0.001 <= lease <= 1e9:
            raise GraphError([f"lease={lease!r}: a driver needs some time (seconds) to be thought alive"])
        if isinstance(checkpointer, str):
            url = checkpointer if ":" in checkpointer else f"sqlite:{checkpointer}"
            raise GraphError(
                [
                    f"checkpointer={redacted(checkpointer)!r} is a string; StateGraph(open_checkpointer({redacted(url)!r}))"
                ]
            )
        self.name = name or "graph"
        self.version = version
        self.max_steps = max_steps
        self.schema = Schema(state, reducers, secrets)
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
        if isinstance(approvers, str):
            raise TypeError(f"approvers={approvers!r} of the gate before {node!r} is one string; give a list of names")
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

    def parse(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The state's values from JSON ones, for `stream`, `edit=` and `patch=`: "12.50" is a Decimal where one is declared.

        Raises `StateError` with the path of a value that does not fit.
        """
        return self.schema.parse(values)

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
        buffer = EventBuffer()
        engine, row = await self._driver().start(state, run_id, buffer.put)
        async with closing(stream_events(engine, buffer, row)) as events:
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
        answer: Any = NO_ANSWER,
        decision_id: str | None = None,
        digest: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Decide the open boundary (with a decision), then drive the run and tell what follows.

        `boundary` may be left out while exactly one is open. Raises `DecisionRefused` for a bad, stale, late or repeated
        decision, `GraphChangedError` where this graph cannot take the run on, before anything is recorded.
        """
        driver = self._driver()
        if decision is None:
            run = await driver.fitting(run_id)
            seen = run.seq - 1  # an ended run tells how it ended
        else:
            run, _ = await self._decided(
                driver, run_id, decision, boundary, by, note, edit, answer, decision_id, digest
            )
            before = run.seq
            run = await driver.caught_up(run)
            seen = min(before, run.seq - 1)
        if run.ended:
            for event in await driver.ending(run_id, after=seen):
                yield event
        elif run.status == "ready":
            async with closing(driver.go_on(run)) as events:
                async for event in events:
                    yield event
        elif (
            decision_id is None or run.status != "pending"
        ):  # a repeated decision was answered; the run waits elsewhere
            raise await driver.refusal(run_id)

    async def recover(self, run_id: str, *, patience: float | None = None) -> AsyncGenerator[Event, None]:
        """Take over a run whose driver has gone, and tell what follows; an ended run tells how it ended.

        With `patience` (seconds) a retry that is due later than that is not waited for: the run rests, `pending`, until a
        worker or `recover` goes on with it. Raises `LeaseHeld` while the driver's lease is not over.
        """
        driver = self._driver()
        run = await driver.fitting(run_id)
        if run.ended:
            for event in await driver.ending(run_id, after=run.seq - 1):
                yield event
            return
        async with closing(driver.go_on(run, patience)) as events:
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
        driver = self._driver()
        check_texts(run_id, by=by, note=note)
        run = await driver.fitting(run_id)
        body = {**dump(self._patch(patch)), **_noted(note)}
        if max_steps is not None:
            if max_steps <= run.max_steps:
                raise ValueError(f"max_steps={max_steps}: the run has {run.max_steps} already; give it more")
            body["max_steps"] = max_steps
        actor, act = operating_user() if by is None else by, uuid.uuid4().hex
        if await self.checkpointer.retry(run_id, actor=actor, act=act, body=encode(body)) is None:
            raise await driver.refusal(run_id)
        async with closing(driver.go_on(run)) as events:
            async for event in events:
                yield event

    async def run(self, state: object, run_id: str | None = None) -> Run:
        """Start a run and await its end or its pause; raises what a failing node raised."""
        engine, _ = await self._driver().start(state, run_id, _nobody)
        await engine.drive()
        if engine.failure is not None:
            raise engine.failure
        return engine.run

    async def submit(self, state: object, run_id: str | None = None) -> str:
        """Store a new run for a `Worker` to drive, and answer its id; nothing runs here.

        Raises `RunExists` for an id that is taken, `StateError` for an input that cannot be stored.
        """
        return await self._driver().submit(state, run_id)

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
        answer: Any = NO_ANSWER,
        decision_id: str | None = None,
        digest: str | None = None,
    ) -> Decision:
        """Record a decision; nothing runs. `digest` is that of what the person was shown."""
        _, decided = await self._decided(
            self._driver(), run_id, decision, boundary, by, note, edit, answer, decision_id, digest
        )
        return decided

    def decide_sync(self, run_id: str, decision: str, **more: Any) -> Decision:
        """`decide`, for callers without an event loop."""
        return _at_the_edge(self.decide(run_id, decision, **more), "decide(run_id, decision)")

    async def cancel(self, run_id: str, *, by: str | None = None, note: str | None = None) -> bool:
        """End a run, or ask its driver to. False: it had ended already, or was asked before."""
        check_run_id(run_id)
        check_texts(run_id, by=by, note=note)
        actor, act, body = operating_user() if by is None else by, uuid.uuid4().hex, encode(_noted(note))
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
        driver = self._driver()
        check_texts(run_id, by=by)
        source = await self._run_at(run_id, at)
        driver.must_fit(source)
        source.state = driver.brought_up(source)
        new_id = check_run_id(new_run_id) if new_run_id is not None else fresh_run_id()
        await fork(driver.plan, self.checkpointer, source, new_id, self._patch(patch), by)
        return await self.info(new_id)

    # -- reading

    async def info(self, run_id: str) -> Run:
        """The run as it is now."""
        return fold_log(await load_log(self.checkpointer, run_id))

    async def state(self, run_id: str, at: int | None = None) -> Any:
        """The state now or after checkpoint `at`, as an instance of the schema."""
        return self.schema.instance((await self._run_at(run_id, at)).state)

    async def history(self, run_id: str) -> list[Checkpoint]:
        """The run's log: every checkpoint in order."""
        rows = await self.checkpointer.history(check_run_id(run_id))
        if not rows:
            raise UnknownRun(run_id)
        return rows

    async def boundaries(self, run_id: str) -> list[Boundary]:
        """The run's boundaries, open and closed, oldest first."""
        found = await self.checkpointer.boundaries(check_run_id(run_id))
        if not found and await self.checkpointer.head(run_id) is None:
            raise UnknownRun(run_id)
        return found

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
        from stategraph import render  # on first use: a worker draws nothing

        drawn = render.picture(self.plan(), format or render.format_of(path), run, history)
        if path is not None:
            Path(path).write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())
        return drawn

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from stategraph import render

        return render.mimebundle(self.plan())

    # -- parts

    def _driver(self) -> Driver:
        return Driver(self.plan(), self.checkpointer, self._lease_ms, self._migrations)

    async def _run_at(self, run_id: str, at: int | None) -> Run:
        """The run as it was after checkpoint `at`."""
        log = await load_log(self.checkpointer, run_id, until=at)
        run = fold(run_id, log.checkpoints, log.snapshot[1] if log.snapshot else None)
        if at is not None and (run.seq != at or at < 0):
            raise LookupError(f"run {run_id!r} has no checkpoint {at}; its log ends at {log.head.seq}")
        return run

    async def _decided(
        self,
        driver: Driver,
        run_id: str,
        decision: str,
        boundary: str | None,
        by: str | None,
        note: str | None,
        edit: Mapping[str, Any] | None,
        answer: Any,
        decision_id: str | None,
        digest: str | None,
    ) -> tuple[Run, Decision]:
        """Decide, once it is sure that this graph can take the run on; the run before it, and the decision."""
        check_verdict(run_id, decision)
        run = await driver.fitting(run_id)
        decided = await decide(
            self.checkpointer,
            run_id,
            decision,
            boundary=boundary,
            by=by,
            note=note,
            edit=self._patch(edit),
            answer=self._answer(run, boundary, answer),
            decision_id=decision_id,
            digest=digest,
        )
        return run, decided

    def _answer(self, run: Run, boundary: str | None, answer: Any) -> Any:
        """What a person says that an effect in doubt gave, in stored form: an irreversible node's is its delta."""
        for waiting in run.waiting():
            opening = waiting.opening
            if opening.kind != "in_doubt" or boundary not in (None, waiting.id, waiting.id.rpartition(":")[2]):
                continue
            if opening.name == IRREVERSIBLE:
                if answer is NO_ANSWER or not isinstance(answer, Mapping):
                    return answer  # refused where it is decided
                return self.schema.delta(answer, opening.node)
        if answer is not NO_ANSWER:
            check_json(answer, "$.answer")
        return answer

    def _patch(self, delta: Mapping[str, Any] | None) -> Patch:
        """A person's change of the state: each key replaced, validated like a node's."""
        stored = self.schema.delta(delta or {}, None)
        return {key: ("delete", None) if value is DELETE else ("set", value) for key, value in stored.items()}


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


def _nobody(event: Event) -> None:
    """Who hears the events of `run`."""


def _at_the_edge(call: Coroutine[Any, Any, Result], instead: str) -> Result:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    call.close()
    raise RuntimeError(f"an event loop is running here; await graph.{instead} instead")
