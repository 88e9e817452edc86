"""After a restart nothing is replayed (CP-4.13): what was open is failed/runtime_restarted, once."""

from __future__ import annotations

from handlers.companion.lifecycle import finish
from handlers.companion.rows import REQUESTS
from handlers.events import Started
from handlers.rule import Draft, Now
from protocols.companion.states import Step


def started(draft: Draft, event: Started, now: Now) -> None:
    """End every request that the broker's last run left open."""
    for request in draft.all(REQUESTS):
        if not request.ended:
            finish(draft, request, now, Step.FAIL, "runtime_restarted")
