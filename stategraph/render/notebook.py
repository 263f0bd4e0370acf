"""A plan as notebooks show it."""

from __future__ import annotations

from stategraph.plan import Plan
from stategraph.render.dot import dot
from stategraph.render.drawing import draw
from stategraph.render.svg import RenderError, svg
from stategraph.render.table import table

__all__ = ["mimebundle"]


def mimebundle(plan: Plan) -> dict[str, str]:
    """For `_repr_mimebundle_`: the picture and the table; where nothing can draw, the table and the reason."""
    drawing = draw(plan)
    text = table(drawing)
    try:
        return {"image/svg+xml": svg(dot(drawing)), "text/plain": text}
    except RenderError as error:
        return {"text/markdown": text, "text/plain": f"{text}\n(no picture: {error})"}
