"""The daemon's log: structured lines of facts from an allow-list, so that no content can slip in.

A field that is not in `FIELDS` is dropped, values are numbers or short words of our own, and of an error only its
class and the place in our code are told: its text may quote what a client or a person wrote.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from pathlib import Path
from typing import TextIO

import structlog

FIELDS = frozenset(
    {
        "event",
        "level",
        "timestamp",
        "error",
        "at",
        "effect",
        "protocol",
        "connection",
        "reason",
        "setting",
        "exit",
        "attempt",
        "kind",
        "code",
        "count",
        "version",
    }
)


class Log:
    """Writes to a stream, by default standard error."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._logger = structlog.wrap_logger(
            structlog.PrintLogger(stream or sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                _only_allowed,
                structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
            ],
        )

    def info(self, what: str, **facts: int | str) -> None:
        """Something worth knowing."""
        self._write("info", what, **facts)

    def warning(self, what: str, **facts: int | str) -> None:
        """Something that a person may have to act on."""
        self._write("warning", what, **facts)

    def fault(self, what: str, error: BaseException, **facts: int | str) -> None:
        """A fault of ours: the class of the error and where it was raised."""
        self._write("error", what, error=type(error).__name__, at=_place(error), **facts)

    def _write(self, level: str, what: str, **facts: int | str) -> None:
        # Whoever read the log may be gone; that is no reason for the broker to end.
        with contextlib.suppress(OSError, ValueError):
            getattr(self._logger, level)(what, **facts)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _only_allowed(
    logger: object, method: str, fields: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return {name: value for name, value in fields.items() if name in FIELDS}
