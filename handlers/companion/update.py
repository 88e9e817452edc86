"""requests.update (CP-3.11): new values for the fields that a capability declares, in a request that goes on.

What is named replaces what is stored, and the whole is checked by the capability's own params again.  One field is no
parameter: `finished` true completes a progress.  The deadline never moves (CP-3.8), and what is on the screen keeps
its bubble: the presenter is told of a new picture of the same request.
"""

from __future__ import annotations

import attrs

from handlers.companion import lifecycle
from handlers.companion.calls import Declined, declined, for_client
from handlers.companion.requests import own
from handlers.companion.rows import Client, Request, capability_of
from handlers.companion.snapshots import snapshot, stored_object
from handlers.events import Call
from handlers.rule import Draft, Now
from protocols.canonical_json import canonical
from protocols.companion.capabilities import Capability, Kind
from protocols.companion.messages import Snapshot, UpdateRequest
from protocols.errors import InvalidValue
from protocols.json_values import JSONObject
from protocols.refusal import ErrorCode
from protocols.structure import unstructure

FINISHED = "finished"
"""The field that ends a progress; create does not know it."""


@attrs.frozen
class _Asked:
    """What an update makes of a request: its params as canonical JSON, and whether that was all."""

    params: str
    finished: bool


@for_client
def update(draft: Draft, client: Client, call: Call[UpdateRequest], now: Now) -> Snapshot:
    """Change the request; an update that changes nothing is the request as it was, under the same revision.

    A request that has ended, or that has another revision than the client has seen, is REVISION_CONFLICT.
    """
    said = call.message
    request = own(draft, client, said.request_id, now)
    if request.ended:
        raise _conflict(request)
    asked = _checked(request, capability_of(draft, request), said.params)
    if said.expected_revision != request.revision:
        raise _conflict(request)
    if asked.finished:
        request = lifecycle.complete_progress(draft, request, asked.params, now)
    elif asked.params != request.params:
        request = lifecycle.change_params(draft, request, asked.params, now)
    return snapshot(request)


def _checked(request: Request, capability: Capability, changes: JSONObject) -> _Asked:
    """Raises InvalidValue, its field counted from the params of the call."""
    try:
        return _merged(request, capability, changes)
    except InvalidValue as error:
        inner = error.under("params")
    raise inner


def _merged(request: Request, capability: Capability, changes: JSONObject) -> _Asked:
    if not changes:
        raise InvalidValue("", "too few", 1)
    for name in changes:
        if name not in updatable(capability):
            raise InvalidValue("", "not updatable").under(name)
    finished = changes.get(FINISHED, False)
    if type(finished) is not bool:
        raise InvalidValue(FINISHED, "not true or false")
    params = {name: value for name, value in changes.items() if name != FINISHED}
    whole = capability.normalize(stored_object(request.params) | params)
    return _Asked(canonical(whole).decode(), finished)


def updatable(capability: Capability) -> tuple[str, ...]:
    """The fields that an update may name.  Of a question there are none: a person may be answering it (CP-3.11)."""
    return () if capability.kind is Kind.INTERACTION else capability.updatable_fields


def _conflict(request: Request) -> Declined:
    return declined(
        ErrorCode.REVISION_CONFLICT,
        "the request has changed, or has ended",
        request=unstructure(snapshot(request)),
    )
