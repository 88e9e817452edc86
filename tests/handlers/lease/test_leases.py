"""Leases: terms, limits, receipts and entitlement, where they depend on time, numbers or the user."""

from __future__ import annotations

from typing import TypeVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.environment import Environment
from handlers.lease.apps import app_of, base_key
from handlers.lease.entitlement import block, require_entitled, unblock
from handlers.lease.receipts import KEPT_PER_LEASE
from handlers.lease.refusals import LeaseRefused
from handlers.lease.rows import BLOCKS, RECEIPTS, Block
from handlers.policy import LeasePolicy, Policy
from handlers.rule import Draft, Row, Table
from protocols.lease.states import LeaseState
from tests.support.lease_world import APPS, BROWSER, EDITOR, LeaseWorld

HOUR = 3600
R = TypeVar("R", bound=Row)


@pytest.mark.requirement("LP-7")
@pytest.mark.parametrize(
    ("app_key", "base"),
    [
        (EDITOR, EDITOR),
        (f"{EDITOR}#work", EDITOR),
        (f"{EDITOR}#a#b", EDITOR),
        (f"{EDITOR}#", None),
        (f"{EDITOR} ", None),
        (EDITOR.upper(), None),
        ("", None),
        ("#work", None),
        ("org.example", None),
    ],
)
def test_a_key_is_known_exactly_or_not_at_all(app_key: str, base: str | None) -> None:
    assert base_key(APPS, app_key) == base


@pytest.mark.requirement("LP-12", "G21")
def test_a_process_belongs_to_an_app_by_its_executable_alone() -> None:
    assert app_of(APPS, "/opt/example/bin/editor") == EDITOR
    assert app_of(APPS, "/opt/example/bin/editor2") is None
    assert app_of(APPS, "editor") is None


@pytest.mark.requirement("LP-8")
def test_the_documented_boundaries() -> None:
    world = LeaseWorld()
    holder = world.holder()
    assert holder.begin(seconds=59)["code"] == "invalid_payload"
    assert holder.begin(seconds=1801)["code"] == "invalid_payload"
    assert holder.begin(seconds=1800)["code"] == "accepted"
    assert holder.begin(BROWSER, 60)["code"] == "accepted"
    world.wait(59.999)
    assert world.may_close(BROWSER)["reason"] == "leased"
    world.wait(0.001)
    assert world.may_close(BROWSER)["reason"] == "grace"
    world.wait(59.999)
    assert world.may_close(BROWSER)["reason"] == "grace"
    world.wait(0.001)
    assert world.ask_may_close(BROWSER).answer() is None  # the holder is asked


@pytest.mark.requirement("LP-8")
def test_seconds_of_the_policy_may_have_fractions() -> None:
    world = LeaseWorld(LeasePolicy(min_ms=1500, max_ms=2500, grace_ms=100, startup_hold_ms=0))
    holder = world.holder()
    assert holder.begin(seconds=1)["code"] == "invalid_payload"
    assert holder.begin(seconds=3)["code"] == "invalid_payload"
    assert holder.begin(seconds=2)["graceEndsAt"].endswith(".100Z")
    world.wait(2.1)
    world.ask_may_close()
    assert holder.reply(holder.pushed(), "extend_lease", leaseSeconds=1)["leaseSeconds"] == 2


@pytest.mark.requirement("LP-8")
def test_a_renew_may_shorten_the_own_lease_and_a_begin_may_not() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin(seconds=600)
    assert holder.begin(seconds=60)["leaseSeconds"] == 600
    assert holder.renew(seconds=60)["leaseSeconds"] == 60
    world.wait(61)
    assert world.may_close()["reason"] == "grace"


@pytest.mark.requirement("LP-8")
def test_an_end_in_the_grace_does_not_start_it_anew() -> None:
    world = LeaseWorld()
    holder = world.holder()
    first = holder.begin()
    world.wait(90)
    assert holder.end()["graceEndsAt"] == first["graceEndsAt"]
    world.wait(30)
    assert world.may_close()["reason"] == "free"


@pytest.mark.requirement("LP-9")
def test_an_end_after_the_grace_saves_the_question() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    assert holder.end()["code"] == "accepted"
    assert world.may_close()["reason"] == "free"
    assert holder.pushed() is None


@pytest.mark.requirement("LP-6")
def test_an_accepted_id_keeps_its_answer_until_an_hour_after_the_leases_end() -> None:
    world = LeaseWorld()
    holder = world.holder()
    first = holder.begin(requestId="once")
    holder.end()
    world.wait(60 + HOUR - 1)
    assert holder.begin(requestId="once") == first
    assert holder.begin(seconds=61, requestId="once")["code"] == "invalid_payload"
    world.wait(2)
    assert world.ledger.rows.all(RECEIPTS) == []
    assert holder.begin(seconds=61, requestId="once")["leaseSeconds"] == 61


@pytest.mark.requirement("LP-6")
def test_receipts_outlive_a_restart_of_the_broker_and_of_the_machine() -> None:
    world = LeaseWorld()
    first = world.holder().begin(requestId="once")
    world.restart(down_seconds=30)
    assert world.holder().begin(requestId="once") == first
    world.restart(reboot=True)
    holder = world.holder()
    assert holder.begin(requestId="once") == first
    assert world.may_close()["reason"] == "free"  # the old answer is no new lease
    world.wait(HOUR + 1)
    assert world.ledger.rows.all(RECEIPTS) == []
    assert world.disk.rows.keys() == set()


@pytest.mark.requirement("LP-6")
def test_a_lease_that_is_renewed_for_days_does_not_gather_receipts_without_end() -> None:
    world = LeaseWorld()
    holder = world.holder()
    first = holder.begin(requestId="first")
    for number in range(KEPT_PER_LEASE - 1):
        holder.renew(requestId=f"r{number}")
    assert holder.begin(requestId="first") == first
    holder.renew(requestId="one more")
    assert len(world.ledger.rows.all(RECEIPTS)) == KEPT_PER_LEASE
    assert holder.begin(requestId="first", seconds=61)["code"] == "accepted"


class NoRows:
    """A view of nothing."""

    def get(self, table: Table[R], key: str) -> R | None:
        return None

    def find(self, table: Table[R], index: str, value: str) -> list[R]:
        return []

    def all(self, table: Table[R]) -> list[R]:
        return []

    def up_to(self, table: Table[R], index: str, value: str, limit: int, start: str = "") -> list[R]:
        return []

    def count(self, table: Table[R], index: str, value: str) -> int:
        return 0


@pytest.mark.requirement("LP-6")
def test_a_blocked_holder_gets_no_lease_and_keeps_what_it_has_until_it_runs_out() -> None:
    world = LeaseWorld()
    holder, other = world.holder(), world.holder("other")
    holder.begin(seconds=600)
    world.ledger.load([(BLOCKS, Block("agent", revision=1))])
    for refused in (holder.begin(BROWSER), holder.begin(), holder.renew()):
        assert (refused["code"], refused["message"]) == ("not_entitled", "the user has blocked this holder")
    assert other.begin()["code"] == "accepted"
    assert holder.end()["code"] == "accepted"
    assert world.may_close()["reason"] == "leased"


def test_the_user_blocks_and_unblocks_a_holder() -> None:
    draft = Draft(NoRows(), Environment(Policy(), "run", "boot"))
    block(draft, "agent")
    with pytest.raises(LeaseRefused):
        require_entitled(draft, "agent")
    unblock(draft, "agent")
    require_entitled(draft, "agent")


@pytest.mark.requirement("LP-6")
def test_a_published_quota_is_named() -> None:
    world = LeaseWorld()
    holder = world.holder()
    for number in range(64):
        assert holder.begin(f"{EDITOR}#{number}")["code"] == "accepted"
    refused = holder.begin(BROWSER)
    assert (refused["code"], refused["message"].split()[3]) == ("not_entitled", "maxLeasesPerHolder")
    world.wait(121)
    assert holder.begin(BROWSER)["code"] == "not_entitled"  # they have expired, and stand in the way still
    holder.begin(f"{EDITOR}#0")
    holder.end(f"{EDITOR}#0")
    assert holder.begin(BROWSER)["code"] == "not_entitled"  # in its grace it still counts
    world.wait(61)
    assert holder.begin(BROWSER)["code"] == "accepted"


@pytest.mark.requirement("LP-12", "G20")
@given(first=st.integers(60, 1800), second=st.integers(60, 1800), after=st.integers(0, 59))
def test_nothing_that_another_holder_does_shortens_a_lease(first: int, second: int, after: int) -> None:
    world = LeaseWorld()
    mine, theirs = world.holder(), world.holder("other")
    mine.begin(seconds=first)
    before = world.lease()
    world.wait(after)
    for act in (theirs.begin, theirs.renew):
        act(seconds=second)
        assert world.lease() == before
    theirs.end()
    assert world.lease() == before


@pytest.mark.requirement("LP-6")
def test_ended_leases_are_remembered_for_an_hour_and_protect_nothing() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin()
    holder.end()
    world.wait(60)
    lease = world.lease()
    assert lease is not None
    assert lease.state is LeaseState.ENDED
    assert world.control("leases.list")["result"] == {"leases": [], "nextCursor": None}
    world.wait(HOUR)
    assert world.lease() is None


def test_times_on_the_wall_follow_the_wall_clock_and_change_nothing() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin(seconds=60)
    world.clocks.step_wall(-7200)
    assert holder.renew(seconds=60)["expiresAt"] == "2027-01-15T06:01:00.000Z"
    world.clocks.step_wall(1_000_000)
    world.wait(59)
    assert world.may_close()["reason"] == "leased"


def test_awake_time_alone_runs_a_lease_out() -> None:
    world = LeaseWorld(attrs.evolve(LeasePolicy(startup_hold_ms=0), resume_hold_ms=0))
    holder = world.holder()
    holder.begin(seconds=60)
    world.sleep(8 * HOUR)
    assert world.may_close()["reason"] == "leased"
    assert holder.renew(seconds=60)["expiresAt"] == "2027-01-15T16:01:00.000Z"
