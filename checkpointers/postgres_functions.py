"""The verbs as functions of PostgreSQL: each is one round trip and one transaction.

A function first locks the run's row, and every statement after that sees what was committed before the lock; a single
statement would not, as it reads as of its own start. The statements are those of `checkpointers.verbs`.
"""

from __future__ import annotations

import re

from checkpointers import verbs

__all__ = ["SCHEMA", "bound", "functions"]

#: Where everything lies, whatever the connection's search path: behind a pooler that is not ours to set.
SCHEMA = "stategraph"

#: The type of each argument, by its name.
_TYPES = {
    name: kind
    for kind, names in {
        "text": "act actor approvers boundary creator decision digest effect fingerprint graph key kind name node opens owner"
        " parent path policy roles run state status token",
        "bigint": "after attempt before epoch expires_at final four_eyes lease many needed now nth rid seen seq step until",
        "bytea": "body fold fold_digest outcome seal",
        "text[]": "effects kinds opens_all owners paths runs statuses",
        "bigint[]": "attempts epochs seens steps",
        "bytea[]": "bodies seals",
    }.items()
    for name in names.split()
}

# -- from the verbs' text to PostgreSQL's

_ARGUMENT = re.compile(r"(?<![:'\w]):(\w+)")
_PLACE = re.compile(r"\?(\d+)")
_TABLE = re.compile(r"\b(FROM|JOIN|INTO|UPDATE) (runs|checkpoints|snapshots|boundaries|effects)\b")
_FUNCTION = re.compile(r"\bsg_\w+\(")


def _qualified(text: str) -> str:
    """The statement, with the schema named wherever something of ours is."""
    text = _TABLE.sub(rf"\1 {SCHEMA}.\2", text.strip())
    return _FUNCTION.sub(rf"{SCHEMA}.\g<0>", text)


def bound(text: str, arguments: str, **types: str) -> str:
    """A statement for the driver, which takes these arguments in this order."""
    names, kinds = arguments.split(), {**_TYPES, **types}
    return _ARGUMENT.sub(lambda name: f"${names.index(name[1]) + 1}::{kinds[name[1]]}", _qualified(text))


def _inside(text: str, *places: str, into: str = "", **named: str) -> str:
    """A statement inside a function: an argument is a variable, or what stands for it."""
    text = _PLACE.sub(lambda place: places[int(place[1]) - 1], text)
    text = _ARGUMENT.sub(lambda name: named.get(name[1], f"_{name[1]}"), _qualified(text))
    return f"{text} INTO {into};" if into else f"{text};"


# -- what the functions are made of. `_seq` and the like are what was given, `_new_seq` what is answered; null: refused.

#: A role or a database may have switched it off: what is acknowledged has to survive a crash of the server.
_DURABLE = """IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;"""
_LOCK = f"PERFORM 1 FROM {SCHEMA}.runs WHERE run_id = _run FOR NO KEY UPDATE;"
#: After the lock: who has waited for it decides by the time at which he got it.
_NOW = "_now := coalesce(_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);"
#: The caller has sealed what he gives, the time is the server's: it joins here.
_SEAL = "_seal := _seal || convert_to(_now || ':', 'UTF8');"
_REFUSED = "IF NOT FOUND THEN RETURN; END IF;"
_WRITTEN = "OUT _new_seq bigint, OUT _new_status text, OUT _at_ms bigint"
_NEW = {"seq": "_new_seq", "status": "_new_status"}

_HEAD_RUNS, _HEAD_RESTS = (
    _inside(text, "_rid", "_new_seq", "_new_status") for text in (verbs.HEAD_RUNS, verbs.HEAD_RESTS)
)
_OPEN = _inside(
    verbs.OPEN_BOUNDARY,
    path="(_o->>'path')", step="(_o->>'step')::bigint", node="(_o->>'node')", kind="(_o->>'kind')",
    digest="(_o->>'digest')", final="coalesce((_o->>'final')::boolean, false)::integer",
    needed="coalesce((_o->>'needed')::bigint, 1)", approvers="(_o->>'approvers')",
    four_eyes="coalesce((_o->>'four_eyes')::boolean, false)::integer", effect="(_o->>'effect')", name="(_o->>'name')",
    key="(_o->>'key')", expires_at="(_o->>'expires_at')::bigint",
)  # fmt: skip


def _free(run: str, path: str, step: str, attempt: str) -> str:
    """No row completes the visit, and none has used up the attempt: what `verbs.APPEND` asks for too."""
    return f"""NOT EXISTS (SELECT 1 FROM {SCHEMA}.checkpoints c WHERE c.run = {run} AND c.path = {path} AND c.step = {step}
                      AND (c.kind = 'node' OR c.kind = 'route' OR c.kind = 'join'))
    AND NOT EXISTS (SELECT 1 FROM {SCHEMA}.checkpoints c WHERE c.run = {run} AND c.path = {path} AND c.step = {step}
                      AND c.attempt = {attempt} AND (c.kind = 'failed' OR c.kind = 'asked'))"""


#: A plain row that completes a visit. If the head is where the driver has seen it, one statement is fence, lock and move in
#: one: the head moves with every row, so one that stands still means that nothing was written since the statement began.
_STEP = f"""IF _status = 'running' THEN
    UPDATE {SCHEMA}.runs r SET seq = r.seq + 1
    WHERE r.run_id = _run AND r.epoch = _epoch AND r.owner = _owner AND r.status = 'running' AND r.seq = _seen
      AND {_free("r.run", "_path", "_step", "_attempt")}
    RETURNING r.run, r.seq INTO _rid, _new_seq;
    IF FOUND THEN
      {_NOW}
      INSERT INTO {SCHEMA}.checkpoints (run, seq, kind, status, epoch, path, step, attempt, body, at_ms, digest)
      VALUES (_rid, _new_seq, _kind, 'running', _epoch, _path, _step, _attempt, _body, _now,
              {SCHEMA}.sg_digest(_seal || convert_to(_now || ':', 'UTF8'), _new_seq, 'running'));
      RETURN _new_seq || ' ' || _now;
    END IF;
  END IF;
  SELECT a._new_seq || ' ' || a._at_ms INTO _told
  FROM {SCHEMA}.sg_append(_run, _epoch, _owner, _seen, _kind, _path, _step, _attempt, _status, NULL, NULL, _body, _seal,
                         _now) a;
  RETURN _told;"""
#: The same for many runs, one row each; whoever takes many locks takes them in this order.
_STEPS = f"""PERFORM 1 FROM (SELECT 1 FROM {SCHEMA}.runs r WHERE r.run_id = ANY (_runs)
                     ORDER BY r.run_id FOR NO KEY UPDATE OF r) locked;
  {_NOW}
  RETURN QUERY
  WITH n AS MATERIALIZED (
    SELECT g.nth, r.run, r.seq + 1 AS seq, CASE WHEN r.seq = g.seen OR g.status = 'completed' THEN g.status ELSE 'running' END AS status,
           g.epoch, g.kind, g.path, g.step, g.attempt, g.body, g.seal || convert_to(_now || ':', 'UTF8') AS seal
    FROM unnest(_runs, _epochs, _owners, _seens, _kinds, _paths, _steps, _attempts, _statuses, _bodies, _seals) WITH ORDINALITY
         g (run_id, epoch, owner, seen, kind, path, step, attempt, status, body, seal, nth)
    JOIN {SCHEMA}.runs r ON r.run_id = g.run_id AND r.epoch = g.epoch AND r.owner = g.owner AND r.status = 'running'
  ), written AS (
    INSERT INTO {SCHEMA}.checkpoints (run, seq, kind, status, epoch, path, step, attempt, body, at_ms, digest)
    SELECT n.run, n.seq, n.kind, n.status, n.epoch, n.path, n.step, n.attempt, n.body, _now,
           {SCHEMA}.sg_digest(n.seal, n.seq, n.status)
    FROM n
    WHERE {_free("n.run", "n.path", "n.step", "n.attempt")}
    RETURNING run, seq, status
  ), moved AS (
    UPDATE {SCHEMA}.runs r
    SET seq = w.seq, status = w.status, owner = CASE WHEN w.status = 'running' THEN r.owner END,
        lease_until = CASE WHEN w.status = 'running' THEN r.lease_until END
    FROM written w WHERE r.run = w.run AND r.seq = w.seq - 1
    RETURNING r.run
  )
  SELECT n.nth, n.seq, _now FROM n JOIN moved m ON m.run = n.run;"""
#: A driver's rows of any kind, one after the other; what follows a new row can have none yet.
_APPEND_ALL = f"""FOR _i IN 1 .. cardinality(_kinds) LOOP
    SELECT * INTO _new_seq, _new_status, _at_ms FROM {SCHEMA}.sg_append(
      _run, _epoch, _owner, _seen + _i - 1, _kinds[_i], _paths[_i], _steps[_i], _attempts[_i], _statuses[_i], _opens_all[_i],
      _effects[_i], _bodies[_i], _seals[_i], _now);
    IF _new_seq IS NULL THEN
      IF _i = 1 THEN RETURN; END IF;
      RAISE unique_violation USING MESSAGE = 'a visit that follows a new one has its row already';
    END IF;
    _now := _at_ms;
  END LOOP;
  IF _fold IS NOT NULL THEN
    SELECT run INTO _rid FROM {SCHEMA}.runs WHERE run_id = _run;
    {_inside(verbs.KEEP_SNAPSHOT, "_rid", "_seen", "_fold", "_fold_digest")}
  END IF;"""


def _plain(name: str, given: str, returns: str, *body: str, variables: str = "", settings: str = "") -> str:
    declared, lines = f"DECLARE {variables}\n" if variables else "", "\n  ".join(filter(None, body))
    return (
        f"CREATE FUNCTION {SCHEMA}.sg_{name}({given}) {returns} LANGUAGE plpgsql {settings} AS $body$\n"
        f"#variable_conflict use_column\n{declared}BEGIN\n  {lines}\nEND $body$"
    )


def _verb(name: str, arguments: str, answer: str, *body: str, variables: str = "_rid bigint;") -> str:
    """A verb's function. It looks up by index, row by row: a plan that is right for a small table outlives that."""
    given, returns = ", ".join(f"_{argument} {_TYPES[argument]}" for argument in arguments.split()), f"RETURNS {answer}"
    if answer.startswith("OUT"):
        given, returns = f"{given}, {answer}", ""
    settings = "SET enable_seqscan TO off SET lock_timeout TO '5s'"
    if name == "steps":
        settings += " SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_bitmapscan TO off"
    return _plain(name, given, returns, _DURABLE, *body, variables=variables, settings=settings)


def _row(statement: str, *after: str, **named: str) -> list[str]:
    """Insert the row if its predicate holds, then what follows from it, the head's move last."""
    opens = f"IF _opens IS NOT NULL THEN PERFORM {SCHEMA}.sg_open(_rid, _new_seq, _opens); END IF;"
    return [
        _inside(statement, into="_rid, _new_seq, _new_status", **named),
        _REFUSED,
        opens if ":opens" in statement else "",
        *(_inside(follow, **_NEW, **named) for follow in after),
        f"PERFORM {SCHEMA}.sg_move(_rid, _new_seq, _new_status);",
        "_at_ms := _now;",
    ]


def _act(name: str, arguments: str, statement: str, *after: str, **named: str) -> str:
    """Somebody's row, or a driver's without a visit."""
    row = _row(statement, *after, **named)
    return _verb(name, f"run {arguments} body seal now", _WRITTEN, _LOCK, _NOW, _SEAL, *row)


# -- the functions


def functions() -> list[str]:
    """Every function, what others call first."""
    return [*_parts(), *_leases(), *_appends(), *_acts(), *_effects(), *_others()]


def _parts() -> list[str]:
    return [
        f"CREATE FUNCTION {SCHEMA}.sg_digest(_seal bytea, _seq bigint, _status text) RETURNS bytea LANGUAGE sql IMMUTABLE"
        " AS $$ SELECT substr(sha256(_seal || convert_to(_seq || ':' || _status, 'UTF8')), 1, 16) $$",
        f"CREATE FUNCTION {SCHEMA}.sg_may(_approvers text, _actor text, _roles text) RETURNS integer LANGUAGE sql IMMUTABLE"
        " AS $$ SELECT count(*)::integer FROM (SELECT 1 FROM json_array_elements_text(_approvers::json) a WHERE a = _actor"
        " OR a IN (SELECT * FROM json_array_elements_text(_roles::json)) LIMIT 1) found $$",
        _plain(
            "open", "_rid bigint, _seq bigint, _opens text", "RETURNS void",
            "FOR _o, _nth IN SELECT value, ordinality - 1 FROM json_array_elements(_opens::json) WITH ORDINALITY LOOP",
            f"PERFORM {SCHEMA}.sg_may(_o->>'approvers', '', '[]');",  # names that nobody could compare are refused now
            _OPEN,
            "END LOOP;",
            variables="_o json; _nth bigint;",
        ),
        _plain(
            "move", "_rid bigint, _new_seq bigint, _new_status text", "RETURNS void",
            "IF _new_status IN ('rejected', 'cancelled')"
            f" AND NOT EXISTS (SELECT 1 FROM {SCHEMA}.runs WHERE run = _rid AND ending = _new_status) THEN",
            "  RAISE check_violation USING MESSAGE = format('nobody has asked the run to be %s', _new_status);",
            "END IF;",
            f"IF _new_status = 'running' THEN {_HEAD_RUNS} ELSE {_HEAD_RESTS} END IF;",
            "IF NOT FOUND THEN RAISE EXCEPTION 'the head did not follow its log'; END IF;",
        ),
    ]  # fmt: skip


def _leases() -> list[str]:
    return [
        _verb(
            "create", "run graph fingerprint parent creator owner lease status opens body seal now", _WRITTEN,
            _NOW, _SEAL, _inside(verbs.CREATE_RUN), *_row(verbs.CREATE_START),
        ),
        _verb(
            "claim", "run owner lease now", "OUT _new_epoch bigint, OUT _new_seq bigint, OUT _ending text, OUT _at_ms bigint",
            _LOCK, _NOW, _inside(verbs.CLAIM, into="_new_epoch, _new_seq, _ending"), "_at_ms := _now;",
        ),
        _verb(
            "renew", "run epoch owner lease now", "OUT _new_seq bigint, OUT _ending text, OUT _at_ms bigint",
            _LOCK, _NOW, _inside(verbs.RENEW, into="_new_seq, _ending"), "_at_ms := _now;",
        ),
        _verb("release", "run epoch owner", "OUT _new_seq bigint", _LOCK, _inside(verbs.RELEASE, into="_new_seq")),
    ]  # fmt: skip


def _appends() -> list[str]:
    row = "path step attempt status"
    rows = "kinds paths steps attempts statuses"
    return [
        _verb(
            "step", f"run epoch owner seen kind {row} body seal now", "text", _STEP,
            variables="_rid bigint; _new_seq bigint; _told text;",
        ),
        _verb(
            "steps", f"runs epochs owners seens {rows} bodies seals now",
            "TABLE (_nth bigint, _new_seq bigint, _at_ms bigint)", _STEPS, variables="",
        ),
        _verb(
            "append", f"run epoch owner seen kind {row} opens effect body seal now", _WRITTEN,
            _LOCK, _NOW, _SEAL, *_row(verbs.APPEND, *verbs.AFTER_ASKED),
        ),
        _verb(
            "append_all", f"run epoch owner seen {rows} opens_all effects bodies seals fold fold_digest now", _WRITTEN,
            _APPEND_ALL,
        ),
        _act("settle", "epoch owner seen status", verbs.SETTLE),
    ]  # fmt: skip


def _acts() -> list[str]:
    return [
        _act("decide", "boundary digest decision actor act roles", verbs.DECIDE, *verbs.AFTER_DECISION),
        _act("expire", "boundary act", verbs.EXPIRE, *verbs.AFTER_DECISION, decision="'expired'"),
        _act("signal", "name key actor act", verbs.SIGNAL, *verbs.AFTER_SIGNAL),
        _act("cancel", "actor act", verbs.CANCEL, *verbs.AFTER_CANCEL),
        _act("retry", "actor act", verbs.RETRY),
    ]


def _effects() -> list[str]:
    return [
        _verb(
            "effect_begin", "run epoch owner key path step policy token",
            "OUT _known_token text, OUT _known_outcome bytea, OUT _handed_on boolean",
            _LOCK,
            f"SELECT token INTO _held FROM {SCHEMA}.effects WHERE key = _key;",
            _inside(verbs.EFFECT_BEGIN),
            _inside(verbs.EFFECT_KNOWN, into="_known_token, _known_outcome"),
            "_handed_on := _held IS NOT NULL AND _held <> _known_token;",
            variables="_held text;",
        ),
        _verb(
            "effect_end", "run key token outcome", "OUT _known_outcome bytea",
            _LOCK, _inside(verbs.EFFECT_END, into="_known_outcome"),
        ),
    ]  # fmt: skip


def _others() -> list[str]:
    """What a worker may do now, and removing what has ended."""
    forget = "\n  ".join(_inside(statement) for statement in verbs.FORGET)
    return [
        _verb(
            "due", "many now", "TABLE (_run text, _boundary text, _at_ms bigint)",
            _NOW,
            f"RETURN QUERY SELECT d.run_id::text, NULL, _now FROM ({_inside(verbs.DUE_RUNS).removesuffix(';')}) d (run_id);",
            f"RETURN QUERY SELECT NULL, d.id, _now FROM ({_inside(verbs.DUE_BOUNDARIES).removesuffix(';')}) d (id);",
            variables="",
        ),
        _verb(
            "delete", "run", "OUT _removed bigint",
            "_removed := 0;",
            _LOCK,
            f"FOR _rid IN {_inside(verbs.ENDED_RUN).removesuffix(';')} LOOP {forget} _removed := _removed + 1; END LOOP;",
        ),
        _verb(
            "prune", "before", "OUT _removed bigint",
            "_removed := 0;",
            f"FOR _rid IN {_inside(verbs.ENDED_RUNS).removesuffix(';')} LOOP",
            f"  PERFORM 1 FROM {SCHEMA}.runs WHERE run = _rid FOR UPDATE SKIP LOCKED;",
            f"  IF FOUND THEN {forget} _removed := _removed + 1; END IF;",
            "END LOOP;",
        ),
    ]  # fmt: skip
