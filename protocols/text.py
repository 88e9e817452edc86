"""Text of clients made safe to look at (presenter.md, neutralizing; G08).

A person decides by what is drawn, so nothing in a text may repaint, reorder or hide it. Control, format,
line- and paragraph-separator, private-use and unassigned code points, and lone surrogates, become visible
as `<U+202E>`. What is assigned is what this Python's Unicode tables know.

Joiners are format characters that some writing needs, so they stay in their place and only there:

- ZWJ between two pictographs, where the first may carry a variation selector or a skin tone; - ZWJ after,
and ZWNJ between, letters or marks of a script whose letters join (Arabic, Devanagari and others).

Ordinary right-to-left text, spaces, combining marks and variation selectors stay. The tag characters of
regional flags do not: they can hide a whole message.
"""

from __future__ import annotations

import re
import unicodedata

ZWNJ = "\u200c"
ZWJ = "\u200d"

_JOINER = re.compile(f"[{ZWNJ}{ZWJ}]")
_PICTOGRAPHS = (
    "\u2194\u2195\u2600-\u27bf\u2b1b\u2b1c\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
_PICTOGRAPH = re.compile(f"[{_PICTOGRAPHS}]")
_ENDS_WITH_PICTOGRAPH = re.compile(rf"[{_PICTOGRAPHS}][\ufe0f\U0001f3fb-\U0001f3ff]?\Z")
_JOINING_SCRIPT = re.compile(
    "[\u0600-\u077f\u07c0-\u07ff\u0840-\u0dff"  # Arabic, Syriac, N'Ko, Mandaic; Devanagari to Sinhala
    "\u1000-\u109f\u1780-\u18af"  # Myanmar; Khmer, Mongolian
    "\ua840-\ua87f\ua8e0-\ua8ff\ua980-\ua9ff\uaa60-\uaa7f\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010ac0-\U00010aff\U00010b80-\U00010baf\U00010d00-\U00010d3f\U00010f30-\U00010fcf"
    "\U00011000-\U0001124f\U0001e900-\U0001e95f]"  # Manichaean, Rohingya, Sogdian; Brahmi and kin; Adlam
)
_NO_INK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def neutralize(text: str, *, multiline: bool) -> str:
    """The text with every code point that could repaint, reorder or hide it written out; idempotent.

    LF stays only where `multiline` is true.
    """
    if text.isprintable():  # of the characters that are not, only some spaces, LF and joiners can stay
        return text
    shown = "".join(char if _stays(char, multiline) else _visible(char) for char in text)
    # Joiners come second: what stands beside them is final by now, so a second run decides the same.
    return _JOINER.sub(lambda found: found[0] if _joins(shown, found.start()) else _visible(found[0]), shown)


def visible_length(text: str) -> int:
    """The code points that put ink on the screen: no spaces, joiners, fillers or variation selectors."""
    return sum(char.isprintable() and not char.isspace() and not _NO_INK.match(char) for char in text)


def _visible(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def _stays(char: str, multiline: bool) -> bool:
    if char == "\n":
        return multiline
    return char.isprintable() or char in (ZWJ, ZWNJ) or unicodedata.category(char) == "Zs"


def _joins(text: str, at: int) -> bool:
    before, after = text[max(at - 2, 0) : at], text[at + 1 : at + 2]
    if text[at] == ZWJ and _ENDS_WITH_PICTOGRAPH.search(before) and _PICTOGRAPH.match(after):
        return True
    return _is_joining_letter(before[-1:]) and (text[at] == ZWJ or _is_joining_letter(after))


def _is_joining_letter(char: str) -> bool:
    return bool(_JOINING_SCRIPT.match(char)) and unicodedata.category(char)[0] in "LM"
