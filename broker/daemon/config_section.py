"""Reading a table of the configuration with a type and bounds for every key, and none left over.

A section is taken apart key by key; `end` refuses what nobody asked for.  Nothing is converted: an integer is no
string, a boolean no integer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from broker.daemon.config_lines import KeyPath

MAX_INTEGER = 2**31 - 1
_MAX_SECONDS = 10**7
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class BadKey(Exception):
    """The key at `path` is unknown, or its value is not what it must be."""

    def __init__(self, path: KeyPath, reason: str) -> None:
        super().__init__(f"{dotted(path)}: {reason}")
        self.path = path
        self.reason = reason


def dotted(path: KeyPath) -> str:
    """A key as TOML writes it; a part that is not bare is quoted."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else json.dumps(part) for part in path)


class Section:
    """What is left to read of one table."""

    def __init__(self, value: object, path: KeyPath = ()) -> None:
        if not isinstance(value, dict):
            raise BadKey(path, "must be a table")
        self.path = path
        self._rest = dict(value)

    def bad(self, key: str, reason: str) -> BadKey:
        """The error about a key of this table."""
        return BadKey((*self.path, key), reason)

    def end(self) -> None:
        """Refuse keys that nobody has read."""
        for key in self._rest:
            raise self.bad(key, "unknown key")

    def boolean(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._rest.pop(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, "must be true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string that is not empty; without a default it has to be there."""
        value = self._rest.pop(key, default)
        if value is None:
            raise self.bad(key, "is missing")
        if not isinstance(value, str) or not value:
            raise self.bad(key, "must be a string that is not empty")
        return value

    def integer(self, key: str, default: int, minimum: int, maximum: int = MAX_INTEGER) -> int:
        """A whole number within the bounds."""
        value = self._rest.pop(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise self.bad(key, f"must be a whole number from {minimum} to {maximum}")
        return value

    def milliseconds(self, key: str, default: int, minimum: int, unit: int = 1000) -> int:
        """A time as a number that may have a fraction, in units of `unit` milliseconds; read as milliseconds."""
        value = self._rest.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.bad(key, "must be a number")
        if not 0 <= value <= _MAX_SECONDS or (time := round(value * unit)) < minimum:
            raise self.bad(key, f"must be from {minimum / unit:g} to {_MAX_SECONDS}")
        return time

    def section(self, key: str) -> Section:
        """A table; one that is not there is an empty one."""
        return Section(self._rest.pop(key, {}), (*self.path, key))

    def sections(self) -> Iterator[tuple[str, Section]]:
        """All that is left, each of which has to be a table."""
        for key in list(self._rest):
            yield key, self.section(key)
