"""Who gets the display (CP-4.7): a free place goes to the next client in turn, and there to its oldest
request.

This is what follows from any decision in which a request was created or ended, or a presenter came.  It runs
within that decision, so a place is never free and wanted at once.  (What the user hides or pauses ends at once,
so nothing is queued then.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from handlers.companion.availability import unavailable
from handlers.companion.lifecycle import hand_over
from handlers.companion.rows import REQUESTS, TURN, TURN_KEY, Request, Turn, capability_of
from handlers.presenter import showing
from handlers.presenter.rows import LINK
from handlers.rule import Draft, Now
from protocols.companion.states import State


def settle(draft: Draft, now: Now) -> None:
    """Give free places anew where the decision can have changed who gets one."""
    if draft.has_changed(REQUESTS) or draft.has_changed(LINK):
        fill(draft, now)


def fill(draft: Draft, now: Now) -> None:
    """Hand queued requests over until every place is taken or nothing more can be shown."""
    requests = draft.all(REQUESTS)
    shown = sum(request.state in (State.RUNNING, State.AWAITING_USER) for request in requests)
    queues = _queues(draft, requests)
    for _ in range(draft.environment.policy.limits.max_displayed - shown):
        if not queues:
            return
        client_id = _next_in_turn(draft, queues)
        request = queues[client_id].pop(0)
        if not queues[client_id]:
            del queues[client_id]
        draft.put(TURN, Turn(client_id))
        showing.show(draft, hand_over(draft, request), now)


def _queues(draft: Draft, requests: Iterable[Request]) -> dict[str, list[Request]]:
    """The queued requests that can be shown now, by client, oldest first."""
    queues: dict[str, list[Request]] = defaultdict(list)
    queued = (request for request in requests if request.state is State.QUEUED)
    for request in sorted(queued, key=lambda request: request.order):
        if unavailable(draft, capability_of(draft, request), request.client_id) is None:
            queues[request.client_id].append(request)
    return queues


def _next_in_turn(draft: Draft, clients: Iterable[str]) -> str:
    """The client after the one that was served last, in a fixed circle."""
    last = draft.get(TURN, TURN_KEY)
    circle = sorted(clients)
    later = [client_id for client_id in circle if last is not None and client_id > last.client_id]
    return later[0] if later else circle[0]
