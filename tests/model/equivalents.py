"""Mutants that no walk can tell from the store they are made from, each with the reason."""

from __future__ import annotations

__all__ = ["EQUIVALENT"]

NEW = "only the run that is being created has no row"
LEASED = "only a running run has a lease: a CHECK says so, and no lease is neither over nor in the future"
OWNED = "only a running run has an owner: a CHECK says so"
NAMESAKES = "the drivers of a walk are all of one name; other tests have two"
KEYED = "the unique key of attempts refuses the same rows; SQLite appends only failed and asked rows by this statement"
UNDECIDED = "an open boundary has no decision to be read of another run"
TWICE = "what follows says so too; it is here so that the partial index serves"
GROWS = "a driver sees more of the log each time, and nothing that is not there"
CLOSED = "nothing is open, so nothing decided, once the run was asked to end"
APART = "what is open is kept apart so that it is found at once; what is found is filtered all the same"
UNDAMAGED = "no walk damages what is stored; other tests do"
UNFAILING = "no walk makes a store fail; other tests do"
ASKED = "an effect that somebody is asked about is there, has no outcome, and gets none but his"
INDEX = "the other statement finds the same by another index"
ORDER = "SQLite reads a run's rows in the order of the index, and takes the first"
LOCKED = "under the write lock the predicate has said so already"

EQUIVALENT: dict[str, str] = {
    "CREATE_START: r.run_id = :run AND": NEW,
    "CLAIM: status = 'running' AND": LEASED,
    "RENEW: AND status = 'running'": OWNED,
    "RENEW: AND owner = :owner": NAMESAKES,
    "RELEASE: AND status = 'running'": OWNED,
    "RELEASE: AND owner = :owner": NAMESAKES,
    "APPEND: AND r.status = 'running'": OWNED,
    "APPEND: AND r.owner = :owner": NAMESAKES,
    "APPEND_HEAD: AND r.status = 'running'": OWNED,
    "APPEND_HEAD: AND r.owner = ?6": NAMESAKES,
    "SETTLE: AND r.status = 'running'": OWNED,
    "SETTLE: AND r.owner = :owner": NAMESAKES,
    "EFFECT_BEGIN: AND r.status = 'running'": OWNED,
    "EFFECT_BEGIN: AND r.owner = :owner": NAMESAKES,
    "EFFECT_KNOWN: AND r.status = 'running'": OWNED,
    "EFFECT_KNOWN: AND r.owner = :owner": NAMESAKES,
    "memory._driven: or run.owner != lease.owner": NAMESAKES,
    "DECIDE: r.status = 'running' AND": LEASED,
    "EXPIRE: r.status = 'running' AND": LEASED,
    "CANCEL: r.status = 'running' AND": LEASED,
    "memory.is_held: and self.status == 'running'": LEASED,
    "memory.is_held: and self.lease_until is not None": LEASED,
    "APPEND: OR :status = 'completed'": "a failed or asked row completes nothing",
    "APPEND: AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.run = n. ...": KEYED,
    "APPEND: AND (c.kind = 'failed' OR c.kind = 'asked')": KEYED,
    "APPEND: c.kind = 'failed' OR": KEYED,
    "APPEND: OR c.kind = 'asked'": KEYED,
    "APPEND: ON CONFLICT DO NOTHING": LOCKED,
    "APPEND_HEAD: AND (c.kind = 'failed' OR c.kind = 'asked')": "a completing row of the attempt is refused by its key",
    "EXPIRE: ON CONFLICT DO NOTHING": LOCKED,
    "HEAD_RUNS: AND seq = ?2 - 1": LOCKED,
    "HEAD_RESTS: AND seq = ?2 - 1": LOCKED,
    "HEAD: AND c.seq = 0": ORDER,
    "RUNS: AND c.seq = 0": ORDER,
    "OPEN_BOUNDARY: AND c.act IS NOT NULL": "every signal has an act: a CHECK says so; it is here for the index",
    "OPEN_BOUNDARY: AND c.kind = 'signal'": "only a signal's row has a name and a key",
    "AFTER_ASKED[0]: AND outcome IS NULL": LOCKED,
    "AFTER_DECISION[0]: AND state = 'open'": LOCKED,
    "AFTER_DECISION[1]: AND outcome IS NULL": ASKED,
    "AFTER_DECISION[2]: AND outcome IS NULL": ASKED,
    "AFTER_DECISION[3]: AND :decision IN ('rejected', 'expired')": "SQLite runs the statement after nothing else",
    "OPEN_BOUNDARIES: d.run = b.run AND": UNDECIDED,
    "OPEN_BOUNDARIES_OF_RUN: d.run = b.run AND": UNDECIDED,
    "DUE_RUNS: status IN ('ready','running') AND": TWICE,
    "DUE_RUNS: status IN ('ready','running') AND (2)": TWICE,
    "DUE_RUNS: AND status = 'running'": LEASED,
    "schema: checkpoints_seq UNIQUE": LOCKED,
    "schema: checkpoints_try UNIQUE": LOCKED,
    "memory._admits: and run.tried": "it saves a look into what is empty",
    "memory._decision: or ''": "a closed boundary's row has an actor",
    "memory._decision: or '' (2)": "a closed boundary's row has an act",
    "memory._move: if status in ('ready', 'running') -> True": "whoever looks for work there asks each run again",
    "memory._keep_snapshot: and 0 <= seen <= run.seq": GROWS,
    "memory._keep_snapshot: and run.snapshot is None or run.snapshot[0] <= seen": GROWS,
    "memory._decide: or run.ending": CLOSED,
    "memory._boundaries: if state == 'open' -> False": APART,
    "memory._boundaries: if state == 'open' -> False (2)": APART,
    "database._may: or '[]'": "a decision always comes with a list of roles",
    "database.together: if not calls -> False": "an empty group stores nothing",
    "memory._snapshot: if snapshot_digest(self._secret, run.run_id, seq, body) != s ...": UNDAMAGED,
    "database._append: and entry.effect is None": "only an asked row is about an effect, and it completes nothing",
    "database._append: if fast -> False": "the other statement says the same, and takes longer",
    "database._move: if moved.rowcount != 1 -> False": LOCKED,
    "memory._answer_doubt: or intent is None": ASKED,
    "memory._answer_doubt: or intent.outcome is not None": ASKED,
    "memory.runs: if before is None -> False": "no run has no name",
    "database.load: or not rows": UNDAMAGED,
    "database.load: or rows[-1].seq != expected": UNDAMAGED,
    "database._rows: if checkpoint.seq != place -> False": UNDAMAGED,
    "database._snapshot: if snapshot_digest(self.secret, run_id, seq, body) != stored ...": UNDAMAGED,
    "sqlite._commit_waiting: or call.error": UNFAILING,
    "sqlite._commit_waiting: or error": UNFAILING,
    "sqlite.decide: if decision == 'rejected' -> True": "the statements that only a rejection needs find nothing to do",
    "sqlite.boundaries: if open_only -> False": INDEX,
    "sqlite.boundaries: if open_only -> False (2)": INDEX,
    "AFTER_DECISION[3]: AND ending IS NULL": CLOSED,
}
