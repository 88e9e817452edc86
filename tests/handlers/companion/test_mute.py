"""A client that the person does not want to hear of for a while (CP-4.9, presenter.md, user)."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.companion.mutes import muted_until
from handlers.companion.rows import CLIENTS, Client, Mute
from protocols.companion.states import State
from protocols.presenter.messages import Done, List
from protocols.refusal import Refused
from tests.support.companion_world import CHOICE, World, refusal


def mute(world: World, name: str, seconds: int | None = 60) -> Any:
    return world.presenter.user("mute", client_id=name, seconds=seconds)


def client(world: World, name: str) -> Client:
    row = world.ledger.rows.get(CLIENTS, name)
    assert isinstance(row, Client)
    return row


def muted(world: World, name: str) -> bool:
    body = world.session(name).create("interaction.choose", CHOICE)
    if not isinstance(body, Refused):
        return False
    assert refusal(body) == ("RUNTIME_UNAVAILABLE", "muted")
    return True


@pytest.mark.requirement("CP-4.9", "CP-4.6")
def test_muting_ends_what_the_client_has_open_and_nothing_of_anybody_else(world: World) -> None:
    a, b = world.session("a"), world.session("b")
    theirs = [a.choose() for _ in range(5)]
    world.presenter.presented(theirs[0].request_id)
    other = b.choose()
    assert mute(world, "a") == Done()
    ends = [a.get(one.request_id) for one in theirs]
    assert {(end.state, end.reason, end.result) for end in ends} == {(State.CANCELLED, "muted_by_user", None)}
    assert not b.get(other.request_id).reason
    assert set(world.presenter.dismissed().values()) == {"muted_by_user"}


@pytest.mark.requirement("CP-4.9")
def test_new_requests_find_nobody_until_the_time_is_over(world: World) -> None:
    world.session("a")
    mute(world, "a")
    assert muted(world, "a")
    assert not muted(world, "b")
    world.advance(59_999)
    assert muted(world, "a")
    world.advance(1)
    assert not muted(world, "a")
    assert client(world, "a").mute is None


@pytest.mark.requirement("CP-4.9")
def test_the_person_takes_it_back(world: World) -> None:
    world.session("a")
    mute(world, "a")
    assert mute(world, "a", None) == Done()
    assert not muted(world, "a")


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(("second", "until"), [(10, 40_000), (600, 630_000)])
def test_the_last_word_of_the_person_counts(world: World, second: int, until: int) -> None:
    world.session("a")
    mute(world, "a", 60)
    world.advance(30_000)
    mute(world, "a", second)
    world.advance(until - 30_000 - 1)
    assert muted(world, "a")
    world.advance(1)
    assert not muted(world, "a")


@pytest.mark.requirement("CP-4.1", "CP-4.9", "CP-5.3")
def test_what_a_muted_client_has_is_still_its_own(world: World) -> None:
    a = world.session("a")
    made = a.choose(idempotency_key="k")
    mute(world, "a")
    ended = a.get(made.request_id)
    assert ended.reason == "muted_by_user"
    assert a.choose(idempotency_key="k") == ended
    assert a.cancel(made.request_id) == ended
    assert world.reply(a.wait(made.request_id, 0)).request == ended


def test_who_is_muted_is_told_to_the_person(world: World) -> None:
    world.session("a")
    world.session("b")
    mute(world, "a")
    listing = world.reply(world.presenter.say(List(what="clients")))
    told = {one.client_id: one.muted_until for one in listing.clients}
    assert told == {"a": "2027-01-15T08:01:00.000Z", "b": None}
    assert muted_until(client(world, "a")) == told["a"]


def test_what_the_person_said_about_all_comes_before_what_they_said_about_one(world: World) -> None:
    world.session("a")
    mute(world, "a")
    world.presenter.user("pause")
    body = world.session("a").create("interaction.choose", CHOICE)
    assert refusal(body) == ("RUNTIME_UNAVAILABLE", "paused")


# -- restarts, sleep and clocks ----------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize("reboot", [False, True])
def test_a_mute_outlives_a_restart_for_what_is_left_of_it(world: World, reboot: bool) -> None:
    world.session("a")
    mute(world, "a", 60)
    world.advance(10_000)
    world.restart(down_seconds=20, reboot=reboot)
    world.presenter.ready()
    assert muted(world, "a")
    world.advance(29_999)
    assert muted(world, "a")
    world.advance(1)
    assert not muted(world, "a")


@pytest.mark.parametrize("reboot", [False, True])
def test_a_mute_that_ended_while_the_broker_was_away_has_ended(world: World, reboot: bool) -> None:
    world.session("a")
    mute(world, "a", 60)
    world.restart(down_seconds=61, reboot=reboot)
    world.presenter.ready()
    assert not muted(world, "a")


def test_a_clock_that_was_set_back_before_a_boot_never_makes_a_mute_longer_than_was_meant(
    world: World,
) -> None:
    world.session("a")
    mute(world, "a", 60)
    world.clocks.step_wall(-86_400)
    world.restart(down_seconds=1, reboot=True)
    world.presenter.ready()
    world.advance(59_999)
    assert muted(world, "a")
    world.advance(1)
    assert not muted(world, "a")


def test_a_boot_begins_elapsed_time_anew_and_the_mute_goes_on(world: World) -> None:
    world.session("a")
    mute(world, "a", 3_600)
    world.advance(600_000)
    world.restart(reboot=True)
    world.presenter.ready()
    assert client(world, "a").mute == Mute(
        until=world.clocks.now().elapsed + 3_000_000,
        until_at=world.clocks.now().wall + 3_000_000,
        ms=3_600_000,
        boot_id="boot 2",
    )
    assert muted(world, "a")


def test_a_mute_runs_while_the_machine_sleeps(world: World) -> None:
    world.session("a")
    mute(world, "a")
    world.suspend(60_000)
    world.advance(0)
    assert not muted(world, "a")


# -- who may -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.9")
def test_there_is_nobody_to_mute_under_an_unknown_or_a_revoked_id(world: World) -> None:
    world.session("a")
    world.presenter.user("revoke", client_id="a")
    for name in ("a", "nobody"):
        assert refusal(mute(world, name))[0] == "NOT_FOUND"
        assert refusal(mute(world, name, None))[0] == "NOT_FOUND"
