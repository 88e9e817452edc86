"""Messages of the control protocol that concern the broker as a whole; leases have their own module."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Status:
    """`status`: how the broker is."""


@attrs.frozen(kw_only=True)
class AccessStatus:
    """Whether external clients may pair and connect."""

    enabled: bool


@attrs.frozen(kw_only=True)
class PresenterStatus:
    """Which presenter is there, and whether a person can answer at it."""

    name: str | None
    person: bool


@attrs.frozen(kw_only=True)
class SkippedPack:
    """A character pack that could not be taken in: the name of its folder, and why."""

    name: str
    reason: str


@attrs.frozen(kw_only=True)
class CharacterPacks:
    """The user's character packs as the start of this run found them, by the names of their folders."""

    loaded: tuple[str, ...]
    skipped: tuple[SkippedPack, ...]


@attrs.frozen(kw_only=True)
class StatusResult:
    """What `companion status` prints; the counts are of this instant."""

    implementation_version: str
    runtime_instance_id: str
    access: AccessStatus
    presenter: PresenterStatus
    hidden: bool
    paused: bool
    connections: dict[str, int]
    clients: int
    open_requests: int
    leases: int
    character_packs: CharacterPacks
    records_lost_at: str | None
    """When requests were last lost to damage or clearing, so that a NOT_FOUND of one from before means nothing."""


@attrs.frozen(kw_only=True)
class Stop:
    """`stop`: end the broker in good order."""


@attrs.frozen(kw_only=True)
class Hide:
    """`hide`: take everything off the screen and show nothing more until the person says so (CP-4.9)."""


@attrs.frozen(kw_only=True)
class Pause:
    """`pause`: take no external interaction until the person says so (CP-4.9)."""


@attrs.frozen(kw_only=True)
class Done:
    """An act's result: it has been stored."""
