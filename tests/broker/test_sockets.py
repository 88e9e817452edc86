"""The socket files and the lock: whose they are, what is never touched, and that they come back (G23)."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.daemon.errors import AlreadyRunning, StartRefused
from broker.daemon.sockets import (
    SUN_PATH_BYTES,
    Lock,
    SocketPlace,
    check_length,
    is_served,
    keep_places,
    lease_socket,
    open_places,
)
from broker.paths import Paths, find_paths
from tests.support.children import child, read_line, write_line

BROKER = """
import sys
from pathlib import Path
from broker.daemon.errors import AlreadyRunning
from broker.daemon.sockets import Lock, open_places
folder = Path(sys.argv[1])
print("ready", flush=True)
while sys.stdin.readline():
    try:
        with Lock(folder / "lock"), open_places([folder / "s"]):
            print("won", flush=True)
            sys.stdin.readline()
    except AlreadyRunning:
        print("lost", flush=True)
        sys.stdin.readline()
    print("done", flush=True)
"""


@pytest.fixture
def path(short_path: Path) -> Path:
    return short_path / "s"


@pytest.fixture
def place(path: Path) -> Iterator[SocketPlace]:
    with open_places([path]) as (place,):
        yield place


def stale_socket(path: Path) -> None:
    """What a killed broker leaves behind."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


def reached(place: SocketPlace) -> bool:
    """Whether a client that connects by the path comes out at this place's socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place.path))
        place.socket.accept()[0].close()
    return True


# Making and removing


@pytest.mark.requirement("CP-5.7")
def test_a_socket_is_for_its_owner_only_in_a_folder_likewise(short_path: Path) -> None:
    with open_places([short_path / "r" / "s"]) as (place,):
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700
        assert reached(place)


@pytest.mark.requirement("CP-5.7")
def test_no_looser_mode_ever_exists(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel makes at the moment of the bind, before anybody could change it."""
    modes = []
    real = socket.socket.bind

    def bind(sock: socket.socket, address: bytes) -> None:
        real(sock, address)
        modes.append(stat.S_IMODE(os.stat(address).st_mode))

    monkeypatch.setattr(socket.socket, "bind", bind)
    before = os.umask(0)
    try:
        with open_places([path]):
            pass
        assert modes == [0o600]
        assert os.umask(0) == 0  # put back as it was
    finally:
        os.umask(before)


def test_a_folder_that_is_open_to_others_is_refused(short_path: Path) -> None:
    short_path.chmod(0o750)
    with pytest.raises(StartRefused, match="COMPANION_RUNTIME_DIR: the folder is open"):
        SocketPlace(short_path / "s")


def test_the_socket_is_gone_in_the_end(path: Path) -> None:
    with open_places([path]):
        assert path.is_socket()
    assert not path.exists()


def test_only_the_own_socket_is_removed_in_the_end(path: Path) -> None:
    with open_places([path]):
        path.unlink()
        path.write_text("kept", encoding="ascii")
    assert path.read_text(encoding="ascii") == "kept"


def test_a_socket_that_took_the_place_is_not_removed_in_the_end(path: Path) -> None:
    with open_places([path]):
        path.unlink()
        stale_socket(path)
    assert path.is_socket()


def test_when_one_place_is_refused_the_others_are_cleared(short_path: Path) -> None:
    (short_path / "b").touch()
    with pytest.raises(StartRefused, match=r"^b: "), open_places([short_path / "a", short_path / "b"]):
        pass
    assert [path.name for path in short_path.iterdir()] == ["b"]


@pytest.mark.requirement("G23")
def test_a_dead_socket_is_replaced(path: Path) -> None:
    stale_socket(path)
    with open_places([path]) as (place,):
        assert reached(place)


@pytest.mark.requirement("G23")
def test_a_strangers_file_keeps_its_text(path: Path) -> None:
    path.write_text("some text", encoding="ascii")
    with pytest.raises(StartRefused, match="not a socket") as refused:
        SocketPlace(path)
    assert path.read_text(encoding="ascii") == "some text"
    assert not isinstance(refused.value, AlreadyRunning)


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_link_is_not_followed_and_not_removed(short_path: Path, path: Path, target: str) -> None:
    stale_socket(short_path / "there")
    path.symlink_to(short_path / target)
    with pytest.raises(StartRefused, match="not a socket"):
        SocketPlace(path)
    assert path.is_symlink()
    assert (short_path / "there").is_socket()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_other_kinds_of_file_are_left_alone(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    with pytest.raises(StartRefused, match="not a socket"):
        SocketPlace(path)
    assert path.exists()


@pytest.mark.requirement("G23")
def test_a_living_server_keeps_its_socket(place: SocketPlace) -> None:
    inode = place.path.stat().st_ino
    with pytest.raises(AlreadyRunning, match="another server answers"):
        SocketPlace(place.path)
    assert place.path.stat().st_ino == inode


def test_a_server_that_is_too_busy_to_answer_is_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(path))
        server.listen(0)
        client.connect(str(path))
        assert is_served(path)


def test_a_server_of_another_kind_of_socket_is_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))
        assert is_served(path)


# The length of a path


@pytest.mark.parametrize(("platform", "longest"), [("linux", 107), ("darwin", 103)])
def test_a_path_over_the_limit_is_an_error_that_names_the_setting(platform: str, longest: int) -> None:
    check_length(Path("/" + "é" * ((longest - 1) // 2) + "x" * ((longest - 1) % 2)), platform)
    with pytest.raises(
        StartRefused, match=rf"COMPANION_RUNTIME_DIR.* {longest + 1} bytes.* {longest}"
    ) as refused:
        check_length(Path("/" + "x" * (longest - 2) + "/s"), platform)
    assert "xxx" not in str(refused.value)


def test_the_longest_path_works_here(short_path: Path) -> None:
    room = SUN_PATH_BYTES[sys.platform] - 1 - len(os.fsencode(short_path / "s")) - 1
    with open_places([short_path / ("x" * room) / "s"]) as (place,):
        assert reached(place)
    with pytest.raises(StartRefused, match="COMPANION_RUNTIME_DIR"):
        SocketPlace(short_path / ("x" * (room + 1)) / "s")
    assert not (short_path / ("x" * (room + 1))).exists()


# The lease socket of macOS


def macos_paths(short_path: Path) -> Paths:
    return attrs.evolve(
        find_paths(runtime_dir=short_path / "own", state_dir=short_path),
        lease_socket=short_path / "documented" / "l",
        lease_socket_fallback=short_path / "own" / "l",
    )


@pytest.mark.requirement("LP-1")
def test_the_documented_lease_socket_is_used_when_it_is_free(short_path: Path) -> None:
    paths = macos_paths(short_path)
    assert lease_socket(paths) == paths.lease_socket
    paths.lease_socket.parent.mkdir()
    stale_socket(paths.lease_socket)
    assert lease_socket(paths) == paths.lease_socket


def test_another_live_lease_server_is_given_way(short_path: Path) -> None:
    paths = macos_paths(short_path)
    with open_places([paths.lease_socket]):
        assert lease_socket(paths) == paths.lease_socket_fallback


# The lock


def test_the_lock_is_held_for_the_block_and_its_file_stays(short_path: Path) -> None:
    file = short_path / "lock"
    with Lock(file):
        with pytest.raises(AlreadyRunning, match="lock: another broker of this user is running"), Lock(file):
            pass
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Lock(file):
        pass
    assert file.exists()


def test_a_lock_that_is_a_link_is_refused(short_path: Path) -> None:
    (short_path / "other").touch(0o600)
    (short_path / "lock").symlink_to(short_path / "other")
    with pytest.raises(StartRefused, match="lock file is a link"), Lock(short_path / "lock"):
        pass


def test_a_lock_without_a_folder_is_refused_without_naming_it(short_path: Path) -> None:
    with (
        pytest.raises(StartRefused, match="lock: cannot be opened") as refused,
        Lock(short_path / "x" / "lock"),
    ):
        pass
    assert str(short_path) not in str(refused.value)


def test_a_removed_lock_file_is_locked_anew(short_path: Path) -> None:
    file = short_path / "lock"
    with Lock(file) as lock:
        file.unlink()
        lock.restore()
        lock.restore()
        with pytest.raises(AlreadyRunning), Lock(file):
            pass


def test_a_lock_that_another_broker_took_meanwhile_stays_that_brokers(short_path: Path) -> None:
    file = short_path / "lock"
    with Lock(file) as lock:
        file.unlink()
        with Lock(file), pytest.raises(AlreadyRunning):
            lock.restore()


def test_no_child_inherits_the_lock(short_path: Path) -> None:
    with ExitStack() as stack:
        with Lock(short_path / "lock"):
            process = stack.enter_context(child(close_fds=False))
        with Lock(short_path / "lock"):
            assert process.poll() is None


@pytest.mark.requirement("G23")
def test_of_two_brokers_that_start_at_once_one_is_left_and_reachable(short_path: Path) -> None:
    command = [sys.executable, "-c", BROKER, str(short_path)]
    with child(command) as one, child(command) as other:
        both = (one, other)
        assert [read_line(broker) for broker in both] == ["ready", "ready"]
        for _ in range(20):
            for broker in both:
                write_line(broker, "go")
            assert sorted(read_line(broker) for broker in both) == ["lost", "won"]
            assert is_served(short_path / "s")
            for broker in both:
                write_line(broker, "stop")
            assert [read_line(broker) for broker in both] == ["done", "done"]
            assert not (short_path / "s").exists()


@pytest.mark.requirement("G23")
def test_after_a_kill_the_next_broker_starts(short_path: Path) -> None:
    command = [sys.executable, "-c", BROKER, str(short_path)]
    with child(command) as broker:
        write_line(broker, "go")
        assert [read_line(broker), read_line(broker)] == ["ready", "won"]
        with pytest.raises(AlreadyRunning), Lock(short_path / "lock"):
            pass
        broker.kill()
        broker.wait()
    assert (short_path / "s").is_socket()
    with Lock(short_path / "lock"), open_places([short_path / "s"]) as (place,):
        assert reached(place)


# Keeping


class Keeper:
    """A keeper task and what it has told."""

    def __init__(self) -> None:
        self.replaced: list[SocketPlace] = []
        self.blocked: list[StartRefused] = []

    async def run(self, places: tuple[SocketPlace, ...], lock: Lock) -> None:
        await keep_places(places, lock, self.replaced.append, lambda place, error: self.blocked.append(error))


@pytest.fixture
def lock(short_path: Path) -> Iterator[Lock]:
    with Lock(short_path / "lock") as lock:
        yield lock


async def test_a_removed_socket_is_back_within_five_seconds(
    place: SocketPlace, lock: Lock, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    keeper = Keeper()
    nursery.start_soon(keeper.run, (place,), lock)
    await trio.sleep(5)
    assert keeper.replaced == []  # nothing is done while nothing is amiss
    place.path.unlink()
    assert not place.is_intact()
    await trio.sleep(5)
    assert keeper.replaced == [place]
    assert place.is_intact()
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600
    assert reached(place)
    assert keeper.blocked == []


async def test_whoever_waits_on_the_old_socket_is_woken(
    place: SocketPlace, lock: Lock, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    woken = trio.Event()
    old = place.socket

    async def accept() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(old.fileno())
        woken.set()

    nursery.start_soon(accept)
    await wait_all_tasks_blocked()
    nursery.start_soon(Keeper().run, (place,), lock)
    place.path.unlink()
    with trio.fail_after(5):
        await woken.wait()
    assert old.fileno() == -1


async def test_a_removed_folder_is_back_with_its_lock_and_socket(
    short_path: Path, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    folder = short_path / "r"
    folder.mkdir(mode=0o700)
    with Lock(folder / "lock") as lock, open_places([folder / "s"]) as places:
        nursery.start_soon(Keeper().run, places, lock)
        for name in ("s", "lock"):
            (folder / name).unlink()
        folder.rmdir()
        await trio.sleep(5)
        assert reached(places[0])
        with pytest.raises(AlreadyRunning), Lock(folder / "lock"):
            pass


async def test_what_lies_in_the_place_is_left_alone_told_once_and_waited_out(
    place: SocketPlace, lock: Lock, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    keeper = Keeper()
    nursery.start_soon(keeper.run, (place,), lock)
    place.path.unlink()
    place.path.write_text("kept", encoding="ascii")
    await trio.sleep(5)
    assert place.path.read_text(encoding="ascii") == "kept"
    assert [error.reason for error in keeper.blocked] == ["something that is not a socket lies in its place"]
    place.path.unlink()
    await trio.sleep(5)
    assert reached(place)


async def test_another_servers_socket_is_left_alone(
    place: SocketPlace, lock: Lock, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    keeper = Keeper()
    nursery.start_soon(keeper.run, (place,), lock)
    place.path.unlink()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(place.path))
        stranger.listen()
        await trio.sleep(5)
        assert [type(error) for error in keeper.blocked] == [AlreadyRunning]
        assert keeper.replaced == []
