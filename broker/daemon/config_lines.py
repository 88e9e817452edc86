"""In which line of a TOML text a key stands: `tomllib` does not say, and an error has to name it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

KeyPath = tuple[str, ...]
"""The parts of a dotted key, from the top of the file."""


def line_of(path: KeyPath, text: str) -> int | None:
    """The line (from 1) of a key, or of the nearest table around it when the key is not in the text."""
    lines = key_lines(text)
    known = (path[:end] for end in range(len(path), 0, -1))
    return next((lines[part] for part in known if part in lines), None)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The first line (from 1) at which each table and key of a valid TOML text is named.

    The text is cut into statements, the shortest runs of lines that parse on their own, so that quoting, dots and
    strings over several lines are left to `tomllib`.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement in _statements(text):
        paths = list(_paths(tomllib.loads(statement)))
        if statement.lstrip().startswith("["):
            table = paths[-1]
        else:
            paths = [table + path for path in paths]
        for path in paths:
            lines.setdefault(path, number)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement and the line it starts at; blank lines and comments are left out."""
    number, statement = 1, ""
    for end, line in enumerate(text.split("\n"), start=1):
        statement += line + "\n"
        try:
            holds_key = bool(tomllib.loads(statement))
        except tomllib.TOMLDecodeError:
            continue  # its value goes on in the next line
        if holds_key:
            yield number, statement
        number, statement = end + 1, ""


def _paths(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, path)
