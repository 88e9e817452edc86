"""data clear: the person decides, the command waits and tells what was decided (CP-4.15)."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.cli.conftest import CommandLine, one_value
from tests.cli.person import CLOSED, LEFT, Person
from tests.support.lines import until

TITLE = "Delete all requests and answers that have ended? No program can read them after that."
CLEAR, KEEP = "clear", "keep"


def ended_request(companion: CommandLine) -> str:
    request_id: str = companion.json("confirm", "Before")["requestId"]
    return request_id


@pytest.mark.requirement("CP-4.15", "CP-6.5")
def test_what_the_person_lets_go_is_gone_and_told_so(companion: CommandLine, person: Person) -> None:
    request_id = ended_request(companion)
    person.answers[TITLE] = CLEAR
    assert companion.json("data", "clear") == {"status": "cleared"}
    error = companion.json("requests", "get", request_id, exit_code=5)["error"]
    assert error["code"] == "NOT_FOUND"
    assert error["recordsLostAt"] == companion.json("status")["recordsLostAt"]
    assert "are lost" in companion.inside("status").stdout


@pytest.mark.requirement("CP-4.15", "CP-6.5", "CP-6.6")
@pytest.mark.parametrize(
    ("does", "exit_code", "code", "status"),
    [(KEEP, 3, "FORBIDDEN", "kept"), (CLOSED, 6, "CANCELLED", "dismissed")],
)
def test_what_the_person_does_not_let_go_stays(
    companion: CommandLine, person: Person, does: str, exit_code: int, code: str, status: str
) -> None:
    request_id = ended_request(companion)
    person.answers[TITLE] = does
    error = companion.json("data", "clear", exit_code=exit_code)["error"]
    assert (error["code"], error["status"]) == (code, status)
    assert companion.json("requests", "get", request_id)["state"] == "completed"


@pytest.mark.requirement("CP-6.5")
def test_an_interrupted_command_takes_the_question_back(companion: CommandLine, person: Person) -> None:
    person.answers[TITLE] = LEFT

    def asked() -> Any:
        return companion.json("status")["openRequests"] == 1

    with companion.start("data", "clear", "--json") as asking:
        until(asked)
        assert companion.json("data", "clear", exit_code=5)["error"]["code"] == "RATE_LIMITED"
        asking.send_signal(signal.SIGINT)
        stdout, _ = asking.communicate(timeout=20)
    assert (asking.returncode, one_value(stdout)["error"]["code"]) == (130, "INTERRUPTED")
    until(lambda: not asked())


def test_when_the_person_cannot_be_asked_nothing_is_cleared(companion: CommandLine) -> None:
    """The last test of this broker: it stays hidden."""
    companion.json("hide")
    error = companion.json("data", "clear", exit_code=5)["error"]
    assert (error["code"], error["status"], error["reason"]) == (
        "RUNTIME_UNAVAILABLE",
        "unavailable",
        "hidden",
    )
    assert error["retryable"]
