"""Progress as a block of work, through a real broker: both flavours."""

from __future__ import annotations

import pytest

from broker.client.errors import CallFailed
from broker.client.outcomes import Dismissed, Hidden
from protocols.companion.states import State
from tests.client.agents import Agent
from tests.client.desk import Desk


@pytest.mark.requirement("CP-3.11")
def test_updates_change_the_one_bubble_and_the_end_of_the_block_completes_it(
    agent: Agent, desk: Desk
) -> None:
    steps = [{"fraction": 0.25}, {"fraction": 0.5, "detail": "Half of it"}, {"fraction": None}]
    assert agent.work("Upload", *steps, detail="Begun", tone="success") is None
    request_id = desk.seen("Upload")["requestId"]
    ended = agent("get", request_id)
    assert (ended.state, ended.reason, desk.count("Upload")) == (State.COMPLETED, "finished", 1)
    assert desk.gone(request_id)


def test_the_first_update_may_come_before_anything_was_shown(agent: Agent, desk: Desk) -> None:
    """What is shown moves the revision; that is no conflict of this program's."""
    for number in range(20):
        assert agent.work(f"Quick {number}", {"fraction": 0.1}, {"fraction": 0.9}) is None


def test_an_error_takes_the_bubble_away_and_is_raised_as_it_is(agent: Agent, desk: Desk) -> None:
    def fails() -> None:
        raise KeyError("the work failed")

    with pytest.raises(KeyError, match="the work failed"):
        agent.work("Fails", lambda: desk.seen("Fails"), fails)
    ended = agent("get", desk.seen("Fails")["requestId"])
    assert (ended.state, ended.reason) == (State.CANCELLED, "cancelled_by_client")


def test_work_goes_on_when_the_person_closes_its_bubble(agent: Agent, desk: Desk) -> None:
    desk.on("Closed", close=True)
    done: list[int] = []
    ended = agent.work(
        "Closed",
        lambda: desk.gone(desk.seen("Closed")["requestId"]),
        {"fraction": 0.5},
        lambda: done.append(1),
        {"fraction": 0.7},
    )
    assert isinstance(ended, Dismissed)
    assert done == [1]


@pytest.mark.requirement("CP-4.9")
def test_work_goes_on_where_nothing_can_be_shown(agent: Agent, desk: Desk) -> None:
    desk.user("hide")
    done: list[int] = []
    ended = agent.work("Hidden", {"fraction": 0.5}, lambda: done.append(1))
    desk.user("show")
    assert isinstance(ended, Hidden)
    assert (done, desk.count("Hidden")) == ([1], 0)


def test_a_value_that_is_no_good_is_the_programs_own_fault(agent: Agent, desk: Desk) -> None:
    with pytest.raises(CallFailed) as caught:
        agent.work("Wrong", {"fraction": 1.5})
    assert caught.value.details["field"] == "params.fraction"
    assert agent("get", desk.seen("Wrong")["requestId"]).state is State.CANCELLED
