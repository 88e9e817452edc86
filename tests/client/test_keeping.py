"""What a holder says about its leases, in virtual time and without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from broker.client.errors import ConnectionLost, LeaseRefused, NotConnected, ProtocolBroken, TimedOut
from broker.client.keeping import Allow, Extend, Hold, HolderIdentity, Keeping
from tests.client.scripted_server import LEASE_LIMITS

HOLDER = HolderIdentity("h1", "Test", 1)


class Conversation:
    """A keeping, a clock, and the broker's side played by the test."""

    def __init__(self, *holds: Hold, chance: Callable[[], float] = lambda: 0.5) -> None:
        self.now = 1_000.0
        self.notes: list[str] = []
        self.keeping = Keeping(HOLDER, self.notes.append, chance)
        for hold in holds:
            self.keeping.hold(hold, self.now)

    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.keeping.take_output().splitlines()]

    def hear(self, action: str, **members: Any) -> None:
        line = json.dumps({"action": action, **members}).encode() + b"\n"
        self.keeping.receive(line, self.now)

    def connect(self, **limits: float) -> list[dict[str, Any]]:
        """Up to session.ready; what is said then."""
        self.keeping.connected(self.now)
        [hello] = self.said()
        assert hello["action"] == "session.hello"
        self.hear("session.ready", protocolVersion=1, holderId="h1", limits=LEASE_LIMITS | limits)
        return self.said()

    def grant(self, message: dict[str, Any], seconds: int | None = None) -> None:
        told = {"requestId": message["requestId"], "code": "accepted"}
        granted = message.get("leaseSeconds", seconds)
        self.hear("lease.response", **told, **({} if granted is None else {"leaseSeconds": granted}))

    def refuse(self, message: dict[str, Any], code: str) -> None:
        self.hear("lease.response", requestId=message["requestId"], code=code, message="no")

    def ask(self, app_key: str = "app", id: str = "close_1") -> None:
        self.hear("lease.can_close.request", requestId=id, holderId="h1", appKey=app_key, timeoutSeconds=3)

    def hold_all(self, **limits: float) -> None:
        for message in self.connect(**limits):
            self.grant(message)

    def at(self, when: float) -> list[dict[str, Any]]:
        """What is said at that time."""
        self.now = when
        self.keeping.step(self.now)
        return self.said()


def actions(messages: list[dict[str, Any]]) -> list[str]:
    return [message["action"] for message in messages]


@pytest.mark.requirement("LP-3", "LP-4")
def test_nothing_is_said_about_a_lease_before_the_session_is_ready() -> None:
    talk = Conversation(Hold("app", 60))
    talk.hold_all()
    talk.keeping.lost(ConnectionLost("gone"), talk.now)
    talk.now += 100  # the renewal would be long due
    talk.keeping.connected(talk.now)
    assert actions(talk.said()) == ["session.hello"]
    assert talk.at(talk.now) == []
    assert talk.keeping.wake_at > talk.now
    talk.hear("session.ready", protocolVersion=1, holderId="h1", limits=LEASE_LIMITS)
    assert actions(talk.said()) == ["lease.begin"]


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_lease_is_renewed_at_a_third_of_its_term_give_or_take_a_twentieth(chance: float) -> None:
    talk = Conversation(Hold("app", 600), chance=lambda: chance)
    talk.hold_all()
    due = talk.keeping.wake_at
    assert 190 <= due - talk.now <= 210
    assert talk.at(due - 0.001) == []
    [renewal] = talk.at(due)
    assert (renewal["action"], renewal["leaseSeconds"]) == ("lease.renew", 600)


@pytest.mark.parametrize(("low", "high", "term"), [(60, 1800, 600), (60, 30, 30), (900, 1800, 900)])
def test_without_a_term_it_is_ten_minutes_or_what_comes_nearest(low: float, high: float, term: int) -> None:
    [begin] = Conversation(Hold("app")).connect(minLeaseSeconds=low, maxLeaseSeconds=high)
    assert begin["leaseSeconds"] == term


def test_the_term_that_was_granted_counts_and_not_the_one_that_was_asked_for() -> None:
    talk = Conversation(Hold("app", 600))
    [begin] = talk.connect()
    talk.grant(begin | {"leaseSeconds": 90})
    assert talk.keeping.wake_at - talk.now == pytest.approx(30)


def test_a_lease_that_is_not_to_be_renewed_runs_out() -> None:
    talk = Conversation(Hold("app", 60, renews=False))
    talk.hold_all()
    assert talk.keeping.wake_at == float("inf")


@pytest.mark.requirement("LP-9", "LP-10")
def test_a_close_check_is_answered_with_extend_by_itself() -> None:
    talk = Conversation(Hold("app", 60))
    talk.hold_all()
    talk.ask()
    [reply] = talk.said()
    assert (reply["requestId"], reply["result"], reply["leaseSeconds"]) == ("close_1", "extend_lease", 60)


@pytest.mark.requirement("LP-10")
@pytest.mark.parametrize(
    ("verdict", "result", "seconds"),
    [(Extend(), "extend_lease", 60), (Extend(300), "extend_lease", 300), (Allow(), "allow_close", None)],
)
def test_the_owner_of_a_lease_decides_its_close_checks(
    verdict: Extend | Allow, result: str, seconds: int | None
) -> None:
    hold = Hold("app", 60, decides=True)
    talk = Conversation(hold)
    talk.hold_all()
    talk.ask()
    [(asked, check)] = talk.keeping.checks
    assert asked is hold
    assert talk.said() == []
    talk.keeping.decide(asked, check, verdict, talk.now)
    [reply] = talk.said()
    assert (reply["result"], reply.get("leaseSeconds")) == (result, seconds)
    talk.grant(reply)
    assert hold.held is isinstance(verdict, Extend)


@pytest.mark.requirement("LP-10")
def test_no_renewal_answers_a_close_check_that_is_still_being_decided() -> None:
    """A renewal counts as extend (lease.md, renew)."""
    talk = Conversation(Hold("app", 60, decides=True))
    talk.hold_all()
    talk.ask()
    assert talk.at(talk.now + 1_000) == []


def test_after_an_allowed_close_the_lease_is_not_taken_up_again() -> None:
    hold = Hold("app", 60, decides=True)
    talk = Conversation(hold)
    talk.hold_all()
    talk.ask()
    [(_, check)] = talk.keeping.checks
    talk.keeping.decide(hold, check, Allow(), talk.now)
    talk.grant(talk.said()[0])
    talk.keeping.lost(ConnectionLost("gone"), talk.now)
    assert talk.connect() == []
    talk.keeping.give_back(hold, talk.now)
    assert talk.said() == []


def test_a_decision_that_comes_after_the_connection_was_lost_is_dropped() -> None:
    hold = Hold("app", 60, decides=True)
    talk = Conversation(hold)
    talk.hold_all()
    talk.ask()
    [(_, check)] = talk.keeping.checks
    talk.keeping.lost(ConnectionLost("gone"), talk.now)
    talk.keeping.decide(hold, check, Allow(), talk.now)
    assert actions(talk.connect()) == ["lease.begin"]


def test_a_lease_that_was_given_back_without_a_connection_is_ended_over_the_next() -> None:
    hold = Hold("app", 60)
    talk = Conversation(hold)
    talk.hold_all()
    talk.keeping.lost(ConnectionLost("gone"), talk.now)
    talk.keeping.give_back(hold, talk.now)
    [end] = talk.connect()
    assert end["action"] == "lease.end"
    talk.grant(end)
    assert talk.keeping.holds == []


def test_one_holder_has_one_lease_on_an_app_and_may_take_it_again() -> None:
    first = Hold("app", 60)
    talk = Conversation(first)
    talk.hold_all()
    with pytest.raises(ValueError, match="already"):
        talk.keeping.hold(Hold("app", 60), talk.now)
    talk.keeping.give_back(first, talk.now)
    again = Hold("app", 60)
    talk.keeping.hold(again, talk.now)
    end, begin = talk.said()
    assert (end["action"], begin["action"]) == ("lease.end", "lease.begin")
    talk.grant(end)
    talk.grant(begin)
    assert (first.held, again.held, talk.keeping.holds) == (False, True, [again])


def test_a_refusal_that_may_be_over_later_is_tried_again_and_another_is_not() -> None:
    conflict, unknown = Hold("one", 60), Hold("two", 60)
    talk = Conversation(conflict, unknown)
    for message, code in zip(talk.connect(), ("lease_conflict", "unknown_app"), strict=True):
        talk.refuse(message, code)
    assert conflict.refused is not None
    [again] = talk.at(talk.now + 1_000)
    assert (again["action"], again["appKey"]) == ("lease.begin", "one")
    talk.grant(again)
    assert conflict.held


def test_attempts_to_connect_are_made_at_growing_times_that_are_spread() -> None:
    pauses: list[list[float]] = []
    for chance in (0.0, 1.0):
        talk = Conversation(chance=lambda chance=chance: chance)  # type: ignore[misc]
        pauses.append([])
        for _ in range(8):
            talk.keeping.lost(NotConnected("nobody"), talk.now)
            pauses[-1].append(talk.keeping.wake_at - talk.now)
    assert pauses[0] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert pauses[1] == [pause / 2 for pause in pauses[0]]


def test_a_lease_that_is_wanted_now_does_not_wait_for_the_next_attempt() -> None:
    talk = Conversation()
    for _ in range(8):
        talk.keeping.lost(NotConnected("nobody"), talk.now)
    hold = Hold("app", 60)
    talk.keeping.hold(hold, talk.now)
    assert talk.keeping.wake_at == talk.now
    talk.keeping.lost(NotConnected("nobody"), talk.now)
    assert isinstance(hold.failure, NotConnected)


def test_a_broker_that_falls_silent_is_taken_for_gone() -> None:
    talk = Conversation(Hold("app", 60))
    talk.connect()
    with pytest.raises(TimedOut):
        talk.at(talk.now + 5)


def test_a_broker_that_answers_in_time_is_not() -> None:
    talk = Conversation(Hold("app", 60))
    talk.hold_all()
    assert talk.at(talk.now + 10) == []


@pytest.mark.parametrize("line", [b"{}x\n", b"\xff\n", b'{"action": "lease.response"}\n', b"x" * 9_000])
def test_a_broker_that_breaks_the_protocol_is_left(line: bytes) -> None:
    talk = Conversation(Hold("app", 60))
    talk.hold_all()
    with pytest.raises(ProtocolBroken):
        talk.keeping.receive(line, talk.now)


@pytest.mark.requirement("LP-5")
def test_a_refused_session_is_told() -> None:
    talk = Conversation(Hold("app", 60))
    talk.keeping.connected(talk.now)
    with pytest.raises(LeaseRefused):
        talk.hear("session.error", code="holder_id_mismatch", message="bound")
