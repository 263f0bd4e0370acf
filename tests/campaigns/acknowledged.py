"""A checkpointer that remembers what it has answered: what was acknowledged must be there afterwards."""

from __future__ import annotations

from typing import Any, cast

from checkpointers.database import must_last
from stategraph import Checkpointer
from stategraph.checkpoint import Lease, Written


class Acknowledged:
    """The rows and leases that a store has answered for, by the run's seq and epoch."""

    def __init__(self, *, relaxed: bool = False) -> None:
        self.relaxed = relaxed
        #: The time of each row that must be there.
        self.rows: dict[int, int] = {}
        self.epoch = 0
        #: The last row that was answered for, whether it has to be there or not.
        self.told = -1
        #: What was taken from a driver that had been replaced by then.
        self.stale: list[str] = []

    def of(self, inner: Checkpointer) -> Checkpointer:
        """The store, listened to."""
        return cast("Checkpointer", _Listened(inner, self))

    def hear(self, verb: str, arguments: tuple[Any, ...], answer: Any, epoch: int) -> None:
        """An answer was given; when it was asked for, this was the epoch."""
        if verb in ("append", "settle") and answer is not None and arguments[0].epoch < epoch:
            self.stale.append(f"row {answer.seq} is of epoch {arguments[0].epoch}, when {epoch} had been claimed")
        if isinstance(answer, Lease):
            self.epoch = max(self.epoch, answer.epoch)
            if verb == "create":
                self.told = 0
        elif isinstance(answer, Written):
            self.told = max(self.told, answer.seq)
            if not self.relaxed or verb != "append" or must_last(arguments[2]):
                self.rows[answer.seq] = answer.at_ms

    async def missing(self, store: Checkpointer) -> list[str]:
        """What was acknowledged and is not there."""
        head, log = await store.head("r"), await store.history("r")
        times = {row.seq: row.at_ms for row in log}
        wrong = [f"row {seq} is lost" for seq, at in self.rows.items() if times.get(seq) != at]
        if head is None:
            return [*wrong, "the run is lost"] if self.told >= 0 else wrong
        if head.epoch < self.epoch:
            wrong.append(f"the claim of epoch {self.epoch} is lost, the head has {head.epoch}")
        if head.seq != max(times):
            wrong.append(f"the head is at {head.seq}, the log at {max(times)}")
        return wrong


class _Listened:
    def __init__(self, inner: Checkpointer, notes: Acknowledged) -> None:
        self._inner = inner
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in ("create", "claim", "append", "settle", "decide", "expire", "signal", "cancel", "retry"):
            return attribute

        async def call(*arguments: Any, **more: Any) -> Any:
            epoch = self._notes.epoch
            answer = await attribute(*arguments, **more)
            self._notes.hear(name, arguments, answer, epoch)
            return answer

        return call
