"""What a node is handed beside its state: who it is in the run, and the ways to act once and to tell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from stategraph.checkpoint import Policy
from stategraph.clock import Clock
from stategraph.encoding import encode

__all__ = ["Context", "current_context", "effect_key"]


class Acts(Protocol):
    """What a context asks of the engine that runs its node."""

    async def once(self, context: Context, key: str, function: Callable[[], Any], policy: Policy) -> Any: ...

    def emit(self, context: Context, payload: dict[str, Any]) -> None: ...

    def token(self, context: Context, text: str) -> None: ...


def effect_key(run_id: str, path: str, step: int, node: str, index: str = "") -> str:
    """SHA-256 (hex) that names one effect of one visit: the same on retry, resume and recovery, different everywhere else."""
    return sha256(encode([run_id, path, step, node, index])).hexdigest()


@dataclass(frozen=True, slots=True)
class Context:
    """One execution of one node. A node gets it as its second parameter."""

    run_id: str
    #: The line of the run: `""` is the trunk.
    path: str
    #: The line's count of moves before this node; with `path` it names the visit.
    step: int
    node: str
    #: How often this visit was tried before.
    attempt: int
    clock: Clock
    _acts: Acts

    @property
    def idempotency_key(self) -> str:
        """The key to give to a receiver that honours one: the same on every execution of this visit."""
        return effect_key(self.run_id, self.path, self.step, self.node)

    async def once(self, key: str, function: Callable[[], Any | Awaitable[Any]], *, policy: Policy = "ask") -> Any:
        """Run `function` at most once for this visit and `key`, and return its recorded result (JSON) ever after.

        An intent is stored before it runs, its result after. A crash in between leaves the effect in doubt: with
        `policy="ask"` a person decides; with `"keyed"` it runs again, which is right only if the receiver honours
        `idempotency_key`. Raises `StateError` for a result that is no JSON.
        """
        return await self._acts.once(self, key, function, policy)

    def emit(self, payload: dict[str, Any]) -> None:
        """Tell a `custom` event (a JSON mapping); it is kept with the node's checkpoint."""
        self._acts.emit(self, payload)

    def token(self, text: str) -> None:
        """Tell a piece of text as it comes; heard by who listens now, and not kept."""
        self._acts.token(self, text)


class Running(Protocol):
    """A node at work."""

    @property
    def context(self) -> Context: ...


#: Set around every node, so that code far below it, in its thread too, can read its idempotency key.
running_context: ContextVar[Running] = ContextVar("stategraph_context")


def current_context() -> Context:
    """The context of the node that is running here; `LookupError` outside of one."""
    return running_context.get().context
