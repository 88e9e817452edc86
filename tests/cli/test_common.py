"""What holds for every command: the two streams, `--json` in any place, the errors, and what is not imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import CommandLine


@pytest.mark.requirement("CP-6.3", "CP-6.5", "CP-6.6")
def test_without_a_broker_it_is_4_and_may_be_tried_again(lonely: CommandLine) -> None:
    ended = lonely("status", "--json")
    assert ended.returncode == 4
    error = json.loads(ended.stdout)["error"]
    assert (error["code"], error["retryable"]) == ("NOT_CONNECTED", True)
    assert ended.stderr == f"companion: {error['message']}\n"


def test_json_may_stand_anywhere(companion: CommandLine) -> None:
    for arguments in (("--json", "lease", "list"), ("lease", "--json", "list"), ("lease", "list", "--json")):
        assert json.loads(companion(*arguments).stdout) == {"leases": [], "nextCursor": None}


def test_without_json_there_are_lines_for_people(companion: CommandLine) -> None:
    for arguments in (("status",), ("runtime", "describe")):
        ended = companion(*arguments)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.isprintable() or "\n" in ended.stdout
        assert not ended.stdout.startswith("{")


def test_status_is_the_control_protocols(companion: CommandLine) -> None:
    status = companion.json("status")
    assert status["access"] == {"enabled": True}
    assert status["clients"] == 1
    assert status["connections"]["control"] >= 1


@pytest.mark.requirement("CP-6.3", "CP-6.6")
def test_a_line_that_cannot_be_parsed_is_told_in_the_form_that_was_asked_for(lonely: CommandLine) -> None:
    assert lonely.json("no-such", exit_code=2)["error"]["code"] == "INVALID_PARAMS"
    plain = lonely("no-such")
    assert (plain.returncode, plain.stdout) == (2, "")
    assert "Usage:" in plain.stderr


@pytest.mark.requirement("G18")
def test_json_behind_the_double_dash_is_not_ours(lonely: CommandLine) -> None:
    ended = lonely("requests", "get", "--no-such", "--", "--json")
    assert (ended.returncode, ended.stdout) == (2, "")


def test_bytes_that_are_no_utf_8_are_2(lonely: CommandLine) -> None:
    assert lonely.json("requests", "get", "\udcff", exit_code=2)["error"]["code"] == "INVALID_PARAMS"


def test_a_one_shot_command_imports_no_event_loop_and_no_daemon() -> None:
    heavy = [
        "trio",
        "asyncio",
        "sqlite3",
        "keyring",
        "structlog",
        "psutil",
        "jsonschema",
        "handlers",
        "broker.daemon",
    ]
    program = f"import sys, broker.cli.main; print([name for name in {heavy} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
