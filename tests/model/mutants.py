"""Every damage to a store: a predicate of a statement, a unique key, a condition of the code, taken out once each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import NamedTuple

from checkpointers import database, memory, schema, sqlite, verbs
from tests.model import damaged
from tests.model.bench import Bench
from tests.model.sql import cuts

__all__ = ["Mutant", "mutants", "of_code", "of_schema", "of_statements"]

#: The functions that evaluate predicates, and so the ones whose conditions are taken out.
MEMORY = """is_held is_claimable wait_for may_decide is_over is_closed_by status_after create claim renew release append
settle _admits _check_followers _is_in_doubt _append _keep_snapshot decide expire signal cancel retry _decide effect_begin
effect_end _answer_doubt load history find_act runs boundaries due delete prune _driven _write _move _open_boundaries
_close_boundary _boundaries _decision _snapshot _is_name _excludes _check_end"""
DATABASE = """create act append together _append _insert _insert_any effect_begin forget _open_boundaries _move load history
find_act _rows _snapshot _may boundary_of"""
SQLITE = "create decide boundaries _commit_waiting"


class Mutant(NamedTuple):
    """One damage."""

    #: The statement or function, and what was taken out of it.
    where: str
    what: str
    bench: Callable[[], Bench]

    @property
    def name(self) -> str:
        return f"{self.where}: {self.what}"


def mutants() -> list[Mutant]:
    """All of them."""
    code = (
        *of_code(memory, MEMORY, damaged.with_memory),
        *of_code(database, DATABASE, partial(damaged.with_sqlite, database)),
        *of_code(sqlite, SQLITE, partial(damaged.with_sqlite, sqlite)),
    )
    return [*of_statements(), *of_schema(), *code]


def of_statements() -> list[Mutant]:
    """Each operand of each condition of each statement of `checkpointers.verbs` left out."""
    found: list[Mutant] = []
    for text, where in _statements().items():
        for cut in cuts(text):
            without = text[: cut.start] + cut.instead + text[cut.end :]
            if without != text:
                what = _short(text[cut.start : cut.end]) + (f" -> {cut.instead.strip()}" if cut.instead.strip() else "")
                found.append(Mutant(where, what, partial(damaged.with_statement, text, without)))
    return _told_apart(found)


def _statements() -> dict[str, str]:
    """The statements, and the name under which each comes first."""
    statements: dict[str, str] = {}
    for name, value in vars(verbs).items():
        if name.isupper() and not name.startswith("_"):
            for index, text in enumerate((value,) if isinstance(value, str) else value):
                statements.setdefault(text, name if isinstance(value, str) else f"{name}[{index}]")
    return statements


def of_schema() -> list[Mutant]:
    """Each unique key of the schema an ordinary one."""
    whole = schema.statements()
    found = []
    for place, statement in enumerate(whole):
        if statement.startswith("CREATE UNIQUE INDEX "):
            given = [*whole[:place], statement.replace("UNIQUE ", ""), *whole[place + 1 :]]
            found.append(Mutant("schema", f"{statement.split()[3]} UNIQUE", partial(damaged.with_schema, given)))
    return found


def of_code(module: ModuleType, functions: str, made: Callable[[str], Bench]) -> list[Mutant]:
    """Each condition of these functions left out."""
    found = []
    for number, (function, what, _) in enumerate(_conditions(module, functions)[1]):
        where = f"{module.__name__.rpartition('.')[2]}.{function}"
        found.append(Mutant(where, _short(what), partial(_without, module, functions, number, made)))
    return _told_apart(found)


def _without(module: ModuleType, functions: str, number: int, made: Callable[[str], Bench]) -> Bench:
    tree, conditions = _conditions(module, functions)
    _, _, leave_out = conditions[number]
    leave_out()
    return made(ast.unparse(tree))


#: The function, the condition, and how to leave it out of the tree that it was found in.
_Condition = tuple[str, str, Callable[[], object]]


def _conditions(module: ModuleType, functions: str) -> tuple[ast.Module, list[_Condition]]:
    tree, found = ast.parse(damaged.source(module)), []
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name in functions.split():
            for node in ast.walk(function):
                found += [(function.name, what, leave_out) for what, leave_out in _conditions_of(node)]
    return tree, found


def _conditions_of(node: ast.AST) -> Iterator[tuple[str, Callable[[], object]]]:
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        for place, operand in enumerate(node.values):
            yield f"{word} {ast.unparse(operand)}", partial(node.values.pop, place)
    elif isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, ast.BoolOp):
        both = isinstance(node, ast.IfExp) or bool(node.orelse)
        for constant in (False, True)[: 1 + both]:
            yield f"if {ast.unparse(node.test)} -> {constant}", partial(setattr, node, "test", ast.Constant(constant))


def _short(text: str) -> str:
    """On one line, and not the whole of a statement."""
    plain = " ".join(text.split())
    return plain if len(plain) <= 64 else plain[:60].rstrip() + " ..."


def _told_apart(found: list[Mutant]) -> list[Mutant]:
    """The second and further ones of a name numbered."""
    counts: dict[str, int] = {}
    apart = []
    for mutant in found:
        count = counts[mutant.name] = counts.get(mutant.name, 0) + 1
        apart.append(mutant if count == 1 else mutant._replace(what=f"{mutant.what} ({count})"))
    return apart
