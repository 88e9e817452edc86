"""The serving side of a JSON-RPC connection: frames to typed calls, typed results to frames.

A protocol is a table of `Method`s plus the order of its session (`admit`).  Every delivered call has a slot until
its reply; a batch is one line of replies once all its slots are filled.  Notifications have an effect only where
the protocol lists them (presenter); elsewhere a call without id is dropped (companion.md, JSON-RPC).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from protocols import jsonrpc
from protocols.errors import InvalidValue, ParseError
from protocols.json_values import JSONObject
from protocols.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, Id
from protocols.refusal import ErrorCode, Refused
from protocols.session import (
    Charge,
    Deliver,
    Fault,
    LineEngine,
    NotSaved,
    RateLimited,
    Refusal,
    Stopping,
)
from protocols.strict_json import decode
from protocols.structure import structure, unstructure

_TURNED_AWAY_MS = 1_000
"""When a peer that was turned away may try again; nobody knows when another one leaves."""


@attrs.frozen
class Method:
    """One method: its name on the wire, the classes of its params and result, and how a call is treated.

    `serial`: nothing behind the call is read before its reply (it may change the session).
    `batched`: whether it may stand in a batch.
    """

    name: str
    params: type[attrs.AttrsInstance]
    result: type[attrs.AttrsInstance]
    charge: Charge = Charge.CALL
    serial: bool = False
    batched: bool = True


def method_table(*methods: Method) -> Mapping[str, Method]:
    """Methods by name."""
    return {method.name: method for method in methods}


@attrs.define
class _Batch:
    waiting: int = 0
    replies: list[bytes] = attrs.field(factory=list)
    closes: bool = False


@attrs.frozen
class _Slot:
    id: Id
    method: Method
    batch: _Batch | None


class JsonRpcEngine(LineEngine):
    """Sans-I/O server of one JSON-RPC connection; subclasses give the tables and the order of the session.

    `limit` is the frame limit in bytes, `max_batch` the published number of calls that a batch may hold.
    """

    methods: ClassVar[Mapping[str, Method]] = {}
    notifications: ClassVar[Mapping[str, Method]] = {}

    def __init__(self, limit: int, max_batch: int = jsonrpc.MAX_BATCH) -> None:
        super().__init__(limit)
        self._max_batch = max_batch
        self._slots: dict[int, _Slot] = {}
        self._numbers = 0

    @property
    def outstanding(self) -> int:
        return len(self._slots)

    # -- from the peer ----------------------------------------------------------------------------------------

    def admit(self, method: Method) -> Refused | None:
        """Whether the session's state allows the method; the default has no order."""
        return None

    def on_response(self, document: object) -> None:
        """A response object arrived: ignored, but by protocols that ask their peer something."""

    def on_frame(self, line: bytes) -> None:
        try:
            document = decode(line)
        except ParseError:
            self._answer_garbage(None, _garbage("the line is not strict JSON", PARSE_ERROR))
            return
        parsed = jsonrpc.parse(document, max_batch=self._max_batch)
        if isinstance(parsed, jsonrpc.Batch):
            self._on_batch(parsed)
        elif isinstance(parsed, jsonrpc.Ignored):
            self.on_response(document)
        else:
            self._on_element(parsed, None)

    def on_too_long(self, limit: int) -> None:
        details: JSONObject = {"limitBytes": limit, "reason": "frame too long"}
        self.fail(Refused(ErrorCode.INVALID_PARAMS, "the line is too long", details, INVALID_REQUEST))

    def handshake_timeout(self) -> None:
        reason = {"reason": "timeout"}
        self.fail(Refused(ErrorCode.UNAUTHENTICATED, "not authenticated in time", {**reason}))

    def turn_away(self, limit: str) -> None:
        details: JSONObject = {"reason": limit, "retryAfterMs": _TURNED_AWAY_MS}
        self.fail(Refused(ErrorCode.RATE_LIMITED, "too many connections", details))

    def fail(self, refused: Refused) -> None:
        """One error under no id, then the end of the connection."""
        self._send_error(None, refused)
        self.close()

    def _on_batch(self, parsed: jsonrpc.Batch) -> None:
        batch = _Batch()
        batch.waiting = 1  # held open until every element was looked at
        for element in parsed.elements:
            if isinstance(element, jsonrpc.Ignored):
                continue
            self._on_element(element, batch)
        self._finish_in_batch(batch, None)

    def _on_element(self, parsed: jsonrpc.Call | jsonrpc.Malformed, batch: _Batch | None) -> None:
        if isinstance(parsed, jsonrpc.Malformed):
            refused = _of_malformed(parsed)
            if batch is not None:
                batch.closes |= not self.authenticated
            if batch is None and parsed.code == INVALID_REQUEST:
                self._answer_garbage(parsed.id, refused)
            else:
                self._answer_now(parsed.id, refused, batch)
        elif not parsed.has_id:
            self._on_notification(parsed)
        else:
            self._on_call(parsed, batch)

    def _on_call(self, call: jsonrpc.Call, batch: _Batch | None) -> None:
        method = self.methods.get(call.method)
        if method is None:
            self._answer_now(call.id, self.unknown_method(), batch)
        elif batch is not None and not method.batched:
            refused = _garbage("this call cannot be part of a batch", INVALID_REQUEST)
            self._answer_now(call.id, refused, batch)
        elif (refusal := self.admit(method)) is not None:
            self._answer_now(call.id, refusal, batch)
        else:
            self._deliver_call(call, method, batch)

    def unknown_method(self) -> Refused:
        """The answer to a method that the protocol does not have; its name is never echoed."""
        return _garbage("no such method", METHOD_NOT_FOUND)

    def _deliver_call(self, call: jsonrpc.Call, method: Method, batch: _Batch | None) -> None:
        try:
            message = structure(method.params, call.params)
        except InvalidValue as error:
            self._answer_now(call.id, invalid_params(error), batch)
            return
        self._numbers += 1
        self._slots[self._numbers] = _Slot(call.id, method, batch)
        if batch is not None:
            batch.waiting += 1
        if method.serial:
            self.paused = True
        self.deliver(Deliver(self._numbers, message, method.charge))

    def _on_notification(self, call: jsonrpc.Call) -> None:
        method = self.notifications.get(call.method)
        if method is None:
            return
        try:
            message = structure(method.params, call.params)
        except InvalidValue as error:
            self.on_bad_notification(error)
        else:
            self._numbers += 1
            self.deliver(Deliver(self._numbers, message, Charge.FREE))

    def on_bad_notification(self, error: InvalidValue) -> None:
        """A listed notification with bad params; there is nobody to answer, so the default drops it."""

    # -- to the peer ------------------------------------------------------------------------------------------

    def reply(self, number: int, body: object) -> None:
        slot = self._slots.pop(number, None)
        if slot is None:  # a notification, or a call that was answered already
            return
        if slot.method.serial:
            self.paused = False
        if isinstance(body, Refusal):
            body = as_refused(body)
        if not isinstance(body, Refused):
            self.on_result(slot.method, body)
            self._put(slot.batch, jsonrpc.result(slot.id, unstructure(body)))
            return
        if slot.batch is not None:
            slot.batch.closes |= body.closes
        self._put(slot.batch, _error(slot.id, body))
        if body.closes and slot.batch is None:
            self.close()

    def on_result(self, method: Method, body: object) -> None:
        """A result is about to be sent: where it changes the session, the subclass notes it here."""

    def push(self, body: object) -> None:
        raise TypeError(f"this protocol has no push for {type(body).__name__}")

    def _answer_garbage(self, id: Id, refused: Refused) -> None:
        self._send_error(id, refused)
        if not self.authenticated:  # wire.md, garbage: before authentication one error and close
            self.close()

    def _answer_now(self, id: Id, refused: Refused, batch: _Batch | None) -> None:
        if batch is not None:
            batch.replies.append(_error(id, refused))
            batch.closes |= refused.closes
            return
        self._send_error(id, refused)
        if refused.closes:
            self.close()

    def _send_error(self, id: Id, refused: Refused) -> None:
        self.send(_error(id, refused))

    def _put(self, batch: _Batch | None, payload: bytes) -> None:
        if batch is None:
            self.send(payload)
        else:
            self._finish_in_batch(batch, payload)

    def _finish_in_batch(self, batch: _Batch, payload: bytes | None) -> None:
        if payload is not None:
            batch.replies.append(payload)
        batch.waiting -= 1
        if batch.waiting > 0:
            return
        if batch.replies:
            self.send(jsonrpc.batch(batch.replies))
        if batch.closes:  # only now: the replies of a batch are one line
            self.close()


def as_refused(refusal: Refusal) -> Refused:
    """How a refusal of the broker itself is told."""
    match refusal:
        case RateLimited(retry_after_ms, reason):
            details: JSONObject = {"retryAfterMs": retry_after_ms, "reason": reason}
            return Refused(ErrorCode.RATE_LIMITED, "a published limit is reached", details)
        case NotSaved():
            return _unavailable("not_saved", "nothing of this could be stored, so nothing of it holds")
        case Stopping():
            return _unavailable("stopping", "the broker is stopping")
        case Fault():
            return Refused(ErrorCode.INTERNAL_ERROR, "internal error", closes=True)
    raise TypeError(type(refusal).__name__)


def invalid_params(error: InvalidValue) -> Refused:
    """INVALID_PARAMS with the dotted path from params, the bound that was crossed and the reason."""
    details = {"field": error.field, "reason": error.reason, "limit": error.limit}
    told = {name: value for name, value in details.items() if value is not None}
    return Refused(ErrorCode.INVALID_PARAMS, "a parameter is not valid", {**told})


def _of_malformed(parsed: jsonrpc.Malformed) -> Refused:
    details = {"field": parsed.field, "reason": parsed.reason, "limit": parsed.limit}
    told = {name: value for name, value in details.items() if value is not None}
    return Refused(ErrorCode.INVALID_PARAMS, "the call is not valid", {**told}, parsed.code)


def _garbage(message: str, jsonrpc_code: int) -> Refused:
    return Refused(ErrorCode.INVALID_PARAMS, message, {"reason": message}, jsonrpc_code)


def _unavailable(reason: str, message: str) -> Refused:
    return Refused(ErrorCode.RUNTIME_UNAVAILABLE, message, {"reason": reason})


def _error(id: Id, refused: Refused) -> bytes:
    facts = refused.code.facts
    data = {"code": refused.code.value, "retryable": facts.retryable, **refused.details}
    number = facts.jsonrpc if refused.jsonrpc is None else refused.jsonrpc
    return jsonrpc.error(id, number, refused.message, data)
