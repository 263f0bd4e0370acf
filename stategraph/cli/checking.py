"""Checking: every fault of a graph with its fix, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from stategraph.cli.options import Json, Traceback
from stategraph.cli.refusal import DONE, FAILED, Refused
from stategraph.cli.session import Session, carry_out
from stategraph.cli.text import counted, within
from stategraph.cli.workflow import load_workflow
from stategraph.errors import GraphError
from stategraph.plan import Plan
from stategraph.url import open_checkpointer

__all__ = ["check"]


def check(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The graph. Left out: each of [tool.stategraph] workflows.")
    ] = None,
    as_json: Json = False,
    traceback: Traceback = False,
) -> int:
    """Check a graph; every fault is told with its fix."""

    async def work(session: Session) -> int:
        files = session.settings.files() if file is None else [file]
        if not files:
            raise Refused("no workflows are listed ([tool.stategraph] workflows in a pyproject.toml); name a FILE")
        return max([_check(session, each) for each in files])

    return carry_out(Session(file=file, as_json=as_json, traceback=traceback), work)


def _check(session: Session, file: str) -> int:
    """Print what is wrong with one file's graph, or what it holds."""
    try:
        workflow = load_workflow(file, session.settings.folder if session.file is None else None)
        plan = workflow.graph(workflow.store or open_checkpointer("memory:")).plan()
    except GraphError as error:
        _tell(session, {"file": file, "faults": list(error.faults)}, _faulty(file, error.faults))
        return FAILED
    guesses = list(_guesses(plan))
    lines = [_sound(file, plan), *(f"{within(file)}: {within(guess)}" for guess in guesses)]
    _tell(session, {"file": file, "faults": [], "guesses": guesses, **_content(plan)}, lines)
    return DONE


def _guesses(plan: Plan) -> Iterator[str]:
    """What nobody has declared of where routers lead: no fault, but a picture and a typo are only as good as that."""
    for source, router in plan.routers.items():
        declare = f"say it with add_conditional_edge({source!r}, ..., [targets]) or with a Literal as its return type"
        if router.known_by == "unknown":
            yield f"nothing says where the router after {source!r} leads, so it may lead anywhere; {declare}"
        elif router.known_by == "inferred":
            found = ", ".join(map(repr, router.targets or ()))
            yield f"that the router after {source!r} leads to {found} was read from its code; {declare}"


def _tell(session: Session, record: dict[str, Any], lines: list[str]) -> None:
    """Print one graph's result."""
    if session.as_json:
        session.record(record)
    else:
        for line in lines:
            session.line(line)


def _faulty(file: str, faults: Sequence[str]) -> list[str]:
    return [*(f"{within(file)}: {within(fault)}" for fault in faults), counted(len(faults), "fault")]


def _content(plan: Plan) -> dict[str, Any]:
    return {
        "graph": plan.name,
        "version": plan.version,
        "fingerprint": plan.fingerprint,
        "nodes": list(plan.nodes),
        "gates": list(plan.gates),
    }


def _sound(file: str, plan: Plan) -> str:
    counts = (counted(len(plan.nodes), "node"), counted(len(plan.edges), "way"), counted(len(plan.gates), "gate"))
    return f"{within(file)}: {within(plan.name, 60)}, version {within(plan.version, 60)}, is sound: {', '.join(counts)}"
