"""What happens when time alone decides: deadlines, display times and the ends of waits."""

from __future__ import annotations

from handlers.companion import lifecycle, waits
from handlers.companion.rows import WAITS
from handlers.rule import Draft, Due, Now
from protocols.companion.states import Step


def deadline(draft: Draft, event: Due, now: Now) -> None:
    """A request's deadline has come: expired, whatever its state."""
    lifecycle.current(draft, event.key, now)


def display_over(draft: Draft, event: Due, now: Now) -> None:
    """A notice was shown as long as agreed (CP-3.6).  Its deadline counts first, should both have passed."""
    request = lifecycle.current(draft, event.key, now)
    if request is not None and not request.ended:
        lifecycle.finish(draft, request, now, Step.COMPLETE, "presented")


def wait_over(draft: Draft, event: Due, now: Now) -> None:
    """A wait ends without news, which is a normal result (CP-3.9)."""
    wait = draft.get(WAITS, event.key)
    request = None if wait is None else lifecycle.current(draft, wait.request_id, now)
    still_parked = draft.get(WAITS, event.key)  # the request's own deadline may just have answered it
    if still_parked is not None and request is not None:
        waits.answer(draft, still_parked, waits.news(request, still_parked.after_revision))
