"""A reader of a run: live beside its engine, or from the log; each durable event once, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from stategraph.checkpoint import Checkpoint, Checkpointer, Log
from stategraph.engine import Engine
from stategraph.errors import UnknownRun
from stategraph.events import ACTS, Cursor, Custom, Event, NodeStart, Token
from stategraph.run import Run, fold
from stategraph.story import tell

__all__ = ["EventBuffer", "closing", "read_events", "stream_events"]

#: How many events wait for a reader that is slower than its run; after that it reads from the log.
LIMIT = 1000
#: How many checkpoints a reader of the log holds at a time.
PAGE = 1000
#: How often a follower of another process's run looks at its log, in seconds.
POLL = 0.1


class EventBuffer:
    """What the engine tells and its reader has not taken yet. A full buffer is emptied: the log has it all."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        self.behind = False
        #: Told live since the last durable event while the reader is behind.
        self._recent: list[Event] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, event: Event) -> None:
        """Behind `Engine.told`. What a node tells while it runs is in no log yet, so it is never dropped for want of room."""
        live = event.seq is None
        if not self.behind and (len(self.events) < LIMIT or (live and type(event) is not Token)):
            self.events.append(event)
        elif not live:
            self.behind = True
            self.events.clear()
            self._recent.clear()
        elif type(event) is not Token:
            self._recent.append(event)
        self.wake()

    def catch_up(self) -> None:
        """The reader has everything durable: go on live."""
        self.behind = False
        self.events.extend(self._recent)
        self._recent.clear()

    def wake(self, _: Any = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Return when something was put."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


class closing:  # reads as what it does, like contextlib's
    """Close an async generator at the end of the block, whatever ends it."""

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncGenerator[Event, None]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        await self._events.aclose()


async def stream_events(
    engine: Engine, buffer: EventBuffer, start: Checkpoint | None = None
) -> AsyncGenerator[Event, None]:
    """Run the engine as a task of its own and yield what it tells; closing the generator stops and releases the run.

    `start` is a new run's first row, which is told first.
    """
    for event in tell(engine.run, start) if start else ():
        buffer.put(event)
    cursor, ahead = Cursor(engine.run.seq, LIMIT), 0  # ahead: told live since the last that has a cursor
    task = asyncio.create_task(engine.drive())
    task.add_done_callback(buffer.wake)
    try:
        while True:
            while buffer.events:
                event = buffer.events.popleft()
                if place := event.cursor:
                    cursor, ahead = place, 0
                elif type(event) is not Token:
                    ahead += 1
                yield event
            if buffer.behind:
                seen = engine.run.seq  # and no further: the log may have a row that the engine has not told of yet
                missed = read_events(engine.checkpointer, engine.run.run_id, after=cursor, acts=False, until=seen)
                async for event in missed:
                    cursor = event.cursor or cursor
                    if ahead and type(event) in (NodeStart, Custom):  # its row tells again what was told live
                        ahead -= 1
                        continue
                    ahead = 0
                    yield event
                if engine.run.seq == seen:  # nothing was written meanwhile
                    buffer.catch_up()
            elif task.done():
                break
            elif not buffer.events:
                await buffer.wait()
        await task
        if engine.failure is not None:
            raise engine.failure
    finally:
        await _stopped(task)


async def _stopped(task: asyncio.Task[None]) -> None:
    """Cancel the engine and wait until it has released its run, however often the reader itself is cancelled."""
    task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.cancelled():
        task.exception()  # seen: it was raised above, or its reader is gone
    if cancelled is not None:
        raise cancelled


async def read_events(
    checkpointer: Checkpointer,
    run_id: str,
    *,
    after: Cursor | None = None,
    acts: bool = True,
    follow: bool = False,
    until: int | None = None,
) -> AsyncIterator[Event]:
    """The durable events of a run after a cursor, from its log up to a seq; `follow` goes on until the run has ended.

    Raises `UnknownRun`, and `CorruptCheckpoint` where the log breaks.
    """
    run = await _run_before(checkpointer, run_id, after)
    while True:
        limit = PAGE if until is None else min(PAGE, until - run.seq)
        rows = await checkpointer.history(run_id, after=run.seq, limit=limit)
        for row in rows:
            run.apply(row)
            for event in tell(run, row):
                fresh = after is None or (event.cursor is not None and event.cursor > after)
                if fresh and (acts or type(event) not in ACTS):
                    yield event
        if len(rows) == PAGE:
            continue
        if not follow or run.ended or (not rows and await checkpointer.head(run_id) is None):
            return
        if not rows:
            await asyncio.sleep(POLL)


async def _run_before(checkpointer: Checkpointer, run_id: str, after: Cursor | None) -> Run:
    """The fold just before the first row that may still have something to tell."""
    if after is None or after.seq < 1:
        if await checkpointer.head(run_id) is None:
            raise UnknownRun(run_id)
        return Run(run_id)
    log = await checkpointer.load(run_id, until=after.seq - 1)
    if log is None:
        raise UnknownRun(run_id)
    return _folded(log)


def _folded(log: Log) -> Run:
    return fold(log.head.run_id, log.checkpoints, log.snapshot[1] if log.snapshot else None)
