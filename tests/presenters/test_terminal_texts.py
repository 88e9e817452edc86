"""What a person writes, and what asks for nothing, at a real terminal of 80 by 24."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from protocols.companion.capabilities import Interaction, Kind
from protocols.presenter.messages import (
    COMMITTED,
    Answer,
    Dismiss,
    Dismissed,
    Finished,
    Presented,
    User,
    rejected,
    too_late,
)
from tests.support.seat import Seat
from tests.support.table import NOTICE, bubble, presented, progress, question, text_question, updated

PASTE = "0123456789" * 10_000


@pytest.fixture
def ascii_seat() -> Iterator[Seat]:
    """A terminal that knows neither other characters nor any control of its own."""
    seat = Seat("--stdio", LC_ALL="C", TERM="dumb", NO_COLOR="1")
    yield seat
    seat.close()


# -- writing -----------------------------------------------------------------------------------------------


def test_a_person_writes_a_line(seat: Seat) -> None:
    shown = text_question("r1")
    seat.push(shown)
    assert seat.wait_for(Presented) == presented(shown)
    assert "Up to 10 characters" in seat.see("0/10 > ")
    seat.type("né 猫\r")
    answer = seat.wait_for(Answer)
    assert (answer.result, answer.digest) == ({"text": "né 猫"}, shown.digest)
    seat.reply(COMMITTED)
    seat.see("Your answer has been taken.")


def test_a_person_writes_many_lines(seat: Seat) -> None:
    seat.push(text_question("r1", multiline=True, max_length=40))
    seat.wait_for(Presented)
    seat.see("0/40 > ")
    seat.type("\rone\r")
    seat.see("4/40 > ")
    seat.type("\rthree\r")
    seat.see("11/40 > ")
    seat.type("\x04")
    assert seat.wait_for(Answer).result == {"text": "one\n\nthree"}


@pytest.mark.requirement("G13", "CP-3.5")
@pytest.mark.parametrize("multiline", [True, False])
def test_a_stray_enter_sends_nothing(seat: Seat, multiline: bool) -> None:
    seat.push(text_question("r1", multiline=multiline))
    seat.wait_for(Presented)
    seat.type("a\r")  # while the keys do not count yet
    seat.see("0/10 > ")
    seat.type("\r")
    assert seat.is_silent()
    seat.type("x\r")
    seat.wait_for(Dismissed)


@pytest.mark.requirement("G03")
@pytest.mark.parametrize(("multiline", "limit"), [(False, 1_000), (True, 4_000)])
def test_a_paste_of_a_hundred_thousand_characters_is_refused_at_the_keyboard(
    seat: Seat, multiline: bool, limit: int
) -> None:
    seat.push(text_question("r1", multiline=multiline, max_length=limit))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type(PASTE + "\r")
    seat.see(f"At most {limit} characters are possible")
    seat.see(f"{limit}/{limit} > ")
    assert seat.is_silent()
    seat.type("\x7f!\x04" if multiline else "\x7f!\r")
    assert seat.wait_for(Answer).result == {"text": PASTE[: limit - 1] + "!"}


@pytest.mark.requirement("G03", "G13")
@pytest.mark.parametrize("shown", [text_question("r1", max_length=1_000), question("r1")])
def test_a_paste_of_many_lines_does_not_answer_what_takes_one(seat: Seat, shown: Any) -> None:
    seat.push(shown)
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type("1\r2\rsome more of it\r" * 100)
    seat.see("none of them was taken")
    seat.see("> ")
    assert seat.is_silent()
    seat.type("1\r")
    seat.wait_for(Answer)


@pytest.mark.requirement("G14", "CP-3.10")
def test_a_text_that_comes_too_late_is_given_back(seat: Seat) -> None:
    seat.push(text_question("r1"))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type("Rex\r")
    seat.wait_for(Answer)
    seat.push(Dismiss(request_id="r1", reason="deadline"))
    seat.reply(too_late("expired", "deadline"))
    seat.see("Too late, that had ended before: its time is over.")
    seat.see("  | Rex")


def test_a_text_that_could_not_be_saved_is_sent_again_by_enter(seat: Seat) -> None:
    seat.push(text_question("r1"))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type("Rex\r")
    seat.wait_for(Answer)
    seat.reply(rejected("not_saved"))
    seat.wait_for(Presented)
    seat.see("3/10 > Rex")
    seat.type("\r")
    assert seat.wait_for(Answer).result == {"text": "Rex"}


def test_a_text_that_was_begun_is_given_back_when_its_question_goes(seat: Seat) -> None:
    seat.push(text_question("r1"))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type("Re")
    seat.see("Re")
    seat.push(Dismiss(request_id="r1", reason="cancelled_by_client"))
    seat.see("The question is gone: its program has taken it back.")
    seat.see("What you had typed has not been sent:")
    seat.see("  | Re")
    seat.see("> ")
    seat.type("\r")
    assert seat.is_silent()


# -- what asks for nothing ---------------------------------------------------------------------------------


def test_a_progress_is_drawn_as_it_changes_and_closed_by_its_number(seat: Seat) -> None:
    first = progress("g1")
    seat.push(first)
    assert seat.wait_for(Presented) == presented(first)
    seat.see("progress 1: [????????????????????] how much is done is not known")
    second = updated(first, fraction=0.5)
    seat.push(second)
    while seat.wait_for(Presented) != presented(second):
        pass  # the first one still stands
    seat.see("progress 1: [##########..........] 50% done")
    seat.see("> ")
    seat.type(":close 1\r")
    assert seat.wait_for(Dismissed).digest == second.digest
    seat.reply(COMMITTED)
    seat.push(Dismiss(request_id="g1", reason="dismissed_by_user"))
    seat.see("Closed.")


@pytest.mark.requirement("CP-2.11", "CP-3.6")
def test_an_animation_is_a_line_and_is_finished(seat: Seat) -> None:
    shown = bubble("a1", Kind.ANIMATION, title=None, expression="greeting")
    seat.push(shown)
    assert seat.wait_for(Presented) == presented(shown)
    seat.see("  | aion: greeting \\o")
    assert seat.wait_for(Finished).request_id == "a1"


def test_a_command_is_given_while_a_text_is_asked_for(seat: Seat) -> None:
    seat.push(text_question("r1"))
    seat.wait_for(Presented)
    seat.see("> ")
    seat.type(":hide\r")
    assert seat.wait_for(User) == User(action="hide")


def test_it_says_that_it_can_draw_what_it_can_draw(seat: Seat) -> None:
    assert seat.ready.person
    assert set(seat.ready.kinds) == set(Kind)
    assert set(seat.ready.interactions) == set(Interaction)
    pictures = [
        NOTICE,
        progress("g1", 0.1),
        bubble("a1", Kind.ANIMATION, title=None, expression="sad"),
        question("r1"),
    ]
    for shown in pictures:
        seat.push(shown)
        assert seat.wait_for(Presented) == presented(shown)


# -- a terminal that can do little -------------------------------------------------------------------------


@pytest.mark.requirement("G08", "CP-6.3")
def test_an_ascii_terminal_shows_everything_in_ascii(ascii_seat: Seat) -> None:
    shown = text_question("r1", title="Delete né\u202efdp.exe\u200b 猫?")
    ascii_seat.push(attrs.evolve(shown, source=attrs.evolve(shown.source, label="Zoë")))
    ascii_seat.wait_for(Presented)
    seen = ascii_seat.see("0/10 > ")
    assert "  | Delete n<U+00E9><U+202E>fdp.exe<U+200B> <U+732B>?" in seen
    assert "  | Zo<U+00EB>" in seen
    ascii_seat.type("Zoë\r")
    assert ascii_seat.wait_for(Answer).result == {"text": "Zoë"}
    assert all(byte in b"\r\n\b" or 32 <= byte < 127 for byte in ascii_seat.drawn)


@pytest.mark.requirement("G08")
def test_ordinary_right_to_left_text_is_drawn_as_it_is(seat: Seat) -> None:
    seat.push(question("r1", title="למחוק?"))
    seat.see("  | למחוק?")


def test_what_one_question_needs_fits_a_small_screen(seat: Seat) -> None:
    seat.push(text_question("r1", title="Why? " * 32, multiline=True, max_length=4_000))
    lines = seat.see("0/4000 > ").splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
