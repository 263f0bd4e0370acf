"""A life of one run in which every verb of a store is accepted, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

from stategraph import Checkpointer
from stategraph.checkpoint import Lease, Opening
from stategraph.testing.byhand import GATE, LEASE_MS, create, visit

WAIT = Opening("signal", "", 3, "paid", "shown", name="paid", key="7")


def life(store: Checkpointer, run: str) -> Iterator[tuple[str, Callable[[], Awaitable[Any]]]]:
    """Each verb's name and its call, to be made before the next is asked for."""
    first, second, third, fourth = (Lease(run, "w", epoch, 0) for epoch in (1, 2, 3, 4))
    timed = replace(GATE, final=False, expires_at=store.clock.now())
    failed = visit(2, "failed", kind="failed")
    work = visit(2, "pending", timed, replace(GATE, final=False), WAIT, attempt=1)
    shown: Any = {"digest": "shown", "decision": "approved", "actor": "ann", "act": "yes"}
    yield "create", lambda: create(store, run)
    yield "append", lambda: store.append(first, 0, [visit(0)])
    yield "append", lambda: store.append(first, 1, [visit(1), failed], b"fold")
    yield "retry", lambda: store.retry(run, actor="ops", act="again", body=b"{}")
    yield "claim", lambda: store.claim(run, "w", LEASE_MS)
    yield "renew", lambda: store.renew(second, LEASE_MS)
    yield "effect_begin", lambda: store.effect_begin(second, run, path="", step=2, policy="ask", token="t")
    yield "effect_end", lambda: store.effect_end(run, run, "t", b"1")
    yield "append", lambda: store.append(second, 4, [work])
    yield "decide", lambda: store.decide(run, "5.1", body=b'{"note":"n"}', **shown)
    yield "expire", lambda: store.expire(run, "5.0")
    yield "signal", lambda: store.signal(run, "paid", "7", actor="bank", act="transfer", body=b"{}")
    yield "claim", lambda: store.claim(run, "w", LEASE_MS)
    yield "settle", lambda: store.settle(third, 8, "ready", b"{}")
    yield "claim", lambda: store.claim(run, "w", LEASE_MS)
    yield "release", lambda: store.release(fourth)
    yield "cancel", lambda: store.cancel(run, actor="ops", act="stop", body=b"{}")
    yield "head", lambda: store.head(run)
    yield "load", lambda: store.load(run)
    yield "history", lambda: store.history(run)
    yield "find_act", lambda: store.find_act(run, "stop")
    yield "runs", lambda: store.runs()
    yield "boundaries", lambda: store.boundaries(run)
    yield "due", lambda: store.due()
    yield "prune", lambda: store.prune(0)
    yield "delete", lambda: store.delete(run)
