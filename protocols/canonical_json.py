"""Canonical JSON (RFC 8785) and digests over it (presenter.md, digest).

Members are ordered by the UTF-16 code units of their names, strings have only the escapes they need,
numbers are written as ECMAScript writes doubles. So two values that mean the same have the same bytes, in
any language. By the same rule an integer beyond 2^53 counts as its nearest double.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

from protocols.errors import EncodeError
from protocols.json_values import JSON
from protocols.strict_json import encode


def digest(value: JSON) -> str:
    """SHA-256 over the canonical form, in lower-case hex. Raises EncodeError as `canonical`."""
    return hashlib.sha256(canonical(value)).hexdigest()


def canonical(value: JSON) -> bytes:
    """The canonical form in UTF-8. Raises EncodeError for a lone surrogate or a number that is not finite."""
    return b"".join(_parts(value))


def _parts(value: JSON) -> Iterator[bytes]:
    if isinstance(value, dict):
        yield b"{"
        for index, name in enumerate(sorted(value, key=_utf16)):
            yield (b"," if index else b"") + encode(name) + b":"
            yield from _parts(value[name])
        yield b"}"
    elif isinstance(value, list):
        yield b"["
        for index, item in enumerate(value):
            if index:
                yield b","
            yield from _parts(item)
        yield b"]"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield _number(float(value)).encode("ascii")
    else:
        yield encode(value)  # its escapes of strings are the minimal ones


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")  # a lone surrogate is refused when the name is written


def _number(value: float) -> str:
    """A double as ECMAScript's Number::toString writes it.

    Python's repr finds the same shortest digits; only where the point and the exponent go differs.
    """
    if not math.isfinite(value):
        raise EncodeError("number is not finite")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, point = _digits(abs(value))
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


def _digits(value: float) -> tuple[str, int]:
    """The shortest digits of a positive double, and how many of them stand before the decimal point."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    significant = digits.lstrip("0")
    return significant.rstrip("0"), point - (len(digits) - len(significant))
