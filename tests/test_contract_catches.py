"""The contract notices a store that breaks a promise: each of these breaks one, and a test of the suite fails on it."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpointers import MemoryCheckpointer, SqliteCheckpointer
from checkpointers.schema import VERSION
from stategraph import Boundary, Checkpointer, Clock
from stategraph.checkpoint import Checkpoint, Effect, Entry, Head, Lease, Log, Policy, Written
from stategraph.testing import CheckpointerContract
from tests.model.equivalents import EQUIVALENT
from tests.model.mutants import Mutant, mutants
from tests.test_contract import OurSqlite


class ForgetsTheFence(MemoryCheckpointer):
    """Takes a row from whoever had the run once."""

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        run = self._runs[lease.run_id]
        return await super().append(replace(lease, epoch=run.epoch, owner=run.owner or ""), seen, entries, snapshot)


class LosesAWakeup(MemoryCheckpointer):
    """Lets a run rest, whatever its driver has seen."""

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        return await super().append(lease, self._runs[lease.run_id].seq, entries, snapshot)


class DecidesTwice(MemoryCheckpointer):
    """Looks whether a boundary is open, and writes later."""

    async def decide(self, run_id: str, boundary: str, **given: Any) -> Written | None:
        found = self._find_boundary(run_id, boundary)
        was_open = found is not None and found.state == "open"
        await asyncio.sleep(0)
        if found is not None and was_open and found.state != "open":
            found.state, found.decided = "open", None
            found.run.open[boundary] = self._open[found.id] = found
        return await super().decide(run_id, boundary, **given)


class AcceptsAStaleDigest(MemoryCheckpointer):
    """Does not ask what was shown."""

    async def decide(self, run_id: str, boundary: str, **given: Any) -> Written | None:
        if (found := self._find_boundary(run_id, boundary)) is not None:
            given["digest"] = found.opening.digest
        return await super().decide(run_id, boundary, **given)


class NotesWhoWasRefused(MemoryCheckpointer):
    """Leaves a row of a decision that did not count."""

    async def decide(self, run_id: str, boundary: str, **given: Any) -> Written | None:
        written = await super().decide(run_id, boundary, **given)
        if written is None:
            await self.signal(run_id, "refused", boundary, actor="audit", act=f"refused {id(given)}", body=b"{}")
        return written


class TidiesNames(MemoryCheckpointer):
    """Takes two people for one."""

    async def decide(self, run_id: str, boundary: str, **given: Any) -> Written | None:
        return await super().decide(run_id, boundary, **{**given, "actor": given["actor"].strip().lower()})


class HandsAnEffectToTwo(MemoryCheckpointer):
    """Tells everybody that the intent is theirs."""

    async def effect_begin(
        self, lease: Lease, key: str, *, path: str, step: int, policy: Policy, token: str
    ) -> Effect | None:
        effect = await super().effect_begin(lease, key, path=path, step=step, policy=policy, token=token)
        return effect if effect is None or effect.outcome is not None else Effect(token, None)


class TakesALivingLease(MemoryCheckpointer):
    """Gives a run to the next who asks."""

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        if (run := self._runs.get(run_id)) is not None:
            run.lease_until = 0
        return await super().claim(run_id, owner, lease_ms)


class TellsTheOldestFirst(MemoryCheckpointer):
    """Turns the order of the runs around."""

    async def runs(self, **given: Any) -> list[Head]:
        return (await super().runs(**given))[::-1]


class SortsBoundariesAsText(MemoryCheckpointer):
    """Tells '12.0' before '4.2'."""

    async def boundaries(self, run_id: str | None = None, **given: Any) -> list[Boundary]:
        return sorted(await super().boundaries(run_id, **given), key=lambda boundary: boundary.id)


class AnswersWithAView(MemoryCheckpointer):
    """Has bytes that are none."""

    async def history(self, run_id: str, **given: Any) -> list[Checkpoint]:
        rows = await super().history(run_id, **given)
        return [replace(row, body=memoryview(row.body)) for row in rows]  # type: ignore[arg-type]


class ChecksThenWrites(SqliteCheckpointer):
    """Claims in two steps, and between them others do."""

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        head = await self.head(run_id)
        if head is None or head.status != "ready":
            return None
        connection = self._connection or await self._open()
        await connection.execute(
            "UPDATE runs SET status = 'running', owner = ?, lease_until = ?, epoch = epoch + 1 WHERE run_id = ?",
            (owner, self.clock.now() + lease_ms, run_id),
        )
        return Lease(run_id, owner, head.epoch + 1, head.seq, head.ending)


class LosesTheLastRow(SqliteCheckpointer):
    """Ends with less than it has acknowledged, and nothing that would tell."""

    async def close(self) -> None:
        was_open = self._connection is not None
        await super().close()
        if was_open:
            with sqlite3.connect(self.path) as connection:
                connection.execute("DELETE FROM checkpoints WHERE kind = 'settled'")
                connection.execute("UPDATE runs SET seq = (SELECT max(seq) FROM checkpoints c WHERE c.run = runs.run)")
            connection.close()


class SavesWhenItIsClosed(SqliteCheckpointer):
    """Works on a copy of its own."""

    def __init__(self, path: Path, **given: Any) -> None:
        self.saved, copy = path, path.with_name(f"{id(self)}.db")
        with suppress(FileNotFoundError):
            shutil.copy(path, copy)
        super().__init__(copy, **given)

    async def close(self) -> None:
        await super().close()
        with suppress(FileNotFoundError):
            shutil.copy(self.path, self.saved)


class KeepsTheWholeLogInEachRow(SqliteCheckpointer):
    """Stores with each append all that was before."""

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        rows = await self.history(lease.run_id)
        Path(self.path).with_name(f"{lease.run_id}-{len(rows)}").write_bytes(b"".join(row.body for row in rows))
        return await super().append(lease, seen, entries, snapshot)


class ReadsWhatItDoesNotKnow(SqliteCheckpointer):
    """Takes any version for its own."""

    def __init__(self, path: Path, **given: Any) -> None:
        super().__init__(path, **given)
        if path.exists():
            with sqlite3.connect(path) as connection:
                connection.execute(f"PRAGMA user_version={VERSION}")
            connection.close()


class ReadsTheWholeLog(SqliteCheckpointer):
    """Looks at all rows before it takes the next."""

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        await self.history(lease.run_id)
        return await super().append(lease, seen, entries, snapshot)


class ServesWhatItFinds(SqliteCheckpointer):
    """Asks for the key of the digests only when it writes."""

    async def history(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[Checkpoint]:
        connection = self._connection or await self._open()
        found = await connection.execute_fetchall(
            "SELECT c.seq, c.kind, c.status, c.body, c.at_ms FROM checkpoints c JOIN runs r USING (run)"
            " WHERE r.run_id = ? AND c.seq > ? ORDER BY c.seq",
            (run_id, after),
        )
        return [Checkpoint(run_id, *row) for row in found][:limit]

    async def load(self, run_id: str, *, after: int = -1, until: int | None = None) -> Log | None:
        head = await self.head(run_id)
        return None if head is None else Log(head, None, tuple(await self.history(run_id, after=after)))


class Held(OurSqlite):
    """The contract, for the store of the name that is set."""

    faulty = ""

    def open(self, folder: Path, clock: Clock) -> Any:
        store = globals()[self.faulty]
        if issubclass(store, MemoryCheckpointer):
            return store(clock=clock)
        return store(folder / "runs.db", clock=clock, timeout=30)


CAUGHT: list[tuple[type[Checkpointer], str, dict[str, Any]]] = [
    (ForgetsTheFence, "a_stale_driver_writes_nothing", {}),
    (LosesAWakeup, "a_stop_counts_only_for_who_has_seen_everything", {}),
    (DecidesTwice, "of_many_tasks_one_wins", {"contest": "decision"}),
    (AcceptsAStaleDigest, "a_decision_that_does_not_fit_is_refused", {"wrong": {"digest": "what was shown earlier"}}),
    (NotesWhoWasRefused, "a_decision_that_does_not_fit_is_refused", {"wrong": {"boundary": "2.0"}}),
    (TidiesNames, "names_are_the_same_only_if_they_are_equal", {}),
    (HandsAnEffectToTwo, "an_effect_is_run_by_one_execution", {}),
    (HandsAnEffectToTwo, "of_many_threads_one_wins", {"contest": "effect"}),
    (TakesALivingLease, "whoever_claims_next_has_a_higher_epoch", {}),
    (TakesALivingLease, "of_many_threads_one_wins", {"contest": "claim"}),
    (TellsTheOldestFirst, "runs_are_told_newest_first_page_by_page", {}),
    (SortsBoundariesAsText, "each_signal_is_taken_by_one_wait", {}),
    (AnswersWithAView, "every_answer_is_of_its_declared_type", {}),
    (ChecksThenWrites, "of_many_stores_one_wins", {"contest": "claim"}),
    (LosesTheLastRow, "everything_is_there_again", {}),
    (SavesWhenItIsClosed, "what_was_acknowledged_outlives_its_process", {}),
    (SavesWhenItIsClosed, "stores_side_by_side_see_the_same", {}),
    (KeepsTheWholeLogInEachRow, "a_row_takes_no_more_space_in_a_long_log", {}),
    (ReadsTheWholeLog, "a_row_is_no_more_work_in_a_long_log", {}),
    (ServesWhatItFinds, "a_row_that_was_changed_is_served_to_nobody", {}),
    (ReadsWhatItDoesNotKnow, "what_a_later_version_stored_is_left_alone", {"verb": "runs"}),
]


@pytest.mark.parametrize(("faulty", "test", "given"), CAUGHT, ids=[f"{one.__name__}-{test}" for one, test, _ in CAUGHT])
def test_a_broken_promise_is_noticed(
    tmp_path: Path, faulty: type[Checkpointer], test: str, given: dict[str, Any]
) -> None:
    """By the test that is about it."""
    suite: Any = Held()
    suite.faulty = faulty.__name__
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(suite, f"test_{test}")(tmp_path, **given)


#: Of the stores with one predicate left out every so many-th is tried; 1 tries all.
STRIDE = int(os.environ.get("STATEGRAPH_CONTRACT_STRIDE", "9"))
#: What the contract does not promise.
UNPROMISED = "memory._keep_snapshot: or run.snapshot[0] <= seen"  # which of two folds is kept if they come out of order
#: What takes long, and is about more than predicates.
SLOW = ("processes", "threads", "loops", "stores", "long", "work", "stored")


def every_test() -> Iterator[tuple[Callable[..., None], dict[str, Any]]]:
    """The tests of the contract that are over at once, with what they are parametrized by."""
    for name in dir(CheckpointerContract):
        if name.startswith("test_") and not set(name.split("_")).intersection(SLOW):
            test = getattr(CheckpointerContract, name)
            marks = [mark.args for mark in getattr(test, "pytestmark", ())]
            for chosen in itertools.product(*(values for _, values in marks)):
                given: dict[str, Any] = {}
                for (names, _), values in zip(marks, chosen, strict=True):
                    given.update({names: values} if isinstance(names, str) else zip(names, values, strict=True))
                if "threads" not in given.values():
                    yield test, given


TESTS = list(every_test())
CUT = [mutant for mutant in mutants() if mutant.name not in {*EQUIVALENT, UNPROMISED}]


class Damaged(CheckpointerContract):
    """The contract, for a store in which one predicate is missing."""

    store: Any

    def open(self, folder: Path, clock: Clock) -> Checkpointer:
        given = (":memory:",) if hasattr(self.store, "at_hand") else ()
        made: Checkpointer = self.store(*given, clock=clock)
        return made


@pytest.mark.parametrize("mutant", CUT[::STRIDE], ids=lambda mutant: mutant.name[:80])
def test_a_missing_predicate_is_noticed(tmp_path: Path, mutant: Mutant) -> None:
    """By some test of the contract, through the verbs alone."""
    suite = Damaged()
    suite.store = type(mutant.bench().store)
    for test, given in TESTS:
        try:
            test(suite, tmp_path, **given)
        except pytest.skip.Exception:
            pass
        except (Exception, pytest.fail.Exception):  # noqa: BLE001  # whatever fails is a notice
            return
    raise AssertionError("no test notices it: let one")
