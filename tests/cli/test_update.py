"""requests update: progress from the command line (CP-3.11)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.test_requests import choice, create, write_profile


def progress(companion: CommandLine) -> Any:
    content = {"capability": "progress.track", "params": {"title": "Copying"}, "timeoutMs": 60_000}
    return create(companion, json.dumps(content))


def update(companion: CommandLine, known: Any, *options: str, **others: Any) -> Any:
    revision = str(known["revision"])
    return companion.json(
        "requests", "update", known["requestId"], "--expected-revision", revision, *options, **others
    )


def settled(companion: CommandLine, known: Any) -> Any:
    """The request once it is on the screen, when its revision stands still."""
    while known["displayedAt"] is None:
        news = ("--after-revision", str(known["revision"]))
        known = companion.json("requests", "wait", known["requestId"], *news)
    return known


@pytest.mark.requirement("CP-3.11", "CP-6.1")
def test_progress_is_updated_and_finished(companion: CommandLine, tmp_path: Path) -> None:
    known = settled(companion, progress(companion))
    changed = update(companion, known, "--set", "fraction=0.5", "--set-text", "detail=1")
    assert (changed["requestId"], changed["revision"]) == (known["requestId"], known["revision"] + 1)
    file = tmp_path / "change.json"
    file.write_text('{"fraction": null, "tone": "warning"}')
    changed = update(companion, changed, "--file", str(file), "--set", "finished=true")
    assert (changed["state"], changed["reason"]) == ("completed", "finished")
    ended = companion.json("requests", "wait", known["requestId"])
    assert ended == changed


@pytest.mark.requirement("CP-3.11", "CP-6.6")
def test_an_update_for_another_revision_is_told_how_the_request_stands(companion: CommandLine) -> None:
    known = settled(companion, progress(companion))
    changed = update(companion, known, "--set", "fraction=1")
    refused = update(companion, known, "--set", "fraction=0", exit_code=5)
    assert (refused["error"]["code"], refused["error"]["retryable"]) == ("REVISION_CONFLICT", False)
    assert refused["request"] == changed
    assert "request" not in refused["error"]
    assert companion.json("requests", "cancel", known["requestId"])["state"] == "cancelled"


@pytest.mark.requirement("CP-3.11", "CP-6.6")
def test_what_a_capability_does_not_let_be_updated_is_2(companion: CommandLine) -> None:
    known = settled(companion, progress(companion))
    for field, value in (("title", '"other"'), ("fraction", "2"), ("detail", "1")):
        error = update(companion, known, "--set", f"{field}={value}", exit_code=2)["error"]
        assert (error["code"], error["field"]) == ("INVALID_PARAMS", f"params.{field}")
    assert update(companion, known, exit_code=2)["error"]["code"] == "INVALID_PARAMS"
    companion.json("requests", "cancel", known["requestId"])
    answered = create(companion, choice("Once"))
    ended = companion.json("requests", "wait", answered["requestId"])
    assert update(companion, ended, "--set", "title=1", exit_code=5)["error"]["code"] == "REVISION_CONFLICT"


@pytest.mark.requirement("CP-6.3", "CP-6.6", "G18")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--set", "detail=half done"), "--set-text"),
        (("--set", "fraction=NaN"), "--set-text"),
        (("--set", "fraction=1e999"), "finite"),
        (("--set", "fraction"), "NAME=VALUE"),
        (("--set", "=1"), "NAME=VALUE"),
        (("--set", "tone=1", "--set-text", "tone=x"), "twice"),
        (("--file", "-", "--set", "fraction=1"), "strict JSON"),
        (("--set", "fraction=1", "--set", "fraction=1"), "twice"),
    ],
)
def test_what_cannot_be_meant_is_2_without_a_broker(
    lonely: CommandLine, options: tuple[str, ...], told: str
) -> None:
    write_profile(lonely)
    error = lonely.json("requests", "update", "r", "--expected-revision", "1", *options, exit_code=2)["error"]
    assert error["code"] == "INVALID_PARAMS"
    assert told in error["message"]


def test_a_file_that_holds_no_object_is_2(lonely: CommandLine) -> None:
    arguments = ("requests", "update", "r", "--expected-revision", "1", "--file", "-")
    assert lonely.json(*arguments, stdin="[1]", exit_code=2)["error"]["field"] == "--file"
