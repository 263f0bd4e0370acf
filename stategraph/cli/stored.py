"""A stored run as commands find it: by its id; its graph by FILE, or by name among the project's workflows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from stategraph.checkpoint import Checkpointer, Head, check_run_id
from stategraph.cli.catalogue import Catalogue
from stategraph.cli.refusal import USAGE, Refused
from stategraph.cli.session import Session
from stategraph.cli.workflow import Workflow, load_workflow
from stategraph.errors import did_you_mean
from stategraph.graph import StateGraph

__all__ = ["Stored", "known_head", "started", "stored_run"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A run that is in the store, and its graph if that was found."""

    store: Checkpointer
    head: Head
    graph: StateGraph | None
    #: Why there is no graph.
    missing: str = ""

    def needed_graph(self, otherwise: str = "name the file of its graph with --file FILE") -> StateGraph:
        """The graph, for what cannot be done without it."""
        if self.graph is None:
            raise Refused(f"{self.missing}; {otherwise}")
        return self.graph


@asynccontextmanager
async def started(session: Session, file: str) -> AsyncIterator[StateGraph]:
    """The graph of a FILE around the store, for a run that is to be started; a graph in memory stays there."""
    workflow = load_workflow(file)
    if session.store is not None and workflow.store is not None:
        raise _has_a_store(workflow)
    async with workflow.store or session.open(new=True) as store:
        yield workflow.graph(store)


@asynccontextmanager
async def stored_run(session: Session, run_id: str) -> AsyncIterator[Stored]:
    """A run of the store, with its graph if it can be found."""
    check_run_id(run_id)
    workflow = load_workflow(session.file) if session.file is not None else None
    own = workflow.store if workflow else None
    if workflow and own and (session.store is not None or not own.durable):
        raise _has_a_store(workflow)
    async with own or session.open() as store:
        head = await known_head(session, store, run_id)
        if workflow:
            yield Stored(store, head, workflow.graph(store))
        else:
            catalogue = Catalogue(session.settings)
            graph = catalogue.find(head, store)
            yield Stored(store, head, graph, "" if graph else catalogue.missing(head.graph))


async def known_head(session: Session, store: Checkpointer, run_id: str) -> Head:
    """The run's row; `Refused` names the likely typo."""
    head = await store.head(check_run_id(run_id))
    if head is None:
        known = [other.run_id for other in await store.runs(limit=200)]
        hint = did_you_mean(run_id, known) or f"; list its runs with: {session.command('runs')}"
        raise Refused(f"no run {run_id!r} in this store{hint}", USAGE, "UnknownRun")
    return head


def _has_a_store(workflow: Workflow) -> Refused:
    """A graph that was built without `build(checkpointer)` stays with what it was built with."""
    if workflow.store is not None and workflow.store.durable:
        return Refused(f"{workflow.file}: {workflow.name} was built with a store of its own; leave out --store")
    return Refused(
        f"{workflow.file}: {workflow.name} was built without a checkpointer, so its runs are kept nowhere; "
        f"write `def build(checkpointer)` that returns StateGraph(checkpointer)"
    )
