"""The presenter's side of the protocol, sans-I/O: what every presenter written in Python builds on.

    client.notify(Ready(...))              reports: ready, presented, deferred, finished, attention
    number = client.call(Answer(...))      what wants a reply: answer, dismissed, pairing_decision, user, list
    client.data_to_send()                  bytes for the broker, to be written as they are
    client.receive(data)                   what the broker has sent: Present, ..., and `Replied` or `Failed`

Pings are answered here.  A broker that breaks the rules raises `TheirError`: the presenter should end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from protocols import jsonrpc
from protocols.errors import InvalidValue
from protocols.framing import FrameSplitter, frame
from protocols.json_values import JSONObject
from protocols.presenter import messages
from protocols.presenter.engine import METHODS, NOTIFICATIONS, PUSHES
from protocols.strict_json import decode
from protocols.structure import structure, unstructure

Report: TypeAlias = (
    messages.Ready | messages.Presented | messages.Deferred | messages.Finished | messages.Attention
)
Question: TypeAlias = (
    messages.Answer | messages.Dismissed | messages.PairingDecision | messages.User | messages.List
)
Pushed: TypeAlias = (
    messages.Present | messages.Update | messages.Dismiss | messages.ConfirmPairing | messages.Settings
)


@attrs.frozen
class Replied:
    """The broker's reply to the call of this number."""

    number: int
    body: messages.Outcome | messages.Done | messages.Listing


@attrs.frozen
class Failed:
    """The call of this number got an error; `code` is the stable word of its data, "" where it has none."""

    number: int
    code: str
    message: str


_REPORTS: Mapping[type[object], str] = {method.params: name for name, method in NOTIFICATIONS.items()}
_QUESTIONS: Mapping[type[object], str] = {method.params: name for name, method in METHODS.items()}
_PUSHED: Mapping[str, type[Pushed]] = {name: message for message, name in PUSHES.items()}  # type: ignore[misc]


class PresenterClient:
    """One presenter's connection to the broker; see the module header."""

    def __init__(self) -> None:
        self._frames = FrameSplitter(messages.MAX_FRAME_BYTES)
        self._output: list[bytes] = []
        self._asked: dict[int, str] = {}
        self._numbers = 0

    def notify(self, report: Report) -> None:
        """Tell the broker something; `Ready` comes first."""
        self._send(jsonrpc.notification(_REPORTS[type(report)], _object(report)))

    def call(self, question: Question) -> int:
        """Ask the broker something; its reply comes under the number that is returned."""
        self._numbers += 1
        method = _QUESTIONS[type(question)]
        self._asked[self._numbers] = method
        self._send(jsonrpc.request(self._numbers, method, _object(question)))
        return self._numbers

    def data_to_send(self) -> bytes:
        """Everything for the broker since the last time."""
        data, self._output = b"".join(self._output), []
        return data

    def receive(self, data: bytes) -> list[Pushed | Replied | Failed]:
        """What the broker says by these bytes, cut anyhow; raises TheirError for what is no message."""
        self._frames.feed(data)
        said = []
        while (line := self._frames.next_frame()) is not None:
            message = self._read(line)
            if message is not None:
                said.append(message)
        return said

    def _read(self, line: bytes) -> Pushed | Replied | Failed | None:
        document = decode(line)
        reply = jsonrpc.parse_reply(document)
        if reply is not None:
            return self._on_reply(reply)
        call = jsonrpc.parse(document)
        if not isinstance(call, jsonrpc.Call):
            raise InvalidValue("", "not a call")
        if call.has_id:
            self._on_request(call)
            return None
        kind = _PUSHED.get(call.method)
        return None if kind is None else structure(kind, call.params, unknown="ignore")

    def _on_request(self, call: jsonrpc.Call) -> None:
        if call.method == "ping":
            self._send(jsonrpc.result(call.id, {}))
        else:
            self._send(jsonrpc.error(call.id, jsonrpc.METHOD_NOT_FOUND, "no such method", {}))

    def _on_reply(self, reply: jsonrpc.Reply | jsonrpc.ErrorReply) -> Replied | Failed | None:
        number = reply.id
        method = self._asked.pop(number, None) if isinstance(number, int) else None
        if method is None or not isinstance(number, int):
            return None
        if isinstance(reply, jsonrpc.ErrorReply):
            code = reply.data.get("code")
            return Failed(number, code if isinstance(code, str) else "", reply.message)
        body = structure(METHODS[method].result, reply.result, unknown="ignore")
        assert isinstance(body, messages.Outcome | messages.Done | messages.Listing)
        return Replied(number, body)

    def _send(self, payload: bytes) -> None:
        self._output.append(frame(payload))


def _object(message: Report | Question) -> JSONObject:
    params = unstructure(message)
    assert isinstance(params, dict)
    return params
