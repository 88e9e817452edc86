"""A request's row as its owner sees it on the wire (companion.md, Requests)."""

from __future__ import annotations

from handlers.companion.rows import Request
from protocols.companion.messages import Snapshot, Substitution
from protocols.json_values import JSONObject
from protocols.strict_json import decode
from protocols.timestamps import rfc3339


def snapshot(request: Request) -> Snapshot:
    """The same model from every method (CP-3.3)."""
    return Snapshot(
        request_id=request.id,
        runtime_instance_id=request.runtime_instance_id,
        capability=request.capability,
        state=request.state,
        revision=request.revision,
        created_at=rfc3339(request.created_at),
        deadline_at=rfc3339(request.deadline_at),
        displayed_at=_time(request.displayed_at),
        ended_at=_time(request.ended_at),
        resolved_capability=request.resolved_capability,
        resolved_character=request.resolved_character,
        resolved_style=request.resolved_style,
        substitution=None if request.substitution is None else Substitution(reason=request.substitution),
        reason=request.reason,
        result=None if request.result is None else stored_object(request.result),
        task_id=request.task_id,
    )


def stored_object(text: str) -> JSONObject:
    """A JSON object that a row keeps as canonical text."""
    value = decode(text.encode()).value
    assert isinstance(value, dict)
    return value


def _time(wall_ms: int | None) -> str | None:
    return None if wall_ms is None else rfc3339(wall_ms)
