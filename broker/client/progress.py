"""A bubble that shows how far a piece of work has come, as plans.

It is a courtesy, and never stops the work: when it cannot be shown, or ends before the work does (the person closes
or hides it, the broker is restarted), updates come to nothing and `ended` says why.
"""

from __future__ import annotations

from typing import TypedDict, cast

from broker.client.asking import Asking, Tone
from broker.client.calls import Calls
from broker.client.errors import CallFailed, ClientError
from broker.client.outcomes import NotCompleted, completed
from broker.client.plan import Plan
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import is_terminal
from protocols.errors import InvalidValue
from protocols.json_values import JSONObject
from protocols.structure import structure


class ProgressChanges(TypedDict, total=False):
    """What an update of a progress may change; what is not named stays."""

    fraction: float | None
    """From 0 to 1; None: how much is done is not known."""
    detail: str
    tone: Tone


_OWN_FAULTS = frozenset(
    {"INVALID_PARAMS", "UNSUPPORTED_CAPABILITY", "UNSUPPORTED_STYLE", "FORBIDDEN", "IDEMPOTENCY_CONFLICT"}
)
"""Refusals that only the program's author can mend."""


class Tracking:
    """See the module header.  `start` and `update` raise CallFailed for what the program's author has to mend."""

    def __init__(self, calls: Calls, request: CreateRequest) -> None:
        self.ended: ClientError | None = None
        """Why it is not, or no longer, shown; None while it is."""
        self._calls = calls
        self._asking = Asking(calls, request)
        self._request_id = ""
        self._revision = 0

    def start(self) -> Plan[None]:
        """Show it."""
        try:
            self._see((yield from self._asking.made()))
        except ClientError as error:
            self._end(error)

    def update(self, changes: ProgressChanges) -> Plan[None]:
        """Show what has changed."""
        return self._update(cast(JSONObject, changes))

    def finish(self) -> Plan[None]:
        """Say that the work is done."""
        return self._update({"finished": True})

    def withdraw(self) -> Plan[None]:
        """Take the bubble away: the work was not done."""
        return self._asking.withdraw()

    def _update(self, params: JSONObject) -> Plan[None]:
        """Update until it is done or comes to nothing.

        Its display moves the revision as well, so a conflict is met with the same update of the newer revision; only
        this program changes what is in it.
        """
        while self.ended is None:
            expected = self._revision
            try:
                news = yield from self._calls.update(self._request_id, expected, params)
            except ClientError as error:
                newer = newer_request(error)
                if newer is None or newer.revision <= expected:
                    self._end(error)
                elif self._see(newer):
                    return
            else:
                self._see(news.value)
                return

    def _see(self, request: Snapshot) -> bool:
        """Take note of a snapshot; whether the request has ended."""
        self._request_id = request.request_id
        self._revision = max(self._revision, request.revision)  # threads may bring them in another order
        if not is_terminal(request.state):
            return False
        try:
            completed(request)
        except NotCompleted as why:
            self.ended = why
        return True

    def _end(self, error: ClientError) -> None:
        if isinstance(error, CallFailed) and error.code in _OWN_FAULTS:
            raise error
        self.ended = error


def newer_request(error: ClientError) -> Snapshot | None:
    """The request as REVISION_CONFLICT tells it; None for another error."""
    if not isinstance(error, CallFailed) or error.code != "REVISION_CONFLICT":
        return None
    try:
        return structure(Snapshot, error.details.get("request"), unknown="ignore")
    except InvalidValue:
        return None
