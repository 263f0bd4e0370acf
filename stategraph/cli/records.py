"""Records: an event as one JSON object a line, for programs."""

from __future__ import annotations

from stategraph.cli.session import Session
from stategraph.cli.standing import Standing
from stategraph.events import Event

__all__ = ["Records"]


class Records:
    """Prints an object an event, then one with the run's id, its status and its open boundaries."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held back."""

    def told(self, event: Event) -> None:
        """Print the event."""
        self._session.record(event.model_dump(mode="json"))

    def closed(self, standing: Standing) -> None:
        """Print how the run stands."""
        self._session.record(standing.record())
