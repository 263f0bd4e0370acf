"""A live display: below the lines that go by, the graph's nodes and how each stands while the run is driven."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live as RichLive
from rich.text import Text

from stategraph.checkpoint import Checkpoint
from stategraph.cli.lines import Lines, error_text
from stategraph.cli.session import Session
from stategraph.cli.standing import Standing
from stategraph.cli.terminal import Terminal
from stategraph.cli.text import within
from stategraph.errors import moment
from stategraph.events import Event, Failed, Interrupted, NodeStart, Rejected, Retrying, StateUpdate, Token
from stategraph.graph import StateGraph
from stategraph.node import Node, NodeFunction
from stategraph.run import Run

__all__ = ["Live"]

#: Lines that the display leaves to what goes by above it.
_LEFT_FREE = 6
_STYLES = {"done": "green", "running": "bold", "waits": "yellow", "failed": "red", "idle": "dim"}


@dataclass
class Mark:
    """How one node stands: a sign, and the words that say the same."""

    sign: str = "idle"
    words: str = ""
    done: int = 0
    #: When it started, by the monotonic clock; None while it does not run.
    since: float | None = None
    #: The last of what it tells while it runs.
    tokens: str = ""


class Board:
    """The nodes of a graph as they stand, drawn anew several times a second."""

    def __init__(self, terminal: Terminal, nodes: Sequence[str], done: Mapping[str, int]) -> None:
        self._terminal = terminal
        self._marks = {node: Mark() for node in nodes}
        for node, times in done.items():
            if node in self._marks:
                self._marks[node] = Mark("done", "done", times)
        self._last = nodes[0] if nodes else ""

    def stands(self, run: Run) -> None:
        """Take over how a stored run stands."""
        for position in run.positions.values():
            self._set(position.node, *_PHASES.get(position.phase, ("waits", "next")))

    def told(self, event: Event) -> None:
        """Take over what an event says of its node."""
        mark = self._marks.get(event.node_name)
        if mark is None:
            return
        match event:
            case NodeStart():
                self.starts(event.node_name)
            case Token():
                mark.tokens = (mark.tokens + str(event.payload.get("text", "")))[-200:]
            case StateUpdate():
                mark.done += 1
                self._set(event.node_name, "done", "done")
            case Interrupted():
                self._set(event.node_name, "waits", "waits for a decision")
            case Retrying():
                self._set(event.node_name, "waits", f"failed, runs again at {moment(event.payload['due'])}")
            case Failed():
                self._set(event.node_name, "failed", f"failed: {error_text(event.payload['error'])}")
            case Rejected():
                self._set(event.node_name, "failed", "rejected")

    def starts(self, node: str) -> None:
        """A node runs from now on."""
        self._set(node, "running", "running")
        self._marks[node].since, self._marks[node].tokens = time.monotonic(), ""

    def _set(self, node: str, sign: str, words: str) -> None:
        if node in self._marks:
            mark = self._marks[node]
            mark.sign, mark.words, mark.since, self._last = sign, words, None, node

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = list(self._marks)
        room = max(3, console.size.height - _LEFT_FREE)
        first = max(0, min(names.index(self._last) - room // 2, len(names) - room)) if names else 0
        width = max((len(within(name, 28)) for name in names), default=0)
        if first:
            yield Text(f"  {first} nodes above", style="dim")
        for name in names[first : first + room]:
            yield self._line(name, width, options.max_width)
        if len(names) > first + room:
            yield Text(f"  {len(names) - first - room} nodes below", style="dim")

    def _line(self, name: str, width: int, room: int) -> Text:
        mark = self._marks[name]
        words = mark.words
        if mark.since is not None:
            words = f"{words} {time.monotonic() - mark.since:.0f} s {mark.tokens[-60:]}".rstrip()
        if mark.done > 1:
            words += f" {mark.done} times" if mark.sign == "done" else f" (done {mark.done} times)"
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{self._terminal.sign(mark.sign)} {within(name, 28):<{width}}  ", style=_STYLES[mark.sign])
        line.append(within(words, max(10, room - width - 5)))
        return line


#: How a node stands at which the run stands in this phase.
_PHASES = {
    "gate": ("waits", "waits for a decision"),
    "asked": ("waits", "waits for an answer"),
    "failed": ("failed", "failed"),
}


@dataclass
class Live:
    """Prints the lines of a run as ever, with its board below them until the run rests."""

    session: Session
    lines: Lines
    graph: StateGraph
    #: What was there before: the run, and its log.
    run: Run | None = None
    history: Sequence[Checkpoint] = ()
    board: Board = field(init=False)
    _display: RichLive = field(init=False)

    def __post_init__(self) -> None:
        terminal = self.session.terminal
        done = Counter(row.node or "" for row in self.history if row.kind == "node")
        nodes = self.graph.plan().nodes
        self.board = Board(terminal, list(nodes), done)
        for node in nodes.values():
            if not (node.is_async or node.blocking):
                self.graph.replace_node(node.name, _announced(node, self.board))
        if self.run is not None:
            self.board.stands(self.run)
        console = Console(no_color=not terminal.colour, highlight=False, markup=False, emoji=False)
        self._display = RichLive(self.board, console=console, transient=True, refresh_per_second=8)

    def __enter__(self) -> Live:
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()
        self.lines.__exit__()

    def told(self, event: Event) -> None:
        """Print the event's line, and move its node on the board."""
        self.board.told(event)
        self.lines.told(event)

    def closed(self, standing: Standing) -> None:
        """Take the board away: what stays on the screen are lines."""
        self._display.stop()
        self.lines.closed(standing)


def _announced(node: Node, board: Board) -> NodeFunction:
    """The node's function, which tells the board first: a sync node's event comes when the node is done."""

    @functools.wraps(node.function)
    def announced(*arguments: Any) -> Any:
        board.starts(node.name)
        return node.function(*arguments)

    return announced
