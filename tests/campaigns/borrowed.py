"""The SQLite store on another SQLite: its own code, loaded a second time, with apsw in the place of the standard library's.

The standard library's SQLite cannot be given a disk that fails; apsw's can. So `checkpointers.database` and
`checkpointers.sqlite` are loaded again with a module `sqlite3` whose connections are apsw's. Nothing else differs: the
thread, the queue, the statements, the transactions and the pragmas are the store's.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, cast

import aiosqlite
import apsw

from checkpointers.database import WAL_PAGES
from checkpointers.sqlite import SqliteCheckpointer
from tests.campaigns.disk import Disk, PowerCut, refusal

#: The disks by the paths of the databases on them.
_disks: dict[str, Disk] = {}
#: Called with each statement before it is executed, by the path of the database.
_watchers: dict[str, Callable[[str], str]] = {}
#: A WAL is copied back at this many pages, not at a thousand: the copying has to be interrupted too.
COPIED_BACK = 12

_CLASSES: dict[type[apsw.Error], type[sqlite3.Error]] = {
    apsw.ConstraintError: sqlite3.IntegrityError,
    apsw.CorruptError: sqlite3.DatabaseError,
    apsw.NotADBError: sqlite3.DatabaseError,
    apsw.MismatchError: sqlite3.IntegrityError,
    apsw.MisuseError: sqlite3.InterfaceError,
    apsw.TooBigError: sqlite3.DataError,
}
_CODES = {
    code: str(name)
    for codes in (apsw.mapping_result_codes, apsw.mapping_extended_result_codes)
    for code, name in codes.items()
    if isinstance(code, int)
}


def _as_the_library_has_it(error: apsw.Error) -> sqlite3.Error:
    """The standard library's error of the same code."""
    made = _CLASSES.get(type(error), sqlite3.OperationalError)(str(error))
    code = getattr(error, "extendedresult", 0) or getattr(error, "result", 1)
    made.sqlite_errorcode = code
    made.sqlite_errorname = _CODES.get(code) or _CODES.get(code & 0xFF, "SQLITE_ERROR")
    return made


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise _as_the_library_has_it(error) from error
    except PowerCut as error:
        raise _as_the_library_has_it(refusal(apsw.SQLITE_IOERR)) from error


class Cursor:
    """A statement's rows, all fetched, and how many it has changed."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = iter(rows)
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def close(self) -> None: ...


class Connection:
    """What the store uses of a `sqlite3.Connection`, on a disk in memory."""

    def __init__(self, path: str, timeout: float = 5.0, **_: Any) -> None:
        self._path = path
        with _translated():
            self._apsw = apsw.Connection(path, vfs=_disks[path].vfs.name)
            self._cursor = self._apsw.cursor()
            # The WAL's index is shared memory, which a VFS in Python has not: the only user of the file needs none.
            for pragma in ("locking_mode=EXCLUSIVE", f"wal_autocheckpoint={COPIED_BACK}"):
                self._cursor.execute(f"PRAGMA {pragma}").fetchall()

    @property
    def in_transaction(self) -> bool:
        return self._apsw.in_transaction

    def execute(self, sql: str, given: Any = (), /) -> Cursor:
        with _translated():
            sql = _watchers.get(self._path, str)(sql)
            rows = self._cursor.execute(
                sql.replace(f"checkpoint={WAL_PAGES}", f"checkpoint={COPIED_BACK}"), given
            ).fetchall()
            return Cursor(rows, self._apsw.changes())

    def cursor(self) -> Hand:
        return Hand(self)

    def create_function(self, name: str, arguments: int, function: Any, *, deterministic: bool = False) -> None:
        self._apsw.create_scalar_function(name, function, arguments, deterministic=deterministic)

    def close(self) -> None:
        with suppress(apsw.Error, PowerCut):  # as the library's, it says nothing of a WAL that could not be copied back
            self._apsw.close(True)


class Hand:
    """What the store uses of a `sqlite3.Cursor` that it keeps."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, given: Any = (), /) -> Cursor:
        return Connection.execute(self._connection, sql, given)

    def close(self) -> None: ...


def _shim(name: str, **given: Any) -> ModuleType:
    module = ModuleType(name)
    for error in ("Error", "OperationalError", "IntegrityError", "DatabaseError", "InterfaceError", "DataError"):
        setattr(module, error, getattr(sqlite3, error))
    for key, value in given.items():
        setattr(module, key, value)
    return module


def _connect(path: str, *, factory: Callable[..., Any], **given: Any) -> aiosqlite.Connection:
    return aiosqlite.Connection(lambda: factory(path, **given), 64)


@cache
def borrowed() -> type[SqliteCheckpointer]:
    """The store's class, on apsw."""
    shims = {
        "sqlite3": _shim("sqlite3", Connection=Connection, Cursor=Cursor),
        "aiosqlite": _shim("aiosqlite", connect=_connect, Connection=aiosqlite.Connection),
    }
    loaded: ModuleType | None = None
    for name in ("checkpointers.database", "checkpointers.sqlite"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        shims[name] = loaded = module_from_spec(spec)
        kept = {key: sys.modules.get(key) for key in shims}
        sys.modules.update(shims)
        try:
            spec.loader.exec_module(loaded)
        finally:
            for key, module in kept.items():
                if module is None:
                    del sys.modules[key]
                else:
                    sys.modules[key] = module
    assert loaded is not None
    return cast("type[SqliteCheckpointer]", loaded.SqliteCheckpointer)


@contextmanager
def on(disk: Disk, path: str, watch: Callable[[str], str] = str) -> Iterator[None]:
    """What opens this path opens it on this disk; `watch` sees each statement first, and may put another in its place."""
    _disks[path], _watchers[path] = disk, watch
    try:
        yield
    finally:
        del _disks[path], _watchers[path]
        disk.close()
