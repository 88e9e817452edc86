"""The messages of the presenter protocol, both ways (presenter.md).

Times on the wire are RFC 3339 UTC for people to read; whatever is computed with is a duration in
milliseconds.  A member that is absent is None here.  Texts of clients are neutralized before they become part
of a message (`protocols.presenter.picture`).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import attrs

from protocols.companion.capabilities import Interaction, Kind, Tone
from protocols.companion.pairing import Scope
from protocols.errors import InvalidValue
from protocols.json_values import JSONObject
from protocols.members import absent, array, integer, text

PROTOCOL_VERSION = "0.1"
MAX_FRAME_BYTES = 65_536

_MAX_AGE_MS = 2**53
"""Bound of durations and revisions: what every JSON reader holds exactly."""


# -- broker -> presenter -------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Source:
    """Who asks: the label of its pairing, and the program behind the connection as the kernel names it."""

    label: str
    program: str | None = absent()
    pid: int | None = absent()


@attrs.frozen(kw_only=True, repr=False)
class Option:
    """One choice: its stable id goes back, its label is drawn."""

    id: str
    label: str


@attrs.frozen(kw_only=True, repr=False)
class Input:
    """What a text interaction takes; `max_length` in code points."""

    placeholder: str
    multiline: bool
    max_length: int


@attrs.frozen(kw_only=True, repr=False)
class Present:
    """Draw this; what `digest` covers must all be on the screen before `presented` is reported.

    `queued` counts the requests that wait for a place; `remaining_ms` is the time until the deadline.
    `expression` is the character's face for it; `motion` still: nothing of it may move, as its owner was told.
    `parameters` are those of a capability that a character pack declares: numbers and words of the pack's own.
    """

    request_id: str
    revision: int
    digest: str
    kind: Kind
    interaction: Interaction
    source: Source
    capability: str
    character: str
    style: str
    tone: Tone | None = absent()
    expression: str | None = absent()
    motion: Literal["still"] | None = absent()
    parameters: JSONObject | None = absent()
    title: str | None = absent()
    text: str | None = absent()
    detail: str | None = absent()
    options: tuple[Option, ...] | None = absent()
    input: Input | None = absent()
    fraction: float | None = absent()
    display_ms: int | None = absent()
    deadline_at: str
    remaining_ms: int
    queued: int


@attrs.frozen(kw_only=True, repr=False)
class Update(Present):
    """The picture of a request has changed: a new revision and digest."""


@attrs.frozen(kw_only=True)
class Dismiss:
    """Take it off the screen at once."""

    request_id: str | None = absent()
    pairing_id: str | None = absent()
    reason: str


@attrs.frozen(kw_only=True, repr=False)
class ConfirmPairing:
    """Ask the person whether this client may be paired; what is shown is what is granted (G10)."""

    pairing_id: str
    digest: str
    client_name: str
    name_in_use: bool
    program: str | None = absent()
    pid: int | None = absent()
    scopes: tuple[Scope, ...]
    purpose: str | None = absent()
    verification_code: str
    retention_hours: int
    expires_at: str


@attrs.frozen(kw_only=True)
class Settings:
    """What holds for everything that is drawn."""

    visible: bool
    paused: bool
    access_enabled: bool
    language: str
    reduced_motion: bool
    sound: bool


@attrs.frozen
class Ping:
    """Is the presenter alive?  Its answer arrives as `Pong`."""


@attrs.frozen
class Pong:
    """The answer to the last ping."""


# -- presenter -> broker -------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Ready:
    """The first message: what this presenter is and can draw; `person`: a human can answer here."""

    protocol_version: str = text(1, 32)
    name: str = text(1, 64)
    version: str = text(1, 64)
    person: bool
    kinds: tuple[Kind, ...] = array(0, 4)
    interactions: tuple[Interaction, ...] = array(0, 3)


@attrs.frozen(kw_only=True)
class Presented:
    """What is really on the screen now: a revision of a request, or a pairing."""

    request_id: str | None = text(1, 128, absent=True)
    revision: int | None = integer(1, _MAX_AGE_MS, absent=True)
    pairing_id: str | None = text(1, 128, absent=True)
    digest: str = text(64, 64)

    def __attrs_post_init__(self) -> None:
        if (self.request_id is None) == (self.pairing_id is None):
            raise InvalidValue("requestId", "one of requestId and pairingId")
        if (self.request_id is None) != (self.revision is None):
            raise InvalidValue("revision", "with requestId")

    @property
    def id(self) -> str:
        """What it is that is on the screen."""
        return self.request_id or self.pairing_id or ""


@attrs.frozen(kw_only=True)
class Deferred:
    """Not drawn for now, and why; the request stays running until presented, dismissed or its deadline."""

    request_id: str = text(1, 128)
    revision: int = integer(1, _MAX_AGE_MS)
    why: Literal["locked", "shared", "fullscreen", "quiet", "space"]


@attrs.frozen(kw_only=True)
class Finished:
    """The contract of an animation has ended."""

    request_id: str = text(1, 128)


@attrs.frozen(kw_only=True)
class Attention:
    """The person's pointer or focus is on the request (`held`), or has left it."""

    request_id: str = text(1, 128)
    held: bool


@attrs.frozen(kw_only=True, repr=False)
class Answer:
    """The person's answer to the picture of this revision and digest.

    `input_started_ms` is the age of the oldest input that led to it, in milliseconds.
    """

    request_id: str = text(1, 128)
    revision: int = integer(1, _MAX_AGE_MS)
    digest: str = text(64, 64)
    input_started_ms: int = integer(0, _MAX_AGE_MS)
    result: JSONObject


@attrs.frozen(kw_only=True)
class Dismissed:
    """The person closed the picture without an answer (CP-3.5)."""

    request_id: str = text(1, 128)
    revision: int = integer(1, _MAX_AGE_MS)
    digest: str = text(64, 64)
    input_started_ms: int = integer(0, _MAX_AGE_MS)


@attrs.frozen(kw_only=True)
class PairingDecision:
    """The person's decision on a pairing; `scopes` may be fewer than shown, never more."""

    pairing_id: str = text(1, 128)
    digest: str = text(64, 64)
    input_started_ms: int = integer(0, _MAX_AGE_MS)
    approved: bool
    scopes: tuple[Scope, ...] = array(0, 4, default=())


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of an answer, a dismissal or a decision.

    too_late carries the state and reason in which it found the request; rejected carries why the prompt
    stays: not_presented, stale, invalid, not_armed or not_saved.
    """

    outcome: Literal["committed", "too_late", "rejected"]
    state: str | None = absent()
    reason: str | None = absent()


COMMITTED = Outcome(outcome="committed")


def too_late(state: str, reason: str | None) -> Outcome:
    """The request or pairing had ended already."""
    return Outcome(outcome="too_late", state=state, reason=reason or state)


def rejected(reason: Literal["not_presented", "stale", "invalid", "not_armed", "not_saved"]) -> Outcome:
    """Nothing has changed, the prompt stays."""
    return Outcome(outcome="rejected", reason=reason)


Action: TypeAlias = Literal[
    "hide",
    "show",
    "pause",
    "resume",
    "enable_access",
    "disable_access",
    "revoke",
    "narrow",
    "mute",
    "clear_records",
    "set",
]


_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
"""The BCP 47 tags that people use: en, zh, zh-Hant, pt-BR."""


@attrs.frozen(kw_only=True)
class Setting:
    """What the person sets; what is absent stays as it is."""

    character: str | None = text(1, 128, absent=True)
    reduced_motion: bool | None = absent()
    sound: bool | None = absent()
    language: str | None = text(2, 35, absent=True)

    def __attrs_post_init__(self) -> None:
        if not any(value is not None for value in attrs.astuple(self)):
            raise InvalidValue("", "nothing is set")
        if self.language is not None and not _LANGUAGE.fullmatch(self.language):
            raise InvalidValue("language", "not a language tag")


@attrs.frozen(kw_only=True)
class User:
    """Something that the person does outside of any request; only here may anything be loosened."""

    action: Action
    client_id: str | None = text(1, 128, absent=True)
    scopes: tuple[Scope, ...] | None = array(0, 4, absent=True)
    seconds: int | None = integer(1, 31_536_000, absent=True)
    setting: Setting | None = absent()


@attrs.frozen
class Done:
    """The action is committed."""


@attrs.frozen(kw_only=True)
class List:
    """What the person wants to see."""

    what: Literal["pending", "inbox", "clients"]


@attrs.frozen(kw_only=True)
class PendingItem:
    """One request or pairing that has not ended: who asks and where it stands, not what it says."""

    request_id: str | None = absent()
    pairing_id: str | None = absent()
    state: str
    label: str
    capability: str | None = absent()
    remaining_ms: int


@attrs.frozen(kw_only=True)
class ClientItem:
    """One paired client; `muted_until`: the person does not want to hear of it until then."""

    client_id: str
    label: str
    scopes: tuple[str, ...]
    created_at: str
    connected: bool
    muted_until: str | None = absent()


@attrs.frozen(kw_only=True)
class Listing:
    """The answer to list: the member that was asked for."""

    pending: tuple[PendingItem, ...] | None = absent()
    clients: tuple[ClientItem, ...] | None = absent()
