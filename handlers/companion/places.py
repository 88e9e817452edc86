"""Display places: which requests have one, and which stand in line for one (CP-4.7).

    queued ------- take ------> has a place ------- set_aside -------> set aside
    (in the line)               until it ends, or   <----- take ------ (at the end of the line)

A place is had for a turn at least; then its request may have to give way (`handlers.companion.scheduler`).  A request
that was set aside keeps its state and its revision; it has been handed over, and only waits to be shown again.
"""

from __future__ import annotations

import attrs

from handlers.companion.rows import REQUESTS, Request
from handlers.rule import Deadline, Draft, Due, Keep, Now, Table
from protocols.companion.states import State


@attrs.frozen
class Place:
    """Where a request that was handed over stands.  Times are awake milliseconds.

    It has its place since `since`; or, where `line` is not None, it was set aside then, and that is its number in the
    line.  Until `until` it cannot be made to give way, or (set aside) makes nobody give way; None: that turn is over.
    """

    request_id: str
    client_id: str
    since: int
    until: int | None
    line: int | None = None
    revision: int = 0


PLACES: Table[Place] = Table(
    name="places",
    row=Place,
    keep=Keep.MEMORY,
    key=lambda row: row.request_id,
    deadline=lambda row: None if row.until is None else Deadline(row.until, "awake"),
)


def held(draft: Draft) -> list[Place]:
    """The places that are taken."""
    return [place for place in draft.all(PLACES) if place.line is None]


def waiting(draft: Draft) -> list[Request]:
    """Everything that stands in line for a place, first come first."""
    numbered = [(number, request) for request in draft.all(REQUESTS) if (number := _number(draft, request))]
    return [request for _, request in sorted(numbered, key=lambda pair: pair[0])]


def end_of_line(draft: Draft) -> int:
    """The number behind everybody who waits, and behind everybody who has waited and is not done yet."""
    numbers = [request.order for request in draft.all(REQUESTS) if not request.ended]
    numbers += [place.line for place in draft.all(PLACES) if place.line is not None]
    return 1 + max(numbers, default=0)


def _number(draft: Draft, request: Request) -> int | None:
    """The request's number in the line; None when it does not stand there."""
    place = draft.get(PLACES, request.id)
    if place is None:
        return request.order if request.state is State.QUEUED else None
    return place.line


def take(draft: Draft, request: Request, now: Now) -> None:
    """The request has a place from here on."""
    turn_ms = draft.environment.policy.display_turn_ms
    draft.put(PLACES, Place(request.id, request.client_id, now.awake, now.awake + turn_ms))


def set_aside(draft: Draft, place: Place, now: Now) -> None:
    """The request gives its place up and stands in line again."""
    until = now.awake + draft.environment.policy.display_turn_ms
    draft.put(PLACES, attrs.evolve(place, since=now.awake, until=until, line=end_of_line(draft)))


def leave(draft: Draft, request_id: str) -> None:
    """The request has ended."""
    draft.drop(PLACES, request_id)


def turn_over(draft: Draft, event: Due, now: Now) -> None:
    """The turn of a request is over; who gives way to whom is decided behind it."""
    place = draft.get(PLACES, event.key)
    if place is not None:
        draft.put(PLACES, attrs.evolve(place, until=None))
