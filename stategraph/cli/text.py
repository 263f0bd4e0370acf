"""Text on its way to a terminal: whatever people, nodes and files say, only printable characters arrive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stategraph.render.text import printable

__all__ = ["ago", "compact", "counted", "pairs", "span", "within"]

#: Characters of a sentence; a message that quotes more than this is cut.
SENTENCE = 2000


def within(text: object, longest: int = SENTENCE) -> str:
    """The text as one printable line; what is too long ends in an ellipsis."""
    return printable(str(text)[: longest + 1].replace("\n", "\\n"), longest).replace("\n", "\\n")


def compact(value: Any) -> str:
    """A JSON value on one line, as short as it can be."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pairs(values: Mapping[str, Any]) -> str:
    """`key=value` for each of them, in one line."""
    return " ".join(f"{key}={compact(value)}" for key, value in values.items())


def span(milliseconds: float) -> str:
    """How long: in the largest unit that it fills."""
    seconds = abs(milliseconds) / 1000
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return "1 day" if (unit, count) == ("days", 1) else f"{count} {unit}"
    return f"{int(seconds)} s"


def ago(at_ms: int, now_ms: int) -> str:
    """How long before now."""
    return f"{span(now_ms - at_ms)} ago" if now_ms >= at_ms else f"in {span(at_ms - now_ms)}"


def counted(count: int, what: str) -> str:
    """How many of them, in words: `1 node`, `2,000 nodes`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
