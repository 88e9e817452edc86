"""The sockets in the file system, who may come in, and nothing on the network (wire.md, creation and peer)."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.broker_process import (
    COMMAND,
    ROOT,
    SOCKETS,
    BrokerProcess,
    environment_of,
    running_broker,
    write_config,
)
from tests.support.lines import Stopwatch, until

PUT_BACK_SECONDS = 5.0
NOBODY = 65_534
KNOCK = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(10)
    sock.connect(sys.argv[1])
    try:
        sock.sendall(b"{}\\n")
        print(sock.recv(100))
    except OSError as error:
        print("reset" if error.errno in (32, 104) else error)
"""


@pytest.mark.requirement("CP-5.7", "LP-1")
def test_folder_and_sockets_are_the_owners_alone(folder: Path) -> None:
    with loose_umask(), running_broker(folder) as broker:
        assert mode(broker.runtime) == 0o700
        assert mode(folder / "state") == 0o700
        assert [mode(broker.runtime / name) for name in SOCKETS] == [0o600] * 3
        assert not [file for file in (folder / "state").iterdir() if mode(file) & 0o077]


@pytest.mark.requirement("CP-5.8", "CP-5.12", "LP-1")
def test_nothing_listens_on_the_network(broker: BrokerProcess) -> None:
    broker.agent("discover")
    process = psutil.Process(broker.process.pid)
    family = [process, *process.children(recursive=True)]
    assert [connection for one in family for connection in one.net_connections("inet")] == []
    names = [str(one.laddr) for one in process.net_connections("unix")]
    assert not [name for name in names if name.startswith(("@", "\0"))], "an abstract socket"


@pytest.mark.requirement("G23")
def test_sockets_that_were_removed_come_back(broker: BrokerProcess) -> None:
    client, holder, control = broker.agent("discover"), broker.holder("kept"), broker.control()
    for name in SOCKETS:
        (broker.runtime / name).unlink()
    watch = Stopwatch()
    until(lambda: all((broker.runtime / name).exists() for name in SOCKETS))
    assert watch.seconds < PUT_BACK_SECONDS
    assert [mode(broker.runtime / name) for name in SOCKETS] == [0o600] * 3
    broker.agent("discover").call("runtime.describe")
    broker.holder("new")
    broker.control().call("status")
    # Whoever was connected notices nothing.
    client.call("runtime.describe")
    assert holder.end("org.example.App")["code"] == "request_expired"
    control.call("status")


@pytest.mark.requirement("G23")
def test_a_strangers_file_in_a_sockets_place_stays_to_the_end(folder: Path) -> None:
    with running_broker(folder) as broker:
        control = broker.control()
        (broker.runtime / "companion.sock").unlink()
        (broker.runtime / "companion.sock").write_text("some text")
        (broker.runtime / "ai-protection.sock").unlink()
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.bind(str(broker.runtime / "ai-protection.sock"))
            stranger.listen()
            until(lambda: "socket_not_put_back" in broker.log)
            control.call("status")
            assert broker.stop() == 0
            assert (broker.runtime / "companion.sock").read_text() == "some text"
            assert (broker.runtime / "ai-protection.sock").is_socket()
        assert not (broker.runtime / "control.sock").exists()


@pytest.mark.requirement("CP-5.7")
@pytest.mark.parametrize(
    ("name", "setting"), [("run", "COMPANION_RUNTIME_DIR"), ("state", "COMPANION_STATE_DIR")]
)
def test_a_folder_that_others_may_enter_is_refused(folder: Path, name: str, setting: str) -> None:
    (folder / name).mkdir()
    (folder / name).chmod(0o750)
    refused(folder, setting)
    assert list((folder / name).iterdir()) == []


@pytest.mark.requirement("CP-5.7")
def test_a_folder_that_is_a_link_is_refused(folder: Path) -> None:
    (folder / "elsewhere").mkdir(mode=0o700)
    (folder / "run").symlink_to(folder / "elsewhere")
    refused(folder, "COMPANION_RUNTIME_DIR")
    assert list((folder / "elsewhere").iterdir()) == []


def test_a_path_that_is_too_long_for_a_socket_is_refused(folder: Path) -> None:
    refused(folder, "COMPANION_RUNTIME_DIR", COMPANION_RUNTIME_DIR=str(folder / ("x" * 100)))
    assert not (folder / ("x" * 100) / "companion.sock").exists()


@pytest.mark.requirement("CP-5.7", "LP-1")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("name", SOCKETS)
def test_another_user_is_closed_without_a_word(broker: BrokerProcess, name: str) -> None:
    """Even where somebody has opened the folder and the socket: the kernel's word counts."""
    with opened(broker.folder, broker.runtime, broker.runtime / name):
        assert knock(broker.runtime / name, NOBODY) in ("b''", "reset")
        assert "error" in knock(broker.runtime / name, 0) or name == "control.sock"
    broker.control().call("status")


def refused(folder: Path, setting: str, **environment: str) -> None:
    """A start that is refused with one line, which names the setting and no path."""
    write_config(folder)
    process = subprocess.run(
        [*COMMAND, "--presenter", "none"],
        cwd=ROOT,
        env={**environment_of(folder), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert setting in process.stderr
    assert str(folder) not in process.stderr


def knock(path: Path, uid: int) -> str:
    """Connect as this user and send a line; what came back."""
    command = [sys.executable, "-c", KNOCK, str(path), str(uid)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@contextmanager
def loose_umask() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def opened(*paths: Path) -> Iterator[None]:
    """Let everybody in for a while."""
    before = [mode(path) for path in paths]
    for path in paths:
        path.chmod(0o777)
    try:
        yield
    finally:
        for path, bits in zip(paths, before, strict=True):
            path.chmod(bits)
