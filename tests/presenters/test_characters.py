"""What a terminal can show, and in how many columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.presenters.characters import Characters, Paper, columns_of
from protocols.text import neutralize


@given(st.text(st.characters(categories=["L", "N", "Zs"]), max_size=60), st.integers(2, 30))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    assert "".join(Paper().wrapped(text, width)) == text


def test_columns_of_characters() -> None:
    assert [columns_of(char) for char in "a猫\u0301\u200d"] == [1, 2, 0, 0]


@pytest.mark.requirement("G08")
@given(st.text())
def test_where_everything_can_be_shown_text_is_only_made_safe(text: str) -> None:
    assert Characters().shown(text, multiline=True) == neutralize(text, multiline=True)


@pytest.mark.requirement("G08", "CP-6.3")
@given(st.text())
def test_an_ascii_terminal_gets_ascii_and_nothing_is_dropped(text: str) -> None:
    shown = Characters("ascii").shown(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) >= len(text)


def test_what_a_character_set_does_not_have_is_written_out() -> None:
    assert Characters("ascii").shown("né 猫") == "n<U+00E9> <U+732B>"
    assert Characters("latin-1").shown("né 猫") == "né <U+732B>"
