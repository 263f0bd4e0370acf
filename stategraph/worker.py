"""A worker: finds the runs of a store that nobody drives and that can go on, and drives several of them at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from functools import partial

from stategraph.checkpoint import ENDED
from stategraph.errors import (
    CheckpointerError,
    LeaseLost,
    RunNotClaimable,
    StateGraphError,
    StoreClosed,
    StoreForeign,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from stategraph.events import Event
from stategraph.graph import StateGraph

__all__ = ["Worker"]

logger = logging.getLogger("stategraph.worker")

#: A run that raised so often without coming to rest is left alone by this worker.
TRIES = 3
#: What ails the store, and no run of it.
STORE_FAILED = (StoreClosed, StoreFull, StoreLocked, StoreReadOnly, StoreUnavailable)
#: How often (seconds) a worker that keeps runs for a time only removes those whose time is over.
PRUNED_EVERY = 600.0
#: A retry that is due later than in so many seconds does not keep a worker from driving other runs meanwhile.
PATIENCE = 5.0
#: The longest wait (seconds) between two looks at a store that cannot be reached.
LONGEST_WAIT = 30.0


class Worker:
    """Drives runs that are ready, runs whose driver has died, and runs with a boundary or a timer whose time has come.

    Any number of workers may share a store: a run is claimed by one. The graphs of a worker share one checkpointer; runs
    of other graphs are left to other workers. `told` is called with each event; what it raises is logged. With `keep`
    (seconds) `run` removes from the store, for good, the runs of any graph that ended longer ago.
    """

    def __init__(
        self,
        *graphs: StateGraph,
        concurrency: int = 10,
        keep: float | None = None,
        told: Callable[[Event], None] | None = None,
    ) -> None:
        if not graphs:
            raise ValueError("a worker without a graph has nothing to drive; give it one")
        if concurrency < 1:
            raise ValueError(f"concurrency={concurrency}: a worker drives at least one run at a time")
        if len({id(graph.checkpointer) for graph in graphs}) > 1:
            raise ValueError("the graphs of a worker share one checkpointer; make a worker for each store")
        self._graphs = {graph.name: graph for graph in graphs}
        if len(self._graphs) < len(graphs):
            raise ValueError("two graphs of this worker have the same name; give them names of their own")
        for graph in graphs:
            graph.plan()  # a faulty graph is refused before anything is claimed
        self._checkpointer = graphs[0].checkpointer
        self._concurrency = concurrency
        if keep is not None and keep < 0:
            raise ValueError(f"keep={keep}: give the seconds that an ended run is kept for")
        self._keep = keep
        self._pruned = -PRUNED_EVERY
        self._told = told
        self._working = False
        #: What is driven now, by run.
        self._driving: dict[str, asyncio.Task[None]] = {}
        #: How often a run has raised without coming to rest.
        self._failures: dict[str, int] = {}
        #: The runs that are left alone, with what they raised last.
        self.parked: dict[str, Exception] = {}
        #: Runs that were due but could not be claimed, and when (the loop's time) that was noticed.
        self._not_now: dict[str, float] = {}
        #: The runs that were due and not for this worker when it last looked: they must not hide the others.
        self._passed_over: set[str] = set()

    async def poll(self) -> int:
        """Drive what is due now, `concurrency` runs at most, until they rest; how many there were."""
        self._begin()
        try:
            started = await self._start_due()
            while self._driving:
                await asyncio.wait(self._driving.values())
        finally:
            await self._let_go()
            self._working = False
        self._not_now.clear()
        return started

    async def run(self, stop: asyncio.Event, every: float = 1.0) -> None:
        """Look for due runs every so many seconds, and whenever one has come to rest, until `stop` is set.

        Then what is being driven is released, `ready` for another worker, and this returns. A store that cannot be
        reached is tried again, ever less often; one that was closed, or is none of ours, is raised.
        """
        self._begin()
        stopping = asyncio.ensure_future(stop.wait())
        wait = every
        try:
            while not stop.is_set():
                now = asyncio.get_running_loop().time()
                self._not_now = {run_id: since for run_id, since in self._not_now.items() if now - since < every}
                try:
                    await self._start_due()
                    await self._prune(now)
                    wait = every
                except (StoreClosed, StoreForeign):  # which no waiting changes
                    raise
                except CheckpointerError as error:
                    wait = min(2 * wait, LONGEST_WAIT)
                    logger.warning("the store cannot be read (%s); the next look is in %.0f s", error, wait)
                await asyncio.wait(
                    {stopping, *self._driving.values()}, timeout=wait, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            stopping.cancel()
            await self._let_go()
            self._working = False

    def _begin(self) -> None:
        if self._working:
            raise RuntimeError("this worker is at work already: await its run or poll, or make another worker")
        self._working = True

    async def _start_due(self) -> int:
        """Start to drive due runs, oldest first, as far as there is room; how many."""
        room = self._concurrency - len(self._driving)
        if room <= 0:
            return 0
        # What is driven here, parked, or another worker's may all be due as well.
        limit = room + len(self._driving) + len(self.parked) + len(self._not_now) + len(self._passed_over)
        started, passed_over = 0, set[str]()
        while True:
            runs, boundaries = await self._checkpointer.due(limit=limit)
            for run_id in dict.fromkeys([*runs, *(boundary.rpartition(":")[0] for boundary in boundaries)]):
                if started == room:
                    break
                if run_id in self._driving or run_id in self.parked or run_id in self._not_now or run_id in passed_over:
                    continue
                head = await self._checkpointer.head(run_id)
                graph = self._graphs.get(head.graph) if head is not None and head.status not in ENDED else None
                if graph is None:
                    passed_over.add(run_id)
                    continue
                task = self._driving[run_id] = asyncio.create_task(self._drive(graph, run_id))
                task.add_done_callback(partial(self._rested, run_id))
                started += 1
            if started == room or max(len(runs), len(boundaries)) < limit:
                break
            limit *= 2  # whatever came first was not for this worker: what is may come behind it
        self._passed_over = passed_over
        return started

    async def _prune(self, now: float) -> None:
        """Remove the runs that have been kept for long enough, now and then."""
        if self._keep is not None and now - self._pruned >= PRUNED_EVERY:
            self._pruned = now
            removed = await self._checkpointer.prune(self._checkpointer.clock.now() - round(self._keep * 1000))
            if removed:
                logger.info("%d ended runs removed", removed)

    def _rested(self, run_id: str, _: asyncio.Task[None]) -> None:
        del self._driving[run_id]

    async def _drive(self, graph: StateGraph, run_id: str) -> None:
        """Drive one run until it rests. Whatever it raises is this run's affair alone."""
        try:
            async with aclosing(graph.recover(run_id, patience=PATIENCE)) as events:
                async for event in events:
                    self._tell(event)
        except STORE_FAILED as error:  # no fault of the run's, which is where it was
            logger.warning("run %s: %s", run_id, error)
            self._not_now[run_id] = asyncio.get_running_loop().time()
        except LeaseLost as lost:
            logger.warning("%s", lost)
        except RunNotClaimable:
            self._not_now[run_id] = asyncio.get_running_loop().time()  # another was faster, or it waits for a person
        except Exception as error:  # noqa: BLE001  # one bad run does not stop the others
            await self._note(graph, run_id, error)
        else:
            self._failures.pop(run_id, None)

    def _tell(self, event: Event) -> None:
        """Tell who listens. What he makes of it is no affair of the run's, which may be in the middle of a payment."""
        if self._told is None:
            return
        try:
            self._told(event)
        except Exception as error:  # noqa: BLE001  # whatever it is
            logger.error("who is told of run %s raised %s: %s", event.run_id, type(error).__name__, error)

    async def _note(self, graph: StateGraph, run_id: str, error: Exception) -> None:
        """A failed run waits for a person's retry; one that raised before it came to rest is due again at once."""
        try:
            head = await self._checkpointer.head(run_id)
            if head is not None and head.status == "failed":
                run = await graph.info(run_id)  # its stored error has no secrets in it
                logger.warning("run %s is failed: %s", run_id, run.error)
        except CheckpointerError:  # the store is what failed
            logger.warning("run %s: %s", run_id, error)
            return
        if head is None or head.status in (*ENDED, "failed"):
            self._failures.pop(run_id, None)
            return
        failures = self._failures[run_id] = self._failures.get(run_id, 0) + 1
        told = await self._without_secrets(graph, run_id, error)
        logger.warning("run %s cannot be driven (%d of %d): %s", run_id, failures, TRIES, told)
        if failures >= TRIES:
            del self._failures[run_id]
            self.parked[run_id] = error
            logger.error("run %s is left alone until this worker is started again: %s", run_id, told)

    async def _without_secrets(self, graph: StateGraph, run_id: str, error: Exception) -> str:
        """What an error says, as it may be logged: a migration, for example, may say anything."""
        try:
            return (await graph.info(run_id)).without_secrets(str(error))
        except CheckpointerError:  # it cannot be read, and the error says so
            return str(error) if isinstance(error, StateGraphError) else type(error).__name__

    async def _let_go(self) -> None:
        """Stop driving: each run is released by its engine, and that is waited for."""
        for task in self._driving.values():
            task.cancel()
        cancelled: asyncio.CancelledError | None = None
        while self._driving:
            try:
                await asyncio.wait(self._driving.values())
            except asyncio.CancelledError as error:  # once more: the store may be closed after this
                cancelled = error
        if cancelled is not None:
            raise cancelled
