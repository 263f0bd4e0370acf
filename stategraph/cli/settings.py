"""Settings of a project: `[tool.stategraph]` of the nearest pyproject.toml that has it, from here upward."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from stategraph.cli.refusal import Refused
from stategraph.errors import did_you_mean

__all__ = ["Settings", "read_settings"]

KEYS = ("store", "workflows")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project has settled: where its runs are kept, and the files of its workflows."""

    #: The folder of the pyproject.toml; paths are relative to it.
    folder: Path
    store: str | None = None
    #: Files, globs or `module:name`, as written.
    workflows: tuple[str, ...] = ()

    def files(self) -> list[str]:
        """Every workflow as a FILE: globs expanded, paths made absolute."""
        found: dict[str, None] = {}
        for written in self.workflows:
            path, colon, name = _split(written)
            if path is None:
                found[written] = None
                continue
            for match in sorted(glob(str(self.folder / path), recursive=True)):
                found[f"{match}{colon}{name}"] = None
        return list(found)

    def store_url(self) -> str | None:
        """The store's URL, a relative SQLite file being one of the project's folder."""
        if self.store is None or not self.store.startswith("sqlite:") or self.store == "sqlite::memory:":
            return self.store
        rest = self.store.removeprefix("sqlite:")
        return self.store if not rest or rest.startswith("//") else f"sqlite:{self.folder / rest}"


def read_settings(start: Path) -> Settings:
    """The settings that hold in a folder; empty ones where nobody wrote any."""
    for folder in (start, *start.parents):
        table = _table(folder / "pyproject.toml")
        if table is not None:
            return _checked(folder, table)
    return Settings(start)


def _table(file: Path) -> Mapping[str, Any] | None:
    try:
        written = tomllib.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise Refused(f"{file} cannot be read: {error}; mend it") from None
    tools = written.get("tool")
    table = tools.get("stategraph") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise Refused(f"{file}: [tool.stategraph] must be a table with the keys {' and '.join(KEYS)}")
    return table


def _checked(folder: Path, table: Mapping[str, Any]) -> Settings:
    where = f"{folder / 'pyproject.toml'}: [tool.stategraph]"
    for key in table:
        if key not in KEYS and (hint := did_you_mean(key, KEYS)):
            raise Refused(f"{where} has a key {key!r}{hint}")
    store, workflows = table.get("store"), table.get("workflows", [])
    if store is not None and not isinstance(store, str):
        raise Refused(f'{where} store must be a URL like "sqlite:runs.db"')
    if not isinstance(workflows, list) or not all(isinstance(item, str) for item in workflows):
        raise Refused(f'{where} workflows must be a list of files or globs like ["workflows/*.py"]')
    return Settings(folder, store, tuple(workflows))


def _split(written: str) -> tuple[str | None, str, str]:
    """(path, colon, name) of `path.py[:name]`; the path is None for `module:name`."""
    if written.endswith(".py"):
        return written, "", ""
    path, colon, name = written.rpartition(":")
    return (path, colon, name) if path.endswith(".py") else (None, "", "")
