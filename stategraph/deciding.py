"""Deciding a boundary: a person's act, recorded once, in any process, without the graph."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, get_args

from stategraph.checkpoint import Boundary, Checkpointer, Decision, Verdict
from stategraph.encoding import encode
from stategraph.errors import DecisionRefused, UnknownRun, did_you_mean, moment, shortened
from stategraph.patch import Patch, dump

__all__ = ["IRREVERSIBLE", "NO_ANSWER", "check_texts", "check_verdict", "decide", "operating_user"]

_ALL = 1 << 31
#: The name of a boundary about an irreversible node: its answer is the node's delta.
IRREVERSIBLE = "irreversible"


def operating_user() -> str:
    """The operating system's user: who acts, unless `by=` says otherwise."""
    import getpass  # on first use: it brings the terminal's modules

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user database
        return "unknown"


def check_verdict(run_id: str, decision: object) -> Verdict:
    """The decision's word, or `DecisionRefused`."""
    for verdict in get_args(Verdict):
        if type(decision) is str and decision == verdict:  # nothing else: an object may claim to equal anything
            return verdict  # type: ignore[no-any-return]
    hint = did_you_mean(decision, get_args(Verdict)) if isinstance(decision, str) else ""
    raise DecisionRefused(run_id, None, f"decision must be 'approved' or 'rejected', not {decision!r}{hint}")


class _NoAnswer:
    """That no answer was given, which is not the answer None."""

    def __repr__(self) -> str:
        return "NO_ANSWER"


NO_ANSWER: Any = _NoAnswer()


def check_texts(run_id: str, **texts: object) -> None:
    """Raise `DecisionRefused` for who, why or which id that is no text a store can keep."""
    for name, text in texts.items():
        if text is None:
            continue
        if type(text) is not str:
            raise DecisionRefused(run_id, None, f"{name}={shortened(text, 60)} is a {type(text).__name__}; give a str")
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise DecisionRefused(run_id, None, f"{name}={shortened(text, 60)} has a surrogate, which is no character")


async def decide(
    checkpointer: Checkpointer,
    run_id: str,
    decision: str,
    *,
    boundary: str | None = None,
    by: str | None = None,
    note: str | None = None,
    edit: Patch | None = None,
    answer: Any = NO_ANSWER,
    decision_id: str | None = None,
    digest: str | None = None,
    roles: tuple[str, ...] = (),
) -> Decision:
    """Record one decision of one open boundary; nothing runs.

    Without `boundary` exactly one must be open. `digest` is that of what the person was shown; without it the decision
    is about what is stored now. The same `decision_id` again is answered as the first time. `answer` is the outcome of
    an effect in doubt. Raises `UnknownRun` and `DecisionRefused`, which says who decided what and when.
    """
    verdict = check_verdict(run_id, decision)
    check_texts(run_id, boundary=boundary, by=by, note=note, decision_id=decision_id, digest=digest)
    actor = operating_user() if by is None else by
    act = uuid.uuid4().hex if decision_id is None else decision_id
    if decision_id is not None:  # a fresh one has no answer yet
        first = await _first_answer(checkpointer, run_id, act, boundary, verdict)
        if first is not None:
            return first
    shown = await _boundary(checkpointer, run_id, boundary)
    refuse_closed(shown)
    if verdict == "retry" and shown.kind != "in_doubt":
        raise DecisionRefused(
            run_id, shown.id, "decision must be 'approved' or 'rejected'; only an effect in doubt is retried"
        )
    if edit and verdict != "approved":
        raise DecisionRefused(run_id, shown.id, "only an approval can change the state; leave edit= out")
    if answer is not NO_ANSWER and shown.kind == "approval":
        raise DecisionRefused(run_id, shown.id, "an approval takes no answer; change the state with edit=")
    if shown.kind == "in_doubt" and verdict == "approved":
        _check_answer(shown, answer)
    named = shown.digest if digest is None else digest
    body: dict[str, Any] = {"node": shown.node, "kind": shown.kind, "shown": named}  # checked again by the fold
    if note is not None:
        body["note"] = note
    if edit:
        body["edit"] = dump(edit)
    if answer is not NO_ANSWER:
        body["result"] = answer
    if roles:
        body["roles"] = list(roles)  # the fold checks again who may decide
    short = shown.id.rpartition(":")[2]
    written = await checkpointer.decide(
        run_id,
        short,
        digest=named,
        decision=verdict,
        actor=actor,
        act=act,
        body=encode(body),
        roles=roles,
    )
    if written is None:
        first = await _first_answer(
            checkpointer, run_id, act, boundary, verdict
        )  # a repeated click, at the same moment
        if first is not None:
            return first
        raise await _refusal(checkpointer, run_id, shown, actor, act, named, roles)
    return Decision(verdict, actor, written.at_ms, act, note)


async def _first_answer(
    checkpointer: Checkpointer, run_id: str, act: str, boundary: str | None, verdict: str
) -> Decision | None:
    """What was recorded under this decision id; another decision under the same id is refused."""
    row = await checkpointer.find_act(run_id, act)
    if row is None:
        return None
    recorded = Decision(row.decision or row.kind, row.actor or "", row.at_ms, act, row.content.get("note"))
    about = boundary in (None, row.boundary, f"{run_id}:{row.boundary}")
    if row.kind == "decision" and row.decision == verdict and about:
        return recorded
    raise DecisionRefused(
        run_id, boundary, f"decision id {act!r} was used for another act ({recorded.decision} by {recorded.by})",
        decision=recorded.decision, by=recorded.by, at_ms=recorded.at_ms,
    )  # fmt: skip


async def _boundary(checkpointer: Checkpointer, run_id: str, boundary: str | None) -> Boundary:
    """The boundary that is meant; without a name the only open one."""
    waiting = [b for b in await checkpointer.boundaries(run_id, state="open") if b.kind != "timer"]
    if boundary is None and len(waiting) == 1:
        return waiting[0]
    wanted = boundary if boundary is None or ":" in boundary else f"{run_id}:{boundary}"
    for candidate in waiting:
        if candidate.id == wanted:
            return candidate
    known = await checkpointer.boundaries(run_id, limit=_ALL)  # only to say what has become of it
    for candidate in known:
        if candidate.id == wanted:
            return candidate
    head = await checkpointer.head(run_id)
    if head is None:
        raise UnknownRun(run_id)
    names = ", ".join(f"{b.id} ({b.node})" for b in waiting) or "none"
    if boundary is not None:
        raise DecisionRefused(run_id, boundary, f"run {run_id!r} has no such boundary; open: {names}")
    if waiting:
        raise DecisionRefused(run_id, None, f"{len(waiting)} boundaries are open; name one: {names}")
    closed = [b for b in known if b.decided is not None and b.kind != "timer"]
    if closed:
        refuse_closed(closed[-1])
    raise DecisionRefused(run_id, None, f"no boundary is open; the run is {head.status}")


def _check_answer(shown: Boundary, answer: Any) -> None:
    """An effect in doubt that did happen had a result: without it the run would go on with nothing."""
    if answer is NO_ANSWER:
        raise DecisionRefused(
            shown.run_id,
            shown.id,
            "the effect is in doubt: approve it with answer=<what it gave> if it happened (None if that is nothing), "
            "decide 'retry' to do it again, or reject it",
        )
    if shown.name == IRREVERSIBLE and not isinstance(answer, Mapping):
        raise DecisionRefused(
            shown.run_id,
            shown.id,
            f"answer={shortened(answer, 60)}: {shown.node!r} gives a mapping of the keys it changes",
        )


def refuse_closed(boundary: Boundary) -> None:
    """Raise for a boundary that was decided: by whom, what and when."""
    if boundary.state == "open":
        return
    decided = boundary.decided
    reason = "it was withdrawn when the run ended" if boundary.state == "withdrawn" else f"already {boundary.state}"
    if decided is not None:
        reason += f" by {decided.by} at {moment(decided.at_ms)}"
    raise DecisionRefused(
        boundary.run_id, boundary.id, reason,
        decision=decided.decision if decided and boundary.state != "withdrawn" else boundary.state,
        by=decided.by if decided else None,
        at_ms=decided.at_ms if decided else None,
    )  # fmt: skip


async def _refusal(
    checkpointer: Checkpointer, run_id: str, shown: Boundary, actor: str, act: str, digest: str, roles: tuple[str, ...]
) -> DecisionRefused:
    """Why the store refused: what it says now."""
    now = await _boundary(checkpointer, run_id, shown.id)
    try:
        refuse_closed(now)
    except DecisionRefused as refused:
        return refused
    if now.kind in ("timer", "signal"):
        reason = f"a {now.kind} is not decided by a person"
    elif now.digest != digest:
        reason = "what was shown is not what is stored (stale page); look again, then decide"
    elif now.expires_at is not None and now.expires_at <= checkpointer.clock.now():
        reason = f"it expired at {moment(now.expires_at)}"
    elif not actor or actor.startswith(":") or not act or act.startswith(":"):
        reason = f"by={actor!r} and decision_id={act!r} must not be empty or begin with ':'"
    elif now.approvers is not None and not {actor, *roles} & set(now.approvers):
        reason = f"{actor!r} may not decide it; approvers: {', '.join(now.approvers)}"
    elif now.four_eyes:
        reason = f"{actor!r} started the run, and another person must decide"
    else:
        reason = f"{actor!r} has voted already"
    return DecisionRefused(run_id, now.id, reason)
