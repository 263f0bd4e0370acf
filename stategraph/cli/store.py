"""The store that a command works on: how it is named, opened, and shown without its password."""

from __future__ import annotations

import os
import re
from pathlib import Path

from stategraph.checkpoint import Checkpointer
from stategraph.cli.refusal import Refused
from stategraph.url import open_checkpointer

__all__ = ["DEFAULT", "VARIABLE", "open_store", "redacted", "sqlite_file", "without_secrets"]

#: The environment variable that names the store.
VARIABLE = "STATEGRAPH_STORE"
DEFAULT = "sqlite:runs.db"
#: The environment variable with the keys of a store that is encrypted: hexadecimal, the current one first.
KEYS = "STATEGRAPH_KEYS"


def open_store(url: str, *, new: bool) -> Checkpointer:
    """The store behind a URL. Unless it may be a `new` one its file must be there: a typo must not make one."""
    file = sqlite_file(url)
    if file is not None:
        _check_file(file, url, new)
    try:
        return _encrypted(open_checkpointer(url))
    except ValueError as error:
        raise Refused(f"the store {redacted(url)!r} cannot be opened: {without_secrets(str(error), url)}") from None


def _encrypted(store: Checkpointer) -> Checkpointer:
    """The store, around which the environment's keys are put; no message shows a key."""
    given = os.environ.get(KEYS, "").split()
    if not given:
        return store
    try:
        keys = [bytes.fromhex(key) for key in given]
    except ValueError:
        raise Refused(
            f"${KEYS} holds something that is not hexadecimal; a key is 64 digits, keys are apart by spaces"
        ) from None
    try:
        from checkpointers.encrypted import EncryptedCheckpointer
    except ModuleNotFoundError:
        raise Refused(f"${KEYS} is set, and encryption is not installed: pip install 'stategraph[encrypt]'") from None
    return EncryptedCheckpointer(store, *keys)


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite URL; None for any other store."""
    rest = url.removeprefix("sqlite:")
    return None if rest in (url, "", ":memory:") or rest.startswith("//") else Path(rest)


def _check_file(file: Path, url: str, new: bool) -> None:
    if os.path.isdir(file):
        raise Refused(f"the store {url!r} is a folder; name a file in it: --store {url.rstrip('/')}/runs.db")
    if not os.path.isdir(file.parent):
        raise Refused(
            f"there is no folder {str(file.parent)!r} for the store {url!r}; make it, or name another with --store"
        )
    if not new and not os.path.exists(file):
        raise Refused(
            f"there is no store {url!r} yet; name yours with --store URL, or start a run with: stategraph run FILE"
        )


# -- passwords


#: `password=...` in a query or in a list of parameters.
_NAMED = re.compile(r"((?:password|passwd|pwd|secret|token|key)\s*=\s*)([^&\s'\"]+|'[^']*')", re.IGNORECASE)
#: `//user:password` without the rest; digits there are a port.
_BARE = re.compile(r"(//[^/:@]*:)(?!\d*(?:[/?]|$))([^/]+)")


def redacted(url: str) -> str:
    """The URL without what may be a password, however malformed it is: all between the scheme and the last `@`."""
    if url.startswith(("sqlite:", "memory:")):
        return url
    before, at, after = url.rpartition("@")
    if at:
        scheme = re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:(//)?", before)
        url = f"{scheme[0] if scheme else ''}***@{after}"
    return _NAMED.sub(r"\1***", _BARE.sub(r"\1***", url))


def without_secrets(text: str, url: str) -> str:
    """A message of somebody else's, without the password of the URL that it is about."""
    if redacted(url) == url:
        return text
    text = text.replace(url, redacted(url))
    before = url.rpartition("@")[0]
    secrets = [before, before.partition(":")[2].lstrip("/"), before.rpartition(":")[2]]
    secrets += [found[1].strip("'") for pattern in (_NAMED, _BARE) for found in pattern.findall(url)]
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
