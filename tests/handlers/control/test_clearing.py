"""data.clear: a tool asks, the person decides, and nothing else deletes anything (CP-4.15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handlers.companion.host import HOST
from handlers.companion.rows import REQUESTS, Request
from handlers.control.clearing import ANSWER_MS, CLEARINGS
from handlers.events import Scrub, Scrubbed
from handlers.policy import Limits
from protocols.presenter.messages import Present
from tests.support.companion_world import refusal
from tests.support.control_world import ControlWorld, Owner


@pytest.fixture
def world() -> ControlWorld:
    world = ControlWorld()
    world.presenter.ready()
    return world


def ended_request(world: ControlWorld) -> str:
    """A request that has ended, of the client c1."""
    session = world.session("c1")
    return str(session.cancel(session.choose().request_id).request_id)


def question(world: ControlWorld) -> Present:
    """What was put on the screen last."""
    return world.presenter.pictures()[-1]


def ask(world: ControlWorld) -> tuple[Owner, int, str]:
    """Ask; the tool, its call, and the question's request, on the screen and armed."""
    owner = world.owner()
    call = owner.start("data.clear")
    assert owner.reply(call) is None
    request_id = question(world).request_id
    world.presenter.presented(request_id)
    world.advance(1_000)
    return owner, call, request_id


def kept(world: ControlWorld, request_id: str) -> bool:
    return world.disk.read(REQUESTS, request_id) is not None


def test_the_person_is_asked_by_the_host_and_sees_the_program_behind_it(world: ControlWorld) -> None:
    ask(world)
    shown = question(world)
    assert shown.source.label == "Companion"
    assert shown.source.pid == world.me.id.pid
    assert [option.id for option in shown.options or ()] == ["keep", "clear"]


@pytest.mark.requirement("CP-4.15")
def test_the_persons_own_click_clears(world: ControlWorld) -> None:
    request_id = ended_request(world)
    owner, call, asked = ask(world)
    assert kept(world, request_id)
    assert world.presenter.answer(asked, "clear").outcome == "committed"
    assert owner.reply(call)["result"] == {"status": "cleared"}
    world.advance(1_000)
    assert not kept(world, request_id)
    assert not kept(world, asked)
    told = world.session("c1").get(request_id)
    assert refusal(told)[0] == "NOT_FOUND"
    assert "recordsLostAt" in told.details


@pytest.mark.requirement("CP-4.15")
def test_what_is_open_stays(world: ControlWorld) -> None:
    session = world.session("c1")
    still_open = session.choose()
    owner, call, asked = ask(world)
    world.presenter.answer(asked, "clear")
    assert owner.reply(call)["result"] == {"status": "cleared"}
    world.advance(1_000)
    assert session.get(still_open.request_id).state.value == "running"


@pytest.mark.requirement("CP-4.15")
def test_the_asker_is_told_only_when_not_a_byte_is_left(world: ControlWorld) -> None:
    ended_request(world)
    owner, call, asked = ask(world)
    world.files_are_read = True  # so they cannot be scrubbed yet
    world.presenter.answer(asked, "clear")
    scrub = next(effect for effect in world.effects if isinstance(effect, Scrub))
    assert owner.reply(call) is None
    world.presenter.user("pause")  # too late for that: the person has decided
    assert owner.reply(call) is None
    world.submit(Scrubbed(scrub.id, scrub.revision))
    assert owner.reply(call)["result"] == {"status": "cleared"}
    assert world.ledger.rows.all(CLEARINGS) == []


@pytest.mark.requirement("CP-4.15")
def test_what_the_person_has_decided_is_done_though_the_asker_has_gone(world: ControlWorld) -> None:
    request_id = ended_request(world)
    owner, _, asked = ask(world)
    world.holding = True
    world.presenter.choose(asked, "clear")
    owner.peer.disconnect()
    world.holding = False
    world.settle()
    assert not kept(world, request_id)
    assert world.ledger.rows.all(CLEARINGS) == []


def keeps(world: ControlWorld, asked: str) -> None:
    world.presenter.answer(asked, "keep")


def dismisses(world: ControlWorld, asked: str) -> None:
    world.presenter.close_bubble(asked)


def waits(world: ControlWorld, asked: str) -> None:
    world.advance(ANSWER_MS)


def hides(world: ControlWorld, asked: str) -> None:
    world.presenter.user("hide")


def pauses(world: ControlWorld, asked: str) -> None:
    world.presenter.user("pause")


def leaves(world: ControlWorld, asked: str) -> None:
    world.presenter.gone()
    world.advance(60_000)


ENDS: dict[Callable[[ControlWorld, str], None], dict[str, str]] = {
    keeps: {"status": "kept"},
    dismisses: {"status": "dismissed"},
    waits: {"status": "expired"},
    hides: {"status": "unavailable", "reason": "hidden_by_user"},
    pauses: {"status": "unavailable", "reason": "paused_by_user"},
    leaves: {"status": "unavailable", "reason": "presenter_lost"},
}


@pytest.mark.requirement("CP-3.5", "CP-4.9")
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_whatever_else_happens_keeps_everything(
    world: ControlWorld, end: Callable[[ControlWorld, str], None]
) -> None:
    request_id = ended_request(world)
    owner, call, asked = ask(world)
    end(world, asked)
    assert owner.reply(call)["result"] == ENDS[end]
    world.advance(10_000)
    assert kept(world, request_id)
    assert world.request(asked).ended
    assert world.ledger.rows.all(CLEARINGS) == []


@pytest.mark.requirement("CP-3.5")
def test_a_click_that_was_not_armed_clears_nothing(world: ControlWorld) -> None:
    request_id = ended_request(world)
    owner = world.owner()
    call = owner.start("data.clear")
    asked = question(world).request_id
    world.presenter.presented(asked)
    assert world.presenter.answer(asked, "clear").reason == "not_armed"
    assert owner.reply(call) is None
    assert kept(world, request_id)


@pytest.mark.requirement("CP-4.12")
def test_an_answer_that_could_not_be_stored_clears_nothing_and_the_question_stays(
    world: ControlWorld,
) -> None:
    request_id = ended_request(world)
    owner, call, asked = ask(world)
    world.holding = True
    world.presenter.choose(asked, "clear")
    world.fail_commit()
    assert owner.reply(call) is None
    assert kept(world, request_id)
    assert world.presenter.answer(asked, "keep").outcome == "committed"
    assert owner.reply(call)["result"] == {"status": "kept"}


@pytest.mark.requirement("CP-4.12")
def test_a_question_that_could_not_be_stored_is_refused(world: ControlWorld) -> None:
    world.holding = True
    owner = world.owner()
    call = owner.start("data.clear")
    world.fail_commit()
    assert owner.reply(call)["error"]["data"]["reason"] == "not_saved"
    assert world.ledger.rows.all(CLEARINGS) == []


def test_the_askers_disconnect_takes_the_question_back(world: ControlWorld) -> None:
    request_id = ended_request(world)
    owner, _, asked = ask(world)
    owner.peer.disconnect()
    assert world.presenter.dismissed()[asked] == "cancelled_by_client"
    assert world.presenter.answer(asked, "clear").outcome == "too_late"
    assert kept(world, request_id)
    ask(world)  # and another one may ask


def test_there_is_one_question_at_a_time(world: ControlWorld) -> None:
    owner, call, asked = ask(world)
    other = world.owner()
    refused = other.refused("data.clear")
    assert (refused["code"], refused["reason"]) == ("RATE_LIMITED", "clearings")
    assert 0 < refused["retryAfterMs"] <= ANSWER_MS
    world.presenter.answer(asked, "keep")
    assert owner.reply(call)["result"] == {"status": "kept"}
    other.start("data.clear")
    assert question(world).request_id != asked


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(("action", "reason"), [("hide", "hidden"), ("pause", "paused")])
def test_who_does_not_want_to_be_asked_is_not(world: ControlWorld, action: str, reason: str) -> None:
    world.presenter.user(action)
    assert world.owner().call("data.clear") == {"status": "unavailable", "reason": reason}
    assert world.presenter.pictures() == []


def test_without_a_person_nobody_can_clear(world: ControlWorld) -> None:
    world.presenter.gone()
    expected = {"status": "unavailable", "reason": "no_presenter"}
    assert world.owner().call("data.clear") == expected
    world.presenter.ready(person=False)
    assert world.owner().call("data.clear") == expected


@pytest.mark.requirement("CP-4.5")
def test_a_full_queue_refuses_the_question(world: ControlWorld) -> None:
    world = ControlWorld(Limits(max_queued_total=1))
    world.presenter.ready()
    world.session("c1").choose()
    refused = world.owner().refused("data.clear")
    assert (refused["code"], refused["reason"]) == ("QUEUE_FULL", "queue")


def test_a_place_that_a_pause_frees_goes_to_the_next_of_the_hosts() -> None:
    world = ControlWorld(Limits(max_displayed=1))
    world.presenter.ready()
    ask(world)
    host = world.host()
    waiting = host.choose().request_id
    world.presenter.user("pause")
    assert question(world).request_id == waiting


def test_a_restart_takes_the_question_back(world: ControlWorld) -> None:
    request_id = ended_request(world)
    _, _, asked = ask(world)
    world.restart()
    assert world.request(asked).reason == "runtime_restarted"
    assert kept(world, request_id)


@pytest.mark.requirement("CP-4.3")
def test_the_question_is_the_hosts_and_no_clients(world: ControlWorld) -> None:
    _, _, asked = ask(world)
    row: Any = world.request(asked)
    assert isinstance(row, Request)
    assert row.client_id == HOST
    assert refusal(world.session("c1").get(asked))[0] == "NOT_FOUND"
