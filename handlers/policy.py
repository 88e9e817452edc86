"""The part of the configuration that decisions depend on, as plain values with the documented defaults.

`broker/daemon/config.py` builds these from the configuration file; tests and embedding hosts build them
directly.  Durations are whole milliseconds here, whatever unit the file uses.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@attrs.frozen
class LeasePolicy:
    """The lease protocol's times and limits (LP-8, lease.md).

    The configuration's `[lease]` table scales the first group; the rest is fixed by lease.md and published in
    session.ready where it is a limit.
    """

    enabled: bool = True
    """False: AI protection is off, every begin is answered with not_entitled."""
    min_ms: int = 60 * SECOND
    max_ms: int = 1800 * SECOND
    grace_ms: int = 60 * SECOND
    close_check_timeout_ms: int = 3 * SECOND
    close_check_cooldown_ms: int = 15 * SECOND
    close_check_strikes: int = 3
    """How many silences in a row count as an allow."""
    startup_hold_ms: int = 75 * SECOND
    """No quit for this long after a start of the broker."""

    resume_hold_ms: int = 60 * SECOND
    """No quit for this long after the machine has slept."""
    quit_mark_ms: int = 60 * SECOND
    """How long a committed quit of the broker's own holds off new leases if the process does not go."""
    ticket_ms: int = 10 * SECOND
    """How long a reserved quit's ticket is good."""
    receipt_ms: int = HOUR
    """How long after the lease's end an accepted requestId still gets its old answer."""

    max_frame_bytes: int = 8192
    max_leases_per_holder: int = 64
    max_holders: int = 1024
    max_connections_per_holder: int = 8
    messages_per_second: int = 200


@attrs.frozen
class Limits:
    """The limits that runtime.describe publishes (wire.md quotas and size; companion.md)."""

    max_frame_bytes: int = 65_536
    """The longest frame after authentication, the line break not counted."""
    max_connections_total: int = 1024
    max_connections_per_client: int = 8
    max_calls_in_flight: int = 64
    """Per connection, waits not among them."""
    max_waits: int = 64
    """Per connection."""
    max_wait_ms: int = MINUTE
    calls_per_second: int = 200
    """Per connection, a token bucket that holds one second's worth."""
    max_batch: int = 16
    max_queued_per_client: int = 16
    """Requests of one client that have not ended."""
    max_queued_total: int = 64
    max_displayed: int = 3
    """Requests shown at once."""
    max_records_per_client: int = 10_000
    max_pending_pairings: int = 8

    def published(self) -> dict[str, int]:
        """The limits by the names that runtime.describe and the `[limits]` table use."""
        return {wire_name(name): value for name, value in attrs.asdict(self).items()}


def wire_name(name: str) -> str:
    """`max_frame_bytes` as it is written on the wire: `maxFrameBytes`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@attrs.frozen
class Retention:
    """How long ended requests can be read (CP-4.10), and how long their id is still known after that."""

    hours: int = 24
    tombstone_days: int = 7

    @property
    def records_ms(self) -> int:
        """The time from a request's end to the deletion of its body and result."""
        return self.hours * HOUR

    @property
    def tombstone_ms(self) -> int:
        """The time after that in which its owner reads RESULT_EXPIRED rather than NOT_FOUND."""
        return self.tombstone_days * DAY


@attrs.frozen
class App:
    """An app of the `[apps]` table: adds to what the app catalog finds (lease.md, unknown_app)."""

    name: str
    executable: str
    """The absolute path of its program."""


@attrs.frozen
class AutoQuitApp:
    """When one app counts as idle, and whether a refused polite quit may be followed by SIGTERM."""

    idle_ms: int = 30 * MINUTE
    allow_sigterm: bool = False


@attrs.frozen
class AutoQuitPolicy:
    """The `[autoquit]` table: off by default, only rehearsed (`dry_run`) until the owner says otherwise."""

    enabled: bool = False
    dry_run: bool = True
    period_ms: int = 15 * SECOND
    apps: Mapping[str, AutoQuitApp] = attrs.field(factory=dict)
    """By app key; apps that are not named here are never quit."""


@attrs.frozen
class Policy:
    """All that a handler may know of the configuration."""

    access_enabled: bool = False
    """Whether external clients may pair and connect, until the user says otherwise (CP-5.1)."""
    lease: LeasePolicy = LeasePolicy()
    limits: Limits = Limits()
    retention: Retention = Retention()
    apps: Mapping[str, App] = attrs.field(factory=dict)
    """By app key, without a variant's suffix."""
    autoquit: AutoQuitPolicy = attrs.field(factory=AutoQuitPolicy)
    display_turn_ms: int = MINUTE
    """How long a progress or a question has its display place before it gives way to somebody who waits."""
    arming_ms: int = 500
    """How long a prompt must have been on the screen before an input counts as an answer (presenter.md)."""
