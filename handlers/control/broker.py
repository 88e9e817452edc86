"""The broker as a whole, for the owner's tools: how it is, and the acts that tighten or end it."""

from __future__ import annotations

from collections import Counter

from handlers.companion import losses, settings
from handlers.companion.host import speaks_for_host
from handlers.companion.rows import CLIENTS, REQUESTS
from handlers.connections import CONNECTIONS
from handlers.environment import Environment
from handlers.events import Call, Reply, Stop
from handlers.lease.rows import LEASES
from handlers.presenter.rows import LINK, LINK_KEY
from handlers.rule import Draft, Now
from protocols.control import messages
from protocols.control.pages import MAX_PAGE, fitting

_LIST_BYTES = 24 * 1024
"""What each list of packs may take of a frame's 64 KiB."""


def status(draft: Draft, call: Call[messages.Status], now: Now) -> None:
    """How the broker is, in this instant."""
    environment, said = draft.environment, settings.settings(draft)
    link = draft.get(LINK, LINK_KEY)
    result = messages.StatusResult(
        implementation_version=environment.implementation_version,
        runtime_instance_id=environment.runtime_instance_id,
        access=messages.AccessStatus(enabled=settings.access_enabled(draft)),
        presenter=messages.PresenterStatus(
            name=None if link is None else link.name, person=link is not None and link.person
        ),
        hidden=said.hidden,
        paused=said.paused,
        connections=dict(Counter(row.protocol for row in draft.all(CONNECTIONS) if not speaks_for_host(row))),
        clients=sum(not client.revoked for client in draft.all(CLIENTS)),
        open_requests=sum(not request.ended for request in draft.all(REQUESTS)),
        leases=sum(lease.lives for lease in draft.all(LEASES)),
        character_packs=_packs(environment),
        records_lost_at=losses.records_lost_at(draft),
    )
    draft.effect(Reply(call.ref, result))


def _packs(environment: Environment) -> messages.CharacterPacks:
    skipped = (messages.SkippedPack(name=pack.name, reason=pack.reason) for pack in environment.skipped_packs)
    return messages.CharacterPacks(
        loaded=fitting(environment.loaded_packs, MAX_PAGE, _LIST_BYTES),
        skipped=fitting(skipped, MAX_PAGE, _LIST_BYTES),
    )


def hide(draft: Draft, call: Call[messages.Hide], now: Now) -> None:
    """Take everything off the screen (CP-4.9)."""
    settings.hide(draft, now)
    draft.effect(Reply(call.ref, messages.Done()))


def pause(draft: Draft, call: Call[messages.Pause], now: Now) -> None:
    """Take no external interaction (CP-4.9)."""
    settings.pause(draft, now)
    draft.effect(Reply(call.ref, messages.Done()))


def stop(draft: Draft, call: Call[messages.Stop], now: Now) -> None:
    """End the broker in good order."""
    draft.effect(Reply(call.ref, messages.Done()), Stop())
