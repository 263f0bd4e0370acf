"""A drawing as a Mermaid flowchart: for README files, issues and chats that draw it themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from stategraph.render.drawing import Arrow, Drawing, Mark

__all__ = ["mermaid"]

#: What stands around a mark's text.
_SHAPES: Mapping[str, tuple[str, str]] = {
    "start": ('(("', '"))'),
    "node": ('("', '")'),
    "irreversible": ('[["', '"]]'),
    "router": ('{"', '"}'),
    "gate": ('{{"', '"}}'),
    "end": ('((("', '")))'),
}
_CLASSES: Mapping[str, str] = {
    "start": "fill:#1e293b",
    "passed": "fill:#dcfce7,stroke:#15803d,color:#1e293b",
    "stands": "fill:#fef3c7,stroke:#b45309,stroke-width:4px,color:#1e293b",
}
#: Beside letters and digits. Everything else could mean something to Mermaid, to Markdown in it or to HTML.
_PLAIN = frozenset(" _,()·✓✗‖…")


def mermaid(drawing: Drawing) -> str:
    """The drawing as Mermaid text."""
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    yield from ("---", f"title: {_yaml(drawing.title)}", "---")
    yield f"flowchart {drawing.direction}"
    yield from (f"  {_mark(mark)}" for mark in drawing.marks)
    yield from (f"  {_arrow(arrow)}" for arrow in drawing.arrows)
    classes = {mark.id: _class(mark) for mark in drawing.marks}
    for name, style in _CLASSES.items():
        if members := [mark for mark, of in classes.items() if of == name]:
            yield f"  classDef {name} {style}"
            yield f"  class {','.join(members)} {name}"


def _mark(mark: Mark) -> str:
    before, after = _SHAPES["irreversible" if mark.irreversible else mark.kind]
    return f"{mark.id}{before}{_encoded(mark.lines) or ' '}{after}"


def _class(mark: Mark) -> str:
    if mark.stands:
        return "stands"
    return "start" if mark.kind == "start" else "passed" if mark.passed else ""


def _arrow(arrow: Arrow) -> str:
    line = "==>" if arrow.taken else "-.->" if arrow.inferred else "-->"
    label = f'|"{_encoded(arrow.lines)}"|' if arrow.label else ""
    return f"{arrow.source} {line}{label} {arrow.target}"


def _yaml(text: str) -> str:
    """A YAML string; JSON's are. No sign in it can begin a directive of Mermaid's, or a tag of the page around it."""
    return re.sub(r"[%<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(text, ensure_ascii=False))


def _encoded(lines: tuple[str, ...]) -> str:
    return "<br/>".join("".join(map(_entity, line)) for line in lines)


def _entity(character: str) -> str:
    """Mermaid's own entity codes: `#35;` is `#`."""
    plain = character.isalnum() or character in _PLAIN
    return character if plain else f"#{ord(character)};"
