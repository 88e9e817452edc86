"""The serving side of a lease connection: frames to typed messages, answers back in the order of the
messages.

Every line of the session has a slot in one queue, filled when its answer is known: by a handler, by the
broker (a quota), or at once by the engine itself (a line that nobody can read).  Answers leave from the
front of the queue only, which keeps the promised order whoever gives them; pushes do not queue.

    before ready    one session.error and close for anything but one good hello, which pauses the engine
                    until it is decided; 4 KiB a frame
    after ready     one lease.response for every line, a bad one too, and the session lives; a second
                    hello or a frame over the published limit is answered in its turn and ends it
"""

from __future__ import annotations

from typing import NoReturn

import attrs

from protocols.errors import InvalidValue, OurError, ParseError
from protocols.json_values import JSON, JSONObject
from protocols.lease.codes import Code, HandshakeCode
from protocols.lease.messages import (
    BUSINESS_ACTIONS,
    HELLO,
    MAX_ID,
    PROTOCOL_VERSION,
    CanCloseRequest,
    Hello,
    Ready,
    Response,
    ServerMessage,
    SessionError,
    encode_message,
)
from protocols.session import Charge, Deliver, Fault, LineEngine, NotSaved, RateLimited, Refusal, Stopping
from protocols.strict_json import Document, decode, has_lone_surrogate
from protocols.structure import structure

HELLO_LIMIT = 4096
"""Bytes of a frame before ready (wire.md, size)."""
MAX_UNANSWERED = 256
"""Lines that may wait for their answer before the engine looks at no more of them."""

_PUBLISHED_NAMES = {"callsPerSecond": "messagesPerSecond"}


@attrs.define
class _Slot:
    """One line's place in the queue of answers; `hello` for the message that opens the session."""

    request_id: str | None
    hello: bool = False
    answer: bytes | None = None
    closes: bool = False


class _HandshakeFailed(Exception):
    """There is no session: one session.error, then the connection closes."""

    def __init__(self, code: HandshakeCode, message: str) -> None:
        super().__init__(message)
        self.error = SessionError(code=code, message=message)


class LeaseEngine(LineEngine):
    """Sans-I/O server of one lease connection; see the module header.

    `max_frame_bytes` is the published limit, which holds from ready on.
    """

    def __init__(self, max_frame_bytes: int = 8192) -> None:
        super().__init__(min(HELLO_LIMIT, max_frame_bytes))
        self._max_frame_bytes = max_frame_bytes
        self._slots: dict[int, _Slot] = {}
        self._numbers = 0
        self._last = False
        """Whether a line was read that ends the connection: nothing behind it is looked at."""

    @property
    def outstanding(self) -> int:
        return sum(slot.answer is None for slot in self._slots.values())

    # -- from the peer ---------------------------------------------------------------------------------

    def on_frame(self, line: bytes) -> None:
        if self.authenticated:
            self._on_line(line)
            return
        try:
            self._deliver(None, _read_hello(line), Charge.FREE)
        except _HandshakeFailed as failure:
            self._fail(failure.error)

    def on_too_long(self, limit: int) -> None:
        text = f"the line is longer than the limit of {limit} bytes"
        if self.authenticated:
            self._answer_last(_refused(None, Code.INVALID_PAYLOAD, text))
        else:
            self._fail(SessionError(code=HandshakeCode.INVALID_HANDSHAKE, message=text))

    def handshake_timeout(self) -> None:
        if not self.authenticated:
            self._fail(SessionError(code=HandshakeCode.INVALID_HANDSHAKE, message="no session.hello in time"))

    def turn_away(self, limit: str) -> None:
        text = f"the published limit {limit} is reached"
        self._fail(SessionError(code=HandshakeCode.INVALID_HANDSHAKE, message=text))

    def _on_line(self, line: bytes) -> None:
        try:
            document = decode(line)
        except ParseError as error:
            self._answer(_refused(None, Code.INVALID_PAYLOAD, f"not strict JSON: {error.reason}"))
            return
        if not isinstance(document.value, dict):
            self._answer(_refused(None, Code.INVALID_PAYLOAD, "the message is not an object"))
        elif document.value.get("action") == HELLO:
            text = "a second session.hello"
            self._answer_last(SessionError(code=HandshakeCode.INVALID_HANDSHAKE, message=text))
        else:
            self._on_message(document, document.value)

    def _on_message(self, document: Document, value: JSONObject) -> None:
        request_id = _readable_id(value.get("requestId"))
        action = value.get("action")
        if document.flaw is not None:
            text = f"{document.flaw.dotted}: {document.flaw.reason}"
            self._answer(_refused(request_id, Code.INVALID_PAYLOAD, text))
        elif not isinstance(action, str):
            self._answer(_refused(request_id, Code.INVALID_PAYLOAD, "action: not a string"))
        elif action not in BUSINESS_ACTIONS:
            self._answer(_refused(request_id, Code.UNKNOWN_ACTION, "no such action"))
        else:
            self._on_business(request_id, action, value)

    def _on_business(self, request_id: str | None, action: str, value: JSONObject) -> None:
        try:
            message = structure(BUSINESS_ACTIONS[action], value, unknown="ignore")
        except InvalidValue as error:
            self._answer(_refused(request_id, Code.INVALID_PAYLOAD, str(error)))
        else:
            self._deliver(request_id, message, Charge.CALL)

    # -- to the peer -----------------------------------------------------------------------------------

    def reply(self, number: int, body: object) -> None:
        slot = self._slots.get(number)
        if slot is None or slot.answer is not None:
            return
        if slot.hello:
            self._slots.clear()
            self._on_hello_answer(body)
            return
        slot.answer = encode_message(_business_answer(slot.request_id, body))
        slot.closes = isinstance(body, Fault)
        self._flush()

    def push(self, body: object) -> None:
        if not isinstance(body, CanCloseRequest):
            raise OurError(f"this protocol has no push for {type(body).__name__}")
        self.send(encode_message(body))

    def _on_hello_answer(self, body: object) -> None:
        match body:
            case Ready():
                self.authenticated = True
                self.limit = self._max_frame_bytes
                self.send(encode_message(body))
                self._set_paused()
            case SessionError():
                self._fail(body)
            case Refusal():
                text = _why(body)
                self._fail(SessionError(code=HandshakeCode.INVALID_HANDSHAKE, message=text))
            case _:
                raise OurError(f"not an answer to session.hello: {type(body).__name__}")

    def _fail(self, error: SessionError) -> None:
        """The one session.error, and the end."""
        self.send(encode_message(error))
        self._slots.clear()
        self.close()

    # -- the queue of answers --------------------------------------------------------------------------

    def _deliver(self, request_id: str | None, message: object, charge: Charge) -> None:
        number = self._add(_Slot(request_id, hello=isinstance(message, Hello)))
        self.deliver(Deliver(number, message, charge))

    def _answer(self, message: ServerMessage) -> None:
        self._add(_Slot(None, answer=encode_message(message)))
        self._flush()

    def _answer_last(self, message: ServerMessage) -> None:
        self._last = True
        self._add(_Slot(None, answer=encode_message(message), closes=True))
        self._flush()

    def _add(self, slot: _Slot) -> int:
        self._numbers += 1
        self._slots[self._numbers] = slot
        self._set_paused()
        return self._numbers

    def _flush(self) -> None:
        """Send from the front of the queue what is answered."""
        for number, slot in list(self._slots.items()):
            if slot.answer is None:
                break
            del self._slots[number]
            self.send(slot.answer)
            if slot.closes:
                self._slots.clear()
                self.close()
        self._set_paused()

    def _set_paused(self) -> None:
        self.paused = not self.authenticated or self._last or len(self._slots) >= MAX_UNANSWERED


def _read_hello(line: bytes) -> Hello:
    """The hello in the first line; the version is looked at before what this version asks of the other
    members.
    """
    try:
        document = decode(line)
    except ParseError as error:
        _fail_handshake(f"not strict JSON: {error.reason}")
    value = document.value
    if not isinstance(value, dict):
        _fail_handshake("the message is not an object")
    if value.get("action") != HELLO:
        _fail_early(value.get("action"))
    if document.flaw is not None:
        _fail_handshake(f"{document.flaw.dotted}: {document.flaw.reason}")
    version = value.get("protocolVersion")
    if type(version) is int and version != PROTOCOL_VERSION:
        text = f"this server speaks protocolVersion {PROTOCOL_VERSION}"
        raise _HandshakeFailed(HandshakeCode.UNSUPPORTED_PROTOCOL_VERSION, text)
    try:
        return structure(Hello, value, unknown="ignore")
    except InvalidValue as error:
        _fail_handshake(str(error))


def _fail_early(action: JSON) -> NoReturn:
    if isinstance(action, str) and action in BUSINESS_ACTIONS:
        raise _HandshakeFailed(HandshakeCode.UNAUTHENTICATED, "a business message before session.ready")
    _fail_handshake("the first message is not session.hello")


def _fail_handshake(text: str) -> NoReturn:
    raise _HandshakeFailed(HandshakeCode.INVALID_HANDSHAKE, text) from None


def _business_answer(request_id: str | None, body: object) -> Response:
    if isinstance(body, Refusal):
        return _refused(request_id, Code.NOT_ENTITLED, _why(body))
    if not isinstance(body, Response):
        raise OurError(f"not an answer to a business message: {type(body).__name__}")
    return body


def _refused(request_id: str | None, code: Code, text: str) -> Response:
    return Response(request_id=request_id, code=code, message=text)


def _why(refusal: Refusal) -> str:
    match refusal:
        case NotSaved():
            return "this could not be stored, so nothing was changed"
        case RateLimited(retry_after_ms, reason):
            name = _PUBLISHED_NAMES.get(reason, reason)
            return f"the published limit {name} is used up for {retry_after_ms} ms; nothing was changed"
        case Stopping():
            return "the broker is stopping; nothing was changed"
        case _:
            return "a fault of the broker; what became of the message is not known"


def _readable_id(value: JSON) -> str | None:
    """The request's id where it can be told, so that even a bad message is answered under it."""
    if isinstance(value, str) and 1 <= len(value) <= MAX_ID and not has_lone_surrogate(value):
        return value
    return None
