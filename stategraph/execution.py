"""One execution of one node: the call itself, and what its context asks for while it runs."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn, Protocol, TypeVar

from stategraph.checkpoint import Checkpointer, Lease, Policy
from stategraph.context import Context, effect_key, running_context
from stategraph.deciding import IRREVERSIBLE
from stategraph.encoding import check_json, decode, encode
from stategraph.errors import CheckpointerError, DeltaError, LeaseLost, StateError, shortened
from stategraph.events import Custom, Event, NodeStart, Token
from stategraph.isolation import lend
from stategraph.node import Node
from stategraph.patch import DELETE
from stategraph.run import Position, Run
from stategraph.state import Schema

__all__ = ["Execution", "InDoubt"]

Answer = TypeVar("Answer")


class InDoubt(Exception):
    """An effect's intent is another execution's and has no outcome: a person has to be asked."""

    def __init__(self, key: str) -> None:
        self.key = key


class Driver(Protocol):
    """What an execution needs of the engine that it runs in."""

    checkpointer: Checkpointer
    lease: Lease
    run: Run
    told: Callable[[Event], None]

    async def ask_in_doubt(self, execution: Execution, key: str) -> None:
        """Append the row that asks a person about an effect."""
        ...

    async def read(self) -> None:
        """Take the rows that others have written."""
        ...


class Execution:
    """A node at work. `halted` is set when nothing of it may be recorded, whatever user code makes of it."""

    def __init__(self, driver: Driver, schema: Schema, position: Position, node: Node) -> None:
        self.driver = driver
        self.schema = schema
        self.node = node
        self._position = position
        self._context: Context | None = None
        #: What the node told with `ctx.emit`, to be kept with its row.
        self.emits: list[dict[str, Any]] = []
        self.halted: BaseException | None = None
        #: What the node has returned.
        self.returned: Any = None
        #: It was halted by what the log says now: nothing to raise, the loop goes on from there.
        self.quiet = False
        #: A cancellation that came while a thread was at work, which cannot be stopped.
        self.cancelled: asyncio.CancelledError | None = None
        #: The node's function has come to its end: whatever it left behind can tell and do nothing more.
        self._over = False
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._turns: dict[str, asyncio.Lock] | None = None

    async def start(self, *, heard: bool) -> None:
        """Tell that the node starts; `heard` lets a reader take that before the node blocks the loop."""
        self._tell(NodeStart, {})
        if heard:
            await asyncio.sleep(0)

    @property
    def context(self) -> Context:
        """What the node is handed, made for who asks."""
        if self._context is None:
            driver, at = self.driver, self._position
            self._context = Context(
                driver.run.run_id, at.path, at.step, self.node.name, at.attempt, driver.checkpointer.clock, self
            )
        return self._context

    async def delta(self) -> Mapping[str, Any]:
        """Run the node; what it returns, in stored form. Raises `InDoubt` for an irreversible one that may have run."""
        if not self.node.irreversible:
            return self._stored(await self._call())
        context = self.context
        key = effect_key(context.run_id, context.path, context.step, context.node, IRREVERSIBLE)
        outcome = await self._effect(key, self._call_for_good, "ask")
        return {**(outcome["result"] or {}), **dict.fromkeys(outcome.get("delete", ()), DELETE)}

    async def _call_for_good(self) -> dict[str, Any]:
        stored = self._stored(await self._call())
        kept = {name: value for name, value in stored.items() if value is not DELETE}
        return {"result": kept, "delete": [name for name in stored if name not in kept]}

    def _stored(self, delta: Any) -> Mapping[str, Any]:
        self.returned = delta
        if delta is None:
            return {}
        if not isinstance(delta, Mapping):
            raise DeltaError(self.node.name, delta)
        return self.schema.delta(delta, self.node.name)

    # -- calling

    async def _call(self) -> Any:
        node, view = self.node, self.schema.view(self.driver.run.state)
        taken_back = lend(view)
        arguments = (view, self.context) if node.takes_context else (view,)
        del view
        token = running_context.set(self)
        try:
            if node.blocking:
                return await self._call_in_thread(arguments)
            returned = node.function(*arguments)
            if type(returned) is dict or not inspect.isawaitable(returned):  # the first is sooner said
                return returned
            if node.timeout is None:
                return await returned
            async with asyncio.timeout(node.timeout):
                return await returned
        finally:
            self._over = True
            running_context.reset(token)
            del arguments
            taken_back()

    async def _call_in_thread(self, arguments: tuple[Any, ...]) -> Any:
        """A thread cannot be stopped: a cancelled driver waits for it, one whose node is out of time leaves it behind."""
        node, copied = self.node, contextvars.copy_context()
        call = asyncio.get_running_loop().run_in_executor(None, lambda: copied.run(node.function, *arguments))
        while not call.done():
            try:
                await asyncio.wait({call}, timeout=node.timeout)
            except asyncio.CancelledError as error:
                self.cancelled = error  # the work is waited for and recorded, then the driver stops
                continue
            if not call.done():
                call.add_done_callback(lambda late: late.cancelled() or late.exception())
                raise TimeoutError(f"node {node.name!r} ran longer than {node.timeout} s; its thread goes on, unheard")
        return call.result()

    # -- what a context asks for

    async def once(self, context: Context, key: str, function: Callable[[], Any], policy: Policy) -> Any:
        """Behind `Context.once`."""
        self._must_run()
        index = effect_key(context.run_id, context.path, context.step, context.node, f"once:{key}")

        async def call() -> dict[str, Any]:
            result = function()
            result = await result if inspect.isawaitable(result) else result
            check_json(result, f"$.once({key!r})")
            return {"result": result}

        reason: BaseException
        try:
            if self._turns is None:  # most nodes have no effects
                self._turns = defaultdict(asyncio.Lock)
            async with self._turns[index]:  # the same key side by side is one effect: the second waits for the first
                return (await self._effect(index, call, policy, name=key))["result"]
        except InDoubt as doubt:
            try:
                await self.driver.ask_in_doubt(self, doubt.key)
                reason, self.quiet = doubt, True
            except (CheckpointerError, LeaseLost) as error:
                reason = error
        await self._halt(reason)

    async def _effect(
        self, key: str, call: Callable[[], Awaitable[dict[str, Any]]], policy: Policy, name: str | None = None
    ) -> Any:
        """The outcome of an effect, `{"result": ...}`: recorded before, given by a person, or of this very execution."""
        driver, context, token = self.driver, self.context, uuid.uuid4().hex
        begun = await self._stored_or_halted(
            driver.checkpointer.effect_begin(
                driver.lease, key, path=context.path, step=context.step, policy=policy, token=token
            )
        )
        if begun is None:
            await self._stored_or_halted(driver.read())
            self.quiet = driver.run.ending is not None
            await self._halt(LeaseLost(context.run_id))
        if begun.outcome is not None:
            return decode(begun.outcome)
        if begun.token != token:
            raise InDoubt(key)
        outcome = await call()
        kept = await self._stored_or_halted(driver.checkpointer.effect_end(context.run_id, key, token, encode(outcome)))
        if kept is None:  # a person was asked meanwhile, or another execution has it
            await self._halt(LeaseLost(context.run_id))
        result = outcome["result"]
        dedup_hit = isinstance(result, dict) and bool(result.get("dedup_hit"))
        if name is not None and (begun.handed_on or dedup_hit):
            self.emit(context, {"effect": name, "recovered": begun.handed_on, "provider_dedup_hit": dedup_hit})
        return decode(encode(outcome))

    async def _stored_or_halted(self, call: Awaitable[Answer]) -> Answer:
        """What the store answers. That it could not do it is no failure of the node: the driver stops and says why."""
        try:
            return await call
        except CheckpointerError as error:
            reason = error
        await self._halt(reason)

    async def _halt(self, reason: BaseException) -> NoReturn:
        """Stop the node from inside it. A cancellation, so that `except Exception` does not swallow it."""
        if self.halted is None:  # once: two effects in doubt are one reason to stop
            self.halted = reason
            assert self._task is not None
            self._task.cancel()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("a halted node went on")

    def emit(self, context: Context, payload: dict[str, Any]) -> None:
        """Behind `Context.emit`."""
        self._must_run()
        if not isinstance(payload, dict):
            raise StateError(f"{shortened(payload)} is no mapping", "$.emit", context.node)
        check_json(payload, "$.emit")
        body = encode(payload)
        self.emits.append(decode(body))
        self._tell(Custom, decode(body))

    def token(self, context: Context, text: str) -> None:
        """Behind `Context.token`."""
        self._must_run()
        self._tell(Token, {"text": str(text)})

    def _tell(self, kind: type[NodeStart | Custom | Token], payload: dict[str, Any]) -> None:
        """Tell what happens while it happens: before its row, so without a cursor."""
        run_id, path = self.driver.run.run_id, self._position.path
        event = kind(node_name=self.node.name, payload=payload, run_id=run_id, path=path)
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # a thread: nothing of a loop's may be touched from there
            here = False
        if here:
            self.driver.told(event)
        else:
            self._loop.call_soon_threadsafe(self.driver.told, event)

    def _must_run(self) -> None:
        if self._over:
            raise RuntimeError(f"node {self.node.name!r} is over, and its context can tell and do nothing more")
