"""What the presenter reports of its pictures: presented, deferred, finished, looked at."""

from __future__ import annotations

import attrs

from handlers.companion.lifecycle import current, finish, hold_display, leave_display, mark_presented
from handlers.companion.rows import Request, capability_of
from handlers.events import Call, CallRef
from handlers.presenter.rows import REQUEST, SHOWINGS, OnScreen, Showing
from handlers.presenter.showing import REPORT_MS, blank
from handlers.rule import Draft, Now
from protocols.companion.capabilities import Kind
from protocols.companion.states import Step
from protocols.presenter.messages import Attention, Deferred, Finished, Presented


def shown_by(draft: Draft, ref: CallRef, id: str) -> Showing | None:
    """The showing of this id if the caller is the presenter that draws it."""
    showing = draft.get(SHOWINGS, id)
    return showing if showing is not None and showing.connection == ref.connection else None


def presented(draft: Draft, call: Call[Presented], now: Now) -> None:
    """It is on the screen: from here its input is being armed and, the first time, its display time runs.

    A report of another digest is none, and of an older revision only a sign of life: the watchdog goes on.
    """
    said = call.message
    showing = shown_by(draft, call.ref, said.id)
    if showing is None:
        return
    if said.revision is not None and said.revision != showing.picture:
        if said.revision < showing.picture and showing.report_by is not None:
            draft.put(SHOWINGS, attrs.evolve(showing, report_by=now.awake + REPORT_MS))
        return
    if said.digest != showing.digest:
        return
    request = _running(draft, showing, now)
    if showing.kind == REQUEST and request is None:  # its deadline has come by this very report
        return
    on_screen = OnScreen(showing.picture, showing.digest, _armed_from(draft, request, showing, now))
    draft.put(
        SHOWINGS,
        attrs.evolve(showing, presented=on_screen, attempts=1, deferred=None, report_by=None, lost_by=None),
    )
    if request is not None:
        mark_presented(draft, request, now)


def deferred(draft: Draft, call: Call[Deferred], now: Now) -> None:
    """The presenter cannot draw it now: its display time stands still, its deadline does not (CP-3.8), and as it is
    not on the screen it cannot be answered."""
    said = call.message
    showing = shown_by(draft, call.ref, said.request_id)
    if showing is not None and said.revision == showing.picture:
        draft.put(SHOWINGS, attrs.evolve(blank(showing), deferred=said.why, lost_by=None))
        leave_display(draft, showing.id, now)


def finished(draft: Draft, call: Call[Finished], now: Now) -> None:
    """An animation that was on the screen has kept its contract (CP-3.6); of anything else it means nothing."""
    showing = shown_by(draft, call.ref, call.message.request_id)
    if showing is None or showing.presented is None:
        return
    request = _running(draft, showing, now)
    if request is not None and capability_of(draft, request).kind is Kind.ANIMATION:
        finish(draft, request, now, Step.COMPLETE, "finished")


def attention(draft: Draft, call: Call[Attention], now: Now) -> None:
    """The person looks closer, or away again: display time that may pause does (CP-3.8), and the bubble keeps its
    place (`handlers.companion.scheduler`)."""
    held = call.message.held
    showing = shown_by(draft, call.ref, call.message.request_id)
    if showing is None or (showing.presented is None and held):
        return
    if (request := _running(draft, showing, now)) is not None:
        draft.put(SHOWINGS, attrs.evolve(showing, held=held))
        hold_display(draft, request, held, now)


def _armed_from(draft: Draft, request: Request | None, showing: Showing, now: Now) -> int:
    """The awake millisecond from which input counts: each picture's own, but for a progress, which can only be
    closed, that of the first one; it would never be armed while its pictures change."""
    if showing.presented is None or request is None:
        return now.awake
    return showing.presented.since if capability_of(draft, request).kind is Kind.PROGRESS else now.awake


def _running(draft: Draft, showing: Showing, now: Now) -> Request | None:
    if showing.kind != REQUEST:
        return None
    request = current(draft, showing.id, now)
    return None if request is None or request.ended else request
