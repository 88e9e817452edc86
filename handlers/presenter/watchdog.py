"""What becomes of a picture of which the presenter reports nothing (presenter.md, Death).

Not reported as presented in time, it is sent once more, then given up (render_failed).  When its presenter has
gone and none is there when a minute is over, it is given up too (presenter_lost).
"""

from __future__ import annotations

from handlers.companion import pairing_lifecycle
from handlers.companion.lifecycle import current, finish
from handlers.companion.pairing_rows import PAIRINGS
from handlers.presenter import showing
from handlers.presenter.rows import PAIRING, REQUEST, SHOWINGS, Showing
from handlers.rule import Draft, Due, Now
from protocols.companion.states import Step

MAX_ATTEMPTS = 2


def overdue(draft: Draft, event: Due, now: Now) -> None:
    """A report, or a presenter, has not come in time."""
    shown = draft.get(SHOWINGS, event.key)
    if shown is None or _has_ended(draft, shown, now):
        return
    if shown.connection is None:
        _give_up(draft, shown, now, "presenter_lost")
    elif shown.attempts >= MAX_ATTEMPTS:
        _give_up(draft, shown, now, "render_failed")
    else:
        showing.show_again(draft, shown, now, attempts=shown.attempts + 1)


def _has_ended(draft: Draft, shown: Showing, now: Now) -> bool:
    """Whether it is a request that is past its deadline: that ends it, and it is not drawn once more for nothing."""
    request = current(draft, shown.id, now) if shown.kind == REQUEST else None
    return request is not None and request.ended


def _give_up(draft: Draft, shown: Showing, now: Now, reason: str) -> None:
    if shown.kind == PAIRING:
        pairing = draft.get(PAIRINGS, shown.id)
        if pairing is not None and pairing.status == "pending":
            pairing_lifecycle.end(draft, pairing, "expired")
    else:
        request = current(draft, shown.id, now)
        if request is not None and not request.ended:
            finish(draft, request, now, Step.FAIL, reason)
    showing.withdraw(draft, shown.id, reason)
