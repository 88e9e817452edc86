"""What looks the same reads the same (CP-4.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.lookalikes import reading

pytestmark = pytest.mark.requirement("CP-4.4")


@pytest.mark.parametrize(
    "name",
    [
        *("Aion", "AION", "aion", "А\u0456о\u043f", "Α\u0399ΟΝ", "A 1 0 n", "Áïôñ", "«Aion»", "Alon"),
        *("A\u200bio\u2060n", "ａｉｏｎ"),
    ],
)
def test_it_passes_for_aion(name: str) -> None:
    assert reading(name) == reading("Aion")


@pytest.mark.parametrize("name", ["Aon", "Aions", "Ion", "An ion", "爱音", ""])
def test_it_does_not_pass_for_aion(name: str) -> None:
    assert reading(name) != reading("Aion")


def test_two_letters_that_look_like_one_are_one() -> None:
    assert reading("Systern") == reading("System")
    assert reading("vvork") == reading("work")


def test_other_scripts_keep_their_letters_and_pictures_have_none() -> None:
    assert reading("爱 音") == "爱音"
    assert reading("👻 …") == ""


@given(st.text(max_size=40))
def test_a_reading_reads_as_itself(name: str) -> None:
    assert reading(reading(name)) == reading(name)
