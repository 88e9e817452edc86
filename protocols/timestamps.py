"""Times as they are written on the wire: RFC 3339, UTC, milliseconds, from wall milliseconds since the
epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(wall_ms: int) -> str:
    """`2026-11-12T08:30:00.000Z`; exact, since no float is involved."""
    moment = _EPOCH + timedelta(milliseconds=wall_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
