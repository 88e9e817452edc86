"""Who gets the display (CP-4.7): places go round among the clients, and nobody holds one for good.

A free place goes to the next client in turn, and there to whoever stands first in line.  When none is free, a
progress or a question whose turn is over gives way: it is set aside and stands in line again
(`handlers.companion.places`).  It gives way only to its own client or to one that has fewer places, so that whoever
has one place keeps it while others have more; and never while the person is looking at it more closely.  Notices and
animations are short and stay.

All of this follows from any decision that frees or wants a place, and runs within that decision, so a place is never
free and wanted at once.  (What the user hides or pauses ends at once, so nothing is queued then.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from handlers.companion import places
from handlers.companion.availability import unavailable
from handlers.companion.lifecycle import hand_over
from handlers.companion.places import PLACES, Place
from handlers.companion.rows import REQUESTS, TURN, TURN_KEY, Request, Turn, capability_of
from handlers.presenter import showing
from handlers.presenter.rows import LINK, SHOWINGS
from handlers.rule import Draft, Now
from protocols.companion.capabilities import Kind
from protocols.companion.states import State

SET_ASIDE = "set_aside"
"""What a presenter is told of a request that it takes off the screen and will be shown again."""
_LONG = (Kind.PROGRESS, Kind.INTERACTION)
"""What may be there for hours."""


def settle(draft: Draft, now: Now) -> None:
    """Give places anew where the decision can have changed who gets one."""
    if (
        draft.has_changed(REQUESTS)
        or draft.has_changed(PLACES)
        or draft.has_changed(SHOWINGS)
        or draft.has_changed(LINK)
    ):
        fill(draft, now)


def fill(draft: Draft, now: Now) -> None:
    """Give places until all are taken by those whose turn it is, or nothing more can be shown."""
    lines = _lines(draft, now)
    while (request := _next(draft, lines, now)) is not None:
        lines[request.client_id].remove(request)
        draft.put(TURN, Turn(request.client_id))
        places.take(draft, request, now)
        showing.show(draft, hand_over(draft, request) if request.state is State.QUEUED else request, now)


def _lines(draft: Draft, now: Now) -> dict[str, list[Request]]:
    """What waits and can be shown now, by client, first come first.

    Past its deadline nothing is shown for even an instant, though its own decision is still to come.
    """
    lines: dict[str, list[Request]] = defaultdict(list)
    for request in places.waiting(draft):
        if (
            now.elapsed < request.deadline
            and unavailable(draft, capability_of(draft, request), request.client_id) is None
        ):
            lines[request.client_id].append(request)
    return lines


def _next(draft: Draft, lines: dict[str, list[Request]], now: Now) -> Request | None:
    """The request that gets a place now, for which another may just have been set aside; None: nobody does."""
    held = places.held(draft)
    free = len(held) < draft.environment.policy.limits.max_displayed
    for client_id in _in_turn(draft, (client_id for client_id, line in lines.items() if line)):
        if free:
            return lines[client_id][0]
        request = next((one for one in lines[client_id] if _may_push(draft, one)), None)
        giving_way = None if request is None else _giving_way(draft, held, client_id)
        if giving_way is not None:
            places.set_aside(draft, giving_way, now)
            showing.withdraw(draft, giving_way.request_id, SET_ASIDE)
            return request
    return None


def _in_turn(draft: Draft, clients: Iterable[str]) -> list[str]:
    """The clients in a fixed circle, from the one after that which was served last."""
    last = draft.get(TURN, TURN_KEY)
    circle = sorted(clients)
    later = [client_id for client_id in circle if last is not None and client_id > last.client_id]
    return later + circle[: len(circle) - len(later)]


def _may_push(draft: Draft, request: Request) -> bool:
    """Whether others have to give way to it: one that was set aside waits for a turn before it pushes."""
    place = draft.get(PLACES, request.id)
    return place is None or place.until is None


def _giving_way(draft: Draft, held: list[Place], client_id: str) -> Place | None:
    """The place that is given up for this client: of those who have the most, the one that was held longest."""
    count = Counter(place.client_id for place in held)
    candidates = [
        place
        for place in held
        if (place.client_id == client_id or count[place.client_id] > count[client_id])
        and _can_give_way(draft, place)
    ]
    return min(candidates, key=lambda place: (-count[place.client_id], place.since), default=None)


def _can_give_way(draft: Draft, place: Place) -> bool:
    request = draft.get(REQUESTS, place.request_id)
    shown = draft.get(SHOWINGS, place.request_id)
    if place.until is not None or request is None or shown is None or shown.held:
        return False
    return capability_of(draft, request).kind in _LONG
