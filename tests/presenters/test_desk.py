"""The desk: one question at a time, and a line answers what is drawn and nothing else."""

from __future__ import annotations

from typing import Any, TypeVar

import attrs
import pytest

from broker.presenters.desk import Desk
from broker.presenters.keyboard import Line
from protocols.companion.capabilities import Interaction, Kind
from protocols.presenter import picture
from protocols.presenter.client import PresenterClient, Pushed, Replied
from protocols.presenter.engine import PresenterEngine
from protocols.presenter.messages import (
    COMMITTED,
    Answer,
    ConfirmPairing,
    Deferred,
    Dismiss,
    Dismissed,
    Input,
    List,
    Option,
    PairingDecision,
    Present,
    Presented,
    Setting,
    Settings,
    Source,
    User,
    rejected,
    too_late,
)
from protocols.session import Deliver
from tests.protocols.presenter.test_client import READY

M = TypeVar("M", Present, ConfirmPairing)


def whole(shown: M) -> M:
    """The message with the digest that the broker gives it."""
    if isinstance(shown, Present):
        return attrs.evolve(shown, digest=picture.digest(picture.of_present(shown)))
    return attrs.evolve(shown, digest=picture.digest(picture.of_confirmation(shown)))


def question(id: str, title: str = "Read file?", **changes: Any) -> Present:
    shown = Present(
        request_id=id,
        revision=2,
        digest="",
        kind=Kind.INTERACTION,
        interaction=Interaction.CHOICE,
        source=Source(label="Agent"),
        capability="interaction.choose",
        character="aion",
        style="default",
        title=title,
        options=(Option(id="yes", label="Allow"), Option(id="no", label="Deny")),
        deadline_at="",
        remaining_ms=60_000,
        queued=0,
    )
    return whole(attrs.evolve(shown, **changes))


def text_question(id: str, *, multiline: bool = False) -> Present:
    limits = Input(placeholder="", multiline=multiline, max_length=10)
    return question(id, interaction=Interaction.TEXT, options=None, input=limits)


NOTICE = question("n1", kind=Kind.NOTICE, interaction=Interaction.NONE, options=None, text="Hello.")
PAIRING = whole(
    ConfirmPairing(
        pairing_id="p1",
        digest="",
        client_name="Agent",
        name_in_use=False,
        scopes=("discover", "interact"),
        verification_code="012345",
        retention_hours=24,
        expires_at="",
    )
)


class Table:
    """A desk with a broker before it and a person behind it."""

    def __init__(self) -> None:
        self.client = PresenterClient()
        self.engine = PresenterEngine()
        self.drawn: list[str] = []
        self.asked = 0
        self.desk = Desk(self.client, self.drawn.extend, self._ask, lambda: 80)
        self.client.notify(READY)
        assert self.reported() == [READY]

    def _ask(self) -> None:
        self.asked += 1

    def show(self, *pushed: Pushed | Replied) -> list[Any]:
        """What the presenter reports on these messages."""
        for message in pushed:
            self.desk.receive(message)
        return self.reported()

    def type(self, text: str, *, age: float = 0.25) -> list[Any]:
        """What the presenter sends when a line is typed that began so many seconds ago."""
        self.desk.line(Line(text, 100.0 - age), 100.0)
        return self.reported()

    def reported(self) -> list[Any]:
        self.engine.receive(self.client.data_to_send())
        found = []
        while isinstance(output := self.engine.next_output(), Deliver):
            found.append(output.message)
        return found

    def text(self) -> str:
        drawn, self.drawn[:] = "\n".join(self.drawn), []
        return drawn


@pytest.fixture
def table() -> Table:
    return Table()


def presented(shown: Present) -> Presented:
    return Presented(request_id=shown.request_id, revision=shown.revision, digest=shown.digest)


def answered(shown: Present, selected: str, age: int = 250) -> Answer:
    return Answer(
        request_id=shown.request_id,
        revision=shown.revision,
        digest=shown.digest,
        input_started_ms=age,
        result={"selectedId": selected},
    )


def deferred(shown: Present) -> Deferred:
    return Deferred(request_id=shown.request_id, revision=shown.revision, why="space")


# -- answering ---------------------------------------------------------------------------------------------


def test_what_is_drawn_is_reported_and_then_asked_for(table: Table) -> None:
    shown = question("r1")
    assert table.show(shown) == [presented(shown)]
    assert "Read file?" in table.text()
    assert table.asked == 1


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


def test_too_late_is_shown_to_the_person(table: Table) -> None:
    table.show(question("r1"))
    table.type("1")
    table.text()
    table.show(Replied(1, too_late("cancelled", "cancelled_by_client")))
    assert "Too late" in table.text()
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
    assert table.asked == 2
    assert table.type("1") == [answered(shown, "yes")]


# -- text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "text"),
    [("Rex", "Rex"), (" Rex ", " Rex "), ("\\x", "x"), ("\\\\x", "\\x"), (":hide", ":hide"), ("X", "X")],
)
def test_a_text_is_passed_on_unchanged(table: Table, typed: str, text: str) -> None:
    table.show(text_question("r1"))
    [answer] = table.type(typed)
    assert answer.result == {"text": text}


@pytest.mark.requirement("G03")
@pytest.mark.parametrize("typed", ["", " ", "\\", "12345678901"])
def test_a_text_that_does_not_fit_is_not_sent(table: Table, typed: str) -> None:
    table.show(text_question("r1"))
    table.text()
    assert table.type(typed) == []
    assert ("10 are possible" in table.text()) == (len(typed) > 10)


def test_a_longer_text_ends_with_a_dot_and_is_as_old_as_its_first_line(table: Table) -> None:
    table.show(text_question("r1", multiline=True))
    assert table.type("one", age=9) == []
    assert table.type("") == []
    assert table.type("x") == []
    [answer] = table.type(".")
    assert answer.result == {"text": "one\n\nx"}
    assert answer.input_started_ms == 9_000


def test_a_longer_text_may_be_closed_before_it_begins(table: Table) -> None:
    table.show(text_question("r1", multiline=True))
    assert table.type("") == []
    assert [type(one) for one in table.type("x")] == [Dismissed]


# -- one at a time -----------------------------------------------------------------------------------------


def test_others_are_deferred_counted_and_shown_in_turn(table: Table) -> None:
    first, second, third = question("r1"), question("r2"), question("r3")
    assert table.show(first, second, third) == [presented(first), deferred(second), deferred(third)]
    table.text()
    table.type("1")
    assert table.show(Replied(1, COMMITTED)) == [presented(second)]
    assert "Others that wait: 1" in table.text()


def test_a_notice_waits_while_a_question_is_open(table: Table) -> None:
    shown = question("r1")
    assert table.show(shown, NOTICE) == [presented(shown), deferred(NOTICE)]
    table.type("x")
    assert table.show(Replied(1, COMMITTED)) == [presented(NOTICE)]


def test_a_notice_asks_for_nothing_and_keeps_nothing_waiting(table: Table) -> None:
    shown = question("r1")
    assert table.show(NOTICE, shown) == [presented(NOTICE), presented(shown)]
    assert table.asked == 1


def test_what_is_withdrawn_is_said_and_makes_room(table: Table) -> None:
    first, second = question("r1"), question("r2")
    table.show(first, second)
    table.text()
    assert table.show(Dismiss(request_id="r1", reason="cancelled_by_client")) == [presented(second)]
    assert "withdrawn (cancelled_by_client)" in table.text()
    assert table.type("1") == [answered(second, "yes")]


def test_what_is_withdrawn_while_it_waits_is_never_shown(table: Table) -> None:
    table.show(question("r1"), question("r2"))
    table.show(Dismiss(request_id="r2", reason="deadline"))
    table.type("1")
    assert table.show(Replied(1, COMMITTED)) == []


def test_what_is_presented_again_is_drawn_again(table: Table) -> None:
    shown = question("r1")
    table.show(shown)
    assert table.show(shown) == [presented(shown)]
    assert table.asked == 2


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


# -- commands ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        (":hide", User(action="hide")),
        (":access on", User(action="enable_access")),
        (":access off", User(action="disable_access")),
        (":revoke c1", User(action="revoke", client_id="c1")),
        (":character momo", User(action="set", setting=Setting(character="momo"))),
        (":motion less", User(action="set", setting=Setting(reduced_motion=True))),
        (":motion full", User(action="set", setting=Setting(reduced_motion=False))),
        (":clients", List(what="clients")),
    ],
)
def test_the_person_may_command_at_any_time(table: Table, typed: str, sent: object) -> None:
    assert table.type(typed) == [sent]
    table.show(question("r1"))
    assert table.type(typed) == [sent]


def test_what_is_no_command_is_helped(table: Table) -> None:
    assert table.type(":revoke") == []
    assert ":revoke CLIENT" in table.text()
    assert table.type("hello") == []


def test_the_settings_are_said_once(table: Table) -> None:
    settings = Settings(
        visible=True, paused=False, access_enabled=False, language="en", reduced_motion=False, sound=False
    )
    table.show(settings, settings)
    assert table.text().count("access for programs is off") == 1
