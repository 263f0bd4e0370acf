"""The contract of a store, as tests: whoever writes one inherits them."""

from __future__ import annotations

from stategraph.testing.answers import Answers
from stategraph.testing.crashes import Crashes
from stategraph.testing.damage import Damage
from stategraph.testing.decisions import Decisions
from stategraph.testing.effects import Effects
from stategraph.testing.endings import Endings
from stategraph.testing.growth import Growth
from stategraph.testing.leases import Leases
from stategraph.testing.races import Races
from stategraph.testing.reading import Reading
from stategraph.testing.reopening import Reopening
from stategraph.testing.rows import Rows
from stategraph.testing.signals import Signals
from stategraph.testing.snapshots import Snapshots
from stategraph.testing.texts import Texts
from stategraph.testing.versions import Versions

__all__ = ["CheckpointerContract"]


class CheckpointerContract(
    Leases,
    Rows,
    Decisions,
    Endings,
    Effects,
    Signals,
    Reading,
    Answers,
    Texts,
    Snapshots,
    Reopening,
    Races,
    Crashes,
    Damage,
    Growth,
    Versions,
):
    """All that a checkpointer promises; a test class of yours inherits it and writes `open`."""
