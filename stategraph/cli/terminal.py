"""The terminal, or the pipe, that a command prints to: how wide it is, and what it can show."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Literal, TypeAlias

__all__ = ["Terminal", "Tone"]

Tone: TypeAlias = Literal["good", "bad", "waits", "quiet"]

_COLOURS: dict[Tone, str] = {"good": "32", "bad": "31", "waits": "33", "quiet": "2"}
#: Sign by what it says, for terminals that can show it and for those that cannot. No sign stands without its word.
_SIGNS = {"done": "✓+", "running": "▸>", "waits": "‖=", "failed": "✗x", "idle": "·."}
#: Columns where nobody watches: lines stay lines in a file.
_UNWATCHED = 200


class Terminal:
    """Where lines go, and how they may look."""

    def __init__(self, *, plain: bool = False, as_json: bool = False) -> None:
        #: In a pipe of JSON nothing else may appear: what nodes print goes to standard error.
        self._kept = sys.stdout if as_json else None
        if as_json:
            sys.stdout = sys.stderr
        self.watched = not as_json and sys.stdout.isatty() and _can_move()
        #: Whether a display may move on it.
        self.live = self.watched and not plain
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self.width = shutil.get_terminal_size().columns if self.watched else _UNWATCHED
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        self._can_sign = encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32")

    def line(self, text: str) -> None:
        """Print a line at once. Looked up each time: a live display puts itself before standard output."""
        stream = self._kept or sys.stdout
        stream.write(f"{text}\n")
        stream.flush()

    def aside(self, text: str) -> None:
        """Print a line beside what was asked for: to standard error."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def paint(self, text: str, tone: Tone) -> str:
        """The text in a colour, where there are colours."""
        return f"\x1b[{_COLOURS[tone]}m{text}\x1b[0m" if self.colour else text

    def sign(self, name: str) -> str:
        """The sign for `done`, `running`, `waits`, `failed` or `idle`."""
        return _SIGNS[name][0 if self._can_sign else 1]


def _can_move() -> bool:
    """Whether the terminal understands more than lines; Windows has no TERM, and a terminal that does."""
    return os.environ.get("TERM", "dumb" if os.name == "posix" else "") != "dumb"
