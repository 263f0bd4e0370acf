"""A checkpointer by its URL: `sqlite:runs.db`, `memory:`, or the scheme of any installed store."""

from __future__ import annotations

from stategraph.checkpoint import Checkpointer
from stategraph.errors import did_you_mean, redacted

__all__ = ["open_checkpointer"]

GROUP = "stategraph.checkpointers"
#: What a scheme's store needs beyond the plain installation, by extra.
EXTRAS = {"postgresql": "postgres", "postgres": "postgres"}


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
        extra = EXTRAS.get(scheme)
        way_out = f"; pip install 'stategraph[{extra}]'" if extra else did_you_mean(scheme, found)
        raise ValueError(
            f"no store for {scheme!r} is installed{way_out}; installed: {', '.join(sorted(found)) or 'none'}"
        )
    store: Checkpointer = found[scheme].load().from_url(rest)
    return store
