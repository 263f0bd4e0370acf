"""The SQLite schema. `checkpoints` is the only table a run is read from; the others are what the verbs' predicates look at."""

from __future__ import annotations

import re

__all__ = ["APPLICATION", "SCHEMA", "VERSION", "statements"]

#: In the file's header: "stgr". Tells our files from other programs'.
APPLICATION = 0x73746772
#: Grows with every change of the tables; a newer file is refused, an older one is brought up.
VERSION = 1

SCHEMA = (
    """
    CREATE TABLE runs (
      run         INTEGER PRIMARY KEY,  -- the key inside; people and URLs say run_id
      run_id      TEXT NOT NULL UNIQUE CHECK (length(run_id) BETWEEN 1 AND 128 AND run_id NOT GLOB '*[^A-Za-z0-9._:-]*'),
      graph       TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      parent      TEXT,                 -- '<run_id>@<seq>' of the run it was forked from
      creator     TEXT NOT NULL CHECK (creator <> ''),
      status      TEXT NOT NULL
        CHECK (status IN ('ready','running','pending','failed','completed','rejected','cancelled')),
      ending      TEXT CHECK (ending IN ('rejected','cancelled')),  -- asked to end so: nothing more starts or is decided
      seq         INTEGER NOT NULL,     -- the last checkpoint
      epoch       INTEGER NOT NULL,     -- +1 at every claim: the fencing token
      owner       TEXT,
      lease_until INTEGER,              -- ms; liveness only
      CHECK ((status = 'running') = (owner IS NOT NULL AND lease_until IS NOT NULL)),
      CHECK (status NOT IN ('rejected','cancelled') OR coalesce(ending, '') = status)
    )
    """,
    "CREATE INDEX runs_work ON runs (status, lease_until) WHERE status IN ('ready','running')",
    # A rowid table, so that rows of all runs enter at its end and a group of commits dirties few pages. In the CHECK a
    # chain of OR: a long IN builds a table for every row.
    """
    CREATE TABLE checkpoints (
      run      INTEGER NOT NULL,
      seq      INTEGER NOT NULL,        -- given by the store, gap-free
      kind     TEXT NOT NULL CHECK (kind = 'node' OR kind = 'route' OR kind = 'join' OR kind = 'failed' OR kind = 'asked'
                 OR kind = 'settled' OR kind = 'decision' OR kind = 'signal' OR kind = 'cancel' OR kind = 'retry'
                 OR kind = 'start'),
      status   TEXT NOT NULL,           -- the run's status after this row
      epoch    INTEGER,
      path     TEXT,                    -- the visit: '' is the trunk
      step     INTEGER,
      attempt  INTEGER,                 -- how many rows this visit had before
      opens    TEXT,                    -- JSON list of the boundaries that this row opens
      boundary TEXT,                    -- what a decision decides
      decision TEXT,
      name     TEXT,                    -- a signal's
      key      TEXT,
      actor    TEXT,                    -- who acted
      act      TEXT,                    -- the caller's id of the act: the same act again is the same act
      body     BLOB NOT NULL,
      at_ms    INTEGER NOT NULL,
      digest   BLOB NOT NULL CHECK (length(digest) = 16),
      CHECK (decision IS NULL OR decision = 'approved' OR decision = 'rejected' OR decision = 'retry' OR decision = 'expired'),
      CHECK ((step IS NULL) = (path IS NULL) AND (step IS NULL) = (attempt IS NULL)),
      CHECK ((step IS NULL) <> (kind = 'node' OR kind = 'route' OR kind = 'join' OR kind = 'failed' OR kind = 'asked')),
      CHECK ((act IS NULL) <> (kind = 'decision' OR kind = 'signal' OR kind = 'cancel' OR kind = 'retry')),
      CHECK (act IS NULL OR (act <> '' AND actor IS NOT NULL AND actor <> ''))
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
    """
    CREATE TABLE snapshots (
      run    INTEGER PRIMARY KEY,
      seq    INTEGER NOT NULL,
      body   BLOB NOT NULL,
      digest BLOB NOT NULL
    )
    """,
    # One visit of an interrupt point: a projection of the log.
    """
    CREATE TABLE boundaries (
      run          INTEGER NOT NULL,
      boundary     TEXT NOT NULL,       -- '<opened>.<nth>'
      opened       INTEGER NOT NULL,
      nth          INTEGER NOT NULL,
      path         TEXT NOT NULL,       -- the visit it holds
      step         INTEGER NOT NULL,
      node         TEXT NOT NULL,
      kind         TEXT NOT NULL CHECK (kind IN ('approval','question','timer','signal','in_doubt')),
      shown_digest TEXT NOT NULL,       -- of what was shown: a decision must name it
      final        INTEGER NOT NULL,    -- 1: a rejection or an expiry ends the run; 0: the position is routed
      needed       INTEGER NOT NULL CHECK (needed >= 1),
      approvals    INTEGER NOT NULL,
      approvers    TEXT,                -- JSON list of names and roles; NULL: anybody
      four_eyes    INTEGER NOT NULL,
      state        TEXT NOT NULL CHECK (state IN ('open','approved','rejected','retry','expired','withdrawn')),
      effect       TEXT,                -- the key of the effect in doubt
      name         TEXT,
      key          TEXT,
      expires_at   INTEGER,
      decided_seq  INTEGER,             -- the row that closed it: who, what, when
      PRIMARY KEY (run, boundary),
      CHECK ((state = 'open') = (decided_seq IS NULL))
    ) WITHOUT ROWID
    """,
    "CREATE INDEX boundaries_due ON boundaries (expires_at) WHERE state = 'open' AND expires_at IS NOT NULL",
    "CREATE INDEX boundaries_open ON boundaries (run) WHERE state = 'open'",
    """
    CREATE TABLE effects (
      key     TEXT PRIMARY KEY,         -- of run, path, step, node and index; never of epoch, attempt or time
      run     INTEGER NOT NULL,
      path    TEXT NOT NULL,
      step    INTEGER NOT NULL,
      policy  TEXT NOT NULL CHECK (policy IN ('ask','keyed')),
      token   TEXT NOT NULL,            -- the execution that holds the intent; 'in doubt' once a person was asked
      outcome BLOB                      -- NULL: an intent only
    ) WITHOUT ROWID
    """,
)


def statements() -> list[str]:
    """The schema without its comments and white space: SQLite keeps the text, and opens every file by reading it."""
    plain = [" ".join(re.sub(r"--.*", "", statement).split()) for statement in SCHEMA]
    return [re.sub(r" ?([(),]) ?", r"\1", statement) for statement in plain]
