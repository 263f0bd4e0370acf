"""What has really happened: a file outside the store, appended to and synced, by which a crash is judged."""

from __future__ import annotations

import os
from pathlib import Path


def note(ledger: str | Path, line: str) -> None:
    """Append a line, and be sure of it."""
    handle = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.fsync(handle)
    os.close(handle)


def lines(ledger: str | Path) -> list[str]:
    """All that was noted, in order."""
    path = Path(ledger)
    return path.read_text().splitlines() if path.exists() else []
