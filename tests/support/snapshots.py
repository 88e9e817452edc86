"""A snapshot of a request for tests of what carries one."""

from __future__ import annotations

from protocols.companion.messages import Snapshot
from protocols.companion.states import State


def snapshot(request_id: str) -> Snapshot:
    """A notice that waits for its place."""
    return Snapshot(
        request_id=request_id,
        runtime_instance_id="r1",
        capability="notice.show",
        state=State.QUEUED,
        revision=1,
        created_at="2026-01-01T00:00:00.000Z",
        deadline_at="2026-01-01T00:01:00.000Z",
        displayed_at=None,
        ended_at=None,
        resolved_capability="notice.show",
        resolved_character="aion",
        resolved_style="default",
        substitution=None,
        reason=None,
        result=None,
        task_id=None,
    )
