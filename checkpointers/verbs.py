"""The verbs' statements: one INSERT into the log (or UPDATE of the head) whose predicate is the whole decision.

What follows from a row runs after it in the same transaction, the head's move last. No row returned = refused. The text
holds for SQLite and PostgreSQL alike; it is that of the protocol that was proven, see docs/architecture.md.
"""

from __future__ import annotations

# -- runs and leases. A lease is its epoch and its owner: a run of a removed one's id, or one that was restored, counts its
# epochs again, and no owner is there twice.

CREATE_RUN = """
INSERT INTO runs (run_id, graph, fingerprint, parent, creator, status, seq, epoch, owner, lease_until)
VALUES (:run, :graph, :fingerprint, :parent, :creator, CASE WHEN :status = 'running' THEN 'running' ELSE 'ready' END, -1,
        CASE WHEN :status = 'running' THEN 1 ELSE 0 END,
        CASE WHEN :status = 'running' THEN :owner END, CASE WHEN :status = 'running' THEN :now + :lease END)
ON CONFLICT (run_id) DO NOTHING
"""

CREATE_START = """
INSERT INTO checkpoints (run, seq, kind, status, opens, body, at_ms, digest)
SELECT r.run, 0, 'start', :status, :opens, :body, :now, sg_digest(:seal, 0, :status)
FROM runs r WHERE r.run_id = :run AND r.seq = -1
RETURNING run, seq, status
"""

CLAIM = """
UPDATE runs SET status = 'running', epoch = epoch + 1, owner = :owner, lease_until = :now + :lease
WHERE run_id = :run AND (status = 'ready' OR (status = 'running' AND lease_until <= :now))
RETURNING epoch, seq, ending
"""

RENEW = """
UPDATE runs SET lease_until = :now + :lease
WHERE run_id = :run AND epoch = :epoch AND owner = :owner AND status = 'running'
RETURNING seq, ending
"""

RELEASE = """
UPDATE runs SET status = 'ready', owner = NULL, lease_until = NULL
WHERE run_id = :run AND epoch = :epoch AND owner = :owner AND status = 'running'
RETURNING seq
"""

# -- a driver's rows

#: Any kind: a completed visit takes no more rows, an attempt that failed or asked is not completed, a stop counts
#: only if seen = seq, but for `completed`: what nothing is left of, no unseen row can bring back.
APPEND = """
INSERT INTO checkpoints (run, seq, kind, status, epoch, path, step, attempt, opens, body, at_ms, digest)
SELECT n.run, n.seq, :kind, n.status, :epoch, :path, :step, :attempt, :opens, :body, :now, sg_digest(:seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq, CASE WHEN r.seq = :seen OR :status = 'completed' THEN :status ELSE 'running' END AS status
      FROM runs r WHERE r.run_id = :run AND r.epoch = :epoch AND r.owner = :owner AND r.status = 'running') n
WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.run = n.run AND c.path = :path AND c.step = :step
                    AND (c.kind = 'node' OR c.kind = 'route' OR c.kind = 'join'))
  AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.run = n.run AND c.path = :path AND c.step = :step AND c.attempt = :attempt
                    AND (c.kind = 'failed' OR c.kind = 'asked'))
  AND (:effect IS NULL OR EXISTS (SELECT 1 FROM effects e WHERE e.key = :effect AND e.run = n.run AND e.outcome IS NULL))
ON CONFLICT DO NOTHING
RETURNING run, seq, status
"""

#: The hot path for node, route and join, by place: the predicate is read under the write lock, the unique key is the rest of it.
APPEND_HEAD = """
SELECT r.run, r.seq FROM runs r
WHERE r.run_id = ?1 AND r.epoch = ?2 AND r.owner = ?6 AND r.status = 'running'
  AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.run = r.run AND c.path = ?3 AND c.step = ?4 AND c.attempt = ?5
                    AND (c.kind = 'failed' OR c.kind = 'asked'))
"""

APPEND_ROW = """
INSERT INTO checkpoints (run, seq, kind, status, epoch, path, step, attempt, opens, body, at_ms, digest)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING
"""

SETTLE = """
INSERT INTO checkpoints (run, seq, kind, status, epoch, body, at_ms, digest)
SELECT r.run, r.seq + 1, 'settled', :status, r.epoch, :body, :now, sg_digest(:seal, r.seq + 1, :status)
FROM runs r
WHERE r.run_id = :run AND r.epoch = :epoch AND r.owner = :owner AND r.status = 'running' AND r.seq = :seen
RETURNING run, seq, status
"""

# -- somebody's acts. Names that begin with ':' are the clock's and not given to people.

DECIDE = """
INSERT INTO checkpoints (run, seq, kind, status, boundary, decision, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'decision', n.status, :boundary, :decision, :actor, :act, :body, :now, sg_digest(:seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN b.final = 1 AND :decision = 'rejected'
                    THEN CASE WHEN r.status = 'running' AND r.lease_until > :now THEN 'running' ELSE 'rejected' END
                  WHEN :decision = 'approved' AND b.approvals + 1 < b.needed THEN r.status
                  WHEN r.status = 'pending' THEN 'ready'
                  ELSE r.status END AS status
      FROM runs r JOIN boundaries b ON b.run = r.run
      WHERE r.run_id = :run AND b.boundary = :boundary AND b.shown_digest = :digest AND b.state = 'open'
        AND b.kind IN ('approval', 'question', 'in_doubt')
        AND (b.expires_at IS NULL OR b.expires_at > :now)
        AND (:decision IN ('approved', 'rejected') OR (:decision = 'retry' AND b.kind = 'in_doubt'))
        AND (b.approvers IS NULL OR sg_may(b.approvers, :actor, :roles) = 1)
        AND (b.four_eyes = 0 OR r.creator <> :actor)) n
WHERE :act <> '' AND :actor <> '' AND substr(:actor, 1, 1) <> ':' AND substr(:act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status
"""

EXPIRE = """
INSERT INTO checkpoints (run, seq, kind, status, boundary, decision, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'decision', n.status, :boundary, 'expired', ':clock', :act, :body, :now, sg_digest(:seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN b.final = 1
                    THEN CASE WHEN r.status = 'running' AND r.lease_until > :now THEN 'running' ELSE 'rejected' END
                  WHEN r.status = 'pending' THEN 'ready'
                  ELSE r.status END AS status
      FROM runs r JOIN boundaries b ON b.run = r.run
      WHERE r.run_id = :run AND b.boundary = :boundary AND b.state = 'open' AND b.expires_at <= :now) n
WHERE 1 = 1
ON CONFLICT DO NOTHING
RETURNING run, seq, status
"""

SIGNAL = """
INSERT INTO checkpoints (run, seq, kind, status, name, key, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'signal', n.status, :name, :key, :actor, :act, :body, :now, sg_digest(:seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN r.status = 'pending' AND EXISTS (SELECT 1 FROM boundaries b WHERE b.run = r.run AND b.state = 'open'
                                                          AND b.kind = 'signal' AND b.name = :name AND b.key = :key) THEN 'ready'
                  ELSE r.status END AS status
      FROM runs r WHERE r.run_id = :run AND r.status NOT IN ('completed', 'rejected', 'cancelled') AND r.ending IS NULL) n
WHERE :act <> '' AND :actor <> '' AND substr(:actor, 1, 1) <> ':' AND substr(:act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status
"""

CANCEL = """
INSERT INTO checkpoints (run, seq, kind, status, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'cancel', n.status, :actor, :act, :body, :now, sg_digest(:seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN r.status = 'running' AND r.lease_until > :now THEN 'running' ELSE coalesce(r.ending, 'cancelled') END AS status
      FROM runs r
      WHERE r.run_id = :run AND r.status NOT IN ('completed', 'rejected', 'cancelled')
        AND (r.ending IS NULL OR r.status <> 'running' OR r.lease_until <= :now)) n
WHERE :act <> '' AND :actor <> '' AND substr(:act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status
"""

RETRY = """
INSERT INTO checkpoints (run, seq, kind, status, actor, act, body, at_ms, digest)
SELECT r.run, r.seq + 1, 'retry', 'ready', :actor, :act, :body, :now, sg_digest(:seal, r.seq + 1, 'ready')
FROM runs r
WHERE r.run_id = :run AND r.status = 'failed' AND :act <> '' AND :actor <> '' AND substr(:act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status
"""

# -- effects

EFFECT_BEGIN = """
INSERT INTO effects (key, run, path, step, policy, token)
SELECT :key, r.run, :path, :step, :policy, :token FROM runs r
WHERE r.run_id = :run AND r.epoch = :epoch AND r.owner = :owner AND r.status = 'running' AND r.ending IS NULL
ON CONFLICT (key) DO UPDATE SET token = excluded.token
  WHERE effects.policy = 'keyed' AND excluded.policy = 'keyed' AND effects.outcome IS NULL AND effects.run = excluded.run
"""

EFFECT_KNOWN = """
SELECT e.token, e.outcome FROM effects e JOIN runs r ON r.run = e.run
WHERE e.key = :key AND r.run_id = :run AND r.epoch = :epoch AND r.owner = :owner AND r.status = 'running' AND r.ending IS NULL
"""

#: Not fenced by the epoch: what is known to have happened may be told, until a person was asked or the intent was handed on.
EFFECT_END = """
UPDATE effects SET outcome = coalesce(outcome, :outcome)
WHERE key = :key AND token = :token AND run = (SELECT r.run FROM runs r WHERE r.run_id = :run)
RETURNING outcome
"""

# -- what follows from a row (rid, seq and status are the row's)

OPEN_BOUNDARY = """
INSERT INTO boundaries (run, boundary, opened, nth, path, step, node, kind, shown_digest, final, needed, approvals, approvers,
                        four_eyes, state, effect, name, key, expires_at, decided_seq)
SELECT :rid, :seq || '.' || :nth, :seq, :nth, :path, :step, :node, :kind, :digest, :final, :needed, 0, :approvers,
       :four_eyes, s.state, :effect, :name, :key, :expires_at, CASE WHEN s.state <> 'open' THEN :seq END
FROM (SELECT CASE WHEN (SELECT ending FROM runs WHERE run = :rid) IS NOT NULL THEN 'withdrawn'
             WHEN :kind = 'signal'
              AND (SELECT count(*) FROM checkpoints c WHERE c.run = :rid AND c.act IS NOT NULL AND c.kind = 'signal'
                     AND c.name = :name AND c.key = :key)
                > (SELECT count(*) FROM boundaries b WHERE b.run = :rid AND b.kind = 'signal' AND b.name = :name
                     AND b.key = :key AND b.state = 'approved')
             THEN 'approved' ELSE 'open' END AS state) s
"""

AFTER_ASKED = ("UPDATE effects SET token = 'in doubt' WHERE key = :effect AND outcome IS NULL",)

AFTER_DECISION = (
    """
    UPDATE boundaries SET
        approvals = approvals + CASE :decision WHEN 'approved' THEN 1 ELSE 0 END,
        state = CASE WHEN :decision = 'approved' AND approvals + 1 < needed THEN 'open' ELSE :decision END,
        decided_seq = CASE WHEN :decision = 'approved' AND approvals + 1 < needed THEN NULL ELSE :seq END
    WHERE run = :rid AND boundary = :boundary AND state = 'open'
    """,
    """
    UPDATE effects SET outcome = :body
    WHERE :decision = 'approved' AND outcome IS NULL
      AND key = (SELECT effect FROM boundaries WHERE run = :rid AND boundary = :boundary)
    """,
    """
    DELETE FROM effects
    WHERE :decision = 'retry' AND outcome IS NULL
      AND key = (SELECT effect FROM boundaries WHERE run = :rid AND boundary = :boundary)
    """,
    """
    UPDATE runs SET ending = 'rejected'
    WHERE run = :rid AND ending IS NULL AND :decision IN ('rejected', 'expired')
      AND (SELECT final FROM boundaries WHERE run = :rid AND boundary = :boundary) = 1
    """,
    """
    UPDATE boundaries SET state = 'withdrawn', decided_seq = :seq
    WHERE run = :rid AND state = 'open' AND (SELECT ending FROM runs WHERE run = :rid) IS NOT NULL
    """,
)

#: An approval or a retry ends nothing: no other boundary is looked at.
AFTER_RELEASE = AFTER_DECISION[:3]

AFTER_CANCEL = (
    "UPDATE runs SET ending = 'cancelled' WHERE run = :rid AND ending IS NULL",
    "UPDATE boundaries SET state = 'withdrawn', decided_seq = :seq WHERE run = :rid AND state = 'open'",
)

AFTER_SIGNAL = (
    """
    UPDATE boundaries SET state = 'approved', decided_seq = :seq
    WHERE run = :rid AND boundary = (SELECT b.boundary FROM boundaries b WHERE b.run = :rid AND b.state = 'open'
                                       AND b.kind = 'signal' AND b.name = :name AND b.key = :key ORDER BY b.opened, b.nth LIMIT 1)
    """,
)

HEAD_RUNS = "UPDATE runs SET seq = ?2 WHERE run = ?1 AND seq = ?2 - 1"
HEAD_RESTS = "UPDATE runs SET seq = ?2, status = ?3, owner = NULL, lease_until = NULL WHERE run = ?1 AND seq = ?2 - 1"

# -- reading

_HEAD = """
SELECT r.run_id, r.graph, r.fingerprint, r.parent, r.creator, r.status, r.ending, r.seq, r.epoch, r.owner, r.lease_until,
       (SELECT c.at_ms FROM checkpoints c WHERE c.run = r.run AND c.seq = 0),
       (SELECT c.at_ms FROM checkpoints c WHERE c.run = r.run AND c.seq = r.seq), r.run
FROM runs r
"""
HEAD = _HEAD + "WHERE r.run_id = :run"
RUNS = (
    _HEAD
    + """
WHERE (:status IS NULL OR r.status = :status) AND (:graph IS NULL OR r.graph = :graph)
  AND (:before IS NULL OR r.run < (SELECT p.run FROM runs p WHERE p.run_id = :before))
ORDER BY r.run DESC LIMIT :many
"""
)

_ROW = """
SELECT c.seq, c.kind, c.status, c.body, c.at_ms, c.epoch, c.path, c.step, c.attempt, c.opens, c.boundary, c.decision, c.name,
       c.key, c.actor, c.act, c.digest
FROM checkpoints c
"""
ROWS = _ROW + "WHERE c.run = :rid AND c.seq > :after AND c.seq <= :until ORDER BY c.seq LIMIT :many"
ROW_OF_ACT = _ROW + "WHERE c.run = (SELECT r.run FROM runs r WHERE r.run_id = :run) AND c.act = :act"

SNAPSHOT = "SELECT seq, body, digest FROM snapshots WHERE run = :rid AND seq <= :until"
KEEP_SNAPSHOT = """
INSERT INTO snapshots (run, seq, body, digest) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, body = excluded.body, digest = excluded.digest
  WHERE snapshots.seq <= excluded.seq
"""

_BOUNDARY = """
SELECT r.run_id, b.boundary, b.opened, b.kind, b.path, b.step, b.node, b.shown_digest, b.final, b.needed, b.approvals,
       b.approvers, b.four_eyes, b.state, b.effect, b.name, b.key, b.expires_at, o.at_ms, d.decision, d.kind, d.actor, d.at_ms,
       d.act, d.body
FROM boundaries b
JOIN runs r ON r.run = b.run
JOIN checkpoints o ON o.run = b.run AND o.seq = b.opened
LEFT JOIN checkpoints d ON d.run = b.run AND d.seq = b.decided_seq
"""
_OLDEST_FIRST = " ORDER BY o.at_ms, b.run, b.opened, b.nth LIMIT :many"
_IN_ORDER = " ORDER BY b.opened, b.nth LIMIT :many"  # the clock may have been set back within a run
# Four statements instead of one with (:run IS NULL OR ...), which no index serves.
BOUNDARIES = _BOUNDARY + "WHERE (:state IS NULL OR b.state = :state)" + _OLDEST_FIRST
OPEN_BOUNDARIES = _BOUNDARY + "WHERE b.state = 'open'" + _OLDEST_FIRST
BOUNDARIES_OF_RUN = _BOUNDARY + "WHERE r.run_id = :run AND (:state IS NULL OR b.state = :state)" + _IN_ORDER
OPEN_BOUNDARIES_OF_RUN = (
    _BOUNDARY + "WHERE b.run = (SELECT run FROM runs WHERE run_id = :run) AND b.state = 'open'" + _IN_ORDER
)

DUE_RUNS = """
SELECT run_id FROM (
  SELECT run_id, status, lease_until FROM runs WHERE status IN ('ready','running') AND status = 'ready'
  UNION ALL
  SELECT run_id, status, lease_until FROM runs
  WHERE status IN ('ready','running') AND status = 'running' AND lease_until <= :now
) due ORDER BY status, lease_until LIMIT :many
"""
DUE_BOUNDARIES = """
SELECT r.run_id || ':' || b.boundary FROM boundaries b JOIN runs r ON r.run = b.run
WHERE b.state = 'open' AND b.expires_at <= :now ORDER BY b.expires_at LIMIT :many
"""

# -- removing

ENDED_RUN = "SELECT run FROM runs WHERE run_id = :run AND status IN ('completed', 'rejected', 'cancelled')"
ENDED_RUNS = """
SELECT r.run FROM runs r JOIN checkpoints c ON c.run = r.run AND c.seq = r.seq
WHERE r.status IN ('completed', 'rejected', 'cancelled') AND c.at_ms < :before
"""
#: After a restore: whoever drove a run before it is not its owner any more, and writes nothing more.
FENCE = """
UPDATE runs SET owner = CASE WHEN owner IS NULL THEN NULL ELSE 'fenced' END
WHERE status NOT IN ('completed', 'rejected', 'cancelled')
"""
FORGET = (
    "DELETE FROM checkpoints WHERE run = :rid",
    "DELETE FROM snapshots WHERE run = :rid",
    "DELETE FROM boundaries WHERE run = :rid",
    "DELETE FROM effects WHERE run = :rid",
    "DELETE FROM runs WHERE run = :rid",
)
