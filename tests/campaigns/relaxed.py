"""Power cuts with relaxed durability: plain last steps may be lost, and run again; all else is as with full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.campaigns.powercuts import Cuts
from tests.campaigns.verdict import Case

MANY = 10_000
SHARES = 64


@contextmanager
def opened(folder: Path) -> Iterator[Case]:
    """Relaxed durability."""
    yield Cuts(folder, "relaxed").case
