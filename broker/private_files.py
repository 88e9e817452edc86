"""Files and folders that are the user's alone: made so, and checked on every use (CP-5.2, CP-5.7).

A check looks at what was opened, never at a name that may change its meaning between the look and the use.  Errors
name the reason only, never the path: whoever calls says which setting it was.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

OTHERS = 0o077
"""Any bit of group or others: for what holds secrets."""
WRITABLE_BY_OTHERS = 0o022
"""For what others may read: a configuration."""

_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # not to hang on a FIFO that lies in the file's place


class NotPrivate(Exception):
    """A file or folder is not the user's alone, or not what it should be; the text is the reason."""


def make_private_directory(path: Path) -> None:
    """Make the folder with mode 0700, or check the one that is there.

    Missing parents are made with the same mode, parents that are there are not checked.  Raises NotPrivate, and
    OSError when the folder cannot be made.
    """
    _make(path)
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        raise NotPrivate("is a link")
    if not stat.S_ISDIR(info.st_mode):
        raise NotPrivate("is not a directory")
    check_owner_and_mode(info, OTHERS)
    if info.st_mode & 0o700 != 0o700:
        raise NotPrivate(f"cannot be used by its owner ({_mode(info)})")


def _make(path: Path) -> None:
    if not path.parent.exists():
        _make(path.parent)
    with suppress(FileExistsError):
        path.mkdir(0o700)


def check_owner_and_mode(info: os.stat_result, forbidden: int) -> None:
    """Raise NotPrivate unless the user owns it and none of the `forbidden` mode bits is set."""
    if info.st_uid != os.geteuid():
        raise NotPrivate("belongs to another user")
    if info.st_mode & forbidden:
        raise NotPrivate(f"is open to other users ({_mode(info)})")


def open_private_file(path: Path, flags: int, forbidden: int = OTHERS) -> int:
    """Open a regular file of the user's and return its descriptor; one that `flags` create gets mode 0600.

    Raises NotPrivate for a link, another kind of file, another owner or a forbidden mode bit, else OSError.
    """
    try:
        fd = os.open(path, flags | _OPEN, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPrivate("is a link") from None
        if error.errno == errno.EISDIR:
            raise NotPrivate("is not a regular file") from None
        raise
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise NotPrivate("is not a regular file")
        check_owner_and_mode(info, forbidden)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_private_file(path: Path, forbidden: int = OTHERS, max_bytes: int = 65_536) -> bytes:
    """The content of a private file.  Raises NotPrivate, also when it is too long, and OSError."""
    with open(open_private_file(path, os.O_RDONLY, forbidden), "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise NotPrivate(f"is longer than {max_bytes} bytes")
    return content


def write_private_file(path: Path, content: bytes) -> None:
    """Put a file with mode 0600 in place, at once and for good: after a crash there is the old one or the new.

    A link in its place is replaced, not followed.  Raises OSError; then the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with open(open_private_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Let the names in a folder outlive a crash of the machine."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _mode(info: os.stat_result) -> str:
    return f"mode {stat.S_IMODE(info.st_mode):04o}"
