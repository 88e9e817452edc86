"""Close checks: who is asked when, what counts as an answer, and who is told what (LP-9, LP-10)."""

from __future__ import annotations

import json

import attrs
import pytest

from handlers.lease.rows import ASKS, CHECKS, COOLDOWNS
from handlers.policy import LeasePolicy
from protocols.control.leases import MAX_HOLDERS
from tests.support.lease_world import BROWSER, EDITOR, LeaseWorld

pytestmark = pytest.mark.requirement("LP-9")
WORK, HOME = f"{EDITOR}#work", f"{EDITOR}#home"


@pytest.mark.requirement("LP-8", "G21")
def test_the_check_ends_after_three_seconds_and_not_later() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    question = world.ask_may_close()
    close = holder.pushed()
    world.wait(2.999)
    assert question.answer() is None
    world.wait(0.001)
    answer = question.answer()
    assert (answer["reason"], answer["retryAfterSeconds"]) == ("silent", 15)
    assert holder.reply(close, "allow_close")["code"] == "request_expired"
    assert world.may_close()["reason"] == "cooldown"


@pytest.mark.requirement("LP-10", "G21")
def test_an_allow_in_the_last_millisecond_counts() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    question = world.ask_may_close()
    world.wait(2.999)
    assert holder.reply(holder.pushed(), "allow_close")["code"] == "accepted"
    assert question.answer()["reason"] == "free"


@pytest.mark.requirement("LP-8")
def test_the_cooldown_runs_from_the_end_of_the_check() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    world.ask_may_close()
    assert holder.pushed() is not None
    world.wait(3)
    world.wait(14.999)
    assert world.may_close()["retryAfterSeconds"] == 0.001
    world.wait(0.001)
    assert world.ask_may_close().answer() is None
    assert holder.pushed() is not None


def test_the_cooldown_of_one_app_holds_nobody_else_back() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    holder.begin(BROWSER)
    world.wait(121)
    world.ask_may_close()
    holder.pushed()
    world.wait(3)
    assert world.ask_may_close(BROWSER).answer() is None
    assert holder.pushed()["appKey"] == BROWSER


def test_in_the_cooldown_an_app_that_nobody_stands_by_is_free() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    world.ask_may_close()
    holder.reply(holder.pushed(), "allow_close")
    assert world.may_close()["reason"] == "free"


def test_strikes_are_counted_per_lease_and_in_a_row() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    close = None
    for expected in ("silent", "silent"):
        question = world.ask_may_close()
        close = holder.pushed()
        world.wait(3)
        assert question.answer()["reason"] == expected
        world.wait(15)
    assert holder.reply(close, "extend_lease", leaseSeconds=60)["code"] == "accepted"
    world.wait(121)
    for expected in ("silent", "silent", "free"):
        question = world.ask_may_close()
        assert holder.pushed() is not None
        world.wait(3)
        assert question.answer()["reason"] == expected
        world.wait(15)
    assert world.lease() is not None
    assert holder.reply(close, "allow_close")["code"] == "request_expired"


def test_a_late_extend_after_the_last_strike_brings_the_lease_back() -> None:
    world = LeaseWorld(LeasePolicy(startup_hold_ms=0, close_check_strikes=1))
    holder = world.expired_holder()
    question = world.ask_may_close()
    close = holder.pushed()
    world.wait(3)
    assert question.answer()["allowed"] is True
    assert holder.reply(close, "extend_lease", leaseSeconds=60)["code"] == "accepted"
    assert world.may_close()["reason"] == "leased"


def test_a_late_extend_is_taken_for_an_hour() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    world.ask_may_close()
    close = holder.pushed()
    world.wait(3 + 3599)
    assert holder.reply(close, "extend_lease", leaseSeconds=60)["code"] == "accepted"
    world.wait(3601)
    assert holder.reply(close, "extend_lease", leaseSeconds=60)["code"] == "request_expired"
    assert world.ledger.rows.all(ASKS) == []


def test_a_close_id_is_no_use_to_the_successor_of_the_holder_that_was_asked() -> None:
    world = LeaseWorld()
    first, second = world.spawn(), world.spawn()
    holder = world.holder("agent", first)
    holder.begin()
    world.wait(121)
    world.ask_may_close()
    close = holder.pushed()
    world.kill(first)
    successor = world.holder("agent", second)
    assert successor.reply(close, "extend_lease", leaseSeconds=60)["code"] == "request_expired"


def test_one_death_among_those_asked_is_one_allow() -> None:
    world = LeaseWorld()
    process = world.spawn()
    mortal, other = world.holder("mortal", process), world.holder("other")
    mortal.begin()
    other.begin()
    world.wait(121)
    question = world.ask_may_close()
    close = other.pushed()
    world.kill(process)
    assert question.answer() is None
    assert [one["holderId"] for one in world.control("leases.list")["result"]["leases"]] == ["other"]
    other.reply(close, "allow_close")
    assert question.answer()["reason"] == "free"


def test_after_an_extend_the_app_is_kept_until_the_others_have_answered_too() -> None:
    world = LeaseWorld()
    first, second = world.expired_holder("first"), world.expired_holder("second")
    second.renew()  # refused: too late
    question = world.ask_may_close()
    close = first.pushed()
    assert second.pushed() is not None
    assert first.reply(close, "extend_lease", leaseSeconds=60)["code"] == "accepted"
    assert question.answer()["reason"] == "kept"
    assert world.may_close()["reason"] == "leased"
    assert len(world.ledger.rows.all(CHECKS)) == 1
    world.wait(3)
    assert world.ledger.rows.all(CHECKS) == []
    lease = world.lease("second")
    assert lease is not None
    assert lease.strikes == 1


def test_who_asks_while_a_check_runs_shares_it_and_its_reserve_goes_to_the_first() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    looking = world.ask_may_close()
    first, second = world.ask_may_close(reserve=True), world.ask_may_close(reserve=True)
    holder.reply(holder.pushed(), "allow_close")
    assert holder.pushed() is None
    assert looking.answer()["reason"] == "free"
    assert first.answer()["validSeconds"] == 10
    assert second.answer()["reason"] == "quit_committed"


def test_a_lease_whose_grace_ends_during_a_check_is_asked_about_after_the_cooldown() -> None:
    world = LeaseWorld()
    late = world.holder("late")
    holder = world.expired_holder()
    question = world.ask_may_close()
    close = holder.pushed()
    late.begin()
    assert question.answer()["reason"] == "leased"
    world.wait(2)
    world.ask_may_close()
    holder.reply(close, "allow_close")
    world.wait(120)
    question = world.ask_may_close()
    assert late.pushed()["holderId"] == "late"
    assert question.answer() is None


def test_two_connections_lost_and_one_new_one_are_one_question() -> None:
    world = LeaseWorld()
    first = world.expired_holder()
    question = world.ask_may_close()
    close = first.pushed()
    first.peer.disconnect()
    world.wait(1)
    second = world.holder()
    assert second.pushed() == close
    world.wait(2)
    assert question.answer()["reason"] == "silent"  # the three seconds ran on


@pytest.mark.requirement("LP-7")
def test_a_variant_and_its_base_share_the_question_about_the_variant() -> None:
    world = LeaseWorld()
    holder = world.expired_holder(app_key=WORK)
    of_variant = world.ask_may_close(WORK)
    close = holder.pushed()
    of_base = world.ask_may_close(EDITOR)
    assert holder.pushed() is None
    assert world.may_close(HOME)["reason"] == "free"
    holder.reply(close, "allow_close")
    assert of_variant.answer()["reason"] == "free"
    assert of_base.answer()["reason"] == "free"


@pytest.mark.requirement("LP-7")
def test_a_question_is_not_repeated_by_way_of_the_base_key() -> None:
    world = LeaseWorld()
    holder = world.expired_holder(app_key=WORK)
    world.ask_may_close(WORK)
    holder.pushed()
    world.wait(3)
    assert world.may_close(EDITOR)["reason"] == "cooldown"
    assert holder.pushed() is None
    world.wait(15)
    assert world.ledger.rows.all(COOLDOWNS) == []


@pytest.mark.requirement("LP-7")
def test_a_variants_lease_that_is_allowed_leaves_the_base_to_its_own() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin(WORK)
    holder.begin(EDITOR)
    world.wait(121)
    of_base = world.ask_may_close(EDITOR)
    closes = {close["appKey"]: close for close in (holder.pushed(), holder.pushed())}
    holder.reply(closes[WORK], "allow_close")
    assert of_base.answer() is None
    holder.reply(closes[EDITOR], "extend_lease", leaseSeconds=60)
    assert of_base.answer()["reason"] == "kept"
    assert world.may_close(WORK)["reason"] == "free"


def test_a_holder_without_a_connection_keeps_the_others_from_being_asked() -> None:
    world = LeaseWorld()
    away, here = world.expired_holder("away"), world.expired_holder("here")
    here.peer.lines.clear()
    away.peer.disconnect()
    assert world.may_close()["reason"] == "deferred"
    assert here.pushed() is None
    world.wait(15)
    question = world.ask_may_close()
    here.reply(here.pushed(), "allow_close")
    assert question.answer()["reason"] == "free"


def test_a_deferral_is_forgotten_when_the_holder_is_asked() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    holder.peer.disconnect()
    assert world.may_close()["reason"] == "deferred"
    back = world.holder()
    world.wait(15)
    world.ask_may_close()
    assert back.pushed() is not None
    world.wait(3)
    back.peer.disconnect()
    world.wait(15)
    assert world.may_close()["reason"] == "deferred"


def test_the_answer_shows_at_most_a_hundred_holders() -> None:
    world = LeaseWorld()
    for number in range(MAX_HOLDERS + 5):
        world.holder(f"holder {number:03}").begin()
    answer = world.may_close()
    assert (len(answer["holders"]), answer["holdersTotal"]) == (100, 105)
    assert answer["holders"][0]["holderId"] == "holder 000"


@pytest.mark.parametrize("character", ["\N{FIRE}", "\x01"])
def test_the_answer_fits_its_frame_whatever_the_holders_are_called(character: str) -> None:
    world = LeaseWorld()
    for number in range(60):
        holder_id = f"{number:03}".ljust(128, character)
        peer = world.connect("lease")
        hello = {"protocolVersion": 1, "holderId": holder_id, "clientName": character * 128, "pid": 0}
        peer.ask({"action": "session.hello", **hello})
        members = {"requestId": "r", "holderId": holder_id, "appKey": EDITOR, "leaseSeconds": 60}
        assert peer.ask({"action": "lease.begin", **members})["code"] == "accepted"
    for method, params in (("leases.may_close", {"appKey": EDITOR}), ("leases.list", {"limit": 100})):
        peer = world.connect("control")
        peer.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        (line,) = peer.lines
        assert len(line) <= 65_536
        result = json.loads(line)["result"]
        assert result.get("holdersTotal", 60) == 60
        assert 1 <= len(result.get("holders", result.get("leases"))) < 60


def test_the_pages_of_the_list_join_up() -> None:
    world = LeaseWorld()
    for number in range(7):
        world.holder(f"holder {number}").begin()
    found, cursor = [], None
    while True:
        params = {"limit": 3} if cursor is None else {"limit": 3, "cursor": cursor}
        page = world.control("leases.list", **params)["result"]
        found += [lease["holderId"] for lease in page["leases"]]
        if (cursor := page["nextCursor"]) is None:
            break
    assert found == [f"holder {number}" for number in range(7)]


def test_a_policy_without_patience_still_asks_first() -> None:
    policy = LeasePolicy(startup_hold_ms=0, close_check_cooldown_ms=0, close_check_strikes=1)
    world = LeaseWorld(attrs.evolve(policy, close_check_timeout_ms=1))
    holder = world.expired_holder()
    question = world.ask_may_close()
    assert holder.pushed() is not None
    world.wait(0.001)
    assert question.answer()["reason"] == "free"
