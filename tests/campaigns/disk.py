"""A disk that exists in memory only: it loses power, is full, or fails at one call; SQLite uses it through apsw as its VFS."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType

import apsw

SECTOR = 512

_numbers = count(1)


class PowerCut(Exception):
    """The power is off: nobody reads or writes any more."""


def refusal(code: int) -> apsw.Error:
    """The error by which apsw gives SQLite this code."""
    error = apsw.exception_for(code)
    assert isinstance(error, apsw.Error)
    error.extendedresult = code  # type: ignore[attr-defined]  # documented, not in the stubs
    return error


@dataclass
class Platter:
    """One file: what is safe, and each version that a sector has had since."""

    synced: bytes = b""
    now: bytearray = field(default_factory=bytearray)
    unsynced: dict[int, list[bytes]] = field(default_factory=dict)
    #: Whether its name is safe too: a file that was never synced may be gone.
    known: bool = False

    def write(self, data: bytes, offset: int) -> None:
        if len(self.now) < offset:
            self.now.extend(bytes(offset - len(self.now)))
        self.now[offset : offset + len(data)] = data
        for sector in range(offset // SECTOR, (offset + len(data) - 1) // SECTOR + 1):
            self.unsynced.setdefault(sector, []).append(bytes(self.now[sector * SECTOR : (sector + 1) * SECTOR]))

    def sync(self) -> None:
        self.synced, self.known = bytes(self.now), True
        self.unsynced.clear()

    def after_a_cut(self, dice: random.Random, share: float) -> Platter:
        """What is on it when the power is back: of the unsynced sectors any, in any of their versions."""
        left = bytearray(self.synced)
        for sector, versions in self.unsynced.items():
            if dice.random() < share:
                version, start = dice.choice(versions), sector * SECTOR
                left.extend(bytes(max(0, start - len(left))))
                left[start : start + len(version)] = version
        if len(self.now) < len(left) and dice.random() < share:  # it was cut off
            del left[len(self.now) :]
        return Platter(bytes(left), left, {}, True)


class Disk:
    """Files by their names, and what befalls them. `calls` counts whatever may change a file, or fail."""

    def __init__(self, files: dict[str, Platter] | None = None) -> None:
        self.files = files or {}
        #: Removed files whose removal is not safe.
        self.removed: dict[str, Platter] = {}
        self.calls = 0
        self.syncs = 0
        #: The power goes off at this call.
        self.fatal: int | None = None
        self.off = False
        #: It says that it has synced, and has not.
        self.lies = False
        #: How many bytes fit.
        self.room: int | None = None
        #: Is told each call by its number and what it does; what it raises SQLite is told.
        self.fault: Callable[[int, str], None] = lambda number, what: None
        self.vfs = _Vfs(self, f"disk{next(_numbers)}")

    def called(self, what: str) -> None:
        """A call: perhaps the last one."""
        if self.off:
            raise PowerCut
        self.calls += 1
        if self.calls == self.fatal:
            self.off = True
            raise PowerCut
        self.fault(self.calls, what)

    def fits(self, platter: Platter, end: int) -> None:
        """Refuse what has no room."""
        if self.room is not None and end > len(platter.now):
            taken = sum(len(other.now) for other in self.files.values())
            if taken - len(platter.now) + end > self.room:
                raise refusal(apsw.SQLITE_FULL)

    def after_a_cut(self, dice: random.Random) -> Disk:
        """The disk that is found when the power is back."""
        share = dice.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        files = {name: platter for name, platter in self.removed.items() if dice.random() < share and platter.known}
        files |= {name: platter for name, platter in self.files.items() if platter.known or dice.random() < share}
        return Disk({name: platter.after_a_cut(dice, share) for name, platter in files.items()})

    def close(self) -> None:
        """SQLite forgets it."""
        self.vfs.unregister()


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk, name: str) -> None:
        self.disk = disk
        self.name = name
        super().__init__(name, base="")

    def excepthook(
        self,
        etype: type[BaseException] | None,
        evalue: BaseException | None,
        etraceback: TracebackType | None,
    ) -> bool:
        """SQLite was told by a code."""
        return True

    def xFullPathname(self, name: str) -> str:
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self.disk.files

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.disk.called("delete")
        platter = self.disk.files.pop(filename, None)
        if platter is not None and not syncdir:
            self.disk.removed[filename] = platter

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _File:  # type: ignore[override]
        text = name.filename() if isinstance(name, apsw.URIFilename) else name or f"temporary {next(_numbers)}"
        self.disk.called("open")
        if text not in self.disk.files:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise refusal(apsw.SQLITE_CANTOPEN)
            self.disk.removed.pop(text, None)
            self.disk.files[text] = Platter(known=bool(flags[0] & apsw.SQLITE_OPEN_MAIN_DB))
        flags[1] = flags[0]
        return _File(self.disk, text, bool(flags[0] & apsw.SQLITE_OPEN_DELETEONCLOSE))


class _File:
    """What apsw asks of an open file."""

    def __init__(self, disk: Disk, name: str, passing: bool) -> None:
        self.disk = disk
        self.name = name
        self.passing = passing
        self.platter = disk.files[name]

    def excepthook(self, *_: object) -> bool:
        """SQLite was told by a code."""
        return True

    def xRead(self, amount: int, offset: int) -> bytes:
        self.disk.called("read")
        return bytes(self.platter.now[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.called("write")
        self.disk.fits(self.platter, offset + len(data))
        self.platter.write(bytes(data), offset)

    def xTruncate(self, size: int) -> None:
        self.disk.called("truncate")
        del self.platter.now[size:]
        for sector in [sector for sector in self.platter.unsynced if sector * SECTOR >= size]:
            del self.platter.unsynced[sector]

    def xSync(self, flags: int) -> None:
        self.disk.called("sync")
        self.disk.syncs += 1
        if not self.disk.lies:
            self.platter.sync()

    def xFileSize(self) -> int:
        return len(self.platter.now)

    def xLock(self, level: int) -> None:
        self.disk.called("lock")

    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE  # as SQLite assumes of every disk

    def xClose(self) -> None:
        if self.passing:
            self.disk.files.pop(self.name, None)
