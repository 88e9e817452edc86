"""data.clear: the owner's tool asks, the person decides (wire.md, Control protocol; CP-4.15).

The question is one of the host's own, so it lives as every request does: shown in its turn, armed, withdrawn when the
asker goes, ended by its deadline.  The asker is told of its end at once, or, where the person wants the records gone,
when not a byte of them is left (`handlers/companion/wiping.py`).  The tool comes from outside, so a person who has
paused external programs is not asked; and there is one such question at a time.
"""

from __future__ import annotations

import attrs

from handlers.companion import create, scheduler
from handlers.companion.calls import Declined
from handlers.companion.host import host_client
from handlers.companion.lifecycle import finish
from handlers.companion.rows import REQUESTS, SETTINGS, Request
from handlers.companion.settings import settings
from handlers.companion.snapshots import stored_object
from handlers.companion.wiping import CLEARED, WIPES, clear_records
from handlers.events import Call, CallRef, Closed, Reply
from handlers.policy import MINUTE
from handlers.rule import Draft, Keep, Now, Table
from protocols.companion.messages import CreateRequest
from protocols.companion.states import State, Step
from protocols.control.data import ClearData, ClearResult
from protocols.json_values import JSON, JSONObject
from protocols.refusal import ErrorCode, Refused

CLEAR, KEEP = "clear", "keep"
ANSWER_MS = 2 * MINUTE
"""How long the person has."""
_QUESTION: JSONObject = {
    "title": "Delete all requests and answers that have ended? No program can read them after that.",
    "options": [{"id": KEEP, "label": "Keep them"}, {"id": CLEAR, "label": "Delete them"}],
}


@attrs.frozen
class Clearing:
    """A data.clear without an answer: who asked, and the request that asks the person.

    `decided`: the person wants it, and the deleting is under way.
    """

    request_id: str
    connection: int
    number: int
    decided: bool = False
    revision: int = 0


CLEARINGS: Table[Clearing] = Table(
    name="clearings",
    row=Clearing,
    keep=Keep.MEMORY,
    key=lambda row: row.request_id,
    indexes={"connection": lambda row: str(row.connection)},
)


def clear(draft: Draft, call: Call[ClearData], now: Now) -> None:
    """Put the question on the screen; the answer to the call comes with its end."""
    if (refused := _refusal(draft, now)) is not None:
        draft.effect(Reply(call.ref, refused))
        return
    asked = CreateRequest(
        capability="interaction.choose", params=_QUESTION, timeout_ms=ANSWER_MS, allow_substitution=True
    )
    try:
        question = create.accept(draft, host_client(draft), Call(call.ref, asked, call.seed), now)
    except Declined as no:
        draft.effect(Reply(call.ref, _told(no.refused)))
    else:
        draft.put(CLEARINGS, Clearing(question.request_id, call.ref.connection, call.ref.number))


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """The asker has gone: its question leaves the screen."""
    for clearing in draft.find(CLEARINGS, "connection", str(event.connection)):
        draft.drop(CLEARINGS, clearing.request_id)
        if not clearing.decided:
            _withdraw(draft, clearing, now, "cancelled_by_client")


def settle(draft: Draft, now: Now) -> None:
    """What follows from any decision: a question that has ended is answered, one that must not be asked is not."""
    if draft.has_changed(SETTINGS) and settings(draft).paused:
        for clearing in _undecided(draft):
            _withdraw(draft, clearing, now, "paused_by_user")
        scheduler.fill(draft, now)  # the places that this has freed were given before this step
    for _, request in draft.changes(REQUESTS):
        if request is not None and request.ended:
            _ended(draft, request, now)
    if draft.has_changed(WIPES) and draft.get(WIPES, CLEARED) is None:
        for clearing in draft.all(CLEARINGS):
            if clearing.decided:
                _answer(draft, clearing, ClearResult(status="cleared"))


def _refusal(draft: Draft, now: Now) -> ClearResult | Refused | None:
    for clearing in _undecided(draft):
        request = draft.get(REQUESTS, clearing.request_id)
        retry_after_ms = 0 if request is None else max(0, request.deadline - now.elapsed)
        details: JSONObject = {"reason": "clearings", "retryAfterMs": retry_after_ms}
        return Refused(ErrorCode.RATE_LIMITED, "the person is being asked already", details)
    return ClearResult(status="unavailable", reason="paused") if settings(draft).paused else None


def _undecided(draft: Draft) -> list[Clearing]:
    return [clearing for clearing in draft.all(CLEARINGS) if not clearing.decided]


def _told(refused: Refused) -> ClearResult | Refused:
    if refused.code is not ErrorCode.RUNTIME_UNAVAILABLE:
        return refused
    return ClearResult(status="unavailable", reason=str(refused.details["reason"]))


def _withdraw(draft: Draft, clearing: Clearing, now: Now, reason: str) -> None:
    request = draft.get(REQUESTS, clearing.request_id)
    if request is not None and not request.ended:
        finish(draft, request, now, Step.CANCEL, reason)


def _ended(draft: Draft, request: Request, now: Now) -> None:
    """A request has ended; was it a question of ours, tell how, or begin to delete, which takes its time."""
    clearing = draft.get(CLEARINGS, request.id)
    if clearing is None or clearing.decided:
        return
    if _chosen(request) == CLEAR:
        draft.put(CLEARINGS, attrs.evolve(clearing, decided=True))
        clear_records(draft, now)
    else:
        _answer(draft, clearing, _outcome(request))


def _answer(draft: Draft, clearing: Clearing, result: ClearResult) -> None:
    draft.drop(CLEARINGS, clearing.request_id)
    draft.effect(Reply(CallRef(clearing.connection, clearing.number), result))


def _chosen(request: Request) -> JSON:
    """The id of the option that the person chose, None where nobody did."""
    return None if request.result is None else stored_object(request.result)["selectedId"]


def _outcome(request: Request) -> ClearResult:
    if _chosen(request) == KEEP:
        return ClearResult(status="kept")
    if request.state is State.EXPIRED:
        return ClearResult(status="expired")
    if request.reason == "dismissed_by_user":
        return ClearResult(status="dismissed")
    return ClearResult(status="unavailable", reason=request.reason)
