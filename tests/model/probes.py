"""What the model disables in a state: each such call is refused by the store, and touches no row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, get_args

from stategraph.checkpoint import COMPLETES, Effect, Entry, Lease, Opening, Policy, Verdict, Written, dump_openings
from stategraph.errors import CheckpointerError
from tests.model import store as verbs
from tests.model.bench import AFTER, BEFORE, LEASE_MS, SHOWN, TOKEN
from tests.model.log import TERMINAL, Boundary
from tests.model.shape import CREATOR, PEOPLE
from tests.model.walk import KEY, NAME, OUTCOME, Differs, Walk, told, told_token

__all__ = ["probe", "probes"]

STRANGER = "prober"
#: Names that nobody may take.
NAMELESS = ("", ":clock")
GATE = dump_openings([Opening("approval", "", 0, "A", SHOWN)])


class Probe(NamedTuple):
    """A call that must change nothing."""

    what: str
    call: Callable[[], Awaitable[Any]]
    #: What it answers all the same.
    answer: Any = None
    #: It is the caller's mistake, and said so.
    raises: bool = False
    at: int = BEFORE


async def probe(walk: Walk, share: float) -> int:
    """Make a share of the disabled calls, and look whether anything has changed."""
    chosen = [each for each in probes(walk) if walk.dice.random() < share]
    if not chosen:
        return 0
    before = await traces(walk)
    for each in chosen:
        walk.clock.at = each.at
        try:
            answer = await each.call()
        except CheckpointerError as error:
            if not each.raises:
                raise Differs(f"{each.what}: {error}") from error
        else:
            if each.raises or answer != each.answer:
                raise Differs(f"{each.what}: answered {answer}")
    after = await traces(walk)
    if before != after:
        names = ", ".join(each.what for each in chosen)
        raise Differs(f"one of these was refused and left a trace ({names}): {before} became {after}")
    return len(chosen)


async def traces(walk: Walk) -> list[Any]:
    """All that a call could leave behind, in this run and in the others."""
    walk.clock.at = BEFORE
    store, run_id = walk.store, walk.run_id
    kept = [await store.runs(limit=100), await store.history(run_id), await store.boundaries(run_id)]
    return [*kept, await walk.bench.effects()]


def probes(walk: Walk) -> Iterator[Probe]:
    """Every call that must be refused here."""
    for index, boundary in enumerate(walk.world.store.log.boundaries):
        yield from _of_boundary(walk, index, boundary)
    for unknown in ("99.0", "0.7", ""):
        yield Probe(f"decide {unknown!r}", _decision(walk, unknown, "approved", "ann"))
        yield Probe(f"expire {unknown!r}", partial(walk.store.expire, walk.run_id, unknown), at=AFTER)
    yield from _of_acts(walk)
    yield from _of_drivers(walk)
    yield from _of_effects(walk)
    again = partial(walk.store.create, graph="g", fingerprint="f", creator=CREATOR, body=b"{}", opens=GATE)
    yield Probe("create it again", partial(again, walk.run_id, status="pending"))
    yield Probe("create a run of nobody", partial(again, "new", status="ready", creator=""), raises=True)
    yield from _of_no_run(walk, Lease("nobody", "w", walk.world.store.epoch, 0))
    if walk.world.store.status not in TERMINAL:
        yield Probe("delete it", partial(walk.store.delete, walk.run_id), answer=False)


def _of_no_run(walk: Walk, lease: Lease) -> Iterator[Probe]:
    """Every verb on a run that is not."""
    store, run_id = walk.store, lease.run_id
    somebody: dict[str, Any] = {"actor": "ops", "act": walk.act(), "body": b"{}"}
    entry = Entry("node", "", 0, 0, "running", b"{}", GATE)
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "claim": partial(store.claim, run_id, "w", LEASE_MS),
        "renew": partial(store.renew, lease, LEASE_MS),
        "append to": partial(store.append, lease, 0, [entry], b"{}"),
        "settle": partial(store.settle, lease, 0, "pending", b"{}"),
        "decide": partial(store.decide, run_id, "0.0", digest=SHOWN, decision="approved", **somebody),
        "expire": partial(store.expire, run_id, "0.0"),
        "signal": partial(store.signal, run_id, NAME, KEY, **somebody),
        "cancel": partial(store.cancel, run_id, **somebody),
        "retry": partial(store.retry, run_id, **somebody),
        "begin an effect of": partial(
            store.effect_begin, lease, "nobody/E", path="", step=0, policy="ask", token=STRANGER
        ),
        "end an effect of": partial(store.effect_end, run_id, walk.effect, STRANGER, b"1"),
        "find": partial(store.head, run_id),
        "read": partial(store.load, run_id),
    }
    for what, call in calls.items():
        yield Probe(f"{what} a run that is not", call)
    yield Probe("release a run that is not", partial(store.release, lease), answer=False)
    yield Probe("delete a run that is not", partial(store.delete, run_id), answer=False)


# -- decisions


def _decision(
    walk: Walk,
    name: str,
    decision: Any,
    actor: str,
    *,
    roles: tuple[str, ...] = (),
    act: str | None = None,
    digest: str = SHOWN,
) -> Callable[[], Awaitable[Written | None]]:
    act = walk.act() if act is None else act
    given = {"digest": digest, "decision": decision, "actor": actor, "act": act, "body": OUTCOME, "roles": roles}
    return partial(walk.store.decide, walk.run_id, name, **given)


def _of_boundary(walk: Walk, index: int, boundary: Boundary) -> Iterator[Probe]:
    """Decisions that this boundary does not take: of this kind, at this time, by these people."""
    world, name, late = walk.world.store, walk.names[index], index in walk.world.store.late
    at, what = AFTER if late else BEFORE, f"the {boundary.kind} {name} before {boundary.node}"
    able = []
    for person, roles in PEOPLE.items():
        for decision in get_args(Verdict):
            if verbs.may_decide(walk.case, world, index, decision, person):
                able.append((person, roles, decision))
            else:
                call = _decision(walk, name, decision, person, roles=roles)
                yield Probe(f"{person} decides {what}: {decision}", call, at=at)
    if not late:
        due = BEFORE if boundary.state == "open" else AFTER
        yield Probe(f"expire {what}", partial(walk.store.expire, walk.run_id, name), at=due)
    gate = walk.case.nodes[boundary.node].gate
    for person, roles, decision in able[:2]:
        decide = partial(_decision, walk, name)
        yield Probe(f"decide {what} by a stale page", decide(decision, person, roles=roles, digest="else"), at=at)
        yield Probe(f"decide {what} as the clock does", decide("expired", person, roles=roles), at=at)
        for nobody in NAMELESS:
            yield Probe(f"decide {what} as {nobody!r}", decide(decision, nobody, roles=("lead", "guest")), at=at)
            yield Probe(
                f"decide {what} by the act {nobody!r}", decide(decision, person, roles=roles, act=nobody), at=at
            )
        for used in _used(walk):
            yield Probe(f"decide {what} by a used act", decide(decision, person, roles=roles, act=used), at=at)
        if boundary.kind == "approval" and gate and gate.approvers:
            yield Probe(f"a stranger decides {what}", decide(decision, STRANGER, roles=("else",)), at=at)


def _used(walk: Walk) -> list[str]:
    """The last act of a person."""
    acts = [row.act for row in walk.rows if row.act is not None and not row.act.startswith(":")]
    return acts[-1:]


# -- signals, cancels, retries


def _of_acts(walk: Walk) -> Iterator[Probe]:
    store, world, run_id = walk.store, walk.world.store, walk.run_id
    calls: dict[str, Callable[..., Awaitable[Written | None]]] = {
        "signal": partial(store.signal, run_id, NAME, KEY, body=b"{}"),
        "cancel": partial(store.cancel, run_id, body=b"{}"),
        "retry": partial(store.retry, run_id, body=b"{}"),
    }
    closed, ending = world.status in TERMINAL, bool(world.log.ending)
    disabled = {
        "signal": closed or ending,
        "cancel": closed or (ending and verbs.held(world)),
        "retry": world.status != "failed",
    }
    for what, call in calls.items():
        if disabled[what]:
            yield Probe(what, partial(call, actor="ops", act=walk.act()))
            continue
        yield Probe(f"{what} by nobody", partial(call, actor="", act=walk.act()))
        if what == "signal":
            yield Probe("signal as the clock", partial(call, actor=":clock", act=walk.act()))
        for act in (*NAMELESS, *_used(walk)):
            yield Probe(f"{what} by the act {act!r}", partial(call, actor="ops", act=act))


# -- drivers


def _of_drivers(walk: Walk) -> Iterator[Probe]:
    store, world, run_id = walk.store, walk.world.store, walk.run_id
    if world.status not in ("ready", "running") or verbs.held(world):
        yield Probe("claim", partial(store.claim, run_id, "w", LEASE_MS))
    for epoch in range(max(0, world.epoch - 2), world.epoch + 2):
        mine, lease = epoch == world.epoch and world.status == "running", walk.lease(epoch)
        if not mine:
            yield Probe(f"renew {epoch}", partial(store.renew, lease, LEASE_MS))
            yield Probe(f"release {epoch}", partial(store.release, lease), answer=False)
            yield from _of_the_overtaken(walk, lease)
        for seen in (world.log.seq - 1, world.log.seq, world.log.seq + 1):
            if not mine or seen != world.log.seq:
                status = told(world.log.ending or "pending")
                yield Probe(f"settle {epoch}, row {seen} seen", partial(store.settle, lease, seen, status, b"{}"))
        yield from _of_visits(walk, lease)
    if world.status == "running":
        yield from _of_mistakes(walk, walk.lease(world.epoch))


def _append(walk: Walk, lease: Lease, *entries: Entry) -> Callable[[], Awaitable[Written | None]]:
    return partial(walk.store.append, lease, walk.world.store.log.seq, entries, b"{}")


def _of_the_overtaken(walk: Walk, lease: Lease) -> Iterator[Probe]:
    """Rows that would be welcome from the owner."""
    for line in walk.world.store.log.lines:
        free = Entry("node", line.path, line.step, line.attempt, "running", b"{}", GATE)
        what = f"at {line.path!r} in epoch {lease.epoch}"
        yield Probe(f"append node {what}", _append(walk, lease, free))
        yield Probe(f"append failed {what}", _append(walk, lease, free._replace(kind="failed", status="failed")))


def _of_visits(walk: Walk, lease: Lease) -> Iterator[Probe]:
    """A completed visit takes no row at any attempt, another one none at an attempt that has its row."""
    rows = [row for row in walk.rows if row.path is not None and row.step is not None]
    for path, step in sorted({(row.path or "", row.step or 0) for row in rows}):
        kinds = [row.kind for row in rows if (row.path, row.step) == (path, step)]
        for attempt in range(len(kinds) + (not COMPLETES.isdisjoint(kinds))):
            for kind in ("node", "join", "failed", "asked"):
                entry = Entry(kind, path, step, attempt, "running", b"{}", GATE)
                what = f"append {kind} at {path!r}, step {step}, attempt {attempt}, in epoch {lease.epoch}"
                yield Probe(what, _append(walk, lease, entry))


def _of_mistakes(walk: Walk, lease: Lease) -> Iterator[Probe]:
    """What no log can make right is an error."""
    log = walk.world.store.log
    first = next((row for row in walk.rows if row.path is not None), None)
    for line in log.lines:
        free = Entry("node", line.path, line.step, line.attempt, "running", b"{}", GATE)
        if first is not None:
            taken = Entry("failed", first.path or "", first.step or 0, first.attempt or 0, "running", b"{}")
            yield Probe(
                "append two rows, the second of a visit that has it", _append(walk, lease, free, taken), raises=True
            )
        failed = free._replace(kind="failed")
        for what, rows in {
            "that complete one visit": (free, free),
            "of a visit that is completed": (free, failed._replace(attempt=line.attempt + 1)),
            "of an attempt that has failed": (failed, free),
        }.items():
            yield Probe(f"append two rows, the second {what}", _append(walk, lease, *rows), raises=True)
        for ending in ("rejected", "cancelled"):
            if log.ending != ending:
                wish = free._replace(status=told(ending))
                yield Probe(f"append a row that makes it {ending}", _append(walk, lease, wish), raises=True)
                settle = partial(walk.store.settle, lease, log.seq, told(ending), b"{}")
                yield Probe(f"settle it {ending}", settle, raises=True)


# -- effects


def _of_effects(walk: Walk) -> Iterator[Probe]:
    store, world, run_id = walk.store, walk.world.store, walk.run_id
    for epoch in range(max(0, world.epoch - 1), world.epoch + 2):
        begin = partial(store.effect_begin, walk.lease(epoch), path="", step=0, token=STRANGER)
        if epoch == world.epoch and world.status == "running" and not world.log.ending:
            yield Probe("begin another run's effect", partial(begin, "by-running/E", policy="keyed"))
            yield from _of_another_policy(walk, begin)
            continue
        for key in (walk.effect, f"{run_id}/new"):
            for policy in get_args(Policy):
                yield Probe(f"begin {key} as {policy} in epoch {epoch}", partial(begin, key, policy=policy))
    if world.status == "running" and world.log.lines:
        yield from _of_questions(walk, walk.lease(world.epoch))
    end = partial(store.effect_end, run_id)
    yield Probe("end an effect with a foreign token", partial(end, walk.effect, STRANGER, b"1"))
    yield Probe("end another run's effect", partial(end, "by-running/E", TOKEN, b"1"))
    if world.outcome:
        again = partial(end, walk.effect, told_token(world.intent), b'"else"')
        yield Probe("tell the outcome again, otherwise", again, answer=walk.outcome)


def _of_another_policy(walk: Walk, begin: Callable[..., Awaitable[Any]]) -> Iterator[Probe]:
    """An intent is handed on only if it was declared so when it was written, and is now."""
    world, keyed = walk.world.store, any(node.effect == "keyed" for node in walk.case.nodes.values())
    if world.intent is not None:
        known = Effect(told_token(world.intent), walk.outcome if world.outcome else None)
        other = partial(begin, walk.effect, policy="ask" if keyed else "keyed")
        yield Probe("begin the effect under another policy", other, answer=known)


def _of_questions(walk: Walk, lease: Lease) -> Iterator[Probe]:
    """Nobody is asked about an effect that is not this run's, or is not in doubt."""
    world, line = walk.world.store, walk.world.store.log.lines[0]
    doubtful = world.intent is not None and not world.outcome
    for key in ("by-running/E", "unknown", *(() if doubtful else (walk.effect,))):
        opens = dump_openings([Opening("in_doubt", line.path, line.step, "E", SHOWN, effect=key)])
        entry = Entry("asked", line.path, line.step, line.attempt, "running", b"{}", opens, key)
        yield Probe(f"ask about {key}", _append(walk, lease, entry))
