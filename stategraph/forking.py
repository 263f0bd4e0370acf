"""Forking a run: a new run from any point of another's log, which inherits its state and none of its approvals."""

from __future__ import annotations

from typing import Any

from stategraph.checkpoint import Checkpointer, Opening, dump_openings
from stategraph.deciding import operating_user
from stategraph.encoding import encode
from stategraph.engine import approval
from stategraph.errors import ForkRefused, RunExists
from stategraph.patch import Patch, apply
from stategraph.plan import Plan
from stategraph.run import Phase, Run

__all__ = ["fork"]


async def fork(
    plan: Plan, checkpointer: Checkpointer, source: Run, new_run_id: str, patch: Patch, by: str | None = None
) -> None:
    """Create a run that stands where `source` stands; every gate it stands at is asked again, failures are released."""
    if not source.positions:
        raise ForkRefused(source.run_id, source.seq, "the run has reached END there; fork from an earlier checkpoint")
    state = dict(source.state)
    apply(state, patch)
    opens = _release(plan, checkpointer, source, new_run_id, state)
    parent = f"{source.run_id}@{source.seq}"
    source.secrets = sorted({*source.secrets, *plan.schema.secrets})
    content: dict[str, Any] = {
        **source.content(),
        "state": state,
        "seq": -1,
        "status": "ready",
        "positions": [position._asdict() for position in source.positions.values()],
        "boundaries": [],
        "error": None,
        "ending": None,
        "turned_down": None,
        "epoch": 0,
        "parent": parent,
        "version": plan.version,
        "fingerprint": plan.fingerprint,
    }
    body = {
        "graph": plan.name,
        "version": plan.version,
        "fingerprint": plan.fingerprint,
        "max_steps": source.max_steps,
        "parent": parent,
        "fold": content,
    }
    created = await checkpointer.create(
        new_run_id,
        graph=plan.name,
        fingerprint=plan.fingerprint,
        creator=by or operating_user(),
        parent=parent,
        status="pending" if opens else "ready",
        body=encode(body),
        opens=dump_openings(opens),
    )
    if created is None:
        raise RunExists(new_run_id)


def _release(plan: Plan, checkpointer: Checkpointer, source: Run, run_id: str, state: dict[str, Any]) -> list[Opening]:
    """Put every position back to where it may run, and list the gates that have to be asked again."""
    openings = []
    for path, position in list(source.positions.items()):
        routes = position.phase == "route" or (position.phase == "failed" and position.resumes == "route")
        phase: Phase = "route" if routes else "ready"
        source.positions[path] = position._replace(
            phase=phase, attempt=0, failures=0, boundary=None, approved=None, target=None, error=None
        )
        gate = plan.gates.get(position.node)
        if gate is not None and not routes and source.steps < source.max_steps:
            openings.append(approval(gate, run_id, path, position.step, state, checkpointer.clock.now()))
    return openings
