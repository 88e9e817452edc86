"""Sessions and the processes behind them: what a conversation over one socket cannot show."""

from __future__ import annotations

import attrs
import pytest

from handlers.events import Call, CallRef, Closed, Hangup, ProcessEnded, Reply, Watch
from handlers.policy import LeasePolicy
from protocols.lease.codes import Code
from protocols.lease.messages import Begin, Response
from tests.support.lease_world import BROWSER, EDITOR, NO_START_HOLD, LeaseWorld


@pytest.mark.requirement("LP-2")
def test_the_holders_process_is_watched_not_its_helper() -> None:
    world = LeaseWorld()
    agent = world.spawn()
    helper = world.spawn(agent)
    world.holder("agent", helper, pid=agent.id.pid)
    assert Watch(agent.id) in world.effects
    assert Watch(helper.id) not in world.effects


@pytest.mark.requirement("LP-5")
def test_a_holder_id_is_free_when_neither_session_nor_lease_is_left() -> None:
    world = LeaseWorld()
    first, second = world.spawn(), world.spawn()
    holder = world.holder("agent", first)
    holder.begin()
    holder.end()
    holder.peer.disconnect()
    assert world.hello("agent", second)[1]["code"] == "holder_id_mismatch"
    world.wait(61)
    assert world.hello("agent", second)[1]["action"] == "session.ready"


@pytest.mark.requirement("LP-5", "G24")
def test_the_successor_of_a_dead_holder_can_renew_its_lease_in_the_grace() -> None:
    world = LeaseWorld()
    first, second = world.spawn(), world.spawn()
    world.holder("agent", first).begin(seconds=600)
    world.kill(first)
    holder = world.holder("agent", second)
    assert holder.renew(seconds=600)["code"] == "accepted"
    assert world.may_close()["reason"] == "leased"
    world.kill(second)
    assert world.may_close()["reason"] == "grace"


@pytest.mark.requirement("G24")
def test_a_death_closes_every_session_of_the_process_and_no_other() -> None:
    world = LeaseWorld()
    agent, other = world.spawn(), world.spawn()
    helper = world.spawn(agent)
    holders = [world.holder("agent", agent), world.holder("agent", helper, pid=agent.id.pid)]
    bystander = world.holder("bystander", other)
    world.kill(agent)
    assert all(holder.peer.closed for holder in holders)
    assert not bystander.peer.closed
    assert [effect.connection for effect in world.effects if isinstance(effect, Hangup)] == [
        holder.peer.number for holder in holders
    ]


@pytest.mark.requirement("G24")
def test_a_message_that_a_death_overtook_is_refused() -> None:
    world = LeaseWorld()
    agent = world.spawn()
    holder = world.holder("agent", agent)
    begin = Begin(request_id="r1", holder_id="agent", app_key=EDITOR, lease_seconds=60)
    world.ledger.decide(ProcessEnded(agent.id))
    world.ledger.decide(Call(CallRef(holder.peer.number, 99), begin, b""))
    world.settle()
    (answer,) = (x.body for x in world.effects if isinstance(x, Reply) and x.to.number == 99)
    assert isinstance(answer, Response)
    assert answer.code is Code.HOLDER_MISMATCH
    assert world.lease() is None


def test_events_that_are_decided_again_change_nothing_more() -> None:
    world = LeaseWorld()
    agent = world.spawn()
    holder = world.holder("agent", agent)
    holder.begin(seconds=600)
    world.kill(agent)
    before = world.lease()
    assert before is not None
    world.wait(5)
    world.submit(ProcessEnded(agent.id))
    world.submit(Closed(holder.peer.number))
    assert world.lease() == attrs.evolve(before, revision=before.revision + 1)


@pytest.mark.requirement("LP-5", "LP-8")
def test_a_known_holder_needs_no_new_place_among_the_holders() -> None:
    world = LeaseWorld(LeasePolicy(startup_hold_ms=0, max_holders=1))
    agent = world.spawn()
    world.holder("agent", agent).begin()
    world.kill(agent)
    assert "maxHolders" in world.hello("other")[1]["message"]
    assert world.hello("agent")[1]["action"] == "session.ready"


@pytest.mark.requirement("LP-9")
def test_a_half_closed_connection_gets_no_push() -> None:
    world = LeaseWorld()
    first = world.expired_holder()
    second = world.holder()
    world.holding = True  # an answer that is still owed keeps the half-closed connection
    second.begin(BROWSER)
    second.peer.half_close()
    world.holding = False
    world.ask_may_close()
    assert first.pushed() is not None
    assert [line for line in second.peer.lines if b"can_close" in line] == []


@pytest.mark.requirement("LP-9")
def test_a_push_moves_on_when_its_connection_is_half_closed() -> None:
    world = LeaseWorld()
    first = world.expired_holder()
    second = world.holder()
    world.ask_may_close()
    close = second.pushed()
    second.peer.half_close()
    assert first.pushed() == close


def test_a_session_may_be_the_first_of_many() -> None:
    world = LeaseWorld(attrs.evolve(NO_START_HOLD, max_connections_per_holder=2))
    first = world.holder()
    world.holder()
    assert "maxConnectionsPerHolder" in world.hello("agent")[1]["message"]
    first.peer.disconnect()
    assert world.hello("agent")[1]["action"] == "session.ready"
