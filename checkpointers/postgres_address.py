"""Where a PostgreSQL server is: a URL for the driver, which nobody else is shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["Address"]

#: What of a query string is a secret.
_SECRETS = frozenset({"password", "sslpassword"})
_WELL_FORMED = re.compile(
    r"(postgresql|postgres)://([^\s@/?#\[\]]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s@/?#\[\]])*(/[^\s@?#]*)?"
    r"(\?[^\s=&#]+=[^\s&#]*(&[^\s=&#]+=[^\s&#]*)*)?"
)


class Address:
    """A `postgresql://` URL. Its password is not in its repr, nor in any text that went through `scrubbed`."""

    def __init__(self, url: str) -> None:
        if not _WELL_FORMED.fullmatch(url) or not _has_ports(url):
            raise ValueError(  # not a word of it is shown: where it is malformed anything may be the password
                "the URL of the PostgreSQL server is malformed; write postgresql://user:password@host:5432/database, "
                "and in a user or password %40 for @, %2F for /, %3A for :, %3F for ?, %23 for #, %25 for %"
            )
        self.url = url
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        raw = parts.netloc.rpartition("@")[0].partition(":")[2]
        given = {raw, unquote(raw), *(query[name] for name in _SECRETS & query.keys())}
        self._secrets = sorted(filter(None, given), key=len, reverse=True)
        host = query.get("host", parts.netloc.rpartition("@")[2])
        self._shown = f"postgresql://{host}{parts.path}"
        #: Whether the URL names the program that connects.
        self.is_named = "application_name" in query

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Address({self._shown!r})"

    def scrubbed(self, text: object) -> str:
        """Somebody else's words, without the password."""
        words = str(text)
        for secret in self._secrets:
            words = words.replace(secret, "***")
        return words


def _has_ports(url: str) -> bool:
    """Whether what stands where ports stand are numbers, for several hosts too; what is none may be a password's part."""
    hosts = urlsplit(url).netloc.rpartition("@")[2]
    ports = [re.sub(r"^\[[^\]]*\]", "", host).partition(":")[2] for host in hosts.split(",")]
    return all(port == "" or (port.isascii() and port.isdigit() and int(port) < 65536) for port in ports)
