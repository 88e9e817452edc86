"""Why the daemon did not start: errors whose text a person can act on.

The text names the setting and the reason, never a path, a key or a value: it may end in a log.
"""

from __future__ import annotations


class StartRefused(Exception):
    """The daemon cannot start as it is set up: `setting` says where to look, `reason` what is wrong there."""

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")
        self.setting = setting
        self.reason = reason


class AlreadyRunning(StartRefused):
    """Another broker of this user lives: it holds the lock, or answers on the socket."""


class ConfigError(StartRefused):
    """The configuration cannot be used; `key` is dotted, `line` counts from 1, either may be unknown."""

    def __init__(self, source: str, reason: str, *, key: str | None = None, line: int | None = None) -> None:
        place = source if line is None else f"{source}, line {line}"
        super().__init__(place, reason if key is None else f"{key}: {reason}")
        self.key = key
        self.line = line
