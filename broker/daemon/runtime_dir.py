"""The daemon's own folders: made private, or refused (wire.md, creation)."""

from __future__ import annotations

from pathlib import Path

from broker.daemon.errors import StartRefused
from broker.private_files import NotPrivate, make_private_directory


def private_folder(path: Path, setting: str) -> None:
    """Make the folder with mode 0700, or check it: a directory of the user's, not a link, closed to all others.

    Raises StartRefused, which names the `setting` that would choose another folder.  Parents are not checked.
    """
    try:
        make_private_directory(path)
    except NotPrivate as error:
        raise StartRefused(setting, f"the folder {error}") from None
    except OSError as error:
        raise StartRefused(setting, f"the folder cannot be made or read: {error.strerror}") from None
