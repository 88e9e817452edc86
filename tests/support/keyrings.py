"""Keychains for tests, as real backends of keyring: chosen by PYTHON_KEYRING_BACKEND, in real processes too."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import ClassVar, NoReturn

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

ROOT = Path(__file__).parents[2]
FILE = "COMPANION_TEST_KEYRING"
"""Names the file that stands for the keychain's content."""
NULL = "keyring.backends.null.Keyring"
"""keyring's own backend that takes everything and keeps nothing."""
NONE = "keyring.backends.fail.Keyring"
"""keyring's own backend for when there is none: every visit raises."""
FILED = f"{__name__}.FileKeyring"
LOCKED = f"{__name__}.LockedKeyring"
LOCKED_LATER = f"{__name__}.LockedLaterKeyring"
TALKATIVE = f"{__name__}.TalkativeKeyring"


def environment(backend: str, folder: Path) -> dict[str, str]:
    """What makes a process use this backend, with its content in `folder`, and lose patience soon."""
    return {
        "PYTHON_KEYRING_BACKEND": backend,
        "PYTHONPATH": str(ROOT),
        FILE: str(folder / "keyring.json"),
        "COMPANION_KEYCHAIN_SECONDS": {LOCKED: "0.5", LOCKED_LATER: "3"}.get(backend, "60"),
    }


def content(folder: Path) -> dict[str, str]:
    """What the FileKeyring with this folder holds, by user name."""
    file = folder / "keyring.json"
    held: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    return held


class FileKeyring(KeyringBackend):
    """Keeps passwords in a file."""

    priority: ClassVar[float] = 9

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write(self._read() | {username: password})

    def delete_password(self, service: str, username: str) -> None:
        held = self._read()
        if held.pop(username, None) is None:
            raise PasswordDeleteError("not found")
        self._write(held)

    def _read(self) -> dict[str, str]:
        return content(Path(os.environ[FILE]).parent)

    def _write(self, held: dict[str, str]) -> None:
        Path(os.environ[FILE]).write_text(json.dumps(held))


class LockedKeyring(FileKeyring):
    """Waits for somebody to unlock it, for ever."""

    def get_password(self, service: str, username: str) -> str | None:
        wait_for_ever()

    def set_password(self, service: str, username: str, password: str) -> None:
        wait_for_ever()

    def delete_password(self, service: str, username: str) -> None:
        wait_for_ever()


class LockedLaterKeyring(LockedKeyring):
    """Is locked only after the probe that was to find out."""

    def get_password(self, service: str, username: str) -> str | None:
        return FileKeyring.get_password(self, service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        if not username.startswith("probe-"):
            wait_for_ever()
        FileKeyring.set_password(self, service, username, password)

    def delete_password(self, service: str, username: str) -> None:
        FileKeyring.delete_password(self, service, username)


class TalkativeKeyring(FileKeyring):
    """Takes probes, and quotes every other password in its error."""

    def set_password(self, service: str, username: str, password: str) -> None:
        if not username.startswith("probe-"):
            raise RuntimeError(f"cannot keep {password}")
        super().set_password(service, username, password)


def wait_for_ever() -> NoReturn:
    while True:
        threading.Event().wait()
