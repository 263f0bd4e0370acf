"""What drivers and their guests do: claim, start, append, settle, and everything that can happen to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.model import store as verbs
from tests.model.log import (
    Line,
    Log,
    Row,
    apply,
    gate_of,
    openings,
    resting,
    runnable,
    spent,
    waits_for_timer,
)
from tests.model.scope import Case
from tests.model.shape import Node
from tests.model.step import Append, Attach, Begin, Claim, Crash, Effect, End, Release, Renew, Settle, Start, Step
from tests.model.store import Store
from tests.model.world import Flight, Move, Worker, World

__all__ = ["arrivals", "driving"]


def arrivals(case: Case, world: World) -> Iterator[Move]:
    """Somebody claims the run, or joins the epoch that has it."""
    if len(world.workers) >= case.scope.workers:
        return
    store = world.store
    claimed = verbs.claim(store)
    if claimed is not None:
        worker = Worker(claimed.epoch, 0, verbs.restored(case, claimed))
        wrong = [] if worker.view == store.log else ["a run that is loaded from its snapshot is another run"]
        step = Step(f"driver {worker.epoch}", Claim(worker.epoch), "running")
        yield step, world.seated(None, worker, claimed), wrong
    if verbs.held(store) and world.luck.guests:
        worker = Worker(store.epoch, world.luck.guests, store.log)
        step = Step(str(worker), Attach(store.epoch), unlucky=True)
        yield step, world.seated(None, worker).unlucky(guests=1), []


def driving(case: Case, world: World, worker: Worker) -> Iterator[Move]:
    """Every move of one driver or guest."""
    store, view = world.store, worker.view
    if not view.migrated and not worker.unmigrated and not worker.guest:
        yield from _migrate(case, world, worker)
    else:
        yield from _advances(case, world, worker)
    for flight in worker.flights:
        yield from _flying(case, world, worker, flight)
    if view.seq != store.log.seq or not store.leased or not verbs.mine(case, store, worker.epoch):
        yield _renew(case, world, worker)
    if world.luck.crashes:
        yield Step(str(worker), Crash(), unlucky=True), world.seated(worker, None).unlucky(crashes=1), []
    if world.luck.releases and not worker.guest:
        yield _release(case, world, worker)


# -- what the position asks for


def _advances(case: Case, world: World, worker: Worker) -> Iterator[Move]:
    view = worker.view
    lines = runnable(case, view)
    busy = {flight.path for flight in worker.flights}
    for line in lines:
        if line.path not in busy:
            yield from _advance(case, world, worker, line)
    if not lines and not worker.flights and not worker.guest:
        stays = waits_for_timer(view) and resting(case, view) == "pending"
        if not stays and not (case.rules.owner_awaits_guests and _guests_at_work(world, worker)):
            yield from _settle(case, world, worker)


def _advance(case: Case, world: World, worker: Worker, line: Line) -> Iterator[Move]:
    """The next thing to do at a position; only a node's execution takes time."""
    view, visit = worker.view, (line.path, line.step, line.attempt)
    if line.phase == "turned":
        yield from _append(case, world, worker, None, [_leaving(case, view, Row("route", *visit))])
    elif line.phase == "forked":
        yield from _append(case, world, worker, None, [_leaving(case, view, Row("join", *visit))])
    elif line.phase == "route":
        yield from _append(case, world, worker, None, [_leaving(case, view, Row("route", *visit))])
        if world.luck.failures:
            raised = world.unlucky(failures=1)
            yield from _append(case, raised, worker, None, [Row("failed", *visit)], unlucky=True)
    elif spent(case, view) and case.rules.spent_budget_fails:
        yield from _append(case, world, worker, None, [Row("failed", *visit)])
    elif (gate := gate_of(case, line)) is not None and case.rules.approval_of_this_visit:
        yield from _append(case, world, worker, None, [Row("asked", *visit, opens=((gate.kind, line.path),))])
    else:
        flight, name = Flight(*visit, _name(case, line)), _name(case, line)
        started = worker._replace(flights=tuple(sorted((*worker.flights, flight))))
        wrong = _wrong_start(case, world, worker, line)
        yield Step(str(worker), Start(line.path, name)), world.seated(worker, started), wrong


def _leaving(case: Case, view: Log, row: Row) -> Row:
    """The row that completes a visit, with the boundaries at the gates that the line then stands at."""
    return row._replace(opens=openings(case, apply(case, view, row), row.path))


def _name(case: Case, line: Line) -> str:
    item = case.shape.item(line.where, line.place)
    return item.name if isinstance(item, Node) else line.path or "the trunk"


def _wrong_start(case: Case, world: World, worker: Worker, line: Line) -> list[str]:
    """What would be wrong with executing this position now; an owner that was overtaken may do so in vain."""
    log, item = world.store.log, case.shape.item(line.where, line.place)
    assert isinstance(item, Node)
    wrong = []
    if item.gate is not None:
        passed = ("approved", "expired") if item.gate.kind == "signal" else ("approved",)
        visit = (line.path, line.step)
        approvals = [b for b in log.boundaries if (b.path, b.step) == visit and b.kind == item.gate.kind]
        if not any(b.state in passed for b in approvals):
            wrong.append("a node ran past a gate that nobody had approved for this visit")
        elif all(b.edits != worker.view.edits for b in approvals if b.state in passed):
            wrong.append("a node ran on a state that nobody was shown")
    if worker.view.ending or any(other.phase == "failed" for other in worker.view.lines):
        wrong.append("a node was started after a failure or an ending")
    if spent(case, worker.view):
        wrong.append("a node ran on a spent budget")
    if worker.epoch == world.store.epoch and world.store.status == "running":
        if not log.migrated:
            wrong.append("a node of the new graph ran on the state of the old one")
        now, alone = log.line(line.path), not case.scope.luck.guests
        if alone and (now is None or (now.step, now.attempt, now.phase) != (line.step, line.attempt, "ready")):
            wrong.append("a driver started what its log does not say is to be done")
    return wrong


# -- a node in execution


def _flying(case: Case, world: World, worker: Worker, flight: Flight) -> Iterator[Move]:
    item, line = case.nodes[flight.node], worker.view.line(flight.path)
    visit = (flight.path, flight.step, flight.attempt)
    if line is None or (line.step, line.attempt) != (flight.step, flight.attempt):  # another of its epoch has done it
        yield from _append(case, world, worker, flight, [Row("node", *visit)])
        return
    if item.fails and world.luck.failures and flight.phase != "doubt":
        failed = world.unlucky(failures=1)
        yield from _append(case, failed, worker, flight, [_failed(item, line, flight)], unlucky=True)
    if item.effect is not None and flight.phase in ("running", "intent", "done"):
        yield from _effect(case, world, worker, flight, keyed=item.effect == "keyed")
        return
    if flight.phase == "doubt":
        asked = Row("asked", *visit, opens=(("in_doubt", flight.path),))
        yield from _append(case, world, worker, flight, [asked])
        return
    yield from _append(case, world, worker, flight, [_leaving(case, worker.view, Row("node", *visit))])
    if item.router and world.luck.failures:
        done = Row("node", *visit, phase="route")
        raised = Row("failed", flight.path, flight.step + 1, 0)
        yield from _append(case, world.unlucky(failures=1), worker, flight, [done, raised], unlucky=True)


def _failed(item: Node, line: Line, flight: Flight) -> Row:
    """A node's own failure; its retry policy opens a timer."""
    opens = (("timer", flight.path),) if line.failures < item.retries else ()
    return Row("failed", flight.path, flight.step, flight.attempt, opens=opens)


def _effect(case: Case, world: World, worker: Worker, flight: Flight, keyed: bool) -> Iterator[Move]:
    """Intent, effect, outcome."""
    store, token, who = world.store, worker.token(flight), str(worker)
    if flight.phase == "running":
        after = verbs.effect_begin(case, store, worker.epoch, token, keyed)
        if after is None:
            refused = _reread(case, store, _without(worker, flight))
            yield Step(who, Begin(worker.epoch, token, keyed), "refused"), world.seated(worker, refused), []
            return
        told = "known" if after.outcome else "mine" if after.intent == token else "doubt"
        act = Begin(worker.epoch, token, keyed, told)
        wrong = ["an effect began after the run was asked to end"] if store.log.ending and told == "mine" else []
        next_phase = {"known": "known", "mine": "intent", "doubt": "doubt"}[told]
        yield Step(who, act), _turned(world, worker, flight, next_phase, after), wrong
        yield from _unheard(world, Step(who, act), after, wrong)
    elif flight.phase == "intent":
        wrong = ["the effect was silently repeated"] if world.effects >= world.allowed and not keyed else []
        often = min(world.effects + 1, 1 if keyed else 9)  # keyed: its receiver counts one, however often it is told
        yield Step(who, Effect()), _turned(world, worker, flight, "done")._replace(effects=often), wrong
    else:
        after = verbs.effect_end(case, store, token)
        if after is None:
            refused = _reread(case, store, _without(worker, flight))
            yield Step(who, End(token), "refused"), world.seated(worker, refused), []
            return
        wrong = ["an outcome was recorded for another execution"] if store.intent != token else []
        yield Step(who, End(token)), _turned(world, worker, flight, "known", after), wrong
        yield from _unheard(world, Step(who, End(token)), after, wrong)


def _without(worker: Worker, flight: Flight | None) -> Worker:
    return worker._replace(flights=tuple(other for other in worker.flights if other != flight))


def _turned(world: World, worker: Worker, flight: Flight, phase: str, store: Store | None = None) -> World:
    flights = [other._replace(phase=phase) if other == flight else other for other in worker.flights]
    return world.seated(worker, worker._replace(flights=tuple(flights)), store)


# -- writing


def _append(
    case: Case, world: World, worker: Worker, flight: Flight | None, rows: Sequence[Row], unlucky: bool = False
) -> Iterator[Move]:
    """Append a visit's row or rows: heard, unheard, with a snapshot; a refused driver reads the log, or stops."""
    store, lander, epoch = world.store, _without(worker, flight), worker.epoch
    line = worker.view.line(rows[0].path)
    node = flight.node if flight else _name(case, line) if line else ""
    act = Append(epoch, worker.view.seq, tuple(rows), _proposal(case, world, lander, rows), node)
    status = act.status
    after = verbs.append(case, store, epoch, act.seen, rows, status)
    if after is None:
        good = store.status == "running" and store.epoch == epoch and store.log.is_free(rows[0])
        asks = rows[0].kind == "asked"
        wrong = ["good work was refused, and is done again"] if good and not asks else []
        yield Step(str(worker), act, "refused", unlucky), world.seated(worker, _reread(case, store, lander)), wrong
        return
    wrong = [] if store.epoch == epoch else ["an owner that was overtaken has written"]
    if not store.log.is_free(rows[0]):
        wrong.append("a checkpoint was applied twice")
    if spent(case, worker.view) and rows[-1].opens:
        wrong.append("somebody was asked about a node that the budget does not reach")
    taken = lander._replace(view=_taken(case, after, worker.view, rows)) if after.status == "running" else None
    if taken and taken.view != after.log:
        wrong.append("a driver's fold is not the log")
    yield Step(str(worker), act, after.status, unlucky), world.seated(worker, taken, after), wrong
    yield from _unheard(world, Step(str(worker), act, after.status), after, wrong)
    if world.luck.snapshots:
        act = act._replace(snapshot=True)
        kept = verbs.append(case, store, epoch, act.seen, rows, status, worker.view)
        assert kept is not None
        after_kept = world.seated(worker, taken, kept).unlucky(snapshots=1)
        yield Step(str(worker), act, kept.status, unlucky=True), after_kept, wrong


def _taken(case: Case, after: Store, view: Log, rows: Sequence[Row]) -> Log:
    """The driver's fold after its rows: it reads what others wrote before them."""
    if case.rules.reads_before_taking:
        return after.log
    for row in rows:
        view = apply(case, view, row) if view.is_free(row) else view
    return view._replace(seq=after.log.seq)


def _proposal(case: Case, world: World, worker: Worker, rows: Sequence[Row]) -> str:
    """How the run rests after these rows, as far as the driver knows; while it has more to do, not at all."""
    view = worker.view
    if not view.is_free(rows[0]):
        return "running"  # it will be told that this is done
    for row in rows:
        view = apply(case, view, row)
    status = resting(case, view)
    if status == "completed" and case.rules.completion_counts:
        return status
    if worker.flights or status == "running":
        return "running"
    if status == "pending" and waits_for_timer(view):
        return "running"  # it stays
    stops = status == "failed" or bool(view.ending and status != "completed")
    if stops and worker.guest and case.rules.guest_stops_nothing:
        return "running"
    if stops and not worker.guest and case.rules.owner_awaits_guests and _guests_at_work(world, worker):
        return "running"
    return status


def _guests_at_work(world: World, worker: Worker) -> bool:
    """The owner of an epoch has handed out positions that are still in execution."""
    return any(other.epoch == worker.epoch and other.guest and other.flights for other in world.workers)


def _settle(case: Case, world: World, worker: Worker) -> Iterator[Move]:
    """Nothing in execution and nothing to start: say how the run rests, if every row has been seen."""
    store = world.store
    status = resting(case, worker.view)
    act = Settle(worker.epoch, worker.view.seq, status)
    after = verbs.settle(case, store, worker.epoch, act.seen, Row("settled"), status)
    if after is None:
        yield Step(str(worker), act, "refused"), world.seated(worker, _reread(case, store, worker)), []
        return
    wrong = [] if store.epoch == worker.epoch else ["an owner that was overtaken has written"]
    yield Step(str(worker), act, after.status), world.seated(worker, None, after), wrong
    yield from _unheard(world, Step(str(worker), act, after.status), after, wrong)


def _unheard(world: World, step: Step, after: Store, wrong: list[str]) -> Iterator[Move]:
    """The store has taken it, and whoever did it does not know."""
    if world.luck.lost_acks and after != world.store:
        step = step._replace(unlucky=True, unheard=True)
        yield step, world._replace(store=after).unlucky(lost_acks=1), wrong


def _migrate(case: Case, world: World, worker: Worker) -> Iterator[Move]:
    """The run's state brought to the driver's version of the graph, before anything runs on it."""
    store = world.store
    act = Settle(worker.epoch, worker.view.seq, "running", migrates=True)
    after = verbs.settle(case, store, worker.epoch, act.seen, Row("settled", phase="migrated"), "running")
    if after is None:
        reader = _reread(case, store, worker)
        if reader is not None and not case.rules.migration_insists:
            reader = reader._replace(unmigrated=True)
        yield Step(str(worker), act, "refused"), world.seated(worker, reader), []
        return
    migrated = worker._replace(view=after.log)
    yield Step(str(worker), act, "running"), world.seated(worker, migrated, after), []
    yield from _unheard(world, Step(str(worker), act, "running"), after, [])


# -- leases


def _renew(case: Case, world: World, worker: Worker) -> Move:
    """The heartbeat; its answer says whether there are rows to read."""
    store = world.store
    after = verbs.renew(case, store, worker.epoch)
    step = Step(str(worker), Renew(worker.epoch), "refused" if after is None else "running")
    return step, world.seated(worker, _reread(case, store, worker), after), []


def _release(case: Case, world: World, worker: Worker) -> Move:
    after = verbs.release(case, world.store, worker.epoch)
    step = Step(str(worker), Release(worker.epoch), "refused" if after is None else after.status, unlucky=True)
    wrong = ["a driver put back a run that is another's"] if after and worker.epoch != world.store.epoch else []
    return step, world.seated(worker, None, after).unlucky(releases=1), wrong


def _reread(case: Case, store: Store, worker: Worker) -> Worker | None:
    """Read what is new; whoever has lost the lease stops."""
    return worker._replace(view=store.log) if verbs.mine(case, store, worker.epoch) else None
