"""The presenter's process: started again with a growing delay, and gone without a trace (presenter.md, Death)."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator

import attrs
import pytest
import trio
from trio.testing import MockClock

from broker.daemon import presenter_process
from broker.daemon.connection import Connection, Terms
from broker.daemon.errors import StartRefused
from broker.daemon.logs import Log
from broker.daemon.presenter_process import FD_VARIABLE, Admit, command_of, keep_presenter, published
from tests.support.toy_dispatch import TOY, ToyDispatch, open_toy_dispatch
from tests.support.toy_session import PATIENCE_SECONDS

STUBBORN = f"""
import os, signal, socket, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = socket.socket(fileno=int(os.environ["{FD_VARIABLE}"]))
end.sendall(b'{{"jsonrpc":"2.0","id":1,"method":"ask"}}\\n')
end.recv(1000)
time.sleep(60)
"""
CLOSES_ITS_SOCKET = f"""
import os, time
os.close(int(os.environ["{FD_VARIABLE}"]))
time.sleep(60)
"""
LEAVES_A_CHILD = f"""
import os
if os.fork() == 0:
    os.read(int(os.environ["{FD_VARIABLE}"]), 1)
    os._exit(0)
os._exit(5)
"""


class Presenters:
    """Presenters that are kept by a task: their connections so far, and what they have asked."""

    def __init__(self, toy: ToyDispatch) -> None:
        self.toy = toy
        self.admitted: list[Connection] = []
        self.asked: list[object] = []
        self.logged = io.StringIO()
        self._news = trio.Event()
        self._service = attrs.evolve(TOY, terms=lambda peer: Terms(look=self._look))

    def admit(self, sock: socket.socket) -> Connection | None:
        connection = self.toy.door.admit(sock, self._service)
        assert connection is not None
        self.admitted.append(connection)
        self._tell()
        return connection

    async def wait(self, *, admitted: int = 0, asked: int = 0) -> None:
        """Wait for so many connections and calls."""
        with trio.fail_after(PATIENCE_SECONDS):
            while len(self.admitted) < admitted or len(self.asked) < asked:
                await self._news.wait()

    def _look(self, message: object) -> object:
        self.asked.append(message)
        self._tell()
        return message

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()

    @contextlib.asynccontextmanager
    async def keep(self, *command: str) -> AsyncIterator[None]:
        with trio.fail_after(PATIENCE_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(keep_presenter, command, self.admit, Log(self.logged))
                yield
                nursery.cancel_scope.cancel()


@pytest.fixture
async def presenters(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Presenters]:
    monkeypatch.setattr(presenter_process, "_DELAYS", (0.0,))
    monkeypatch.setattr(presenter_process, "_LEAVE_SECONDS", 0.1)
    async with open_toy_dispatch() as toy:
        before = descriptors()
        presenters = Presenters(toy)
        yield presenters
        with trio.fail_after(PATIENCE_SECONDS):
            for connection in presenters.admitted:
                await connection.ended.wait()
        assert no_child_is_left()
        assert descriptors() == before


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def no_child_is_left() -> bool:
    """Whether this process has no child, living or zombie."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


async def test_one_that_ends_is_started_again_and_collected(presenters: Presenters) -> None:
    async with presenters.keep("/bin/sh", "-c", "exit 3"):
        await presenters.wait(admitted=4)
    assert "code=3" in presenters.logged.getvalue()


async def test_one_that_closes_its_socket_is_gone_whatever_it_still_does(presenters: Presenters) -> None:
    async with presenters.keep(sys.executable, "-c", CLOSES_ITS_SOCKET):
        await presenters.wait(admitted=2)
    assert f"code=-{int(signal.SIGTERM)}" in presenters.logged.getvalue()


async def test_one_that_dies_is_gone_though_a_child_of_it_holds_the_socket(presenters: Presenters) -> None:
    async with presenters.keep(sys.executable, "-c", LEAVES_A_CHILD):
        await presenters.wait(admitted=2)
        assert presenters.admitted[0].ended.is_set()
    assert "code=5" in presenters.logged.getvalue()


async def test_at_the_end_one_that_does_not_leave_is_killed(presenters: Presenters) -> None:
    async with presenters.keep(sys.executable, "-c", STUBBORN):
        await presenters.wait(asked=1)
    assert presenters.logged.getvalue() == ""


async def test_one_that_cannot_be_started_is_tried_again(presenters: Presenters) -> None:
    async with presenters.keep("/no/such/presenter"):
        with trio.fail_after(PATIENCE_SECONDS):
            while presenters.logged.getvalue().count("presenter_not_started") < 3:
                await trio.lowlevel.checkpoint()
    assert presenters.admitted == []


async def test_the_delay_grows_and_is_short_again_after_one_that_has_lived(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    lives = iter([0.0] * 7 + [60.0] + [0.0] * 2)
    delays: list[float] = []
    ended = trio.current_time()

    async def run_once(command: object, admit: Admit) -> int:
        nonlocal ended
        delays.append(round(trio.current_time() - ended, 3))
        try:
            await trio.sleep(next(lives))
        except StopIteration:
            await trio.sleep_forever()
        ended = trio.current_time()
        return 1

    monkeypatch.setattr(presenter_process, "_run_once", run_once)
    with trio.move_on_after(1000):
        await keep_presenter([], lambda sock: None, Log(io.StringIO()))
    assert delays == [0, 0.2, 0.5, 1, 2, 5, 5, 5, 0.1, 0.2, 0.5]


@pytest.mark.parametrize("kind", ["exec:", "exec:'", "exec:a\0b", "window"])
def test_a_kind_that_names_no_command_refuses_the_start(kind: str) -> None:
    with pytest.raises(StartRefused, match=r"presenter\.kind"):
        command_of(kind)


@pytest.mark.requirement("CP-2.3")
@pytest.mark.parametrize(
    ("kind", "told"), [("none", "none"), ("terminal", "terminal"), ("exec:/opt/show --key 'a:b'", "exec")]
)
def test_clients_are_told_the_kind_of_presenter_and_no_command(kind: str, told: str) -> None:
    assert published(kind) == told
