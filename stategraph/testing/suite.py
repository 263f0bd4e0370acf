"""What every topic of the contract stands on: how its tests are run, and what an author gives."""

from __future__ import annotations

import asyncio
import inspect
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pytest

from stategraph.checkpoint import Checkpointer
from stategraph.clock import Clock, ManualClock
from stategraph.testing import byhand

__all__ = ["Reopen", "Suite"]

#: Opens the test's folder again, beside the stores that are open or after they were closed.
Reopen: TypeAlias = Callable[[], Checkpointer]
#: What a test may ask for by name, beside pytest's own fixtures and its parameters.
GIVEN = ("store", "clock", "reopen", "folder")
#: Seconds after which a test that waits for something that never comes fails.
PATIENCE = 100


class Suite:
    """The tests of one topic, and the hooks of all of them; only `open` has to be written."""

    #: What earlier versions have stored, each a file or a folder, made by `stategraph.testing.fill`.
    golden: ClassVar[Iterable[Path]] = ()

    def open(self, folder: Path, clock: Clock) -> Checkpointer:
        """A new store on this clock; opened again on the same folder it has the same runs, if it is durable.

        Called inside an event loop, possibly in a process that was started for it: there the instance has the texts and
        numbers that fixtures have set on it, and nothing else.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must say how its store is opened: def open(self, folder, clock)"
        )

    async def untold(self, store: Checkpointer) -> object:
        """What the store keeps and no verb tells, its effects for one: a refusal must not change that either."""
        return None

    async def size(self, folder: Path) -> int | None:
        """The bytes that a closed store takes: those of the folder's files. None: it cannot be told."""
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) or None

    async def work(self, store: Checkpointer) -> int | None:
        """What the store has done since it was opened, in any unit that history could make grow: statements, pages read,
        instructions. None: it cannot be told."""
        return None

    async def make_newer(self, folder: Path) -> None:
        """Mark what a closed store has left as written by a later version; as it stands, the test is skipped."""
        pytest.skip(
            f"{type(self).__name__} does not say how a store of a later version looks: write make_newer(folder)"
        )

    async def damage(self, folder: Path) -> None:
        """Change, past a closed store, what row 1 of the run `r` says; as it stands, the test is skipped."""
        pytest.skip(
            f"{type(self).__name__} does not say how a stored row is changed past its store: write damage(folder)"
        )

    async def restore(self, golden: Path, folder: Path) -> None:
        """Lay something golden where `open` finds it: a folder's content into the folder, a file there as `runs.*`."""
        if golden.is_dir():
            shutil.copytree(golden, folder, dirs_exist_ok=True)
        else:
            shutil.copy(golden, folder / f"runs{golden.suffix}")

    # -- what the tests of all topics do

    async def everything(self, store: Checkpointer) -> list[object]:
        """All that can be read of a store, and what no verb tells."""
        return [await byhand.everything(store), await self.untold(store)]

    async def refused(self, store: Checkpointer, *calls: Awaitable[object]) -> None:
        """Each call is answered with None or False, and changes nothing that can be read."""
        try:
            for place, call in enumerate(calls):
                before = await self.everything(store)
                answer = await call
                assert answer is None or answer is False, f"call {place} was accepted: {answer}"
                assert await self.everything(store) == before, f"call {place} left a trace"
        finally:
            for call in calls:  # those after one that failed would be told as never awaited
                if inspect.iscoroutine(call):
                    call.close()

    # -- how they are run

    def __init_subclass__(cls) -> None:
        """Make every coroutine of a test a plain function that pytest runs without a plugin."""
        super().__init_subclass__()
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                setattr(cls, name, _plain(test))


def _plain(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test as pytest calls it: in an event loop of its own, with whatever it asks for by name."""
    itself, *asked = inspect.signature(test).parameters.values()
    needs = {parameter.name for parameter in asked} & {*GIVEN}
    folder = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = [parameter for parameter in asked if parameter.name not in needs]

    @wraps(test)
    def run(suite: Suite, tmp_path: Path, **given: Any) -> None:
        asyncio.run(_alone(test, suite, tmp_path, needs, given))

    run.__signature__ = inspect.Signature([itself, folder, *others])  # type: ignore[attr-defined]
    return run


async def _alone(
    test: Callable[..., Coroutine[Any, Any, None]], suite: Suite, folder: Path, needs: set[str], given: dict[str, Any]
) -> None:
    """One test: each store that is opened in it is closed in the same loop, whatever comes of it."""
    clock = ManualClock()
    async with AsyncExitStack() as opened:

        def reopen() -> Checkpointer:
            store = suite.open(folder, clock)
            opened.push_async_callback(store.close)
            return store

        offered: dict[str, Any] = {"clock": clock, "folder": folder, "reopen": reopen}
        if needs & {"store", "reopen"}:
            offered["store"] = reopen()
        if "reopen" in needs and not offered["store"].durable:
            pytest.skip(f"{type(offered['store']).__name__} is not durable: its runs are gone when it is closed")
        async with asyncio.timeout(PATIENCE):
            await test(suite, **{name: offered[name] for name in needs}, **given)
