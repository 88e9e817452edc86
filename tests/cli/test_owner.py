"""The owner's tools: who is paired, taking rights away, and watching without content."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.conftest import PROFILE, CommandLine, one_value
from tests.cli.person import LEFT
from tests.cli.test_pair import kept, profile_file
from tests.cli.test_restart import pair
from tests.support.broker_process import running_broker
from tests.support.lines import until


def paired(companion: CommandLine, name: str, scopes: str = "notify,interact") -> str:
    """A new client under a profile of its name."""
    printed = companion.json("pair", name, "--scopes", scopes, "--credential-profile", name)
    client_id: str = printed["clientId"]
    return client_id


def listed(companion: CommandLine) -> dict[str, Any]:
    return {one["clientId"]: one for one in companion.json("clients", "list")["clients"]}


# -- clients -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.1", "CP-6.1")
def test_the_paired_clients_are_listed(companion: CommandLine) -> None:
    own = kept(companion, PROFILE)["clientId"]
    client = listed(companion)[own]
    assert client["label"] == "Tester"
    assert set(client) == {
        "clientId",
        "label",
        "scopes",
        "createdAt",
        "connections",
        "openRequests",
        "mutedUntil",
    }
    assert own in companion.inside("clients", "list").stdout


@pytest.mark.requirement("CP-4.14", "CP-5.1", "CP-6.5")
def test_a_revoked_client_is_out_and_its_questions_are_cancelled(companion: CommandLine) -> None:
    client_id = paired(companion, "leaving")
    use = ("--credential-profile", "leaving", "--json")
    with companion.start("confirm", LEFT, *use) as asking:
        until(lambda: listed(companion)[client_id]["openRequests"] == 1)
        assert companion.json("clients", "revoke", client_id) == {}
        stdout, _ = asking.communicate(timeout=20)
    assert (asking.returncode, one_value(stdout)["error"]["code"]) == (3, "UNAUTHENTICATED")
    assert client_id not in listed(companion)
    again = companion.json("clients", "revoke", client_id, exit_code=5)["error"]
    assert (again["code"], again["retryable"]) == ("NOT_FOUND", False)
    profile_file(companion, "leaving").unlink(missing_ok=True)


@pytest.mark.requirement("CP-5.3", "CP-6.5")
def test_a_narrowed_client_keeps_what_is_named(companion: CommandLine) -> None:
    client_id = paired(companion, "narrowed")
    use = ("--credential-profile", "narrowed")
    narrowed = companion.json("clients", "narrow", client_id, "--scopes", "interact,animate")
    assert narrowed == {"scopes": ["interact"]}  # animate was never its own
    assert companion.json("notify", "t", *use, exit_code=3)["error"]["code"] == "FORBIDDEN"
    assert companion.inside("clients", "narrow", client_id, "--scopes", "none").stdout == "scopes: none\n"
    assert listed(companion)[client_id]["scopes"] == []
    assert companion.json("confirm", "t", *use, exit_code=3)["error"]["code"] == "FORBIDDEN"
    companion.json("clients", "revoke", client_id)
    profile_file(companion, "narrowed").unlink(missing_ok=True)


@pytest.mark.requirement("CP-6.6")
def test_clients_that_do_not_exist_and_scopes_that_do_not(
    companion: CommandLine, lonely: CommandLine
) -> None:
    narrowing = ("clients", "narrow", "no-such", "--scopes")
    assert companion.json(*narrowing, "notify", exit_code=5)["error"]["code"] == "NOT_FOUND"
    for scopes in ("everything", "", "none,notify"):
        assert lonely.json(*narrowing, scopes, exit_code=2)["error"]["code"] == "INVALID_PARAMS"


@pytest.mark.requirement("CP-5.1", "CP-5.2")
def test_pairing_over_a_profile_revokes_the_client_that_it_was_of(companion: CommandLine) -> None:
    old = paired(companion, "again")
    new = paired(companion, "again")
    assert old not in listed(companion)
    assert new in listed(companion)
    assert companion.json("runtime", "describe", "--credential-profile", "again")
    companion.json("clients", "revoke", new)
    profile_file(companion, "again").unlink(missing_ok=True)


def test_a_denied_pairing_revokes_nobody(companion: CommandLine) -> None:
    client_id = paired(companion, "staying")
    asked = ("pair", "denied by the person", "--scopes", "notify", "--credential-profile", "staying")
    assert companion.json(*asked, exit_code=3)
    assert client_id in listed(companion)
    companion.json("clients", "revoke", client_id)
    profile_file(companion, "staying").unlink(missing_ok=True)


# -- monitor -------------------------------------------------------------------------------------------------------


class Reader(threading.Thread):
    """Collects the lines of a stream."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(daemon=True)
        self.lines: list[str] = []
        self._stream = stream
        self.start()

    def run(self) -> None:
        for line in self._stream:
            self.lines.append(line)


@contextlib.contextmanager
def watching(companion: CommandLine, *options: str) -> Iterator[tuple[Any, Reader]]:
    with companion.start("monitor", *options) as running:
        assert running.stderr is not None
        assert running.stdout is not None
        assert running.stderr.readline() == "watching\n"
        yield running, Reader(running.stdout)


@pytest.mark.requirement("CP-4.10", "CP-5.9", "CP-6.3")
def test_the_monitor_prints_one_object_a_line_and_nothing_that_was_written(companion: CommandLine) -> None:
    with watching(companion, "--json") as (running, seen):
        answered = companion.json(
            "ask", "A secret title", "--option", "secret-id=Secret label", "--option", "b"
        )
        until(lambda: any('"completed"' in line for line in seen.lines))
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
        until(lambda: '"error"' in seen.lines[-1])
    events = [json.loads(line) for line in seen.lines]
    assert events[-1]["error"]["code"] == "INTERRUPTED"
    states = [one["state"] for one in events if one.get("requestId") == answered["requestId"]]
    assert states[-1] == "completed"
    assert "secret" not in "".join(seen.lines).lower()


@pytest.mark.requirement("CP-5.9")
def test_for_people_the_monitor_prints_lines(companion: CommandLine) -> None:
    with watching(companion) as (running, seen):
        companion.json("confirm", "Now?")
        until(lambda: any("request completed (answered)" in line for line in seen.lines))
        running.send_signal(signal.SIGINT)
        running.wait(20)
    assert any("capability=interaction.choose" in line for line in seen.lines)


@pytest.mark.requirement("CP-6.5")
def test_the_monitor_ends_with_the_broker(folder: Path) -> None:
    with running_broker(folder) as broker:
        companion = pair(broker)
        with watching(companion, "--json") as (running, seen):
            companion.json("stop")
            assert running.wait(20) == 4
            until(lambda: '"NOT_CONNECTED"' in seen.lines[-1])


def test_a_monitor_whose_reader_is_gone_ends(companion: CommandLine) -> None:
    reading, writing = os.pipe()
    with companion.start("monitor", "--json", stdout=writing) as running:
        os.close(reading)
        os.close(writing)
        while running.poll() is None:
            companion.json("runtime", "describe")  # its connection is an event
        assert running.returncode == 141
