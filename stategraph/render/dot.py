"""A drawing as DOT text: deterministic, and safe for whatever users call their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap

from stategraph.render.drawing import Arrow, Drawing, Mark

__all__ = ["CAREFUL", "FONT", "QUICK", "dot"]

FONT = "Helvetica,Arial,sans-serif"
#: How hard Graphviz tries: without limits it may search for hours for a slightly better layout of crossing edges. What
#: takes too long even so, nearly always the curves, is drawn with straight lines.
CAREFUL = '[splines="true", nslimit="2", nslimit1="2"]'
QUICK = '[splines="line", nslimit="0.2", nslimit1="0.2", mclimit="0.2"]'
_INK, _QUIET, _DONE, _WAITS, _FAILED = "#1e293b", "#64748b", "#15803d", "#b45309", "#b91c1c"
_FILLS = {_INK: "#f8fafc", _QUIET: "#f8fafc", _DONE: "#dcfce7", _WAITS: "#fef3c7", _FAILED: "#fee2e2"}
#: Where the run stands, by its status; any other status waits for something.
_STANDS = {"completed": _DONE, "failed": _FAILED, "rejected": _FAILED, "cancelled": _FAILED}

_TITLE_WIDTHS = {"LR": 90, "TB": 40}

_SHAPES: Mapping[str, Mapping[str, str]] = {
    "start": {"shape": "circle", "style": "filled", "width": "0.2", "fixedsize": "true"},
    "node": {},
    "router": {"shape": "diamond", "style": "filled", "margin": "0.02", "height": "0.5"},
    "gate": {"shape": "octagon", "style": "filled", "margin": "0.04"},
    "end": {
        "shape": "ellipse",
        "style": "filled",
        "peripheries": "2",
        "margin": "0.03",
        "width": "0.4",
        "height": "0.4",
    },
}


def dot(drawing: Drawing) -> str:
    """The drawing as DOT text; give it to `svg` or `png`, or to any Graphviz."""
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    yield "digraph stategraph {"
    yield f"  graph {_attributes(_graph(drawing), line_end=LEFT)};"
    yield f"  graph {CAREFUL};"
    node, edge = _defaults(drawing)
    yield f"  node {_attributes(node)};"
    yield f"  edge {_attributes(edge)};"
    for mark in drawing.marks:
        yield f"  {mark.id} {_attributes(_unlike(node, _mark(mark, drawing)))};"
    for nth, arrow in enumerate(drawing.arrows):
        yield f"  {arrow.source} -> {arrow.target} {_attributes(_unlike(edge, _arrow(arrow, nth, drawing)))};"
    yield "}"


def _defaults(drawing: Drawing) -> tuple[dict[str, str], dict[str, str]]:
    """What marks and arrows have in common."""
    colour = _plain_colour(drawing)
    both = {"fontname": FONT, "fontcolor": _INK, "color": colour}
    node = {
        "fontsize": "12",
        "shape": "box",
        "style": "rounded,filled",
        "fillcolor": _FILLS[colour],
        "margin": "0.14,0.08",
    }
    return both | node, both | {"fontsize": "11", "arrowsize": "0.7"}


def _unlike(defaults: Mapping[str, str], attributes: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in attributes.items() if defaults.get(name) != value}


def _graph(drawing: Drawing) -> dict[str, str]:
    return {
        "label": "".join(f"{line}\n" for line in wrap(drawing.title, _TITLE_WIDTHS[drawing.direction])),
        "labelloc": "t",
        "labeljust": "l",
        "fontname": FONT,
        "fontsize": "14",
        "fontcolor": _INK,
        "rankdir": drawing.direction,
        "nodesep": "0.3",
        "ranksep": "0.35",
        "pad": "0.2",
    }


def _mark(mark: Mark, drawing: Drawing) -> dict[str, str]:
    colour = _colour(mark, drawing)
    attributes = {
        "label": "\n".join(mark.lines),
        "id": f"sg-{mark.id}",
        "class": _classes(mark, drawing),
        **_SHAPES[mark.kind],
        "color": colour,
        "fillcolor": colour if mark.kind == "start" else _FILLS[colour],
    }
    if mark.irreversible:
        attributes["peripheries"] = "2"
    if mark.stands:
        attributes["penwidth"] = "3"
    return attributes


def _classes(mark: Mark, drawing: Drawing) -> str:
    """What a page's style sheet may want to know."""
    classes = [mark.kind, "irreversible" if mark.irreversible else "", "passed" if mark.passed else ""]
    stands = ["stands", drawing.status or ""] if mark.stands else []
    return " ".join(f"sg-{name}" for name in (*classes, *stands) if name)


def _colour(mark: Mark, drawing: Drawing) -> str:
    if mark.stands:
        return _STANDS.get(drawing.status or "", _WAITS)
    return _DONE if mark.passed else _plain_colour(drawing)


def _plain_colour(drawing: Drawing) -> str:
    """What a run has not touched steps back."""
    return _QUIET if drawing.of_run else _INK


def _arrow(arrow: Arrow, nth: int, drawing: Drawing) -> dict[str, str]:
    classes = f"sg-{arrow.kind} sg-taken" if arrow.taken else f"sg-{arrow.kind}"
    attributes = {"id": f"sg-a{nth}", "class": classes}
    if arrow.label:
        # beside a line that runs downwards a label would touch it
        gap = " " if drawing.direction == "TB" else ""
        attributes["label"] = "\n".join(f"{gap}{line}{gap}" for line in arrow.lines)
    if arrow.inferred:
        attributes["style"] = "dashed"
    if arrow.taken:
        attributes |= {"color": _DONE, "penwidth": "2.5"}
    return attributes


#: How a line of a label ends in DOT: with the line centred, or at the left edge.
CENTRE, LEFT = r"\n", r"\l"


def _attributes(attributes: Mapping[str, str], line_end: str = CENTRE) -> str:
    return "[" + ", ".join(f"{name}={_quoted(value, line_end)}" for name, value in attributes.items()) + "]"


def _quoted(text: str, line_end: str) -> str:
    r"""A DOT string that shows this text: no escape (`\N`), entity (`&lt;`) or quote in it means anything."""
    plain = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\n", line_end) + '"'
