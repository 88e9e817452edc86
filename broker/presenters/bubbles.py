"""What stands on the terminal without asking: notices, progress and animations, each under a number of its own.

A terminal like this one draws below what it has drawn before.  So a progress that changes many times a second is
drawn again now and then only (`DRAW_SECONDS`), and not at all between the lines of a question; what is reported as
presented is what the last lines say, and in between that they are still there (`STILL_SECONDS`), or the broker would
take the presenter for stuck.  An animation is one still line, whatever the person has set, and over after a while.
"""

from __future__ import annotations

from itertools import count

import attrs

from broker.presenters import drawing, words
from broker.presenters.seat import Seat
from protocols.companion.capabilities import Kind
from protocols.presenter import picture
from protocols.presenter.client import PresenterClient
from protocols.presenter.messages import Finished, Present, Presented

DRAW_SECONDS = 5.0
"""The least time between two drawings of one progress."""
STILL_SECONDS = 1.0
"""How often it is reported that an older drawing still stands; less than the broker waits for a report."""
ANIMATION_SECONDS = 0.8
"""Less than the shortest time that an animation can be given."""

_OF_COURSE = {Kind.NOTICE: ("presented",), Kind.ANIMATION: ("finished",)}
"""Ends that need no words."""


@attrs.define
class _Bubble:
    number: int
    drawn: Present
    """What its lines on the screen say."""
    newest: Present
    drawn_at: float
    reported_at: float
    over_at: float | None
    """When an animation has run its course; None: it has, or it is none."""
    closing: bool = False


class Bubbles:
    """See the module header; times in seconds of the caller's clock."""

    def __init__(self, client: PresenterClient, seat: Seat) -> None:
        self._client = client
        self._seat = seat
        self._numbers = count(1)
        self._standing: dict[str, _Bubble] = {}

    def draw(self, shown: Present, now: float) -> None:
        """Put it on the screen, whole."""
        over_at = now + ANIMATION_SECONDS if shown.kind is Kind.ANIMATION else None
        before = self._standing.get(shown.request_id)
        number = next(self._numbers) if before is None else before.number
        self._standing[shown.request_id] = _Bubble(number, shown, shown, now, now, over_at)
        self._seat.say(drawing.bubble_lines(shown, number, self._seat.paper))
        report_presented(self._client, shown)

    def change(self, shown: Present, now: float) -> bool:
        """Its picture has changed; False when nothing of it stands here."""
        bubble = self._standing.get(shown.request_id)
        if bubble is None:
            return False
        bubble.newest = shown
        if self._lines(bubble, shown) == self._lines(bubble, bubble.drawn):  # less than a step of the bar
            self._report(bubble, shown, now)
        return True

    def remove(self, id: str, reason: str) -> None:
        """It has ended; said, unless that is how it had to end or what the person has just asked for."""
        bubble = self._standing.pop(id, None)
        if bubble is None or bubble.closing or reason in _OF_COURSE.get(bubble.drawn.kind, ()):
            return
        self._seat.say([f"{bubble.drawn.kind.value} {bubble.number}: {words.end_of(reason)}."])

    def close(self, number: int) -> Present:
        """What stands under the number, about to be closed by the person.  Raises Unreadable."""
        for bubble in self._standing.values():
            if bubble.number == number:
                bubble.closing = True
                return bubble.drawn
        raise words.Unreadable(f"Nothing stands under the number {number}.")

    def keep(self, id: str) -> None:
        """It could not be closed."""
        if id in self._standing:
            self._standing[id].closing = False

    # -- time ------------------------------------------------------------------------------------------------

    def look_at_clock(self, now: float, *, drawing_allowed: bool) -> None:
        """Draw what has changed and may be drawn, report the rest as standing, end animations."""
        for bubble in self._standing.values():
            if bubble.over_at is not None and now >= bubble.over_at:
                bubble.over_at = None
                self._client.notify(Finished(request_id=bubble.drawn.request_id))
            if bubble.newest is bubble.drawn:
                continue
            if drawing_allowed and now >= bubble.drawn_at + DRAW_SECONDS:
                bubble.drawn_at = now
                self._seat.say(self._lines(bubble, bubble.newest))
                self._report(bubble, bubble.newest, now)
            elif now >= bubble.reported_at + STILL_SECONDS:
                self._report(bubble, bubble.drawn, now)

    def next_in(self, now: float) -> float | None:
        """Seconds until the clock has to be looked at; None while nothing waits for it."""
        instants = [bubble.over_at for bubble in self._standing.values() if bubble.over_at is not None]
        instants += [
            bubble.reported_at + STILL_SECONDS
            for bubble in self._standing.values()
            if bubble.newest is not bubble.drawn
        ]
        return max(0.0, min(instants) - now) if instants else None

    def _lines(self, bubble: _Bubble, shown: Present) -> list[str]:
        return drawing.news_lines(shown, bubble.number, self._seat.paper)

    def _report(self, bubble: _Bubble, shown: Present, now: float) -> None:
        bubble.drawn, bubble.reported_at = shown, now
        report_presented(self._client, shown)


def report_presented(client: PresenterClient, shown: Present) -> None:
    """Report that the lines on the screen say all of this picture."""
    digest = picture.digest(picture.of_present(shown))
    client.notify(Presented(request_id=shown.request_id, revision=shown.revision, digest=digest))
