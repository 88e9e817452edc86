"""Keys become lines, and only keys that were meant for what is on the screen."""

from __future__ import annotations

import pytest

from broker.presenters.characters import Characters
from broker.presenters.keyboard import (
    LONGEST_COMMAND,
    PASTE_SECONDS,
    QUIET_SECONDS,
    Emptied,
    Form,
    Keyboard,
    Line,
    ManyLines,
    TooLong,
    Typed,
)

TEXT = Form(10, text=True)
LINES = Form(10, text=True, multiline=True)


def armed_keyboard(form: Form | None = None) -> Keyboard:
    keyboard = Keyboard(0.0)
    keyboard.ask(form or Form(), 0.0)
    keyboard.look_at_clock(QUIET_SECONDS)
    assert keyboard.ready
    return keyboard


def type(keyboard: Keyboard, keys: bytes | str, now: float = 10.0) -> list[Typed]:
    """What is typed once these keys have come and rested for as long as an Enter has to."""
    keyboard.feed(keys if isinstance(keys, bytes) else keys.encode(), now)
    keyboard.look_at_clock(now + PASTE_SECONDS)
    return keyboard.take()


def test_a_line_knows_when_its_first_key_came() -> None:
    keyboard = armed_keyboard()
    assert type(keyboard, "h", 10.0) == []
    assert type(keyboard, "i", 11.0) == []
    assert type(keyboard, "\r", 12.0) == [Line("hi", 10.0)]
    assert type(keyboard, "!\n", 13.0) == [Line("!", 13.0)]


def test_a_key_that_was_erased_again_counts_as_the_first() -> None:
    keyboard = armed_keyboard()
    type(keyboard, "1\x7f", 10.0)
    assert type(keyboard, "2\n", 20.0) == [Line("2", 10.0)]


@pytest.mark.requirement("G13")
def test_a_key_that_is_held_down_never_counts() -> None:
    keyboard = Keyboard(0.0)
    now = 0.0
    for _ in range(100):
        now += 0.03
        keyboard.look_at_clock(now)
        assert type(keyboard, "\r", now) == []
    assert keyboard.next_in(now) == pytest.approx(QUIET_SECONDS)
    now += QUIET_SECONDS
    keyboard.look_at_clock(now)
    assert type(keyboard, "1\r", now) == [Line("1", now)]


@pytest.mark.requirement("G13")
def test_what_was_typed_for_something_else_is_given_back_and_forgotten() -> None:
    keyboard = armed_keyboard()
    type(keyboard, "approve", 10.0)
    assert keyboard.ask(Form(), 11.0) == "approve"
    assert keyboard.typed == ""
    assert type(keyboard, "1\r", 11.1) == []
    keyboard.look_at_clock(11.1 + QUIET_SECONDS)
    assert type(keyboard, "2\r", 20.0) == [Line("2", 20.0)]


@pytest.mark.requirement("G13")
def test_an_enter_is_given_up_for_what_comes_before_it_counts() -> None:
    keyboard = armed_keyboard()
    keyboard.feed(b"1\r", 10.0)
    assert keyboard.ask(Form(), 10.05) == "1"
    keyboard.look_at_clock(11.0)
    assert keyboard.take() == []


def test_a_text_that_is_given_stands_as_typed_and_is_as_old_as_the_next_key() -> None:
    keyboard = armed_keyboard()
    keyboard.ask(TEXT, 10.0, "Rex")
    assert keyboard.typed == "Rex"
    keyboard.look_at_clock(20.0)
    assert type(keyboard, "y\r", 20.0) == [Line("Rexy", 20.0)]


def test_a_character_may_come_in_pieces() -> None:
    keyboard = armed_keyboard()
    assert [typed for byte in "猫\n".encode() for typed in type(keyboard, bytes([byte]))] == [
        Line("猫", 10.0)
    ]


def test_half_a_character_is_not_kept_for_the_next_question() -> None:
    keyboard = armed_keyboard()
    type(keyboard, "猫".encode()[:2])
    keyboard.ask(Form(), 11.0)
    keyboard.look_at_clock(20.0)
    assert type(keyboard, "1\n") == [Line("1", 10.0)]


@pytest.mark.parametrize("keys", [b"\x1b[A", b"\x1b[1;5C", b"\x1bOP", b"\x1bx", b"\x1b[3~", b"\x1b[I"])
def test_escape_sequences_are_swallowed(keys: bytes) -> None:
    assert type(armed_keyboard(), b"a" + keys + b"b\n") == [Line("ab", 10.0)]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("ab\x7fc", "ac"),
        ("ab\x08\x7f\x7fc", "c"),
        ("abc\x15d", "d"),
        ("a\x00\x07\t\x04b", "ab"),
        ("a\u202eb", "a\u202eb"),
    ],
)
def test_lines_are_edited(keys: str, text: str) -> None:
    assert type(armed_keyboard(), keys + "\n") == [Line(text, 10.0)]


@pytest.mark.requirement("G08")
def test_the_echo_never_holds_a_control_character_of_the_input() -> None:
    keyboard = armed_keyboard(LINES)
    keyboard.feed(
        bytes(range(9)) + b"\x0b\x0c" + bytes(range(14, 256)) + "\u202e\u2028".encode() + b"\n", 1.0
    )
    assert all(char.isprintable() or char in "\n\b\a" for char in keyboard.take_echo())


def test_erasing_clears_what_was_drawn() -> None:
    keyboard = armed_keyboard()
    keyboard.feed("猫a\x7f\x7f".encode(), 1.0)
    assert keyboard.take_echo() == "猫a" + "\b \b" + "\b\b  \b\b"


def test_a_terminal_without_a_character_shows_its_number() -> None:
    keyboard = Keyboard(0.0, Characters("ascii"))
    keyboard.look_at_clock(QUIET_SECONDS)
    assert type(keyboard, "é\x7fë\n") == [Line("ë", 10.0)]
    assert keyboard.take_echo() == "<U+00E9>" + "\b" * 8 + " " * 8 + "\b" * 8 + "<U+00EB>\n"


# -- pasting ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("G13")
@pytest.mark.parametrize("form", [Form(), TEXT])
@pytest.mark.parametrize("pieces", [["a\nb\nc\n"], ["a\n", "b\n"], ["a\n\n\n", "b"], ["a\r\nb"]])
def test_of_several_lines_that_come_at_once_none_counts(form: Form, pieces: list[str]) -> None:
    keyboard = armed_keyboard(form)
    for number, piece in enumerate(pieces):
        keyboard.feed(piece.encode(), 10.0 + number * PASTE_SECONDS / 3)
    assert keyboard.take() == [ManyLines()]
    keyboard.feed(b"more\n", 10.1)
    keyboard.look_at_clock(10.1 + QUIET_SECONDS)
    assert keyboard.take() == []
    assert type(keyboard, "d\n", 20.0) == [Line("d", 20.0)]


@pytest.mark.parametrize("keys", ["a\n", "a\r\n", "a\n\n"])
def test_one_line_that_comes_at_once_counts(keys: str) -> None:
    assert type(armed_keyboard(), keys) == [Line("a", 10.0)]


@pytest.mark.requirement("G03")
@pytest.mark.parametrize(("form", "limit"), [(Form(), LONGEST_COMMAND), (TEXT, 10), (LINES, 10)])
def test_a_paste_beyond_the_limit_is_refused_at_the_keyboard(form: Form, limit: int) -> None:
    keyboard = armed_keyboard(form)
    for part in range(0, 100_000, 1_000):
        keyboard.feed(b"a" * 1_000, 10.0 + part / 1e6)
    keyboard.feed(b"\r\x04", 10.2)
    assert keyboard.take() == [TooLong(limit)]
    assert keyboard.typed == "a" * limit
    assert len(keyboard.take_echo()) == limit + 1  # and the bell
    keyboard.look_at_clock(20.0)
    assert type(keyboard, "\x7fb\x04" if form.multiline else "\x7fb\r", 20.0) == [
        Line("a" * (limit - 1) + "b", 10.0)
    ]


@pytest.mark.parametrize("form", [TEXT, LINES])
def test_what_stands_before_a_text_does_not_count_against_its_limit(form: Form) -> None:
    keyboard = armed_keyboard(form)
    assert type(keyboard, "\\" + "x" * 10) == []
    assert keyboard.count == "10/10 "
    assert type(keyboard, "x") == [TooLong(10)]


@pytest.mark.parametrize("form", [TEXT, LINES])
def test_a_command_may_be_longer_than_the_text(form: Form) -> None:
    command = ":revoke " + "a" * 32
    assert type(armed_keyboard(form), command + "\r") == [Line(command, 10.0)]


# -- texts -----------------------------------------------------------------------------------------------------


def test_a_text_of_many_lines_ends_with_ctrl_d_and_is_as_old_as_its_first_key() -> None:
    keyboard = armed_keyboard(LINES)
    assert type(keyboard, "one\r", 10.0) == []
    assert type(keyboard, "\rt\two", 11.0) == []
    assert keyboard.typed == "t<U+0009>wo"
    assert keyboard.count == "9/10 "
    assert type(keyboard, "\x04", 12.0) == [Line("one\n\nt\two", 10.0)]


def test_many_lines_may_be_pasted_where_they_are_asked_for() -> None:
    keyboard = armed_keyboard(LINES)
    assert type(keyboard, "a\nx\n:b\n.\n") == []
    assert type(keyboard, "\x04", 11.0) == [Line("a\nx\n:b\n.\n", 10.0)]


@pytest.mark.requirement("G13", "CP-3.5")
@pytest.mark.parametrize("form", [Form(), TEXT, LINES])
@pytest.mark.parametrize("keys", ["\r", "\r\r\r\r", "\r\x04", "a\x7f\r"])
def test_a_stray_enter_ends_nothing_and_nothing_comes_too_quickly_after_it(form: Form, keys: str) -> None:
    keyboard = armed_keyboard(form)
    assert type(keyboard, keys) == []
    assert type(keyboard, "x\r") == [Line("x", 10.0)]


@pytest.mark.parametrize("keys", ["x\r", " x \r", ":hide\r"])
def test_closing_and_commanding_end_with_enter_before_a_text_has_begun(keys: str) -> None:
    assert type(armed_keyboard(LINES), keys) == [Line(keys[:-1], 10.0)]


def test_a_longer_text_can_be_thrown_away() -> None:
    keyboard = armed_keyboard(LINES)
    assert type(keyboard, "a\nb\x15") == []
    assert keyboard.typed == ""
    assert keyboard.begun
    assert type(keyboard, "\x7f\x15", 11.0) == [Emptied()]
    assert not keyboard.begun
    assert type(keyboard, "c\x04", 12.0) == [Line("c", 10.0)]
