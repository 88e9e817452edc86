"""What a broker leaves in the file system, whom it lets in, and how it goes (G23; wire.md, Transport)."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.broker_process import (
    ROOT,
    BrokerProcess,
    environment_of,
    running_broker,
    write_config,
)

SOCKETS = ("companion.sock", "ai-protection.sock", "control.sock")
CHOICE = {"title": "Go?", "options": [{"id": "y", "label": "Yes"}, {"id": "n", "label": "No"}]}
GIVE_UP_SECONDS = 20.0


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A broker without a presenter, that nobody waits for."""
    return subprocess.Popen(
        [sys.executable, "-m", "broker.daemon", "--presenter", "none"],
        cwd=ROOT,
        env=environment_of(folder),
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """End it in good order; exit status and what it said."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=GIVE_UP_SECONDS)
    return process.returncode, said.decode()


def inodes(broker: BrokerProcess) -> list[int]:
    return [(broker.runtime / name).stat().st_ino for name in SOCKETS]


@pytest.mark.requirement("G23")
def test_a_second_broker_gives_way_and_says_why(broker: BrokerProcess) -> None:
    before = inodes(broker)
    second = start(broker.folder)
    status, said = second.wait(GIVE_UP_SECONDS), finish(second)[1]
    assert status != 0
    assert "another broker of this user is running" in said
    assert inodes(broker) == before
    assert broker.control().call("status")["access"] == {"enabled": True}


@pytest.mark.requirement("G23")
def test_a_broker_starts_over_what_a_crash_has_left(folder: Path) -> None:
    with running_broker(folder) as first:
        first.kill()
        assert all((first.runtime / name).is_socket() for name in SOCKETS)
    with running_broker(folder) as second:
        assert second.control().call("status")["openRequests"] == 0


@pytest.mark.requirement("G23")
@pytest.mark.parametrize("name", SOCKETS)
def test_a_strangers_file_in_a_sockets_place_is_left_alone(folder: Path, name: str) -> None:
    write_config(folder)
    runtime = folder / "run"
    runtime.mkdir(mode=0o700)
    (runtime / name).write_text("mine")
    refused = start(folder)
    status = refused.wait(GIVE_UP_SECONDS)
    assert (status, "something that is not a socket" in finish(refused)[1]) == (2, True)
    assert (runtime / name).read_text() == "mine"


@pytest.mark.requirement("G23")
def test_of_two_brokers_that_start_at_once_one_is_left_and_can_be_reached(folder: Path) -> None:
    write_config(folder)
    for _ in range(5):
        both = [start(folder), start(folder)]
        until = time.monotonic() + GIVE_UP_SECONDS
        while all(process.poll() is None for process in both):
            assert time.monotonic() < until
            time.sleep(0.02)
        (left,) = [process for process in both if process.poll() is None]
        while not reachable(folder / "run" / "control.sock"):
            assert time.monotonic() < until
            time.sleep(0.02)
        assert finish(left)[0] == 0
        for process in both:
            finish(process)


def reachable(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.mark.requirement("CP-5.7")
def test_the_folders_and_sockets_are_closed_to_everybody_else(broker: BrokerProcess) -> None:
    for folder in (broker.runtime, broker.folder / "state"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in SOCKETS:
        assert stat.S_IMODE((broker.runtime / name).stat().st_mode) == 0o600


@pytest.mark.requirement("CP-5.7")
@pytest.mark.parametrize("which", ["run", "state"])
def test_an_open_folder_is_refused(folder: Path, which: str) -> None:
    write_config(folder)
    (folder / which).mkdir()
    (folder / which).chmod(0o750)
    refused = start(folder)
    assert refused.wait(GIVE_UP_SECONDS) == 2
    assert f"COMPANION_{'RUNTIME' if which == 'run' else 'STATE'}_DIR" in finish(refused)[1]


@pytest.mark.requirement("CP-5.8")
def test_nothing_listens_but_unix_sockets(broker: BrokerProcess) -> None:
    broker.control().call("status")
    assert psutil.Process(broker.process.pid).net_connections("inet") == []


@pytest.mark.requirement("G23")
def test_a_socket_that_was_removed_is_put_back(broker: BrokerProcess) -> None:
    for name in SOCKETS:
        (broker.runtime / name).unlink()
    until = time.monotonic() + GIVE_UP_SECONDS
    while not all(reachable(broker.runtime / name) for name in SOCKETS):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert broker.control().call("status")["access"] == {"enabled": True}


@pytest.mark.requirement("CP-5.7")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_another_user_is_turned_away_without_a_word(broker: BrokerProcess) -> None:
    """The folder keeps others out already; the kernel's word counts even for one that was let through."""
    code = """
import os, socket, sys
client = socket.socket(socket.AF_UNIX)
os.seteuid(65534)
client.connect(sys.argv[1])
sys.exit(len(client.recv(1)))
"""
    path = broker.runtime / "control.sock"
    opened = [broker.folder, broker.runtime, path]
    modes = [stat.S_IMODE(place.stat().st_mode) for place in opened]
    try:
        for place in opened:
            place.chmod(0o777)
        asked = subprocess.run([sys.executable, "-c", code, path], timeout=GIVE_UP_SECONDS, check=False)
    finally:
        for place, mode in zip(opened, modes, strict=True):
            place.chmod(mode)
    assert asked.returncode == 0


@pytest.mark.requirement("CP-3.9", "CP-4.13")
def test_an_orderly_end_answers_who_waits_and_leaves_no_socket(folder: Path) -> None:
    with running_broker(folder) as broker:
        client = broker.agent("discover", "interact")
        created = client.call(
            "requests.create", capability="interaction.choose", params=CHOICE, timeoutMs=60_000
        )
        shown = broker.presenter.wait_for("present")
        broker.presenter.presented(shown)
        waiting = client.call("requests.wait", requestId=created["requestId"], afterRevision=1, waitMs=10_000)
        revision = waiting["request"]["revision"]
        call = client.start(
            "requests.wait", requestId=created["requestId"], afterRevision=revision, waitMs=30_000
        )
        client.call("requests.get", requestId=created["requestId"])  # so the wait has been taken
        assert broker.stop() == 0
        refused = client.reply(call)["error"]["data"]
        assert (refused["code"], refused["reason"]) == ("RUNTIME_UNAVAILABLE", "stopping")
        assert client.line() == b""
        assert not any((broker.runtime / name).exists() for name in SOCKETS)


@pytest.mark.requirement("CP-5.7")
def test_a_handshake_has_five_seconds(broker: BrokerProcess) -> None:
    companion, lease = broker.connect("companion.sock"), broker.connect("ai-protection.sock")
    refused = companion.read()
    assert refused["id"] is None
    assert (refused["error"]["data"]["code"], refused["error"]["data"]["reason"]) == (
        "UNAUTHENTICATED",
        "timeout",
    )
    assert companion.line() == b""
    assert (lease.read()["code"], lease.line()) == ("invalid_handshake", b"")
