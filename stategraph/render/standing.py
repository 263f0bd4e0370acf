"""The standing of a run: its status, and where it stands, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from stategraph.plan import Plan
from stategraph.render.text import printable
from stategraph.render.trail import FINISH, Place
from stategraph.run import Position, Run

__all__ = ["headline", "standing"]


def headline(plan: Plan, run: Run) -> str:
    """The run's status and what it means here, as one clause."""
    clauses = [_clause(run, position) + _unknown(plan, position) for position in run.positions.values()]
    if run.ended:
        clauses = [f"before {_named(run.turned_down)}"] if run.status == "rejected" and run.turned_down else []
    if run.ending and not run.ended:
        clauses.append(f"asked to end ({run.ending})")
    return run.status + (f": {'; '.join(clauses)}" if clauses else "")


def standing(plan: Plan, run: Run) -> Mapping[Place, tuple[str, ...]]:
    """What is to be said at each place where the run stands."""
    if run.status == "completed":
        return {FINISH: ("completed",)}
    if run.status == "rejected" and run.turned_down:
        return {("end", run.turned_down): ("rejected here",)}
    said: dict[Place, tuple[str, ...]] = {}
    for position in run.positions.values():
        place = _place(plan, position)
        words = "cancelled here" if run.status == "cancelled" else _words(run, position, place)
        said[place] = (*said.get(place, ()), words)
    return said


def _place(plan: Plan, position: Position) -> Place:
    node = position.node
    if position.phase == "route" or (position.phase == "failed" and position.resumes == "route"):
        return ("router", node)
    unapproved = node in plan.gates and position.approved is None
    if position.phase in ("gate", "turned") or (position.phase in ("ready", "failed") and unapproved):
        return ("gate", node)
    return ("node", node)


def _clause(run: Run, position: Position) -> str:
    """What the run does or waits for at a position, as a part of the headline."""
    node = _named(position.node)
    when = "now" if run.status == "running" else "next"
    match position.phase:
        case "gate":
            return f"waits for a decision before {node}"
        case "turned":
            return f"turned down before {node}, goes to {_named(position.target)} {when}"
        case "route":
            return f"the router after {node} answers {when}"
        case "asked":
            doubt = _kind(run, position) == "in doubt"
            return f"{node} is in doubt, waits for a decision" if doubt else f"waits for an answer at {node}"
        case "timer":
            return f"{node} runs again {_due(run, position)}"
        case "failed":
            return f"the router after {node} failed" if position.resumes == "route" else f"{node} failed"
        case "ready":
            return f"{node} runs {when}" if run.status == "running" else f"waits for a driver to run {node}"


def _words(run: Run, position: Position, place: Place) -> str:
    """What is written at the place of a position."""
    when = "now" if run.status == "running" else "next"
    match position.phase:
        case "gate":
            return f"waits here: approval {position.boundary}{_votes(run, position)}"
        case "turned":
            return f"turned down, goes to {_named(position.target)} {when}"
        case "route":
            return f"answers {when}"
        case "asked":
            return f"waits here: {_kind(run, position)} {position.boundary}"
        case "timer":
            return f"waits here: runs again {_due(run, position)}"
        case "failed":
            return f"failed here: {printable(position.error or 'unknown', 100)}"
        case "ready":
            return f"{'comes here' if place[0] == 'gate' else 'runs'} {when}"


def _named(node: str | None) -> str:
    return printable(node or "", 60)


def _unknown(plan: Plan, position: Position) -> str:
    return "" if position.node in plan.nodes else " (not in this graph)"


def _kind(run: Run, position: Position) -> str:
    boundary = run.boundaries.get(position.boundary or "")
    return "in doubt" if boundary and boundary.opening.kind == "in_doubt" else "question"


def _votes(run: Run, position: Position) -> str:
    boundary = run.boundaries.get(position.boundary or "")
    needed = boundary.opening.needed if boundary else 1
    return f" ({len(boundary.voters)} of {needed} approved)" if boundary and needed > 1 else ""


def _due(run: Run, position: Position) -> str:
    boundary = run.boundaries.get(position.boundary or "")
    if boundary is None or boundary.opening.expires_at is None:
        return "later"
    return f"at {datetime.fromtimestamp(boundary.opening.expires_at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
