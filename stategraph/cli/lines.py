"""Lines: an event as one line of text, for pipes, logs and every terminal."""

from __future__ import annotations

from collections.abc import Iterable

from stategraph.cli.session import Session
from stategraph.cli.standing import TONES, Standing, boundary_lines
from stategraph.cli.terminal import Tone
from stategraph.cli.text import pairs, within
from stategraph.errors import moment
from stategraph.events import (
    CancelRequested,
    Completed,
    Custom,
    Decided,
    Event,
    Failed,
    Interrupted,
    Retried,
    Retrying,
    Signalled,
    StateUpdate,
    Token,
)

__all__ = ["Lines"]

_TONES: dict[str, Tone] = {
    "node_start": "quiet", "interrupted": "waits", "retrying": "waits", "completed": "good", "failed": "bad",
    "rejected": "bad", "cancelled": "bad",
}  # fmt: skip
#: Columns of the event's type and, unless the graph's names need more, of the node.
_TYPE, _NODE, _LONGEST_NODE = 16, 16, 28


class Lines:
    """Prints a line an event, then how the run stands and what to type next."""

    def __init__(self, session: Session, graph: str, nodes: Iterable[str] = (), *, cursors: bool = False) -> None:
        self._session = session
        self._graph = graph
        self._cursors = cursors
        self._headed = False
        widest = max((len(within(node, _LONGEST_NODE)) for node in nodes), default=0)
        self._node_width = max(_NODE, widest)
        #: Pieces of text that a node tells, and which node: one line when it goes on to something else.
        self._tokens: list[str] = []
        self._teller = ""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()

    def told(self, event: Event) -> None:
        """Print the event."""
        self._head(event.run_id)
        if isinstance(event, Token):
            self._tokens.append(str(event.payload.get("text", "")))
            self._teller = event.node_name
        else:
            self._flush()
            cursor = f"{event.cursor or '-'!s:<7} " if self._cursors else ""
            self._print(cursor, event.event_type, event.node_name, detail(event))

    def closed(self, standing: Standing) -> None:
        """Print how the run stands, and what can be done now."""
        terminal, run = self._session.terminal, standing.run
        self._head(run.run_id)
        words = standing.headline()
        status = terminal.paint(run.status, TONES[run.status]) + words.removeprefix(run.status)
        self._session.line(status)
        if run.status == "pending":
            for boundary in standing.open:
                for line in boundary_lines(self._session, boundary, run.shown(run.state), standing.now):
                    self._session.line(line)
        else:
            for what, command in standing.steps(self._session):
                self._session.line(f"{what}: {command}")

    def _head(self, run_id: str) -> None:
        """Say once which run it is."""
        if not self._headed:
            self._headed = True
            self._session.line(f"run {run_id} of {within(self._graph, 60)}")

    def _flush(self) -> None:
        if self._tokens:
            text, self._tokens = "".join(self._tokens), []
            self._print("", "token", self._teller, text)

    def _print(self, cursor: str, kind: str, node: str, told: str) -> None:
        terminal = self._session.terminal
        name = within(node, _LONGEST_NODE)
        left = max(20, terminal.width - len(cursor) - _TYPE - self._node_width - 2)
        word = terminal.paint(f"{kind:<{_TYPE}}", _TONES[kind]) if kind in _TONES else f"{kind:<{_TYPE}}"
        self._session.line(f"{cursor}{word} {name:<{self._node_width}} {within(told, left)}".rstrip())


def detail(event: Event) -> str:
    """What is to be said of an event beside its type and its node."""
    payload = event.payload
    match event:
        case StateUpdate():
            return pairs(payload["delta"])
        case Interrupted():
            return f"waits at boundary {event.boundary.id}"
        case Completed():
            return pairs(payload["final_state"])
        case Failed():
            return error_text(payload["error"])
        case Retrying():
            return f"{error_text(payload['error'])}; runs again at {moment(payload['due'])}"
        case Decided():
            edit = f", changed {pairs(payload['edit'])}" if payload.get("edit") else ""
            return f"{payload['decision']} by {payload['by']} ({payload['boundary']}){noted(payload.get('note'))}{edit}"
        case Retried() | CancelRequested():
            return f"by {payload['by']}{noted(payload.get('note'))}"
        case Signalled():
            return f"{payload['name']} {payload['key']} by {payload['by']}"
        case Custom():
            return pairs(payload)
        case _:
            return ""


def error_text(error: dict[str, str]) -> str:
    """A stored error: its type and its message."""
    return f"{error['type']}: {error['message']}" if error["message"] else error["type"]


def noted(note: str | None) -> str:
    """Somebody's note, as it follows their act."""
    return f": {note}" if note else ""
