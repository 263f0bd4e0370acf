"""The protocol of a run, searched: every state of small scopes, and what breaks if a decision is taken back."""

from __future__ import annotations

import pytest

from tests.model.rules import Rules
from tests.model.scope import Case, Luck, Scope
from tests.model.scopes import SMALL, fork, line
from tests.model.search import Search, explore
from tests.model.variants import HARMLESS, WRONG, Variant


@pytest.mark.parametrize("scope", SMALL, ids=lambda scope: scope.name)
def test_every_invariant_holds_and_an_end_can_be_reached_without_luck(scope: Scope) -> None:
    """Whatever drivers, guests, people and clocks do, in every order."""
    result = explore(Case(Rules(), scope))
    assert not result.faults, "\n".join(map(str, result.faults))
    assert result.complete


@pytest.mark.parametrize("variant", WRONG, ids=lambda variant: variant.name)
def test_a_tempting_variant_breaks(variant: Variant) -> None:
    """Each decision of the protocol is there for a reason, which is a trace."""
    result = explore(variant.case, first=True)
    assert result.faults, f"{variant.name}: nothing breaks in {result.states} states"


@pytest.mark.parametrize("variant", HARMLESS, ids=lambda variant: variant.name)
def test_a_second_lock_may_be_left_open(variant: Variant) -> None:
    """What is proven to be a second defence is called one."""
    result = explore(variant.case)
    assert result.complete
    assert not result.faults


def test_every_decision_has_its_variant() -> None:
    """A rule that nobody takes back is a rule that nobody needs."""
    plain = Rules()
    taken_back = [
        {name for name in Rules._fields if getattr(variant.rules, name) != getattr(plain, name)}
        for variant in (*WRONG, *HARMLESS)
    ]
    assert all(len(names) == 1 for names in taken_back)
    assert set().union(*taken_back) == set(Rules._fields)


def test_a_counterexample_is_a_story_of_numbered_steps() -> None:
    """A shortest trace reads as what happened."""
    (fault,) = explore(
        next(v for v in WRONG if v.name == "a migration that was refused is given up").case, first=True
    ).faults
    assert str(fault) == (
        "  a node of the new graph ran on the state of the old one\n"
        "     1. driver 1 claims the run, epoch 1 -> running\n"
        "     2. somebody sends the signal -> running\n"
        "     3. driver 1 settles a migration; it has seen row 0 -> refused\n"
        "     4. driver 1 starts T"
    )


def test_a_lost_wakeup_is_a_dead_end_too() -> None:
    """The search for a way to an end finds what no invariant of a state would tell."""
    case = Case(Rules(stop_needs_every_row=False), Scope("a lost wakeup", fork()))
    assert any("no way leads from here to an end" in fault.what for fault in explore(case).faults)


def test_the_search_meets_every_kind_of_act() -> None:
    """Nothing is proven of an act that never happens."""
    met: set[str] = set()
    for scope in SMALL:
        if len(met) < 18:
            search = Search(Case(Rules(), scope))
            met |= {type(step.act).__name__ for _, (step, _, _) in search.transitions(cap=3_000)}
    assert met == {
        "Append", "Attach", "Begin", "Cancel", "Claim", "Crash", "Decide", "Effect", "End", "Expire", "Lapse", "Release",
        "Renew", "Retry", "Settle", "Signal", "Start", "Tick",
    }  # fmt: skip


def test_a_trace_leads_where_the_search_has_been() -> None:
    """A trace is a walk of the model: each of its steps is a move of the world before it."""
    case = Case(Rules(), Scope("a line", line(), Luck(crashes=1)))
    search = Search(case)
    for _ in search.transitions(cap=100_000):
        pass
    last = len(search.worlds) - 1
    assert search.complete
    assert search.trace(last)[-1][1] == search.worlds[last]
    assert search.trace(0) == ()
