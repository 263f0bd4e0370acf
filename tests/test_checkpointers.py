"""What every store promises: each verb accepts what its predicate says, and a refusal leaves no trace."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from checkpointers.memory import MemoryCheckpointer
from checkpointers.postgres import PostgresCheckpointer
from checkpointers.sqlite import SqliteCheckpointer
from stategraph import (
    AgentState,
    Checkpointer,
    Context,
    CorruptCheckpoint,
    InvalidRunId,
    ManualClock,
    StateGraph,
    StoreClosed,
)
from stategraph.checkpoint import Checkpoint, Effect, Lease, Opening, Verdict, Written
from stategraph.context import effect_key
from stategraph.encoding import encode
from stategraph.errors import CheckpointerError
from stategraph.run import fold, fold_log
from tests.conftest import OpenStore
from tests.programs import byhand
from tests.programs.byhand import (
    GATE,
    LEASE_MS,
    begin,
    cancel,
    claimed,
    create,
    decide,
    everything,
    paused,
    retry,
    signal,
    states,
    visit,
)
from tests.programs.walking import Walk

ROUTED = replace(GATE, final=False)
TIMER = Opening("timer", "", 0, "poll", "timer")
LONGER = LEASE_MS / 1000 + 1  # seconds: any lease of these tests is over


async def refused(store: Checkpointer, *calls: Awaitable[object]) -> None:
    """Each call is answered with None or False, and changes nothing that can be read."""
    for place, call in enumerate(calls):
        before = await everything(store)
        answer = await call
        assert answer is None or answer is False, f"call {place} was accepted: {answer}"
        assert await everything(store) == before, f"call {place} left a trace"


# -- runs and leases


async def test_a_new_run_is_its_creators_to_drive(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """The lease of a run that is created running has epoch 1 and stands at row 0."""
    lease = await create(checkpointer)
    assert lease == Lease("r", "w", 1, 0)
    head = await checkpointer.head("r")
    assert head is not None
    assert (head.status, head.seq, head.epoch, head.owner, head.creator) == ("running", 0, 1, "w", "carol")
    assert head.lease_until == clock.now() + LEASE_MS
    (row,) = await checkpointer.history("r")
    assert (row.seq, row.kind, row.status, row.body, row.at_ms) == (0, "start", "running", b'{"n":0}', clock.now())


async def test_a_run_may_be_created_ready_or_waiting(checkpointer: Checkpointer) -> None:
    """Nobody holds such a run; what its first row opens is open."""
    await create(checkpointer, "free", "ready")
    await create(checkpointer, "waits", "pending", replace(GATE, step=0))
    heads = {head.run_id: head for head in await checkpointer.runs()}
    assert [(heads[name].status, heads[name].owner, heads[name].epoch) for name in ("free", "waits")] == [
        ("ready", None, 0),
        ("pending", None, 0),
    ]
    (boundary,) = await checkpointer.boundaries()
    assert (boundary.id, boundary.state, boundary.node, boundary.digest) == ("waits:0.0", "open", "pay", "shown")


async def test_an_id_is_taken_once(checkpointer: Checkpointer) -> None:
    """A second run of the same id is refused whatever its status, and the first is as it was."""
    await create(checkpointer)
    again = {"graph": "other", "fingerprint": "x", "creator": "eve", "body": b'{"n":9}'}
    await refused(checkpointer, checkpointer.create("r", status="running", owner="e", lease_ms=1, **again))  # type: ignore[arg-type]
    await cancel(checkpointer)
    await refused(checkpointer, checkpointer.create("r", status="ready", **again))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "run_id", ["", "a b", "a/b", "../r", "a\x00b", "a\nb", "é", "\ud800", "a" * 129, "a'--", None, 7]
)
async def test_a_hostile_run_id_is_refused(checkpointer: Checkpointer, run_id: Any) -> None:
    """Only 1 to 128 of `A-Za-z0-9._:-` name a run."""
    with pytest.raises(InvalidRunId):
        await create(checkpointer, run_id)
    assert await checkpointer.runs() == []


@pytest.mark.parametrize("run_id", ["a" * 128, "A.z_0:9-", "-", ".."])
async def test_every_allowed_character_names_a_run(checkpointer: Checkpointer, run_id: str) -> None:
    """The ids at the edge of what is allowed."""
    await create(checkpointer, run_id)
    assert [head.run_id for head in await checkpointer.runs()] == [run_id]


async def test_a_run_needs_a_creator(checkpointer: Checkpointer) -> None:
    """Without one four eyes could not be told from two."""
    with pytest.raises(CheckpointerError):
        await create(checkpointer, creator="")
    assert await checkpointer.head("r") is None


async def test_whoever_claims_next_has_a_higher_epoch(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """A free run, and a held one whose lease is over, can be claimed; not a moment earlier."""
    await create(checkpointer, status="ready")
    first = await claimed(checkpointer, owner="a")
    assert (first.epoch, first.owner, first.seq) == (1, "a", 0)
    await refused(checkpointer, checkpointer.claim("r", "b", LEASE_MS))
    clock.advance(LEASE_MS / 1000 - 0.001)
    await refused(checkpointer, checkpointer.claim("r", "b", LEASE_MS))
    clock.advance(0.001)
    second = await claimed(checkpointer, owner="b")
    assert (second.epoch, second.owner) == (2, "b")


async def test_a_run_at_rest_is_not_claimed(checkpointer: Checkpointer) -> None:
    """Waiting, failed and ended runs, and those that do not exist."""
    await paused(checkpointer, "waits")
    lease = await create(checkpointer, "broken")
    await checkpointer.append(lease, 0, [visit(0, "failed", kind="failed")])
    done = await create(checkpointer, "done")
    await checkpointer.append(done, 0, [visit(0, "completed")])
    await refused(
        checkpointer, *(checkpointer.claim(run_id, "v", LEASE_MS) for run_id in ("waits", "broken", "done", "nobody"))
    )


async def test_renewing_holds_the_run_and_tells_what_has_happened(
    checkpointer: Checkpointer, clock: ManualClock
) -> None:
    """The answer has the log's end and whether the run is to end; a lost lease is answered with nothing."""
    lease = await create(checkpointer)
    clock.advance(20)
    assert await checkpointer.renew(lease, LEASE_MS) == Lease("r", "w", 1, 0)
    clock.advance(20)
    await refused(checkpointer, checkpointer.claim("r", "v", LEASE_MS))
    assert await cancel(checkpointer) is not None
    assert await checkpointer.renew(lease, LEASE_MS) == Lease("r", "w", 1, 1, "cancelled")
    clock.advance(LONGER)
    assert await checkpointer.renew(lease, LEASE_MS) is not None, "late, but nobody has claimed it meanwhile"
    clock.advance(LONGER)
    await claimed(checkpointer)
    await refused(checkpointer, checkpointer.renew(lease, LEASE_MS))


async def test_a_released_run_is_free_at_once(checkpointer: Checkpointer) -> None:
    """Only its holder releases it, once."""
    lease = await create(checkpointer)
    await refused(
        checkpointer, checkpointer.release(replace(lease, epoch=2)), checkpointer.release(replace(lease, epoch=0))
    )
    assert await checkpointer.release(lease) is True
    head = await checkpointer.head("r")
    assert head is not None
    assert (head.status, head.owner, head.lease_until) == ("ready", None, None)
    await refused(checkpointer, checkpointer.release(lease), checkpointer.renew(lease, LEASE_MS))
    assert (await claimed(checkpointer)).epoch == 2


# -- a driver's rows


async def test_a_drivers_row_is_the_logs_next(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """The store gives the seq and the time; the row comes back as it was written."""
    lease = await create(checkpointer)
    clock.advance(1)
    written = await checkpointer.append(lease, 0, [visit(0, "completed", path="0.1/3.0", attempt=0)])
    assert written == Written(1, "completed", clock.now())
    row = (await checkpointer.history("r"))[1]
    assert row == Checkpoint("r", 1, "node", "completed", b'{"n":1}', clock.now(), 1, "0.1/3.0", 0, 0)
    assert await checkpointer.find_act("r", "nothing of that name") is None


async def test_a_lost_acknowledgement_repeats_nothing(checkpointer: Checkpointer) -> None:
    """The same append again, with any attempt and any kind, is refused: the visit is completed once."""
    lease = await create(checkpointer)
    assert await checkpointer.append(lease, 0, [visit(0)]) is not None
    await refused(
        checkpointer,
        checkpointer.append(lease, 0, [visit(0)]),
        checkpointer.append(lease, 1, [visit(0)]),
        checkpointer.append(lease, 1, [visit(0, attempt=1)]),
        checkpointer.append(lease, 1, [visit(0, kind="route")]),
        checkpointer.append(lease, 1, [visit(0, kind="join", attempt=3)]),
        checkpointer.append(lease, 1, [visit(0, "failed", kind="failed", attempt=1)]),
        checkpointer.append(lease, 1, [visit(0, "pending", GATE, kind="asked", attempt=2)]),
    )


async def test_a_failed_attempt_leaves_the_visit_to_the_next(checkpointer: Checkpointer) -> None:
    """One row per attempt; the visit is completed by a later one."""
    lease = await create(checkpointer)
    assert await checkpointer.append(lease, 0, [visit(0, "failed", kind="failed")]) is not None
    assert await retry(checkpointer) is not None
    lease = await claimed(checkpointer)
    await refused(
        checkpointer,
        checkpointer.append(lease, 2, [visit(0)]),
        checkpointer.append(lease, 2, [visit(0, "failed", kind="failed")]),
        checkpointer.append(lease, 2, [visit(0, "pending", kind="asked")]),
    )
    assert await checkpointer.append(lease, 2, [visit(0, attempt=1)]) is not None
    await refused(checkpointer, checkpointer.append(lease, 3, [visit(0, attempt=1)]))


async def test_a_stale_driver_writes_nothing(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Once another has claimed the run, no verb of the old lease is accepted."""
    old = await create(checkpointer)
    clock.advance(LONGER)
    new = await claimed(checkpointer)
    await refused(
        checkpointer,
        checkpointer.append(old, 0, [visit(0)]),
        checkpointer.append(old, 0, [visit(0, "failed", kind="failed")]),
        checkpointer.append(replace(old, epoch=3), 0, [visit(0)]),
        checkpointer.settle(old, 0, "failed", b"{}"),
        checkpointer.renew(old, LEASE_MS),
        checkpointer.release(old),
        begin(checkpointer, old, "t"),
    )
    assert await checkpointer.append(new, 0, [visit(0)]) is not None


async def test_only_a_running_run_is_written_by_its_driver(checkpointer: Checkpointer) -> None:
    """Waiting, decided, failed and ended runs take no driver's row even with the last epoch."""
    lease = await paused(checkpointer)
    rows = [visit(5)], [visit(5, "failed", kind="failed")]
    await refused(checkpointer, *(checkpointer.append(lease, 1, row) for row in rows))
    await decide(checkpointer)
    await refused(checkpointer, *(checkpointer.append(lease, 2, row) for row in rows))
    await refused(checkpointer, checkpointer.settle(lease, 2, "completed", b"{}"))
    await cancel(checkpointer)
    await refused(checkpointer, *(checkpointer.append(lease, 3, row) for row in rows))


async def test_two_appends_of_one_visit_have_one_winner(checkpointer: Checkpointer) -> None:
    """Also when they are under way at the same time."""
    lease = await create(checkpointer)
    answers = await asyncio.gather(*(checkpointer.append(lease, 0, [visit(0)]) for _ in range(20)))
    assert [answer for answer in answers if answer is not None] == [await written(checkpointer, 1)]
    assert (await checkpointer.history("r"))[-1].seq == 1


async def written(store: Checkpointer, seq: int, run_id: str = "r") -> Written:
    """The answer that the row's writer must have had."""
    row = (await store.history(run_id, after=seq - 1, limit=1))[0]
    return Written(row.seq, row.status, row.at_ms)


async def test_a_stop_counts_only_for_who_has_seen_everything(checkpointer: Checkpointer) -> None:
    """A signal that the driver has not seen turns its pause into running: no wakeup is lost."""
    lease = await create(checkpointer)
    assert await signal(checkpointer, "s1")
    answer = await checkpointer.append(lease, 0, [visit(0, "pending", GATE)])
    assert answer is not None
    assert (answer.seq, answer.status) == (2, "running")
    assert await states(checkpointer) == ["open"]
    answer = await checkpointer.append(lease, 2, [visit(1, "pending")])
    assert answer is not None
    assert answer.status == "pending"


async def test_a_rest_needs_the_logs_end_exactly(checkpointer: Checkpointer) -> None:
    """A driver that settles has seen every row, and invents none."""
    lease = await create(checkpointer)
    await signal(checkpointer, "s1")
    await refused(checkpointer, *(checkpointer.settle(lease, seen, "pending", b"{}") for seen in (-1, 0, 2)))
    assert await checkpointer.settle(lease, 1, "pending", b"{}") == await written(checkpointer, 2)
    await refused(checkpointer, checkpointer.settle(lease, 2, "completed", b"{}"))


async def test_the_rows_of_one_append_stand_or_fall_together(checkpointer: Checkpointer) -> None:
    """A node's row and its router's failure get consecutive seqs; if the second cannot be, the first is not."""
    lease = await create(checkpointer)
    both = [visit(0), visit(1, "failed", kind="failed")]
    answer = await checkpointer.append(lease, 0, both)
    assert answer is not None
    assert (answer.seq, answer.status) == (2, "failed")
    await retry(checkpointer)
    lease = await claimed(checkpointer)
    before = await everything(checkpointer)
    with pytest.raises(CheckpointerError):
        await checkpointer.append(lease, 3, [visit(2), visit(0)])
    assert await everything(checkpointer) == before
    await refused(checkpointer, checkpointer.append(lease, 3, both))


async def test_one_and_the_same_row_twice_in_an_append_leaves_no_trace(checkpointer: Checkpointer) -> None:
    """The second cannot be, so the first is not, even if they are one object."""
    lease = await create(checkpointer)
    before, row = await everything(checkpointer), visit(0)
    with pytest.raises(CheckpointerError):
        await checkpointer.append(lease, 0, [row, row])
    assert await everything(checkpointer) == before


async def test_a_run_does_not_end_as_nobody_asked(checkpointer: Checkpointer) -> None:
    """`rejected` and `cancelled` need a request: proposed without one they are an error, and nothing is stored."""
    lease = await create(checkpointer)
    before = await everything(checkpointer)
    for status in ("rejected", "cancelled"):
        with pytest.raises(CheckpointerError):
            await checkpointer.append(lease, 0, [visit(0, status)])
        with pytest.raises(CheckpointerError):
            await checkpointer.settle(lease, 0, status, b"{}")
    assert await everything(checkpointer) == before


async def test_appends_of_many_runs_at_once_are_each_on_their_own(checkpointer: Checkpointer) -> None:
    """Committed together, answered apart: a stale one, a twin and a broken one spoil nothing for the others."""
    leases = [await create(checkpointer, f"r{number}") for number in range(4)]
    answers = await asyncio.gather(
        checkpointer.append(leases[0], 0, [visit(0)]),
        checkpointer.append(leases[1], 0, [visit(0)]),
        checkpointer.append(replace(leases[2], epoch=7), 0, [visit(0)]),
        checkpointer.append(leases[1], 0, [visit(0)]),
        checkpointer.append(leases[1], 1, [visit(1, "completed")]),
        checkpointer.append(leases[2], 0, [visit(0, "rejected")]),
        checkpointer.append(leases[3], 0, [visit(0, "failed", kind="failed")]),
        return_exceptions=True,
    )
    assert isinstance(answers[5], CheckpointerError)
    assert [(answer.seq, answer.status) if isinstance(answer, Written) else None for answer in answers] == [
        (1, "running"), (1, "running"), None, None, (2, "completed"), None, (1, "failed"),
    ]  # fmt: skip
    assert [head.seq for head in await checkpointer.runs()] == [1, 0, 2, 1]


# -- decisions


async def test_a_decision_is_recorded_once_and_frees_the_run(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Who, what and when are stored with the boundary; every later decision is refused."""
    await paused(checkpointer)
    clock.advance(60)
    answer = await decide(checkpointer, actor="ann", act="click-1", body=b'{"note":"fine"}')
    assert answer == Written(2, "ready", clock.now())
    (boundary,) = await checkpointer.boundaries("r")
    assert (boundary.state, boundary.approvals) == ("approved", 1)
    assert boundary.decided is not None
    assert (boundary.decided.by, boundary.decided.decision, boundary.decided.act) == ("ann", "approved", "click-1")
    assert (boundary.decided.at_ms, boundary.decided.note) == (clock.now(), "fine")
    clock.advance(60)
    verdicts: tuple[Verdict, ...] = ("approved", "rejected", "retry")
    await refused(checkpointer, *(decide(checkpointer, verdict, actor="bob") for verdict in verdicts))
    await refused(checkpointer, decide(checkpointer, actor="ann", act="click-1"))
    row = await checkpointer.find_act("r", "click-1")
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
async def test_a_decision_that_does_not_fit_is_refused(checkpointer: Checkpointer, wrong: dict[str, Any]) -> None:
    """It names the run, the boundary and what was shown; it is somebody's, it is new, and it is one of two words."""
    await create(checkpointer, "another")
    await paused(checkpointer)
    await signal(checkpointer, "used before")
    await refused(checkpointer, decide(checkpointer, **wrong))
    assert await decide(checkpointer) is not None


async def test_a_final_rejection_ends_a_run_that_nobody_holds(checkpointer: Checkpointer) -> None:
    """Its other boundaries are withdrawn in the same moment, and no verb moves it any more."""
    lease = await paused(checkpointer, "r", GATE, replace(GATE, step=2))
    answer = await decide(checkpointer, "rejected")
    assert answer is not None
    assert answer.status == "rejected"
    assert await states(checkpointer) == ["rejected", "withdrawn"]
    head = await checkpointer.head("r")
    assert head is not None
    assert (head.status, head.ending) == ("rejected", "rejected")
    await refused(
        checkpointer,
        decide(checkpointer, boundary="1.1"),
        checkpointer.claim("r", "v", LEASE_MS),
        checkpointer.renew(lease, LEASE_MS),
        checkpointer.append(lease, 2, [visit(3)]),
        checkpointer.settle(lease, 2, "completed", b"{}"),
        cancel(checkpointer),
        retry(checkpointer),
        signal(checkpointer, "s"),
        checkpointer.expire("r", "1.1"),
        begin(checkpointer, lease, "t"),
    )


async def test_a_final_rejection_of_a_held_run_is_a_request(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Nobody takes the pen from a driver in the middle of a node: what is in flight is recorded, then it ends."""
    lease = await create(checkpointer)
    gates = visit(0, "running", GATE, replace(GATE, step=2))
    assert await checkpointer.append(lease, 0, [gates]) is not None
    answer = await decide(checkpointer, "rejected")
    assert answer is not None
    assert answer.status == "running"
    assert await states(checkpointer) == ["rejected", "withdrawn"]
    await refused(checkpointer, begin(checkpointer, lease, "t"), signal(checkpointer, "s"), cancel(checkpointer))
    assert await checkpointer.append(lease, 2, [visit(5, path="0.0")]) is not None
    settled = await checkpointer.settle(lease, 3, "rejected", b"{}")
    assert settled is not None
    assert settled.status == "rejected"


async def test_a_final_rejection_of_an_abandoned_run_ends_it(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Its driver has died: with the lease over nobody has to be waited for."""
    lease = await create(checkpointer)
    await checkpointer.append(lease, 0, [visit(0, "running", GATE)])
    clock.advance(LONGER)
    answer = await decide(checkpointer, "rejected")
    assert answer is not None
    assert answer.status == "rejected"
    await refused(checkpointer, checkpointer.append(lease, 2, [visit(1)]))


async def test_a_routed_rejection_moves_its_position_alone(checkpointer: Checkpointer) -> None:
    """The run is ready again, its other boundary stays open."""
    await paused(checkpointer, "r", ROUTED, replace(ROUTED, step=2))
    answer = await decide(checkpointer, "rejected")
    assert answer is not None
    assert answer.status == "ready"
    assert await states(checkpointer) == ["rejected", "open"]
    head = await checkpointer.head("r")
    assert head is not None
    assert head.ending is None


async def test_a_quorum_is_so_many_different_people(checkpointer: Checkpointer) -> None:
    """Until it is reached the run waits; nobody votes twice; one rejection is enough."""
    await paused(checkpointer, "r", replace(GATE, needed=3))
    for voter in ("ann", "bob"):
        answer = await decide(checkpointer, actor=voter)
        assert answer is not None
        assert answer.status == "pending"
        await refused(checkpointer, decide(checkpointer, actor=voter, act="another click"))
        await refused(checkpointer, decide(checkpointer, "rejected", actor=voter, act="second thoughts"))
    (boundary,) = await checkpointer.boundaries("r")
    assert (boundary.state, boundary.approvals, boundary.decided) == ("open", 2, None)
    answer = await decide(checkpointer, actor="cid")
    assert answer is not None
    assert answer.status == "ready"
    assert await states(checkpointer) == ["approved"]
    await paused(checkpointer, "s", replace(GATE, needed=3))
    await decide(checkpointer, run_id="s", actor="ann")
    assert (await decide(checkpointer, "rejected", run_id="s", actor="bob")) is not None
    assert await states(checkpointer, "s") == ["rejected"]


async def test_approvers_are_named_or_have_a_role(checkpointer: Checkpointer) -> None:
    """Who is neither is refused; a name is not part of another."""
    await paused(checkpointer, "r", replace(GATE, needed=2, approvers=("ann", "role:lead", 'o"hara')))
    await refused(
        checkpointer,
        decide(checkpointer, actor="bob"),
        decide(checkpointer, actor="an"),
        decide(checkpointer, actor="lead"),
        decide(checkpointer, actor="bob", roles=("role:leader", "ann ")),
    )
    assert await decide(checkpointer, actor="bob", roles=("role:other", "role:lead")) is not None
    assert await decide(checkpointer, actor='o"hara') is not None
    (boundary,) = await checkpointer.boundaries("r")
    assert (boundary.state, boundary.approvers) == ("approved", ("ann", "role:lead", 'o"hara'))


async def test_an_empty_list_of_approvers_is_nobody(checkpointer: Checkpointer) -> None:
    """It is not the same as none."""
    await paused(checkpointer, "r", replace(GATE, approvers=()))
    await refused(checkpointer, decide(checkpointer, actor="ann", roles=("admin",)))


async def test_four_eyes_are_not_the_creators(checkpointer: Checkpointer) -> None:
    """Whoever started the run does not decide it, by name."""
    await paused(checkpointer, "r", replace(GATE, four_eyes=True))
    await refused(checkpointer, decide(checkpointer, actor="carol"))
    assert await decide(checkpointer, actor="ann") is not None


async def test_a_boundary_without_people_is_not_decided_by_one(checkpointer: Checkpointer) -> None:
    """Timers are the clock's and signal waits are a signal's; a question is like an approval."""
    wait = Opening("signal", "", 2, "paid", "shown", name="paid", key="7")
    await paused(checkpointer, "r", replace(TIMER, digest="shown"), wait, replace(GATE, kind="question"))
    await refused(checkpointer, decide(checkpointer, boundary="1.0"), decide(checkpointer, boundary="1.1"))
    assert await decide(checkpointer, boundary="1.2") is not None


async def test_a_boundary_expires_by_the_clock(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Not before its time; from then on the clock decides it once, and people no more."""
    until = clock.now() + 60_000
    await paused(checkpointer, "r", replace(ROUTED, expires_at=until), replace(ROUTED, step=2))
    clock.advance(59.999)
    await refused(checkpointer, checkpointer.expire("r", "1.0"), checkpointer.expire("r", "1.1"))
    assert await checkpointer.due() == ([], [])
    clock.advance(0.001)
    await refused(checkpointer, decide(checkpointer), decide(checkpointer, "rejected"))
    assert await checkpointer.due() == ([], ["r:1.0"])
    answer = await checkpointer.expire("r", "1.0", body=b'{"kind":"approval"}')
    assert answer == Written(2, "ready", clock.now())
    boundary = (await checkpointer.boundaries("r"))[0]
    assert boundary.state == "expired"
    assert boundary.decided is not None
    assert (boundary.decided.by, boundary.decided.decision) == (":clock", "expired")
    await refused(checkpointer, checkpointer.expire("r", "1.0"), checkpointer.expire("r", "9.9"))
    assert await checkpointer.due() == (["r"], [])


async def test_a_final_expiry_ends_the_run(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """As a rejection does: at once if nobody holds it, else by a request."""
    await paused(checkpointer, "r", replace(GATE, expires_at=clock.now() + 1))
    lease = await create(checkpointer, "held")
    await checkpointer.append(lease, 0, [visit(0, "running", replace(GATE, expires_at=clock.now() + 1))])
    clock.advance(1)
    answers = await checkpointer.expire("r", "1.0"), await checkpointer.expire("held", "1.0")
    assert [answer.status if answer else None for answer in answers] == ["rejected", "running"]
    head = await checkpointer.head("held")
    assert head is not None
    assert head.ending == "rejected"


# -- ending and releasing


async def test_cancelling_a_free_run_ends_it(checkpointer: Checkpointer) -> None:
    """Its open boundaries are withdrawn, by whom and when; a second request is told that it has ended."""
    await paused(checkpointer)
    answer = await cancel(checkpointer)
    assert answer is not None
    assert answer.status == "cancelled"
    (boundary,) = await checkpointer.boundaries("r")
    assert boundary.state == "withdrawn"
    assert boundary.decided is not None
    assert boundary.decided.by == "ops"
    await refused(checkpointer, cancel(checkpointer, "again"), decide(checkpointer))


async def test_cancelling_a_held_run_asks_its_driver(checkpointer: Checkpointer) -> None:
    """What is in flight is recorded; a boundary that it opens is withdrawn; then the driver settles."""
    lease = await create(checkpointer)
    answer = await cancel(checkpointer)
    assert answer is not None
    assert (answer.seq, answer.status) == (1, "running")
    await refused(checkpointer, cancel(checkpointer, "again"))
    answer = await checkpointer.append(lease, 0, [visit(0, "pending", GATE)])
    assert answer is not None
    assert answer.status == "running"
    assert await states(checkpointer) == ["withdrawn"]
    (boundary,) = await checkpointer.boundaries("r")
    assert boundary.decided is None, "nobody decided it"
    answer = await checkpointer.settle(lease, 2, "cancelled", b"{}")
    assert answer is not None
    assert answer.status == "cancelled"


async def test_cancelling_again_finishes_what_a_dead_driver_was_asked(
    checkpointer: Checkpointer, clock: ManualClock
) -> None:
    """And the run ends as it was asked first: rejected, if a rejection came before."""
    lease = await create(checkpointer)
    await checkpointer.append(lease, 0, [visit(0, "running", GATE)])
    await decide(checkpointer, "rejected")
    clock.advance(LONGER)
    answer = await cancel(checkpointer)
    assert answer is not None
    assert answer.status == "rejected"


async def test_the_row_that_consumes_the_last_position_wins_over_a_request(checkpointer: Checkpointer) -> None:
    """A run that was asked to end may complete, if its driver has seen the request."""
    lease = await create(checkpointer)
    await cancel(checkpointer)
    answer = await checkpointer.append(lease, 1, [visit(0, "completed")])
    assert answer is not None
    assert answer.status == "completed"


async def test_a_completion_counts_although_there_are_rows_unseen(checkpointer: Checkpointer) -> None:
    """When nothing is left, no request that came meanwhile can overtake it: the next cancel finds an ended run."""
    lease = await create(checkpointer)
    await cancel(checkpointer)
    answer = await checkpointer.append(lease, 0, [visit(0), visit(1, "completed", kind="route")])
    assert answer is not None
    assert (answer.seq, answer.status) == (3, "completed")
    await refused(checkpointer, cancel(checkpointer, "once more"), checkpointer.claim("r", "v", LEASE_MS))


@pytest.mark.parametrize(("act", "actor"), [("", "ops"), (":x", "ops"), ("used", "ops"), ("stop", "")])
async def test_an_operators_act_is_somebodys_and_new(checkpointer: Checkpointer, act: str, actor: str) -> None:
    """Nobody's, nameless and repeated cancels and retries are refused."""
    lease = await create(checkpointer)
    await signal(checkpointer, "used")
    await refused(checkpointer, cancel(checkpointer, act, actor))
    await checkpointer.append(lease, 1, [visit(0, "failed", kind="failed")])
    await refused(checkpointer, cancel(checkpointer, act, actor), retry(checkpointer, act, actor))


async def test_only_a_failed_run_is_retried(checkpointer: Checkpointer) -> None:
    """It is ready then; its boundaries were open all the while, and deciding one did not change its status."""
    lease = await create(checkpointer)
    await refused(checkpointer, retry(checkpointer))
    await checkpointer.append(lease, 0, [visit(0, "running", GATE)])
    await checkpointer.append(lease, 1, [visit(1, "failed", kind="failed")])
    answer = await decide(checkpointer)
    assert answer is not None
    assert answer.status == "failed"
    answer = await retry(checkpointer)
    assert answer is not None
    assert answer.status == "ready"
    await refused(checkpointer, retry(checkpointer, "twice"))


# -- effects


async def test_an_effect_is_run_by_one_execution(checkpointer: Checkpointer) -> None:
    """Of three that race on one key one gets its own token; its outcome is the one that everybody gets."""
    lease = await create(checkpointer)
    begun = await asyncio.gather(*(begin(checkpointer, lease, token) for token in ("a", "b", "c")))
    assert {effect.token for effect in begun if effect} == {"a"}
    assert await checkpointer.effect_end("r", "k", "b", b"2") is None
    assert await checkpointer.effect_end("r", "k", "a", b"1") == b"1"
    assert await checkpointer.effect_end("r", "k", "a", b"9") == b"1", "told twice, the first holds"
    assert await begin(checkpointer, lease, "d") == Effect("a", b"1")
    assert await begin(checkpointer, lease, "d", policy="keyed") == Effect("a", b"1")


async def test_an_effect_needs_the_lease(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """And a run that is not to end; its outcome may be told late, by who has its token."""
    lease = await create(checkpointer)
    assert await begin(checkpointer, lease, "a") is not None
    await create(checkpointer, "s")
    await refused(
        checkpointer,
        begin(checkpointer, replace(lease, epoch=0), "b", "new"),
        begin(checkpointer, replace(lease, run_id="nobody"), "b", "new"),
        begin(checkpointer, Lease("s", "w", 1, 0), "b"),
        checkpointer.effect_end("s", "k", "a", b"1"),
        checkpointer.effect_end("r", "unknown", "a", b"1"),
    )
    clock.advance(LONGER)
    await claimed(checkpointer)
    await refused(checkpointer, begin(checkpointer, lease, "b", "new"), begin(checkpointer, lease, "b"))
    assert await checkpointer.effect_end("r", "k", "a", b"1") == b"1"


async def test_a_foreign_intent_is_in_doubt_and_a_person_is_asked(
    checkpointer: Checkpointer, clock: ManualClock
) -> None:
    """From the question on the lost execution has lost it; the answer is the outcome."""
    await create(checkpointer)
    lost = Lease("r", "w", 1, 0)
    await begin(checkpointer, lost, "lost")
    clock.advance(LONGER)
    lease = await claimed(checkpointer)
    assert await begin(checkpointer, lease, "mine") == Effect("lost", None)
    assert await begin(checkpointer, lease, "mine", policy="keyed") == Effect("lost", None), "the stored policy counts"
    doubt = replace(GATE, kind="in_doubt", effect="k", step=0)
    asks = visit(0, "pending", doubt, kind="asked", effect="k")
    await refused(
        checkpointer,
        checkpointer.append(lease, 0, [visit(0, "pending", doubt, kind="asked", effect="another")]),
        checkpointer.append(lost, 0, [asks]),
    )
    assert await checkpointer.append(lease, 0, [asks]) is not None
    await refused(checkpointer, checkpointer.effect_end("r", "k", "lost", b"1"))
    assert await decide(checkpointer, body=b'{"result":5}') is not None
    assert await begin(checkpointer, await claimed(checkpointer), "late") == Effect("in doubt", b'{"result":5}')


async def test_a_known_outcome_is_not_in_doubt(checkpointer: Checkpointer) -> None:
    """The question is refused when the outcome came before it."""
    lease = await create(checkpointer)
    doubt = replace(GATE, kind="in_doubt", effect="k", step=0)
    asks = visit(0, "pending", doubt, kind="asked", effect="k")
    await refused(checkpointer, checkpointer.append(lease, 0, [asks]))
    await begin(checkpointer, lease, "a")
    await checkpointer.effect_end("r", "k", "a", b"1")
    await refused(checkpointer, checkpointer.append(lease, 0, [asks]))


async def test_an_effect_in_doubt_may_be_tried_again(checkpointer: Checkpointer) -> None:
    """`retry` forgets the intent; a rejection leaves it, so that nobody runs it by accident."""
    for decision, begins in (("retry", Effect("next", None)), ("rejected", Effect("in doubt", None))):
        lease = await create(checkpointer, decision)
        await begin(checkpointer, lease, "lost", decision)
        doubt = Opening("in_doubt", "", 0, "pay", "shown", effect=decision)
        asks = visit(0, "pending", doubt, kind="asked", effect=decision)
        assert await checkpointer.append(lease, 0, [asks]) is not None
        assert await decide(checkpointer, decision, run_id=decision) is not None  # type: ignore[arg-type]
        assert await begin(checkpointer, await claimed(checkpointer, decision), "next", decision) == begins


async def test_a_keyed_effect_is_handed_on(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """The next execution gets the intent under the same key, the lost one can tell no outcome any more."""
    lost = await create(checkpointer)
    assert await begin(checkpointer, lost, "lost", policy="keyed") == Effect("lost", None)
    assert await begin(checkpointer, lost, "lost", policy="keyed") == Effect("lost", None), "a lost acknowledgement"
    clock.advance(LONGER)
    lease = await claimed(checkpointer)
    assert await begin(checkpointer, lease, "other", policy="ask") == Effect("lost", None), "not by another policy"
    assert await begin(checkpointer, lease, "mine", policy="keyed") == Effect("mine", None, handed_on=True)
    await refused(checkpointer, checkpointer.effect_end("r", "k", "lost", b"1"))
    assert await checkpointer.effect_end("r", "k", "mine", b"2") == b"2"
    assert await begin(checkpointer, lease, "later", policy="keyed") == Effect("mine", b"2")


def test_the_keys_of_effects_never_change() -> None:
    """A receiver that honours them has them stored: of run, path, step, node and index, and of nothing else."""
    assert effect_key("order-7", "", 3, "pay") == "1947cda3bf5549cdc1561bea23fe7aa8707f677ab43b8e42f5167ee559f3dea6"
    assert (
        effect_key("order-7", "0.1/3.0", 0, "pay", "once:mail")
        == "74a830201d7ed4f47eb25f4f3882e7a0456ffdbf5b819a3f0df80ffe8237f756"
    )


# -- signals


async def test_each_signal_is_taken_by_one_wait(checkpointer: Checkpointer) -> None:
    """Oldest wait first, whichever comes first; a signal of another key or name wakes nobody."""
    wait = Opening("signal", "", 1, "paid", "d", name="paid", key="7")
    lease = await create(checkpointer)
    assert await signal(checkpointer, "s1")
    assert not await signal(checkpointer, "s1"), "the same act"
    assert await signal(checkpointer, "else", key="8")
    assert await signal(checkpointer, "other", name="shipped")
    assert await checkpointer.append(lease, 3, [visit(0, "pending", wait, wait, wait)]) is not None
    assert await states(checkpointer) == ["approved", "open", "open"]
    assert await signal(checkpointer, "s2")
    assert await states(checkpointer) == ["approved", "approved", "open"]
    head = await checkpointer.head("r")
    assert head is not None
    assert head.status == "ready"
    lease = await claimed(checkpointer)
    for number in range(12):  # ids of two digits: '12.0' is younger than '4.2'
        assert await checkpointer.append(lease, 0, [visit(0, "running", wait, path=f"0.{number}")]) is not None
    for taken in (3, 4):
        assert await signal(checkpointer, f"s{taken}")
        assert await states(checkpointer) == ["approved"] * taken + ["open"] * (15 - taken)
    first, third = (await checkpointer.boundaries("r"))[:3:2]
    assert first.decided is None, "it was closed by the row that opened it"
    assert third.decided is not None
    assert (third.decided.by, third.decided.act) == ("bank", "s3")


@pytest.mark.parametrize(("act", "actor"), [("", "bank"), (":x", "bank"), ("s", ""), ("s", ":clock"), ("used", "bank")])
async def test_a_signal_is_somebodys_and_new(checkpointer: Checkpointer, act: str, actor: str) -> None:
    """As every act is."""
    await create(checkpointer)
    await signal(checkpointer, "used")
    await refused(checkpointer, signal(checkpointer, act, actor=actor))


# -- reading


async def test_an_unknown_run_is_empty(checkpointer: Checkpointer) -> None:
    """Every way to read answers so, and every verb refuses."""
    await create(checkpointer)
    assert await checkpointer.head("nobody") is None
    assert await checkpointer.load("nobody") is None
    assert await checkpointer.history("nobody") == []
    assert await checkpointer.boundaries("nobody") == []
    assert await checkpointer.find_act("nobody", "x") is None
    await refused(
        checkpointer,
        checkpointer.claim("nobody", "w", 1),
        cancel(checkpointer, run_id="nobody"),
        retry(checkpointer, run_id="nobody"),
        decide(checkpointer, run_id="nobody"),
        checkpointer.expire("nobody", "1.0"),
        checkpointer.delete("nobody"),
    )


async def test_runs_are_told_newest_first_page_by_page(checkpointer: Checkpointer) -> None:
    """Each once, by status or graph if that is asked for."""
    for number in range(10):
        await create(
            checkpointer, f"r{number}", "ready" if number % 2 else "running", graph="odd" if number % 2 else "even"
        )
    pages: list[list[str]] = [[]]
    while page := await checkpointer.runs(limit=3, before=pages[-1][-1] if pages[-1] else None):
        pages.append([head.run_id for head in page])
    assert [len(page) for page in pages] == [0, 3, 3, 3, 1]
    assert [run_id for page in pages for run_id in page] == [f"r{number}" for number in reversed(range(10))]
    assert [head.run_id for head in await checkpointer.runs(status="ready", limit=2)] == ["r9", "r7"]
    assert [head.run_id for head in await checkpointer.runs(graph="even", before="r4")] == ["r2", "r0"]
    assert await checkpointer.runs(status="failed") == []
    assert await checkpointer.runs(before="nobody") == []


async def test_a_log_is_read_from_and_to_anywhere(checkpointer: Checkpointer) -> None:
    """`after` is what the reader has, `until` and `limit` where it stops."""
    lease = await create(checkpointer)
    for step in range(5):
        await checkpointer.append(lease, step, [visit(step)])

    async def seqs(**given: int) -> list[int]:
        log = await checkpointer.load("r", **given)
        assert log is not None
        return [row.seq for row in log.checkpoints]

    assert await seqs() == [0, 1, 2, 3, 4, 5]
    assert await seqs(after=2) == [3, 4, 5]
    assert await seqs(after=2, until=4) == [3, 4]
    assert await seqs(until=0) == [0]
    assert await seqs(until=99) == [0, 1, 2, 3, 4, 5]
    assert await seqs(after=5) == []
    assert await seqs(after=99) == []
    assert [row.seq for row in await checkpointer.history("r", after=1, limit=2)] == [2, 3]
    assert [row.seq for row in await checkpointer.history("r", after=4, limit=9)] == [5]
    assert await checkpointer.history("r", after=5) == []


async def test_boundaries_are_told_oldest_first(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Of a run or of all, of one state if that is asked for."""
    await paused(checkpointer, "a", ROUTED, replace(ROUTED, step=2))
    clock.advance(1)
    await paused(checkpointer, "b")
    await decide(checkpointer, run_id="a", boundary="1.1")

    async def ids(run_id: str | None = None, **given: Any) -> list[str]:
        return [boundary.id for boundary in await checkpointer.boundaries(run_id, **given)]

    assert await ids() == ["a:1.0", "a:1.1", "b:1.0"]
    assert await ids("a") == ["a:1.0", "a:1.1"]
    assert await ids(state="open") == ["a:1.0", "b:1.0"]
    assert await ids("a", state="approved") == ["a:1.1"]
    assert await ids(limit=2) == ["a:1.0", "a:1.1"]


async def test_a_boundary_comes_back_as_it_was_declared(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Every field of the opening."""
    opening = Opening(
        "question", "0.1", 4, "ask", "d" * 64, True, None, None, 2, ("ann", "bob"), True, None, "name", "key", 1 << 45
    )
    await paused(checkpointer, "r", opening)
    (boundary,) = await checkpointer.boundaries("r")
    fields = set(Opening.__slots__) - {"on_reject", "on_expire"}
    assert {name: getattr(boundary, name) for name in fields} == {name: getattr(opening, name) for name in fields}
    assert (boundary.opened, boundary.opened_ms, boundary.approvals) == (1, clock.now(), 0)
    (row,) = await checkpointer.history("r", after=0)
    assert row.openings == (opening,)


async def test_a_worker_is_told_what_it_may_do(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Free runs and abandoned ones; not those that are held, wait or have ended."""
    await create(checkpointer, "free", "ready")
    await create(checkpointer, "held")
    await create(checkpointer, "abandoned", lease_ms=1000)
    await paused(checkpointer, "waits")
    done = await create(checkpointer, "done")
    await checkpointer.append(done, 0, [visit(0, "completed")])
    assert await checkpointer.due() == (["free"], [])
    clock.advance(1)
    runs, boundaries = await checkpointer.due()
    assert (sorted(runs), boundaries) == (["abandoned", "free"], [])
    assert len((await checkpointer.due(limit=1))[0]) == 1


async def test_only_ended_runs_are_removed(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """With everything of them: their id, boundaries and effects are free again."""
    lease = await create(checkpointer, "done")
    await begin(checkpointer, lease, "t")
    await checkpointer.append(lease, 0, [visit(0, "running", GATE)], snapshot=b"{}")
    await refused(checkpointer, checkpointer.delete("done"))
    await checkpointer.append(lease, 1, [visit(1, "completed")])
    await paused(checkpointer, "waits")
    await refused(checkpointer, checkpointer.delete("waits"))
    assert await checkpointer.delete("done") is True
    assert [head.run_id for head in await checkpointer.runs()] == ["waits"]
    assert [boundary.run_id for boundary in await checkpointer.boundaries()] == ["waits"]
    assert await byhand.effects(checkpointer) == []
    lease = await create(checkpointer, "done")
    assert await begin(checkpointer, lease, "u") == Effect("u", None)
    assert await states(checkpointer, "done") == []


async def test_old_ended_runs_are_pruned(checkpointer: Checkpointer, clock: ManualClock) -> None:
    """Those that ended before the time; a waiting run stays however old it is."""
    await paused(checkpointer, "waits")
    for name in ("old", "new"):
        clock.advance(10)
        lease = await create(checkpointer, name)
        await checkpointer.append(lease, 0, [visit(0, "completed")])
    assert await checkpointer.prune(clock.now()) == 1
    assert sorted(head.run_id for head in await checkpointer.runs()) == ["new", "waits"]
    assert await checkpointer.prune(clock.now()) == 0


async def test_a_closed_store_says_so(checkpointer: Checkpointer) -> None:
    """Closing twice is fine; every other use is an error of its own."""
    lease = await create(checkpointer)
    await checkpointer.close()
    await checkpointer.close()
    for call in (checkpointer.head("r"), checkpointer.append(lease, 0, [visit(0)]), checkpointer.runs()):
        with pytest.raises(StoreClosed):
            await call


# -- what is stored comes back


HOSTILE = {
    "nul": "a\x00b",
    "lone": "\ud800",
    "quote": "';--",
    "big": 2**70,
    "deep": [[{"k": [1.5, None]}]],
    "\u2028": "\x7f",
}


async def test_any_text_in_a_body_comes_back(checkpointer: Checkpointer) -> None:
    """NUL and lone surrogates, in state, in outcomes and in notes: stored once, and equal."""
    lease = await create(checkpointer, body=encode(HOSTILE))
    await checkpointer.append(lease, 0, [visit(0, "pending", GATE, body=encode(HOSTILE))], snapshot=encode(HOSTILE))
    await decide(checkpointer, body=encode({"note": "a\x00\ud800", **HOSTILE}))
    rows = await checkpointer.history("r")
    assert [row.content for row in rows] == [HOSTILE, HOSTILE, {"note": "a\x00\ud800", **HOSTILE}]
    (boundary,) = await checkpointer.boundaries("r")
    assert boundary.decided is not None
    assert boundary.decided.note == "a\x00\ud800"
    lease = await claimed(checkpointer)
    await begin(checkpointer, lease, "t")
    assert await checkpointer.effect_end("r", "k", "t", encode(HOSTILE)) == encode(HOSTILE)


async def test_any_text_in_state_and_outcomes_is_recorded_once(checkpointer: Checkpointer) -> None:
    """By the engine too: the effect runs once, however often the run is looked at or recovered."""
    calls: list[str] = []

    def effect() -> dict[str, Any]:
        calls.append("call")
        return HOSTILE

    async def work(state: AgentState, ctx: Context) -> dict[str, Any]:
        return {"got": await ctx.once("\x00\ud800", effect), **HOSTILE}

    graph = StateGraph(checkpointer, name="hostile").add_node("work", work).set_entry_point("work")
    await graph.run(dict(HOSTILE), "r")
    for _ in range(5):
        assert [event.event_type async for event in graph.recover("r")] == ["completed"]
    assert calls == ["call"]
    assert (await graph.info("r")).state == {**HOSTILE, "got": HOSTILE}


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"by hand"', b'{"note":7}', b"\xff\x00"])
async def test_a_body_is_the_callers_business(checkpointer: Checkpointer, body: bytes) -> None:
    """A store keeps any bytes; a note is told where there is one."""
    await paused(checkpointer)
    assert await decide(checkpointer, body=body) is not None
    (boundary,) = await checkpointer.boundaries("r")
    assert boundary.decided is not None
    assert boundary.decided.note is None
    assert (await checkpointer.history("r"))[2].body == body


async def test_a_name_with_a_nul_is_told_apart(checkpointer: Checkpointer) -> None:
    """Text is compared whole, not up to its first NUL; a store that cannot keep one says so at once."""
    gate = replace(GATE, needed=2, approvers=("ann", "ann\x00b"))
    if isinstance(checkpointer, PostgresCheckpointer):
        with pytest.raises(CheckpointerError):
            await paused(checkpointer, "r", gate)
        return
    await paused(checkpointer, "r", gate)
    await refused(checkpointer, decide(checkpointer, actor="ann\x00"), decide(checkpointer, actor="ann\x00c"))
    assert await decide(checkpointer, actor="ann\x00b") is not None
    assert await decide(checkpointer, actor="ann") is not None


async def test_text_that_is_no_unicode_is_stored_or_refused(checkpointer: Checkpointer) -> None:
    """A lone surrogate in an actor's name never ends as an error of the database."""
    await paused(checkpointer)
    before = await everything(checkpointer)
    try:
        assert await decide(checkpointer, actor="\ud800") is not None
    except CheckpointerError:
        assert await everything(checkpointer) == before
    else:
        assert (await checkpointer.history("r"))[2].actor == "\ud800"


# -- the fold


def looping(store: Checkpointer) -> StateGraph:
    """A graph whose run is long and heavy enough for snapshots, and waits once."""

    def work(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": ["x" * 5000], "round": state.get("round", 0) + 1}

    graph = (
        StateGraph(store, 100, name="looping").add_node("work", work).add_node("rest", lambda state: {"rested": True})
    )
    graph.set_entry_point("work").add_interrupt_before("rest")
    return graph.add_conditional_edge("work", lambda state: "work" if state["round"] < 30 else "rest")


async def test_a_snapshot_stands_for_the_rows_before_it(checkpointer: Checkpointer) -> None:
    """The fold from it equals the fold of the whole log, now and at every earlier point."""
    graph = looping(checkpointer)
    await graph.run({"messages": []}, "long")
    await graph.decide("long", "approved", by="ann")
    log, rows = await checkpointer.load("long"), await checkpointer.history("long")
    assert log is not None
    assert log.snapshot is not None
    assert 0 < len(log.checkpoints) < len(rows)
    whole = fold("long", rows)
    assert fold_log(log).content() == whole.content()
    for until in range(0, len(rows), 3):
        part = await checkpointer.load("long", until=until)
        assert part is not None
        folded = fold("long", part.checkpoints, part.snapshot[1] if part.snapshot else None)
        assert folded.content() == fold("long", rows[: until + 1]).content()
    assert [event.event_type async for event in graph.resume("long")][-1] == "completed"


async def test_a_log_without_newer_keys_still_folds(checkpointer: Checkpointer) -> None:
    """What a first release wrote: only what a row cannot do without, and keys that nobody knows any more."""
    start = {
        "graph": "g",
        "version": "1",
        "fingerprint": "f",
        "max_steps": 20,
        "at": "plan",
        "set": {"x": 1},
        "gone": 0,
    }
    node = {"node": "plan", "at": "pay", "set": {"y": 2}, "gone": [1]}
    gate = '[{"kind":"approval","path":"","step":1,"node":"pay","digest":"shown"}]'
    lease = await create(checkpointer, body=encode(start))
    entry = visit(0, "pending", body=encode(node))._replace(opens=gate)
    assert await checkpointer.append(lease, 0, [entry]) is not None
    assert await decide(checkpointer, body=b"{}") is not None
    run = fold("r", await checkpointer.history("r"))
    assert (run.status, run.state, run.steps) == ("ready", {"x": 1, "y": 2}, 1)
    assert [position.node for position in run.runnable()] == ["pay"]


async def test_a_snapshot_without_newer_keys_still_folds() -> None:
    """A snapshot that an older release left has what it had then."""
    start = {"graph": "g", "version": "1", "fingerprint": "f", "max_steps": 20, "at": "plan", "set": {"x": 1}}
    run = fold("r", [Checkpoint("r", 0, "start", "running", encode(start), 1)])
    content = run.content()
    for newer in ("turned_down", "usage", "error", "ending", "parent"):
        del content[newer]
    again = fold("r", [], encode(content))
    assert again.content() == run.content()


# -- integrity


#: What is written over each column of a row.
CHANGES = {
    "kind": "CASE kind WHEN 'settled' THEN 'cancel' ELSE 'settled' END",
    "status": "status || 'x'",
    "epoch": "coalesce(epoch, 0) + 1",
    "path": "coalesce(path, '') || 'x'",
    "step": "coalesce(step, 0) + 100",
    "attempt": "coalesce(attempt, 0) + 100",
    "opens": "coalesce(opens, '') || ' '",
    "boundary": "coalesce(boundary, '') || 'x'",
    "decision": "CASE decision WHEN 'approved' THEN 'rejected' ELSE 'approved' END",
    "name": "coalesce(name, '') || 'x'",
    "key": "coalesce(key, '') || 'x'",
    "actor": "coalesce(actor, '') || 'x'",
    "act": "coalesce(act, '') || 'x'",
    "body": "CAST(body || x'20' AS BLOB)",
    "at_ms": "at_ms + 1",
    "digest": "zeroblob(16)",
}


async def logged(store: SqliteCheckpointer) -> int:
    """A run with a row of every kind; how many they are."""
    lease = await create(store)
    wait = Opening("signal", "", 3, "paid", "d", name="paid", key="7")
    await begin(store, lease, "lost")
    await store.append(lease, 0, [visit(0, kind="route"), visit(1, "failed", kind="failed")])
    await retry(store)
    lease = await claimed(store)
    doubt = replace(GATE, kind="in_doubt", effect="k")
    await store.append(lease, 3, [visit(1, "pending", doubt, wait, kind="asked", attempt=1, effect="k")])
    await decide(store, boundary="4.0")
    await signal(store, "s")
    lease = await claimed(store)
    await store.append(lease, 6, [visit(1, attempt=2, body=b'{"b":2}'), visit(2, kind="join")])
    await cancel(store)
    await store.settle(lease, 9, "cancelled", b"{}")
    rows = await store.history("r")
    assert {row.kind for row in rows} == {
        "start", "node", "route", "join", "failed", "asked", "settled", "decision", "signal", "cancel", "retry"
    }  # fmt: skip
    return len(rows)


def by_hand(path: Path, statement: str, *given: object) -> int:
    """Change a database past the library, its CHECKs off; how many rows were changed."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        changed = connection.execute(statement, given).rowcount
        connection.commit()
        return changed
    finally:
        connection.close()


async def breaks(store: SqliteCheckpointer) -> tuple[str, int]:
    """Where a run's log breaks; whichever way it is read, the same is told."""
    told = set()
    for read in (store.load, store.history):
        with pytest.raises(CorruptCheckpoint) as caught:
            await read("r")
        told.add((caught.value.run_id, caught.value.seq))
    (where,) = told
    return where


@pytest.mark.parametrize("column", CHANGES)
async def test_a_changed_column_is_noticed(open_store: OpenStore, tmp_path: Path, column: str) -> None:
    """Whatever is changed behind the store's back, in whatever kind of row: run and row are named, nothing is served."""
    store = open_store("sound.db")
    many = await logged(store)
    await store.close()
    change = f"UPDATE checkpoints SET {column} = {CHANGES[column]} WHERE seq = ? AND {column} IS NOT {CHANGES[column]}"
    for seq in range(many):
        shutil.copy(tmp_path / "sound.db", tmp_path / f"{seq}.db")
        assert by_hand(tmp_path / f"{seq}.db", change, seq) == 1
        assert await breaks(open_store(f"{seq}.db")) == ("r", seq)


@pytest.mark.parametrize("seq", [0, 4, 10])
async def test_a_row_that_was_cut_out_is_noticed(open_store: OpenStore, tmp_path: Path, seq: int) -> None:
    """The first, one in the middle, the last: the head knows how long the log is."""
    store = open_store()
    await logged(store)
    by_hand(tmp_path / "runs.db", "DELETE FROM checkpoints WHERE seq = ?", seq)
    with pytest.raises(CorruptCheckpoint) as told:
        await store.load("r")
    assert (told.value.run_id, told.value.seq) == ("r", seq)


@pytest.mark.parametrize("first", [0, 4])
async def test_a_tail_that_was_cut_off_is_noticed(open_store: OpenStore, tmp_path: Path, first: int) -> None:
    """However much of it, the whole log too."""
    store = open_store()
    await logged(store)
    by_hand(tmp_path / "runs.db", "DELETE FROM checkpoints WHERE seq >= ?", first)
    with pytest.raises(CorruptCheckpoint) as told:
        await store.load("r")
    assert told.value.seq == first


async def test_rows_that_were_exchanged_are_noticed(open_store: OpenStore, tmp_path: Path) -> None:
    """A sound row of another run, or of another place, does not belong here."""
    store = open_store()
    await paused(store)
    await paused(store, "twin")
    for old, new in ((1, 3), (2, 1), (3, 2)):
        by_hand(tmp_path / "runs.db", "UPDATE checkpoints SET run = ? WHERE run = ?", new, old)
    assert (await breaks(store))[0] == "r"


async def test_a_changed_snapshot_is_noticed(open_store: OpenStore, tmp_path: Path) -> None:
    """A fold that nobody made is served to nobody."""
    graph = looping(store := open_store())
    await graph.run({"messages": []}, "r")
    by_hand(tmp_path / "runs.db", "UPDATE snapshots SET body = CAST(replace(body, '\"round\":', '\"rOund\":') AS BLOB)")
    with pytest.raises(CorruptCheckpoint) as told:
        await store.load("r")
    assert told.value.run_id == "r"


async def test_whoever_has_no_key_forges_nothing(open_store: OpenStore) -> None:
    """With `secret` a row that another key has sealed is not sound, whatever it says."""
    await paused(open_store(secret=b"of the deployment"))
    assert len(await open_store(secret=b"of the deployment").history("r")) == 2
    assert await breaks(open_store(secret=b"guessed")) == ("r", 0)
    assert await breaks(open_store()) == ("r", 0)


async def test_the_store_is_readable_by_its_owner_alone(open_store: OpenStore, tmp_path: Path) -> None:
    """The file and what SQLite lays beside it."""
    await create(open_store())
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


# -- every store alike: random sequences of verbs, executed on both, side by side

WALKS, STEPS = 320, 45


@pytest.mark.parametrize("quarter", range(4))
async def test_the_stores_answer_alike(quarter: int) -> None:
    """Whatever sequence of verbs, sensible or not: each answer and all that can be read are equal after every step."""
    for number in range(quarter, WALKS, 4):
        clock = ManualClock()
        async with MemoryCheckpointer(clock=clock) as memory, SqliteCheckpointer(":memory:", clock=clock) as sqlite:
            walk = Walk(memory, sqlite, clock, Random(number))
            try:
                for _ in range(STEPS):
                    await walk.step()
                assert await everything(memory) == await everything(sqlite)
            except BaseException as error:
                error.add_note(f"walk {number}: " + " | ".join(walk.trace))
                raise
