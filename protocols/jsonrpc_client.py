"""The calling side of a JSON-RPC connection, without input or output: calls to frames, frames to typed
answers.

    number = client.call("requests.get", GetRequest(request_id=...))
    client.take_output()             bytes for the server
    client.receive(data)             bytes from the server; client.end_of_stream() when there are no more
    client.next_event()              an Answer or a Failure, or None: more data is needed

Answers come in any order.  Members that this side does not know are ignored in them, since a newer server
may say more (CP-7.6).  A server that breaks the rules raises a `TheirError`; the connection is of no use
after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from protocols import jsonrpc
from protocols.errors import FrameTooLong, InvalidValue
from protocols.framing import FrameSplitter, frame
from protocols.json_values import JSON, JSONObject
from protocols.jsonrpc_session import Method
from protocols.strict_json import Document, decode
from protocols.structure import structure, unstructure

RECEIVE_LIMIT = 1_048_576
"""The longest frame a server sends, in bytes (wire.md, size)."""
SEND_LIMIT = 65_536


@attrs.frozen
class CallError:
    """Why a call failed: the stable code (CP-6.6), whether the same call may succeed later, and the
    details."""

    code: str
    message: str = attrs.field(repr=False)
    retryable: bool
    details: JSONObject = attrs.field(factory=dict, repr=False)


@attrs.frozen
class Answer:
    """The result of call `number`: typed, and as it stood on the wire."""

    number: int
    result: object = attrs.field(repr=False)
    raw: JSON = attrs.field(repr=False)


@attrs.frozen
class Failure:
    """The error of call `number`; None: it is about the connection as a whole, which the server closes."""

    number: int | None
    error: CallError


Event: TypeAlias = "Answer | Failure"


class JsonRpcClient:
    """Sans-I/O client of one connection to a server with these methods."""

    def __init__(self, methods: Mapping[str, Method], send_limit: int = SEND_LIMIT) -> None:
        self.send_limit = send_limit
        self._methods = methods
        self._frames = FrameSplitter(RECEIVE_LIMIT)
        self._output = bytearray()
        self._waiting: dict[int, Method] = {}
        self._calls = 0

    @property
    def waiting(self) -> int:
        """How many calls have no answer yet; when the stream ends, their outcome is unknown (CP-4.2)."""
        return len(self._waiting)

    def call(self, method: str, params: object) -> int:
        """Queue a call and return its number.  Raises FrameTooLong when it exceeds what the server takes."""
        known = self._methods[method]
        written = unstructure(params)
        assert isinstance(params, known.params), f"not the params of {method}"
        assert isinstance(written, dict)
        number = self._calls + 1
        payload = jsonrpc.request(number, method, written)
        if len(payload) > self.send_limit:
            raise FrameTooLong(self.send_limit)
        self._calls = number
        self._waiting[number] = known
        self._output += frame(payload)
        return number

    def take_output(self) -> bytes:
        """The bytes to send now; b"" when there are none."""
        taken = bytes(self._output)
        self._output.clear()
        return taken

    def receive(self, data: bytes) -> None:
        """Take bytes from the server, cut anyhow."""
        self._frames.feed(data)

    def end_of_stream(self) -> None:
        """The server sends no more."""
        self._frames.finish()

    def next_event(self) -> Event | None:
        """The next answer or failure; None until more bytes are there.  Raises TheirError."""
        while (line := self._frames.next_frame()) is not None:
            document = decode(line)
            reply = jsonrpc.parse_reply(document)
            if reply is not None:
                return self._read(reply)
            self.on_other(document)
        return None

    def on_other(self, document: Document) -> None:
        """A message that is no reply: dropped, since this side serves no calls.  Others may raise TheirError."""

    def _read(self, reply: jsonrpc.Reply | jsonrpc.ErrorReply) -> Event:
        if isinstance(reply, jsonrpc.ErrorReply):
            number = None if reply.id is None else self._number(reply.id)
            if number is not None:
                del self._waiting[number]
            return Failure(number, read_error(reply))
        number = self._number(reply.id)
        method = self._waiting.pop(number)
        return Answer(number, structure(method.result, reply.result, unknown="ignore"), reply.result)

    def _number(self, id: jsonrpc.Id) -> int:
        if not isinstance(id, int) or id not in self._waiting:
            raise InvalidValue("id", "answers no call")
        return id


def read_error(reply: jsonrpc.ErrorReply) -> CallError:
    """An error with its code; one without a readable code is an INTERNAL_ERROR of the server."""
    details = dict(reply.data)
    code, retryable = details.pop("code", None), details.pop("retryable", None)
    if not isinstance(code, str):
        code = "INTERNAL_ERROR"
    return CallError(code, reply.message, retryable is True, details)
