"""The presenter protocol's tables and handlers."""

from __future__ import annotations

from handlers.events import Closed
from handlers.presenter import answers, link, listing, pairings, pulse, reports, user, watchdog
from handlers.presenter.rows import LINK, PULSE, SHOWINGS
from handlers.routes import Routes
from protocols.presenter import messages

ROUTES = Routes(
    tables=(LINK, PULSE, SHOWINGS),
    calls={
        messages.Ready: link.ready,
        messages.Pong: pulse.pong,
        messages.Presented: reports.presented,
        messages.Deferred: reports.deferred,
        messages.Finished: reports.finished,
        messages.Attention: reports.attention,
        messages.Answer: answers.answer,
        messages.Dismissed: answers.dismissed,
        messages.PairingDecision: pairings.decision,
        messages.User: user.user,
        messages.List: listing.list_,
    },
    due={SHOWINGS.name: watchdog.overdue, PULSE.name: pulse.due},
    facts={Closed: (link.closed,)},
    settle=(link.tell_settings,),
)
