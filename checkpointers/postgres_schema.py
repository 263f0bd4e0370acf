"""The PostgreSQL schema: the tables of the log, and how they come into a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpointers.postgres_functions import SCHEMA, functions
from stategraph.errors import StoreForeign

if TYPE_CHECKING:
    from checkpointers.postgres_connections import Connection

__all__ = ["VERSION", "prepare", "statements"]

#: Grows with every change of the tables or the functions; a newer database is refused.
VERSION = 1

# What one column may hold is said by domains: the CHECKs of a table are parsed anew by each statement that writes to it,
# which would cost a step a third of its time. What columns may hold together is in the predicates, and in the digest.
_DOMAINS = (
    "CREATE DOMAIN run_id AS text COLLATE \"C\" CHECK (VALUE ~ '^[A-Za-z0-9._:-]{1,128}$')",
    "CREATE DOMAIN person AS text COLLATE \"C\" CHECK (VALUE <> '')",
    """
    CREATE DOMAIN status AS text COLLATE "C"
      CHECK (VALUE IN ('ready','running','pending','failed','completed','rejected','cancelled'))
    """,
    "CREATE DOMAIN ending AS text COLLATE \"C\" CHECK (VALUE IN ('rejected','cancelled'))",
    """
    CREATE DOMAIN kind AS text COLLATE "C"
      CHECK (VALUE IN ('start','node','route','join','failed','asked','settled','decision','signal','cancel','retry'))
    """,
    "CREATE DOMAIN decision AS text COLLATE \"C\" CHECK (VALUE IN ('approved','rejected','retry','expired'))",
    "CREATE DOMAIN digest AS bytea CHECK (length(VALUE) = 16)",
)

_TABLES = (
    """
    CREATE TABLE runs (
      run         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the key inside; people and URLs say run_id
      run_id      run_id NOT NULL UNIQUE,
      graph       text COLLATE "C" NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      parent      text COLLATE "C",        -- '<run_id>@<seq>' of the run it was forked from
      creator     person NOT NULL,
      status      status NOT NULL,
      ending      ending,                  -- asked to end so: nothing more starts or is decided
      seq         bigint NOT NULL,         -- the last checkpoint
      epoch       bigint NOT NULL,         -- +1 at every claim: the fencing token
      owner       text COLLATE "C",
      lease_until bigint                   -- ms; liveness only
    ) WITH (fillfactor = 70)
    """,  # room for a head's next version on its own page: no index holds what a step or a renewal changes
    "CREATE INDEX runs_work ON runs (status) WHERE status IN ('ready','running')",
    """
    CREATE TABLE checkpoints (
      run      bigint NOT NULL,
      seq      bigint NOT NULL,            -- given by the store, gap-free
      kind     kind NOT NULL,
      status   text COLLATE "C" NOT NULL,  -- the run's status after this row
      epoch    bigint,
      path     text COLLATE "C",           -- the visit: '' is the trunk
      step     bigint,
      attempt  bigint,                     -- how many rows this visit had before
      opens    text COLLATE "C",           -- JSON list of the boundaries that this row opens
      boundary text COLLATE "C",           -- what a decision decides
      decision decision,
      name     text COLLATE "C",           -- a signal's
      key      text COLLATE "C",
      actor    person,                     -- who acted
      act      person,                     -- the caller's id of the act: the same act again is the same act
      body     bytea NOT NULL,
      at_ms    bigint NOT NULL,
      digest   digest NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX checkpoints_seq ON checkpoints (run, seq)",
    """
    CREATE UNIQUE INDEX checkpoints_done ON checkpoints (run, path, step)
      WHERE kind = 'node' OR kind = 'route' OR kind = 'join'
    """,
    """
    CREATE UNIQUE INDEX checkpoints_try ON checkpoints (run, path, step, attempt)
      WHERE kind = 'failed' OR kind = 'asked'
    """,
    "CREATE UNIQUE INDEX checkpoints_vote ON checkpoints (run, boundary, actor) WHERE boundary IS NOT NULL",
    "CREATE UNIQUE INDEX checkpoints_act ON checkpoints (run, act) WHERE act IS NOT NULL",
    # The latest fold of each run; never part of the log.
    "CREATE TABLE snapshots (run bigint PRIMARY KEY, seq bigint NOT NULL, body bytea NOT NULL, digest digest NOT NULL)",
    # One visit of an interrupt point: a projection of the log.
    """
    CREATE TABLE boundaries (
      run          bigint NOT NULL,
      boundary     text COLLATE "C" NOT NULL,  -- '<opened>.<nth>'
      opened       bigint NOT NULL,
      nth          bigint NOT NULL,
      path         text COLLATE "C" NOT NULL,  -- the visit it holds
      step         bigint NOT NULL,
      node         text COLLATE "C" NOT NULL,
      kind         text COLLATE "C" NOT NULL CHECK (kind IN ('approval','question','timer','signal','in_doubt')),
      shown_digest text COLLATE "C" NOT NULL,  -- of what was shown: a decision must name it
      final        bigint NOT NULL,            -- 1: a rejection or an expiry ends the run; 0: the position is routed
      needed       bigint NOT NULL CHECK (needed >= 1),
      approvals    bigint NOT NULL,
      approvers    text COLLATE "C",           -- JSON list of names and roles; NULL: anybody
      four_eyes    bigint NOT NULL,
      state        text COLLATE "C" NOT NULL
        CHECK (state IN ('open','approved','rejected','retry','expired','withdrawn')),
      effect       text COLLATE "C",           -- the key of the effect in doubt
      name         text COLLATE "C",
      key          text COLLATE "C",
      expires_at   bigint,
      decided_seq  bigint,                     -- the row that closed it: who, what, when
      PRIMARY KEY (run, boundary),
      CHECK ((state = 'open') = (decided_seq IS NULL))
    )
    """,
    "CREATE INDEX boundaries_due ON boundaries (expires_at) WHERE state = 'open' AND expires_at IS NOT NULL",
    "CREATE INDEX boundaries_open ON boundaries (run) WHERE state = 'open'",
    """
    CREATE TABLE effects (
      key     text COLLATE "C" PRIMARY KEY,  -- of run, path, step, node and index; never of epoch, attempt or time
      run     bigint NOT NULL,
      path    text COLLATE "C" NOT NULL,
      step    bigint NOT NULL,
      policy  text COLLATE "C" NOT NULL CHECK (policy IN ('ask','keyed')),
      token   text COLLATE "C" NOT NULL,     -- the execution that holds the intent; 'in doubt' once a person was asked
      outcome bytea                          -- NULL: an intent only
    )
    """,
    "CREATE INDEX effects_run ON effects (run)",
    "CREATE TABLE version (version bigint NOT NULL)",
    f"INSERT INTO version VALUES ({VERSION})",
)


def statements() -> list[str]:
    """What makes the schema, in one transaction whose search path it is."""
    return [*_DOMAINS, *_TABLES, *functions()]


_FOUND = """
SELECT to_regclass($1 || '.version') IS NOT NULL AS is_ours,
       EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace($1)) AS is_used
"""
#: Whoever makes the schema holds this lock, so that the others find it made.
_MAKING = "SELECT pg_advisory_xact_lock(8315161568765538411)"


async def prepare(connection: Connection) -> None:
    """Make the schema unless it is there; `StoreForeign` if it is somebody else's, or newer."""
    if not await _is_ours(connection):
        async with connection.transaction(isolation="read_committed"):
            await connection.execute(_MAKING)
            if not await _is_ours(connection):
                await _make(connection)
    version = await connection.fetchval(f"SELECT version FROM {SCHEMA}.version")
    if version > VERSION:
        raise StoreForeign(
            f"the database has schema version {version}, this stategraph knows {VERSION}: install the newer stategraph"
        )


async def _is_ours(connection: Connection) -> bool:
    found = await connection.fetchrow(_FOUND, SCHEMA)
    assert found is not None
    if found["is_used"] and not found["is_ours"]:
        raise StoreForeign(f"the database has a schema {SCHEMA!r} of another program; name another database")
    return bool(found["is_ours"])


async def _make(connection: Connection) -> None:
    if not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", SCHEMA):
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
    await connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
    for statement in statements():
        await connection.execute(statement)
