"""The person does not want to hear of one client for a while: it is muted (CP-4.9, presenter.md, user).

What it has open ends at once and new requests find nobody, until the time is over or the person takes it back.  A
mute runs in real elapsed time, whatever is done to the wall clock, and outlives a restart.  Elapsed time begins anew
when the machine does: then what is left is told by the wall clock, and is never more than was meant.
"""

from __future__ import annotations

import attrs

from handlers.companion.lifecycle import finish
from handlers.companion.rows import CLIENTS, REQUESTS, Client, Mute
from handlers.events import Started
from handlers.policy import SECOND
from handlers.rule import Draft, Due, Now
from protocols.companion.states import Step
from protocols.timestamps import rfc3339


def mute(draft: Draft, client_id: str, seconds: int | None, now: Now) -> bool:
    """Mute the client for so long from now on, None: not any more; False when there is no such client."""
    client = draft.get(CLIENTS, client_id)
    if client is None or client.revoked:
        return False
    if seconds is None:
        _set(draft, client, None)
        return True
    _set(draft, client, _for(draft, seconds * SECOND, seconds * SECOND, now))
    for request in draft.all(REQUESTS):
        if request.client_id == client_id and not request.ended:
            finish(draft, request, now, Step.CANCEL, "muted_by_user")
    return True


def muted_until(client: Client) -> str | None:
    """When the client will be heard of again, as people read it; None: it is not muted."""
    return None if client.mute is None else rfc3339(client.mute.until_at)


def over(draft: Draft, event: Due, now: Now) -> None:
    """Its time is over: the client is heard of again."""
    client = draft.get(CLIENTS, event.key)
    if client is not None:
        _set(draft, client, None)


def started(draft: Draft, event: Started, now: Now) -> None:
    """Mutes that were said before the machine started go on for what is left of them."""
    for client in draft.all(CLIENTS):
        said = client.mute
        if said is not None and said.boot_id != draft.environment.boot_id:
            left = min(said.ms, said.until_at - now.wall)
            _set(draft, client, _for(draft, left, said.ms, now) if left > 0 else None)


def _for(draft: Draft, left: int, ms: int, now: Now) -> Mute:
    return Mute(now.elapsed + left, now.wall + left, ms, draft.environment.boot_id)


def _set(draft: Draft, client: Client, said: Mute | None) -> None:
    if said != client.mute:
        draft.put(CLIENTS, attrs.evolve(client, mute=said))
