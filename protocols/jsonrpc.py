"""JSON-RPC 2.0 without input or output (companion.md, JSON-RPC): a document in, typed messages out, replies
rendered.

`parse` reads what a caller sent. It gives a `Call`, a `Batch` of them, `Ignored` (a response object, which
nobody asked for), or `Malformed`: not a request, to be answered with an error under the id that could be
read. `parse_reply` reads what a called side answered. Which methods exist, who may call them and how an
error looks is for the engines.

Bad params do not hide the method: the `Call` arrives with `params_flaw` set, so that an engine can refuse
an unknown method first; reading `params` then raises `InvalidValue` (-32602). A method name with a lone
surrogate arrives with U+FFFD in its place, and so is a method that nobody has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from protocols.errors import InvalidValue, without_surrogates
from protocols.json_values import JSON, JSONObject
from protocols.strict_json import (
    LONE_SURROGATE,
    MAX_INTEGER,
    MIN_INTEGER,
    Document,
    Flaw,
    encode,
    first_flaw,
    has_lone_surrogate,
)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

VERSION = "2.0"
MAX_ID_LENGTH = 128
MAX_BATCH = 16

Id: TypeAlias = "str | int | None"


@attrs.frozen
class Call:
    """A request (`has_id`) or a notification. An id of null is an id, and is answered; so is 0."""

    id: Id
    has_id: bool
    method: str
    _params: JSONObject = attrs.field(repr=False)
    params_flaw: Flaw | None = None
    """What is wrong inside params, its path counted from params; () where params is no object."""

    @property
    def params(self) -> JSONObject:
        """The params, `{}` where they were left out. Raises InvalidValue when they are flawed."""
        if self.params_flaw is not None:
            raise InvalidValue(self.params_flaw.dotted, self.params_flaw.reason)
        return self._params


@attrs.frozen
class Ignored:
    """A response object: it gets no reply."""


@attrs.frozen
class Malformed:
    """Not a request: answered with `code` under `id`. `field` is the wrong envelope member, "" the whole."""

    id: Id
    code: int
    reason: str
    field: str = ""
    limit: int | None = None


@attrs.frozen
class Batch:
    """The elements of a batch in their order."""

    elements: tuple[Call | Ignored | Malformed, ...]


@attrs.frozen
class Reply:
    """A call's success as its caller reads it."""

    id: Id
    result: JSON = attrs.field(repr=False)


@attrs.frozen
class ErrorReply:
    """A call's failure as its caller reads it; `data` is `{}` where the error carries no object."""

    id: Id
    code: int
    message: str = attrs.field(repr=False)
    data: JSONObject = attrs.field(repr=False)


def parse(document: Document, *, max_batch: int = MAX_BATCH) -> Call | Batch | Ignored | Malformed:
    """Read what a caller sent. Never raises; frames that are no JSON were refused by `decode` (-32700)."""
    value = document.value
    flawed = document.flaw is not None
    if not isinstance(value, list):
        return _parse_one(value, flawed)
    if not value:
        return Malformed(None, INVALID_REQUEST, "empty batch", limit=1)
    if len(value) > max_batch:
        return Malformed(None, INVALID_REQUEST, "batch too long", limit=max_batch)
    return Batch(tuple(_parse_one(item, flawed) for item in value))


def _parse_one(value: JSON, flawed: bool) -> Call | Ignored | Malformed:
    if not isinstance(value, dict):
        return Malformed(None, INVALID_REQUEST, "not an object")
    if _is_reply(value):
        return Ignored()
    try:
        call_id = _read_id(value)
    except InvalidValue as error:
        return Malformed(
            None, INVALID_REQUEST, error.reason, error.field, MAX_ID_LENGTH if error.limit else None
        )
    method = value.get("method")
    if value.get("jsonrpc") != VERSION:
        return Malformed(call_id, INVALID_REQUEST, "not 2.0", "jsonrpc")
    if not isinstance(method, str):
        return Malformed(
            call_id, INVALID_REQUEST, "not a string" if "method" in value else "missing", "method"
        )
    if flawed and (flaw := _envelope_flaw(value)):
        return Malformed(call_id, INVALID_REQUEST, flaw.reason, flaw.dotted)
    params, params_flaw = _read_params(value, flawed)
    return Call(call_id, "id" in value, without_surrogates(method), params, params_flaw)


def _is_reply(value: JSONObject) -> bool:
    return "method" not in value and ("result" in value or "error" in value)


def _read_id(value: JSONObject) -> Id:
    """The id, None where there is none; raises InvalidValue for one that cannot be echoed."""
    call_id = value.get("id")
    if isinstance(call_id, str):
        if len(call_id) > MAX_ID_LENGTH:
            raise InvalidValue("id", "too long", MAX_ID_LENGTH)
        if has_lone_surrogate(call_id):
            raise InvalidValue("id", LONE_SURROGATE)
        return call_id
    if call_id is None:
        return None
    if type(call_id) is int and MIN_INTEGER <= call_id <= MAX_INTEGER:
        return call_id
    raise InvalidValue("id", "not a string, a 64-bit integer or null")


def _envelope_flaw(value: JSONObject) -> Flaw | None:
    """The first flaw outside the members that are judged by themselves."""
    return first_flaw(
        {name: member for name, member in value.items() if name not in ("id", "method", "params")}
    )


def _read_params(value: JSONObject, flawed: bool) -> tuple[JSONObject, Flaw | None]:
    params = value.get("params", {})
    if not isinstance(params, dict):
        return {}, Flaw((), "not an object")
    flaw = first_flaw(params) if flawed else None
    return ({}, flaw) if flaw else (params, None)


def parse_reply(document: Document) -> Reply | ErrorReply | None:
    """Read what the called side answered: None for anything but a response object (a call, a batch).

    Raises InvalidValue for a response that breaks the rules: it has no usable id, both a result and an
    error, an error of the wrong shape, or a flaw.
    """
    value = document.value
    if not isinstance(value, dict) or not _is_reply(value):
        return None
    if document.flaw is not None:
        raise InvalidValue(document.flaw.dotted, document.flaw.reason)
    if value.get("jsonrpc") != VERSION:
        raise InvalidValue("jsonrpc", "not 2.0")
    if "id" not in value:
        raise InvalidValue("id", "missing")
    reply_id = _read_id(value)
    if "error" not in value:
        return Reply(reply_id, value["result"])
    if "result" in value:
        raise InvalidValue("result", "beside an error")
    return _read_error(reply_id, value["error"])


def _read_error(reply_id: Id, error: JSON) -> ErrorReply:
    if not isinstance(error, dict):
        raise InvalidValue("error", "not an object")
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    if type(code) is not int:
        raise InvalidValue("error.code", "not an integer")
    if not isinstance(message, str):
        raise InvalidValue("error.message", "not a string")
    return ErrorReply(reply_id, code, message, data if isinstance(data, dict) else {})


def result(call_id: Id, value: JSON) -> bytes:
    """A success reply, as a payload without its line break. All renderers may raise EncodeError."""
    return encoded_result(call_id, encode(value))


def encoded_result(call_id: Id, encoded: bytes) -> bytes:
    """As `result`, of a value that is encoded already: one rendering can answer many waits."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(call_id), encoded)


def error(call_id: Id, code: int, message: str, data: JSONObject) -> bytes:
    """An error reply; `data` is sent even when it is empty."""
    return encode(
        {"jsonrpc": VERSION, "id": call_id, "error": {"code": code, "message": message, "data": data}}
    )


def batch(replies: Iterable[bytes]) -> bytes:
    """The payload of a batch from its rendered elements; of none there is no payload, and b"" is given."""
    joined = b",".join(replies)
    return b"[%b]" % joined if joined else b""


def request(call_id: Id, method: str, params: JSONObject) -> bytes:
    """A call that wants a reply."""
    return encode({"jsonrpc": VERSION, "id": call_id, "method": method, "params": params})


def notification(method: str, params: JSONObject) -> bytes:
    """A call without an id."""
    return encode({"jsonrpc": VERSION, "method": method, "params": params})
