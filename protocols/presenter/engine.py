"""The broker's side of the presenter protocol, sans-I/O (presenter.md).

The presenter is a child of the broker, so there is no key: its session begins with the notification `ready`,
and nothing else is taken before it.  A presenter that breaks the rules is not argued with; it is closed and
restarted like one that died.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from protocols import jsonrpc
from protocols.errors import InvalidValue
from protocols.json_values import JSON
from protocols.jsonrpc import Id
from protocols.jsonrpc_session import JsonRpcEngine, Method, method_table
from protocols.presenter import messages
from protocols.refusal import Refused
from protocols.session import Charge, Deliver, NotSaved, Refusal
from protocols.strict_json import Document
from protocols.structure import unstructure


@attrs.frozen
class _Nothing:
    """The result of a notification, which has none."""


METHODS = method_table(
    Method("answer", messages.Answer, messages.Outcome),
    Method("dismissed", messages.Dismissed, messages.Outcome),
    Method("pairing_decision", messages.PairingDecision, messages.Outcome),
    Method("user", messages.User, messages.Done),
    Method("list", messages.List, messages.Listing),
)

NOTIFICATIONS = method_table(
    Method("ready", messages.Ready, _Nothing),
    Method("presented", messages.Presented, _Nothing),
    Method("deferred", messages.Deferred, _Nothing),
    Method("finished", messages.Finished, _Nothing),
    Method("attention", messages.Attention, _Nothing),
)

PUSHES: Mapping[type[object], str] = {
    messages.Present: "present",
    messages.Update: "update",
    messages.Dismiss: "dismiss",
    messages.ConfirmPairing: "confirm_pairing",
    messages.Settings: "settings",
}

_DECIDING = (messages.Answer, messages.Dismissed, messages.PairingDecision)


class PresenterEngine(JsonRpcEngine):
    """One presenter's connection: `Ready` is delivered first or the connection is closed.

    Delivered: the messages of METHODS and NOTIFICATIONS, and `Pong` for each answered `Ping`.
    Pushed: the messages of PUSHES, and `Ping`.
    """

    methods: ClassVar[Mapping[str, Method]] = METHODS
    notifications: ClassVar[Mapping[str, Method]] = NOTIFICATIONS

    def __init__(self) -> None:
        super().__init__(messages.MAX_FRAME_BYTES)
        self._ready: int | None = None
        self._deciding: set[int] = set()
        self._pings: set[int] = set()
        self._next_ping = 0

    # -- from the presenter ------------------------------------------------------------------------------

    def on_frame(self, line: bytes) -> None:
        super().on_frame(line)
        if not self.authenticated:  # whatever it was, it was not `ready`
            self.close()

    def deliver(self, output: Deliver) -> None:
        if isinstance(output.message, messages.Ready):
            if self.authenticated or output.message.protocol_version != messages.PROTOCOL_VERSION:
                self.close()
                return
            self.authenticated = True
            self._ready = output.number
        elif not self.authenticated:
            self.close()
            return
        if isinstance(output.message, _DECIDING):
            self._deciding.add(output.number)
        super().deliver(output)

    def on_response(self, document: object) -> None:
        """The answer to a ping; any other response is broken."""
        assert isinstance(document, Document)
        try:
            reply = jsonrpc.parse_reply(document)
        except InvalidValue:
            self.close()
            return
        if not isinstance(reply, jsonrpc.Reply) or reply.id not in self._pings:
            self.close()
            return
        self._pings.discard(reply.id)
        self._numbers += 1
        self.deliver(Deliver(self._numbers, messages.Pong(), Charge.FREE))

    def on_bad_notification(self, error: InvalidValue) -> None:
        self.close()

    def on_too_long(self, limit: int) -> None:
        self.close()

    def handshake_timeout(self) -> None:
        self.close()

    def _answer_garbage(self, id: Id, refused: Refused) -> None:
        self.close()

    # -- to the presenter --------------------------------------------------------------------------------

    def reply(self, number: int, body: object) -> None:
        if number == self._ready and isinstance(body, Refusal):
            self.close()  # what it was to show is not known to be on its way: it starts again
        if number in self._deciding:
            self._deciding.discard(number)
            if isinstance(body, NotSaved):
                body = messages.rejected("not_saved")
        super().reply(number, body)

    def push(self, body: object) -> None:
        if isinstance(body, messages.Ping):
            self._next_ping += 1
            self._pings.add(self._next_ping)
            self.send(jsonrpc.request(self._next_ping, "ping", {}))
            return
        params: JSON = unstructure(body)
        assert isinstance(params, dict)
        self.send(jsonrpc.notification(PUSHES[type(body)], params))
