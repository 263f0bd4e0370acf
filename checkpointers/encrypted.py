"""Encryption at rest, around any store: what rows say is AES-GCM before the store sees it, and bound to its place.

The key is the application's; the store, its backups and whoever reads its file see ids, names, statuses and times alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from types import TracebackType
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from checkpointers.boundaries import note_of
from stategraph.checkpoint import (
    Boundary,
    Checkpoint,
    Checkpointer,
    Effect,
    Entry,
    Head,
    Lease,
    Log,
    Policy,
    Status,
    Verdict,
    Written,
)
from stategraph.errors import CheckpointerError, CorruptCheckpoint

__all__ = ["EncryptedCheckpointer"]

#: The first byte of what is encrypted in this way.
VERSION = b"\x01"
#: Bytes: of a key, of its name in front of what it encrypts, of a nonce (NIST SP 800-38D, 8.2.2).
KEY, NAME, NONCE = 32, 4, 12


class EncryptedCheckpointer:
    """A store whose rows, snapshots and outcomes are encrypted with AES-256-GCM (NIST SP 800-38D).

    `keys` are of 32 bytes each. The first encrypts; all of them decrypt, so that a key is rotated by putting a new one in
    front and dropping the old one when no run of its time is left. Not encrypted are run ids, the names of graphs, nodes
    and people, statuses, times and the digest of what a boundary showed. Raises `ValueError` for a key of another length,
    `CorruptCheckpoint` for a row that was moved, changed or written under a key that is not given.
    """

    def __init__(self, store: Checkpointer, *keys: bytes) -> None:
        if not keys or any(len(key) != KEY for key in keys):
            raise ValueError(f"a key has {KEY} bytes, as os.urandom({KEY}) gives; give one at least")
        self.store = store
        self.clock = store.clock
        self.durable = store.durable
        self._ciphers = {_name_of(key): AESGCM(key) for key in keys}
        self._current = _name_of(keys[0])

    def __repr__(self) -> str:
        return f"EncryptedCheckpointer({self.store!r})"

    # -- runs and leases

    async def create(
        self,
        run_id: str,
        *,
        graph: str,
        fingerprint: str,
        creator: str,
        body: bytes,
        status: Status,
        parent: str | None = None,
        opens: str | None = None,
        owner: str = "",
        lease_ms: int = 0,
    ) -> Lease | None:
        """Row 0 of a new run."""
        return await self.store.create(
            run_id,
            graph=graph,
            fingerprint=fingerprint,
            creator=creator,
            body=self._locked(body, run_id, "start"),
            status=status,
            parent=parent,
            opens=opens,
            owner=owner,
            lease_ms=lease_ms,
        )

    async def claim(self, run_id: str, owner: str, lease_ms: int) -> Lease | None:
        """Take a run that is free."""
        return await self.store.claim(run_id, owner, lease_ms)

    async def renew(self, lease: Lease, lease_ms: int) -> Lease | None:
        """Hold the run for longer."""
        return await self.store.renew(lease, lease_ms)

    async def release(self, lease: Lease) -> bool:
        """Put the run back to `ready`."""
        return await self.store.release(lease)

    # -- a driver's rows

    async def append(
        self, lease: Lease, seen: int, entries: Sequence[Entry], snapshot: bytes | None = None
    ) -> Written | None:
        """A driver's rows, each bound to its visit and attempt; a snapshot to the row that it stands at."""
        run_id = lease.run_id
        locked = [
            entry._replace(body=self._locked(entry.body, run_id, entry.kind, entry.path, entry.step, entry.attempt))
            for entry in entries
        ]
        if snapshot is not None:
            snapshot = self._locked(snapshot, run_id, "snapshot", seen)
        return await self.store.append(lease, seen, locked, snapshot)

    async def settle(self, lease: Lease, seen: int, status: Status, body: bytes) -> Written | None:
        """A driver's row without a visit, bound to its place."""
        return await self.store.settle(lease, seen, status, self._locked(body, lease.run_id, "settled", seen + 1))

    # -- somebody's acts

    async def decide(
        self,
        run_id: str,
        boundary: str,
        *,
        digest: str,
        decision: Verdict,
        actor: str,
        act: str,
        body: bytes,
        roles: Sequence[str] = (),
    ) -> Written | None:
        """Somebody's decision, bound to its boundary, its actor and what it says."""
        await self._must_read(run_id)
        body = self._locked(body, run_id, "decision", boundary, actor, decision)
        return await self.store.decide(
            run_id, boundary, digest=digest, decision=decision, actor=actor, act=act, body=body, roles=roles
        )

    async def expire(self, run_id: str, boundary: str, *, body: bytes = b"{}") -> Written | None:
        """The clock's decision."""
        return await self.store.expire(
            run_id, boundary, body=self._locked(body, run_id, "decision", boundary, ":clock", "expired")
        )

    async def signal(self, run_id: str, name: str, key: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """A signal's row."""
        await self._must_read(run_id)
        return await self.store.signal(
            run_id, name, key, actor=actor, act=act, body=self._locked(body, run_id, "signal", act)
        )

    async def cancel(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """End the run, or ask its driver to."""
        await self._must_read(run_id)
        return await self.store.cancel(run_id, actor=actor, act=act, body=self._locked(body, run_id, "cancel", act))

    async def retry(self, run_id: str, *, actor: str, act: str, body: bytes) -> Written | None:
        """Release failed positions."""
        await self._must_read(run_id)
        return await self.store.retry(run_id, actor=actor, act=act, body=self._locked(body, run_id, "retry", act))

    async def _must_read(self, run_id: str) -> None:
        """Raise `CorruptCheckpoint` for a run of other keys: with a row of these in it nobody could read it any more."""
        await self.history(run_id, limit=1)

    # -- effects

    async def effect_begin(
        self, lease: Lease, key: str, *, path: str, step: int, policy: Policy, token: str
    ) -> Effect | None:
        """An effect's intent; its outcome is its own execution's, or what a person answered for it."""
        run_id = lease.run_id
        effect = await self.store.effect_begin(lease, key, path=path, step=step, policy=policy, token=token)
        if effect is None or effect.outcome is None:
            return effect
        return replace(effect, outcome=await self._outcome(effect.outcome, run_id, key))

    async def effect_end(self, run_id: str, key: str, token: str, outcome: bytes) -> bytes | None:
        """An effect's outcome."""
        kept = await self.store.effect_end(run_id, key, token, self._locked(outcome, run_id, "effect", key))
        return None if kept is None else await self._outcome(kept, run_id, key)

    async def _outcome(self, outcome: bytes, run_id: str, key: str) -> bytes:
        try:
            return self._opened(outcome, run_id, -1, "effect", key)
        except CorruptCheckpoint:
            for boundary in await self.store.boundaries(run_id):
                if boundary.effect == key and boundary.state == "approved" and boundary.decided is not None:
                    short = boundary.id.rpartition(":")[2]
                    return self._opened(outcome, run_id, -1, "decision", short, boundary.decided.by, "approved")
            raise

    # -- reading

    async def head(self, run_id: str) -> Head | None:
        """The run's row."""
        return await self.store.head(run_id)

    async def load(self, run_id: str, *, after: int = -1, until: int | None = None) -> Log | None:
        """The run's rows, from its snapshot on where that serves."""
        log = await self.store.load(run_id, after=after, until=until)
        if log is None:
            return None
        snapshot = log.snapshot
        if snapshot is not None:
            seq, body = snapshot
            snapshot = seq, self._opened(body, run_id, seq, "snapshot", seq)
        return replace(log, snapshot=snapshot, checkpoints=tuple(map(self._read, log.checkpoints)))

    async def history(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[Checkpoint]:
        """The run's rows."""
        return [self._read(row) for row in await self.store.history(run_id, after=after, limit=limit)]

    async def find_act(self, run_id: str, act: str) -> Checkpoint | None:
        """The row of an act."""
        row = await self.store.find_act(run_id, act)
        return None if row is None else self._read(row)

    async def runs(
        self, *, status: str | None = None, graph: str | None = None, limit: int = 100, before: str | None = None
    ) -> list[Head]:
        """Runs, newest first."""
        return await self.store.runs(status=status, graph=graph, limit=limit, before=before)

    async def boundaries(
        self, run_id: str | None = None, *, state: str | None = None, limit: int = 1000
    ) -> list[Boundary]:
        """Boundaries, oldest first. A decision's note is in its row, which is read for it."""
        return [
            await self._noted(boundary) for boundary in await self.store.boundaries(run_id, state=state, limit=limit)
        ]

    async def _noted(self, boundary: Boundary) -> Boundary:
        decided = boundary.decided
        row = await self.find_act(boundary.run_id, decided.act) if decided is not None else None
        if decided is None or row is None:
            return boundary
        return replace(boundary, decided=replace(decided, note=note_of(row.body)))

    async def due(self, *, limit: int = 100) -> tuple[list[str], list[str]]:
        """Runs to claim, boundaries to expire."""
        return await self.store.due(limit=limit)

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run."""
        return await self.store.delete(run_id)

    async def prune(self, before_ms: int) -> int:
        """Remove the runs that ended before a time."""
        return await self.store.prune(before_ms)

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # -- the cipher

    def _locked(self, plain: bytes, *place: Any) -> bytes:
        """Version, name of the key, nonce, ciphertext and tag; the place is authenticated with it."""
        nonce = os.urandom(NONCE)
        sealed = self._ciphers[self._current].encrypt(nonce, plain, _place(place))
        return VERSION + self._current + nonce + sealed

    def _opened(self, locked: bytes, run_id: str, seq: int, *place: Any) -> bytes:
        name, nonce = locked[1 : 1 + NAME], locked[1 + NAME : 1 + NAME + NONCE]
        cipher = self._ciphers.get(name)
        if locked[:1] != VERSION or len(nonce) != NONCE:
            raise CorruptCheckpoint(run_id, seq, "it is not encrypted as this store writes it")
        if cipher is None:
            raise CorruptCheckpoint(run_id, seq, f"its key ({name.hex()}) is not among the {len(self._ciphers)} given")
        try:
            return cipher.decrypt(nonce, locked[1 + NAME + NONCE :], _place((run_id, *place)))
        except InvalidTag:
            raise CorruptCheckpoint(run_id, seq, "it was changed, or belongs to another place") from None

    def _read(self, row: Checkpoint) -> Checkpoint:
        kind = row.kind
        if kind == "start":
            place: tuple[Any, ...] = ()
        elif kind == "settled":
            place = (row.seq,)
        elif kind == "decision":
            place = (row.boundary, row.actor, row.decision)
        elif row.act is not None:
            place = (row.act,)
        else:
            place = (row.path, row.step, row.attempt)
        return replace(row, body=self._opened(row.body, row.run_id, row.seq, kind, *place))


def _name_of(key: bytes) -> bytes:
    """Which key it is, without saying anything of it."""
    return sha256(b"stategraph key\x00" + key).digest()[:NAME]


def _place(place: Sequence[Any]) -> bytes:
    """Where something belongs, without any two places alike."""
    try:
        return json.dumps(place, separators=(",", ":")).encode()
    except ValueError as error:
        raise CheckpointerError(f"{error}") from None
