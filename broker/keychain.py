"""The keychain of the user's system, through `keyring`: one entry a client, its key and nothing else (CP-5.2).

A keychain is software that this program knows nothing about.  It may not be there, it may drop what it is given
without a word, and a locked one may block for ever.  So each visit happens in a thread of its own with a deadline
(`COMPANION_KEYCHAIN_SECONDS`, 15 by default: time for a person to unlock it), what was written is read back, and of
what a backend raises only the kind is told, since its text may hold the key.  `keyring` is imported in that thread:
it costs start-up time, and finding a backend may block as well.
"""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

import attrs

SECONDS = "COMPANION_KEYCHAIN_SECONDS"
_DEFAULT_SECONDS = 15.0
_SERVICE = "companion-broker"

T = TypeVar("T")


class KeychainError(Exception):
    """The keychain cannot be used; the text is the reason and quotes nothing."""


def check_keychain() -> None:
    """Raise KeychainError unless an entry can be written, read back and removed."""
    probe = f"probe-{os.urandom(8).hex()}"
    keep_key(probe, os.urandom(16).hex())
    drop_key(probe)


def keep_key(client_id: str, key: str) -> None:
    """Store a client's key, over an older one, and see that it is there.  Raises KeychainError."""

    def visit() -> bool:
        import keyring

        keyring.set_password(_SERVICE, client_id, key)
        return keyring.get_password(_SERVICE, client_id) == key

    if not _in_time(visit):
        raise KeychainError("it does not keep what it is given")


def find_key(client_id: str) -> str | None:
    """A client's key; None when there is none.  Raises KeychainError."""

    def visit() -> str | None:
        import keyring

        return keyring.get_password(_SERVICE, client_id)

    return _in_time(visit)


def drop_key(client_id: str) -> None:
    """Remove a client's key, if it is there.  Raises KeychainError."""

    def visit() -> None:
        import keyring
        from keyring.errors import PasswordDeleteError

        try:
            keyring.delete_password(_SERVICE, client_id)
        except PasswordDeleteError:
            if keyring.get_password(_SERVICE, client_id) is not None:
                raise

    _in_time(visit)


@attrs.frozen
class _Raised:
    """What a visit ended with in place of a result."""

    kind: str


def _in_time(visit: Callable[[], T]) -> T:
    """The visit's result; a visit that takes too long is left to itself, in a thread that holds up nothing."""
    ended: queue.SimpleQueue[T | _Raised] = queue.SimpleQueue()

    def work() -> None:
        try:
            ended.put(visit())
        except BaseException as error:  # a traceback of this thread would be printed, and might quote the key
            ended.put(_Raised(type(error).__name__))

    seconds = _patience()
    threading.Thread(target=work, daemon=True, name="keychain").start()
    try:
        result = ended.get(timeout=seconds)
    except queue.Empty:
        raise KeychainError(f"it gave no answer in {seconds:g} seconds; it may be locked") from None
    if isinstance(result, _Raised):
        raise KeychainError(f"none can be used ({result.kind})")
    return result


def _patience() -> float:
    given = os.environ.get(SECONDS)
    try:
        seconds = float(given) if given else _DEFAULT_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise KeychainError(f"{SECONDS} is not a number of seconds")
    return seconds
