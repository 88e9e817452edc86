"""The roots of all errors: what the peer did wrong (`TheirError`) and what we did wrong (`OurError`).

A `TheirError` becomes an answer to the peer; an `OurError` is a bug or a failure on this side. No message
quotes input: texts and values of a peer never reach a log or an error. The one exception is
`InvalidValue.field`, a path that may hold member names of the peer; it goes back to that peer, bounded and
free of lone surrogates.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_NAME_IN_PATH = 64
"""Code points of one member name that a dotted path shows; a longer name is cut and ends in an ellipsis."""


class TheirError(Exception):
    """The peer broke a rule of the protocol."""


class OurError(Exception):
    """This side failed, whatever the peer did."""


class ParseError(TheirError):
    """A frame is not strict JSON (wire.md, strict JSON). `reason` is for people and quotes nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FrameTooLong(TheirError):
    """A line is longer than `limit_bytes`, its line break not counted (wire.md, size)."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"frame longer than {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class InvalidValue(TheirError):
    """A well-formed message holds a value that the rules do not allow.

    `field` is the dotted path of the wrong member ("" is the whole value), `reason` a few fixed words
    ("missing", "not an integer", "too long"), `limit` the bound that was crossed, if one was.
    """

    def __init__(self, field: str, reason: str, limit: int | None = None) -> None:
        super().__init__(f"{field or 'value'}: {reason}")
        self.field = field
        self.reason = reason
        self.limit = limit

    def under(self, parent: str | int) -> InvalidValue:
        """The same error as seen from the object or array that holds the value as `parent`."""
        name = dotted_path((parent,))
        return InvalidValue(f"{name}.{self.field}" if self.field else name, self.reason, self.limit)


class EncodeError(OurError):
    """A value of our own cannot be written as strict JSON: not finite, a lone surrogate, not a JSON type."""


def dotted_path(path: Iterable[str | int]) -> str:
    """`("params", "options", 0)` as `params.options.0`; long names are cut, lone surrogates become U+FFFD."""
    return ".".join(_shown(str(part)) for part in path)


def _shown(name: str) -> str:
    if len(name) > MAX_NAME_IN_PATH:
        name = name[: MAX_NAME_IN_PATH - 1] + "…"
    return without_surrogates(name)


def without_surrogates(text: str) -> str:
    """The text with U+FFFD in place of every lone surrogate."""
    if text.isascii():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= char <= "\udfff" else char for char in text)
