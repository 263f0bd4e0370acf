"""A picture in the format that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stategraph.checkpoint import Checkpoint
from stategraph.errors import did_you_mean
from stategraph.plan import Plan
from stategraph.render.dot import dot
from stategraph.render.drawing import draw
from stategraph.render.mermaid import mermaid
from stategraph.render.svg import png, svg
from stategraph.render.table import table
from stategraph.run import Run

__all__ = ["FORMATS", "format_of", "picture"]

#: Suffix of a file -> format.
FORMATS = {
    ".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "table",
}  # fmt: skip


def format_of(path: str | Path | None) -> str:
    """The format that a file's suffix asks for; SVG for no file."""
    if path is None:
        return "svg"
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{str(path)!r}: no format has the suffix {suffix!r}; use {', '.join(FORMATS)}, or format=")
    return FORMATS[suffix]


def picture(plan: Plan, format: str, run: Run | None = None, history: Sequence[Checkpoint] = ()) -> str | bytes:
    """The plan, and a run in it, as `svg`, `png`, `dot`, `mermaid` or `table`."""
    drawing = draw(plan, run, history)
    match format:
        case "svg":
            return svg(dot(drawing))
        case "png":
            return png(dot(drawing))
        case "dot":
            return dot(drawing)
        case "mermaid":
            return mermaid(drawing)
        case "table":
            return table(drawing)
    known = dict.fromkeys(FORMATS.values())
    raise ValueError(f"no format {format!r}{did_you_mean(format, known)}; use {', '.join(known)}")
