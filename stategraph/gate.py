"""A gate: an interrupt-before point, at which a run waits for a decision before its node runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Gate"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A declared interrupt-before point. Without `on_reject` a rejection ends the run."""

    node: str
    on_reject: str | None = None
    on_expire: str | None = None
    #: Seconds from the pause until the boundary expires; None: it waits for ever.
    expires_in: float | None = None
    #: Names and roles that may decide; None: anybody.
    approvers: tuple[str, ...] | None = None
