"""Pictures of a plan, and of a run in it: DOT, Mermaid, a Markdown table, SVG and PNG, all from one model."""

from stategraph.render.dot import dot
from stategraph.render.drawing import Arrow, Drawing, Mark, draw
from stategraph.render.mermaid import mermaid
from stategraph.render.notebook import mimebundle
from stategraph.render.picture import format_of, picture
from stategraph.render.svg import RenderError, png, svg
from stategraph.render.table import table

__all__ = [
    "Arrow",
    "Drawing",
    "Mark",
    "RenderError",
    "dot",
    "draw",
    "format_of",
    "mermaid",
    "mimebundle",
    "picture",
    "png",
    "svg",
    "table",
]
