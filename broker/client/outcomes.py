"""How a request can end without being completed, as exceptions that a program can tell apart (G14).

For a question each of them means that nobody has answered it.  None carries an answer, and there is no default one
(CP-3.5, CP-3.7): what an agent does then is its own decision.

    NotCompleted
      Dismissed           the person closed it without an answer
      Expired             its time was over
      Cancelled           `by` says by whom
      Failed              the broker restarted, or its presenter could not show it
      Unavailable         it was not or could no longer be shown; `reason` says why
        Hidden              the person has hidden the companion
        Paused              the person has paused what programs ask
        Muted               the person has muted this program
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

import attrs

from broker.client.errors import CallFailed, ClientError
from protocols.companion.messages import Snapshot
from protocols.companion.states import State

Canceller: TypeAlias = Literal["client", "user", "broker"]


class NotCompleted(ClientError):
    """A request ended, or was refused, without being completed.

    `reason` is the protocol's stable word, `request` the last that is known of the request: None when the broker made
    none; its `result` is always None.
    """

    _told: ClassVar[str] = "the request was not completed"

    def __init__(self, reason: str, request: Snapshot | None = None) -> None:
        super().__init__(f"{self._told} ({reason})")
        self.reason = reason
        self.request = None if request is None else attrs.evolve(request, result=None)


class Dismissed(NotCompleted):
    """The person closed it without an answer."""

    _told = "the person closed it without an answer"


class Expired(NotCompleted):
    """Its time was over before it was completed."""

    _told = "its time is over"


class Cancelled(NotCompleted):
    """It was taken back: `by` this program's own credential (client), the person (user: access ended), or the broker
    (a notice that made room); None: a reason that this version does not know.
    """

    _told = "it was cancelled"

    @property
    def by(self) -> Canceller | None:
        """Who cancelled it."""
        return _CANCELLERS.get(self.reason)


class Failed(NotCompleted):
    """The broker was restarted meanwhile, or its presenter failed."""

    _told = "it failed"


class Unavailable(NotCompleted):
    """Nothing can be shown at present: access is off, there is no presenter, or what a subclass says."""

    _told = "nothing can be shown at present"


class Hidden(Unavailable):
    """The person has hidden the companion."""

    _told = "the person has hidden the companion"


class Paused(Unavailable):
    """The person has paused what programs ask."""

    _told = "the person has paused requests"


class Muted(Unavailable):
    """The person has muted this program for a while."""

    _told = "the person has muted this program"


_CANCELLERS: Mapping[str, Canceller] = {
    "cancelled_by_client": "client",
    "key_revoked": "user",
    "scope_revoked": "user",
    "access_disabled": "user",
    "queue_evicted": "broker",
}
_CANCELLED: Mapping[str, type[NotCompleted]] = {
    "dismissed_by_user": Dismissed,
    "hidden_by_user": Hidden,
    "paused_by_user": Paused,
    "muted_by_user": Muted,
}
_REFUSED: Mapping[str, type[Unavailable]] = {"hidden": Hidden, "paused": Paused, "muted": Muted}


def completed(request: Snapshot) -> Snapshot:
    """The request, which has ended; raises the NotCompleted that it stands for."""
    reason = request.reason or request.state.value
    match request.state:
        case State.COMPLETED:
            return request
        case State.CANCELLED:
            raise _CANCELLED.get(reason, Cancelled)(reason, request)
        case State.EXPIRED:
            raise Expired(reason, request)
    raise Failed(reason, request)


def unavailable(error: CallFailed, request: Snapshot | None = None) -> Unavailable | None:
    """What a refusal says about the presenter; None when it is about something else."""
    if error.code != "RUNTIME_UNAVAILABLE":
        return None
    reason = str(error.details.get("reason", "unavailable"))
    return _REFUSED.get(reason, Unavailable)(reason, request)
