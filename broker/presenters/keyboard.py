"""The keys of a terminal, made into lines whose first key has a known time.

The terminal's own line editing tells when a line was ended but not when it was begun, and the age of the oldest
key is what arms an answer (presenter.md, Arming).  So the keys are read one by one and edited here: characters,
backspace, Ctrl-U, Enter.  Escape sequences (arrows and the like) are swallowed.

After `quiet` was called nothing counts until no key has come for a while: what was typed for something else, a
double click's second half or a key that is still held down answers nothing (G13).
"""

from __future__ import annotations

import codecs
import unicodedata

import attrs

from protocols.text import neutralize

QUIET_SECONDS = 0.75
"""How long the keys must rest before one counts; more than the broker's usual arming time."""

_ENTER = ("\r", "\n")
_ERASE = ("\x7f", "\x08")
_KILL = "\x15"
_ESCAPE = "\x1b"


@attrs.frozen
class Line:
    """A line and when its first key came, on the clock of the caller, in seconds."""

    text: str = attrs.field(repr=False)
    started: float


class Keyboard:
    """See the module header; times in seconds of the caller's clock."""

    def __init__(self, now: float) -> None:
        self._echo = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._started: float | None = None
        self._quiet_until: float | None = now + QUIET_SECONDS
        self._in_escape = ""

    @property
    def typed(self) -> str:
        """The line so far, as it is drawn."""
        return "".join(map(_drawn, self._text))

    @property
    def armed(self) -> bool:
        """Whether keys count."""
        return self._quiet_until is None

    def take_echo(self) -> str:
        """What the terminal has to draw for the keys since the last time."""
        echo, self._echo = self._echo, ""
        return echo

    def quiet(self, now: float) -> None:
        """Something new is on the screen: forget what was typed, and wait until the keys rest."""
        self._text = ""
        self._started = None
        self._quiet_until = now + QUIET_SECONDS

    def look_at_clock(self, now: float) -> None:
        """Keys count again once they have rested long enough."""
        if self._quiet_until is not None and now >= self._quiet_until:
            self._quiet_until = None

    def armed_in(self, now: float) -> float | None:
        """Seconds until the keys may count; None when they do."""
        return None if self._quiet_until is None else max(0.0, self._quiet_until - now)

    def feed(self, data: bytes, now: float) -> list[Line]:
        """Take keys; the lines that they end."""
        if self._quiet_until is not None:
            self._quiet_until = now + QUIET_SECONDS
            return []
        lines = []
        for key in self._decoder.decode(data):
            if self._is_escape(key):
                continue
            if self._started is None:
                self._started = now
            if key in _ENTER:
                self._echo += "\n"
                lines.append(Line(self._text, self._started))
                self._text, self._started = "", None
            else:
                self._edit(key)
        return lines

    def _edit(self, key: str) -> None:
        if key in _ERASE:
            self._erase(1)
        elif key == _KILL:
            self._erase(len(self._text))
        elif unicodedata.category(key) != "Cc":
            self._text += key
            self._echo += _drawn(key)

    def _erase(self, count: int) -> None:
        erased, self._text = self._text[len(self._text) - count :], self._text[: len(self._text) - count]
        columns = sum(columns_of(char) for key in erased for char in _drawn(key))
        self._echo += "\b" * columns + " " * columns + "\b" * columns

    def _is_escape(self, key: str) -> bool:
        """Whether the key belongs to an escape sequence: ESC, then one key, or [ or O up to a final one."""
        if self._in_escape:
            self._in_escape += key
            begun = self._in_escape[1:]
            if begun not in ("[", "O") and (begun[0] not in "[O" or "@" <= key <= "~"):
                self._in_escape = ""
            return True
        if key == _ESCAPE:
            self._in_escape = key
            return True
        return False


def _drawn(key: str) -> str:
    """A typed character as it may be put on the screen; the answer keeps it as it is."""
    return neutralize(key, multiline=False)


def columns_of(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
