"""The desk: one question at a time, and a line answers what is drawn and nothing else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.presenters.keyboard import Form, ManyLines, TooLong
from protocols.presenter.client import Replied
from protocols.presenter.messages import (
    COMMITTED,
    Attention,
    Dismiss,
    Dismissed,
    PairingDecision,
    Presented,
    Settings,
    rejected,
    too_late,
)
from tests.support.table import (
    NOTICE,
    PAIRING,
    Table,
    answered,
    deferred,
    presented,
    question,
    text_question,
)


@pytest.fixture
def table() -> Table:
    return Table()


# -- answering ---------------------------------------------------------------------------------------------


def test_what_is_drawn_is_reported_and_then_asked_for(table: Table) -> None:
    shown = question("r1")
    assert table.show(shown) == [presented(shown)]
    drawn = table.text()
    assert "Read file?" in drawn
    assert "until (2030-01-02T12:34:56.000Z)" in drawn
    assert table.forms == [Form()]


def test_a_number_is_the_options_id_with_the_age_of_its_first_key(table: Table) -> None:
    shown = question("r1")
    table.show(shown)
    assert table.type("2", age=1.2341) == [answered(shown, "no", 1235)]


@pytest.mark.requirement("CP-3.5", "CP-3.7")
@pytest.mark.parametrize("text", ["", "   ", "0", "3", "-1", "Allow", "yes", "1 2", "²", "y", "00001"])
def test_nothing_is_chosen_by_an_empty_or_a_wrong_line(table: Table, text: str) -> None:
    table.show(question("r1"))
    assert table.type(text) == []


@pytest.mark.requirement("CP-3.5", "G14")
def test_x_closes_without_an_answer(table: Table) -> None:
    shown = question("r1")
    table.show(shown)
    assert table.type("x") == [
        Dismissed(request_id="r1", revision=shown.revision, digest=shown.digest, input_started_ms=250)
    ]


@pytest.mark.requirement("G13")
def test_a_second_line_before_the_reply_answers_nothing(table: Table) -> None:
    first, second = question("r1"), question("r2", "Delete folder?")
    table.show(first, second)
    assert table.type("1") == [answered(first, "yes")]
    assert table.type("1") == []
    assert table.show(Replied(1, COMMITTED)) == [presented(second)]


@pytest.mark.requirement("G14")
def test_too_late_is_shown_to_the_person(table: Table) -> None:
    table.show(question("r1"))
    table.type("1")
    table.text()
    table.show(Replied(1, too_late("cancelled", "cancelled_by_client")))
    assert "Too late, that had ended before: its program has taken it back." in table.text()
    assert table.type("1") == []


@pytest.mark.parametrize("reason", ["not_presented", "stale", "invalid", "not_armed", "not_saved"])
def test_what_was_rejected_is_drawn_and_asked_again(table: Table, reason: Any) -> None:
    shown = question("r1")
    table.show(shown)
    table.type("1")
    table.text()
    assert table.show(Replied(1, rejected(reason))) == [presented(shown)]
    drawn = table.text()
    assert "again" in drawn
    assert "Read file?" in drawn
    assert table.forms == [Form(), Form()]
    assert table.begun == ""
    assert table.type("1") == [answered(shown, "yes")]


# -- text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "text"),
    [("Rex", "Rex"), (" Rex ", " Rex "), ("\\x", "x"), ("\\\\x", "\\x"), ("\\:hide", ":hide"), ("X", "X")],
)
def test_a_text_is_passed_on_unchanged(table: Table, typed: str, text: str) -> None:
    table.show(text_question("r1"))
    [answer] = table.type(typed)
    assert answer.result == {"text": text}


@pytest.mark.requirement("G03")
def test_a_text_is_limited_at_the_keyboard_and_the_limit_is_shown(table: Table) -> None:
    table.show(text_question("r1"), text_question("r2", multiline=True))
    assert table.forms == [Form(10, text=True)]
    assert "Up to 10 characters" in table.text()
    table.desk.typed(TooLong(10), table.now)
    assert "At most 10 characters" in table.text()
    table.type("x")
    table.show(Replied(1, COMMITTED))
    assert table.forms[-1] == Form(10, text=True, multiline=True)


@pytest.mark.parametrize("typed", ["", " ", "\\", "\\ ", "\t"])
@pytest.mark.parametrize("multiline", [True, False])
def test_an_empty_text_is_not_sent(table: Table, typed: str, multiline: bool) -> None:
    table.show(text_question("r1", multiline=multiline))
    assert table.type(typed) == []


def test_a_longer_text_does_not_end_with_the_enter_of_its_last_line(table: Table) -> None:
    table.show(text_question("r1", multiline=True))
    [answer] = table.type("one\n\nx\n", age=9)
    assert answer.result == {"text": "one\n\nx"}
    assert answer.input_started_ms == 9_000


@pytest.mark.parametrize("multiline", [True, False])
def test_a_text_question_is_closed_by_x_alone(table: Table, multiline: bool) -> None:
    table.show(text_question("r1", multiline=multiline))
    assert [type(one) for one in table.type("x")] == [Dismissed]


@pytest.mark.requirement("G13")
def test_many_lines_at_once_answer_nothing_and_that_is_told(table: Table) -> None:
    table.show(text_question("r1"))
    table.desk.typed(ManyLines(), table.now)
    assert table.reported() == []
    assert "none of them was taken" in table.text()


@pytest.mark.requirement("G14")
def test_a_text_that_comes_too_late_is_given_back(table: Table) -> None:
    table.show(text_question("r1"))
    table.type("Rex")
    table.show(Dismiss(request_id="r1", reason="deadline"))
    table.text()
    table.show(Replied(1, too_late("expired", "deadline")))
    assert "its time is over.\nWhat you had typed has not been sent:\n  | Rex" in table.text()


@pytest.mark.parametrize("reason", ["not_saved", "not_armed"])
def test_a_text_that_was_rejected_stands_when_it_is_asked_again(table: Table, reason: Any) -> None:
    shown = text_question("r1", multiline=True)
    table.show(shown)
    table.type("Rex\nMia")
    assert table.show(Replied(1, rejected(reason))) == [presented(shown)]
    assert table.begun == "Rex\nMia"
    assert table.text().endswith("still stands:\n  | Rex\n  | Mia")


@pytest.mark.parametrize("ends", [[Dismiss(request_id="r1", reason="deadline")], [PAIRING]])
def test_a_text_that_was_begun_is_given_back_when_its_question_goes(table: Table, ends: list[Any]) -> None:
    table.show(text_question("r1"))
    table.begun = "Re\u202ex"
    table.show(*ends)
    assert "What you had typed has not been sent:\n  | Re<U+202E>x" in table.text()


def test_a_line_that_nothing_waits_for_is_given_back(table: Table) -> None:
    assert table.type("Rex") == []
    assert "has not been sent:\n  | Rex" in table.text()


def test_whoever_types_attends_to_the_question(table: Table) -> None:
    table.show(text_question("r1"), question("r2"))
    for typing in (False, True, True):
        table.desk.attend(typing=typing)
    assert table.reported() == [Attention(request_id="r1", held=True)]
    table.type("x")
    table.desk.attend(typing=False)
    assert table.reported() == [Attention(request_id="r1", held=False)]
    table.show(Replied(1, COMMITTED))
    table.desk.attend(typing=True)
    assert table.reported() == [Attention(request_id="r2", held=True)]


# -- one at a time -----------------------------------------------------------------------------------------


def test_others_are_deferred_counted_and_shown_in_turn(table: Table) -> None:
    first, second, third = question("r1"), question("r2"), question("r3")
    assert table.show(first, second, third) == [presented(first), deferred(second), deferred(third)]
    assert "2 wait until this is answered." in table.text()
    table.type("1")
    assert table.show(Replied(1, COMMITTED)) == [presented(second)]


def test_a_notice_waits_while_a_question_is_open(table: Table) -> None:
    shown = question("r1")
    assert table.show(shown, NOTICE) == [presented(shown), deferred(NOTICE)]
    table.type("x")
    assert table.show(Replied(1, COMMITTED)) == [presented(NOTICE)]


def test_a_notice_asks_for_nothing_and_keeps_nothing_waiting(table: Table) -> None:
    shown = question("r1")
    assert table.show(NOTICE, shown) == [presented(NOTICE), presented(shown)]
    assert table.forms == [Form()]


def test_what_is_withdrawn_is_said_and_makes_room(table: Table) -> None:
    first, second = question("r1"), question("r2")
    table.show(first, second)
    table.text()
    assert table.show(Dismiss(request_id="r1", reason="cancelled_by_client")) == [presented(second)]
    assert "The question is gone: its program has taken it back." in table.text()
    assert table.type("1") == [answered(second, "yes")]


def test_what_is_withdrawn_while_it_waits_is_never_shown(table: Table) -> None:
    table.show(question("r1"), question("r2"))
    table.show(Dismiss(request_id="r2", reason="deadline"))
    table.type("1")
    assert table.show(Replied(1, COMMITTED)) == []


def test_what_is_set_aside_for_others_comes_back(table: Table) -> None:
    first, second = question("r1"), question("r2")
    table.show(first, second)
    assert table.show(Dismiss(request_id="r1", reason="set_aside")) == [presented(second)]
    assert "others wait, so it makes room and comes back in its turn" in table.text()
    assert table.show(first) == [deferred(first)]
    table.type("1")
    assert table.show(Replied(1, COMMITTED)) == [presented(first)]


@pytest.mark.parametrize("reason", ["deadline", "muted_by_user", "key_revoked", "\x1b[2J\u202e"])
def test_why_a_question_has_gone_is_said_in_words(table: Table, reason: str) -> None:
    table.show(question("r1"))
    table.text()
    table.show(Dismiss(request_id="r1", reason=reason))
    said = table.text()
    assert said.startswith("The question is gone: ")
    assert said.isprintable()


def test_what_is_presented_again_is_drawn_again(table: Table) -> None:
    shown = question("r1")
    table.show(shown)
    assert table.show(shown) == [presented(shown)]
    assert table.text().count("Read file?") == 2


# -- pairing -----------------------------------------------------------------------------------------------


def decision(approved: bool, *scopes: Any) -> PairingDecision:
    return PairingDecision(
        pairing_id="p1", digest=PAIRING.digest, input_started_ms=250, approved=approved, scopes=scopes
    )


@pytest.mark.requirement("CP-5.6")
@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("approve 012345", [decision(True, "discover", "interact")]),
        ("approve 012345 interact", [decision(True, "interact")]),
        ("deny", [decision(False)]),
        ("x", [decision(False)]),
        ("", []),
        ("approve", []),
        ("approve 012346", []),
        ("approve 012345 notify", []),
        ("012345", []),
        ("1", []),
        ("yes", []),
    ],
)
def test_only_approve_and_the_code_approves(table: Table, typed: str, sent: list[Any]) -> None:
    assert table.show(PAIRING) == [Presented(pairing_id="p1", digest=PAIRING.digest)]
    assert table.type(typed) == sent


def test_a_pairing_goes_before_a_question_which_comes_back(table: Table) -> None:
    shown = question("r1")
    reports = table.show(shown, PAIRING)
    assert reports[1:] == [deferred(shown), Presented(pairing_id="p1", digest=PAIRING.digest)]
    assert table.type("1") == []
    table.type("deny")
    assert table.show(Replied(1, COMMITTED)) == [presented(shown)]


def test_a_pairing_whose_asker_has_gone_is_withdrawn(table: Table) -> None:
    table.show(PAIRING)
    table.show(Dismiss(pairing_id="p1", reason="cancelled"))
    assert table.type("approve 012345") == []


# -- settings ----------------------------------------------------------------------------------------------


SETTINGS = Settings(
    visible=True, paused=False, access_enabled=False, language="en", reduced_motion=False, sound=False
)


def test_the_settings_are_said_once(table: Table) -> None:
    table.show(SETTINGS, SETTINGS)
    assert table.text().count("shown, access for programs is off") == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"visible": False}, "The companion is hidden"),
        ({"paused": True}, "The companion is paused"),
        ({"sound": True}, "Sound is on"),
        ({"reduced_motion": True}, "motion is reduced"),
    ],
)
def test_a_setting_that_changes_is_said(table: Table, change: dict[str, Any], said: str) -> None:
    table.show(SETTINGS)
    table.text()
    table.show(attrs.evolve(SETTINGS, **change))
    assert said in table.text()


def test_a_question_makes_a_sound_where_the_person_wants_one(table: Table) -> None:
    table.show(SETTINGS, question("r1"))
    assert table.rung == 0
    table.show(attrs.evolve(SETTINGS, sound=True))
    table.type("1")
    table.show(Replied(1, COMMITTED), NOTICE)
    assert table.rung == 0
    table.show(question("r2"))
    assert table.rung == 1
