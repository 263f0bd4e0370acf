"""Text of users as pictures may show it: one printable form for every format, which each format then escapes."""

from __future__ import annotations

import unicodedata

__all__ = ["duration", "printable"]

#: Longer texts are cut: a label is not a document.
LONGEST = 200

#: Controls, lone surrogates and unassigned characters (XML has no place for them).
_UNPRINTABLE = frozenset({"Cc", "Cs", "Cn"})
#: They would turn the text around them, so that a label reads as another one.
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str, longest: int = LONGEST) -> str:
    """The text with its unprintable characters spelled out; line ends stay, what is too long ends in an ellipsis."""
    lines = [line.replace("\t", " ") for line in text[: longest + 1].splitlines()]
    spelled = "\n".join("".join(map(_spelled, line)) for line in lines)
    return spelled if len(spelled) <= longest else spelled[: longest - 1] + "…"


def _spelled(character: str) -> str:
    hidden = unicodedata.category(character) in _UNPRINTABLE or character in _TURNING
    return ascii(character)[1:-1] if hidden else character


def duration(seconds: float) -> str:
    """Seconds in the largest unit that needs no fraction of a smaller one: `90 s`, `5 min`, `2 h`, `3 days`."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return "1 day" if (unit, count) == ("days", 1) else f"{count} {unit}"
    return f"{seconds:g} s"
