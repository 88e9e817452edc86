"""requests.get, wait and cancel: bound to ownership alone (CP-4.3, CP-5.3)."""

from __future__ import annotations

from handlers.companion import lifecycle, losses, retention, waits
from handlers.companion.calls import for_client
from handlers.companion.rows import REQUESTS, Client, Request
from handlers.companion.snapshots import snapshot
from handlers.events import Call
from handlers.rule import Draft, Now
from protocols.companion.messages import CancelRequest, GetRequest, Snapshot, WaitRequest, WaitResult
from protocols.companion.states import Step
from protocols.errors import InvalidValue


@for_client
def get(draft: Draft, client: Client, call: Call[GetRequest], now: Now) -> Snapshot:
    """The request as it is now."""
    return snapshot(own(draft, client, call.message.request_id, now))


@for_client
def wait(draft: Draft, client: Client, call: Call[WaitRequest], now: Now) -> WaitResult | None:
    """News since afterRevision at once, or the call is parked until there are some (CP-3.9)."""
    asked = call.message
    limit = draft.environment.policy.limits.max_wait_ms
    if asked.wait_ms > limit:
        raise InvalidValue("waitMs", "too large", limit)
    request = own(draft, client, asked.request_id, now)
    if asked.after_revision > request.revision:
        raise InvalidValue("afterRevision", "too large", request.revision)
    if request.ended or request.revision > asked.after_revision or asked.wait_ms == 0:
        return waits.news(request, asked.after_revision)
    waits.park(draft, call, now)
    return None


@for_client
def cancel(draft: Draft, client: Client, call: Call[CancelRequest], now: Now) -> Snapshot:
    """Withdraw the request; one that has ended stays as it is (CP-3.10)."""
    request = own(draft, client, call.message.request_id, now)
    if not request.ended:
        request = lifecycle.finish(draft, request, now, Step.CANCEL, "cancelled_by_client")
    return snapshot(request)


def own(draft: Draft, client: Client, request_id: str, now: Now) -> Request:
    """The client's own request as it is now; somebody else's is as unknown as none (CP-6.8): Declined, as for an own
    one that is no longer kept.

    So whose it is comes before anything that the request's own time or commit could show by: a foreign one
    is not ended here, and both answers wait for the same commit.
    """
    found = draft.get(REQUESTS, request_id)
    if found is not None and found.client_id == client.id:
        request = lifecycle.current(draft, request_id, now)
        if request is not None:
            return request
    retention.check_not_expired(draft, client.id, request_id, now)
    draft.all(REQUESTS)
    raise losses.not_found(draft)
