"""How a short name reads to a person: what looks the same has the same reading (CP-4.4).

Case, accents, spaces, punctuation and invisible characters make no difference to the reading, nor does which
script a letter is from where another one's looks the same.  The table holds the letters of Cyrillic, Greek and
Latin that pass for one of a to z, and the digits that do.  It is small on purpose: it is there to keep a program
from calling itself what the host or the system is called, and beside every name stand the program that the kernel
names and the code that the person compares.
"""

from __future__ import annotations

import unicodedata

_LOOKS = {
    "a": "аαɑ",
    "b": "ьβʙ",
    "c": "сϲᴄ",
    "d": "ԁđ",
    "e": "еεҽɛ",
    "g": "ɡ",
    "h": "һнηħ",
    "j": "јʝ",
    "k": "кκ",
    "l": "iıіι1ӏɩłǀ",  # i and l are told apart by a dot that few fonts draw clearly
    "m": "мμ",
    "n": "пνɴ",
    "o": "оοσ0øօ",
    "p": "рρ",
    "q": "ԛ",
    "r": "гʀ",
    "s": "ѕ5ꜱ",
    "t": "тτŧ",
    "u": "υʋ",
    "v": "ѵ",
    "w": "ԝωѡ",
    "x": "хχ×",
    "y": "уγү",
    "z": "ᴢ",
}
_PLAIN = str.maketrans({look: plain for plain, looks in _LOOKS.items() for look in looks})
_PAIRS = (("rn", "m"), ("vv", "w"))


def reading(name: str) -> str:
    """The letters and digits that a person reads; "" where there are none."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    read = "".join(char for char in folded.translate(_PLAIN) if char.isalnum())
    for pair, letter in _PAIRS:
        read = read.replace(pair, letter)
    return read
