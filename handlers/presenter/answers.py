"""The person answers or closes a prompt (presenter.md, answer, dismissed, Arming).

The checks come in the order of the protocol: too_late before the digest is looked at, then not_presented, stale,
invalid, not_armed.  Whatever is not committed leaves the prompt as it is; no answer is ever invented (CP-3.5).
Closing a progress means the same whatever fraction was drawn (docs/decisions/closing-a-progress.md).
"""

from __future__ import annotations

from handlers.companion.lifecycle import check_result, current, finish
from handlers.companion.rows import Request, capability_of
from handlers.events import Call, Reply
from handlers.presenter.reports import shown_by
from handlers.presenter.rows import LINK, LINK_KEY, Showing
from handlers.rule import Draft, Now
from protocols.companion.capabilities import Kind
from protocols.companion.states import Step
from protocols.json_values import JSONObject
from protocols.presenter.messages import COMMITTED, Answer, Dismissed, Outcome, rejected, too_late


def answer(draft: Draft, call: Call[Answer], now: Now) -> None:
    """The person's answer is the result (CP-3.7), if it was given to this very picture."""
    said = call.message
    request = current(draft, said.request_id, now)
    showing = shown_by(draft, call.ref, said.request_id)
    refusal = _not_the_prompt(draft, request, showing, said)
    if refusal is not None or request is None or showing is None:
        draft.effect(Reply(call.ref, refusal))
        return
    result = _result(draft, request, said.result)
    if result is None:
        draft.effect(Reply(call.ref, rejected("invalid")))
    elif not armed(draft, showing, said.input_started_ms, now):
        draft.effect(Reply(call.ref, rejected("not_armed")))
    else:
        draft.effect(Reply(call.ref, COMMITTED))
        finish(draft, request, now, Step.COMPLETE, "answered", result)


def dismissed(draft: Draft, call: Call[Dismissed], now: Now) -> None:
    """The person closed it without an answer; a notice has thereby been shown (CP-3.5, CP-3.6)."""
    said = call.message
    request = current(draft, said.request_id, now)
    showing = shown_by(draft, call.ref, said.request_id)
    refusal = _not_the_prompt(draft, request, showing, said)
    if refusal is not None or request is None or showing is None:
        draft.effect(Reply(call.ref, refusal))
    elif not armed(draft, showing, said.input_started_ms, now):
        draft.effect(Reply(call.ref, rejected("not_armed")))
    else:
        draft.effect(Reply(call.ref, COMMITTED))
        if capability_of(draft, request).kind is Kind.NOTICE:
            finish(draft, request, now, Step.COMPLETE, "presented")
        else:
            finish(draft, request, now, Step.CANCEL, "dismissed_by_user")


def armed(draft: Draft, showing: Showing, input_started_ms: int, now: Now) -> bool:
    """Whether a person's input began when the picture had been on the screen for long enough (G13)."""
    presenter = draft.get(LINK, LINK_KEY)
    if showing.presented is None or presenter is None or not presenter.person:
        return False
    return now.awake - input_started_ms >= showing.presented.since + draft.environment.policy.arming_ms


def is_stale(showing: Showing, revision: int | None, digest: str) -> bool:
    """Whether the input belongs to another picture than the one last presented."""
    shown = showing.presented
    return shown is None or digest != shown.digest or revision not in (None, shown.picture)


def _not_the_prompt(
    draft: Draft, request: Request | None, showing: Showing | None, said: Answer | Dismissed
) -> Outcome | None:
    """Why the input is not one to a prompt that stands, as far as that shows before it is looked at."""
    if request is None:  # wiped together with its client; it was taken off the screen before
        return too_late("cancelled", None)
    if request.ended:
        return too_late(request.state.value, request.reason)
    if showing is None or showing.presented is None:
        return rejected("not_presented")
    if isinstance(said, Dismissed) and capability_of(draft, request).kind is Kind.PROGRESS:
        stale = said.revision > showing.picture
    else:
        stale = is_stale(showing, said.revision, said.digest)
    return rejected("stale") if stale else None


def _result(draft: Draft, request: Request, result: JSONObject) -> str | None:
    """The business result of exactly one member that fits the request, else None."""
    if len(result) != 1:
        return None
    selected_id, text = result.get("selectedId"), result.get("text")
    if isinstance(selected_id, str):
        return check_result(draft, request, selected_id=selected_id)
    return check_result(draft, request, text=text) if isinstance(text, str) else None
