"""A checkpoint told as events: one function for the live stream, for the readers of the log and for the page."""

from __future__ import annotations

from typing import Any

from stategraph import patch
from stategraph.checkpoint import Checkpoint
from stategraph.events import (
    Cancelled,
    CancelRequested,
    Completed,
    Custom,
    Decided,
    Event,
    Failed,
    Interrupted,
    NodeStart,
    Rejected,
    Retried,
    Retrying,
    Shown,
    Signalled,
    StateUpdate,
)
from stategraph.isolation import copied
from stategraph.run import OpenBoundary, Run

__all__ = ["tell"]


def tell(run: Run, row: Checkpoint, *, live: bool = False) -> list[Event]:
    """The events of a checkpoint, `run` being the fold just after it; `live` leaves out what was told while it happened."""
    story = _Story(run, row, live)
    _TELLERS[row.kind](story)
    if row.opens and not run.ending:  # a boundary of a run that is to end is withdrawn as it opens: nobody is asked
        story.interrupted()
    if row.status == "completed":
        story.add(Completed, "END", {"final_state": run.shown(run.state)})
    elif row.status == "rejected":
        story.add(Rejected, run.turned_down or "END", {})
    elif row.status == "cancelled":
        story.add(Cancelled, story.place(), {})
    return story.events


class _Story:
    """The events of one row, numbered as they are added."""

    def __init__(self, run: Run, row: Checkpoint, live: bool) -> None:
        self.run = run
        self.row = row
        self.live = live
        self.events: list[Event] = []
        self._next = 0

    def add(self, kind: Any, node: str, payload: dict[str, Any], **more: Any) -> None:
        self.events.append(
            kind(
                node_name=node,
                payload=payload,
                run_id=self.run.run_id,
                path=self.row.path or "",
                seq=self.row.seq,
                index=self._next,
                **more,
            )
        )
        self._next += 1

    def place(self) -> str:
        """Where the trunk stands."""
        return self.run.position.node if self.run.position else "END"

    def started(self) -> None:
        """The node's start and what it told while it ran."""
        body = self.row.content
        if self.live:
            self._next += 1 + len(body.get("emits", ()))
            return
        self.add(NodeStart, body["node"], {})
        for payload in body.get("emits", ()):
            self.add(Custom, body["node"], copied(payload))

    def node(self) -> None:
        self.started()
        body = self.row.content
        self.add(StateUpdate, body["node"], {"delta": self.run.shown(patch.changes(body))})

    def failed(self) -> None:
        body = self.row.content
        if body["phase"] == "node":
            self.started()
        payload = {"error": copied(body["error"]), "attempt": self.row.attempt}
        if self.row.opens:
            position = self.run.positions[self.row.path or ""]
            payload.update(failures=position.failures, due=self.row.openings[0].expires_at)
            self.add(Retrying, body["node"], payload)
        else:
            self.add(Failed, body["node"], payload)

    def decision(self) -> None:
        body = self.row.content
        if self.row.actor == ":clock" and body.get("kind") == "timer":
            return
        payload = {
            "boundary": f"{self.run.run_id}:{self.row.boundary}",
            "decision": self.row.decision,
            "by": self.row.actor,
            "note": body.get("note"),
            "edit": self.run.shown(patch.changes(body.get("edit", {}))),
        }
        self.add(Decided, body.get("node") or self.place(), payload)

    def asked(self) -> None:
        """An effect in doubt is met by a node that runs; a gate that is asked late has run none."""
        if self.row.openings[0].kind == "in_doubt":
            self.started()

    def settled(self) -> None:
        """A rest tells its status alone, but for a failure that no row of the visit has told."""
        body = self.row.content
        if "error" in body:
            self.add(Failed, body["node"], {"error": copied(body["error"])})

    def signal(self) -> None:
        self.add(Signalled, self.place(), {"name": self.row.name, "key": self.row.key, "by": self.row.actor})

    def cancel(self) -> None:
        self.add(CancelRequested, self.place(), {"by": self.row.actor, "note": self.row.content.get("note")})

    def retry(self) -> None:
        self.add(Retried, self.place(), {"by": self.row.actor, "note": self.row.content.get("note")})

    def interrupted(self) -> None:
        for nth, opening in enumerate(self.row.openings):
            if opening.kind == "timer":
                continue
            boundary = OpenBoundary(f"{self.run.run_id}:{self.row.seq}.{nth}", self.row.seq, opening)
            self.add(Interrupted, opening.node, {"state": self.run.shown(self.run.state)}, boundary=shown(boundary))


def shown(boundary: OpenBoundary) -> Shown:
    """The boundary as an event carries it."""
    opening = boundary.opening
    return Shown(
        id=boundary.id,
        kind=opening.kind,
        node=opening.node,
        digest=opening.digest,
        final=opening.final,
        expires_at=opening.expires_at,
    )


_TELLERS: dict[str, Any] = {
    "start": _Story.settled,
    "node": _Story.node,
    "route": _Story.settled,
    "failed": _Story.failed,
    "asked": _Story.asked,
    "settled": _Story.settled,
    "decision": _Story.decision,
    "signal": _Story.signal,
    "cancel": _Story.cancel,
    "retry": _Story.retry,
}
