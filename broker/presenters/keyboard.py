"""The keys of a terminal, made into lines whose first key has a known time.

The terminal's own line editing tells when a line was ended but not when it was begun, and the age of the oldest
key is what arms an answer (presenter.md, Arming).  So the keys are read one by one and edited here: characters,
backspace, Ctrl-U, Enter, and Ctrl-D behind a text of many lines.  Escape sequences (arrows and the like) are
swallowed.

What may be typed is a `Form`.  A key beyond its limit is refused at once, whoever types it, so no answer is ever
cut off behind the person's back; and of several lines that come at once where one is asked for, none counts.

After either, and after `ask` was called, nothing counts until no key has come for a while: what was typed for
something else, the rest of a paste, a double click's second half or a key that is still held down answers nothing
(G13).
"""

from __future__ import annotations

import codecs
from typing import TypeAlias

import attrs

from broker.presenters.characters import Characters, columns_of

QUIET_SECONDS = 0.75
"""How long the keys must rest before one counts; more than the broker's usual arming time."""
PASTE_SECONDS = 0.1
"""How long the keys must rest behind an Enter, or what it ended was part of a paste."""
LONGEST_COMMAND = 400

CLOSE = "x"
COMMAND = ":"
LITERAL = "\\"
"""What is typed at the beginning of a text to close it, to command, and before a text that begins with these."""

_ENTER = ("\r", "\n")
_ERASE = ("\x7f", "\x08")
_KILL = "\x15"
_END = "\x04"
_ESCAPE = "\x1b"
_TAB = "\t"
BELL = "\a"


@attrs.frozen
class Form:
    """What may be typed: up to `limit` characters; a `text` may have tabs, and with `multiline` many lines."""

    limit: int = LONGEST_COMMAND
    text: bool = False
    multiline: bool = False

    def room(self, begins: str) -> int:
        """How long something may become that begins with this character."""
        if begins == COMMAND:
            return max(self.limit, LONGEST_COMMAND)
        return self.limit + (self.text and begins == LITERAL)

    def is_ended_by_enter(self, typed: str) -> bool:
        """Whether Enter ends it, or is one more line of it."""
        return not self.multiline or typed.startswith(COMMAND) or typed.strip() == CLOSE


@attrs.frozen
class Line:
    """What was typed, and when its first key came, on the clock of the caller, in seconds."""

    text: str = attrs.field(repr=False)
    started: float


@attrs.frozen
class TooLong:
    """A key was refused because of this limit; what was typed until then still stands."""

    limit: int


@attrs.frozen
class ManyLines:
    """Several lines came at once where one is asked for; none of them stands."""


@attrs.frozen
class Emptied:
    """The person has thrown away a text of several lines."""


Typed: TypeAlias = Line | TooLong | ManyLines | Emptied


class Keyboard:
    """See the module header; times in seconds of the caller's clock."""

    def __init__(self, now: float, characters: Characters | None = None) -> None:
        self._characters = characters or Characters()
        self._form = Form()
        self._text: list[str] = []
        self._started: float | None = None
        self._ended: float | None = None
        self._quiet_until: float | None = None
        self._typed: list[Typed] = []
        self._echo = ""
        self._rest(now)

    @property
    def typed(self) -> str:
        """The line that is being typed, as it is drawn; the last one of a longer text."""
        line = "".join(self._text).rpartition("\n")[2] if self._ended is None else ""
        return "".join(map(self._drawn, line))

    @property
    def begun(self) -> bool:
        """Whether something is being typed."""
        return bool(self._text)

    @property
    def count(self) -> str:
        """How much of a text has been typed, and how much may be; empty where no text is asked for."""
        begins = self._text[:1]
        if not self._form.text or begins == [COMMAND]:
            return ""
        return f"{len(self._text) - (begins == [LITERAL])}/{self._form.limit} "

    @property
    def ready(self) -> bool:
        """Whether keys count, and nothing that they have ended is still looked at."""
        return self._quiet_until is None and self._ended is None

    def ask(self, form: Form, now: float, text: str = "") -> str:
        """Something new is on the screen: what was typed for something else, which is forgotten.

        Nothing counts until the keys rest; `text` stands then as if it had been typed.
        """
        forgotten = "".join(self._text)
        self._form, self._text = form, list(text)
        self._started = self._ended = None
        self._rest(now)
        return forgotten

    # -- time ------------------------------------------------------------------------------------------------

    def look_at_clock(self, now: float) -> None:
        """What was waiting for the keys to rest, and has waited long enough, counts."""
        if self._quiet_until is not None and now >= self._quiet_until:
            self._quiet_until = None
        if self._ended is not None and now >= self._ended + PASTE_SECONDS:
            assert self._started is not None
            self._typed.append(Line("".join(self._text), self._started))
            self._text = []
            self._started = self._ended = None

    def next_in(self, now: float) -> float | None:
        """Seconds until the clock has to be looked at; None while only a key can change anything."""
        if self._ended is not None:
            return max(0.0, self._ended + PASTE_SECONDS - now)
        return None if self._quiet_until is None else max(0.0, self._quiet_until - now)

    def take(self) -> list[Typed]:
        """What was typed since the last time."""
        typed, self._typed = self._typed, []
        return typed

    def take_echo(self) -> str:
        """What the terminal has to draw for the keys since the last time."""
        echo, self._echo = self._echo, ""
        return echo

    # -- keys ------------------------------------------------------------------------------------------------

    def feed(self, data: bytes, now: float) -> None:
        """Take keys."""
        if self._quiet_until is not None:
            self._quiet_until = now + QUIET_SECONDS
            return
        for key in self._decoder.decode(data):
            if not self._is_escape(key):
                self._take_key(key, now)
            if self._quiet_until is not None:  # what came with a key that was refused is refused too
                return

    def _take_key(self, key: str, now: float) -> None:
        if self._ended is not None:
            if key not in _ENTER:
                self._refuse_lines(now)
            return
        ends = key in _ENTER or (key == _END and self._form.multiline)
        if ends and not self._text:  # a stray one
            self._echo += "\n"
            self._started = None
            return
        if self._started is None:
            self._started = now
        if key in _ENTER and not self._form.is_ended_by_enter("".join(self._text)):
            self._add("\n", now)
        elif ends:
            self._ended = now
            self._echo += "\n"
        else:
            self._edit(key, now)

    def _edit(self, key: str, now: float) -> None:
        if key in _ERASE:
            self._erase(1)
        elif key == _KILL and self._text[-1:] == ["\n"]:
            self._text = []
            self._typed.append(Emptied())
        elif key == _KILL:
            self._erase(len(self._text))
        elif not _is_control(key) or (self._form.text and key == _TAB):
            self._add(key, now)

    def _add(self, key: str, now: float) -> None:
        begins = self._text[0] if self._text else key
        if len(self._text) >= (room := self._form.room(begins)):
            self._typed.append(TooLong(room - (begins == LITERAL)))
            self._echo += BELL
            self._rest(now)
        else:
            self._text.append(key)
            self._echo += "\n" if key == "\n" else self._drawn(key)

    def _erase(self, count: int) -> None:
        """Erase so many characters, but none of a line above: what is there cannot be reached any more."""
        columns = 0
        while count and self._text and self._text[-1] != "\n":
            columns += sum(map(columns_of, self._drawn(self._text.pop())))
            count -= 1
        self._echo += "\b" * columns + " " * columns + "\b" * columns

    def _refuse_lines(self, now: float) -> None:
        self._typed.append(ManyLines())
        self._text = []
        self._started = self._ended = None
        self._rest(now)

    def _rest(self, now: float) -> None:
        """Nothing counts until the keys rest, nor does the half of a key that has come."""
        self._quiet_until = now + QUIET_SECONDS
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._in_escape = ""

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

    def _drawn(self, key: str) -> str:
        """A typed character as it may be put on the screen; the answer keeps it as it is."""
        return self._characters.shown(key)


def _is_control(key: str) -> bool:
    return key < " " or "\x7f" <= key <= "\x9f"
