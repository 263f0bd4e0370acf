"""The one loop: fold -> runnable position -> execute -> append one checkpoint -> fold.

Its unit is `advance`: exactly one visit, recorded once; a visit that is done already is a no-op.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal

from stategraph import patch as patches
from stategraph.checkpoint import Checkpoint, Checkpointer, Entry, Lease, Opening, Status, dump_openings
from stategraph.context import effect_key
from stategraph.deciding import IRREVERSIBLE
from stategraph.encoding import digest_of, encode
from stategraph.errors import DeltaError, LeaseLost, PoisonedRun, StateError, StepBudgetExhausted, shortened
from stategraph.events import ACTS, Event
from stategraph.execution import Execution, InDoubt
from stategraph.gate import Gate
from stategraph.heart import renewed
from stategraph.isolation import SCALARS
from stategraph.node import Node
from stategraph.patch import Patch
from stategraph.plan import END, Plan
from stategraph.run import MASK, Position, Run
from stategraph.story import tell

__all__ = ["Engine"]

#: A run that so many drivers claimed and left without a row is failed instead of executed.
CLAIMS_WITHOUT_PROGRESS = 10
#: Below this many bytes of patches a snapshot saves nothing.
SMALLEST_SNAPSHOT = 16 * 1024
#: How long (seconds) a driver may go without letting others run: with a store that never waits nothing else would.
BREATH = 0.005
#: A node that takes longer (seconds) is told to start before it blocks the loop.
QUICK = 0.001


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
        patience_ms: int | None = None,
    ) -> None:
        self.plan = plan
        self.checkpointer = checkpointer
        self.run = run
        self.lease = lease
        self.told = told
        #: What failed the run, as the node raised it.
        self.failure: Exception | None = None
        self._lease_ms = lease_ms
        #: How long it waits for a retry that is not due yet; None: as long as it takes.
        self._patience_ms = patience_ms
        #: Bytes of patches since the last snapshot, and of that snapshot.
        self._since, self._weight = weight
        self._task: asyncio.Task[Any] | None = None
        #: How often the task had been cancelled before it came to drive.
        self._cancels = 0
        self._execution: Execution | None = None
        #: Set when the heart has heard that the lease is another's.
        self._lost: LeaseLost | None = None
        #: The nodes that were quick when they last ran: nobody waits to hear that they start.
        self._quick: set[str] = set()
        self._news = asyncio.Event()
        self._breath = time.monotonic()

    # -- the loop

    async def drive(self) -> None:
        """Advance the run until it rests; an interruption of any kind releases it, `ready` to be continued."""
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancels = self._task.cancelling()
        try:
            with renewed(self.checkpointer, self.lease, self._lease_ms, self._hear):
                await self._loop()
        except asyncio.CancelledError:
            lost = (
                self._lost if self._lost and self._task.uncancel() == self._cancels else None
            )  # the heart's doing alone
            if lost and await self._rests():
                return
            await self._release()
            if lost:
                raise lost from None
            raise
        except BaseException:
            await self._release()
            raise
        finally:
            self._task = None  # what the heart hears from now on is nobody's business

    async def _loop(self) -> None:
        run = self.run
        while run.status == "running":
            if self._task is not None and self._task.cancelling() > self._cancels:
                raise asyncio.CancelledError  # the node before has swallowed it; what it gave is kept
            if time.monotonic() - self._breath > BREATH:
                await asyncio.sleep(0)
                self._breath = time.monotonic()
            runnable = run.runnable()
            if runnable:
                await self.advance(runnable[0])
            elif run.timer() and run.resting() == "pending" and self._waits_for_it():
                await self._wait_for_timer()
            else:
                await self._settle(run.resting(), self._rest())

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
        execution = self._execution = Execution(self, self.plan.schema, position, node)
        started, patch = time.perf_counter(), Patch()
        try:
            await execution.start(heard=node.name not in self._quick)
            stored = await execution.delta()
            patch = self.plan.schema.patch(stored, self.run.state, node.name)
        except InDoubt as doubt:
            return await self.ask_in_doubt(execution, doubt.key)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if execution.halted is None and (task is None or task.cancelling() > self._cancels):
                raise
            if execution.halted is None:
                inside = RuntimeError(
                    f"node {node.name!r} raised CancelledError, but nobody has cancelled its run; "
                    f"catch it where the inner task is awaited"
                )
                inside.__cause__ = error
                await self._fail(position, inside, "node", {"ms": _ms_since(started), **_emitted(execution)})
        except Exception as error:  # noqa: BLE001  # a node's own failure, whatever it is
            if execution.halted is None:
                await self._fail(position, error, "node", {"ms": _ms_since(started), **_emitted(execution)})
        else:
            if execution.halted is None:
                seconds = time.perf_counter() - started
                (self._quick.add if seconds < QUICK else self._quick.discard)(node.name)
                try:
                    await self._keep(position, node, patch, {**_took(seconds), **_emitted(execution)})
                except StateError as error:  # too much for one row: like any other result that cannot be stored
                    await self._fail(position, _blamed(error, patch, node.name), "node", {"ms": round(seconds * 1000)})
                self._warn_of_blocking(node, seconds)
        if execution.halted is not None:  # even where user code swallowed what stopped it: nothing of it is recorded
            self._unhalt(execution)
        if execution.cancelled is not None:
            raise execution.cancelled

    async def _keep(self, position: Position, node: Node, patch: Patch, more: dict[str, Any]) -> None:
        """Route from what the node changed, and append both; a router's failure leaves the node's work done."""
        body = {"node": node.name, **patches.dump(patch)}
        try:
            target = self.plan.route(node.name, self.run.state, patch)
        except Exception as error:  # noqa: BLE001  # a router's own failure, whatever it is
            self.failure = error
            done = {**body, "phase": "route", **more}
            failed = {
                "node": node.name,
                "error": _told(error, self.run, patches.changes(patches.dump(patch))),
                "phase": "route",
            }
            await self._append(
                Entry("node", position.path, position.step, position.attempt, "running", encode(done)),
                Entry("failed", position.path, position.step + 1, 0, "failed", encode(failed)),
            )
        else:
            await self._leave(position, "node", {**body, "at": target, **more}, patch)

    async def _leave(
        self, position: Position, kind: Literal["node", "route"], body: dict[str, Any], patch: Patch
    ) -> None:
        """Append the row that completes the visit, with the boundary at the next node if a gate stands there."""
        target = body["at"]
        gate = self.plan.gates.get(target)
        spent = self.run.steps + (kind == "node") >= self.run.max_steps
        opens: str | None = None
        status: Status = "completed" if target == END else "running"
        if gate is not None and not spent:  # a spent budget fails the next position; its gate is asked after a retry
            after = patches.applied(self.run.state, patch)
            opens, status = self._opening(gate, position.path, position.step + 1, after), "pending"
        row = Entry(kind, position.path, position.step, position.attempt, status, encode(body), opens)
        await self._append(row, content=body if _flat(patch) and "emits" not in body else None)

    async def _route(self, position: Position) -> None:
        """The node is stored, only its router is run again."""
        try:
            target = self.plan.route(position.node, self.run.state)
        except Exception as error:  # noqa: BLE001  # a router's own failure, whatever it is
            return await self._fail(position, error, "route")
        await self._leave(position, "route", {"node": position.node, "at": target}, {})

    async def _turn(self, position: Position) -> None:
        """The gate was turned down: its node does not run, the line takes the reject edge."""
        await self._leave(position, "route", {"node": position.node, "at": position.target}, {})

    # -- failures

    async def _fail(
        self, position: Position, error: Exception, phase: str, more: Mapping[str, Any] | None = None
    ) -> None:
        returned = self._execution.returned if self._execution is not None and phase == "node" else None
        told = _told(error, self.run, returned if isinstance(returned, Mapping) else {})
        body = {"node": position.node, "error": told, "phase": phase, **(more or {})}
        node = self.plan.nodes.get(position.node)
        retry, failures = node.retry if node and phase == "node" else None, position.failures + 1
        opens: str | None = None
        status: Status = "failed"
        if retry is not None and retry.allows(failures, error):
            due = self.checkpointer.clock.now() + round(retry.delay_after(failures) * 1000)
            timer = Opening("timer", position.path, position.step, position.node, "timer", expires_at=due)
            opens, status = dump_openings([timer]), "running"
        else:
            self.failure = error
        await self._append(Entry("failed", position.path, position.step, position.attempt, status, encode(body), opens))

    def _waits_for_it(self) -> bool:
        """Whether the timer that is due first is waited for here; else the run rests until its time has come."""
        timer = self.run.timer()
        assert timer is not None
        assert timer.opening.expires_at is not None
        return (
            self._patience_ms is None or timer.opening.expires_at <= self.checkpointer.clock.now() + self._patience_ms
        )

    async def _wait_for_timer(self) -> None:
        """Sleep until the timer that is due first, or until there is news of a cancel; then let the clock decide it."""
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
            await self.checkpointer.expire(self.run.run_id, timer.short_id, body=timer.decided_body())
        await self.read()

    def _warn_of_blocking(self, node: Node, seconds: float) -> None:
        if not (node.is_async or node.blocking) and seconds * 3000 > self._lease_ms:
            warnings.warn(
                f"node {node.name!r} blocked the event loop for {seconds:.1f} s; declare it with blocking=True",
                RuntimeWarning,
                stacklevel=2,
            )

    # -- boundaries

    def _opening(self, gate: Gate, path: str, step: int, values: Mapping[str, Any]) -> str | None:
        now = self.checkpointer.clock.now()
        return dump_openings([approval(gate, self.run.run_id, path, step, values, now)])

    async def _ask_approval(self, position: Position, gate: Gate) -> None:
        """A gate that was not asked yet: its budget was spent, or it was added to the graph while the run waited."""
        opens = self._opening(gate, position.path, position.step, self.run.state)
        body = encode({"node": position.node})
        await self._append(Entry("asked", position.path, position.step, position.attempt, "pending", body, opens))

    async def ask_in_doubt(self, execution: Execution, key: str) -> None:
        """Ask a person about an effect that may have happened; the execution that held its intent loses it for good."""
        visit = execution.context
        shown = digest_of([visit.run_id, visit.path, visit.step, visit.node, "in_doubt", key, visit.attempt])
        whole = key == effect_key(visit.run_id, visit.path, visit.step, visit.node, IRREVERSIBLE)
        name = IRREVERSIBLE if whole else None  # its answer is the node's delta
        opening = Opening("in_doubt", visit.path, visit.step, visit.node, shown, effect=key, name=name)
        body = encode({"node": visit.node, **_emitted(execution)})
        await self._append(
            Entry("asked", visit.path, visit.step, visit.attempt, "pending", body, dump_openings([opening]), key)
        )

    # -- the log

    async def _append(self, *entries: Entry, content: dict[str, Any] | None = None) -> None:
        """Append a visit's row (or its row and its router's failure), then take it and whatever came before it.

        `content` is what the body of a single row says, where that need not be read back from its bytes.
        """
        run = self.run
        written = await self.checkpointer.append(self.lease, run.seq, entries, self._snapshot())
        if written is None:
            return await self._refused(asked=entries[0].effect is not None)
        first = written.seq - len(entries) + 1
        if first > run.seq + 1:
            await self.read(first - 1)
        for seq, entry in enumerate(entries, first):
            self._since += len(entry.body)
            status: Status = written.status if seq == written.seq else "running"
            row = Checkpoint.of(
                run.run_id, seq, entry.kind, status, entry.body, written.at_ms, self.lease.epoch, entry.path, entry.step,
                entry.attempt, entry.opens,
            )  # fmt: skip
            if content is not None:
                row.knows(content)
            self._take(row)

    async def _settle(self, status: Status, body: bytes = b"{}") -> None:
        """A row without a visit, if nothing has happened that the fold has not seen."""
        written = await self.checkpointer.settle(self.lease, self.run.seq, status, body)
        if written is None:
            return await self._refused()
        self._take(
            Checkpoint(self.run.run_id, written.seq, "settled", written.status, body, written.at_ms, self.lease.epoch)
        )

    def _rest(self) -> bytes:
        """What a rest has to tell: that the run failed by a person's word about an effect in doubt."""
        if self.run.resting() != "failed" or self.failure is not None or self.run.position is None:
            return b"{}"
        return encode({"node": self.run.position.node, "error": {"type": "InDoubt", "message": self.run.error}})

    async def migrate(self, version: str, patch: Patch) -> None:
        """Store what a migration changed, before anything runs on it."""
        body = {"version": version, "fingerprint": self.plan.fingerprint, **patches.dump(patch)}
        if not self.plan.schema.secrets <= set(self.run.secrets):
            body["secrets"] = sorted(self.plan.schema.secrets)
        await self._settle("running", encode(body))

    async def _refused(self, asked: bool = False) -> None:
        """A refused row is never answered by executing again: read what is there; the lease may be another's.

        Nobody is asked about an effect whose outcome has come meanwhile, and no row tells of that.
        """
        seen = self.run.seq
        await self.read()
        head = await self.checkpointer.head(self.run.run_id)
        mine = head is not None and head.epoch == self.lease.epoch and head.owner in (None, self.lease.owner)
        if not mine or (self.run.seq == seen and not asked):
            raise LeaseLost(self.run.run_id, head.status if head else "deleted")

    async def read(self, until: int | None = None) -> None:
        """Take the rows that others have written."""
        log = await self.checkpointer.load(self.run.run_id, after=self.run.seq, until=until)
        for row in log.checkpoints if log else ():
            self._take(row)

    def _take(self, row: Checkpoint) -> None:
        self.run.apply(row)
        for event in tell(self.run, row, live=True):
            if type(event) not in ACTS:  # readers of the log hear of what somebody did meanwhile
                self.told(event)

    def _snapshot(self) -> bytes | None:
        """The folded run, once the patches since the last snapshot outweigh it."""
        if self._since < max(self._weight, SMALLEST_SNAPSHOT):
            return None
        try:
            snapshot = self.run.snapshot()
        except StateError:  # too large a state for one value: the log alone has to do
            self._since = 0
            return None
        self._since, self._weight = 0, len(snapshot)
        return snapshot

    # -- being told, and stopping

    def _hear(self, lease: Lease | None) -> None:
        """The heart's answer: the lease, with `ending` set if the run is to end, or None if it is lost."""
        if self._task is None:
            return
        if lease is None:
            self._lost = LeaseLost(self.run.run_id)
            if self._execution is not None:
                self._execution.halted = self._lost
            self._task.cancel()
        elif lease.ending or lease.seq > self.run.seq:
            self._news.set()

    def _unhalt(self, execution: Execution) -> None:
        """After a node was halted: go on with what the log says now (`quiet`), or give up with the reason."""
        assert self._task is not None
        assert execution.halted is not None
        if self._task.uncancel() > self._cancels:  # somebody else cancels the driver too
            raise asyncio.CancelledError
        if not execution.quiet:
            raise execution.halted

    async def _rests(self) -> bool:
        """Whether the lease is not another's but given back: the heart beat just when the run came to rest."""
        head = await self.checkpointer.head(self.run.run_id)
        if head is None or head.epoch != self.lease.epoch or head.status == "running":
            return False
        await self.read()
        return True

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


def approval(gate: Gate, run_id: str, path: str, step: int, values: Mapping[str, Any], now: int) -> Opening:
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


def _flat(patch: Patch) -> bool:
    """Whether a patch sets nothing but scalars, which nobody can change behind our back."""
    return SCALARS.issuperset([type(value) if operation == "set" else None for operation, value in patch.values()])


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


def _took(seconds: float) -> dict[str, int]:
    """The node's time in its row, unless it is none: a row is written for every step."""
    milliseconds = round(seconds * 1000)
    return {"ms": milliseconds} if milliseconds else {}


def _emitted(execution: Execution) -> dict[str, Any]:
    return {"emits": execution.emits} if execution.emits else {}


def _blamed(error: StateError, patch: Patch, node: str) -> StateError:
    """Why a node's row could not be stored, with the key to blame if it is one alone."""
    for name, (_, value) in patch.items():
        try:
            encode(value)
        except StateError as alone:
            return StateError(alone.reason, f"$.{name}", node)
    return StateError(error.reason, error.path, node)


def _told(error: Exception, run: Run, given: Mapping[str, Any]) -> dict[str, str]:
    """An error as it is stored: its type's name and its text, cut, even if the text cannot be had.

    What is secret is not told, in the run's state or in what a node was about to change of it (`given`).
    """
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001  # a hostile __str__ must not replace the failure being stored
        message = f"<its text could not be had: {type(broken).__name__}>"
    if run.secrets and isinstance(error, DeltaError):  # nobody knows which keys it should have been of
        message = message.replace(shortened(error.returned), MASK)
    return {"type": type(error).__qualname__, "message": run.without_secrets(message[:20_000], given)[:2000]}
