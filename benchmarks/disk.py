"""Where the databases of a benchmark lie, and what is read from their files."""

from __future__ import annotations

import os
import sqlite3
import struct
import tempfile
from pathlib import Path

__all__ = ["commits", "filesystem", "folder", "size"]

#: In memory: there an fsync costs nothing, and every figure at FULL would be flattered.
_NO_DISKS = frozenset({"tmpfs", "ramfs"})


def folder() -> Path:
    """`STATEGRAPH_BENCH_DIR`, or the system's folder for temporary files; one on a real disk."""
    chosen = Path(os.environ.get("STATEGRAPH_BENCH_DIR") or tempfile.gettempdir()).absolute()
    if filesystem(chosen) in _NO_DISKS:
        raise SystemExit(f"{chosen} is in memory: set STATEGRAPH_BENCH_DIR to a folder on a disk")
    return chosen


def filesystem(path: Path) -> str:
    """The type of the file system that holds a folder, `unknown` where the system does not tell."""
    try:
        mounts = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return "unknown"
    found = {}
    for mount in mounts:
        _, place, kind, *_ = mount.split()
        if path.is_relative_to(place):
            found[len(place)] = kind
    return found[max(found)] if found else "unknown"


def size(path: str) -> int:
    """The bytes of a closed database once all of its WAL is in the file."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return os.path.getsize(path)


def commits(path: str) -> int | None:
    """The transactions in a database's WAL: its frames that carry a size; None without a WAL.

    A WAL that was folded back and begun anew (SQLite does so at 1,000 pages) has only the later ones.
    """
    try:
        log = Path(path + "-wal").read_bytes()
    except OSError:
        return None
    if len(log) < 32:
        return None
    page, salt = struct.unpack_from(">8xI", log)[0], log[16:24]
    frames = [log[place : place + 24] for place in range(32, len(log) - page - 23, page + 24)]
    return sum(1 for frame in frames if frame[8:16] == salt and frame[4:8] != b"\0\0\0\0")
