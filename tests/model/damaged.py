"""Stores made of the library's own modules with another text, or other statements, in them."""

from __future__ import annotations

import asyncio
import importlib.util
import sqlite3
import sys
from collections.abc import Mapping
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from checkpointers import database, memory, sqlite, verbs
from tests.model.bench import Bench, Dial
from tests.programs.kept import EFFECTS

__all__ = ["source", "with_memory", "with_schema", "with_sqlite", "with_statement"]


def source(module: ModuleType) -> str:
    """A module's text."""
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8")


def with_memory(text: str) -> Bench:
    """The memory store with another text."""
    module = _made(memory, text)

    async def peek(store: Any) -> list[tuple[Any, ...]]:
        kept = store._intents.items()
        return sorted((key, kept.run.run_id, kept.policy, kept.token, kept.outcome) for key, kept in kept)

    clock = Dial()
    return Bench(module.MemoryCheckpointer(clock=clock), clock, peek)


def with_statement(statement: str, instead: str) -> Bench:
    """SQLite's store with another text of one statement, wherever it is used."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return instead if value == statement else value

    damaged = ModuleType("verbs")
    vars(damaged).update({name: changed(value) for name, value in vars(verbs).items()})
    return _sqlite({}, {"verbs": damaged})


def with_schema(statements: list[str]) -> Bench:
    """SQLite's store on another schema."""
    return _sqlite({}, {"statements": lambda: statements})


def with_sqlite(module: ModuleType, text: str) -> Bench:
    """SQLite's store with another text of one of its modules."""
    return _sqlite({module: text}, {})


def _sqlite(texts: Mapping[ModuleType, str], names: Mapping[str, Any]) -> Bench:
    """SQLite's store from these texts, with other things under these names.

    It has no thread for its connection: the same verbs at a quarter of the time.
    """
    below = _made(database, texts.get(database) or source(database))
    above = _made(sqlite, texts.get(sqlite) or source(sqlite))
    vars(below).update(names)
    vars(above).update({name: getattr(below, name) for name in database.__all__}, **names)

    class AtHand(above.SqliteCheckpointer):  # type: ignore[misc, name-defined]
        at_hand: Any = None

        async def _run(self, call: Any) -> None:
            await asyncio.sleep(0)  # whoever else has something to append comes and waits
            if self.at_hand is None:
                self.at_hand = sqlite3.connect(":memory:", isolation_level=None, factory=below.Database)
                self.at_hand.prepare(self.clock, self._secret, False, 1.0)
            self.at_hand.execute("", call)

        async def close(self) -> None:
            if self.at_hand is not None:
                self.at_hand.close()

    async def peek(store: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in store.at_hand.execute(EFFECTS).fetchall()]

    clock = Dial()
    return Bench(AtHand(":memory:", clock=clock), clock, peek)


class _Text(SourceLoader):
    """Loads a module from a text that is in no file."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_data(self, path: str | bytes) -> bytes:
        if path != self.path:
            raise OSError(path)  # no cache of compiled code
        return self.text.encode()


def _made(original: ModuleType, text: str) -> ModuleType:
    """A module of its own made of this text."""
    name = f"{original.__name__}_damaged"
    assert original.__file__ is not None
    spec = importlib.util.spec_from_loader(name, _Text(original.__file__, text))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there for what annotations mean
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module
