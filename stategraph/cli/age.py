"""An age as it is typed: a number and its unit."""

from __future__ import annotations

import re

from stategraph.cli.refusal import USAGE, Refused

__all__ = ["milliseconds"]

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def milliseconds(age: str) -> int:
    """The age in milliseconds; `Refused` for what is none."""
    found = re.fullmatch(r"(\d{1,6})([smhdw])", age)
    if found is None:
        raise Refused(f"{age!r:.40} is no age; write a number and s, m, h, d or w, like 30d", USAGE)
    return int(found[1]) * _UNITS[found[2]]
