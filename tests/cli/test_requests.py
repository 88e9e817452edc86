"""Requests from the command line: accepted, answered, taken back, and the exit codes of CP-6.5."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from broker.credentials import Credential, write_credential
from tests.cli.conftest import CommandLine
from tests.cli.person import CLOSED, LEFT


def choice(title: str, *, timeout_ms: int = 60_000, **members: Any) -> str:
    """The content of a create file."""
    options = [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
    params = {"title": title, "options": options}
    request = {"capability": "interaction.choose", "params": params, "timeoutMs": timeout_ms, **members}
    return json.dumps(request, indent=2)


def create(companion: CommandLine, content: str) -> Any:
    return companion.json("requests", "create", "--file", "-", stdin=content)


@pytest.mark.requirement("CP-6.1", "CP-6.2", "CP-6.3", "CP-6.5")
def test_a_question_is_created_waited_for_and_answered(companion: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "question.json"
    file.write_text(choice("Publish?"))
    created = companion.json("requests", "create", "--file", str(file))
    assert created["state"] in ("queued", "running", "awaiting_user")
    ended = companion.json("requests", "wait", created["requestId"])
    assert (ended["state"], ended["result"]) == ("completed", {"selectedId": "yes"})
    assert companion.json("requests", "get", created["requestId"]) == ended


@pytest.mark.requirement("CP-6.5", "CP-6.6")
def test_a_wait_that_runs_out_says_that_the_request_goes_on(companion: CommandLine) -> None:
    request_id = create(companion, choice(LEFT))["requestId"]
    ended = companion.json("requests", "wait", request_id, "--for", "0.3", exit_code=7)
    assert (ended["error"]["code"], ended["error"]["retryable"]) == ("WAIT_TIMEOUT", True)
    assert ended["request"]["requestId"] == request_id
    companion("requests", "cancel", request_id)


@pytest.mark.requirement("CP-6.5", "CP-6.6")
def test_only_wait_turns_a_cancelled_request_into_an_exit_code(companion: CommandLine) -> None:
    request_id = create(companion, choice(LEFT))["requestId"]
    assert companion.json("requests", "cancel", request_id)["state"] == "cancelled"
    assert companion.json("requests", "get", request_id)["state"] == "cancelled"
    ended = companion.json("requests", "wait", request_id, exit_code=6)
    assert (ended["error"]["code"], ended["error"]["retryable"]) == ("CANCELLED", False)
    assert ended["request"]["reason"] == "cancelled_by_client"


@pytest.mark.requirement("CP-6.5")
def test_a_question_that_the_person_closed_is_6(companion: CommandLine) -> None:
    request_id = create(companion, choice(CLOSED))["requestId"]
    ended = companion.json("requests", "wait", request_id, exit_code=6)
    assert ended["request"]["reason"] == "dismissed_by_user"


@pytest.mark.requirement("CP-6.5")
def test_an_expired_request_is_6(companion: CommandLine) -> None:
    request_id = create(companion, choice(LEFT, timeout_ms=1_000))["requestId"]
    ended = companion.json("requests", "wait", request_id, exit_code=6)
    assert (ended["error"]["code"], ended["request"]["reason"]) == ("EXPIRED", "deadline")


def test_after_revision_returns_at_the_first_news(companion: CommandLine) -> None:
    created = create(companion, choice(LEFT))
    news = companion.json("requests", "wait", created["requestId"], "--after-revision", "0")
    assert news["revision"] >= 1
    companion("requests", "cancel", created["requestId"])


@pytest.mark.requirement("CP-4.1", "CP-4.2")
def test_the_files_own_key_makes_a_second_create_the_same_request(companion: CommandLine) -> None:
    content = choice("Once?", idempotencyKey="once")
    assert create(companion, content)["requestId"] == create(companion, content)["requestId"]
    changed = choice("Twice?", idempotencyKey="once")
    error = companion.json("requests", "create", "--file", "-", stdin=changed, exit_code=5)["error"]
    assert (error["code"], error["retryable"]) == ("IDEMPOTENCY_CONFLICT", False)


@pytest.mark.requirement("CP-6.5", "CP-6.6", "CP-6.7")
@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("", None),
        ("[1]", ""),
        ('{"capability": NaN}', None),
        ('{"a": 1, "a": 2}', None),
        (choice("Q", key="secret"), "key"),
        (choice("Q\ud800"), "params.title"),
        (choice("Q").replace("60000", "60000.0"), "timeoutMs"),
    ],
)
def test_a_file_that_is_no_good_is_2(lonely: CommandLine, content: str, field: str | None) -> None:
    """Found out without a broker, so nothing can come of it."""
    write_profile(lonely)
    error = lonely.json("requests", "create", "--file", "-", stdin=content, exit_code=2)["error"]
    assert (error["code"], error["retryable"]) == ("INVALID_PARAMS", False)
    assert error.get("field") == field


def write_profile(run: CommandLine) -> None:
    write_credential(run.folder / "xdg" / "companion" / "credentials", "p", Credential("c", ("notify",), "k"))


@pytest.mark.requirement("CP-6.6", "CP-6.8")
@pytest.mark.parametrize(
    ("request_change", "exit_code", "code"),
    [
        ({"capability": "no.such"}, 2, "UNSUPPORTED_CAPABILITY"),
        ({"timeoutMs": 1}, 2, "INVALID_PARAMS"),
        ({"style": "no.such"}, 2, "UNSUPPORTED_STYLE"),
    ],
)
def test_what_the_broker_refuses_keeps_its_code(
    companion: CommandLine, request_change: dict[str, Any], exit_code: int, code: str
) -> None:
    content = json.dumps(json.loads(choice("Q")) | request_change)
    error = companion.json("requests", "create", "--file", "-", stdin=content, exit_code=exit_code)["error"]
    assert error["code"] == code


def test_too_long_for_a_message_is_2_and_names_the_limit(companion: CommandLine) -> None:
    content = choice("Q" * 70_000)
    error = companion.json("requests", "create", "--file", "-", stdin=content, exit_code=2)["error"]
    assert error["limitBytes"] == 65_536


@pytest.mark.requirement("CP-6.8")
def test_an_unknown_request_is_not_found(companion: CommandLine) -> None:
    for command in ("get", "wait", "cancel"):
        assert companion.json("requests", command, "no-such", exit_code=5)["error"]["code"] == "NOT_FOUND"


@pytest.mark.requirement("CP-6.3")
def test_a_closed_stdout_ends_quietly(companion: CommandLine) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for arguments in (["status"], ["requests", "get", "no-such", "--json"]):
        with companion.start(*arguments, stdout=writing) as ended:
            _, errors = ended.communicate(timeout=20)
        assert ended.returncode == 141
        assert "Traceback" not in errors
        assert "Broken" not in errors
    os.close(writing)


def test_a_full_disk_behind_stdout_is_told(companion: CommandLine) -> None:
    with open("/dev/full", "w") as full, companion.start("status", "--json", stdout=full) as ended:
        _, errors = ended.communicate(timeout=20)
    assert ended.returncode == 5
    assert "could not be written" in errors
    assert "Traceback" not in errors
