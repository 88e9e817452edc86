"""Keys of clients: 256 bits that are told once, and the digest that is kept of them (CP-5.1, CP-5.2)."""

from __future__ import annotations

import base64
import hashlib
import hmac

import attrs

from handlers.rule import derive

NO_KEY_YET = ""
"""In place of a digest: no key has it."""
NO_KEY = "0" * 64
"""What is compared with where there is nothing to compare with: no key has this digest."""


@attrs.frozen
class NewKey:
    """A key on its way to its client, and what stays here of it."""

    key: str = attrs.field(repr=False)
    sha256: str = attrs.field(repr=False)


def new_key(seed: bytes) -> NewKey:
    """A fresh key from an event's seed: 32 bytes, base64url without padding."""
    key = base64.urlsafe_b64encode(derive(seed, "key")).decode().rstrip("=")
    return NewKey(key, hashlib.sha256(key.encode()).hexdigest())


def has_digest(key: str, sha256: str | None) -> bool:
    """Whether a key is that of a digest: in constant time on bytes, the same work where there is none."""
    claimed = hashlib.sha256(key.encode()).hexdigest()
    same = hmac.compare_digest(claimed.encode(), (NO_KEY if sha256 is None else sha256).encode())
    return same and sha256 is not None
