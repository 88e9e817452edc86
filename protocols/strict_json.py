"""Strict JSON: one frame to one value and back (wire.md, strict JSON).

Two kinds of badness are told apart. A frame that is not strict JSON raises `ParseError`: nothing in it can
be trusted. A frame that is JSON but holds a lone surrogate, a number that is not finite or an integer
beyond 64 bits decodes to a `Document` with a `Flaw`: the caller can still read the message's id and refuse
it under that id.

The ordinary path is one pass of the standard library's C scanner. Only a frame that can hold a flaw (it has
a `\\u` escape, or a number hook raised) is decoded leniently and walked. Depth is judged before the scanner
runs, so nothing here can raise RecursionError.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import NoReturn

import attrs

from protocols.errors import EncodeError, ParseError, dotted_path
from protocols.json_values import JSON

MAX_DEPTH = 32
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1

LONE_SURROGATE = "lone surrogate"
NOT_FINITE = "number is not finite"
NOT_64_BIT = "integer outside 64 bits"

_SURE_DIGITS = 18  # so many characters always fit 64 bits
_STRING = re.compile(
    rb'"(?:[^"\\]|\\.)*"?', re.DOTALL
)  # the optional end keeps an unterminated string linear
_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))


@attrs.frozen
class Flaw:
    """The first invalid value of a document: its path from the outermost value, and a few fixed words."""

    path: tuple[str | int, ...]
    reason: str

    @property
    def dotted(self) -> str:
        """The path as `params.options.0`, bounded and free of lone surrogates; "" is the outermost value."""
        return dotted_path(self.path)


@attrs.frozen
class Document:
    """A decoded frame. While `flaw` is set, `value` is only good for finding out whom to answer."""

    value: JSON = attrs.field(repr=False)
    flaw: Flaw | None = None


def decode(frame: bytes) -> Document:
    """Decode one frame (without its line break); raises ParseError."""
    text = _utf8(frame)
    _check_depth(frame)
    if b"\\u" not in frame:
        try:
            return Document(_scan(_STRICT, text))
        except _NumberFlaw:
            pass
    value = _scan(_LENIENT, text)
    return Document(value, first_flaw(value))


def encode(value: JSON) -> bytes:
    """Write compact UTF-8 without a line break; raises EncodeError for what strict JSON cannot carry."""
    try:
        return _ENCODER.encode(value).encode("utf-8")
    except UnicodeEncodeError:
        reason = LONE_SURROGATE
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"not a JSON value ({type(error).__name__})"
    raise EncodeError(reason)  # outside the handlers: those exceptions hold the text


def first_flaw(value: JSON) -> Flaw | None:
    """The first invalid value in document order (a member's name comes before its value), or None."""
    return next(_flaws(value, ()), None)


def _flaws(value: JSON, path: tuple[str | int, ...]) -> Iterator[Flaw]:
    if isinstance(value, dict):
        for name, member in value.items():
            if has_lone_surrogate(name):
                yield Flaw((*path, name), LONE_SURROGATE)
            yield from _flaws(member, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flaws(item, (*path, index))
    elif reason := _scalar_flaw(value):
        yield Flaw(path, reason)


def _scalar_flaw(value: bool | float | str | None) -> str:
    if isinstance(value, str):
        return LONE_SURROGATE if has_lone_surrogate(value) else ""
    if isinstance(value, int):
        return "" if MIN_INTEGER <= value <= MAX_INTEGER else NOT_64_BIT
    if isinstance(value, float):
        return "" if math.isfinite(value) else NOT_FINITE
    return ""


def has_lone_surrogate(text: str) -> bool:
    """Whether the text cannot be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _utf8(frame: bytes) -> str:
    try:
        return frame.decode("utf-8")
    except UnicodeDecodeError as error:
        position = error.start
    raise ParseError(f"invalid UTF-8 at byte {position}")


def _check_depth(frame: bytes) -> None:
    """Refuse nesting over MAX_DEPTH: with strings gone, each round takes the innermost pair of brackets away.

    Brackets that do not pair up are refused too; the scanner would refuse them anyway.
    """
    if frame.count(b"[") + frame.count(b"{") <= MAX_DEPTH:
        return
    brackets = _STRING.sub(b"", frame).translate(_TO_SQUARE, _NO_BRACKET)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise ParseError(f"unbalanced brackets or nesting over {MAX_DEPTH}")


def _scan(decoder: json.JSONDecoder, text: str) -> JSON:
    try:
        value: JSON = decoder.decode(text)
        return value
    except json.JSONDecodeError as error:
        position = error.pos
    raise ParseError(f"syntax error at character {position}")


class _NumberFlaw(Exception):
    """A number needs the lenient way."""


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ParseError("duplicate member name")
    return members


def _no_constant(_name: str) -> NoReturn:
    raise ParseError("NaN and Infinity are not JSON")


def _integer(digits: str) -> int:
    if len(digits) <= _SURE_DIGITS:
        return int(digits)
    value = _any_integer(digits)
    if MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    raise _NumberFlaw


def _any_integer(digits: str) -> int:
    """The integer, or for more digits than 64 bits have (int() takes 4,300) one that is outside too."""
    return int(digits) if len(digits) <= len(str(MIN_INTEGER)) else MAX_INTEGER + 1


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _NumberFlaw
    return value


_STRICT = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_integer, parse_float=_number
)
_LENIENT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_any_integer)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
