"""Walks through many worlds: chosen ones that show every kind of transition, and random ones; reads and removals between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, NamedTuple, get_args

from stategraph.checkpoint import BoundaryState, Lease, Status
from tests.model.bench import AFTER, BEFORE, Bench
from tests.model.bystanders import ANOTHERS_ACT, WAITING, settle_in
from tests.model.log import TERMINAL, expires
from tests.model.probes import probe
from tests.model.scope import Case
from tests.model.search import moves
from tests.model.step import Append, Cancel, Crash, Decide, Expire, Lapse, Release, Step, Tick
from tests.model.walk import Differs, Walk
from tests.model.world import Move, World

__all__ = ["Conformance", "Tally", "Tour"]

#: What ends a run early is rare in most walks.
RARE: dict[type, float] = {Cancel: 0.05, Crash: 0.2, Release: 0.2, Lapse: 0.3, Tick: 0.1, Expire: 0.3}


class Tour(NamedTuple):
    """A walk that is known beforehand."""

    case: Case
    moves: tuple[Move, ...]


class Tally(NamedTuple):
    """What was done."""

    walks: int = 0
    steps: int = 0
    refused: int = 0
    worlds: int = 0


class Conformance:
    """One open store with bystanders, and the walks over it."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.store, self.clock = bench, bench.store, bench.clock
        self.others: list[Any] = []
        self.tally = Tally()
        self.worlds: set[World] = set()

    async def __aenter__(self) -> Conformance:
        try:
            await settle_in(self.store, self.clock)
            self.others = await self.seen()
        except BaseException:
            await self.store.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()

    async def tour(self, tours: Iterable[Tour], share: float) -> None:
        """Take walks that are known."""
        for number, tour in enumerate(tours):
            await self.take(Walk(self.bench, tour.case, f"tour-{number}", Random(number)), tour.moves, share)
        await self.prune()

    async def wander(self, cases: Sequence[Case], many: int, seed: int, share: float, length: int = 60) -> None:
        """Take random walks through the cases in turn."""
        for number in range(many):
            dice = Random(f"{seed}/{number}")
            walk = Walk(self.bench, cases[number % len(cases)], f"walk-{number}", dice)
            await self.take(walk, None, share, length)
        await self.prune()

    async def take(self, walk: Walk, known: Sequence[Move] | None, share: float, length: int = 0) -> None:
        """One walk with its probes, the reads in its last world, and its removal."""
        tastes: dict[str, float] = {}
        refused = 0
        try:
            await walk.begin()
            for number in range(length if known is None else len(known)):
                move = known[number] if known is not None else _chosen(walk, tastes)
                if move is None:
                    break
                await walk.take(move)
                self.worlds.add(walk.world)
                refused += await probe(walk, share)
            thorough = walk.dice.random() < 0.3
            if thorough:
                await self.read(walk)
            await self.remove(walk)
            seen = await self.seen(thorough)
            if seen != self.others[: len(seen)]:
                raise Differs("another run was touched")
        except Exception as error:
            steps = "\n".join(f"{place:3}. {step}" for place, step in enumerate(walk.trace, 1))
            error.add_note(f"{walk.run_id} of {walk.case.scope.name!r} on a {type(self.store).__name__}:\n{steps}")
            raise
        done = self.tally
        self.tally = Tally(done.walks + 1, done.steps + len(walk.trace), done.refused + refused, len(self.worlds))

    async def seen(self, thorough: bool = True) -> list[Any]:
        """What can be seen of the bystanders."""
        self.clock.at = BEFORE
        heads = await self.store.runs(graph="another")
        others = [effect for effect in await self.bench.effects() if effect[0].startswith("by-")]
        seen: list[Any] = [(heads, await self.store.boundaries(), others)]
        if thorough:
            seen += [(await self.store.history(run.run_id), await self.store.load(run.run_id)) for run in heads]
        return seen

    # -- what else can be asked of a store

    async def read(self, walk: Walk) -> None:
        """Lists, pages and what is due say of the run what its head and its rows say."""
        store, run_id, rows, world = self.store, walk.run_id, walk.rows, walk.world.store
        self.clock.at = BEFORE
        listed = {
            status: [head.run_id for head in await store.runs(status=status, graph="g")] for status in get_args(Status)
        }
        if listed != {status: [run_id] if status == world.status else [] for status in listed}:
            raise Differs(f"it is {world.status!r} and listed as {listed}")
        newest = (await store.runs(limit=1))[0]
        if newest != await store.head(run_id):
            raise Differs(f"it is listed as {newest}")
        every = [head.run_id for head in await store.runs()]
        if every[0] != run_id or every[1:] != [head.run_id for head in await store.runs(before=run_id)]:
            raise Differs(f"the newest of {every} is {run_id}")
        if [head.run_id for head in await store.runs(limit=2)] != every[:2]:
            raise Differs("a limit limits nothing")
        for place in range(-1, len(rows), 3):
            page = await store.history(run_id, after=place, limit=2)
            log = await store.load(run_id, after=max(place, 0), until=place + 2)
            if (
                page != rows[place + 1 : place + 3]
                or log is None
                or list(log.checkpoints) != rows[max(place, 0) + 1 : place + 3]
            ):
                raise Differs(f"after row {place} come {page}, {log}")
        for row in rows:
            if row.act is not None and await store.find_act(run_id, row.act) != row:
                raise Differs(f"the act {row.act!r} is not found")
        for somebody, act in ((run_id, "no act"), (run_id, ANOTHERS_ACT), ("nobody", walk.act())):
            if await store.find_act(somebody, act) is not None:
                raise Differs(f"{act!r} is found of {somebody!r}")
        await self.read_boundaries(walk)
        await self.read_due(walk)

    async def read_boundaries(self, walk: Walk) -> None:
        """Each list of them is a part of the whole one."""
        store, run_id, everybodys = self.store, walk.run_id, await self.store.boundaries()
        mine = [boundary for boundary in everybodys if boundary.run_id == run_id]
        if mine != await store.boundaries(run_id) or len(everybodys) != len(mine) + WAITING:
            raise Differs(f"all boundaries are {everybodys}")
        for state in get_args(BoundaryState):
            here, there = await store.boundaries(run_id, state=state), await store.boundaries(state=state)
            if here != [b for b in mine if b.state == state] or there != [b for b in everybodys if b.state == state]:
                raise Differs(f"{state!r} are {there}, and {here} of {run_id}")
        if await store.boundaries(limit=2) != everybodys[:2]:
            raise Differs("a limit limits nothing")

    async def read_due(self, walk: Walk) -> None:
        """What a worker may do: a run that is free, and after its time a boundary."""
        world, run_id = walk.world.store, walk.run_id
        claimable = world.status == "ready" or (world.status == "running" and not world.leased)
        timed = {
            f"{run_id}:{name}"
            for name, b in zip(walk.names, world.log.boundaries, strict=True)
            if b.state == "open" and expires(walk.case, b)
        }
        self.clock.at = BEFORE
        runs, boundaries = await self.store.due()
        if set(runs) != {"by-ready", "by-lapsed"} | ({run_id} if claimable else set()) or boundaries:
            raise Differs(f"due are {runs}, {boundaries}")
        self.clock.at = AFTER
        runs, boundaries = await self.store.due()
        if set(boundaries) != timed | {"by-waiting:1.0"}:
            raise Differs(f"after their time {boundaries} are due, not {timed}")
        if len((await self.store.due(limit=1))[0]) > 1:
            raise Differs("a limit limits nothing")

    async def remove(self, walk: Walk) -> None:
        """End the run if it has not ended; remove it; nothing is left of it."""
        store, run_id = self.store, walk.run_id
        self.clock.at = BEFORE
        if walk.world.store.status not in TERMINAL:
            await store.renew(Lease(run_id, "w", walk.world.store.epoch, 0), 0)
            if await store.cancel(run_id, actor="ops", act="the end", body=b"{}") is None:
                raise Differs("what nobody holds cannot be cancelled")
        head = await store.head(run_id)
        if head is None or await store.prune(head.updated_ms):
            raise Differs("what has ended just now was removed as old")
        removed = await store.delete(run_id)
        left = [
            await store.head(run_id),
            await store.load(run_id),
            *await store.history(run_id),
            *await store.boundaries(run_id),
        ]
        effects = await self.bench.effects()
        if not removed or any(left) or any(effect[0] == walk.effect for effect in effects):
            raise Differs(f"it was removed ({removed}) and there is left: {left}, {effects}")

    async def prune(self) -> None:
        """What ended long ago goes, and nothing else."""
        before, removed, after = self.others, await self.store.prune(3 * AFTER), await self.seen()
        (heads, boundaries, effects), left = before[0], after[0]
        if left != ([head for head in heads if head.status not in TERMINAL], boundaries, effects):
            raise Differs(f"{removed} runs were removed as old, and there is left: {left}")
        self.others = after


def _chosen(walk: Walk, tastes: dict[str, float]) -> Move | None:
    """A random move. Each walk likes others, so that rare sequences are met."""
    choices = list(moves(walk.case, walk.world))
    if not choices:
        return None
    weights = []
    for step, _, _ in choices:
        kind = _kind(step)
        if kind not in tastes:
            rare = 0.1 if "rejected" in kind else RARE.get(type(step.act), 1.0)
            tastes[kind] = rare * walk.dice.choice((0.1, 1.0, 1.0, 4.0))
        weights.append(tastes[kind])
    return walk.dice.choices(choices, weights)[0]


def _kind(step: Step) -> str:
    match step.act:
        case Decide(_, decision, node):
            return f"decide {node} {decision}"
        case Append():
            return f"append {step.act.rows[-1].kind} {step.act.node}"
    return type(step.act).__name__
