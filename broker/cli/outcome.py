"""What a command ends with: its exit code (CP-6.5), and for every code but 0 a stable word, a text and `retryable`
(CP-6.6, CP-6.7).

`failure_of` is the one place where errors become failures; commands raise and never print one themselves.
"""

from __future__ import annotations

from enum import IntEnum

import attrs
import click

from broker.client.errors import CallFailed, LeaseRefused, NotConnected
from broker.credentials import CredentialError
from protocols.errors import FrameTooLong, InvalidValue, ParseError, TheirError
from protocols.json_values import JSON, JSONObject
from protocols.refusal import CODES, ErrorCode


class Exit(IntEnum):
    """The exit codes of CP-6.5."""

    DONE = 0
    BAD_PARAMETERS = 2
    NOT_ALLOWED = 3
    NOT_CONNECTED = 4
    FAILED = 5
    CANCELLED_OR_EXPIRED = 6
    WAIT_TIMEOUT = 7


@attrs.frozen(kw_only=True)
class Failure:
    """A result that is not 0.  `details` go beside the code in JSON, `request` is the last snapshot of a wait."""

    exit: int
    code: str
    message: str
    retryable: bool = False
    details: JSONObject = attrs.field(factory=dict, repr=False)
    request: JSON = attrs.field(default=None, repr=False)

    def as_json(self) -> JSON:
        """The error form of companion.md, CLI."""
        error: JSONObject = {"code": self.code, "message": self.message, "retryable": self.retryable}
        value: JSONObject = {"error": error | {k: v for k, v in self.details.items() if k not in error}}
        if self.request is not None:
            value["request"] = self.request
        return value


class CommandFailed(Exception):
    """Raised by a command that found its own failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


def invalid(message: str, **details: JSON) -> CommandFailed:
    """What the caller gave is wrong (exit 2)."""
    return CommandFailed(
        Failure(exit=Exit.BAD_PARAMETERS, code="INVALID_PARAMS", message=message, details=details)
    )


def not_allowed(message: str) -> CommandFailed:
    """Nobody can be authenticated with what is there (exit 3)."""
    return CommandFailed(Failure(exit=Exit.NOT_ALLOWED, code="UNAUTHENTICATED", message=message))


def failure_of(error: Exception) -> Failure:
    """What an error that ended a command is told as."""
    match error:
        case CommandFailed():
            return error.failure
        case CallFailed():
            return _of_call(error)
        case NotConnected():
            return Failure(exit=Exit.NOT_CONNECTED, code="NOT_CONNECTED", message=str(error), retryable=True)
        case LeaseRefused():
            later = error.code == "lease_conflict"  # the quit that is under way ends soon
            return Failure(exit=Exit.FAILED, code=error.code, message=error.message, retryable=later)
        case CredentialError():
            return not_allowed(str(error)).failure
        case click.UsageError():
            return invalid(error.format_message()).failure
        case InvalidValue() | FrameTooLong() | ParseError():
            return _of_parameters(error)
        case TheirError():
            return _internal(str(error))
    return _internal(f"internal error ({type(error).__name__})")


def _internal(message: str) -> Failure:
    return Failure(exit=Exit.FAILED, code="INTERNAL_ERROR", message=message, retryable=True)


def _of_parameters(error: InvalidValue | FrameTooLong | ParseError) -> Failure:
    """Parameters that this side refuses already; what a broker sends wrongly is a ProtocolBroken by now."""
    match error:
        case FrameTooLong():
            message = "the parameters are too long for one message"
            return invalid(message, limitBytes=error.limit_bytes).failure
        case ParseError():
            return invalid(f"not strict JSON: {error.reason}").failure
    told = {"field": error.field, "reason": error.reason, "limit": error.limit}
    details: JSONObject = {name: value for name, value in told.items() if value is not None}
    return invalid(f"{error.field or 'the value'}: {error.reason}", **details).failure


def _of_call(error: CallFailed) -> Failure:
    known = {code.value for code in ErrorCode}
    exit_code = CODES[ErrorCode(error.code)].exit if error.code in known else Exit.FAILED
    return Failure(
        exit=exit_code,
        code=error.code,
        message=_told(error),
        retryable=error.retryable,
        details=error.details,
    )


def _told(error: CallFailed) -> str:
    """The message with the details that a person can act on."""
    named = [
        f"{name} {error.details[name]}" for name in ("field", "reason", "limit") if name in error.details
    ]
    return f"{error.message} ({', '.join(named)})" if named else error.message
