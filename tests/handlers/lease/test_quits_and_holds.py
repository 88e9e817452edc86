"""When an app may not be quit or leased at all: committed quits, the start of the broker, the sleep of
the machine.
"""

from __future__ import annotations

import attrs
import pytest

from handlers.environment import Environment
from handlers.events import ProcessEnded
from handlers.lease import quits
from handlers.lease.may_close import look
from handlers.lease.rows import QUIT_MARKS
from handlers.lease.standing import Verdict
from handlers.policy import LeasePolicy
from handlers.routes import Routes, merge
from handlers.rule import Draft, Event, Now
from protocols.control.leases import Reason
from protocols.process import ProcessId
from tests.support import lease_world
from tests.support.lease_world import EDITOR, LeaseWorld

WORK = f"{EDITOR}#work"


# -- reserved quits ------------------------------------------------------------------------------------


@pytest.mark.requirement("LP-6")
def test_a_ticket_is_good_for_ten_seconds_of_its_own() -> None:
    world = LeaseWorld()
    holder = world.holder()
    ticket = world.may_close(reserve=True)["ticket"]
    world.wait(9.999)
    assert holder.begin(WORK)["code"] == "lease_conflict"
    assert world.may_close(reserve=True)["retryAfterSeconds"] == 0.001
    world.wait(0.001)
    assert holder.begin(WORK)["code"] == "accepted"
    error = world.control("leases.quit_done", ticket=ticket)["error"]
    assert error["data"]["code"] == "NOT_FOUND"


def test_tickets_tell_nothing_of_each_other() -> None:
    world = LeaseWorld()
    first = world.may_close(reserve=True)["ticket"]
    world.wait(10)
    second = world.may_close(reserve=True)["ticket"]
    assert first != second
    assert len(first) == len(second) == 32


def test_a_plain_answer_commits_nothing() -> None:
    world = LeaseWorld()
    assert "ticket" not in world.may_close()
    assert world.holder().begin()["code"] == "accepted"


def test_a_reserve_that_is_refused_commits_nothing() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin()
    assert "ticket" not in world.may_close(reserve=True)
    assert holder.renew()["code"] == "accepted"


@pytest.mark.requirement("LP-6")
def test_a_committed_quit_does_not_outlive_a_restart() -> None:
    world = LeaseWorld()
    ticket = world.may_close(reserve=True)["ticket"]
    world.restart()
    assert world.holder().begin()["code"] == "accepted"
    assert "error" in world.control("leases.quit_done", ticket=ticket)


# -- the broker's own quit, as the auto-quit asks for it -----------------------------------------------


@attrs.frozen
class Wanted(Event):
    """A look at an app by the broker itself; `process` is what it would quit."""

    process: ProcessId
    app_key: str = EDITOR


class OwnWorld(LeaseWorld):
    """A world in which the broker itself wants to quit an app."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict | None] = []
        super().__init__()

    def _start(self) -> None:
        self._routes = merge((self._routes, Routes(facts={Wanted: (self._wanted,)})))
        super()._start()

    def _wanted(self, draft: Draft, event: Wanted, now: Now) -> None:
        verdict = look(draft, event.app_key, now, b"seed %d" % len(self.verdicts))
        self.verdicts.append(verdict)
        if verdict is not None and verdict.allowed:
            quits.commit_own(draft, EDITOR, event.process, now)


APP = ProcessId(4000, "1")


@pytest.mark.requirement("LP-6", "LP-9", "G21")
def test_an_own_quit_asks_first_and_holds_leases_off_until_the_process_is_gone() -> None:
    world = OwnWorld()
    holder = world.expired_holder()
    world.submit(Wanted(APP))
    assert world.verdicts == [None]
    close = holder.pushed()
    assert holder.reply(close, "allow_close")["code"] == "accepted"
    world.submit(Wanted(APP))
    assert world.verdicts[1] == Verdict(Reason.FREE)
    assert holder.begin()["code"] == "lease_conflict"
    assert holder.begin(WORK)["code"] == "lease_conflict"
    assert world.may_close()["reason"] == "quit_committed"
    world.submit(ProcessEnded(ProcessId(4000, "2")))
    assert holder.begin()["code"] == "lease_conflict"
    world.submit(ProcessEnded(APP))
    assert holder.begin()["code"] == "accepted"


@pytest.mark.requirement("LP-6")
def test_an_own_quit_that_does_not_happen_holds_leases_off_for_a_minute() -> None:
    world = OwnWorld()
    holder = world.holder()
    world.submit(Wanted(APP))
    world.wait(59.999)
    assert holder.begin()["code"] == "lease_conflict"
    world.wait(0.001)
    assert holder.begin()["code"] == "accepted"
    assert world.ledger.rows.all(QUIT_MARKS) == []


@pytest.mark.requirement("LP-12")
def test_an_own_quit_is_told_no_like_anybody_else() -> None:
    world = OwnWorld()
    world.holder().begin()
    world.submit(Wanted(APP))
    assert world.verdicts == [Verdict(Reason.LEASED)]
    assert lease_world.APPS[EDITOR].executable == "/opt/example/bin/editor"


# -- holds ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("LP-12")
def test_no_quit_in_the_first_75_seconds() -> None:
    world = LeaseWorld(LeasePolicy())
    answer = world.may_close()
    assert (answer["reason"], answer["retryAfterSeconds"]) == ("startup_hold", 75)
    world.wait(74.999)
    assert world.may_close()["reason"] == "startup_hold"
    world.wait(0.001)
    assert world.may_close()["reason"] == "free"
    world.restart()
    assert world.may_close()["reason"] == "startup_hold"


@pytest.mark.requirement("LP-12")
def test_leases_can_be_had_during_a_hold() -> None:
    world = LeaseWorld(LeasePolicy())
    assert world.holder().begin()["code"] == "accepted"


@pytest.mark.requirement("LP-12")
def test_no_quit_for_a_minute_after_a_sleep() -> None:
    world = LeaseWorld()
    world.wait(100)
    world.sleep(3600)
    assert world.may_close()["reason"] == "resume_hold"
    world.wait(59.999)
    assert world.may_close()["reason"] == "resume_hold"
    world.wait(0.001)
    assert world.may_close()["reason"] == "free"


@pytest.mark.requirement("LP-12")
def test_a_sleep_is_noticed_while_nobody_asks() -> None:
    world = LeaseWorld()
    world.sleep(3600)
    world.wait(75)  # ten seconds until it is noticed at the latest, then a minute
    assert world.may_close()["reason"] == "free"


def test_a_hold_never_ends_before_its_minute() -> None:
    world = LeaseWorld()
    for awake in range(20):
        world.wait(awake)
        world.sleep(5)
        world.wait(59.999)
        assert world.may_close()["reason"] == "resume_hold"
        world.wait(60)


def test_two_clocks_that_are_read_one_after_the_other_are_no_sleep() -> None:
    world = LeaseWorld()
    for _ in range(100):
        world.sleep(0.009)
        world.wait(1)
        assert world.may_close()["reason"] == "free"


def test_an_asker_that_waits_when_the_machine_sleeps_is_told_of_the_hold() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    question = world.ask_may_close()
    world.sleep(3600)
    holder.reply(holder.pushed(), "allow_close")
    assert question.answer()["reason"] == "resume_hold"


def test_a_broker_that_nobody_has_started_holds_every_app() -> None:
    world = LeaseWorld(LeasePolicy())
    environment = Environment(world.policy, "run", "boot")

    class NoRows:
        def get(self, table: object, key: str) -> None:
            return None

        def find(self, table: object, index: str, value: str) -> list[object]:
            return []

        def all(self, table: object) -> list[object]:
            return []

    draft = Draft(NoRows(), environment)  # type: ignore[arg-type]  # it has no rows of any table
    assert look(draft, EDITOR, world.clocks.now(), b"") == Verdict(Reason.STARTUP_HOLD, 75_000)
