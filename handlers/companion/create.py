"""requests.create: the checks, in the order of companion.md, and the new request (CP-3.1, CP-3.2, CP-7.2).

The shape was checked by the engine.  Then: own idempotency hit, scope, capability, params, character, style,
availability, capacity.  Only behind all of them is there a request id.
"""

from __future__ import annotations

from contextlib import suppress

from handlers.companion import capacity, lifecycle, retention, scheduler
from handlers.companion.availability import unavailable
from handlers.companion.calls import declined, for_client, require_scopes
from handlers.companion.resolve import resolve
from handlers.companion.rows import REQUESTS, Client, Request, idempotency_index
from handlers.companion.snapshots import snapshot
from handlers.connections import caller
from handlers.events import Call
from handlers.rule import Draft, Now, new_id
from protocols.canonical_json import canonical, digest
from protocols.companion.capabilities import Capability
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import State
from protocols.errors import InvalidValue
from protocols.json_values import JSONObject
from protocols.refusal import ErrorCode


def accept(draft: Draft, client: Client, call: Call[CreateRequest], now: Now) -> Snapshot:
    """Accept a request of this client, or find the one that this very call has made before.

    Raises Declined and InvalidValue; the request's program is that of the connection that the call came by.
    """
    asked = call.message
    capability = draft.environment.catalog.capabilities.get(asked.capability)
    fingerprint = _fingerprint(asked, capability)
    made_before = _made_before(draft, client, asked, fingerprint, now)
    if made_before is not None:
        return snapshot(made_before)
    if capability is None:
        raise declined(ErrorCode.UNSUPPORTED_CAPABILITY, "no such capability")
    require_scopes(client, *capability.required_scopes)
    resolved = resolve(draft, asked, capability, _checked_params(asked, capability))
    deed = resolved.deed
    _check_available(draft, client, deed.capability)
    order = capacity.place(draft, client, deed.capability, now)
    asker = caller(draft, call.ref)
    assert asker is not None  # the client was read from its row
    request = Request(
        id=new_id(call.seed, "request"),
        client_id=client.id,
        capability=capability.id,
        params=canonical(deed.params).decode(),
        fingerprint=fingerprint,
        timeout_ms=asked.timeout_ms,
        state=State.QUEUED,
        created_at=now.wall,
        deadline_at=now.wall + asked.timeout_ms,
        deadline=now.elapsed + asked.timeout_ms,
        resolved_capability=deed.capability.id,
        resolved_character=deed.character.id,
        resolved_style=resolved.style.id,
        substitution=resolved.substitution,
        runtime_instance_id=draft.environment.runtime_instance_id,
        idempotency_key=asked.idempotency_key,
        task_id=asked.task_id,
        program=asker.program,
        pid=asker.pid,
        order=order,
    )
    draft.put(REQUESTS, request)
    scheduler.fill(draft, now)  # before the reply: it tells of the request as this decision leaves it
    return snapshot(draft.get(REQUESTS, request.id) or request)


create = for_client(accept)
"""Answers requests.create."""


def _fingerprint(asked: CreateRequest, capability: Capability | None) -> str:
    """The digest of the normalized parameters (CP-4.1): what is left out equals its default inside params,
    while an omitted character or style stays omitted.  taskId is no part of it."""
    params: JSONObject = asked.params
    if capability is not None:
        with suppress(InvalidValue):  # such params made no request, so they can only be found to differ
            params = capability.normalize(asked.params)
    normal: JSONObject = {
        "capability": asked.capability,
        "params": params,
        "timeoutMs": asked.timeout_ms,
        "allowSubstitution": asked.allow_substitution,
    }
    named = {"character": asked.character, "style": asked.style}
    return digest(normal | {name: value for name, value in named.items() if value is not None})


def _made_before(
    draft: Draft, client: Client, asked: CreateRequest, fingerprint: str, now: Now
) -> Request | None:
    if asked.idempotency_key is None:
        return None
    found = draft.find(REQUESTS, "idempotency", idempotency_index(client.id, asked.idempotency_key))
    if not found:
        return None
    made = lifecycle.current(draft, found[0].id, now)
    if made is None:  # the key lives as long as the result
        retention.bury(draft, found[0])
    elif made.fingerprint != fingerprint:
        raise declined(ErrorCode.IDEMPOTENCY_CONFLICT, "this key was used with other parameters")
    return made


def _checked_params(asked: CreateRequest, capability: Capability) -> JSONObject:
    try:
        params = capability.normalize(asked.params)
    except InvalidValue as error:
        inner = error.under("params")
    else:
        capability.check_timeout(asked.timeout_ms)
        return params
    raise inner


def _check_available(draft: Draft, client: Client, capability: Capability) -> None:
    reason = unavailable(draft, capability, client.id)
    if reason is not None:
        raise declined(ErrorCode.RUNTIME_UNAVAILABLE, "the user cannot be reached now", reason=reason)
