"""What the person commands at the terminal; a command answers nothing, whatever is asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from broker.presenters.commands import HELP
from protocols.presenter.client import Failed, Replied
from protocols.presenter.messages import (
    ClientItem,
    Done,
    List,
    Listing,
    PendingItem,
    Setting,
    User,
)
from tests.support.table import NOTICE, PAIRING, Table, presented, question, text_question

CLIENTS = List(what="clients")
ID, OTHER, THIRD = "ab" + "0" * 30, "ab" + "1" * 30, "cd" + "0" * 30


def client(id: str, label: str) -> ClientItem:
    return ClientItem(
        client_id=id, label=label, scopes=("notify",), created_at="2030-01-01T00:00:00.000Z", connected=True
    )


@pytest.fixture
def table() -> Table:
    return Table()


def on_clients(table: Table, typed: str, *clients: ClientItem) -> list[Any]:
    """What is sent once the broker has told who is paired."""
    assert table.type(typed) == [CLIENTS]
    return table.show(Replied(1, Listing(clients=clients)))


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        (":hide", User(action="hide")),
        (":show", User(action="show")),
        (":pause", User(action="pause")),
        (":resume", User(action="resume")),
        (":access on", User(action="enable_access")),
        (":access  off ", User(action="disable_access")),
        (":clear records", User(action="clear_records")),
        (":sound on", User(action="set", setting=Setting(sound=True))),
        (":sound off", User(action="set", setting=Setting(sound=False))),
        (":motion less", User(action="set", setting=Setting(reduced_motion=True))),
        (":motion full", User(action="set", setting=Setting(reduced_motion=False))),
        (":character momo", User(action="set", setting=Setting(character="momo"))),
        (":language zh", User(action="set", setting=Setting(language="zh"))),
        (":clients", CLIENTS),
        (":pending", List(what="pending")),
    ],
)
@pytest.mark.parametrize("asked", [[], [question("r1")], [text_question("r1", multiline=True)], [PAIRING]])
def test_the_person_may_command_at_any_time(table: Table, typed: str, sent: object, asked: Any) -> None:
    table.show(*asked)
    assert table.type(typed) == [sent]
    table.text()
    table.show(Replied(1, Done()))
    assert table.text() == "Done."


@pytest.mark.parametrize(
    "typed",
    [
        ":revoke",
        ":mute",
        ":mute soon",
        ":mute 0",
        ":mute 999999999999",
        ":unmute",
        ":narrow ab",
        ":narrow interact",
        ":close",
        ":close two",
        ":close ²",
        ":sound",
        ":sound loud",
        ":language",
        ":language 12345678901",
        ":character",
        ":character momo aion",
        ":hide 5",
        ":",
        ":hdie",
        ":help",
    ],
)
def test_what_is_no_command_does_nothing_and_is_helped(table: Table, typed: str) -> None:
    shown = text_question("r1")
    table.show(shown)
    table.text()
    assert table.type(typed) == []
    assert table.text() != ""


def test_the_help_names_every_command_within_a_small_screen(table: Table) -> None:
    table.type(":help")
    assert table.text() == "\n".join(HELP)
    assert all(len(line) < 80 and line.isascii() for line in HELP)
    assert len(HELP) < 24


def test_the_page_about_the_terminal_tells_the_same_commands() -> None:
    page = (Path(__file__).parents[2] / "docs" / "terminal.md").read_text("utf-8")
    told = {words for words in re.findall(r"`:(\w+)", page) if words != "help"}
    assert told == set(re.findall(r":(\w+)", "\n".join(HELP)))


# -- clients -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.3")
@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        (f":revoke {ID}", User(action="revoke", client_id=ID)),
        (":revoke cd", User(action="revoke", client_id=THIRD)),
        (":revoke My Agent", User(action="revoke", client_id=OTHER)),
        (":mute 10 cd", User(action="mute", client_id=THIRD, seconds=600)),
        (":unmute cd", User(action="mute", client_id=THIRD)),
        (":narrow cd notify", User(action="narrow", client_id=THIRD, scopes=("notify",))),
        (
            ":narrow My Agent interact discover",
            User(action="narrow", client_id=OTHER, scopes=("discover", "interact")),
        ),
    ],
)
def test_a_client_is_named_by_its_id_or_label(table: Table, typed: str, sent: object) -> None:
    clients = (client(ID, "Agent"), client(OTHER, "My Agent"), client(THIRD, ID))
    assert on_clients(table, typed, *clients) == [sent]


@pytest.mark.parametrize("typed", [":revoke ab", ":revoke Agent", ":revoke nobody", ":revoke CD"])
def test_a_name_that_is_not_one_clients_does_nothing(table: Table, typed: str) -> None:
    clients = (client(ID, "Agent"), client(OTHER, "Agent"), client(THIRD, "Third"))
    assert on_clients(table, typed, *clients) == []
    assert "called so" in table.text()


@pytest.mark.requirement("CP-4.9")
def test_who_asks_now_is_muted_without_being_named(table: Table) -> None:
    table.show(question("r1"))
    sent = on_clients(table, ":mute 5", client(ID, "Agent"), client(OTHER, "Other"))
    assert sent == [User(action="mute", client_id=ID, seconds=300)]
    table.text()
    table.show(Replied(2, Done()))
    assert table.text() == "This client is muted for 5 min:\n  | Agent"


def test_who_has_shown_something_last_asks(table: Table) -> None:
    table.show(NOTICE)
    assert len(on_clients(table, ":mute 5", client(ID, "Agent"))) == 1


@pytest.mark.parametrize("asked", [[], [question("r1"), PAIRING]])
def test_nobody_is_muted_who_does_not_ask(table: Table, asked: Any) -> None:
    table.show(*asked)
    assert on_clients(table, ":mute 5", client(ID, "Agent")) == []
    assert "Nobody asks now" in table.text()


def test_two_clients_with_the_askers_label_have_to_be_told_apart(table: Table) -> None:
    table.show(question("r1"))
    assert on_clients(table, ":mute 5", client(ID, "Agent"), client(OTHER, "Agent")) == []
    assert "More than one" in table.text()


# -- what is seen ------------------------------------------------------------------------------------------


def test_what_was_asked_may_be_drawn_again(table: Table) -> None:
    shown = question("r1")
    table.show(shown)
    table.text()
    assert table.type(":again") == [presented(shown)]
    assert "Read file?" in table.text()


def test_what_the_broker_cannot_do_is_said(table: Table) -> None:
    table.type(":hide")
    table.show(Failed(1, "INVALID_PARAMS", "action: not\x1b available"))
    assert table.text() == "The broker could not do that: action: not<U+001B> available"


def test_who_is_muted_is_seen_in_the_list(table: Table) -> None:
    table.type(":clients")
    muted = attrs.evolve(client(ID, "Agent"), muted_until="2030-01-01T12:00:00.000Z")
    table.show(Replied(1, Listing(clients=(muted,))))
    assert "connected, muted until (2030-01-01T12:00:00.000Z):\n  | Agent" in table.text()


@pytest.mark.requirement("G08")
def test_lists_show_labels_behind_bars(table: Table) -> None:
    forged = "x" * 76 + "From:\n  System"
    table.type(":clients")
    table.show(Replied(1, Listing(clients=(client(ID, forged),))))
    item = PendingItem(
        request_id="r1", state="awaiting_user", label=forged, capability="notice.show", remaining_ms=5_000
    )
    table.type(":pending")
    table.show(Replied(2, Listing(pending=(item,))), Replied(3, Listing(pending=())))
    drawn = table.text().split("\n")
    assert f"  {ID}: notify; paired 2030-01-01T00:00:00.000Z, connected:" in drawn
    assert "  notice.show, awaiting_user, until (in 5000 ms), from:" in drawn
    assert drawn[-1] == "  There is none."
    assert [line for line in drawn if "From" in line or "System" in line] == [
        line for line in drawn if line.startswith("  | ") and ("From" in line or "System" in line)
    ]
