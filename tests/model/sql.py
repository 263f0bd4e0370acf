"""The conditions of a SQL statement, and what the statement is without one of their operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Cut", "cuts"]


class Cut(NamedTuple):
    """What is left out of a statement, and what stands there instead."""

    start: int
    end: int
    instead: str = ""


class _Token(NamedTuple):
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.upper()


_TOKEN = re.compile(r"'(?:[^']|'')*'|[A-Za-z_][\w.]*|:\w+|\?\d+|\d+|<>|<=|>=|\|\||--[^\n]*|\S")
#: What a condition of this depth does not go beyond.
_ENDS = frozenset(
    ("GROUP", "ORDER", "LIMIT", "RETURNING", "WHERE", "JOIN", "LEFT", "THEN", "ELSE", "END", "UNION", "SET", ")", ",")
)


def cuts(text: str) -> Iterator[Cut]:
    """Each operand of each WHERE, ON, WHEN and parenthesis; each ON CONFLICT DO; either side of a coalesce."""
    tokens = [_Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
    for place, token in enumerate(tokens):
        after = tokens[place + 1].word if place + 1 < len(tokens) else ""
        match token.word:
            case "ON" if after == "CONFLICT":
                if tokens[place + 2].word == "DO":
                    yield Cut(token.start, tokens[place + 3].end, " ")
            case "WHERE" | "ON":
                yield from _operands(tokens, place + 1, lone="1 = 1")
            case "WHEN" if tokens[place - 1].word != ":DECISION":  # CASE :decision WHEN ... tells values apart
                yield from _operands(tokens, place + 1, lone="1 = 0")
            case "(" if after not in ("SELECT", "", ")"):
                inner = {other.word for other in tokens[place + 1 : _closing(tokens, place)]}
                outer = {other.word for other in _outer(tokens[place + 1 :])}
                if not outer.isdisjoint(("AND", "OR")) and "CASE" not in inner:
                    yield from _operands(tokens, place + 1, lone="")
            case "COALESCE":
                comma = next(other for other in _outer(tokens[place + 2 :]) if other.text == ",")
                end = tokens[_closing(tokens, place + 1)].end
                yield Cut(token.start, end, text[tokens[place + 2].start : comma.start])
                yield Cut(token.start, end, text[comma.end : end - 1])


def _closing(tokens: list[_Token], opened: int) -> int:
    depth = 0
    for place in range(opened, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place].text, 0)
        if depth == 0:
            return place
    raise AssertionError("a parenthesis is not closed")


def _outer(tokens: list[_Token]) -> list[_Token]:
    """The tokens of this level, to its end; a CASE is a level of its own."""
    depth, outer = 0, []
    for token in tokens:
        if token.word in (")", "END"):
            depth -= 1
            if depth < 0:
                break
        if depth == 0:
            outer.append(token)
        depth += token.word in ("(", "CASE")
    return outer


def _operands(tokens: list[_Token], first: int, lone: str) -> Iterator[Cut]:
    """The cuts that take one operand out of the condition that begins here; a lone one is replaced, if by anything."""
    alternatives = _condition(tokens, first)
    if len(alternatives) > 1:
        yield from _without([[token for operand in each for token in operand] for each in alternatives])
    for operands in alternatives:
        if len(operands) > 1:
            yield from _without(operands)
        elif len(alternatives) == 1 and lone and operands[0]:
            yield Cut(operands[0][0].start, operands[0][-1].end, lone)


def _condition(tokens: list[_Token], first: int) -> list[list[list[_Token]]]:
    """The condition that begins here: alternatives (OR) of operands (AND)."""
    alternatives: list[list[list[_Token]]] = [[[]]]
    depth = 0
    for place in range(first, len(tokens)):
        token, word = tokens[place], tokens[place].word
        conflict = word == "ON" and tokens[place + 1].word == "CONFLICT"
        if depth == 0 and (word in _ENDS or conflict):
            break
        if depth == 0 and word == "OR":
            alternatives.append([[]])
        elif depth == 0 and word == "AND":
            alternatives[-1].append([])
        else:
            alternatives[-1][-1].append(token)
        depth += {"(": 1, "CASE": 1, ")": -1, "END": -1}.get(word, 0)
    return alternatives


def _without(parts: list[list[_Token]]) -> Iterator[Cut]:
    """Each part left out, with the AND or OR beside it."""
    for place, part in enumerate(parts):
        if place:
            yield Cut(parts[place - 1][-1].end, part[-1].end)
        else:
            yield Cut(part[0].start, parts[1][0].start)
