"""The keeper of leases: what it says to a broker that grants, refuses, asks, falls silent or goes away."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.client import keeping as module
from broker.client.blocking.keeper import BlockingKeeper
from broker.client.errors import LeaseRefused, NotConnected
from broker.client.keeping import Hold, HolderIdentity
from tests.client.scripted_server import Part, Peer, serving

HOLDER = HolderIdentity("h1", "test", 1)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.02)


def keeper_at(
    path: Path, *apps: str, seconds: int | None = 1, notes: list[str] | None = None
) -> BlockingKeeper:
    keeper = BlockingKeeper(path, HOLDER, ([] if notes is None else notes).append)
    for app in apps or ("app",):
        keeper.hold(Hold(app, seconds))
    return keeper


def keep(keeper: BlockingKeeper, until: Callable[[], bool]) -> None:
    """The owner's loop, for five seconds at most."""
    end = time.monotonic() + 5
    while not until():
        assert time.monotonic() < end, "it never came"
        readable = [] if keeper.channel is None else [keeper.channel]
        select.select(readable, [], [], min(0.02, max(0.0, keeper.wake_at - time.monotonic())))
        keeper.step()


def actions(messages: list[Any]) -> list[str]:
    return [message["action"] for message in messages]


def stays(peer: Peer) -> None:
    """Take whatever comes until the keeper leaves."""
    while peer.read():
        pass


def leaves(_peer: Peer) -> None:
    """Close the connection."""


def grants(said: list[Any], count: int, *, then: Part = leaves) -> Part:
    """A broker that grants so many messages."""

    def part(peer: Peer) -> None:
        said.append(peer.ready())
        for _ in range(count):
            said.append(message := peer.read())
            peer.grant(message)
        then(peer)

    return part


@pytest.mark.requirement("LP-2", "LP-4")
def test_it_begins_for_every_app_and_ends_what_it_held(folder: Path) -> None:
    said: list[Any] = []
    apps = keeper_at(folder / "s", "one", "two", seconds=600)  # so long that no renewal comes between
    with serving(folder / "s", grants(said, 4, then=stays)), apps as keeper:
        keeper.settle(5)
        assert [hold.held for hold in keeper.holds] == [True, True]
        keeper.finish(10)
        assert keeper.failure is None
    assert actions(said) == ["session.hello", *["lease.begin"] * 2, *["lease.end"] * 2]
    assert [message["appKey"] for message in said[1:]] == ["one", "two", "one", "two"]
    assert len({message["requestId"] for message in said[1:]}) == 4


def test_it_renews_at_a_third_of_the_term(folder: Path) -> None:
    said: list[Any] = []
    times: list[float] = []

    def notes_the_time(_peer: Peer) -> None:
        times.append(time.monotonic())

    script = grants(said, 3, then=notes_the_time)
    with serving(folder / "s", script), keeper_at(folder / "s") as keeper:
        keeper.settle(5)
        started = time.monotonic()
        keep(keeper, lambda: bool(times))
    assert actions(said) == ["session.hello", "lease.begin", "lease.renew", "lease.renew"]
    assert times[0] - started > 0.6  # how long after depends on what else the machine does


def test_without_a_term_it_takes_ten_minutes_within_the_brokers_limits(folder: Path) -> None:
    said: list[Any] = []

    def part(peer: Peer) -> None:
        peer.ready(maxLeaseSeconds=30)
        said.append(message := peer.read())
        peer.grant(message)

    with serving(folder / "s", part), keeper_at(folder / "s", seconds=None) as keeper:
        keeper.settle(5)
    assert said[0]["leaseSeconds"] == 30


@pytest.mark.requirement("LP-9", "LP-10")
def test_it_answers_a_close_check_with_extend(folder: Path) -> None:
    said: list[Any] = []
    check = {"requestId": "close_1", "holderId": "h1", "appKey": "app", "timeoutSeconds": 3}

    def asks(peer: Peer) -> None:
        peer.write({"action": "lease.can_close.request", **check})
        said.append(peer.read())

    with serving(folder / "s", grants(said, 1, then=asks)), keeper_at(folder / "s") as keeper:
        keeper.settle(5)
        keep(keeper, lambda: len(said) == 3)
    reply = said[2]
    assert (reply["action"], reply["requestId"]) == ("lease.can_close.reply", "close_1")
    assert (reply["result"], reply["leaseSeconds"]) == ("extend_lease", 1)


def refuse(peer: Peer, message: Any, code: str) -> None:
    response = {"action": "lease.response", "requestId": message["requestId"], "code": code, "message": "no"}
    peer.write(response)


def test_a_renewal_that_came_too_late_becomes_a_new_lease(folder: Path) -> None:
    said: list[Any] = []

    def part(peer: Peer) -> None:
        grants(said, 1)(peer)
        said.append(message := peer.read())
        refuse(peer, message, "request_expired")
        said.append(message := peer.read())
        peer.grant(message)
        stays(peer)

    with serving(folder / "s", part), keeper_at(folder / "s") as keeper:
        keep(keeper, lambda: len(said) == 4 and keeper.holds[0].asked is None)
        assert keeper.holds[0].held
    assert actions(said) == ["session.hello", "lease.begin", "lease.renew", "lease.begin"]


def test_a_refused_app_does_not_keep_the_other_from_its_lease(folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.ready()
        refuse(peer, peer.read(), "unknown_app")
        peer.grant(peer.read())
        stays(peer)

    with serving(folder / "s", part), keeper_at(folder / "s", "one", "two") as keeper:
        keeper.settle(5)
    one, two = keeper.holds
    assert one.refused is not None
    assert (one.refused.code, one.held, two.held) == ("unknown_app", False, True)


def test_a_conflict_is_tried_again(folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.ready()
        refuse(peer, peer.read(), "lease_conflict")
        peer.grant(peer.read())
        stays(peer)

    with serving(folder / "s", part), keeper_at(folder / "s") as keeper:
        keep(keeper, lambda: keeper.holds[0].held)


def test_after_a_lost_connection_it_begins_again_under_the_same_holder(folder: Path) -> None:
    said: list[Any] = []
    notes: list[str] = []
    with (
        serving(folder / "s", grants(said, 1), grants(said, 1, then=stays)),
        keeper_at(folder / "s", notes=notes) as keeper,
    ):
        keep(keeper, lambda: len(said) == 4 and keeper.holds[0].held)
        keeper.finish(0)
    assert actions(said) == ["session.hello", "lease.begin"] * 2
    assert {message["holderId"] for message in said} == {"h1"}
    assert ["lost" in notes[0], "again" in notes[1], len(notes)] == [True, True, 2]


def test_a_broker_that_falls_silent_is_taken_for_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    said: list[Any] = []

    def silent(peer: Peer) -> None:
        peer.ready()
        while peer.read():
            pass

    with serving(folder / "s", silent, grants(said, 1, then=stays)), keeper_at(folder / "s") as keeper:
        keep(keeper, lambda: keeper.holds[0].held)
    assert actions(said) == ["session.hello", "lease.begin"]


def test_without_a_broker_it_says_so_and_tries_again(folder: Path) -> None:
    with keeper_at(folder / "s") as keeper:
        keeper.settle(5)
        assert isinstance(keeper.failure, NotConnected)
        with serving(folder / "s", grants([], 1, then=stays)):
            keep(keeper, lambda: keeper.holds[0].held)
            keeper.close()


def test_a_refused_handshake_is_told(folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.read()
        peer.write({"action": "session.error", "code": "holder_id_mismatch", "message": "bound"})

    with serving(folder / "s", part), keeper_at(folder / "s") as keeper:
        keeper.settle(5)
    assert isinstance(keeper.failure, LeaseRefused)
    assert keeper.failure.code == "holder_id_mismatch"
