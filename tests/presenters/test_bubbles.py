"""What stands on the terminal without asking: notices, progress and animations, and how they are closed."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.presenters.bubbles import ANIMATION_SECONDS, DRAW_SECONDS
from protocols.companion.capabilities import Kind
from protocols.presenter.client import Replied
from protocols.presenter.messages import (
    COMMITTED,
    Dismiss,
    Dismissed,
    Finished,
    Settings,
    rejected,
    too_late,
)
from tests.support.table import NOTICE, Table, bubble, presented, progress, question, updated


@pytest.fixture
def table() -> Table:
    return Table()


ANIMATION = bubble("a1", Kind.ANIMATION, title=None, expression="happy")


# -- progress ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "drawn"),
    [
        (None, "[????????????????????] how much is done is not known"),
        (0.0, "[....................] 0% done"),
        (0.31, "[######..............] 31% done"),
        (0.999, "[###################.] 99% done"),
        (1.0, "[####################] 100% done"),
    ],
)
def test_a_progress_has_a_bar_that_is_full_at_the_end_only(
    table: Table, fraction: float | None, drawn: str
) -> None:
    shown = progress("g1", fraction)
    assert table.show(shown) == [presented(shown)]
    assert f"progress 1: {drawn}\n  | Build" in table.text()


@pytest.mark.requirement("CP-3.11")
def test_a_change_is_drawn_after_a_while_and_reported_when_it_is(table: Table) -> None:
    first = progress("g1", 0.1)
    table.show(first)
    table.text()
    assert table.show(second := updated(first, fraction=0.2)) == []
    assert table.text() == ""
    reports = table.wait(DRAW_SECONDS + 1)
    assert reports[-1] == presented(second)
    assert table.text() == "progress 1: [####................] 20% done\n  | Build"
    assert table.wait(60) == []


def test_what_is_not_drawn_yet_is_not_reported_but_what_stands_is(table: Table) -> None:
    first = progress("g1", 0.1)
    table.show(first)
    table.show(updated(first, fraction=0.2))
    assert table.wait(DRAW_SECONDS - 0.5) == [presented(first)] * 4


def test_a_hundred_changes_in_a_second_are_one_drawing(table: Table) -> None:
    shown = progress("g1", 0.0)
    table.show(shown)
    table.text()
    for number in range(100):
        shown = updated(shown, fraction=(number + 1) / 100)
        table.show(shown)
        table.wait(0.01)
    assert table.wait(DRAW_SECONDS)[-1] == presented(shown)
    assert table.text().count("done") == 1


def test_a_change_that_looks_the_same_is_on_the_screen_already(table: Table) -> None:
    first = progress("g1", 0.101)
    table.show(first)
    table.text()
    assert table.show(second := updated(first, fraction=0.102)) == [presented(second)]
    assert table.text() == ""


def test_no_progress_is_drawn_between_a_question_and_its_answer(table: Table) -> None:
    first, asked = progress("g1", 0.1), question("r1")
    table.show(first, asked)
    table.text()
    second = updated(first, fraction=0.2)
    table.show(second)
    assert set(table.wait(60)) == {presented(first)}
    assert table.text() == ""
    table.type("1")
    table.show(Replied(1, COMMITTED))
    assert presented(second) in table.wait(2)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("finished", "progress 1: it is done."),
        ("cancelled_by_client", "progress 1: its program has taken it back."),
        ("set_aside", "progress 1: others wait, so it makes room and comes back in its turn."),
        ("never heard of", "progress 1: it has been withdrawn (never heard of)."),
    ],
)
def test_how_a_progress_ends_is_said(table: Table, reason: str, said: str) -> None:
    table.show(progress("g1", 0.5))
    table.text()
    table.show(Dismiss(request_id="g1", reason=reason))
    assert table.text() == said
    assert table.wait(60) == []


def test_a_change_of_what_waits_behind_a_question_is_shown_in_its_turn(table: Table) -> None:
    first = progress("g1", 0.1)
    table.show(question("r1"), first, second := updated(first, fraction=0.2))
    table.type("1")
    assert table.show(Replied(1, COMMITTED)) == [presented(second)]


# -- animations and notices --------------------------------------------------------------------------------


@pytest.mark.requirement("CP-2.11", "CP-3.6", "CP-7.4")
@pytest.mark.parametrize("reduced_motion", [True, False])
def test_an_animation_is_one_still_line_and_finished_after_a_while(
    table: Table, reduced_motion: bool
) -> None:
    settings = Settings(
        visible=True,
        paused=False,
        access_enabled=True,
        language="en",
        reduced_motion=reduced_motion,
        sound=False,
    )
    assert table.show(settings, ANIMATION) == [presented(ANIMATION)]
    assert table.text().endswith("animation 1:\n  | aion: happy :-)")
    assert table.wait(ANIMATION_SECONDS + 0.1) == [Finished(request_id="a1")]
    table.show(Dismiss(request_id="a1", reason="finished"))
    assert table.text() == ""
    assert table.wait(60) == []


def test_an_animation_that_is_withdrawn_is_not_finished(table: Table) -> None:
    table.show(ANIMATION, Dismiss(request_id="a1", reason="cancelled_by_client"))
    assert table.wait(60) == []


def test_an_expression_of_a_character_that_is_not_built_in_is_its_name(table: Table) -> None:
    table.show(attrs.evolve(ANIMATION, expression="moonwalk", character="pack.rex"))
    assert table.text().endswith("  | pack.rex: moonwalk")


def test_a_notice_whose_time_is_over_needs_no_words(table: Table) -> None:
    table.show(NOTICE)
    table.text()
    table.show(Dismiss(request_id="n1", reason="presented"))
    assert table.text() == ""


def test_what_is_presented_again_still_stands(table: Table) -> None:
    table.show(NOTICE)
    table.text()
    assert table.show(NOTICE) == [presented(NOTICE)]
    assert table.text() == ""


# -- closing -----------------------------------------------------------------------------------------------


def closed(shown: Any) -> Dismissed:
    return Dismissed(
        request_id=shown.request_id, revision=shown.revision, digest=shown.digest, input_started_ms=250
    )


def test_a_bubble_is_closed_by_its_number(table: Table) -> None:
    first, second = progress("g1", 0.1), NOTICE
    table.show(first, second)
    assert "notice 2:" in table.text()
    assert table.type(":close 2") == [closed(second)]
    table.show(Replied(1, COMMITTED), Dismiss(request_id="n1", reason="presented"))
    assert table.type(":close 1") == [closed(first)]
    table.show(Replied(2, COMMITTED), Dismiss(request_id="g1", reason="dismissed_by_user"))
    assert table.text() == "Closed.\nClosed."


def test_a_progress_is_closed_in_the_revision_that_is_drawn(table: Table) -> None:
    first = progress("g1", 0.1)
    table.show(first)
    table.show(updated(first, fraction=0.2))
    assert table.type(":close 1") == [closed(first)]


def test_a_number_is_never_given_twice(table: Table) -> None:
    table.show(NOTICE, Dismiss(request_id="n1", reason="presented"), progress("g1"))
    assert table.type(":close 1") == []
    assert "Nothing stands under the number 1." in table.text()
    assert len(table.type(":close 2")) == 1


def test_a_closing_that_was_too_quick_may_be_repeated(table: Table) -> None:
    table.show(NOTICE)
    table.type(":close 1")
    table.show(Replied(1, rejected("not_armed")))
    assert "too quick" in table.text()
    assert table.type(":close 1") == [closed(NOTICE)]


@pytest.mark.requirement("G14")
def test_a_closing_that_comes_too_late_is_told_and_leaves_the_question_alone(table: Table) -> None:
    table.show(NOTICE, shown := question("r1"))
    table.type(":close 1")
    table.text()
    table.show(Dismiss(request_id="n1", reason="presented"), Replied(1, too_late("completed", "presented")))
    assert table.text() == "Too late, that had ended before: it has been shown."
    assert len(table.type("1")) == 1
    assert shown.digest
