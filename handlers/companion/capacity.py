"""Room for one more request: the published capacities, per client and in total (CP-4.5)."""

from __future__ import annotations

from handlers.companion.calls import declined
from handlers.companion.records import records_of
from handlers.companion.rows import REQUESTS, Client
from handlers.rule import Draft
from protocols.refusal import ErrorCode


def place(draft: Draft, client: Client) -> int:
    """The new request's place in the queue; raises Declined when a published limit is reached (CP-4.5, CP-4.11)."""
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
        raise _queue_full("maxQueuedTotal", limits.max_queued_total)
    return 1 + max((request.order for request in unfinished), default=0)


def _queue_full(name: str, limit: int) -> Exception:
    return declined(
        ErrorCode.QUEUE_FULL, "too many open requests", reason="queue", limit=limit, limitName=name
    )
