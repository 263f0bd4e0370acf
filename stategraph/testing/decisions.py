"""Who decides a boundary, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stategraph.checkpoint import Checkpointer, Opening, Verdict, Written
from stategraph.clock import ManualClock
from stategraph.testing.byhand import (
    GATE,
    LEASE_MS,
    LONGER,
    ROUTED,
    begin,
    cancel,
    create,
    decide,
    paused,
    retry,
    signal,
    states,
    visit,
)
from stategraph.testing.suite import Suite

__all__ = ["Decisions"]

TIMER = Opening("timer", "", 0, "poll", "timer")


class Decisions(Suite):
    """Who decides a boundary, and what comes of it."""

    async def test_a_decision_is_recorded_once_and_frees_the_run(self, store: Checkpointer, clock: ManualClock) -> None:
        """Who, what and when are stored with the boundary; every later decision is refused."""
        await paused(store)
        clock.advance(60)
        answer = await decide(store, actor="ann", act="click-1", body=b'{"note":"fine"}')
        assert answer == Written(2, "ready", clock.now())
        (boundary,) = await store.boundaries("r")
        assert (boundary.state, boundary.approvals) == ("approved", 1)
        assert boundary.decided is not None
        assert (boundary.decided.by, boundary.decided.decision, boundary.decided.act) == ("ann", "approved", "click-1")
        assert (boundary.decided.at_ms, boundary.decided.note) == (clock.now(), "fine")
        clock.advance(60)
        verdicts: tuple[Verdict, ...] = ("approved", "rejected", "retry")
        await self.refused(store, *(decide(store, verdict, actor="bob") for verdict in verdicts))
        await self.refused(store, decide(store, actor="ann", act="click-1"))
        row = await store.find_act("r", "click-1")
        assert row is not None
        assert (row.kind, row.decision, row.boundary, row.actor) == ("decision", "approved", "1.0", "ann")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"digest": "what was shown earlier"},
            {"digest": ""},
            {"boundary": "1.1"},
            {"boundary": "2.0"},
            {"boundary": ""},
            {"boundary": "r:1.0"},
            {"boundary": "1.0' OR '1'='1"},
            {"run_id": "another"},
            {"actor": ""},
            {"actor": ":clock"},
            {"act": ""},
            {"act": ":expire 1.0"},
            {"act": "used before"},
            {"decision": "retry"},
            {"decision": "expired"},
            {"decision": "withdrawn"},
            {"decision": ""},
            {"decision": "APPROVED"},
        ],
        ids=str,
    )
    async def test_a_decision_that_does_not_fit_is_refused(self, store: Checkpointer, wrong: dict[str, Any]) -> None:
        """It names the run, the boundary and what was shown; it is somebody's, it is new, and it is one of two words."""
        await create(store, "another")
        await paused(store)
        await signal(store, "used before")
        await self.refused(store, decide(store, **wrong))
        assert await decide(store) is not None

    async def test_a_final_rejection_ends_a_run_that_nobody_holds(self, store: Checkpointer) -> None:
        """Its other boundaries are withdrawn in the same moment, and no verb moves it any more."""
        lease = await paused(store, "r", GATE, replace(GATE, step=2))
        answer = await decide(store, "rejected")
        assert answer is not None
        assert answer.status == "rejected"
        assert await states(store) == ["rejected", "withdrawn"]
        head = await store.head("r")
        assert head is not None
        assert (head.status, head.ending) == ("rejected", "rejected")
        await self.refused(
            store,
            decide(store, boundary="1.1"),
            store.claim("r", "v", LEASE_MS),
            store.renew(lease, LEASE_MS),
            store.append(lease, 2, [visit(3)]),
            store.settle(lease, 2, "completed", b"{}"),
            cancel(store),
            retry(store),
            signal(store, "s"),
            store.expire("r", "1.1"),
            begin(store, lease, "t"),
        )

    async def test_a_final_rejection_of_a_held_run_is_a_request(self, store: Checkpointer, clock: ManualClock) -> None:
        """Nobody takes the pen from a driver in the middle of a node: what is in flight is recorded, then it ends."""
        lease = await create(store)
        gates = visit(0, "running", GATE, replace(GATE, step=2))
        assert await store.append(lease, 0, [gates]) is not None
        answer = await decide(store, "rejected")
        assert answer is not None
        assert answer.status == "running"
        assert await states(store) == ["rejected", "withdrawn"]
        await self.refused(store, begin(store, lease, "t"), signal(store, "s"), cancel(store))
        assert await store.append(lease, 2, [visit(5, path="0.0")]) is not None
        settled = await store.settle(lease, 3, "rejected", b"{}")
        assert settled is not None
        assert settled.status == "rejected"

    async def test_a_final_rejection_of_an_abandoned_run_ends_it(self, store: Checkpointer, clock: ManualClock) -> None:
        """Its driver has died: with the lease over nobody has to be waited for."""
        lease = await create(store)
        await store.append(lease, 0, [visit(0, "running", GATE)])
        clock.advance(LONGER)
        answer = await decide(store, "rejected")
        assert answer is not None
        assert answer.status == "rejected"
        await self.refused(store, store.append(lease, 2, [visit(1)]))

    async def test_a_routed_rejection_moves_its_position_alone(self, store: Checkpointer) -> None:
        """The run is ready again, its other boundary stays open."""
        await paused(store, "r", ROUTED, replace(ROUTED, step=2))
        answer = await decide(store, "rejected")
        assert answer is not None
        assert answer.status == "ready"
        assert await states(store) == ["rejected", "open"]
        head = await store.head("r")
        assert head is not None
        assert head.ending is None

    async def test_a_quorum_is_so_many_different_people(self, store: Checkpointer) -> None:
        """Until it is reached the run waits; nobody votes twice; one rejection is enough."""
        await paused(store, "r", replace(GATE, needed=3))
        for voter in ("ann", "bob"):
            answer = await decide(store, actor=voter)
            assert answer is not None
            assert answer.status == "pending"
            await self.refused(store, decide(store, actor=voter, act="another click"))
            await self.refused(store, decide(store, "rejected", actor=voter, act="second thoughts"))
        (boundary,) = await store.boundaries("r")
        assert (boundary.state, boundary.approvals, boundary.decided) == ("open", 2, None)
        answer = await decide(store, actor="cid")
        assert answer is not None
        assert answer.status == "ready"
        assert await states(store) == ["approved"]
        await paused(store, "s", replace(GATE, needed=3))
        await decide(store, run_id="s", actor="ann")
        assert (await decide(store, "rejected", run_id="s", actor="bob")) is not None
        assert await states(store, "s") == ["rejected"]

    async def test_approvers_are_named_or_have_a_role(self, store: Checkpointer) -> None:
        """Who is neither is refused; a name is not part of another."""
        await paused(store, "r", replace(GATE, needed=2, approvers=("ann", "role:lead", 'o"hara')))
        await self.refused(
            store,
            decide(store, actor="bob"),
            decide(store, actor="an"),
            decide(store, actor="lead"),
            decide(store, actor="bob", roles=("role:leader", "ann ")),
        )
        assert await decide(store, actor="bob", roles=("role:other", "role:lead")) is not None
        assert await decide(store, actor='o"hara') is not None
        (boundary,) = await store.boundaries("r")
        assert (boundary.state, boundary.approvers) == ("approved", ("ann", "role:lead", 'o"hara'))

    async def test_an_empty_list_of_approvers_is_nobody(self, store: Checkpointer) -> None:
        """It is not the same as none."""
        await paused(store, "r", replace(GATE, approvers=()))
        await self.refused(store, decide(store, actor="ann", roles=("admin",)))

    async def test_four_eyes_are_not_the_creators(self, store: Checkpointer) -> None:
        """Whoever started the run does not decide it, by name."""
        await paused(store, "r", replace(GATE, four_eyes=True))
        await self.refused(store, decide(store, actor="carol"))
        assert await decide(store, actor="ann") is not None

    async def test_a_boundary_without_people_is_not_decided_by_one(self, store: Checkpointer) -> None:
        """Timers are the clock's and signal waits are a signal's; a question is like an approval."""
        wait = Opening("signal", "", 2, "paid", "shown", name="paid", key="7")
        await paused(store, "r", replace(TIMER, digest="shown"), wait, replace(GATE, kind="question"))
        await self.refused(store, decide(store, boundary="1.0"), decide(store, boundary="1.1"))
        assert await decide(store, boundary="1.2") is not None

    async def test_a_boundary_expires_by_the_clock(self, store: Checkpointer, clock: ManualClock) -> None:
        """Not before its time; from then on the clock decides it once, and people no more."""
        until = clock.now() + 60_000
        await paused(store, "r", replace(ROUTED, expires_at=until), replace(ROUTED, step=2))
        clock.advance(59.999)
        await self.refused(store, store.expire("r", "1.0"), store.expire("r", "1.1"))
        assert await store.due() == ([], [])
        clock.advance(0.001)
        await self.refused(store, decide(store), decide(store, "rejected"))
        assert await store.due() == ([], ["r:1.0"])
        answer = await store.expire("r", "1.0", body=b'{"kind":"approval"}')
        assert answer == Written(2, "ready", clock.now())
        boundary = (await store.boundaries("r"))[0]
        assert boundary.state == "expired"
        assert boundary.decided is not None
        assert (boundary.decided.by, boundary.decided.decision) == (":clock", "expired")
        await self.refused(store, store.expire("r", "1.0"), store.expire("r", "9.9"))
        assert await store.due() == (["r"], [])

    async def test_a_final_expiry_ends_the_run(self, store: Checkpointer, clock: ManualClock) -> None:
        """As a rejection does: at once if nobody holds it, else by a request."""
        await paused(store, "r", replace(GATE, expires_at=clock.now() + 1))
        lease = await create(store, "held")
        await store.append(lease, 0, [visit(0, "running", replace(GATE, expires_at=clock.now() + 1))])
        clock.advance(1)
        answers = await store.expire("r", "1.0"), await store.expire("held", "1.0")
        assert [answer.status if answer else None for answer in answers] == ["rejected", "running"]
        head = await store.head("held")
        assert head is not None
        assert head.ending == "rejected"

    async def test_what_is_decided_in_time_does_not_expire(self, store: Checkpointer, clock: ManualClock) -> None:
        """Neither then nor later: it is closed for good."""
        await paused(store, "r", replace(ROUTED, expires_at=clock.now() + 1), replace(ROUTED, step=2))
        assert await decide(store) is not None
        clock.advance(1)
        await self.refused(store, store.expire("r", "1.0"))
        assert (await store.due())[1] == []
        assert await states(store) == ["approved", "open"]
