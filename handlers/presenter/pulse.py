"""Is the presenter alive?  It is asked now and then; one that does not answer is closed, and so started again."""

from __future__ import annotations

import attrs

from handlers.events import Call, Hangup, Push
from handlers.presenter.rows import LINK_KEY, PULSE, Pulse
from handlers.rule import Draft, Due, Now
from protocols.presenter.messages import Ping, Pong

ASK_EVERY_MS = 30_000
ANSWER_MS = 5_000
"""How long an answer may take (presenter.md, ping)."""


def begin(draft: Draft, connection: int, now: Now) -> None:
    """A presenter has come."""
    draft.put(PULSE, Pulse(connection, now.awake + ASK_EVERY_MS))


def end(draft: Draft) -> None:
    """The presenter has gone."""
    draft.drop(PULSE, LINK_KEY)


def due(draft: Draft, event: Due, now: Now) -> None:
    """It is time to ask, or the answer has not come."""
    pulse = draft.get(PULSE, event.key)
    if pulse is None:
        return
    if pulse.asked:
        draft.drop(PULSE, event.key)
        draft.effect(Hangup(pulse.connection))
    else:
        draft.put(PULSE, attrs.evolve(pulse, at=now.awake + ANSWER_MS, asked=True))
        draft.effect(Push(pulse.connection, Ping()))


def pong(draft: Draft, call: Call[Pong], now: Now) -> None:
    """It is alive."""
    pulse = draft.get(PULSE, LINK_KEY)
    if pulse is not None and pulse.connection == call.ref.connection:
        begin(draft, pulse.connection, now)
