"""How many requests of a client are kept (CP-4.11): at the published limit new ones are refused, and no result is
evicted for them.

The count is read from the disk once a client and run, and then kept in step with every decision.
"""

from __future__ import annotations

from collections import Counter

import attrs

from handlers.companion.retention_rows import RECORD_COUNTS, RecordCount
from handlers.companion.rows import REQUESTS
from handlers.rule import Draft, Now


def records_of(draft: Draft, client_id: str) -> int:
    """How many requests of a client are kept, open ones among them."""
    counted = draft.get(RECORD_COUNTS, client_id)
    if counted is None:
        counted = draft.put(RECORD_COUNTS, _counted(draft, client_id))
    return counted.count


def settle(draft: Draft, now: Now) -> None:
    """Whatever came or went changes the counts that somebody has asked for."""
    changes: Counter[str] = Counter()
    for before, after in draft.changes(REQUESTS):
        row = after or before
        assert row is not None
        changes[row.client_id] += (before is None) - (after is None)
    counted_now = {row.client_id for before, row in draft.changes(RECORD_COUNTS) if before is None and row}
    for client_id, change in changes.items():
        count = draft.get(RECORD_COUNTS, client_id)
        if client_id in counted_now:
            draft.put(RECORD_COUNTS, _counted(draft, client_id))
        elif count is not None and change:
            draft.put(RECORD_COUNTS, attrs.evolve(count, count=count.count + change))


def _counted(draft: Draft, client_id: str) -> RecordCount:
    return RecordCount(client_id, draft.count(REQUESTS, "client", client_id))
