"""Room for one more request: the published capacities, per client and in total (CP-4.5).

What cannot wait takes the room of what can: where the total is full, a request that is not evictable itself evicts
the oldest evictable one that nobody has seen yet, which ends and says so (CP-4.6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from handlers.companion.calls import declined
from handlers.companion.lifecycle import finish
from handlers.companion.places import end_of_line
from handlers.companion.records import records_of
from handlers.companion.rows import REQUESTS, Client, Request, capability_of
from handlers.rule import Draft, Now
from protocols.companion.capabilities import Capability
from protocols.companion.states import State, Step
from protocols.refusal import ErrorCode


def place(draft: Draft, client: Client, capability: Capability, now: Now) -> int:
    """The new request's number in the line; raises Declined when a published limit is reached (CP-4.5, CP-4.11)."""
    limits = draft.environment.policy.limits
    if records_of(draft, client.id) >= limits.max_records_per_client:
        raise declined(
            ErrorCode.QUEUE_FULL,
            "too many kept requests",
            reason="records",
            limit=limits.max_records_per_client,
            limitName="maxRecordsPerClient",
        )
    unfinished = [request for request in draft.all(REQUESTS) if not request.ended]
    of_client = sum(request.client_id == client.id for request in unfinished)
    if of_client >= limits.max_queued_per_client:
        raise _queue_full("maxQueuedPerClient", limits.max_queued_per_client)
    if len(unfinished) >= limits.max_queued_total:
        evicted = None if capability.evictable else _evictable(draft, unfinished)
        if evicted is None:
            raise _queue_full("maxQueuedTotal", limits.max_queued_total)
        finish(draft, evicted, now, Step.CANCEL, "queue_evicted")
    return end_of_line(draft)


def _evictable(draft: Draft, unfinished: Sequence[Request]) -> Request | None:
    """The oldest of the client that has most open requests, among those of which something may be evicted."""
    open_of = Counter(request.client_id for request in unfinished)
    queued = [
        request
        for request in unfinished
        if request.state is State.QUEUED and capability_of(draft, request).evictable
    ]
    return min(queued, key=lambda request: (-open_of[request.client_id], request.order), default=None)


def _queue_full(name: str, limit: int) -> Exception:
    return declined(
        ErrorCode.QUEUE_FULL, "too many open requests", reason="queue", limit=limit, limitName=name
    )
