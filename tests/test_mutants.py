"""Damaged stores: a predicate that is left out of a statement, or of the code that evaluates it, is noticed by a walk."""

from __future__ import annotations

from zlib import crc32

import pytest

from tests.model.conform import Tour
from tests.model.equivalents import EQUIVALENT
from tests.model.hunt import noticed
from tests.model.mutants import Mutant, mutants, of_statements
from tests.model.rules import Rules
from tests.model.scope import Case
from tests.model.scopes import SMALL
from tests.model.tours import tours

#: How many mutants are hunted at every test run; the campaign hunts all.
MANY = 50
#: Scopes whose tours show the commonest kinds of transition.
TOURED = ("approvers and four eyes", "a fork that waits for a signal", "a retry with another state")

CASES = [Case(Rules(), scope) for scope in SMALL]
EVERY = {mutant.name: mutant for mutant in mutants()}


def sample() -> list[Mutant]:
    """Some of the mutants that differ from the store; chosen by name, so that a new one does not change the others."""
    names = sorted(set(EVERY) - set(EQUIVALENT), key=lambda name: crc32(name.encode()))
    return [EVERY[name] for name in names[:MANY]]


@pytest.fixture(scope="module")
def chosen() -> list[Tour]:
    """Walks that show every kind of transition of some scopes."""
    return tours(case for case in CASES if case.scope.name in TOURED)


@pytest.mark.parametrize("mutant", sample(), ids=lambda mutant: mutant.name[:80])
async def test_a_damaged_store_is_noticed(mutant: Mutant, chosen: list[Tour]) -> None:
    """One predicate is missing, and a walk ends somewhere else."""
    notice = await noticed(mutant, CASES, chosen, walks=150)
    assert notice, "no walk notices it: let one, or say in tests/model/equivalents.py why none can"


def test_the_equivalent_mutants_are_mutants() -> None:
    """What is excused exists."""
    assert set(EQUIVALENT) <= set(EVERY)


def test_every_operand_of_a_condition_is_left_out_once() -> None:
    """The mutants of a statement are its predicates."""
    assert [mutant.what for mutant in of_statements() if mutant.where == "CLAIM"] == [
        "run_id = :run AND",
        "AND (status = 'ready' OR (status = 'running' AND lease_until ...",
        "status = 'ready' OR",
        "OR (status = 'running' AND lease_until <= :now)",
        "status = 'running' AND",
        "AND lease_until <= :now",
    ]
