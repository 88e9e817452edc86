"""access status, hide and pause: the owner looks and tightens; loosening is for the person alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.person import LEFT, Person
from tests.cli.test_restart import pair
from tests.support.broker_process import CONFIG, running_broker
from tests.support.lines import until


def standing(companion: CommandLine) -> tuple[bool, bool, bool, str | None]:
    found: Any = companion.json("access", "status")
    assert found["presenter"] == {"name": "puppet", "person": True}
    return found["access"]["enabled"], found["hidden"], found["paused"], found["reason"]


@pytest.mark.requirement("CP-4.9", "CP-6.5")
@pytest.mark.parametrize(("word", "reason"), [("hide", "hidden_by_user"), ("pause", "paused_by_user")])
def test_hide_and_pause_cancel_what_stands_and_refuse_what_comes(
    folder: Path, word: str, reason: str
) -> None:
    state = {"hide": "hidden", "pause": "paused"}[word]
    with running_broker(folder) as broker:
        companion = pair(broker)
        assert standing(companion) == (True, False, False, None)
        with companion.start("confirm", LEFT, "--json") as asking:
            until(lambda: companion.json("status")["openRequests"] == 1)
            assert companion.json(word) == {}
            stdout, _ = asking.communicate(timeout=20)
        assert (asking.returncode, f'"reason":"{reason}"' in stdout) == (6, True)
        assert standing(companion) == (True, word == "hide", word == "pause", state)
        assert state in companion.inside("access", "status").stdout
        error = companion.json("confirm", "Now?", exit_code=5)["error"]
        assert (error["code"], error["reason"], error["retryable"]) == ("RUNTIME_UNAVAILABLE", state, True)


@pytest.mark.requirement("CP-5.1")
def test_access_that_is_off_is_told_first(folder: Path) -> None:
    with running_broker(folder, config=CONFIG.replace("enabled = true", "enabled = false", 1)) as broker:
        Person(broker.presenter).start()
        companion = CommandLine(folder)
        assert standing(companion) == (False, False, False, "access_off")
        assert companion.inside("hide").stdout.startswith("hidden")
        assert standing(companion) == (False, True, False, "access_off")


@pytest.mark.requirement("CP-6.5", "CP-6.6")
def test_without_a_broker_they_are_4(lonely: CommandLine) -> None:
    for command in (("access", "status"), ("hide",), ("pause",)):
        assert lonely.json(*command, exit_code=4)["error"]["code"] == "NOT_CONNECTED"
