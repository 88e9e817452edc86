"""The daemon's sockets in the file system, and the lock that says whose they are (wire.md, creation; G23).

Whoever holds the lock for life may remove a socket that a crash has left, and nobody else may.  "Unlink, then
bind" without it would take a living broker's socket away.  Even the holder leaves alone what is no socket, and
what another server answers on.

A socket is bound under a umask that lets no mode but 0600 come to be.  It may vanish while the broker lives (a
cleaner of temporary files, a hand): `keep_places` puts it back.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

import trio

from broker.daemon.errors import AlreadyRunning, StartRefused
from broker.daemon.runtime_dir import private_folder
from broker.paths import RUNTIME_DIR, Paths
from broker.private_files import NotPrivate, open_private_file

SUN_PATH_BYTES = {"linux": 108, "darwin": 104}
"""The size of sun_path; the byte 0 at its end takes one."""
_BACKLOG = 1024
_KEEP_SECONDS = 1.0

_Identity = tuple[int, int]
"""Device and inode: which file it is, whatever its name."""


class Lock:
    """An advisory lock on a file of its own, held from entering to leaving the block, or to the process's death.

    Entering raises AlreadyRunning when another process holds it.  The file stays: removing it would let two
    brokers lock two files of one name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def __enter__(self) -> Lock:
        self._fd = self._acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def restore(self) -> None:
        """Lock a new file if somebody removed the locked one, lest another broker does."""
        private_folder(self._path.parent, RUNTIME_DIR)
        if self._fd is not None and _identity(self._path) != _identity_of(os.fstat(self._fd)):
            fd = self._acquire()
            os.close(self._fd)
            self._fd = fd

    def _acquire(self) -> int:
        while True:
            fd = self._open()
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _identity(self._path) == _identity_of(os.fstat(fd)):
                    return fd
            except BlockingIOError:
                os.close(fd)
                raise AlreadyRunning(self._path.name, "another broker of this user is running") from None
            except OSError as error:
                os.close(fd)
                raise StartRefused(self._path.name, f"cannot be locked: {error.strerror}") from None
            os.close(fd)  # the file was removed between opening and locking it

    def _open(self) -> int:
        try:
            return open_private_file(self._path, os.O_RDWR | os.O_CREAT)
        except NotPrivate as error:
            raise StartRefused(self._path.name, f"the lock file {error}") from None
        except OSError as error:
            raise StartRefused(self._path.name, f"cannot be opened: {error.strerror}") from None


class SocketPlace:
    """One socket file of this broker's.  Use it only while holding the lock of its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = self._listen()

    def is_intact(self) -> bool:
        """Whether the file is still there and still the one that was bound."""
        return _identity(self.path) == self._bound

    def put_back(self) -> socket.socket:
        """Bind and listen anew, and return the socket that was used before, for the caller to close.

        Raises StartRefused when that cannot be done (something else lies there); then nothing has changed.
        """
        before, self.socket = self.socket, self._listen()
        return before

    def close(self) -> None:
        """Remove the file if it is still this broker's, then close the socket.

        In this order: as long as the socket is open, no other file can get its inode.
        """
        if self.is_intact():
            with suppress(OSError):
                self.path.unlink()
        self.socket.close()

    def _listen(self) -> socket.socket:
        check_length(self.path)
        private_folder(self.path.parent, RUNTIME_DIR)
        try:
            _clear(self.path)
            return self._bind()
        except OSError as error:
            raise StartRefused(self.path.name, f"cannot be bound: {error.strerror}") from None

    def _bind(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            _bind_private(sock, self.path)
            self._bound = _identity(self.path)
            sock.listen(_BACKLOG)
        except BaseException:
            sock.close()
            raise
        return sock


def check_length(path: Path, platform: str = sys.platform) -> None:
    """Raise StartRefused when the path does not fit into the platform's socket address."""
    longest = SUN_PATH_BYTES.get(platform, min(SUN_PATH_BYTES.values())) - 1
    if (size := len(os.fsencode(path))) > longest:
        reason = f"the path of {path.name} would have {size} bytes, a socket's may have {longest}"
        raise StartRefused(RUNTIME_DIR, reason)


def is_served(path: Path) -> bool:
    """Whether a server answers on this socket; in doubt it does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        return sock.connect_ex(os.fsencode(path)) not in (errno.ECONNREFUSED, errno.ENOENT)


def lease_socket(paths: Paths) -> Path:
    """Where to put the lease socket: the documented path, unless another live server holds that."""
    check_length(paths.lease_socket)
    fallback = paths.lease_socket_fallback
    return fallback if fallback is not None and is_served(paths.lease_socket) else paths.lease_socket


@contextmanager
def open_places(paths: Iterable[Path]) -> Iterator[tuple[SocketPlace, ...]]:
    """Bind and listen on every path; on leaving remove the sockets again, whatever has happened.

    Raises StartRefused, or AlreadyRunning when another server answers on one of them; then none is left behind.
    """
    with ExitStack() as stack:
        places = []
        for path in paths:
            place = SocketPlace(path)
            stack.callback(place.close)
            places.append(place)
        yield tuple(places)


async def keep_places(
    places: Sequence[SocketPlace],
    lock: Lock,
    replaced: Callable[[SocketPlace], None],
    blocked: Callable[[SocketPlace, StartRefused], None],
) -> None:
    """Put back, for ever, what was removed from outside: looks every second, so within the 5 s of wire.md.

    `replaced` is called when a place has a new `socket`; after it the old one is closed, which wakes whoever waits
    on it with ClosedResourceError.  `blocked` is called once when a place cannot be put back; it is tried on.
    """
    stuck: set[SocketPlace] = set()
    while True:
        await trio.sleep(_KEEP_SECONDS)
        for place in places:
            try:
                lock.restore()
                if not place.is_intact():
                    _replace(place, replaced)
                stuck.discard(place)
            except StartRefused as error:
                if place not in stuck:
                    stuck.add(place)
                    blocked(place, error)


def _replace(place: SocketPlace, replaced: Callable[[SocketPlace], None]) -> None:
    before = place.put_back()
    replaced(place)
    trio.lowlevel.notify_closing(before.fileno())
    before.close()


def _clear(path: Path) -> None:
    """Remove a socket that nobody serves; refuse everything else that lies there."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode):
        raise StartRefused(path.name, "something that is not a socket lies in its place")
    if is_served(path):
        raise AlreadyRunning(path.name, "another server answers on it")
    path.unlink(missing_ok=True)


def _bind_private(sock: socket.socket, path: Path) -> None:
    mask = os.umask(0o177)
    try:
        sock.bind(os.fsencode(path))
    finally:
        os.umask(mask)


def _identity(path: Path) -> _Identity | None:
    try:
        return _identity_of(path.lstat())
    except OSError:
        return None


def _identity_of(info: os.stat_result) -> _Identity:
    return info.st_dev, info.st_ino
