"""A PostgreSQL server as a store asks it: from whatever event loop, again where that is safe, many steps at once."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from concurrent.futures import Future
from random import random
from typing import Any, NamedTuple, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import asyncpg

from checkpointers.postgres_address import Address
from checkpointers.postgres_clock import ServerClock
from checkpointers.postgres_connections import Connections, OwnConnections, PooledConnections
from checkpointers.postgres_errors import UNDONE, is_lost, translated
from checkpointers.postgres_functions import SCHEMA
from checkpointers.postgres_schema import prepare
from checkpointers.postgres_watch import Watch
from stategraph.errors import StoreClosed, StoreUnavailable

__all__ = ["Answer", "Row", "Server", "Step", "call"]

Row: TypeAlias = "asyncpg.Record"
Result = TypeVar("Result")

#: A call whose connection dies is made so often again: a server that is being restarted may take one with it twice.
LOSSES = 3
#: And one that the server undoes in favour of somebody else.
ATTEMPTS = 30
#: Seconds until a server that says nothing is given up, at the latest a quarter later: longer than a lock is waited for.
PATIENCE = 30.0
#: So many appends are under way at once in a loop; what comes meanwhile goes together.
LANES = 2
#: So many appends go together at most: while the server writes them the next are computed.
GROUP = 32


def call(function: str, arguments: int) -> str:
    """The statement that calls one of our functions."""
    places = ", ".join(f"${place}" for place in range(1, arguments + 1))
    return f"SELECT * FROM {SCHEMA}.sg_{function}({places})"


class Answer(NamedTuple):
    """The rows. `repeated`: the call was made again, and the first may have been carried out."""

    rows: list[Row]
    repeated: bool


class Step(NamedTuple):
    """A driver's plain row, as the functions `step` and `steps` take it."""

    run: str
    epoch: int
    owner: str
    seen: int
    kind: str
    path: str
    step: int
    attempt: int
    status: str
    body: bytes
    seal: bytes


_STEPS = call("steps", len(Step._fields) + 1)
_STEP = _STEPS.replace("SELECT * FROM", "SELECT").replace("steps", "step")  # one text and no row: that is quicker
#: The seq of a written row and the server's time; None: it was refused.
Stepped: TypeAlias = "Sequence[int] | None"
_Waiting: TypeAlias = tuple[Step, int | None, "asyncio.Future[Stepped]"]


class Server:
    """What the loops of a process share of it.

    The loop that comes first has its connections to itself. What others ask, as the thread that renews leases does,
    goes through a thread of the store's own, which no node can block; with nothing but a pool it goes to the pool's loop.
    """

    def __init__(
        self, address: Address | None, pool: asyncpg.Pool[Any] | None, limit: int, timeout: float, clock: ServerClock
    ) -> None:
        self._address = address
        self._pool = pool
        self._limit = limit
        self._timeout = timeout
        self.clock = clock
        #: The schema is known to be there.
        self.ready = False
        self._lock = threading.Lock()
        self._process = os.getpid()
        #: The loop that comes first; with a pool the one that runs now, as the pool's connections belong to one.
        self._home = None if pool is None else _Link.here(self)
        self._side: _Side | None = None
        self._closed = False

    def __str__(self) -> str:
        return "the pool" if self._address is None else str(self._address)

    async def fetch(self, statement: str, *arguments: Any, patience: float | None = None) -> Answer:
        """The rows of a statement that is a transaction of its own, which may take so many seconds."""
        link = self._link()
        if link.loop is asyncio.get_running_loop():
            return await link.fetch(statement, *arguments, patience=patience)
        return await _elsewhere(link, link.fetch(statement, *arguments, patience=patience))

    async def fetch_in_turn(self, run_id: str, statement: str, *arguments: Any) -> Answer:
        """The same for an append: those of one run are made in the order in which they are asked for."""
        link = self._link()
        if link.loop is asyncio.get_running_loop():
            return await link.fetch_in_turn(run_id, statement, *arguments)
        return await _elsewhere(link, link.fetch_in_turn(run_id, statement, *arguments))

    async def step(self, step: Step, now: int | None) -> Stepped:
        """An append in its turn, alone or together with those of other runs."""
        link = self._link()
        if link.loop is asyncio.get_running_loop():
            return await link.step(step, now)
        return await _elsewhere(link, link.step(step, now))

    async def close(self) -> None:
        """Close the connections of every loop."""
        with self._lock:
            self._closed = True
            home, self._home, side, self._side = self._home, None, self._side, None
        if side is not None:
            await asyncio.to_thread(side.stop)
        if home is None or home.loop.is_closed():
            return
        if home.loop is asyncio.get_running_loop():
            await home.close()
        elif home.loop.is_running():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(home.close(), home.loop))

    def _link(self) -> _Link:
        """Whom to ask from the running loop."""
        loop, home = asyncio.get_running_loop(), self._home
        if self._process != os.getpid():
            raise StoreClosed(
                f"the store at {self} was opened before this process was forked; open a new one in the child"
            )
        if home is not None and home.loop is loop:
            return home
        with self._lock:
            if self._closed:
                raise StoreClosed(f"the store at {self} is closed")
            if self._home is None or (self._home.loop.is_closed() and self._pool is None):
                self._home = _Link(self, loop)
            if self._home.loop is loop:
                return self._home
            if self._address is None and self._home.loop.is_closed():
                raise StoreClosed("the event loop of the pool was closed; make another pool and a store on it")
            if self._address is None:
                return self._home
            if self._side is None:
                self._side = _Side(self)
            return self._side.link

    def connections(self, at_home: bool) -> Connections:
        """Those of a new link."""
        if at_home and self._pool is not None:
            return PooledConnections(self._pool, self._timeout)
        assert self._address is not None
        return OwnConnections(self._address, self._limit, self._timeout)

    def translated(self, error: BaseException) -> BaseException:
        """A driver's error as ours, without what may be a password or somebody's state."""
        text = str(getattr(error, "message", None) or error)
        return translated(error, str(self), self._address.scrubbed(text) if self._address else text)


class _Link:
    """One event loop's way to the server."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, at_home: bool = True) -> None:
        self.loop = loop
        self._server = server
        self._connections = server.connections(at_home)
        self._watch = Watch(PATIENCE / 4)
        self._guard: AsyncGenerator[None] | None = None
        #: Whose append is under way: the next one of the same run waits.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        #: Appends that wait for a lane, each of another run.
        self._waiting: list[_Waiting] = []
        self._lanes = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def here(cls, server: Server) -> _Link | None:
        """That of the running loop, if one runs."""
        try:
            return cls(server, asyncio.get_running_loop())
        except RuntimeError:
            return None

    async def fetch(self, statement: str, *arguments: Any, patience: float | None = None) -> Answer:
        """Ask; again if the connection dies, and while the server undoes it in favour of somebody else."""
        if self._guard is None:
            self._guard = self._until_the_loop_ends()
            await anext(self._guard)
        losses = undone = 0
        patience = patience or PATIENCE
        while True:
            connection = await self._connections.take()
            self._watch.begin(connection, patience)
            try:
                if not self._server.ready:
                    await prepare(connection)
                    self._server.ready = True
                asked = _now()
                rows = await connection.fetch(statement, *arguments)
            except Exception as error:  # noqa: BLE001  # raised again, as what it means here
                lost, in_time = is_lost(error), self._watch.end(connection)
                (self._connections.lose if lost else self._connections.give_back)(connection)
                losses, undone = losses + lost, undone + isinstance(error, UNDONE)
                again = losses <= LOSSES if lost else isinstance(error, UNDONE) and undone <= ATTEMPTS
                if not in_time:
                    raise StoreUnavailable(f"{self._server}: it has said nothing for {patience:g} s") from None
                if not again or isinstance(error, TimeoutError):
                    raise self._server.translated(error) from None
                await asyncio.sleep(0.1 * (losses - 1) if lost else random() * 0.002 * undone)
            except BaseException:  # cancelled: the server may carry it out all the same
                self._watch.end(connection)
                self._connections.drop(connection)
                raise
            else:
                self._watch.end(connection)
                self._connections.give_back(connection)
                self._hear(rows, asked)
                return Answer(rows, losses > 0)

    def _hear(self, rows: list[Row], asked: int) -> None:
        told = rows[0].get("_at_ms") if rows else None
        if told is not None:
            self._server.clock.hear(told, asked, _now())

    # -- appends

    async def fetch_in_turn(self, run_id: str, statement: str, *arguments: Any) -> Answer:
        """After the appends of the run that were asked for before."""
        async with self._turn(run_id):
            return await self.fetch(statement, *arguments)

    async def step(self, step: Step, now: int | None) -> Stepped:
        """At once while a lane is free, else with whatever else waits for one."""
        async with self._turn(step.run):
            if self._lanes >= LANES:
                answer: asyncio.Future[Stepped] = self.loop.create_future()
                self._waiting.append((step, now, answer))
                return await answer
            self._lanes += 1
            try:
                return await self._alone(step, now)
            finally:
                self._leave_lane()

    def _turn(self, run_id: str) -> asyncio.Lock:
        turn = self._turns.get(run_id)
        if turn is None:
            turn = self._turns[run_id] = asyncio.Lock()
        return turn

    def _leave_lane(self) -> None:
        if self._waiting:
            task = self.loop.create_task(self._append_waiting())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._lanes -= 1

    async def _alone(self, step: Step, now: int | None) -> Stepped:
        (told,) = (await self.fetch(_STEP, *step, now)).rows[0]
        return None if told is None else [int(number) for number in told.split()]

    async def _append_waiting(self) -> None:
        """What waits, in groups, until nothing does."""
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
                group = [waiting for waiting in group if not waiting[2].done()]  # without those that were cancelled
                try:
                    await self._append(group)
                except Exception as error:  # noqa: BLE001  # each caller raises it
                    for _, _, answer in group:
                        if not answer.done():
                            answer.set_exception(error)
        finally:
            self._lanes -= 1

    async def _append(self, group: list[_Waiting]) -> None:
        if len(group) < 2:
            return await self._append_singly(group)
        columns = map(list, zip(*(step for step, _, _ in group), strict=True))
        try:
            rows = (await self.fetch(_STEPS, *columns, group[0][1])).rows
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  # somebody's row is broken, or locked: only he shall hear of it
            return await self._append_singly(group)
        written = {row[0]: row[1:] for row in rows}
        for nth, (_, _, answer) in enumerate(group, 1):
            if not answer.done():
                answer.set_result(written.get(nth))

    async def _append_singly(self, group: list[_Waiting]) -> None:
        for step, now, answer in group:
            try:
                stepped = await self._alone(step, now)
            except Exception as error:  # noqa: BLE001  # its own caller raises it, the others are spared
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(stepped)

    # -- the end

    async def close(self) -> None:
        """Close the connections of this loop."""
        if self._guard is not None:
            await self._guard.aclose()

    async def _until_the_loop_ends(self) -> AsyncGenerator[None]:
        """What nobody closes is closed with the loop, as asyncio.run does with generators that have begun."""
        try:
            yield
        finally:
            await self._connections.close()


class _Side:
    """A thread with a loop and a link of its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._linked: Future[_Link] = Future()
        self._thread = threading.Thread(target=self._run, name="stategraph-postgres", daemon=True)
        self._thread.start()
        self.link = self._linked.result()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        self._linked.set_result(_Link(self._server, asyncio.get_running_loop(), at_home=False))
        await self._stopped.wait()

    def stop(self) -> None:
        """Close its connections and end the thread."""
        self.link.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()


async def _elsewhere(link: _Link, asking: Coroutine[Any, Any, Result]) -> Result:
    """What the link of another loop answers."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking, link.loop))


def _now() -> int:
    return time.time_ns() // 1_000_000
