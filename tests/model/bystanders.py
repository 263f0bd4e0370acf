"""Other people's runs in every condition, which no verb on another run may touch."""

from __future__ import annotations

from dataclasses import replace

from stategraph.checkpoint import Checkpointer, Effect, Entry, Lease, Opening, Status, dump_openings
from tests.model.bench import AFTER, BEFORE, EXPIRES, LEASE_MS, SHOWN, TOKEN, Dial

__all__ = ["ANOTHERS_ACT", "WAITING", "settle_in"]

GATE = Opening("approval", "", 1, "A", SHOWN, final=True, expires_at=EXPIRES)
WAIT = Opening("signal", "0.1", 0, "B", SHOWN, name="paid", key="7")
#: An act of one of them.
ANOTHERS_ACT = "yes"
#: How many boundaries they have.
WAITING = 16


async def settle_in(store: Checkpointer, clock: Dial) -> None:
    """Fill a store with them. What is checked here needs no walk: it is about one run alone."""
    await _doubtful(store)
    for run_id in ("by-running", "by-waiting", "by-failed", "by-lapsed", "by-done"):
        await _begun(store, run_id, "running")
    await _begun(store, "by-ready", "ready")
    await _append(store, "by-waiting", Entry("node", "", 0, 0, "pending", b"{}", dump_openings([GATE, WAIT])))
    await _append(store, "by-failed", Entry("failed", "", 0, 0, "failed", b"{}"))
    await store.renew(_lease("by-lapsed"), 0)
    clock.at = 2 * AFTER  # it ends after all the others
    await _append(store, "by-done", Entry("node", "", 0, 0, "completed", b"{}"), snapshot=b"{}")
    clock.at = BEFORE
    await _signal(store, "by-ready", "paid", "7")
    await _signalled(store, clock)
    await _effect(store, "by-running", "first")
    await _effect(store, "by-running")
    await store.effect_end("by-running", "by-running/first", TOKEN, b"1")
    assert (await _effect(store, "by-running")).outcome is None, "two effects of one token are one"


async def _doubtful(store: Checkpointer) -> None:
    """The oldest run, with a doubt under each name that a boundary of another run may have."""
    await _begun(store, "by-doubtful", "running")
    await _effect(store, "by-doubtful")
    doubt = Opening("in_doubt", "", 0, "E", SHOWN, effect="by-doubtful/E")
    for step in range(1, 10):
        opened = dump_openings([doubt])
        asked = Entry("asked", "", step, 0, "pending" if step == 9 else "running", b"{}", opened, "by-doubtful/E")
        await _append(store, "by-doubtful", asked)


async def _signalled(store: Checkpointer, clock: Dial) -> None:
    """A run that had signals of several names and keys: each wait takes its own, and one that is over takes none."""
    run_id = "by-signalled"
    await _begun(store, run_id, "running")
    named = replace(GATE, final=False, name="paid", key="7")  # an approval takes no signal, whatever its name
    for name, key in (("sent", "7"), ("paid", "8")):
        await _signal(store, run_id, name, key)
    others = [
        Opening("signal", "0.0", 0, "B", SHOWN, name=name, key=key) for name, key in (("sent", "7"), ("paid", "8"))
    ]
    await _append(store, run_id, Entry("node", "", 0, 0, "running", b"{}", dump_openings([*others, named])))
    await store.decide(run_id, "3.2", digest=SHOWN, decision="approved", actor="ann", act=ANOTHERS_ACT, body=b"{}")
    late = Opening("signal", "0.0", 1, "B", SHOWN, name="paid", key="7", expires_at=EXPIRES)
    await _append(store, run_id, Entry("node", "", 1, 0, "running", b"{}", dump_openings([late])))
    clock.at = AFTER
    await store.expire(run_id, "5.0")
    clock.at = BEFORE
    await _signal(store, run_id, "paid", "7")
    await _append(store, run_id, Entry("node", "", 2, 0, "running", b"{}", dump_openings([WAIT])))
    states = [boundary.state for boundary in await store.boundaries(run_id)]
    assert states == ["approved", "approved", "approved", "expired", "approved"], f"its boundaries are {states}"


async def _signal(store: Checkpointer, run_id: str, name: str, key: str) -> None:
    assert await store.signal(run_id, name, key, actor="bank", act=f"{name} {key}", body=b"{}") is not None


async def _effect(store: Checkpointer, run_id: str, name: str = "E") -> Effect:
    begun = await store.effect_begin(_lease(run_id), f"{run_id}/{name}", path="", step=0, policy="keyed", token=TOKEN)
    assert begun is not None
    return begun


async def _append(store: Checkpointer, run_id: str, entry: Entry, snapshot: bytes | None = None) -> None:
    head = await store.head(run_id)
    assert head is not None
    assert await store.append(_lease(run_id), head.seq, [entry], snapshot) is not None


async def _begun(store: Checkpointer, run_id: str, status: Status) -> None:
    created = await store.create(
        run_id,
        graph="another",
        fingerprint="f",
        creator="carol",
        body=b"{}",
        status=status,
        owner="w",
        lease_ms=LEASE_MS,
    )
    assert created is not None


def _lease(run_id: str) -> Lease:
    return Lease(run_id, "w", 1, 0)
