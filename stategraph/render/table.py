"""A drawing as a Markdown table: every node, what stands before it, where it leads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stategraph.plan import END
from stategraph.render.drawing import NAMELESS, Arrow, Drawing, Mark

__all__ = ["table"]


def table(drawing: Drawing) -> str:
    """The drawing as a Markdown table (GitHub's), one row a node."""
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    columns = ["node", "before it", "leads to", "declared"] + (["in this run"] if drawing.of_run else [])
    yield f"**{_plain(drawing.title)}**"
    yield ""
    yield _row(columns)
    yield _row(["---"] * len(columns))
    ways = _Ways(drawing)
    for mark in drawing.marks:
        if mark.kind == "node":
            cells = [mark.name, ways.before(mark), ways.after(mark), "; ".join(mark.notes)]
            told = [_plain(ways.told(mark))] if drawing.of_run else []
            yield _row([*map(_plain, cells), *told])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


class _Ways:
    """The ways of a drawing, in words."""

    def __init__(self, drawing: Drawing) -> None:
        self._marks = {mark.id: mark for mark in drawing.marks}
        self._places = {mark.place: mark for mark in drawing.marks}
        self._leading: dict[str, list[Arrow]] = {mark.id: [] for mark in drawing.marks}
        for arrow in drawing.arrows:
            self._leading[arrow.source].append(arrow)

    def before(self, mark: Mark) -> str:
        """The entry point, and the gate with its ways out."""
        gate = self._places.get(("gate", mark.node))
        entrance = (gate or mark).id
        (start,) = self._leading["start"]
        said = ["starts here"] if start.target == entrance else []
        if gate:
            ways = (self._way(arrow) for arrow in self._leading[gate.id] if arrow.kind != "approved")
            said.append(f"gate: {'; '.join((*gate.notes, *ways))}")
        return "; ".join(said)

    def after(self, mark: Mark) -> str:
        """Where it leads, by its router's answers if it has one."""
        router = self._places.get(("router", mark.node))
        ways = "; ".join(self._way(arrow) for arrow in self._leading[(router or mark).id])
        if router is None:
            return ways
        name = "" if router.name == NAMELESS else router.name
        return f"{' '.join(filter(None, ('router', name, *router.notes)))}: {ways}"

    def told(self, mark: Mark) -> str:
        """What the run did at the node, its gate and its router, and how it stands there."""
        gate, router = self._places.get(("gate", mark.node)), self._places.get(("router", mark.node))
        said = [f"gate: {words}" for words in gate.progress] if gate else []
        said += (["✓ ran"] if mark.passed == 1 else []) + list(mark.progress)
        return "; ".join(said + ([f"router: {words}" for words in router.progress] if router else []))

    def _way(self, arrow: Arrow) -> str:
        target = self._marks[arrow.target]
        name = target.node if target.kind == "gate" else target.name
        label = " ".join(arrow.label.split())
        ends = target.kind == "end" and target.node != END  # its label says so
        way = label if ends or label == name else f"{label} → {name}" if label else name
        return f"{way} (taken{f' {arrow.taken} times' if arrow.taken > 1 else ''})" if arrow.taken else way


#: ASCII punctuation that means something to some Markdown: markup, HTML, links, autolinks, mentions, emoji, formulas.
_MARKUP = re.compile(r"[\\`*{}\[\]<>#|&~@$!^=+]|(?<!\w)_|_(?!\w)|:(?=\S)|\.(?=[^\W\d_])|^-")


def _plain(text: str) -> str:
    """The text so that Markdown shows it as it is, on one line."""
    return "<br>".join(_MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", line) for line in text.splitlines())
