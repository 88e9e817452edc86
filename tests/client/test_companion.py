"""What an agent asks and shows through a real broker, and how it learns that nobody has answered: both flavours."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from broker.client.errors import CallFailed
from broker.client.outcomes import (
    Cancelled,
    Dismissed,
    Expired,
    Hidden,
    Muted,
    NotCompleted,
    Paused,
    Unavailable,
)
from protocols.companion.client import Credential
from protocols.companion.states import State
from tests.client.agents import Agent
from tests.client.desk import Desk
from tests.support.broker_process import BrokerProcess

OPTIONS = {"ship": "Ship it", "wait": "Wait"}


@pytest.mark.requirement("CP-2.14", "CP-3.7")
def test_an_answer_is_the_id_that_the_person_chose(agent: Agent, desk: Desk) -> None:
    desk.on("Deploy?", choose="wait")
    assert agent("ask", "Deploy?", OPTIONS) == "wait"
    assert [option["label"] for option in desk.seen("Deploy?")["options"]] == ["Ship it", "Wait"]


@pytest.mark.requirement("CP-3.5", "CP-3.7")
@pytest.mark.parametrize(("chosen", "answer"), [("yes", True), ("no", False)])
def test_yes_and_no_come_from_a_click(agent: Agent, desk: Desk, chosen: str, answer: bool) -> None:
    desk.on("Delete?", choose=chosen)
    assert agent("confirm", "Delete?", yes="Delete", no="Keep") is answer


@pytest.mark.requirement("CP-3.7")
@pytest.mark.parametrize("written", ["Rex", "  two\nlines ", "猫🐈‍⬛ né?"])
def test_a_text_is_what_the_person_wrote(agent: Agent, desk: Desk, written: str) -> None:
    desk.on("Name?", write=written)
    assert agent("input", "Name?", multiline=True, max_length=20, placeholder="A name") == written


def test_a_question_may_say_how_it_is_shown_and_what_it_belongs_to(agent: Agent, desk: Desk) -> None:
    desk.on("Styled?", choose="ship")
    assert agent("ask", "Styled?", OPTIONS, style="default", task_id="t-1", timeout=30) == "ship"
    assert desk.seen("Styled?")["style"] == "default"


# -- nobody has answered -------------------------------------------------------------------------------------------


def ends(agent: Agent, title: str, **how: Any) -> NotCompleted:
    """How a question ends that nobody answers."""
    with pytest.raises(NotCompleted) as caught:
        agent("ask", title, OPTIONS, **how)
    if caught.value.request is not None:
        assert caught.value.request.result is None
    assert not any(id in str(caught.value) for id in OPTIONS)
    return caught.value


@pytest.mark.requirement("G14", "CP-3.7")
def test_a_question_whose_time_is_over_has_expired(agent: Agent) -> None:
    assert type(ends(agent, "Nobody?", timeout=1)) is Expired


@pytest.mark.requirement("G14", "CP-3.5")
def test_a_question_that_the_person_closes_is_dismissed(agent: Agent, desk: Desk) -> None:
    desk.on("Close me", close=True)
    assert type(ends(agent, "Close me")) is Dismissed


@pytest.mark.requirement("G14", "CP-3.10")
def test_a_question_that_the_client_takes_back_is_cancelled_by_it(
    agent: Agent, desk: Desk, broker: BrokerProcess, credential: Credential
) -> None:
    def take_back() -> None:
        shown = desk.seen("Taken back?")
        with broker.session((credential.client_id, credential.key)) as other:
            other.call("requests.cancel", requestId=shown["requestId"])

    thread = threading.Thread(target=take_back)
    thread.start()
    error = ends(agent, "Taken back?")
    thread.join()
    assert isinstance(error, Cancelled)
    assert error.by == "client"


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(("action", "undo", "kind"), [("hide", "show", Hidden), ("pause", "resume", Paused)])
def test_hidden_and_paused_are_told_apart_before_and_after_the_question_was_made(
    agent: Agent, desk: Desk, action: str, undo: str, kind: type[Unavailable]
) -> None:
    during, then = ends_when(agent, desk, lambda: desk.user(action))
    desk.user(undo)
    assert (type(during), type(then)) == (kind, kind)


@pytest.mark.requirement("CP-4.9")
def test_a_muted_program_is_told_that_it_is(agent: Agent, desk: Desk, credential: Credential) -> None:
    during, then = ends_when(
        agent, desk, lambda: desk.user("mute", clientId=credential.client_id, seconds=3_600)
    )
    desk.user("mute", clientId=credential.client_id)
    assert (type(during), type(then)) == (Muted, Muted)


def ends_when(agent: Agent, desk: Desk, act: Callable[[], None]) -> tuple[NotCompleted, NotCompleted]:
    """How a question ends that stands when the person acts, and how one that is made afterwards."""

    def see_and_act() -> None:
        desk.seen("Still there?")
        act()

    thread = threading.Thread(target=see_and_act)
    thread.start()
    during, then = ends(agent, "Still there?"), ends(agent, "And now?")
    thread.join()
    assert during.request is not None
    assert then.request is None
    assert desk.count("And now?") == 0
    return during, then


def test_a_notice_that_cannot_be_shown_says_so(agent: Agent, desk: Desk) -> None:
    desk.user("hide")
    with pytest.raises(Hidden):
        agent("notify", "Done.")
    desk.user("show")


@pytest.mark.requirement("CP-6.7")
@pytest.mark.parametrize(
    ("options", "field"),
    [({"only": "One"}, "params.options"), ({"a": "A", "b": "B" * 25}, "params.options.1.label")],
)
def test_a_question_that_cannot_be_asked_is_refused(agent: Agent, options: Any, field: str) -> None:
    with pytest.raises(CallFailed) as caught:
        agent("ask", "Malformed?", options)
    assert (caught.value.code, caught.value.details["field"]) == ("INVALID_PARAMS", field)
    assert field in str(caught.value)


def test_a_time_that_is_none_is_refused_before_anything_is_sent(agent: Agent) -> None:
    with pytest.raises(ValueError, match="finite"):
        agent("ask", "When?", OPTIONS, timeout=float("inf"))


# -- what is only shown --------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.6")
def test_a_notice_is_accepted_at_once_and_completed_once_it_was_shown(agent: Agent, desk: Desk) -> None:
    accepted = agent("notify", "Built.", title="Build", tone="success", seconds=1)
    assert accepted.state in (State.QUEUED, State.RUNNING)
    assert desk.seen("Build")["tone"] == "success"
    assert agent("outcome", accepted.request_id).reason == "presented"


@pytest.mark.requirement("CP-2.11", "CP-3.6")
def test_an_animation_runs_its_course(agent: Agent) -> None:
    played = agent("play", "happy")
    assert agent("outcome", played.request_id).reason == "finished"


# -- requests ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.3", "CP-3.9", "CP-3.11")
def test_a_request_is_made_changed_waited_for_and_taken_back_step_by_step(agent: Agent, desk: Desk) -> None:
    made = agent("create", "progress.track", {"title": "By hand"}, timeout=30, task_id="t")
    shown = agent("wait", made.request_id, after_revision=made.revision)
    assert shown.revision > made.revision
    while shown.displayed_at is None:
        shown = agent("wait", made.request_id, after_revision=shown.revision)
    changed = agent("update", made.request_id, shown.revision, {"fraction": 0.5})
    assert desk.seen("By hand", fraction=0.5)["requestId"] == made.request_id
    assert agent("wait", made.request_id, seconds=0.05).state is State.RUNNING
    with pytest.raises(CallFailed) as caught:
        agent("update", made.request_id, shown.revision, {"fraction": 0.6})
    assert caught.value.code == "REVISION_CONFLICT"
    assert agent("cancel", made.request_id).revision == changed.revision + 1
    with pytest.raises(Cancelled):
        agent("outcome", made.request_id)


def test_the_broker_describes_itself(agent: Agent) -> None:
    described = agent("describe")
    assert described.authorization.authenticated
    assert described.presenter.person


@pytest.mark.requirement("CP-2.4", "CP-2.5", "CP-2.6", "CP-2.7")
def test_what_can_be_asked_for_is_listed_whole(agent: Agent) -> None:
    characters = agent("characters")
    assert characters.current in {one.id for one in characters.characters}
    capabilities = agent("capabilities").capabilities
    assert {"interaction.choose", "notice.show"} <= {one.id for one in capabilities}
    assert agent("capability", capabilities[0].id).description == capabilities[0].description
    assert "default" in {one.id for one in agent("styles").styles}
