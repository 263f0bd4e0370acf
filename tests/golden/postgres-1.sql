CREATE SCHEMA stategraph;
CREATE DOMAIN stategraph.decision AS text COLLATE pg_catalog."C"
	CONSTRAINT decision_check CHECK ((VALUE = ANY (ARRAY['approved'::text, 'rejected'::text, 'retry'::text, 'expired'::text])));
CREATE DOMAIN stategraph.digest AS bytea
	CONSTRAINT digest_check CHECK ((length(VALUE) = 16));
CREATE DOMAIN stategraph.ending AS text COLLATE pg_catalog."C"
	CONSTRAINT ending_check CHECK ((VALUE = ANY (ARRAY['rejected'::text, 'cancelled'::text])));
CREATE DOMAIN stategraph.kind AS text COLLATE pg_catalog."C"
	CONSTRAINT kind_check CHECK ((VALUE = ANY (ARRAY['start'::text, 'node'::text, 'route'::text, 'join'::text, 'failed'::text, 'asked'::text, 'settled'::text, 'decision'::text, 'signal'::text, 'cancel'::text, 'retry'::text])));
CREATE DOMAIN stategraph.person AS text COLLATE pg_catalog."C"
	CONSTRAINT person_check CHECK ((VALUE <> ''::text));
CREATE DOMAIN stategraph.run_id AS text COLLATE pg_catalog."C"
	CONSTRAINT run_id_check CHECK ((VALUE ~ '^[A-Za-z0-9._:-]{1,128}$'::text));
CREATE DOMAIN stategraph.status AS text COLLATE pg_catalog."C"
	CONSTRAINT status_check CHECK ((VALUE = ANY (ARRAY['ready'::text, 'running'::text, 'pending'::text, 'failed'::text, 'completed'::text, 'rejected'::text, 'cancelled'::text])));
CREATE FUNCTION stategraph.sg_append(_run text, _epoch bigint, _owner text, _seen bigint, _kind text, _path text, _step bigint, _attempt bigint, _status text, _opens text, _effect text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, epoch, path, step, attempt, opens, body, at_ms, digest)
SELECT n.run, n.seq, _kind, n.status, _epoch, _path, _step, _attempt, _opens, _body, _now, stategraph.sg_digest(_seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq, CASE WHEN r.seq = _seen OR _status = 'completed' THEN _status ELSE 'running' END AS status
      FROM stategraph.runs r WHERE r.run_id = _run AND r.epoch = _epoch AND r.owner = _owner AND r.status = 'running') n
WHERE NOT EXISTS (SELECT 1 FROM stategraph.checkpoints c WHERE c.run = n.run AND c.path = _path AND c.step = _step
                    AND (c.kind = 'node' OR c.kind = 'route' OR c.kind = 'join'))
  AND NOT EXISTS (SELECT 1 FROM stategraph.checkpoints c WHERE c.run = n.run AND c.path = _path AND c.step = _step AND c.attempt = _attempt
                    AND (c.kind = 'failed' OR c.kind = 'asked'))
  AND (_effect IS NULL OR EXISTS (SELECT 1 FROM stategraph.effects e WHERE e.key = _effect AND e.run = n.run AND e.outcome IS NULL))
ON CONFLICT DO NOTHING
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  IF _opens IS NOT NULL THEN PERFORM stategraph.sg_open(_rid, _new_seq, _opens); END IF;
  UPDATE stategraph.effects SET token = 'in doubt' WHERE key = _effect AND outcome IS NULL;
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_append_all(_run text, _epoch bigint, _owner text, _seen bigint, _kinds text[], _paths text[], _steps bigint[], _attempts bigint[], _statuses text[], _opens_all text[], _effects text[], _bodies bytea[], _seals bytea[], _fold bytea, _fold_digest bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  FOR _i IN 1 .. cardinality(_kinds) LOOP
    SELECT * INTO _new_seq, _new_status, _at_ms FROM stategraph.sg_append(
      _run, _epoch, _owner, _seen + _i - 1, _kinds[_i], _paths[_i], _steps[_i], _attempts[_i], _statuses[_i], _opens_all[_i],
      _effects[_i], _bodies[_i], _seals[_i], _now);
    IF _new_seq IS NULL THEN
      IF _i = 1 THEN RETURN; END IF;
      RAISE unique_violation USING MESSAGE = 'a visit that follows a new one has its row already';
    END IF;
    _now := _at_ms;
  END LOOP;
  IF _fold IS NOT NULL THEN
    SELECT run INTO _rid FROM stategraph.runs WHERE run_id = _run;
    INSERT INTO stategraph.snapshots (run, seq, body, digest) VALUES (_rid, _seen, _fold, _fold_digest)
ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, body = excluded.body, digest = excluded.digest
  WHERE snapshots.seq <= excluded.seq;
  END IF;
END $$;
CREATE FUNCTION stategraph.sg_cancel(_run text, _actor text, _act text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'cancel', n.status, _actor, _act, _body, _now, stategraph.sg_digest(_seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN r.status = 'running' AND r.lease_until > _now THEN 'running' ELSE coalesce(r.ending, 'cancelled') END AS status
      FROM stategraph.runs r
      WHERE r.run_id = _run AND r.status NOT IN ('completed', 'rejected', 'cancelled')
        AND (r.ending IS NULL OR r.status <> 'running' OR r.lease_until <= _now)) n
WHERE _act <> '' AND _actor <> '' AND substr(_act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE stategraph.runs SET ending = 'cancelled' WHERE run = _rid AND ending IS NULL;
  UPDATE stategraph.boundaries SET state = 'withdrawn', decided_seq = _new_seq WHERE run = _rid AND state = 'open';
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_claim(_run text, _owner text, _lease bigint, _now bigint, OUT _new_epoch bigint, OUT _new_seq bigint, OUT _ending text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  UPDATE stategraph.runs SET status = 'running', epoch = epoch + 1, owner = _owner, lease_until = _now + _lease
WHERE run_id = _run AND (status = 'ready' OR (status = 'running' AND lease_until <= _now))
RETURNING epoch, seq, ending INTO _new_epoch, _new_seq, _ending;
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_create(_run text, _graph text, _fingerprint text, _parent text, _creator text, _owner text, _lease bigint, _status text, _opens text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.runs (run_id, graph, fingerprint, parent, creator, status, seq, epoch, owner, lease_until)
VALUES (_run, _graph, _fingerprint, _parent, _creator, CASE WHEN _status = 'running' THEN 'running' ELSE 'ready' END, -1,
        CASE WHEN _status = 'running' THEN 1 ELSE 0 END,
        CASE WHEN _status = 'running' THEN _owner END, CASE WHEN _status = 'running' THEN _now + _lease END)
ON CONFLICT (run_id) DO NOTHING;
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, opens, body, at_ms, digest)
SELECT r.run, 0, 'start', _status, _opens, _body, _now, stategraph.sg_digest(_seal, 0, _status)
FROM stategraph.runs r WHERE r.run_id = _run AND r.seq = -1
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  IF _opens IS NOT NULL THEN PERFORM stategraph.sg_open(_rid, _new_seq, _opens); END IF;
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_decide(_run text, _boundary text, _digest text, _decision text, _actor text, _act text, _roles text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, boundary, decision, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'decision', n.status, _boundary, _decision, _actor, _act, _body, _now, stategraph.sg_digest(_seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN b.final = 1 AND _decision = 'rejected'
                    THEN CASE WHEN r.status = 'running' AND r.lease_until > _now THEN 'running' ELSE 'rejected' END
                  WHEN _decision = 'approved' AND b.approvals + 1 < b.needed THEN r.status
                  WHEN r.status = 'pending' THEN 'ready'
                  ELSE r.status END AS status
      FROM stategraph.runs r JOIN stategraph.boundaries b ON b.run = r.run
      WHERE r.run_id = _run AND b.boundary = _boundary AND b.shown_digest = _digest AND b.state = 'open'
        AND b.kind IN ('approval', 'question', 'in_doubt')
        AND (b.expires_at IS NULL OR b.expires_at > _now)
        AND (_decision IN ('approved', 'rejected') OR (_decision = 'retry' AND b.kind = 'in_doubt'))
        AND (b.approvers IS NULL OR stategraph.sg_may(b.approvers, _actor, _roles) = 1)
        AND (b.four_eyes = 0 OR r.creator <> _actor)) n
WHERE _act <> '' AND _actor <> '' AND substr(_actor, 1, 1) <> ':' AND substr(_act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE stategraph.boundaries SET
        approvals = approvals + CASE _decision WHEN 'approved' THEN 1 ELSE 0 END,
        state = CASE WHEN _decision = 'approved' AND approvals + 1 < needed THEN 'open' ELSE _decision END,
        decided_seq = CASE WHEN _decision = 'approved' AND approvals + 1 < needed THEN NULL ELSE _new_seq END
    WHERE run = _rid AND boundary = _boundary AND state = 'open';
  UPDATE stategraph.effects SET outcome = _body
    WHERE _decision = 'approved' AND outcome IS NULL
      AND key = (SELECT effect FROM stategraph.boundaries WHERE run = _rid AND boundary = _boundary);
  DELETE FROM stategraph.effects
    WHERE _decision = 'retry' AND outcome IS NULL
      AND key = (SELECT effect FROM stategraph.boundaries WHERE run = _rid AND boundary = _boundary);
  UPDATE stategraph.runs SET ending = 'rejected'
    WHERE run = _rid AND ending IS NULL AND _decision IN ('rejected', 'expired')
      AND (SELECT final FROM stategraph.boundaries WHERE run = _rid AND boundary = _boundary) = 1;
  UPDATE stategraph.boundaries SET state = 'withdrawn', decided_seq = _new_seq
    WHERE run = _rid AND state = 'open' AND (SELECT ending FROM stategraph.runs WHERE run = _rid) IS NOT NULL;
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_delete(_run text, OUT _removed bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  _removed := 0;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  FOR _rid IN SELECT run FROM stategraph.runs WHERE run_id = _run AND status IN ('completed', 'rejected', 'cancelled') LOOP DELETE FROM stategraph.checkpoints WHERE run = _rid;
  DELETE FROM stategraph.snapshots WHERE run = _rid;
  DELETE FROM stategraph.boundaries WHERE run = _rid;
  DELETE FROM stategraph.effects WHERE run = _rid;
  DELETE FROM stategraph.runs WHERE run = _rid; _removed := _removed + 1; END LOOP;
END $$;
CREATE FUNCTION stategraph.sg_digest(_seal bytea, _seq bigint, _status text) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT substr(sha256(_seal || convert_to(_seq || ':' || _status, 'UTF8')), 1, 16) $$;
CREATE FUNCTION stategraph.sg_due(_many bigint, _now bigint) RETURNS TABLE(_run text, _boundary text, _at_ms bigint)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  RETURN QUERY SELECT d.run_id::text, NULL, _now FROM (SELECT run_id FROM (
  SELECT run_id, status, lease_until FROM stategraph.runs WHERE status IN ('ready','running') AND status = 'ready'
  UNION ALL
  SELECT run_id, status, lease_until FROM stategraph.runs
  WHERE status IN ('ready','running') AND status = 'running' AND lease_until <= _now
) due ORDER BY status, lease_until LIMIT _many) d (run_id);
  RETURN QUERY SELECT NULL, d.id, _now FROM (SELECT r.run_id || ':' || b.boundary FROM stategraph.boundaries b JOIN stategraph.runs r ON r.run = b.run
WHERE b.state = 'open' AND b.expires_at <= _now ORDER BY b.expires_at LIMIT _many) d (id);
END $$;
CREATE FUNCTION stategraph.sg_effect_begin(_run text, _epoch bigint, _owner text, _key text, _path text, _step bigint, _policy text, _token text, OUT _known_token text, OUT _known_outcome bytea, OUT _handed_on boolean) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _held text;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  SELECT token INTO _held FROM stategraph.effects WHERE key = _key;
  INSERT INTO stategraph.effects (key, run, path, step, policy, token)
SELECT _key, r.run, _path, _step, _policy, _token FROM stategraph.runs r
WHERE r.run_id = _run AND r.epoch = _epoch AND r.owner = _owner AND r.status = 'running' AND r.ending IS NULL
ON CONFLICT (key) DO UPDATE SET token = excluded.token
  WHERE effects.policy = 'keyed' AND excluded.policy = 'keyed' AND effects.outcome IS NULL AND effects.run = excluded.run;
  SELECT e.token, e.outcome FROM stategraph.effects e JOIN stategraph.runs r ON r.run = e.run
WHERE e.key = _key AND r.run_id = _run AND r.epoch = _epoch AND r.owner = _owner AND r.status = 'running' AND r.ending IS NULL INTO _known_token, _known_outcome;
  _handed_on := _held IS NOT NULL AND _held <> _known_token;
END $$;
CREATE FUNCTION stategraph.sg_effect_end(_run text, _key text, _token text, _outcome bytea, OUT _known_outcome bytea) RETURNS bytea
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  UPDATE stategraph.effects SET outcome = coalesce(outcome, _outcome)
WHERE key = _key AND token = _token AND run = (SELECT r.run FROM stategraph.runs r WHERE r.run_id = _run)
RETURNING outcome INTO _known_outcome;
END $$;
CREATE FUNCTION stategraph.sg_expire(_run text, _boundary text, _act text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, boundary, decision, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'decision', n.status, _boundary, 'expired', ':clock', _act, _body, _now, stategraph.sg_digest(_seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN b.final = 1
                    THEN CASE WHEN r.status = 'running' AND r.lease_until > _now THEN 'running' ELSE 'rejected' END
                  WHEN r.status = 'pending' THEN 'ready'
                  ELSE r.status END AS status
      FROM stategraph.runs r JOIN stategraph.boundaries b ON b.run = r.run
      WHERE r.run_id = _run AND b.boundary = _boundary AND b.state = 'open' AND b.expires_at <= _now) n
WHERE 1 = 1
ON CONFLICT DO NOTHING
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE stategraph.boundaries SET
        approvals = approvals + CASE 'expired' WHEN 'approved' THEN 1 ELSE 0 END,
        state = CASE WHEN 'expired' = 'approved' AND approvals + 1 < needed THEN 'open' ELSE 'expired' END,
        decided_seq = CASE WHEN 'expired' = 'approved' AND approvals + 1 < needed THEN NULL ELSE _new_seq END
    WHERE run = _rid AND boundary = _boundary AND state = 'open';
  UPDATE stategraph.effects SET outcome = _body
    WHERE 'expired' = 'approved' AND outcome IS NULL
      AND key = (SELECT effect FROM stategraph.boundaries WHERE run = _rid AND boundary = _boundary);
  DELETE FROM stategraph.effects
    WHERE 'expired' = 'retry' AND outcome IS NULL
      AND key = (SELECT effect FROM stategraph.boundaries WHERE run = _rid AND boundary = _boundary);
  UPDATE stategraph.runs SET ending = 'rejected'
    WHERE run = _rid AND ending IS NULL AND 'expired' IN ('rejected', 'expired')
      AND (SELECT final FROM stategraph.boundaries WHERE run = _rid AND boundary = _boundary) = 1;
  UPDATE stategraph.boundaries SET state = 'withdrawn', decided_seq = _new_seq
    WHERE run = _rid AND state = 'open' AND (SELECT ending FROM stategraph.runs WHERE run = _rid) IS NOT NULL;
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_may(_approvers text, _actor text, _roles text) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT count(*)::integer FROM (SELECT 1 FROM json_array_elements_text(_approvers::json) a WHERE a = _actor OR a IN (SELECT * FROM json_array_elements_text(_roles::json)) LIMIT 1) found $$;
CREATE FUNCTION stategraph.sg_move(_rid bigint, _new_seq bigint, _new_status text) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
BEGIN
  IF _new_status IN ('rejected', 'cancelled') AND NOT EXISTS (SELECT 1 FROM stategraph.runs WHERE run = _rid AND ending = _new_status) THEN
    RAISE check_violation USING MESSAGE = format('nobody has asked the run to be %s', _new_status);
  END IF;
  IF _new_status = 'running' THEN UPDATE stategraph.runs SET seq = _new_seq WHERE run = _rid AND seq = _new_seq - 1; ELSE UPDATE stategraph.runs SET seq = _new_seq, status = _new_status, owner = NULL, lease_until = NULL WHERE run = _rid AND seq = _new_seq - 1; END IF;
  IF NOT FOUND THEN RAISE EXCEPTION 'the head did not follow its log'; END IF;
END $$;
CREATE FUNCTION stategraph.sg_open(_rid bigint, _seq bigint, _opens text) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE _o json; _nth bigint;
BEGIN
  FOR _o, _nth IN SELECT value, ordinality - 1 FROM json_array_elements(_opens::json) WITH ORDINALITY LOOP
  PERFORM stategraph.sg_may(_o->>'approvers', '', '[]');
  INSERT INTO stategraph.boundaries (run, boundary, opened, nth, path, step, node, kind, shown_digest, final, needed, approvals, approvers,
                        four_eyes, state, effect, name, key, expires_at, decided_seq)
SELECT _rid, _seq || '.' || _nth, _seq, _nth, (_o->>'path'), (_o->>'step')::bigint, (_o->>'node'), (_o->>'kind'), (_o->>'digest'), coalesce((_o->>'final')::boolean, false)::integer, coalesce((_o->>'needed')::bigint, 1), 0, (_o->>'approvers'),
       coalesce((_o->>'four_eyes')::boolean, false)::integer, s.state, (_o->>'effect'), (_o->>'name'), (_o->>'key'), (_o->>'expires_at')::bigint, CASE WHEN s.state <> 'open' THEN _seq END
FROM (SELECT CASE WHEN (SELECT ending FROM stategraph.runs WHERE run = _rid) IS NOT NULL THEN 'withdrawn'
             WHEN (_o->>'kind') = 'signal'
              AND (SELECT count(*) FROM stategraph.checkpoints c WHERE c.run = _rid AND c.act IS NOT NULL AND c.kind = 'signal'
                     AND c.name = (_o->>'name') AND c.key = (_o->>'key'))
                > (SELECT count(*) FROM stategraph.boundaries b WHERE b.run = _rid AND b.kind = 'signal' AND b.name = (_o->>'name')
                     AND b.key = (_o->>'key') AND b.state = 'approved')
             THEN 'approved' ELSE 'open' END AS state) s;
  END LOOP;
END $$;
CREATE FUNCTION stategraph.sg_prune(_before bigint, OUT _removed bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  _removed := 0;
  FOR _rid IN SELECT r.run FROM stategraph.runs r JOIN stategraph.checkpoints c ON c.run = r.run AND c.seq = r.seq
WHERE r.status IN ('completed', 'rejected', 'cancelled') AND c.at_ms < _before LOOP
    PERFORM 1 FROM stategraph.runs WHERE run = _rid FOR UPDATE SKIP LOCKED;
    IF FOUND THEN DELETE FROM stategraph.checkpoints WHERE run = _rid;
  DELETE FROM stategraph.snapshots WHERE run = _rid;
  DELETE FROM stategraph.boundaries WHERE run = _rid;
  DELETE FROM stategraph.effects WHERE run = _rid;
  DELETE FROM stategraph.runs WHERE run = _rid; _removed := _removed + 1; END IF;
  END LOOP;
END $$;
CREATE FUNCTION stategraph.sg_release(_run text, _epoch bigint, _owner text, OUT _new_seq bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  UPDATE stategraph.runs SET status = 'ready', owner = NULL, lease_until = NULL
WHERE run_id = _run AND epoch = _epoch AND owner = _owner AND status = 'running'
RETURNING seq INTO _new_seq;
END $$;
CREATE FUNCTION stategraph.sg_renew(_run text, _epoch bigint, _owner text, _lease bigint, _now bigint, OUT _new_seq bigint, OUT _ending text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  UPDATE stategraph.runs SET lease_until = _now + _lease
WHERE run_id = _run AND epoch = _epoch AND owner = _owner AND status = 'running'
RETURNING seq, ending INTO _new_seq, _ending;
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_retry(_run text, _actor text, _act text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, actor, act, body, at_ms, digest)
SELECT r.run, r.seq + 1, 'retry', 'ready', _actor, _act, _body, _now, stategraph.sg_digest(_seal, r.seq + 1, 'ready')
FROM stategraph.runs r
WHERE r.run_id = _run AND r.status = 'failed' AND _act <> '' AND _actor <> '' AND substr(_act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_settle(_run text, _epoch bigint, _owner text, _seen bigint, _status text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, epoch, body, at_ms, digest)
SELECT r.run, r.seq + 1, 'settled', _status, r.epoch, _body, _now, stategraph.sg_digest(_seal, r.seq + 1, _status)
FROM stategraph.runs r
WHERE r.run_id = _run AND r.epoch = _epoch AND r.owner = _owner AND r.status = 'running' AND r.seq = _seen
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_signal(_run text, _name text, _key text, _actor text, _act text, _body bytea, _seal bytea, _now bigint, OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM stategraph.runs WHERE run_id = _run FOR NO KEY UPDATE;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  _seal := _seal || convert_to(_now || ':', 'UTF8');
  INSERT INTO stategraph.checkpoints (run, seq, kind, status, name, key, actor, act, body, at_ms, digest)
SELECT n.run, n.seq, 'signal', n.status, _name, _key, _actor, _act, _body, _now, stategraph.sg_digest(_seal, n.seq, n.status)
FROM (SELECT r.run, r.seq + 1 AS seq,
             CASE WHEN r.status = 'pending' AND EXISTS (SELECT 1 FROM stategraph.boundaries b WHERE b.run = r.run AND b.state = 'open'
                                                          AND b.kind = 'signal' AND b.name = _name AND b.key = _key) THEN 'ready'
                  ELSE r.status END AS status
      FROM stategraph.runs r WHERE r.run_id = _run AND r.status NOT IN ('completed', 'rejected', 'cancelled') AND r.ending IS NULL) n
WHERE _act <> '' AND _actor <> '' AND substr(_actor, 1, 1) <> ':' AND substr(_act, 1, 1) <> ':'
ON CONFLICT DO NOTHING
RETURNING run, seq, status INTO _rid, _new_seq, _new_status;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE stategraph.boundaries SET state = 'approved', decided_seq = _new_seq
    WHERE run = _rid AND boundary = (SELECT b.boundary FROM stategraph.boundaries b WHERE b.run = _rid AND b.state = 'open'
                                       AND b.kind = 'signal' AND b.name = _name AND b.key = _key ORDER BY b.opened, b.nth LIMIT 1);
  PERFORM stategraph.sg_move(_rid, _new_seq, _new_status);
  _at_ms := _now;
END $$;
CREATE FUNCTION stategraph.sg_step(_run text, _epoch bigint, _owner text, _seen bigint, _kind text, _path text, _step bigint, _attempt bigint, _status text, _body bytea, _seal bytea, _now bigint) RETURNS text
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    AS $$
#variable_conflict use_column
DECLARE _rid bigint; _new_seq bigint; _told text;
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF _status = 'running' THEN
    UPDATE stategraph.runs r SET seq = r.seq + 1
    WHERE r.run_id = _run AND r.epoch = _epoch AND r.owner = _owner AND r.status = 'running' AND r.seq = _seen
      AND NOT EXISTS (SELECT 1 FROM stategraph.checkpoints c WHERE c.run = r.run AND c.path = _path AND c.step = _step
                      AND (c.kind = 'node' OR c.kind = 'route' OR c.kind = 'join'))
    AND NOT EXISTS (SELECT 1 FROM stategraph.checkpoints c WHERE c.run = r.run AND c.path = _path AND c.step = _step
                      AND c.attempt = _attempt AND (c.kind = 'failed' OR c.kind = 'asked'))
    RETURNING r.run, r.seq INTO _rid, _new_seq;
    IF FOUND THEN
      _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
      INSERT INTO stategraph.checkpoints (run, seq, kind, status, epoch, path, step, attempt, body, at_ms, digest)
      VALUES (_rid, _new_seq, _kind, 'running', _epoch, _path, _step, _attempt, _body, _now,
              stategraph.sg_digest(_seal || convert_to(_now || ':', 'UTF8'), _new_seq, 'running'));
      RETURN _new_seq || ' ' || _now;
    END IF;
  END IF;
  SELECT a._new_seq || ' ' || a._at_ms INTO _told
  FROM stategraph.sg_append(_run, _epoch, _owner, _seen, _kind, _path, _step, _attempt, _status, NULL, NULL, _body, _seal,
                         _now) a;
  RETURN _told;
END $$;
CREATE FUNCTION stategraph.sg_steps(_runs text[], _epochs bigint[], _owners text[], _seens bigint[], _kinds text[], _paths text[], _steps bigint[], _attempts bigint[], _statuses text[], _bodies bytea[], _seals bytea[], _now bigint) RETURNS TABLE(_nth bigint, _new_seq bigint, _at_ms bigint)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET lock_timeout TO '5s'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
BEGIN
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM 1 FROM (SELECT 1 FROM stategraph.runs r WHERE r.run_id = ANY (_runs)
                     ORDER BY r.run_id FOR NO KEY UPDATE OF r) locked;
  _now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  RETURN QUERY
  WITH n AS MATERIALIZED (
    SELECT g.nth, r.run, r.seq + 1 AS seq, CASE WHEN r.seq = g.seen OR g.status = 'completed' THEN g.status ELSE 'running' END AS status,
           g.epoch, g.kind, g.path, g.step, g.attempt, g.body, g.seal || convert_to(_now || ':', 'UTF8') AS seal
    FROM unnest(_runs, _epochs, _owners, _seens, _kinds, _paths, _steps, _attempts, _statuses, _bodies, _seals) WITH ORDINALITY
         g (run_id, epoch, owner, seen, kind, path, step, attempt, status, body, seal, nth)
    JOIN stategraph.runs r ON r.run_id = g.run_id AND r.epoch = g.epoch AND r.owner = g.owner AND r.status = 'running'
  ), written AS (
    INSERT INTO stategraph.checkpoints (run, seq, kind, status, epoch, path, step, attempt, body, at_ms, digest)
    SELECT n.run, n.seq, n.kind, n.status, n.epoch, n.path, n.step, n.attempt, n.body, _now,
           stategraph.sg_digest(n.seal, n.seq, n.status)
    FROM n
    WHERE NOT EXISTS (SELECT 1 FROM stategraph.checkpoints c WHERE c.run = n.run AND c.path = n.path AND c.step = n.step
                      AND (c.kind = 'node' OR c.kind = 'route' OR c.kind = 'join'))
    AND NOT EXISTS (SELECT 1 FROM stategraph.checkpoints c WHERE c.run = n.run AND c.path = n.path AND c.step = n.step
                      AND c.attempt = n.attempt AND (c.kind = 'failed' OR c.kind = 'asked'))
    RETURNING run, seq, status
  ), moved AS (
    UPDATE stategraph.runs r
    SET seq = w.seq, status = w.status, owner = CASE WHEN w.status = 'running' THEN r.owner END,
        lease_until = CASE WHEN w.status = 'running' THEN r.lease_until END
    FROM written w WHERE r.run = w.run AND r.seq = w.seq - 1
    RETURNING r.run
  )
  SELECT n.nth, n.seq, _now FROM n JOIN moved m ON m.run = n.run;
END $$;
CREATE TABLE stategraph.boundaries (
    run bigint NOT NULL,
    boundary text NOT NULL COLLATE pg_catalog."C",
    opened bigint NOT NULL,
    nth bigint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    step bigint NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    shown_digest text NOT NULL COLLATE pg_catalog."C",
    final bigint NOT NULL,
    needed bigint NOT NULL,
    approvals bigint NOT NULL,
    approvers text COLLATE pg_catalog."C",
    four_eyes bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    effect text COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    expires_at bigint,
    decided_seq bigint,
    CONSTRAINT boundaries_check CHECK (((state = 'open'::text) = (decided_seq IS NULL))),
    CONSTRAINT boundaries_kind_check CHECK ((kind = ANY (ARRAY['approval'::text, 'question'::text, 'timer'::text, 'signal'::text, 'in_doubt'::text]))),
    CONSTRAINT boundaries_needed_check CHECK ((needed >= 1)),
    CONSTRAINT boundaries_state_check CHECK ((state = ANY (ARRAY['open'::text, 'approved'::text, 'rejected'::text, 'retry'::text, 'expired'::text, 'withdrawn'::text])))
);
CREATE TABLE stategraph.checkpoints (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    kind stategraph.kind NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    epoch bigint,
    path text COLLATE pg_catalog."C",
    step bigint,
    attempt bigint,
    opens text COLLATE pg_catalog."C",
    boundary text COLLATE pg_catalog."C",
    decision stategraph.decision,
    name text COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    actor stategraph.person,
    act stategraph.person,
    body bytea NOT NULL,
    at_ms bigint NOT NULL,
    digest stategraph.digest NOT NULL
);
CREATE TABLE stategraph.effects (
    key text NOT NULL COLLATE pg_catalog."C",
    run bigint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    step bigint NOT NULL,
    policy text NOT NULL COLLATE pg_catalog."C",
    token text NOT NULL COLLATE pg_catalog."C",
    outcome bytea,
    CONSTRAINT effects_policy_check CHECK ((policy = ANY (ARRAY['ask'::text, 'keyed'::text])))
);
CREATE TABLE stategraph.runs (
    run bigint NOT NULL,
    run_id stategraph.run_id NOT NULL,
    graph text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    parent text COLLATE pg_catalog."C",
    creator stategraph.person NOT NULL,
    status stategraph.status NOT NULL,
    ending stategraph.ending,
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    owner text COLLATE pg_catalog."C",
    lease_until bigint
)
WITH (fillfactor='70');
ALTER TABLE stategraph.runs ALTER COLUMN run ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME stategraph.runs_run_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE stategraph.snapshots (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    body bytea NOT NULL,
    digest stategraph.digest NOT NULL
);
CREATE TABLE stategraph.version (
    version bigint NOT NULL
);
INSERT INTO stategraph.boundaries VALUES (2, '2.0', 2, 0, '', 2, 'pay', 'approval', 'd3dcc82509e160636998d528325254a0b6214f1fa80837cafb73730a92eedd42', 1, 1, 0, NULL, 0, 'open', NULL, NULL, NULL, NULL, NULL);
INSERT INTO stategraph.boundaries VALUES (9, '40.0', 40, 0, '', 40, 'pay', 'approval', 'd0a5423d0c4d76f5f090c2764815e46bb3049339f7d2d9f5f74221ae4c5645dc', 1, 1, 0, NULL, 0, 'open', NULL, NULL, NULL, NULL, NULL);
INSERT INTO stategraph.boundaries VALUES (1, '2.0', 2, 0, '', 2, 'pay', 'approval', 'd5df74ff2472b6f700938c97aeb05cdc4717de949821c91972ca996d769696a2', 1, 1, 1, NULL, 0, 'approved', NULL, NULL, NULL, NULL, 3);
INSERT INTO stategraph.boundaries VALUES (4, '2.0', 2, 0, '', 2, 'pay', 'approval', '3ec6cb7dd939bb9480a6100dced263b55c3e07251ef1658235bc03ff0f96d2f8', 1, 1, 1, NULL, 0, 'approved', NULL, NULL, NULL, NULL, 3);
INSERT INTO stategraph.boundaries VALUES (7, '2.0', 2, 0, '', 2, 'pay', 'approval', '633000e96f33ae15ea4964d45a8c9a2744e38ed37d9f4ef9d2665ceaa540f360', 1, 1, 1, NULL, 0, 'approved', NULL, NULL, NULL, NULL, 3);
INSERT INTO stategraph.boundaries VALUES (8, '2.0', 2, 0, '', 2, 'pay', 'approval', '5ee2c2db1c5fe20b4a6f765cbc2bae4be06c431cf843d803827f48dc85f4a594', 1, 1, 1, NULL, 0, 'approved', NULL, NULL, NULL, NULL, 3);
INSERT INTO stategraph.boundaries VALUES (5, '2.0', 2, 0, '', 2, 'pay', 'approval', '6cc61e9d908648ac2128c3d4d01fc5e0c4422bae961f00945419fcdde5e2aef1', 1, 1, 0, NULL, 0, 'rejected', NULL, NULL, NULL, NULL, 3);
INSERT INTO stategraph.boundaries VALUES (6, '2.0', 2, 0, '', 2, 'pay', 'approval', '4204c63b75c94003c1ca951471e72ce1510ca79392b95f456c880311245dfa94', 1, 1, 0, NULL, 0, 'withdrawn', NULL, NULL, NULL, NULL, 3);
INSERT INTO stategraph.boundaries VALUES (7, '4.0', 4, 0, '', 2, 'pay', 'in_doubt', '3b19810e3120792d016c0788f53941a03bdb52964c3c21adb2915acf25f0f767', 0, 1, 0, NULL, 0, 'open', '8b214ba0de8e80f48dc056f202dda432d55a9b3e03754e7f67e0583ffc85b1cd', NULL, NULL, NULL, NULL);
INSERT INTO stategraph.checkpoints VALUES (1, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a66616c73657d2c226174223a22636f756e74227d', 1700000000000, '\x62901810a881c028f4ec31140abc0b61');
INSERT INTO stategraph.checkpoints VALUES (1, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a2232227d2c226174223a22636f756e74222c226d73223a337d', 1700000000000, '\x759c9793feb67b34254a323534ed0159');
INSERT INTO stategraph.checkpoints VALUES (1, 2, 'node', 'pending', 1, '', 1, 0, '[{"kind":"approval","path":"","step":2,"node":"pay","digest":"d5df74ff2472b6f700938c97aeb05cdc4717de949821c91972ca996d769696a2","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a2231227d2c226174223a22706179227d', 1700000000000, '\x3b7bf39fc1c941cdfaaf319433be5b78');
INSERT INTO stategraph.checkpoints VALUES (2, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a66616c73657d2c226174223a22636f756e74227d', 1700000000000, '\xca8f45dac64980e738a0cd6fbb7a388f');
INSERT INTO stategraph.checkpoints VALUES (2, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a2232227d2c226174223a22636f756e74227d', 1700000000000, '\xa6e862dd523fe25dd9b48ce1c688b213');
INSERT INTO stategraph.checkpoints VALUES (2, 2, 'node', 'pending', 1, '', 1, 0, '[{"kind":"approval","path":"","step":2,"node":"pay","digest":"d3dcc82509e160636998d528325254a0b6214f1fa80837cafb73730a92eedd42","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a2231227d2c226174223a22706179227d', 1700000000000, '\xbeb9e0d34169d83f7f60985807c97bcd');
INSERT INTO stategraph.checkpoints VALUES (3, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a747275657d2c226174223a22636f756e74227d', 1700000000000, '\x8e970d0ab6a2f8910dc731d92042af23');
INSERT INTO stategraph.checkpoints VALUES (3, 1, 'failed', 'failed', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c226572726f72223a7b2274797065223a2256616c75654572726f72222c226d657373616765223a2269742069732062726f6b656e227d2c227068617365223a226e6f6465222c226d73223a307d', 1700000000000, '\xec83d83fdda4ff9a243ff4d12a0bba8e');
INSERT INTO stategraph.checkpoints VALUES (4, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a66616c73657d2c226174223a22636f756e74227d', 1700000000000, '\x951b9a064747e8477af3d1d1f59d7d6f');
INSERT INTO stategraph.checkpoints VALUES (4, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a2232227d2c226174223a22636f756e74227d', 1700000000000, '\xeb9579f699ff2fa87cf9d420944eb08c');
INSERT INTO stategraph.checkpoints VALUES (4, 2, 'node', 'pending', 1, '', 1, 0, '[{"kind":"approval","path":"","step":2,"node":"pay","digest":"3ec6cb7dd939bb9480a6100dced263b55c3e07251ef1658235bc03ff0f96d2f8","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a2231227d2c226174223a22706179227d', 1700000000000, '\x4711cddd15767abc19fa16f3fcc581a9');
INSERT INTO stategraph.checkpoints VALUES (5, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a66616c73657d2c226174223a22636f756e74227d', 1700000000000, '\x444d19d56bfc38bcaa4e4c8e1c16a898');
INSERT INTO stategraph.checkpoints VALUES (5, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a2232227d2c226174223a22636f756e74227d', 1700000000000, '\x7024ca3535c13389627fadfbeffed1b3');
INSERT INTO stategraph.checkpoints VALUES (5, 2, 'node', 'pending', 1, '', 1, 0, '[{"kind":"approval","path":"","step":2,"node":"pay","digest":"6cc61e9d908648ac2128c3d4d01fc5e0c4422bae961f00945419fcdde5e2aef1","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a2231227d2c226174223a22706179227d', 1700000000000, '\x3a653e28e5d7c095056b9ee43db64e2b');
INSERT INTO stategraph.checkpoints VALUES (6, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a66616c73657d2c226174223a22636f756e74227d', 1700000000000, '\xfc32b0f715b93afd41da967d670f94d4');
INSERT INTO stategraph.checkpoints VALUES (6, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a2232227d2c226174223a22636f756e74227d', 1700000000000, '\x85303d389f0014aa17de1db0f622ee29');
INSERT INTO stategraph.checkpoints VALUES (6, 2, 'node', 'pending', 1, '', 1, 0, '[{"kind":"approval","path":"","step":2,"node":"pay","digest":"4204c63b75c94003c1ca951471e72ce1510ca79392b95f456c880311245dfa94","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a2231227d2c226174223a22706179227d', 1700000000000, '\x04d3323ce9be424079c53022b7572ec8');
INSERT INTO stategraph.checkpoints VALUES (7, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a66616c73657d2c226174223a22636f756e74227d', 1700000000000, '\x8cf2510274e2541acfe833952298f919');
INSERT INTO stategraph.checkpoints VALUES (7, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a2232227d2c226174223a22636f756e74227d', 1700000000000, '\x31bf4b9ee6a6ad0e5c8650d3b4b30359');
INSERT INTO stategraph.checkpoints VALUES (7, 2, 'node', 'pending', 1, '', 1, 0, '[{"kind":"approval","path":"","step":2,"node":"pay","digest":"633000e96f33ae15ea4964d45a8c9a2744e38ed37d9f4ef9d2665ceaa540f360","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a2231227d2c226174223a22706179227d', 1700000000000, '\x1a6409f943ad1e552f5f885a30bf9b66');
INSERT INTO stategraph.checkpoints VALUES (8, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a322c2262726f6b656e223a66616c73657d2c226174223a22636f756e74227d', 1700000000000, '\xe4d59f70fdf8bc4d95cb743283a89f32');
INSERT INTO stategraph.checkpoints VALUES (8, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a2232227d2c226174223a22636f756e74227d', 1700000000000, '\xacb1dabb6eec37f96b5327efb54a6c66');
INSERT INTO stategraph.checkpoints VALUES (8, 2, 'node', 'pending', 1, '', 1, 0, '[{"kind":"approval","path":"","step":2,"node":"pay","digest":"5ee2c2db1c5fe20b4a6f765cbc2bae4be06c431cf843d803827f48dc85f4a594","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a2231227d2c226174223a22706179227d', 1700000000000, '\x30e4a0cbcd8303b246a6ddbb42bcbfb9');
INSERT INTO stategraph.checkpoints VALUES (9, 0, 'start', 'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c226d61785f7374657073223a3130302c22736574223a7b226c656674223a34302c22776569676874223a3530307d2c226174223a22636f756e74227d', 1700000000000, '\x6d9387e89208ff377ebaf474ee70db1c');
INSERT INTO stategraph.checkpoints VALUES (9, 1, 'node', 'running', 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33392c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783430227d2c226174223a22636f756e74227d', 1700000000000, '\x6e24e9c52441a63cbdd72d2f7d73b1ab');
INSERT INTO stategraph.checkpoints VALUES (9, 2, 'node', 'running', 1, '', 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33382c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783339227d2c226174223a22636f756e74227d', 1700000000000, '\x2a85eaf96c2b974bf8a7b87da713f684');
INSERT INTO stategraph.checkpoints VALUES (9, 3, 'node', 'running', 1, '', 2, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33372c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783338227d2c226174223a22636f756e74227d', 1700000000000, '\x3c57169cec2177585794e19c391c619d');
INSERT INTO stategraph.checkpoints VALUES (9, 4, 'node', 'running', 1, '', 3, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33362c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783337227d2c226174223a22636f756e74227d', 1700000000000, '\x11ce1d66156c26b37bc05c0182ff1c52');
INSERT INTO stategraph.checkpoints VALUES (9, 5, 'node', 'running', 1, '', 4, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33352c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783336227d2c226174223a22636f756e74227d', 1700000000000, '\x6f831968b00bf74c9c2aa5d327bcebab');
INSERT INTO stategraph.checkpoints VALUES (9, 6, 'node', 'running', 1, '', 5, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33342c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783335227d2c226174223a22636f756e74227d', 1700000000000, '\xdafddea7796382ad5eed0874ebeb37dc');
INSERT INTO stategraph.checkpoints VALUES (9, 7, 'node', 'running', 1, '', 6, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33332c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783334227d2c226174223a22636f756e74227d', 1700000000000, '\x132d662ec2d80957c41d3af4616b6341');
INSERT INTO stategraph.checkpoints VALUES (9, 8, 'node', 'running', 1, '', 7, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33322c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783333227d2c226174223a22636f756e74227d', 1700000000000, '\x94d62cc387e4590e08332c557548200c');
INSERT INTO stategraph.checkpoints VALUES (9, 9, 'node', 'running', 1, '', 8, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33312c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783332227d2c226174223a22636f756e74227d', 1700000000000, '\x3adf924e8ce53d59f12e1da0dd998e7d');
INSERT INTO stategraph.checkpoints VALUES (9, 10, 'node', 'running', 1, '', 9, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a33302c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783331227d2c226174223a22636f756e74227d', 1700000000000, '\x9276bd0c1fc71c9fd5b8e864b63721ad');
INSERT INTO stategraph.checkpoints VALUES (9, 11, 'node', 'running', 1, '', 10, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32392c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783330227d2c226174223a22636f756e74227d', 1700000000000, '\x995eddaf85b629a68391f96c039b2b56');
INSERT INTO stategraph.checkpoints VALUES (9, 12, 'node', 'running', 1, '', 11, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32382c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783239227d2c226174223a22636f756e74227d', 1700000000000, '\xdda6d972bed3b1deddef1a82da886f0e');
INSERT INTO stategraph.checkpoints VALUES (9, 13, 'node', 'running', 1, '', 12, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32372c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783238227d2c226174223a22636f756e74227d', 1700000000000, '\x629e255770a18f7b7a99f7cca04e992d');
INSERT INTO stategraph.checkpoints VALUES (9, 14, 'node', 'running', 1, '', 13, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32362c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783237227d2c226174223a22636f756e74227d', 1700000000000, '\x3814f46928fc558110340a0cc7c44ba1');
INSERT INTO stategraph.checkpoints VALUES (9, 15, 'node', 'running', 1, '', 14, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32352c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783236227d2c226174223a22636f756e74227d', 1700000000000, '\x431ae579e5130483aa7198330e8a7466');
INSERT INTO stategraph.checkpoints VALUES (9, 16, 'node', 'running', 1, '', 15, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32342c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783235227d2c226174223a22636f756e74227d', 1700000000000, '\x7bdc31a032a494a1e30670bb8f986d3a');
INSERT INTO stategraph.checkpoints VALUES (9, 17, 'node', 'running', 1, '', 16, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32332c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783234227d2c226174223a22636f756e74227d', 1700000000000, '\x0597bdb118a9c4075f1af7cce82dc453');
INSERT INTO stategraph.checkpoints VALUES (9, 18, 'node', 'running', 1, '', 17, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32322c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783233227d2c226174223a22636f756e74227d', 1700000000000, '\xd87ae976238a8a4d2761e283f7169fe6');
INSERT INTO stategraph.checkpoints VALUES (9, 19, 'node', 'running', 1, '', 18, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32312c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783232227d2c226174223a22636f756e74227d', 1700000000000, '\x674db3ae4df0ae1ba6ca07f172a005da');
INSERT INTO stategraph.checkpoints VALUES (9, 20, 'node', 'running', 1, '', 19, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a32302c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783231227d2c226174223a22636f756e74227d', 1700000000000, '\xce26db6954d3103e9f5cd43c5941d69d');
INSERT INTO stategraph.checkpoints VALUES (9, 21, 'node', 'running', 1, '', 20, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31392c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783230227d2c226174223a22636f756e74227d', 1700000000000, '\xb38f258e5e297c7add92c9e4a8c6bb24');
INSERT INTO stategraph.checkpoints VALUES (9, 22, 'node', 'running', 1, '', 21, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31382c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783139227d2c226174223a22636f756e74227d', 1700000000000, '\xc5fa38d1d7e47a73d32feb16dc94b764');
INSERT INTO stategraph.checkpoints VALUES (9, 23, 'node', 'running', 1, '', 22, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31372c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783138227d2c226174223a22636f756e74227d', 1700000000000, '\xe875dc9596d7cc7aa9720632be0bb23e');
INSERT INTO stategraph.checkpoints VALUES (9, 24, 'node', 'running', 1, '', 23, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31362c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783137227d2c226174223a22636f756e74227d', 1700000000000, '\x0dd3cbb4b22868c49102f2cac70ba4c5');
INSERT INTO stategraph.checkpoints VALUES (9, 25, 'node', 'running', 1, '', 24, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31352c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783136227d2c226174223a22636f756e74227d', 1700000000000, '\x0d4dd4e250c0f619833ed364b8cb13bf');
INSERT INTO stategraph.checkpoints VALUES (9, 26, 'node', 'running', 1, '', 25, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31342c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783135227d2c226174223a22636f756e74227d', 1700000000000, '\x675ff1a411540c4216d0be618e2ff85e');
INSERT INTO stategraph.checkpoints VALUES (9, 27, 'node', 'running', 1, '', 26, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31332c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783134227d2c226174223a22636f756e74227d', 1700000000000, '\x0269d77697669254e2de9faa1c479ff6');
INSERT INTO stategraph.checkpoints VALUES (9, 28, 'node', 'running', 1, '', 27, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31322c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783133227d2c226174223a22636f756e74227d', 1700000000000, '\xb17524e524d82646830e9f7fb31d0d21');
INSERT INTO stategraph.checkpoints VALUES (9, 29, 'node', 'running', 1, '', 28, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31312c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783132227d2c226174223a22636f756e74227d', 1700000000000, '\xe4f4209e4e3fd01ae400de731a89e64a');
INSERT INTO stategraph.checkpoints VALUES (9, 30, 'node', 'running', 1, '', 29, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a31302c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783131227d2c226174223a22636f756e74227d', 1700000000000, '\x746ce398590660f05919a06108269b27');
INSERT INTO stategraph.checkpoints VALUES (9, 31, 'node', 'running', 1, '', 30, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a392c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783130227d2c226174223a22636f756e74227d', 1700000000000, '\xc685c61db4c8344e63627953a23d3933');
INSERT INTO stategraph.checkpoints VALUES (9, 32, 'node', 'running', 1, '', 31, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a382c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787839227d2c226174223a22636f756e74227d', 1700000000000, '\x37c99829c5fac7dc2c26a2b6304e607e');
INSERT INTO stategraph.checkpoints VALUES (9, 33, 'node', 'running', 1, '', 32, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a372c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787838227d2c226174223a22636f756e74227d', 1700000000000, '\x3d258abcb0bc46c1ebb9fef13882ff5f');
INSERT INTO stategraph.checkpoints VALUES (9, 34, 'node', 'running', 1, '', 33, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a362c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787837227d2c226174223a22636f756e74227d', 1700000000000, '\x4ad036dcdac0f8ffcaaefefe78901497');
INSERT INTO stategraph.checkpoints VALUES (9, 35, 'node', 'running', 1, '', 34, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a352c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787836227d2c226174223a22636f756e74227d', 1700000000000, '\xbcc0e7a02eb566f243ba516e09e48297');
INSERT INTO stategraph.checkpoints VALUES (9, 36, 'node', 'running', 1, '', 35, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a342c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787835227d2c226174223a22636f756e74227d', 1700000000000, '\xd476a28352ba15956fb6de3bf5a06099');
INSERT INTO stategraph.checkpoints VALUES (9, 37, 'node', 'running', 1, '', 36, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a332c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787834227d2c226174223a22636f756e74227d', 1700000000000, '\xf69048518a5d6fafb1dbdf853e788932');
INSERT INTO stategraph.checkpoints VALUES (9, 38, 'node', 'running', 1, '', 37, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a322c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787833227d2c226174223a22636f756e74227d', 1700000000000, '\x8d96a7813e3a72249b84812b7c326aba');
INSERT INTO stategraph.checkpoints VALUES (9, 39, 'node', 'running', 1, '', 38, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a312c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787832227d2c226174223a22636f756e74227d', 1700000000000, '\x898f14f4c12b1b4cdd3b49b43f29e616');
INSERT INTO stategraph.checkpoints VALUES (9, 40, 'node', 'pending', 1, '', 39, 0, '[{"kind":"approval","path":"","step":40,"node":"pay","digest":"d0a5423d0c4d76f5f090c2764815e46bb3049339f7d2d9f5f74221ae4c5645dc","final":true}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636f756e74222c22736574223a7b226c656674223a302c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787831227d2c226174223a22706179227d', 1700000000000, '\x7b376ce9d8c8e0bb7167f37d29174075');
INSERT INTO stategraph.checkpoints VALUES (1, 3, 'decision', 'ready', NULL, NULL, NULL, NULL, NULL, '2.0', 'approved', NULL, NULL, 'ann', '31f7c4dddbb84daf8ac261f5e36847da', '\x7b226e6f6465223a22706179222c226b696e64223a22617070726f76616c222c2273686f776e223a2264356466373466663234373262366637303039333863393761656230356364633437313764653934393832316339313937326361393936643736393639366132222c226e6f7465223a2266696e65227d', 1700000000000, '\x5681c93c2a2d69f940b9228480752c5a');
INSERT INTO stategraph.checkpoints VALUES (4, 3, 'decision', 'ready', NULL, NULL, NULL, NULL, NULL, '2.0', 'approved', NULL, NULL, 'ann', '286cf2d0c9bf4556bd9881619784c906', '\x7b226e6f6465223a22706179222c226b696e64223a22617070726f76616c222c2273686f776e223a2233656336636237646439333962623934383061363130306463656432363362353563336530373235316566313635383233356263303366663066393664326638222c226e6f7465223a2266696e65227d', 1700000000000, '\x045c96c9facf822122ead3dfb58b7765');
INSERT INTO stategraph.checkpoints VALUES (7, 3, 'decision', 'ready', NULL, NULL, NULL, NULL, NULL, '2.0', 'approved', NULL, NULL, 'ann', '2e306bdf112a48989ce574bd7a6083da', '\x7b226e6f6465223a22706179222c226b696e64223a22617070726f76616c222c2273686f776e223a2236333330303065393666333361653135656134393634643435613863396132373434653338656433376439663465663964323636356365616135343066333630222c226e6f7465223a2266696e65227d', 1700000000000, '\x4be2225463e53849f3341520b0f51c13');
INSERT INTO stategraph.checkpoints VALUES (8, 3, 'decision', 'ready', NULL, NULL, NULL, NULL, NULL, '2.0', 'approved', NULL, NULL, 'ann', 'ca51bdb95b59421a8d6a78dfcb6c9157', '\x7b226e6f6465223a22706179222c226b696e64223a22617070726f76616c222c2273686f776e223a2235656532633264623163356665323062346136663736356362633262616534626530366334333163663834336438303338323766343864633835663461353934222c226e6f7465223a2266696e65227d', 1700000000000, '\x5f92597719378380ccdef7856e70c3ac');
INSERT INTO stategraph.checkpoints VALUES (4, 4, 'node', 'running', 2, '', 2, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22706179222c22736574223a7b2270616964223a377d2c226174223a22636c6f7365222c226d73223a317d', 1700000000000, '\xe44a6548c424498ddc17a481c68b97bc');
INSERT INTO stategraph.checkpoints VALUES (4, 5, 'node', 'completed', 2, '', 3, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22636c6f7365222c22736574223a7b22636c6f736564223a747275657d2c226174223a22454e44227d', 1700000000000, '\xcc48c65186d43694b66b90d04fd88e35');
INSERT INTO stategraph.checkpoints VALUES (5, 3, 'decision', 'rejected', NULL, NULL, NULL, NULL, NULL, '2.0', 'rejected', NULL, NULL, 'ann', 'dc3a4fa916864822b102f4dfb78e4d93', '\x7b226e6f6465223a22706179222c226b696e64223a22617070726f76616c222c2273686f776e223a2236636336316539643930383634386163323132386333643464303166633565306334343232626165393631663030393435343139666364646535653261656631227d', 1700000000000, '\xa8f2570ba331d9eb8c618c62b95ad10e');
INSERT INTO stategraph.checkpoints VALUES (6, 3, 'cancel', 'cancelled', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ops', '03b27ed1f92246088f69ca672e164f8e', '\x7b7d', 1700000000000, '\x5bf92998edde5a9a87b33cc09c7e616b');
INSERT INTO stategraph.checkpoints VALUES (7, 4, 'asked', 'pending', 3, '', 2, 0, '[{"kind":"in_doubt","path":"","step":2,"node":"pay","digest":"3b19810e3120792d016c0788f53941a03bdb52964c3c21adb2915acf25f0f767","effect":"8b214ba0de8e80f48dc056f202dda432d55a9b3e03754e7f67e0583ffc85b1cd"}]', NULL, NULL, NULL, NULL, NULL, NULL, '\x7b226e6f6465223a22706179227d', 1700000000000, '\x71a9da65e4054e6449ed5894a4a953e9');
INSERT INTO stategraph.effects VALUES ('96f630106f510b0df1d8a99f117df29e00afa06fc33fd60ee45b08226cdf473a', 4, '', 2, 'ask', '2dd306092286463690e04823b9b5064f', '\x7b22726573756c74223a377d');
INSERT INTO stategraph.effects VALUES ('8b214ba0de8e80f48dc056f202dda432d55a9b3e03754e7f67e0583ffc85b1cd', 7, '', 2, 'ask', 'in doubt', NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (2, 'pending', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'pending', NULL, 2, 1, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (9, 'long', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'pending', NULL, 40, 1, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (3, 'failed', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'failed', NULL, 1, 1, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (1, 'ready', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'ready', NULL, 3, 1, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (4, 'completed', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'completed', NULL, 5, 2, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (5, 'rejected', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'rejected', 'rejected', 3, 1, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (6, 'cancelled', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'cancelled', 'cancelled', 3, 1, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (7, 'doubt', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'pending', NULL, 4, 3, NULL, NULL);
INSERT INTO stategraph.runs OVERRIDING SYSTEM VALUE VALUES (8, 'abandoned', 'golden', '92fe8d931d93c6be55bca329182750f0', NULL, 'root', 'running', NULL, 3, 2, 'a driver that dies', 1700000030000);
INSERT INTO stategraph.snapshots VALUES (9, 30, '\x7b226772617068223a22676f6c64656e222c2276657273696f6e223a2231222c2266696e6765727072696e74223a223932666538643933316439336336626535356263613332393138323735306630222c22706172656e74223a6e756c6c2c22737461747573223a2272756e6e696e67222c227374617465223a7b226c656674223a31302c22776569676874223a3530302c2262616c6c617374223a227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878783131227d2c22736571223a33302c22706f736974696f6e73223a5b7b2270617468223a22222c226e6f6465223a22636f756e74222c227068617365223a227265616479222c2273746570223a33302c22617474656d7074223a302c226661696c75726573223a302c22626f756e64617279223a6e756c6c2c22617070726f766564223a6e756c6c2c22746172676574223a6e756c6c2c22726573756d6573223a227265616479222c226572726f72223a6e756c6c7d5d2c22626f756e646172696573223a5b5d2c227374657073223a33302c226d61785f7374657073223a3130302c227573616765223a7b226163746976655f6d73223a307d2c226572726f72223a6e756c6c2c22656e64696e67223a6e756c6c2c227475726e65645f646f776e223a6e756c6c2c2265706f6368223a317d', '\xecf0ad66f5df889830cf1c28a117385e');
INSERT INTO stategraph.version VALUES (1);
SELECT pg_catalog.setval('stategraph.runs_run_seq', 9, true);
ALTER TABLE ONLY stategraph.boundaries
    ADD CONSTRAINT boundaries_pkey PRIMARY KEY (run, boundary);
ALTER TABLE ONLY stategraph.effects
    ADD CONSTRAINT effects_pkey PRIMARY KEY (key);
ALTER TABLE ONLY stategraph.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run);
ALTER TABLE ONLY stategraph.runs
    ADD CONSTRAINT runs_run_id_key UNIQUE (run_id);
ALTER TABLE ONLY stategraph.snapshots
    ADD CONSTRAINT snapshots_pkey PRIMARY KEY (run);
CREATE INDEX boundaries_due ON stategraph.boundaries USING btree (expires_at) WHERE ((state = 'open'::text) AND (expires_at IS NOT NULL));
CREATE INDEX boundaries_open ON stategraph.boundaries USING btree (run) WHERE (state = 'open'::text);
CREATE UNIQUE INDEX checkpoints_act ON stategraph.checkpoints USING btree (run, act) WHERE (act IS NOT NULL);
CREATE UNIQUE INDEX checkpoints_done ON stategraph.checkpoints USING btree (run, path, step) WHERE (((kind)::text = 'node'::text) OR ((kind)::text = 'route'::text) OR ((kind)::text = 'join'::text));
CREATE UNIQUE INDEX checkpoints_seq ON stategraph.checkpoints USING btree (run, seq);
CREATE UNIQUE INDEX checkpoints_try ON stategraph.checkpoints USING btree (run, path, step, attempt) WHERE (((kind)::text = 'failed'::text) OR ((kind)::text = 'asked'::text));
CREATE UNIQUE INDEX checkpoints_vote ON stategraph.checkpoints USING btree (run, boundary, actor) WHERE (boundary IS NOT NULL);
CREATE INDEX effects_run ON stategraph.effects USING btree (run);
CREATE INDEX runs_work ON stategraph.runs USING btree (status) WHERE ((status)::text = ANY (ARRAY['ready'::text, 'running'::text]));
