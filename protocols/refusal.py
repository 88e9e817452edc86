"""The error codes of the JSON-RPC protocols, as one table, and the value that carries one (companion.md, CP-6.7).

Each code has its JSON-RPC number, whether the same call may succeed later, and the exit code that a command line
turns it into.  A handler replies with `Refused`; the engine renders it as a JSON-RPC error whose `data` holds the
code, `retryable` and the details.
"""

from __future__ import annotations

from enum import Enum

import attrs

from protocols.json_values import JSONObject
from protocols.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS


class ErrorCode(Enum):
    """Stable codes; the value is the word on the wire."""

    INVALID_PARAMS = "INVALID_PARAMS"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    RESULT_EXPIRED = "RESULT_EXPIRED"
    UNSUPPORTED_CAPABILITY = "UNSUPPORTED_CAPABILITY"
    UNSUPPORTED_STYLE = "UNSUPPORTED_STYLE"
    QUEUE_FULL = "QUEUE_FULL"
    RATE_LIMITED = "RATE_LIMITED"
    RUNTIME_UNAVAILABLE = "RUNTIME_UNAVAILABLE"
    REVISION_CONFLICT = "REVISION_CONFLICT"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"

    @property
    def facts(self) -> CodeFacts:
        """Number, retryability and exit code."""
        return CODES[self]


@attrs.frozen
class CodeFacts:
    """A row of companion.md's error table."""

    jsonrpc: int
    retryable: bool
    exit: int


CODES = {
    ErrorCode.INVALID_PARAMS: CodeFacts(INVALID_PARAMS, False, 2),
    ErrorCode.INTERNAL_ERROR: CodeFacts(INTERNAL_ERROR, True, 5),
    ErrorCode.UNAUTHENTICATED: CodeFacts(-32001, False, 3),
    ErrorCode.FORBIDDEN: CodeFacts(-32002, False, 3),
    ErrorCode.NOT_FOUND: CodeFacts(-32003, False, 5),
    ErrorCode.RESULT_EXPIRED: CodeFacts(-32004, False, 5),
    ErrorCode.UNSUPPORTED_CAPABILITY: CodeFacts(-32005, False, 2),
    ErrorCode.UNSUPPORTED_STYLE: CodeFacts(-32006, False, 2),
    ErrorCode.QUEUE_FULL: CodeFacts(-32007, True, 5),
    ErrorCode.RATE_LIMITED: CodeFacts(-32008, True, 5),
    ErrorCode.RUNTIME_UNAVAILABLE: CodeFacts(-32009, True, 5),
    ErrorCode.REVISION_CONFLICT: CodeFacts(-32010, False, 5),
    ErrorCode.IDEMPOTENCY_CONFLICT: CodeFacts(-32011, False, 5),
}


@attrs.frozen
class Refused:
    """An error reply.  `message` is for people and never quotes content; `details` go into `data`.

    `jsonrpc` overrides the code's number where the JSON-RPC specification asks for a finer one; `closes` ends the
    connection once the error has been sent.
    """

    code: ErrorCode
    message: str
    details: JSONObject = attrs.field(factory=dict)
    jsonrpc: int | None = None
    closes: bool = False
