"""Opens the store, whatever lies in its place (wire.md, damaged store; CP-4.15; G22).

    nothing                               a fresh store
    a store                               opened and migrated
    a store of a newer version            StoreTooNew
    no regular file, or another user's    StartRefused
    anything else: empty, cut off, ...    moved aside as NAME.damaged-TIME, then a fresh store

A fresh store is made under another name and gets its own only when it is whole and on disk, so whatever is found
under that name and is no store is a damaged one, an empty file too: SQLite would take it for a new database, and
everybody's pairing would be gone without a word.  What was moved aside stays for its owner to look at, and is what
the next start knows the loss by, should this one not live to note it.

The caller holds the lock of the state folder.  A file is examined over a connection that cannot write, so that a
damaged one is kept as it was found.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from broker.daemon.errors import StartRefused
from broker.daemon.migrations import MIGRATIONS, Step
from broker.daemon.rows import AnyTable
from broker.daemon.store import Fault, Store, StoreDisagrees, no_fault
from broker.private_files import OTHERS, sync_directory
from protocols.errors import OurError, TheirError

_SETTING = "store"
_SIDES = ("", "-wal", "-shm", "-journal")
"""The files of one store: SQLite finds the side files by these names."""
_DAMAGE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_NOT_SQLITES_OWN = 0
_PATIENCE_SECONDS = 1.0
"""How long another program may keep a lock on the store before the start is given up."""
_TIME = "%Y%m%dT%H%M%S"
_DAMAGED = re.compile(r"\.damaged-(\d{8}T\d{6})\.(\d{3})Z")

Warn = Callable[[str, str], None]
"""Told of a damaged store: why it is one, and the name that its file has from then on."""


class _Damaged(Exception):
    """What is there is no store, or not a whole one; `reason` is a few words of our own."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def open_store(
    path: Path,
    tables: Iterable[AnyTable],
    *,
    wall_ms: int,
    warn: Warn,
    fault: Fault = no_fault,
    migrations: Sequence[Step] = MIGRATIONS,
) -> Store:
    """The store at `path`, a fresh one if there is none or none that can be used; `wall_ms` is this instant.

    Raises StartRefused and StoreTooNew.
    """
    try:
        if not _is_there(path):
            return _begin(path, fault, migrations)
        try:
            return _open(path, tables, fault, migrations)
        except _Damaged as damage:
            warn(damage.reason, _move_aside(path, wall_ms))
        return _begin(path, fault, migrations)
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise StartRefused(_SETTING, f"cannot be opened: {name}") from None
    except OSError as error:
        raise StartRefused(_SETTING, f"cannot be opened: {error.strerror}") from None


def damaged_at(path: Path) -> int | None:
    """When a store was last moved aside here, in wall milliseconds; None when none that is still there was."""
    times = (_moved_aside_at(path.name, file.name) for file in path.parent.iterdir())
    return max((time for time in times if time is not None), default=None)


# -- what is there ---------------------------------------------------------------------------------------------


def _is_there(path: Path) -> bool:
    """Whether there is a store, or the side files of one.  Raises StartRefused for what must not be touched."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return any(os.path.lexists(side) for side in _files(path))
    if not stat.S_ISREG(info.st_mode):
        raise StartRefused(_SETTING, "is not a regular file")
    if info.st_uid != os.geteuid():
        raise StartRefused(_SETTING, "belongs to another user")
    if info.st_mode & OTHERS:  # the folder has kept them out
        path.chmod(info.st_mode & ~OTHERS & 0o7777)
    return True


def _open(path: Path, tables: Iterable[AnyTable], fault: Fault, migrations: Sequence[Step]) -> Store:
    if not path.exists():
        raise _Damaged("gone, but for its side files")
    if not os.access(path, os.R_OK, effective_ids=True):
        raise _Damaged("unreadable")
    _examine(path)
    store = Store(path, fault, migrations)
    try:
        _check_rows(store, tables)
    except BaseException:
        store.close()
        raise
    return store


def _examine(path: Path) -> None:
    """Raise _Damaged unless the file is a database with every page in its place and a schema of ours."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", _PATIENCE_SECONDS, uri=True)) as db:
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            (page_size,) = db.execute("PRAGMA page_size").fetchone()
            (pages,) = db.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            if _code(error) in _DAMAGE:
                raise _Damaged("not a database, or not a whole one") from None
            raise
    if pages != "ok" or (path.stat().st_size % page_size and not _has_log(path)):
        raise _Damaged("pages do not fit together")
    if version == 0:
        raise _Damaged("empty")


def _has_log(path: Path) -> bool:
    """Whether a log is there, from which SQLite completes a page that a crash has cut."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _check_rows(store: Store, tables: Iterable[AnyTable]) -> None:
    """Raise _Damaged unless the tables are there, and the rows that a start loads can be read."""
    try:
        for _ in store.load(tables):
            pass
    except (TheirError, OurError, StoreDisagrees):  # their texts may quote a row
        raise _Damaged("rows cannot be read") from None
    except sqlite3.OperationalError as error:
        if _code(error) in (sqlite3.SQLITE_ERROR, _NOT_SQLITES_OWN):  # no such table; text that is no UTF-8
            raise _Damaged("tables are missing or no text") from None
        raise


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", _NOT_SQLITES_OWN) & 0xFF


# -- a fresh one -----------------------------------------------------------------------------------------------


def _begin(path: Path, fault: Fault, migrations: Sequence[Step]) -> Store:
    """Make a fresh store: either it is there as a whole, or there is nothing under this name."""
    new = path.with_name(f"{path.name}.new")
    for left_over in _files(new):
        left_over.unlink(missing_ok=True)
    Store(new, fault, migrations).close()  # the last one to close a database takes its side files away
    new.rename(path)
    sync_directory(path.parent)
    return Store(path, fault, migrations)


def _move_aside(path: Path, wall_ms: int) -> str:
    """Give the damaged store another name, its side files with it; returns that name.

    The side files come last: a store without its log could be taken for a whole one.
    """
    while any(os.path.lexists(side) for side in _files(_damaged_name(path, wall_ms))):
        wall_ms += 1
    aside = _damaged_name(path, wall_ms)
    for side, moved in zip(_files(path), _files(aside), strict=True):
        with suppress(FileNotFoundError):
            side.rename(moved)
    sync_directory(path.parent)
    return aside.name


def _files(path: Path) -> list[Path]:
    return [path.with_name(path.name + side) for side in _SIDES]


def _damaged_name(path: Path, wall_ms: int) -> Path:
    seconds, milliseconds = divmod(wall_ms, 1000)
    time = datetime.fromtimestamp(seconds, UTC).strftime(_TIME)
    return path.with_name(f"{path.name}.damaged-{time}.{milliseconds:03d}Z")


def _moved_aside_at(name: str, file: str) -> int | None:
    match = _DAMAGED.match(file.removeprefix(name))
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:  # somebody else has chosen this name
        return None
    return round(moment.timestamp()) * 1000 + int(match[2])
