"""Whether a capability can reach the user now (CP-4.9): the one answer that create and the scheduler
share."""

from __future__ import annotations

from handlers.companion.host import is_host
from handlers.companion.rows import CLIENTS
from handlers.companion.settings import access_enabled, settings
from handlers.presenter.rows import LINK, LINK_KEY, Link
from handlers.rule import Draft
from protocols.companion.capabilities import Capability, Interaction


def unavailable(draft: Draft, capability: Capability, client_id: str) -> str | None:
    """Why not, as RUNTIME_UNAVAILABLE's reason: what the user said comes before what is missing.

    What is said of external programs does not concern the host; that the companion is hidden does (CP-7.5).
    """
    said, external = settings(draft), not is_host(client_id)
    if external and not access_enabled(draft):
        return "access_off"
    if said.hidden:
        return "hidden"
    if external and said.paused:
        return "paused"
    client = draft.get(CLIENTS, client_id) if external else None
    if client is not None and client.mute is not None:
        return "muted"
    link = draft.get(LINK, LINK_KEY)
    return None if link is not None and can_draw(link, capability) else "no_presenter"


def can_draw(link: Link, capability: Capability) -> bool:
    """Whether the presenter has said that it can draw this kind and, for a question, ask a person in this way."""
    asks = capability.interaction is not Interaction.NONE
    can_ask = link.person and capability.interaction in link.interactions
    return capability.kind in link.kinds and (can_ask or not asks)
