"""A person's answer on a real broker that is SIGKILLed before and after each call to its store.

The answer also frees the one place on the display, so it hands the next request over: both are one decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.crashes import (
    AFTER_REPLY,
    Case,
    answer_to,
    crash_at_each,
    points,
    pushed,
    ready_presenter,
    store_calls,
    told,
)
from tests.support.lines import Rpc

CALLS = store_calls("begin", "write requests", "write requests", "commit")
at_each_point = pytest.mark.parametrize("point", points(CALLS))


@attrs.define
class Question:
    """The request that is answered, as the presenter was shown it, and the one that is queued behind it."""

    shown: dict[str, Any]
    next_id: str


class Answers:
    """Each case asks a question of its own."""

    def prepare(self, broker: BrokerProcess) -> None:
        ready_presenter(broker)
        self.credential = broker.pair("agent", ["interact"])
        self.questions: dict[str, Question] = {}

    def act(self, broker: BrokerProcess, case: Case, arm: Callable[[], None]) -> Any:
        presenter = ready_presenter(broker)
        with broker.session(self.credential) as agent:
            asked, behind = _ask(agent), _ask(agent)
            shown, awaiting = broker.show(agent, asked)
            self.questions[case.point] = Question(shown, behind["requestId"])
            news = agent.start("requests.wait", **_after(awaiting))
            agent.call("requests.get", requestId=asked["requestId"])  # so the wait is parked
            arm()
            outcome = told(lambda: presenter.call("answer", **answer_to(shown, "y")))
            return {"outcome": outcome, "news": told(lambda: agent.reply(news)["result"]["request"])}

    def look(self, broker: BrokerProcess, case: Case) -> Any:
        question = self.questions[case.point]
        with broker.session(self.credential) as agent:
            return {
                "answered": agent.call("requests.get", requestId=question.shown["requestId"]),
                "next": agent.call("requests.get", requestId=question.next_id),
            }

    def repeat(self, broker: BrokerProcess, case: Case) -> Any:
        """The person clicks another option on the old picture."""
        presenter = ready_presenter(broker)
        prompts = pushed(presenter, "present")
        outcome = presenter.call("answer", **answer_to(self.questions[case.point].shown, "n"))
        return {"outcome": outcome, "prompts": prompts}


def _ask(agent: Rpc) -> Any:
    options = [{"id": "y", "label": "Allow"}, {"id": "n", "label": "Deny"}]
    params = {"title": "Read file?", "options": options}
    return agent.call("requests.create", capability="interaction.choose", params=params, timeoutMs=3_600_000)


def _after(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {"requestId": snapshot["requestId"], "afterRevision": snapshot["revision"], "waitMs": 60_000}


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return crash_at_each(CALLS, Answers())


@at_each_point
def test_the_crash_points_are_all_the_calls_that_an_answer_makes_to_the_store(
    cases: dict[str, Case], point: str
) -> None:
    case = cases[point]
    assert cases[AFTER_REPLY].calls == list(CALLS)
    assert case.calls == list(CALLS[: case.number])


@pytest.mark.requirement("CP-4.12")
@at_each_point
def test_nobody_hears_of_an_answer_that_is_not_stored(cases: dict[str, Case], point: str) -> None:
    told_of = cases[point].told
    if point == AFTER_REPLY:
        assert told_of["outcome"] == {"outcome": "committed"}
        assert told_of["news"]["result"] == {"selectedId": "y"}
    else:
        assert told_of == {"outcome": None, "news": None}


@pytest.mark.requirement("CP-3.7", "CP-3.10", "CP-4.12", "CP-4.13")
@at_each_point
def test_an_answer_is_there_or_the_restart_has_failed_the_request(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    answered = case.seen[0]["answered"]
    end = (answered["state"], answered["reason"], answered["result"])
    if case.committed:
        assert end == ("completed", "answered", {"selectedId": "y"})
    else:
        assert end == ("failed", "runtime_restarted", None)
    if case.told["news"] is not None:
        assert answered == case.told["news"]


@pytest.mark.requirement("CP-4.13")
@at_each_point
def test_what_the_answer_led_to_is_stored_with_it_or_not_at_all(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    behind = case.seen[0]["next"]
    assert (behind["state"], behind["reason"]) == ("failed", "runtime_restarted")
    handed_over = 1 if case.committed else 0
    assert behind["revision"] == 2 + handed_over  # created, perhaps handed over, failed


@pytest.mark.requirement("CP-3.4", "CP-3.10", "CP-4.13")
@at_each_point
def test_the_end_stays_the_same_over_every_later_restart(cases: dict[str, Case], point: str) -> None:
    case = cases[point]
    assert len(case.seen) >= 2
    assert [*case.seen, case.afterwards] == [case.seen[0]] * (len(case.seen) + 1)


@pytest.mark.requirement("CP-3.10", "CP-4.13")
@at_each_point
def test_after_the_restart_nothing_is_shown_again_and_another_answer_is_too_late(
    cases: dict[str, Case], point: str
) -> None:
    case = cases[point]
    answered = case.seen[0]["answered"]
    late = {"outcome": "too_late", "state": answered["state"], "reason": answered["reason"]}
    assert case.repeated == {"outcome": late, "prompts": []}
