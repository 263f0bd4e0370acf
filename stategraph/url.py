"""A checkpointer by its URL: `sqlite:runs.db`, `memory:`, or the scheme of any installed store."""

from __future__ import annotations

from stategraph.checkpoint import Checkpointer
from stategraph.errors import did_you_mean, redacted

__all__ = ["open_checkpointer"]

GROUP = "stategraph.checkpointers"


def open_checkpointer(url: str) -> Checkpointer:
    """The store that a URL names: `scheme:rest`, the rest being the store's own. Nothing is opened yet.

    Third-party stores are found by the entry-point group `stategraph.checkpointers`. Raises `ValueError` for a URL that
    names no installed store.
    """
    from importlib.metadata import entry_points  # on first use: it brings the email package

    scheme, colon, rest = url.partition(":")
    found = {point.name: point for point in entry_points(group=GROUP)}
    if not colon:
        raise ValueError(f"{redacted(url)!r} is no store's URL; for a SQLite file write 'sqlite:{redacted(url)}'")
    if scheme not in found:
        raise ValueError(
            f"no store for {scheme!r} is installed{did_you_mean(scheme, found)}; "
            f"installed: {', '.join(sorted(found)) or 'none'}"
        )
    try:
        kind = found[scheme].load()
    except ModuleNotFoundError as error:
        raise ValueError(f"the store for {scheme!r} cannot be loaded: {error}") from None
    store: Checkpointer = kind.from_url(rest)
    return store
