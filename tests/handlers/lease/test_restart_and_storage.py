"""Leases over restarts of the broker and of the machine, and over a disk that refuses (durability, broker
restart).
"""

from __future__ import annotations

import pytest

from handlers.events import Watch
from handlers.lease.rows import LEASES, RECEIPTS, Lease, Receipt
from protocols.lease.states import LeaseState
from protocols.strict_json import decode, encode
from protocols.structure import structure, unstructure
from tests.support.lease_world import BROWSER, EDITOR, LeaseWorld


@pytest.mark.requirement("LP-12")
def test_the_time_that_the_broker_was_away_counts() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin(seconds=60)
    holder.begin(BROWSER, seconds=600)
    world.restart(down_seconds=100)
    assert world.may_close()["reason"] == "grace"
    assert world.may_close(BROWSER)["reason"] == "leased"
    world.restart(down_seconds=100)
    lease = world.lease()
    assert lease is not None
    assert lease.state is LeaseState.EXPIRED
    assert lease.expires_at + 60_000 == lease.grace_ends_at


@pytest.mark.requirement("LP-12")
def test_nothing_protects_after_a_restart_of_the_machine() -> None:
    world = LeaseWorld()
    world.holder().begin(seconds=1800)
    world.restart(reboot=True)
    assert world.may_close()["reason"] == "free"
    other = world.spawn()
    assert world.hello("agent", other)[1]["action"] == "session.ready"


@pytest.mark.requirement("G24", "LP-12")
def test_a_holder_that_died_while_the_broker_was_away_is_found_dead() -> None:
    world = LeaseWorld()
    process = world.spawn()
    world.holder("agent", process).begin(seconds=1800)
    world._dead.add(process.id)
    world.effects.clear()
    world.restart()
    assert world.effects[0] == Watch(process.id)
    assert world.may_close()["reason"] == "grace"
    world.wait(60)
    assert world.may_close()["reason"] == "free"


@pytest.mark.requirement("LP-9")
def test_a_check_under_way_is_void_after_a_restart() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    world.ask_may_close()
    close = holder.pushed()
    world.restart()
    holder = world.holder()
    assert holder.reply(close, "extend_lease", leaseSeconds=60)["code"] == "request_expired"
    question = world.ask_may_close()
    assert holder.pushed()["requestId"] != close["requestId"]
    assert question.answer() is None


@pytest.mark.requirement("LP-4")
def test_stored_rows_come_back_as_they_were() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin()
    holder.end()
    rows = [world.ledger.rows.all(table) for table in (LEASES, RECEIPTS)]
    assert [len(kind) for kind in rows] == [1, 2]
    for kind, found in zip((Lease, Receipt), rows, strict=True):
        for row in found:
            assert structure(kind, decode(encode(unstructure(row))).value) == row


# -- durability ----------------------------------------------------------------------------------------


@pytest.mark.requirement("LP-6")
def test_no_answer_before_the_commit() -> None:
    world = LeaseWorld()
    holder = world.holder()
    world.holding = True
    assert holder.begin() is None
    assert holder.renew() is None
    assert world.ask_may_close().answer() is None  # nor anything that was decided by what is not on disk yet
    world.holding = False
    world.settle()
    assert [holder.peer.read()["code"] for _ in range(2)] == ["accepted", "accepted"]


@pytest.mark.requirement("LP-6")
def test_a_commit_that_fails_takes_everything_back_and_says_so() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin(seconds=600)
    before = world.lease()
    world.holding = True
    holder.renew(seconds=60, requestId="renew")
    holder.end(requestId="end")
    world.fail_commit()
    answers = [holder.peer.read() for _ in range(2)]
    assert [(one["requestId"], one["code"]) for one in answers] == [
        ("renew", "not_entitled"),
        ("end", "not_entitled"),
    ]
    assert "nothing was changed" in answers[0]["message"]
    assert world.lease() == before
    assert holder.renew(seconds=60, requestId="renew")["code"] == "accepted"


@pytest.mark.requirement("LP-9")
def test_an_allow_that_was_not_saved_closes_nothing() -> None:
    world = LeaseWorld()
    holder = world.expired_holder()
    question = world.ask_may_close(reserve=True)
    close = holder.pushed()
    world.holding = True
    assert holder.reply(close, "allow_close") is None
    world.fail_commit()
    assert holder.peer.read()["code"] == "not_entitled"
    assert question.answer() is None
    assert holder.reply(close, "allow_close")["code"] == "accepted"
    assert question.answer()["allowed"] is True


@pytest.mark.requirement("G24")
def test_a_death_that_could_not_be_saved_is_decided_again() -> None:
    world = LeaseWorld()
    process = world.spawn()
    holder = world.holder("agent", process)
    holder.begin(seconds=1800)
    world.holding = True
    world.kill(process)
    world.fail_commit()
    assert world.may_close()["reason"] == "grace"
    assert holder.peer.closed


@pytest.mark.requirement("LP-6", "LP-12")
def test_a_full_disk_keeps_every_app_open() -> None:
    world = LeaseWorld()
    holder = world.holder()
    holder.begin(seconds=60)
    world.holding = True
    holder.begin(BROWSER)
    world.fail_commit(refusing=True)
    holder.peer.read()
    world.wait(500)
    assert holder.begin(BROWSER)["code"] == "not_entitled"
    assert world.may_close()["allowed"] is False
    world.ledger.resume()
    world.wait(0)
    assert world.may_close(BROWSER)["reason"] == "free"
    assert world.ask_may_close().answer() is None
    assert holder.pushed()["appKey"] == EDITOR


@pytest.mark.requirement("LP-4")
def test_other_holders_answers_do_not_wait_in_the_wrong_order() -> None:
    world = LeaseWorld()
    holder = world.holder()
    world.holding = True
    holder.begin(requestId="r1")
    holder.begin("org.example.Nothing", requestId="r2")
    holder.peer.send(b"garbage\n")
    assert holder.peer.read() is None
    world.holding = False
    world.settle()
    assert [holder.peer.read()["requestId"] for _ in range(3)] == ["r1", "r2", None]
