"""The life of a request: every change of its state is made here, and nowhere else.

Each change follows the table in `protocols.companion.states`, is answered to whoever waits for it, and, when
it ends the request, takes the picture off the screen.  What competes (answers, cancels, deadlines) is
decided one after the other; whoever comes second finds a terminal state, which nothing leads out of
(CP-3.10).
"""

from __future__ import annotations

import attrs

from handlers.companion import places, retention, waits
from handlers.companion.age import age_now
from handlers.companion.rows import DISPLAYS, REDUCED_MOTION, REQUESTS, Display, Request, capability_of
from handlers.companion.snapshots import stored_object
from handlers.presenter import showing
from handlers.rule import Draft, Now
from protocols.canonical_json import canonical
from protocols.companion.capabilities import Interaction, Kind
from protocols.companion.states import REASONS, IllegalStep, State, Step, step
from protocols.json_values import JSONObject


def current(draft: Draft, request_id: str, now: Now) -> Request | None:
    """The request as it is at this instant: past its deadline it has ended before anybody sees it, and past its
    retention it is not there any more.

    At its deadline it is expired, unless the presenter that had it has gone and did not come back in time
    (presenter.md, Death).
    """
    request = draft.get(REQUESTS, request_id)
    if request is None or retention.is_over(draft, request, now):
        return None
    if request.ended or now.elapsed < request.deadline:
        return request
    if showing.is_lost(draft, request.id):
        return finish(draft, request, now, Step.FAIL, "presenter_lost")
    return finish(draft, request, now, Step.EXPIRE, "deadline")


def hand_over(draft: Draft, request: Request) -> Request:
    """The presenter is given the request: running."""
    return _change(draft, attrs.evolve(request, state=step(request.state, Step.HAND_OVER)))


def mark_presented(draft: Draft, request: Request, now: Now) -> Request:
    """The presenter reports that the request is on the screen: displayedAt, and an interaction awaits its
    user.

    The display time of a notice begins, or goes on.  A second report changes nothing else.
    """
    if request.displayed_at is not None:
        _go_on_displaying(draft, request, now)
        return request
    capability = capability_of(draft, request)
    state = request.state
    if capability.kind is Kind.INTERACTION:
        state = step(state, Step.SHOW)
    elif capability.kind is Kind.NOTICE:
        display_ms = stored_object(request.params)["displayMs"]
        assert isinstance(display_ms, int)
        draft.put(DISPLAYS, Display(request.id, now.elapsed + display_ms))
    return _change(draft, attrs.evolve(request, state=state, displayed_at=now.wall))


def hold_display(draft: Draft, request: Request, held: bool, now: Now) -> None:
    """The person begins or ends to look closer (hover, focus): the display time stops or goes on (CP-3.8).

    It stops only where the capability declares so; the request's deadline holds all the same.
    """
    display = draft.get(DISPLAYS, request.id)
    if display is None or not display.on_screen:
        return
    if held and display.until is not None and capability_of(draft, request).pause_display_on:
        draft.put(DISPLAYS, attrs.evolve(display, until=None, left=display.until - now.elapsed))
    elif not held and display.until is None:
        draft.put(DISPLAYS, attrs.evolve(display, until=now.elapsed + display.left))


def leave_display(draft: Draft, request_id: str, now: Now) -> None:
    """The request is not on the screen any more, for a while: what is not seen uses up no display time (CP-3.6)."""
    display = draft.get(DISPLAYS, request_id)
    if display is not None and display.on_screen:
        left = display.left if display.until is None else display.until - now.elapsed
        draft.put(DISPLAYS, attrs.evolve(display, until=None, left=left, on_screen=False))


def _go_on_displaying(draft: Draft, request: Request, now: Now) -> None:
    display = draft.get(DISPLAYS, request.id)
    if display is not None and not display.on_screen:
        draft.put(DISPLAYS, attrs.evolve(display, until=now.elapsed + display.left, on_screen=True))


def change_params(draft: Draft, request: Request, params: str, now: Now) -> Request:
    """Other params, as canonical JSON: its bubble stays and shows them (CP-3.11)."""
    changed = _change(draft, attrs.evolve(request, params=params))
    showing.update(draft, changed, now)
    return changed


def complete_progress(draft: Draft, request: Request, params: str, now: Now) -> Request:
    """Its owner says that the work is done.  One that had no place yet was running for no time at all: the table
    knows no other way to completed."""
    if request.state is State.QUEUED:
        request = attrs.evolve(request, state=step(request.state, Step.HAND_OVER))
    return finish(draft, attrs.evolve(request, params=params), now, Step.COMPLETE, "finished")


def draw_still(draft: Draft, request: Request, now: Now) -> Request:
    """An open request is drawn without motion from here on; its record says so, like any substitution."""
    reasons = filter(None, (request.substitution, REDUCED_MOTION))
    changed = _change(draft, attrs.evolve(request, substitution=",".join(reasons)))
    showing.update(draft, changed, now)
    return changed


def finish(
    draft: Draft, request: Request, now: Now, event: Step, reason: str, result: str | None = None
) -> Request:
    """End the request; `result` is canonical JSON from `check_result`, and only an answer has one (CP-3.7).

    Raises IllegalStep, and changes nothing, when the request has ended already or the reason does not fit.
    """
    state = step(request.state, event)
    if reason not in REASONS[state] or (result is not None and reason != "answered"):
        raise IllegalStep(f"{state.value} by {reason}")
    ended = _change(
        draft,
        attrs.evolve(
            request,
            state=state,
            reason=reason,
            result=result,
            ended_at=now.wall,
            ended_age=age_now(draft, now),
        ),
    )
    draft.drop(DISPLAYS, request.id)
    places.leave(draft, request.id)
    if request.state is not State.QUEUED:
        showing.withdraw(draft, request.id, reason)
    return ended


def check_result(
    draft: Draft, request: Request, *, selected_id: str | None = None, text: str | None = None
) -> str | None:
    """A person's answer as the canonical JSON of the business result; None when it does not fit the request.

    A choice must be one of the options of this very request (CP-2.14); a text has its length and its lines.
    """
    interaction = capability_of(draft, request).interaction
    if interaction is Interaction.CHOICE and selected_id is not None and text is None:
        options = stored_object(request.params)["options"]
        assert isinstance(options, list)
        ids = [option["id"] for option in options if isinstance(option, dict)]
        return canonical({"selectedId": selected_id}).decode() if selected_id in ids else None
    if interaction is Interaction.TEXT and text is not None and selected_id is None:
        return canonical({"text": text}).decode() if _text_fits(stored_object(request.params), text) else None
    return None


def _text_fits(params: JSONObject, text: str) -> bool:
    """Whether the person's text is what was asked for; it is passed on as it is (presenter.md, Neutralizing)."""
    longest, multiline = params["maxLength"], params["multiline"]
    assert isinstance(longest, int)
    return 0 < len(text) <= longest and (multiline is True or "\n" not in text)


def _change(draft: Draft, request: Request) -> Request:
    changed = draft.put(REQUESTS, request)
    waits.answer_all(draft, changed)
    return changed
