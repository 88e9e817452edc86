"""What a stream can show: nothing is lost or left out where the locale has no UTF-8.

Python itself takes the locale "C" for UTF-8 (PEP 538, PEP 540), which is right for files and wrong for a terminal
that the user says can show ASCII only; so the variables of the locale are looked at too.
"""

from __future__ import annotations

import codecs
import os
from typing import TextIO

_ASCII_LOCALES = ("C", "POSIX")
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python puts into LC_CTYPE when it finds the locale C."""
_VISIBLE = "companion.visible"


def encoding_of(stream: TextIO | None) -> str:
    """The encoding to write to a stream with: "utf-8", "ascii", or the locale's own."""
    name = getattr(stream, "encoding", None) or "utf-8"
    encoding = codecs.lookup(name).name
    if encoding == "utf-8" and _says_ascii():
        return "ascii"
    return encoding


def visible(text: str, encoding: str) -> bytes:
    """The text, with what the encoding does not have written as `<U+4F60>`."""
    return text.encode(encoding, _VISIBLE)


def ascii_json(document: str, *, only_unprintable: bool) -> str:
    """The same JSON value with characters escaped: all that are not ASCII, or only those that do not print.

    Outside of its strings a JSON document is ASCII, so any other character stands in one.
    """
    if document.isprintable() and (only_unprintable or document.isascii()):
        return document
    return "".join(
        char if char.isprintable() and (only_unprintable or char.isascii()) else _escaped(char)
        for char in document
    )


def _says_ascii() -> bool:
    """Whether the user has chosen the locale C by name; without any word about a locale UTF-8 is taken."""
    chosen = os.environ.get("LC_ALL")
    if not chosen:
        ctype = os.environ.get("LC_CTYPE")
        chosen = os.environ.get("LANG") if not ctype or ctype in _COERCED else ctype
    return chosen in _ASCII_LOCALES


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _write_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(f"<U+{ord(char):04X}>" for char in error.object[error.start : error.end]), error.end


codecs.register_error(_VISIBLE, _write_out)
