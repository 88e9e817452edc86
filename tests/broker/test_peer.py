"""Who connected: uid, process and program from the kernel, over real sockets and real processes."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.daemon.peer import Peer, parse_xucred, peer_of
from broker.daemon.processes import identify
from tests.support.children import child, identity, kill_uncollected, read_line

CONNECT = """
import os, socket, sys
path, user = sys.argv[1], int(sys.argv[2])
os.setuid(user)
peer = socket.socket(socket.AF_UNIX)
peer.connect(path)
print("up", flush=True)
input()
"""
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


@pytest.fixture
def server(short_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(short_path / "s"))
        sock.listen()
        sock.settimeout(5)
        yield sock


def connector(server: socket.socket, user: int | None = None) -> list[str]:
    return [sys.executable, "-c", CONNECT, server.getsockname(), str(os.geteuid() if user is None else user)]


@pytest.mark.requirement("CP-5.7")
def test_a_peer_is_known_by_user_process_and_program(server: socket.socket) -> None:
    with child(connector(server)) as process, server.accept()[0] as accepted:
        peer = peer_of(accepted)
        assert peer == Peer(os.geteuid(), identity(process), str(Path(sys.executable).resolve()))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start processes of another user")
def test_a_peer_of_another_user_is_told_apart(server: socket.socket, short_path: Path) -> None:
    short_path.chmod(0o755)
    (short_path / "s").chmod(0o666)
    with child(connector(server, user=65534)) as process, server.accept()[0] as accepted:
        assert peer_of(accepted).uid == 65534
        assert process.poll() is None


def test_a_dead_peer_is_no_process(server: socket.socket) -> None:
    with child(connector(server)) as process, server.accept()[0] as accepted:
        kill_uncollected(process)
        assert peer_of(accepted) == Peer(os.geteuid(), None)
        process.wait()
        assert peer_of(accepted) == Peer(os.geteuid(), None)


@pytest.mark.skipif(not LAST_PID.exists(), reason="the next pid cannot be chosen here")
def test_a_process_with_the_pid_of_a_dead_peer_is_not_taken_for_it(server: socket.socket) -> None:
    for _ in range(20):
        with child(connector(server)) as process:
            accepted, _ = server.accept()
            read_line(process)
        with accepted, successor_of(process.pid) as successor:
            if successor.pid == process.pid:
                assert identify(successor.pid) is not None
                assert peer_of(accepted).process is None
                return  # else somebody else was faster
    pytest.skip("the pid was never given again")


@contextmanager
def successor_of(pid: int) -> Iterator[subprocess.Popen[str]]:
    """A process that most likely has this pid."""
    try:
        LAST_PID.write_text(str(pid - 1), encoding="ascii")
    except OSError:
        pytest.skip("only root may choose the next pid")
    with child() as process:
        yield process


class AnswersPeerPidfd(socket.socket):
    """A kernel that answers SO_PEERPIDFD with an error."""

    errno = 0

    def getsockopt(self, level: int, option: int, size: int = 0) -> Any:
        if option == 77:
            raise OSError(self.errno, "")
        return super().getsockopt(level, option, size)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
@pytest.mark.parametrize(
    ("error", "lives"), [(errno.ENOPROTOOPT, True), (errno.EINVAL, True), (errno.ESRCH, False)]
)
def test_an_old_kernel_leaves_it_at_the_pid_and_a_newer_one_may_say_gone(
    server: socket.socket, error: int, lives: bool
) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(server.getsockname())
        with AnswersPeerPidfd(fileno=server.accept()[0].detach()) as accepted:
            accepted.errno = error
            assert (peer_of(accepted).process == identify(os.getpid())) is lives


def test_the_descriptor_may_have_been_passed_on(server: socket.socket) -> None:
    """SO_PEERCRED is about the process that connected, whoever holds its end now."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(server.getsockname())
        with server.accept()[0] as accepted, child(stdin=client):
            assert peer_of(accepted).process == identify(os.getpid())


# Laid out by hand after sys/ucred.h of macOS, little-endian: version, uid, ngroups, padding, 16 groups.
XUCRED = bytes.fromhex("00000000 f5010000 0200 0000 14000000 0c000000") + bytes(56)


def test_the_uid_of_macos_is_the_second_word() -> None:
    assert parse_xucred(XUCRED) == 501


@pytest.mark.parametrize("wrong", [b"", XUCRED[:-1], b"\x01" + XUCRED[1:]])
def test_an_answer_of_another_shape_is_an_error(wrong: bytes) -> None:
    with pytest.raises(OSError, match="kernel's answer"):
        parse_xucred(wrong)
