"""What is put on the screen, and what becomes of it when the presenter says nothing.

A request or pairing that was handed over has a `Showing` until it ends.  Its picture is sent at once where a
presenter is there, and again whenever a new one comes.  From then on the watchdog runs: not reported as
presented within two seconds it is sent once more, then given up (presenter.md, Death).
"""

from __future__ import annotations

import attrs

from handlers.companion.pairing_rows import PAIRINGS, Pairing
from handlers.companion.rows import REQUESTS, Request
from handlers.events import Push
from handlers.presenter import pictures
from handlers.presenter.rows import LINK, LINK_KEY, PAIRING, REQUEST, SHOWINGS, Link, Showing
from handlers.rule import Draft, Now
from protocols.presenter import picture
from protocols.presenter.messages import ConfirmPairing, Dismiss, Present, Update

REPORT_MS = 2_000
"""How long a presenter may take to report a picture as presented."""
LOST_MS = 60_000
"""How long a picture waits for a presenter to come back."""


def link(draft: Draft) -> Link | None:
    """The presenter that is there, or None."""
    return draft.get(LINK, LINK_KEY)


def show(draft: Draft, request: Request, now: Now) -> None:
    """Hand a request's picture to the presenter; `request` is the row as `put` returned it."""
    digest = picture.digest(pictures.picture_of(draft, request))
    _send(draft, Showing(request.id, REQUEST, request.revision, digest), now)


def show_pairing(draft: Draft, pairing: Pairing, now: Now) -> None:
    """Put the question of a pairing on the screen."""
    digest = picture.digest(pictures.pairing_picture(draft, pairing))
    _send(draft, Showing(pairing.id, PAIRING, pairing.revision, digest), now)


def update(draft: Draft, request: Request, now: Now) -> None:
    """The picture of a request has changed; one that is not shown yet will be shown as it is then."""
    showing = draft.get(SHOWINGS, request.id)
    if showing is None:
        return
    digest = picture.digest(pictures.picture_of(draft, request))
    showing = attrs.evolve(showing, picture=request.revision, digest=digest)
    presenter = link(draft)
    if presenter is not None and showing.connection == presenter.connection:
        report_by = now.awake + REPORT_MS if showing.report_by is None else showing.report_by
        showing = attrs.evolve(showing, report_by=None if showing.deferred else report_by)
        message = pictures.present(draft, request, showing, now, Update)
        draft.effect(Push(presenter.connection, message))
    draft.put(SHOWINGS, showing)


def withdraw(draft: Draft, id: str, reason: str) -> None:
    """Take a request or pairing off the screen; one that is not shown is left alone."""
    showing = draft.get(SHOWINGS, id)
    if showing is None:
        return
    draft.drop(SHOWINGS, id)
    presenter = link(draft)
    if presenter is not None:
        name = "request_id" if showing.kind == REQUEST else "pairing_id"
        draft.effect(Push(presenter.connection, Dismiss(reason=reason, **{name: id})))


def show_again(draft: Draft, showing: Showing, now: Now, attempts: int = 1) -> None:
    """Send a picture again, to the presenter that is there now; what was reported of it no longer counts."""
    _send(draft, attrs.evolve(showing, attempts=attempts), now)


def lose(draft: Draft, showing: Showing, now: Now) -> None:
    """The presenter that had this picture has gone: it waits for one to come back, for a while."""
    lost_by = now.awake + LOST_MS if showing.lost_by is None else showing.lost_by
    draft.put(SHOWINGS, blank(attrs.evolve(showing, connection=None, lost_by=lost_by)))


def is_lost(draft: Draft, id: str) -> bool:
    """Whether the request's picture has no presenter: its end is then presenter_lost, whatever ends it."""
    showing = draft.get(SHOWINGS, id)
    return showing is not None and showing.connection is None


def blank(showing: Showing) -> Showing:
    """The showing of which nothing is reported."""
    return attrs.evolve(showing, presented=None, held=False, deferred=None, report_by=None)


def _send(draft: Draft, showing: Showing, now: Now) -> None:
    presenter = link(draft)
    message = _message(draft, showing, now)
    if presenter is None or message is None:
        lose(draft, showing, now)
        return
    sent = attrs.evolve(blank(showing), connection=presenter.connection, report_by=now.awake + REPORT_MS)
    draft.put(SHOWINGS, sent)
    draft.effect(Push(presenter.connection, message))


def _message(draft: Draft, showing: Showing, now: Now) -> Present | ConfirmPairing | None:
    if showing.kind == PAIRING:
        pairing = draft.get(PAIRINGS, showing.id)
        return None if pairing is None else pictures.confirmation(draft, pairing)
    request = draft.get(REQUESTS, showing.id)
    return None if request is None else pictures.present(draft, request, showing, now, Present)
