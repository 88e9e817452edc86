"""The presenter comes and goes, and is told what holds for everything that it draws.

When one is ready it is told the settings and shown everything that is running, again or for the first time.
When it goes, its pictures wait for the next one (`handlers.presenter.showing.lose`).
"""

from __future__ import annotations

from handlers.companion.lifecycle import leave_display
from handlers.companion.rows import REQUESTS, SETTINGS
from handlers.companion.settings import access_enabled, settings
from handlers.events import Call, Closed, Push
from handlers.presenter import pulse, showing
from handlers.presenter.rows import LINK, LINK_KEY, SHOWINGS, Link, Showing
from handlers.rule import Draft, Now
from protocols.presenter.messages import Ready, Settings


def ready(draft: Draft, call: Call[Ready], now: Now) -> None:
    """A presenter is there and says what it can draw."""
    said = call.message
    presenter = Link(call.ref.connection, said.name, said.person, said.kinds, said.interactions)
    draft.put(LINK, presenter)
    pulse.begin(draft, presenter.connection, now)
    draft.effect(Push(presenter.connection, _settings(draft)))
    for shown in sorted(draft.all(SHOWINGS), key=lambda row: _order(draft, row)):
        showing.show_again(draft, shown, now)


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """A connection has gone; if it was the presenter's, nothing is on the screen any more."""
    presenter = showing.link(draft)
    if presenter is not None and presenter.connection == event.connection:
        draft.drop(LINK, LINK_KEY)
        pulse.end(draft)
    for shown in draft.all(SHOWINGS):
        if shown.connection == event.connection:
            leave_display(draft, shown.id, now)
            showing.lose(draft, shown, now)


def tell_settings(draft: Draft, now: Now) -> None:
    """Whatever changed the settings, the presenter is told."""
    presenter = showing.link(draft) if draft.has_changed(SETTINGS) else None
    if presenter is not None:
        draft.effect(Push(presenter.connection, _settings(draft)))


def _settings(draft: Draft) -> Settings:
    said = settings(draft)
    return Settings(
        visible=not said.hidden,
        paused=said.paused,
        access_enabled=access_enabled(draft),
        language=said.language,
        reduced_motion=said.reduced_motion,
        sound=said.sound,
    )


def _order(draft: Draft, shown: Showing) -> int:
    """Pairings first, then requests in the order in which they were accepted."""
    request = draft.get(REQUESTS, shown.id)
    return -1 if request is None else request.order
