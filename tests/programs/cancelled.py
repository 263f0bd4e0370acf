"""Cancels a call at some of its suspensions."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Coroutine, Generator
from typing import Any


class CancelledAt:
    """Awaits something, and cancels the task that does so at some of its suspensions."""

    def __init__(self, awaited: Coroutine[Any, Any, Any], fatal: Container[int]) -> None:
        self.awaited = awaited
        self.fatal = fatal
        self.count = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self.awaited.__await__()
        thrown: BaseException | None = None
        while True:
            try:
                waited_for = inner.send(None) if thrown is None else inner.throw(thrown)
            except StopIteration as done:
                return done.value
            self.count += 1
            if self.count in self.fatal:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            thrown = None
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001  # it is the coroutine's, and handed on to it
                thrown = error


async def interrupted_at(call: Coroutine[Any, Any, Any], fatal: int, times: int) -> bool:
    """Cancel the call at a suspension, and at those that follow; whether it had so many."""
    cancelled = CancelledAt(call, range(fatal, fatal + times))

    async def task() -> None:
        await cancelled

    try:
        await asyncio.create_task(task())
    except asyncio.CancelledError:
        return True
    assert cancelled.count < fatal, "the cancellation was swallowed"
    return False
