"""May this app be closed?  The question of leases.may_close and of the auto-quit, and the close check
behind it.

    look(app)   a verdict at once where the leases already say it; else a close check: every holder whose lease
                has expired is asked in parallel, and the verdict comes when all have answered or the time
                is over
    review      follows from every decision that touched leases or asks: a check whose app is protected again
                answers its askers at once (the others asked may still reply), one without open asks ends

A check allows nothing by itself: when it ends, `standing` is asked again, and only what it calls free is
free.
"""

from __future__ import annotations

import attrs

from handlers.events import Call, CallRef, Closed, Reply
from handlers.lease import quits
from handlers.lease.apps import base_key
from handlers.lease.asks import ask, open_ask
from handlers.lease.book import find, move
from handlers.lease.listing import holders_of
from handlers.lease.rows import (
    ASKS,
    CHECKS,
    COOLDOWNS,
    LEASES,
    Answer,
    Ask,
    Asker,
    Check,
    Cooldown,
    Lease,
)
from handlers.lease.session import newest
from handlers.lease.standing import Verdict, standing, to_be_asked
from handlers.rule import Draft, Due, Now, new_id
from protocols.control.leases import MayClose, MayCloseResult, Reason
from protocols.lease.states import LeaseEvent, LeaseState
from protocols.seconds import seconds


def may_close(draft: Draft, call: Call[MayClose], now: Now) -> None:
    """Answer leases.may_close, now or when the close check has ended."""
    app_key = call.message.app_key
    ticket = new_id(call.seed, "quit ticket")
    asker = Asker(call.ref.connection, call.ref.number, call.message.reserve, ticket)
    verdict = look(draft, app_key, now, call.seed)
    check = draft.get(CHECKS, app_key)
    if verdict is not None:
        _tell(draft, app_key, asker, verdict, now)
    elif check is not None:
        draft.put(CHECKS, attrs.evolve(check, askers=(*check.askers, asker)))


def look(draft: Draft, app_key: str, now: Now, seed: bytes) -> Verdict | None:
    """Whether the app may be closed; None while a close check is under way (look again when its row is gone).

    `seed` is that of the event, for the close ids.  A check that runs already is shared.
    """
    verdict = standing(draft, app_key, now)
    if verdict is not None or draft.get(CHECKS, app_key) is not None:
        return verdict
    leases = to_be_asked(draft, app_key)
    if (wait := _cooldown_left(draft, app_key, leases, now)) > 0:
        return Verdict(Reason.COOLDOWN, wait)
    unreachable = [x for x in leases if open_ask(draft, x) is None and newest(draft, x.holder_id) is None]
    if any(not lease.deferred for lease in unreachable):
        return _defer(draft, app_key, unreachable, now)
    for lease in unreachable:  # the second time that it cannot be asked counts as its allow
        move(draft, lease, LeaseEvent.ALLOW, now)
    asks = [_asked(draft, lease, now, seed) for lease in to_be_asked(draft, app_key)]
    if not asks:
        return standing(draft, app_key, now)
    draft.put(CHECKS, Check(app_key, tuple(asked.close_id for asked in asks)))
    return None


def _asked(draft: Draft, lease: Lease, now: Now, seed: bytes) -> Ask:
    asked = open_ask(draft, lease)
    session = newest(draft, lease.holder_id)
    if asked is None:
        assert session is not None, "a holder without a connection is deferred, not asked"
        asked = ask(draft, lease, session, now, seed)
    return asked


def _defer(draft: Draft, app_key: str, leases: list[Lease], now: Now) -> Verdict:
    """A holder lives and has no connection: no for this time, and a cooldown for it to come back in."""
    for lease in leases:
        draft.put(LEASES, attrs.evolve(lease, deferred=True))
    return Verdict(Reason.DEFERRED, _cool_down(draft, [app_key, *(x.app_key for x in leases)], now))


# -- cooldown ------------------------------------------------------------------------------------------


def _cool_down(draft: Draft, app_keys: list[str], now: Now) -> int:
    cooldown_ms = draft.environment.policy.lease.close_check_cooldown_ms
    for app_key in app_keys:
        draft.put(COOLDOWNS, Cooldown(app_key, now.awake + cooldown_ms))
    return cooldown_ms


def _cooldown_left(draft: Draft, app_key: str, leases: list[Lease], now: Now) -> int:
    """Milliseconds until all may be asked; those that are being asked just now need no new push."""
    keys = [lease.app_key for lease in leases if open_ask(draft, lease) is None]
    cooldowns = [draft.get(COOLDOWNS, key) for key in ([app_key, *keys] if keys else [])]
    return max((x.until - now.awake for x in cooldowns if x is not None), default=0)


def cooldown_due(draft: Draft, event: Due, now: Now) -> None:
    """The cooldown is over."""
    draft.drop(COOLDOWNS, event.key)


# -- the end of a check --------------------------------------------------------------------------------


def review(draft: Draft, now: Now) -> None:
    """What follows for the checks under way when leases or asks have changed."""
    if draft.has_changed(LEASES) or draft.has_changed(ASKS):
        for check in draft.all(CHECKS):
            _review(draft, check, now)


def _review(draft: Draft, check: Check, now: Now) -> None:
    asks = [asked for close_id in check.asks if (asked := draft.get(ASKS, close_id)) is not None]
    if not any(asked.open for asked in asks):
        draft.drop(CHECKS, check.app_key)
        _cool_down(draft, [check.app_key, *(asked.app_key for asked in asks)], now)
        _tell_all(draft, check, asks, now)
    elif check.askers and standing(draft, check.app_key, now) is not None:
        draft.put(CHECKS, attrs.evolve(check, askers=()))
        _tell_all(draft, check, asks, now)


def _tell_all(draft: Draft, check: Check, asks: list[Ask], now: Now) -> None:
    for asker in check.askers:
        _tell(draft, check.app_key, asker, _outcome(draft, check, asks, now), now)


def _outcome(draft: Draft, check: Check, asks: list[Ask], now: Now) -> Verdict:
    verdict = standing(draft, check.app_key, now)
    if verdict is None:  # somebody still has to be asked: who was silent, or whose grace ended meanwhile
        silent = any(asked.answer is Answer.SILENT and _still_expired(draft, asked) for asked in asks)
        cooldown_ms = draft.environment.policy.lease.close_check_cooldown_ms
        return Verdict(Reason.SILENT if silent else Reason.COOLDOWN, cooldown_ms)
    kept = verdict.reason in (Reason.LEASED, Reason.GRACE)
    if kept and any(asked.answer is Answer.EXTENDED for asked in asks):
        return Verdict(Reason.KEPT)
    return verdict


def _still_expired(draft: Draft, asked: Ask) -> bool:
    lease = find(draft, asked.holder_id, asked.app_key)
    return lease is not None and lease.state is LeaseState.EXPIRED


# -- askers --------------------------------------------------------------------------------------------


def _tell(draft: Draft, app_key: str, asker: Asker, verdict: Verdict, now: Now) -> None:
    """Answer one asker; an allowed reserve commits the quit in the same decision."""
    holders, total = holders_of(draft, app_key, now)
    retry_ms = verdict.retry_after_ms
    result = MayCloseResult(
        allowed=verdict.allowed,
        reason=verdict.reason,
        holders=holders,
        holders_total=total,
        retry_after_seconds=None if retry_ms is None else seconds(retry_ms),
    )
    base = base_key(draft.environment.policy.apps, app_key)
    if verdict.allowed and asker.reserve and base is not None:
        quits.commit_reserved(draft, base, asker.ticket, now)
        valid = seconds(draft.environment.policy.lease.ticket_ms)
        result = attrs.evolve(result, ticket=asker.ticket, valid_seconds=valid)
    draft.effect(Reply(CallRef(asker.connection, asker.number), result))


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """An asker is gone: nobody is left to tell, so nothing is reserved for it either."""
    for check in draft.all(CHECKS):
        askers = tuple(asker for asker in check.askers if asker.connection != event.connection)
        if askers != check.askers:
            draft.put(CHECKS, attrs.evolve(check, askers=askers))
