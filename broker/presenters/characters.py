"""What a terminal can show: text made safe to look at, and how many columns it takes.

Everything that is drawn goes through `Characters.shown`.  What the terminal's character set does not have is
written out as `<U+732B>`, like what could repaint, reorder or hide a text (`protocols.text`): a letter that the
terminal drops or replaces would be something else than what was asked, and one that it takes for several columns
would break lines where no bar stands before them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import attrs

from broker.charset import visible
from protocols.text import neutralize


@attrs.frozen
class Characters:
    """The characters of one terminal; `encoding` names a codec of Python's."""

    encoding: str = "utf-8"

    def shown(self, text: str, *, multiline: bool = False) -> str:
        """The text as it may be drawn; LF stays only where `multiline` is true."""
        safe = neutralize(text, multiline=multiline)
        return visible(safe, self.encoding).decode(self.encoding)


@attrs.frozen
class Paper:
    """What lines are drawn on: `width` columns of these characters."""

    width: int = 80
    characters: Characters = Characters()

    def wrapped(self, text: str, width: int | None = None) -> Iterator[str]:
        """The text, safe to look at, in lines of at most `width` columns: by default those of the paper."""
        columns = self.width if width is None else width
        for line in self.characters.shown(text, multiline=True).split("\n"):
            row, used = "", 0
            for char in line:
                takes = columns_of(char)
                if row and used + takes > columns:
                    yield row
                    row, used = "", 0
                row, used = row + char, used + takes
            yield row


def columns_of(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
