"""presenter.md, neutralizing: nothing in a client's text repaints, reorders or hides what a person reads."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocols.strict_json import encode
from protocols.text import ZWJ, ZWNJ, neutralize, visible_length

BLNS = Path(__file__).parents[2] / "fixtures" / "corpora" / "blns" / "blns.json"
NAUGHTY: list[str] = json.loads(BLNS.read_text(encoding="utf-8"))

HIDDEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
tricky = st.text(
    st.sampled_from(
        "a<>U+ \n\r\x1b\u202e\u200b\ufeff\ud800\ue000\U000e0041"  # Latin, and what hides or repaints
        f"👩🏽🚀❤\ufe0f♂{ZWJ}{ZWNJ}می\u0915\u094d\u061cא"  # and what joiners stand beside
    )
)
any_text = st.text(st.characters()) | tricky

pytestmark = pytest.mark.requirement("G08", "CP-6.3")


def hidden_in(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in HIDDEN}


@given(any_text, st.booleans())
def test_only_line_feeds_and_joiners_can_remain(text: str, multiline: bool) -> None:
    allowed = {ZWJ, ZWNJ, "\n"} if multiline else {ZWJ, ZWNJ}
    assert hidden_in(neutralize(text, multiline=multiline)) <= allowed


@given(any_text, st.booleans())
@example(f"👩{ZWJ}\U0001fae8", False)
@example(f"\u061c{ZWJ}م", False)
@example(f"م{ZWNJ}{ZWNJ}م", False)
@example(f"👩{ZWJ}{ZWJ}🚀", False)
def test_a_second_run_changes_nothing(text: str, multiline: bool) -> None:
    once = neutralize(text, multiline=multiline)
    assert neutralize(once, multiline=multiline) == once


@given(any_text)
def test_nothing_is_lost(text: str) -> None:
    shown = neutralize(text, multiline=False)
    for char in hidden_in(text) - {ZWJ, ZWNJ}:
        assert f"<U+{ord(char):04X}>" in shown


@given(any_text)
def test_what_was_neutralized_can_be_written(text: str) -> None:
    encode(neutralize(text, multiline=True))


@given(st.text(st.characters(exclude_categories=HIDDEN)))
def test_visible_text_is_left_alone(text: str) -> None:
    assert neutralize(text, multiline=False) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Delete report\u202efdp.exe\u202c now?", "Delete report<U+202E>fdp.exe<U+202C> now?"),
        ("Al\u200bow", "Al<U+200B>ow"),
        ("Deny\x1b[2K\rAllow", "Deny<U+001B>[2K<U+000D>Allow"),
        ("a\u2028b\u2029c\x85d\x7f", "a<U+2028>b<U+2029>c<U+0085>d<U+007F>"),
        ("\ud83d\ue000\uffff\U000e0041\ufeff", "<U+D83D><U+E000><U+FFFF><U+E0041><U+FEFF>"),
        ("Al\xadlow", "Al<U+00AD>low"),
    ],
)
def test_what_could_deceive_is_written_out(text: str, shown: str) -> None:
    assert neutralize(text, multiline=False) == shown


@pytest.mark.parametrize(
    "text",
    [
        "למחוק?",
        "هل تريد الحذف؟",
        f"می{ZWNJ}خواهم",
        f"क्{ZWJ}ष",
        f"അവന്{ZWJ}",
        f"🐈{ZWJ}⬛",
        f"👩🏽{ZWJ}🚀",
        f"❤\ufe0f{ZWJ}🔥",
        f"🏴{ZWJ}☠\ufe0f",
        f"👩{ZWJ}❤\ufe0f{ZWJ}💋{ZWJ}👨",
        f"🏃🏽{ZWJ}♀\ufe0f",
        "🇫🇷 1\ufe0f\u20e3",
        "non\xa0breaking\u3000wide",
        "Zalgo\u0310\u0327",
    ],
)
def test_ordinary_writing_stays(text: str) -> None:
    assert neutralize(text, multiline=False) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Al{ZWJ}low", "Al<U+200D>low"),
        (f"Al{ZWNJ}low", "Al<U+200C>low"),
        (f"👩{ZWNJ}🚀", "👩<U+200C>🚀"),
        (f"👩{ZWJ} 🚀", "👩<U+200D> 🚀"),
        (f"{ZWJ}👩", "<U+200D>👩"),
        (f"م{ZWNJ}", "م<U+200C>"),
        (f"م{ZWJ}{ZWJ}م", f"م{ZWJ}<U+200D>م"),
        (f"ש{ZWJ}ל", "ש<U+200D>ל"),
    ],
)
def test_a_joiner_out_of_its_place_is_written_out(text: str, shown: str) -> None:
    assert neutralize(text, multiline=False) == shown


def test_a_line_feed_stays_only_where_lines_are() -> None:
    assert neutralize("a\n\tb", multiline=True) == "a\n<U+0009>b"
    assert neutralize("a\nb", multiline=False) == "a<U+000A>b"


@pytest.mark.parametrize("multiline", [False, True])
def test_naughty_strings_are_tamed(multiline: bool) -> None:
    for text in NAUGHTY:
        shown = neutralize(text, multiline=multiline)
        assert hidden_in(shown) <= {ZWJ, ZWNJ} | ({"\n"} if multiline else set()), ascii(text)
        assert neutralize(shown, multiline=multiline) == shown


@pytest.mark.requirement("CP-5.6")
@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("  \t\n", 0),
        ("\u200b\u2060\ufeff\u3164\u115f\u2800\ufe0f\U000e0100\u034f", 0),
        ("\ud800\ue000\uffff\x1b", 0),
        ("my agent", 7),
        ("né 猫🐈", 4),
        (f"👩{ZWJ}🚀", 2),
    ],
)
def test_only_code_points_with_ink_count(text: str, length: int) -> None:
    assert visible_length(text) == length
