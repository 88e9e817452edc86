"""Keys become lines, and only keys that were meant for what is on the screen."""

from __future__ import annotations

import pytest

from broker.presenters.keyboard import QUIET_SECONDS, Keyboard, Line, columns_of


def armed_keyboard() -> Keyboard:
    keyboard = Keyboard(0.0)
    keyboard.look_at_clock(QUIET_SECONDS)
    assert keyboard.armed
    return keyboard


def test_a_line_knows_when_its_first_key_came() -> None:
    keyboard = armed_keyboard()
    assert keyboard.feed(b"h", 10.0) == []
    assert keyboard.feed(b"i", 11.0) == []
    assert keyboard.feed(b"\r", 12.0) == [Line("hi", 10.0)]
    assert keyboard.feed(b"\n", 13.0) == [Line("", 13.0)]


def test_a_key_that_was_erased_again_counts_as_the_first() -> None:
    keyboard = armed_keyboard()
    keyboard.feed(b"1\x7f", 10.0)
    assert keyboard.feed(b"2\n", 20.0) == [Line("2", 10.0)]


@pytest.mark.requirement("G13")
def test_a_key_that_is_held_down_never_counts() -> None:
    keyboard = Keyboard(0.0)
    now = 0.0
    for _ in range(100):
        now += 0.03
        keyboard.look_at_clock(now)
        assert keyboard.feed(b"\r", now) == []
    keyboard.look_at_clock(now + QUIET_SECONDS)
    assert keyboard.feed(b"\r", now + QUIET_SECONDS) == [Line("", now + QUIET_SECONDS)]


@pytest.mark.requirement("G13")
def test_what_was_typed_for_something_else_is_forgotten() -> None:
    keyboard = armed_keyboard()
    keyboard.feed(b"approve", 10.0)
    keyboard.quiet(11.0)
    assert keyboard.typed == ""
    assert keyboard.feed(b"1\r", 11.1) == []
    keyboard.look_at_clock(11.1 + QUIET_SECONDS)
    assert keyboard.feed(b"2\r", 20.0) == [Line("2", 20.0)]


def test_a_character_may_come_in_pieces() -> None:
    keyboard = armed_keyboard()
    lines = [line for byte in "猫\n".encode() for line in keyboard.feed(bytes([byte]), 1.0)]
    assert [line.text for line in lines] == ["猫"]


@pytest.mark.parametrize("keys", [b"\x1b[A", b"\x1b[1;5C", b"\x1bOP", b"\x1bx", b"\x1b[3~", b"\x1b[I"])
def test_escape_sequences_are_swallowed(keys: bytes) -> None:
    keyboard = armed_keyboard()
    assert [line.text for line in keyboard.feed(b"a" + keys + b"b\n", 1.0)] == ["ab"]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (b"ab\x7fc", "ac"),
        (b"ab\x08\x7f\x7fc", "c"),
        (b"abc\x15d", "d"),
        (b"a\x00\x07\tb", "ab"),
        ("a\u202eb".encode(), "a\u202eb"),
    ],
)
def test_lines_are_edited(keys: bytes, text: str) -> None:
    assert [line.text for line in armed_keyboard().feed(keys + b"\n", 1.0)] == [text]


@pytest.mark.requirement("G08")
def test_the_echo_never_holds_a_control_character_of_the_input() -> None:
    keyboard = armed_keyboard()
    keyboard.feed(bytes(range(256)) + "\u202e\u2028".encode() + b"\n", 1.0)
    assert all(char.isprintable() or char in "\n\b" for char in keyboard.take_echo())


def test_erasing_clears_what_was_drawn() -> None:
    keyboard = armed_keyboard()
    keyboard.feed("猫a\x7f\x7f".encode(), 1.0)
    assert keyboard.take_echo() == "猫a" + "\b \b" + "\b\b  \b\b"


def test_columns_of_characters() -> None:
    assert [columns_of(char) for char in "a猫\u0301\u200d"] == [1, 2, 0, 0]
