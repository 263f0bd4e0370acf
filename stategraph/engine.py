"""The one loop: fold -> runnable position -> execute -> append one checkpoint -> fold.

Its unit is `advance`: exactly one visit, recorded once; a visit that is done already is a no-op.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
import uuid
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from stategraph import patch as patches
from stategraph.checkpoint import (
    Checkpoint,
    Checkpointer,
    Entry,
    Lease,
    Opening,
    Policy,
    Status,
    dump_openings,
)
from stategraph.context import Context, effect_key, running_context
from stategraph.encoding import check_json, decode, digest_of, encode
from stategraph.errors import (
    CheckpointerError,
    DeltaError,
    LeaseLost,
    PoisonedRun,
    StateError,
    StepBudgetExhausted,
    shortened,
)
from stategraph.events import Custom, Event, NodeStart, Token
from stategraph.gate import Gate
from stategraph.heart import renewed
from stategraph.node import Node
from stategraph.patch import DELETE, Patch
from stategraph.plan import END, Plan
from stategraph.run import Position, Run
from stategraph.story import tell

__all__ = ["Engine"]

#: A run that so many drivers claimed and left without a row is failed instead of executed.
CLAIMS_WITHOUT_PROGRESS = 10
#: Below this many bytes of patches a snapshot saves nothing.
SMALLEST_SNAPSHOT = 64 * 1024


class _InDoubt(Exception):
    """An effect's intent is somebody else's and has no outcome."""

    def __init__(self, key: str) -> None:
        self.key = key


class Engine:
    """Drives one leased run from where its fold says it stands until it rests."""

    def __init__(
        self,
        plan: Plan,
        checkpointer: Checkpointer,
        run: Run,
        lease: Lease,
        lease_ms: int,
        told: Callable[[Event], None],
        weight: tuple[int, int] = (0, 0),
    ) -> None:
        self.plan = plan
        self.checkpointer = checkpointer
        self.run = run
        self.lease = lease
        self.told = told
        #: What failed the run, as the node raised it.
        self.failure: Exception | None = None
        self._lease_ms = lease_ms
        #: Bytes of patches since the last snapshot, and of that snapshot.
        self._since, self._weight = weight
        self._task: asyncio.Task[Any] | None = None
        self._emits: list[dict[str, Any]] = []
        #: Why the node in flight must not be recorded: it asked and waits, or the run is not ours or ours to go on with.
        self._halted: BaseException | None = None
        #: The halt is an answer that the log has, no error.
        self._quiet = False
        #: A cancellation that came while a thread was at work, which cannot be stopped.
        self._cancelled: asyncio.CancelledError | None = None
        self._news = asyncio.Event()
        self._breath = time.monotonic()

    # -- the loop

    async def drive(self) -> None:
        """Advance the run until it rests; an interruption of any kind releases it, `ready` to be continued."""
        self._task = asyncio.current_task()
        try:
            with renewed(self.checkpointer, self.lease, self._lease_ms, self._hear):
                await self._loop()
        except BaseException as error:
            await self._release()
            lost = isinstance(error, asyncio.CancelledError) and isinstance(self._halted, LeaseLost)
            if lost and self._task is not None and self._task.uncancel() == 0:  # the heart's doing, between two nodes
                raise self._halted from None  # type: ignore[misc]  # a LeaseLost: `lost` says so
            raise

    async def _loop(self) -> None:
        run = self.run
        while run.status == "running":
            await self._breathe()
            runnable = run.runnable()
            if runnable:
                await self.advance(runnable[0])
                if self._cancelled is not None:
                    raise self._cancelled
            elif run.timer() and not run.ending and run.resting() == "pending":
                await self._wait_for_timer()
            else:
                await self._settle(run.resting())

    async def advance(self, position: Position) -> None:
        """Execute exactly one visit and append its checkpoint. The only place from which a node is started."""
        gate = self.plan.gates.get(position.node)
        claims = self.lease.epoch - self.run.epoch
        if position.phase == "turned":
            await self._turn(position)
        elif claims > CLAIMS_WITHOUT_PROGRESS:
            await self._fail(position, PoisonedRun(self.run.run_id, position.node, claims - 1), "driver")
        elif position.phase == "route":
            await self._route(position)
        elif self.run.steps >= self.run.max_steps:
            await self._fail(position, StepBudgetExhausted(position.node, self.run.max_steps), "budget")
        elif gate is not None and position.approved is None:  # no node runs without an approval of this very visit
            await self._ask_approval(position, gate)
        else:
            await self._execute(position, self.plan.nodes[position.node])

    # -- one visit

    async def _execute(self, position: Position, node: Node) -> None:
        run, started = self.run, self.checkpointer.clock.now()
        context = Context(
            run.run_id, position.path, position.step, node.name, position.attempt, self.checkpointer.clock, self
        )
        self._emits, self._halted = [], None
        self._tell_live(NodeStart, node.name, {}, position.path)
        clock, patch = time.perf_counter(), Patch()
        try:
            stored = await self._delta(node, context)
            patch = self.plan.schema.patch(stored, run.state, node.name)
        except _InDoubt as doubt:
            return await self._ask_doubt(context, doubt.key)
        except asyncio.CancelledError:
            if self._halted is None:
                raise
        except Exception as error:  # noqa: BLE001  # a node's own failure, whatever it is
            if self._halted is None:
                return await self._fail(position, error, "node", started)
        if self._halted is not None:  # even where user code swallowed what stopped it: nothing of it is recorded
            return self._unhalt()
        duration = time.perf_counter() - clock
        body = {"node": node.name, **patches.dump(patch)}
        elapsed = round(duration * 1000)
        if self._emits:
            body["emits"] = self._emits
        try:
            target = self.plan.route(node.name, run.state, patch)
        except Exception as error:  # noqa: BLE001  # a router's own failure
            await self._keep_and_fail(position, {**body, "phase": "route", "ms": elapsed}, error)
        else:
            await self._leave(position, "node", {**body, "at": target, "ms": elapsed}, patch)
        if not (node.is_async or node.blocking) and duration * 3000 > self._lease_ms:
            warnings.warn(
                f"node {node.name!r} blocked the event loop for {duration:.1f} s; declare it with blocking=True",
                RuntimeWarning,
                stacklevel=2,
            )

    async def _delta(self, node: Node, context: Context) -> Mapping[str, Any]:
        """What the node returns, in stored form."""
        if not node.irreversible:
            return self._stored(node, await self._call(node, context))
        key = effect_key(context.run_id, context.path, context.step, context.node, "irreversible")

        async def once() -> dict[str, Any]:
            stored = self._stored(node, await self._call(node, context))
            kept = {name: value for name, value in stored.items() if value is not DELETE}
            return {"result": kept, "delete": [name for name in stored if name not in kept]}

        outcome = await self._effect(context, key, once, "ask")
        return {**(outcome["result"] or {}), **dict.fromkeys(outcome.get("delete", ()), DELETE)}

    def _stored(self, node: Node, delta: Any) -> Mapping[str, Any]:
        if delta is None:
            return {}
        if not isinstance(delta, Mapping):
            raise DeltaError(node.name, delta)
        return self.plan.schema.delta(delta, node.name)

    async def _call(self, node: Node, context: Context) -> Any:
        view = self.plan.schema.view(self.run.state)
        arguments = (view, context) if node.takes_context else (view,)
        token = running_context.set(context)
        try:
            if node.blocking:
                return await self._in_thread(node, arguments)
            returned = node.function(*arguments)
            if not inspect.isawaitable(returned):
                return returned
            if node.timeout is None:
                return await returned
            async with asyncio.timeout(node.timeout):
                return await returned
        finally:
            running_context.reset(token)

    async def _in_thread(self, node: Node, arguments: tuple[Any, ...]) -> Any:
        """A thread cannot be stopped: a cancelled driver waits for it, one whose node is out of time leaves it behind."""
        copied = contextvars.copy_context()
        call = asyncio.get_running_loop().run_in_executor(None, lambda: copied.run(node.function, *arguments))
        cancelled: asyncio.CancelledError | None = None
        while not call.done():
            try:
                await asyncio.wait({call}, timeout=node.timeout)
            except asyncio.CancelledError as error:
                cancelled = error
                continue
            if not call.done():
                call.add_done_callback(lambda late: late.cancelled() or late.exception())
                raise TimeoutError(f"node {node.name!r} ran longer than {node.timeout} s; its thread goes on, unheard")
        self._cancelled = cancelled  # the work is done: it is recorded before the driver stops
        return call.result()

    async def _leave(self, position: Position, kind: Any, body: dict[str, Any], patch: Patch) -> None:
        """Append the row that completes the visit, with the boundary at the next node if a gate stands there."""
        target = body["at"]
        gate = self.plan.gates.get(target)
        spent = self.run.steps + (kind == "node") >= self.run.max_steps
        opens, status = None, "completed" if target == END else "running"
        if gate is not None and not spent:  # a spent budget fails the next position; its gate opens after a retry
            after = dict(self.run.state)
            patches.apply(
                after,
                {
                    k: (o, v) if o in ("set", "delete") else ("set", _grown(after.get(k), o, v))
                    for k, (o, v) in patch.items()
                },
            )
            opens, status = self._opening(gate, position.path, position.step + 1, after), "pending"
        entry = Entry(kind, position.path, position.step, position.attempt, status, encode(body), opens)  # type: ignore[arg-type]
        await self._append(entry)

    async def _route(self, position: Position) -> None:
        try:
            target = self.plan.route(position.node, self.run.state)
        except Exception as error:  # noqa: BLE001  # a router's own failure
            return await self._fail(position, error, "route")
        await self._leave(position, "route", {"node": position.node, "at": target}, {})

    async def _turn(self, position: Position) -> None:
        assert position.target is not None
        await self._leave(position, "route", {"node": position.node, "at": position.target}, {})

    # -- failures

    async def _keep_and_fail(self, position: Position, body: dict[str, Any], error: Exception) -> None:
        """The node's work is kept, its router's failure is the next step's: both rows in one transaction."""
        done = Entry("node", position.path, position.step, position.attempt, "running", encode(body))
        failed = {"node": position.node, "error": _told(error), "phase": "route"}
        self.failure = error
        await self._append(done, Entry("failed", position.path, position.step + 1, 0, "failed", encode(failed)))

    async def _fail(self, position: Position, error: Exception, phase: str, started: int | None = None) -> None:
        body: dict[str, Any] = {"node": position.node, "error": _told(error), "phase": phase}
        if phase == "node" and started is not None:
            body["ms"] = self.checkpointer.clock.now() - started
            if self._emits:
                body["emits"] = self._emits
        opens, status = None, "failed"
        retry = self.plan.nodes[position.node].retry if phase == "node" else None
        if retry is not None and retry.allows(position.failures + 1, error):
            due = self.checkpointer.clock.now() + round(retry.delay_after(position.failures + 1) * 1000)
            timer = Opening("timer", position.path, position.step, position.node, "timer", expires_at=due)
            opens, status = dump_openings([timer]), "running"
        else:
            self.failure = error
        entry = Entry("failed", position.path, position.step, position.attempt, status, encode(body), opens)  # type: ignore[arg-type]
        await self._append(entry)

    async def _wait_for_timer(self) -> None:
        timer = self.run.timer()
        assert timer is not None
        assert timer.opening.expires_at is not None
        self._news.clear()
        sleep = asyncio.ensure_future(self.checkpointer.clock.sleep_until(timer.opening.expires_at))
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait({sleep, news}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            news.cancel()
        if not self._news.is_set():
            await self.checkpointer.expire(self.run.run_id, timer.id.rpartition(":")[2])
        await self._read()

    # -- boundaries

    def _opening(self, gate: Gate, path: str, step: int, values: Mapping[str, Any]) -> str | None:
        return dump_openings(
            [approval(self.plan, gate, self.run.run_id, path, step, values, self.checkpointer.clock.now())]
        )

    async def _ask_approval(self, position: Position, gate: Gate) -> None:
        """A gate that was not asked yet: its budget was spent, or it was added to the graph while the run waited."""
        opens = self._opening(gate, position.path, position.step, self.run.state)
        body = encode({"node": position.node})
        await self._append(Entry("asked", position.path, position.step, position.attempt, "pending", body, opens))

    async def _ask_doubt(self, context: Context, key: str) -> None:
        shown = digest_of([context.run_id, context.path, context.step, context.node, "in_doubt", key, context.attempt])
        opening = Opening("in_doubt", context.path, context.step, context.node, shown, effect=key)
        body = encode({"node": context.node, **({"emits": self._emits} if self._emits else {})})
        await self._append(
            Entry("asked", context.path, context.step, context.attempt, "pending", body, dump_openings([opening]), key)
        )

    # -- effects: what a context asks for

    async def once(self, context: Context, key: str, function: Callable[[], Any], policy: Policy) -> Any:
        """Behind `Context.once`."""
        index = effect_key(context.run_id, context.path, context.step, context.node, f"once:{key}")

        async def call() -> Any:
            result = function()
            result = await result if inspect.isawaitable(result) else result
            check_json(result, f"$.once({key!r})")
            return {"result": result}

        reason: BaseException
        try:
            try:
                return (await self._effect(context, index, call, policy, name=key))["result"]
            except _InDoubt as doubt:
                await self._ask_doubt(context, doubt.key)
                reason, self._quiet = doubt, True
        except (CheckpointerError, LeaseLost) as error:
            reason = error
        await self._halt(reason)

    async def _effect(
        self, context: Context, key: str, call: Callable[[], Any], policy: Policy, name: str | None = None
    ) -> Any:
        """The outcome of an effect, `{"result": ...}`: recorded before, given by a person, or of this very execution."""
        token = uuid.uuid4().hex
        begun = await self.checkpointer.effect_begin(
            self.lease, key, path=context.path, step=context.step, policy=policy, token=token
        )
        if begun is None:
            await self._read()
            self._quiet = self.run.ending is not None
            await self._halt(LeaseLost(context.run_id))
        if begun.outcome is not None:
            return decode(begun.outcome)
        if begun.token != token:
            raise _InDoubt(key)
        outcome = await call()
        kept = await self.checkpointer.effect_end(context.run_id, key, token, encode(outcome))
        if kept is None:  # a person was asked meanwhile, or another execution has it
            await self._halt(LeaseLost(context.run_id))
        result = outcome["result"]
        dedup_hit = isinstance(result, dict) and bool(result.get("dedup_hit"))
        if name is not None and (begun.handed_on or dedup_hit):
            self.emit(context, {"effect": name, "recovered": begun.handed_on, "provider_dedup_hit": dedup_hit})
        return decode(encode(outcome))

    async def _halt(self, reason: BaseException) -> NoReturn:
        """Stop the node in flight from inside it. A cancellation, so that `except Exception` does not swallow it."""
        self._halted = reason
        assert self._task is not None
        self._task.cancel()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("a halted node went on")

    def emit(self, context: Context, payload: dict[str, Any]) -> None:
        """Behind `Context.emit`."""
        if not isinstance(payload, dict):
            raise StateError(f"{shortened(payload)} is no mapping", "$.emit", context.node)
        check_json(payload, "$.emit")
        kept = decode(encode(payload))
        self._emits.append(kept)
        self._tell_live(Custom, context.node, decode(encode(payload)), context.path)

    def token(self, context: Context, text: str) -> None:
        """Behind `Context.token`."""
        self._tell_live(Token, context.node, {"text": str(text)}, context.path)

    # -- the log

    async def _append(self, *entries: Entry) -> None:
        run = self.run
        written = await self.checkpointer.append(self.lease, run.seq, entries, self._snapshot())
        if written is None:
            return await self._refused()
        first = written.seq - len(entries) + 1
        if first > run.seq + 1:
            await self._read(first - 1)
        for seq, entry in enumerate(entries, first):
            self._since += len(entry.body)
            status: Status = written.status if seq == written.seq else "running"
            self._take(
                Checkpoint(
                    run.run_id, seq, entry.kind, status, entry.body, written.at_ms, self.lease.epoch, entry.path,
                    entry.step, entry.attempt, entry.opens,
                )
            )  # fmt: skip

    async def _settle(self, status: Status) -> None:
        """Rest with this status, if nothing has happened that the fold has not seen."""
        body = b"{}"
        written = await self.checkpointer.settle(self.lease, self.run.seq, status, body)
        if written is None:
            return await self._refused()
        self._take(
            Checkpoint(self.run.run_id, written.seq, "settled", written.status, body, written.at_ms, self.lease.epoch)
        )

    async def migrate(self, version: str, patch: Patch) -> None:
        """Store what a migration changed, before anything runs on it."""
        body = encode({"version": version, "fingerprint": self.plan.fingerprint, **patches.dump(patch)})
        written = await self.checkpointer.settle(self.lease, self.run.seq, "running", body)
        if written is None:
            return await self._refused()
        self._take(
            Checkpoint(self.run.run_id, written.seq, "settled", "running", body, written.at_ms, self.lease.epoch)
        )

    async def _refused(self) -> None:
        """A refused row is never answered by executing again: read what is there; the lease may be another's."""
        seen = self.run.seq
        await self._read()
        head = await self.checkpointer.head(self.run.run_id)
        mine = head is not None and head.epoch == self.lease.epoch
        if not mine or self.run.seq == seen:
            raise LeaseLost(self.run.run_id, head.status if head else "deleted")

    async def _read(self, until: int | None = None) -> None:
        """Take the rows that others have written."""
        log = await self.checkpointer.load(self.run.run_id, after=self.run.seq, until=until)
        for row in log.checkpoints if log else ():
            self._take(row)

    def _take(self, row: Checkpoint) -> None:
        self.run.apply(row)
        for event in tell(self.run, row, live=True):
            self.told(event)

    def _snapshot(self) -> bytes | None:
        """The folded run, once the patches since the last snapshot outweigh it."""
        if self._since < max(self._weight, SMALLEST_SNAPSHOT):
            return None
        snapshot = self.run.snapshot()
        self._since, self._weight = 0, len(snapshot)
        return snapshot

    # -- being told, and stopping

    def _hear(self, lease: Lease | None) -> None:
        """The heart's answer: the lease, with `ending` set if the run is to end, or None if it is lost."""
        if lease is None:
            self._halted = LeaseLost(self.run.run_id)
            if self._task is not None:
                self._task.cancel()
        elif lease.ending or lease.seq > self.run.seq:
            self._news.set()

    def _unhalt(self) -> None:
        """After a node was halted: go on with what the log says now (`_quiet`), or give up with the reason."""
        halted, self._halted = self._halted, None
        assert self._task is not None
        assert halted is not None
        if self._task.uncancel() > 0:  # somebody else cancels the driver too
            raise asyncio.CancelledError
        if not self._quiet:
            raise halted
        self._quiet = False

    async def _release(self) -> None:
        """Put the run back to `ready`. Best effort: what cannot be released is free once its lease is over."""
        if self.run.status != "running":
            return
        release = asyncio.ensure_future(self.checkpointer.release(self.lease))
        while not release.done():
            try:
                await asyncio.wait({release})
            except asyncio.CancelledError:
                continue
        if release.exception() is None and release.result():
            self.run.status = "ready"

    async def _breathe(self) -> None:
        """Let others run now and then: with a store that never waits nothing else would."""
        now = time.monotonic()
        if now - self._breath > 0.005:
            self._breath = now
            await asyncio.sleep(0)

    def _tell_live(self, kind: Any, node: str, payload: dict[str, Any], path: str) -> None:
        self.told(kind(node_name=node, payload=payload, run_id=self.run.run_id, path=path))


def approval(plan: Plan, gate: Gate, run_id: str, path: str, step: int, values: Mapping[str, Any], now: int) -> Opening:
    """The boundary of one visit of a gate: its digest is over run, visit, node and the state that is shown."""
    return Opening(
        "approval",
        path,
        step,
        gate.node,
        digest_of([run_id, path, step, gate.node, None, values]),
        final=gate.on_reject is None,
        on_reject=gate.on_reject,
        on_expire=gate.on_expire,
        approvers=gate.approvers,
        expires_at=None if gate.expires_in is None else now + round(gate.expires_in * 1000),
    )


def _grown(current: Any, operation: str, value: Any) -> Any:
    return [*(current or ()), *value] if operation == "append" else {**(current or {}), **value}


def _told(error: Exception) -> dict[str, str]:
    """An error as it is stored: its type's name and its text, cut, even if the text cannot be had."""
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001  # a hostile __str__ must not replace the failure being stored
        message = f"<its text could not be had: {type(broken).__name__}>"
    return {"type": type(error).__qualname__, "message": message[:2000]}
