"""What a command ends with: its exit code (CP-6.5), and for every code but 0 a stable word, a text and `retryable`
(CP-6.6, CP-6.7).

The words are those of the protocols and those of `OWN_CODES`; each has one exit code and one `retryable`, and
`codes` lists them all.  `failure_of` is the one place where errors become failures; commands raise and never print
one themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import attrs
import click

from broker.client.errors import CallFailed, LeaseRefused, NotConnected
from broker.credentials import CredentialError
from protocols.errors import FrameTooLong, InvalidValue, ParseError, TheirError, without_surrogates
from protocols.json_values import JSON, JSONObject
from protocols.lease.codes import Code, HandshakeCode
from protocols.refusal import CODES, ErrorCode


class Exit(IntEnum):
    """The exit codes of CP-6.5, and what a shell adds to them."""

    DONE = 0
    DECLINED = 1
    BAD_PARAMETERS = 2
    NOT_ALLOWED = 3
    NOT_CONNECTED = 4
    FAILED = 5
    CANCELLED_OR_EXPIRED = 6
    WAIT_TIMEOUT = 7
    NOT_RUN = 126
    NO_SUCH_COMMAND = 127
    HANGUP = 129
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    TERMINATED = 143


MEANINGS = {
    Exit.DONE: "done: what was asked for has happened; for create and notify only that it was accepted",
    Exit.DECLINED: "confirm --only-yes: the person's answer was no",
    Exit.BAD_PARAMETERS: "bad parameters",
    Exit.NOT_ALLOWED: "authentication or permission",
    Exit.NOT_CONNECTED: "cannot connect, or the broker gave no answer",
    Exit.FAILED: "the request failed, or the broker refused it",
    Exit.CANCELLED_OR_EXPIRED: "cancelled or expired: nobody has answered",
    Exit.WAIT_TIMEOUT: "this wait timed out, and the request goes on",
    Exit.NOT_RUN: "lease run: the command cannot be run",
    Exit.NO_SUCH_COMMAND: "lease run: there is no such command",
    Exit.HANGUP: "ended by SIGHUP",
    Exit.INTERRUPTED: "interrupted (Ctrl-C)",
    Exit.OUTPUT_CLOSED: "nobody reads the output any more",
    Exit.TERMINATED: "ended by SIGTERM",
}


@attrs.frozen
class CodeRow:
    """A stable word: the exit code that it comes with, and whether the same command may succeed later."""

    code: str
    exit: Exit
    retryable: bool


OWN_CODES = (
    CodeRow("DECLINED", Exit.DECLINED, False),
    CodeRow("NOT_CONNECTED", Exit.NOT_CONNECTED, True),
    CodeRow("REQUEST_FAILED", Exit.FAILED, False),
    CodeRow("MUST_STAY_OPEN", Exit.FAILED, True),
    CodeRow("CANCELLED", Exit.CANCELLED_OR_EXPIRED, False),
    CodeRow("EXPIRED", Exit.CANCELLED_OR_EXPIRED, False),
    CodeRow("WAIT_TIMEOUT", Exit.WAIT_TIMEOUT, True),
    CodeRow("COMMAND_NOT_RUN", Exit.NOT_RUN, False),
    CodeRow("COMMAND_NOT_FOUND", Exit.NO_SUCH_COMMAND, False),
    CodeRow("HANGUP", Exit.HANGUP, True),
    CodeRow("INTERRUPTED", Exit.INTERRUPTED, True),
    CodeRow("OUTPUT_CLOSED", Exit.OUTPUT_CLOSED, True),
    CodeRow("TERMINATED", Exit.TERMINATED, True),
)
"""The words that only a command line needs (companion.md, CLI)."""


def codes() -> Iterator[CodeRow]:
    """Every word that a failure can carry."""
    for code, facts in CODES.items():
        yield CodeRow(code.value, Exit(facts.exit), facts.retryable)
    yield from OWN_CODES
    for word in (*HandshakeCode, *Code):
        if word is not Code.ACCEPTED:  # the quit that a conflict is with ends soon
            yield CodeRow(word.value, Exit.FAILED, word is Code.LEASE_CONFLICT)


@attrs.frozen(kw_only=True)
class Failure:
    """A result that is not 0.  `details` go beside the code in JSON, `request` is the last snapshot of a wait."""

    exit: int
    code: str
    message: str
    retryable: bool = False
    details: JSONObject = attrs.field(factory=dict, repr=False)
    request: JSON = attrs.field(default=None, repr=False)

    def as_json(self) -> JSONObject:
        """The error form of companion.md, CLI."""
        error: JSONObject = {"code": self.code, "message": self.message, "retryable": self.retryable}
        value: JSONObject = {"error": error | {k: v for k, v in self.details.items() if k not in error}}
        if self.request is not None:
            value["request"] = self.request
        return value


def failure(code: str, message: str, details: JSONObject | None = None, request: JSON = None) -> Failure:
    """The failure that a word stands for."""
    row = next(row for row in codes() if row.code == code)
    return Failure(
        exit=row.exit,
        code=code,
        message=message,
        retryable=row.retryable,
        details=details or {},
        request=request,
    )


class CommandFailed(Exception):
    """Raised by a command that found its own failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


def invalid(message: str, **details: JSON) -> CommandFailed:
    """What the caller gave is wrong (exit 2)."""
    return CommandFailed(failure("INVALID_PARAMS", message, details))


def not_allowed(message: str) -> CommandFailed:
    """Nobody can be authenticated with what is there (exit 3)."""
    return CommandFailed(failure("UNAUTHENTICATED", message))


def failure_of(error: Exception) -> Failure:
    """What an error that ended a command is told as."""
    match error:
        case CommandFailed():
            return error.failure
        case CallFailed():
            return _of_call(error)
        case NotConnected():
            return failure("NOT_CONNECTED", str(error))
        case LeaseRefused():
            return _of_lease(error)
        case CredentialError():
            return not_allowed(str(error)).failure
        case click.UsageError():
            return invalid(without_surrogates(_told_usage(error))).failure  # it may quote an argument
        case InvalidValue() | FrameTooLong() | ParseError():
            return _of_parameters(error)
        case TheirError():
            return failure("INTERNAL_ERROR", str(error))
    return failure("INTERNAL_ERROR", f"internal error ({type(error).__name__})")


def _told_usage(error: click.UsageError) -> str:
    """What is wrong with the line, and how a value is written that looks like an option (G18)."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            return "a command is missing"
        case click.NoSuchOption():
            told = error.format_message()
            end = "" if told.endswith(("?", ".")) else "."
            return f"{told}{end} A value that begins with a dash goes behind --."
    return error.format_message()


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


def _of_lease(error: LeaseRefused) -> Failure:
    """A code that this side does not know is a newer broker's."""
    retryable = any(row.retryable for row in codes() if row.code == error.code)
    return Failure(exit=Exit.FAILED, code=error.code, message=error.message, retryable=retryable)


def _of_call(error: CallFailed) -> Failure:
    known = {code.value for code in ErrorCode}
    exit_code = CODES[ErrorCode(error.code)].exit if error.code in known else Exit.FAILED
    details = {name: value for name, value in error.details.items() if name != "request"}
    return Failure(
        exit=exit_code,
        code=error.code,
        message=_told(error),
        retryable=error.retryable,
        details=details,
        request=error.details.get("request"),
    )


def _told(error: CallFailed) -> str:
    """The message with the details that a person can act on."""
    named = [
        f"{name} {error.details[name]}" for name in ("field", "reason", "limit") if name in error.details
    ]
    return f"{error.message} ({', '.join(named)})" if named else error.message
