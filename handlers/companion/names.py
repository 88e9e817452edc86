"""What a client may be called: something that can be read, and nothing that reads like the host or the system.

A name is given by the client itself, so it proves nothing; it must not pass for what it is not either (CP-4.4).
"""

from __future__ import annotations

import unicodedata

from handlers.companion.rows import CLIENTS
from handlers.rule import Draft
from protocols.companion.pairing import MAX_CLIENT_NAME
from protocols.errors import InvalidValue
from protocols.lookalikes import reading
from protocols.text import neutralize, visible_length

_LINE_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_RESERVED = ("host", "system")


def check_name(name: str, field: str) -> None:
    """1..64 code points that can be seen, on one line; raises InvalidValue."""
    if not _LINE_BREAKS.isdisjoint(name):
        raise InvalidValue(field, "line break")
    if not visible_length(name):
        raise InvalidValue(field, "too short", 1)
    if visible_length(name) + name.count(" ") > MAX_CLIENT_NAME:
        raise InvalidValue(field, "too long", MAX_CLIENT_NAME)


def is_reserved(draft: Draft, name: str) -> bool:
    """Whether a person would take it for the host's own label, or for the system."""
    read = reading(name)
    return as_read(name) == as_read(draft.environment.host_label) or (
        read != "" and read in map(reading, (draft.environment.host_label, *_RESERVED))
    )


def is_in_use(draft: Draft, name: str) -> bool:
    """Whether a client is paired under a name that reads the same."""
    read = as_read(name)
    return any(not client.revoked and as_read(client.label) == read for client in draft.all(CLIENTS))


def as_read(name: str) -> str:
    """The name without differences of width, case and spaces, and with what is invisible written out."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(neutralize(folded, multiline=False).split())
