"""One line of the table: a figure of ours beside the raw limit's, and whether its target holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Figure", "summary", "table"]


@dataclass(frozen=True, slots=True)
class Figure:
    """`holds` is None for a figure without a target; one that could not be counted does not hold."""

    workload: str
    what: str
    ours: float | None
    raw: float | None = None
    #: Ours by raw, or as the target has it.
    ratio: float | None = None
    target: str = ""
    holds: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """The line, column by column."""
        verdict = {None: "", True: "holds", False: "falls short"}[self.holds]
        if self.target and self.ours is None:
            verdict = "not counted"
        return (
            f"{self.workload:4}{self.what}",
            _number(self.raw),
            _number(self.ours, "not counted" if self.target else "-"),
            "-" if self.ratio is None else f"{self.ratio:.2f}",
            self.target,
            verdict,
        )


def table(figures: Sequence[Figure]) -> str:
    """The figures under their headings, aligned."""
    rows = [("workload", "raw", "ours", "ratio", "target", ""), *(figure.cells() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def summary(figures: Sequence[Figure]) -> str:
    """How many targets hold."""
    aimed = [figure for figure in figures if figure.target]
    return f"{sum(figure.holds is True for figure in aimed)} of {len(aimed)} targets hold"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if 0 < place < 4 else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _number(value: float | None, missing: str = "-") -> str:
    if value is None:
        return missing
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
