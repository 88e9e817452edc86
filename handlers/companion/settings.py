"""What the user has said about the companion as a whole, and what follows from it at once.

Hiding, pausing and turning access off end what is open by each capability's declared policy (CP-4.9);
showing, resuming and turning access on bring nothing back.  Who may ask for which is decided by the callers:
anybody who reaches the control socket may tighten, only the person in the presenter may loosen (wire.md,
Control protocol).
"""

from __future__ import annotations

import attrs

from handlers.companion.host import is_host
from handlers.companion.lifecycle import draw_still, finish
from handlers.companion.rows import REQUESTS, SETTINGS, SETTINGS_KEY, Settings, capability_of
from handlers.connections import CONNECTIONS
from handlers.events import Hangup
from handlers.rule import Draft, Now
from protocols.companion.capabilities import Capability
from protocols.companion.characters import Character
from protocols.companion.states import Step
from protocols.errors import InvalidValue
from protocols.presenter.messages import Setting


def settings(draft: Draft) -> Settings:
    """What the user has said so far."""
    return draft.get(SETTINGS, SETTINGS_KEY) or Settings()


def access_enabled(draft: Draft) -> bool:
    """The last explicit act of the user, else what the configuration says (CP-5.1)."""
    access = settings(draft).access
    return draft.environment.policy.access_enabled if access is None else access


def current_character(draft: Draft) -> Character:
    """The one that the user has chosen, else the first; one whose pack has gone meanwhile counts as not chosen."""
    catalog = draft.environment.catalog
    return catalog.characters.get(settings(draft).character or "") or catalog.default_character


def wants_stillness(draft: Draft, capability: Capability) -> bool:
    """Whether the person's wish for less motion changes how the capability is drawn."""
    return settings(draft).reduced_motion and capability.reduced_motion == "still"


def change(draft: Draft, setting: Setting, now: Now) -> None:
    """The person's choices, as far as they are named.  Raises InvalidValue for a character that there is not.

    Who wants less motion wants it at once: what is open is drawn still from here on, and its record says so.
    """
    if setting.character is not None and setting.character not in draft.environment.catalog.characters:
        raise InvalidValue("setting.character", "unknown character")
    named = {name: value for name, value in attrs.asdict(setting).items() if value is not None}
    _set(draft, attrs.evolve(settings(draft), **named))
    for request in draft.all(REQUESTS):
        moves = not request.ended and not request.still
        if moves and wants_stillness(draft, capability_of(draft, request)):
            draw_still(draft, request, now)


def hide(draft: Draft, now: Now) -> None:
    """The companion leaves the screen and is not summoned until `show`."""
    _set(draft, attrs.evolve(settings(draft), hidden=True))
    _cancel_open(draft, now, "hidden_by_user")


def show(draft: Draft, now: Now) -> None:
    """The companion may be seen again."""
    _set(draft, attrs.evolve(settings(draft), hidden=False))


def pause(draft: Draft, now: Now) -> None:
    """The companion stays, and no external program reaches the user until `resume`."""
    _set(draft, attrs.evolve(settings(draft), paused=True))
    _cancel_open(draft, now, "paused_by_user")


def resume(draft: Draft, now: Now) -> None:
    """External programs may reach the user again."""
    _set(draft, attrs.evolve(settings(draft), paused=False))


def enable_access(draft: Draft, now: Now) -> None:
    """Paired clients may connect again."""
    _set(draft, attrs.evolve(settings(draft), access=True))


def disable_access(draft: Draft, now: Now) -> None:
    """No client may connect; those that are here lose their requests and their sessions.

    Pending pairings are denied by the pairing handlers' own step.
    """
    _set(draft, attrs.evolve(settings(draft), access=False))
    _cancel_open(draft, now, "access_disabled")
    for connection in draft.all(CONNECTIONS):
        if connection.client_id is not None:
            draft.effect(Hangup(connection.number))


def _set(draft: Draft, wanted: Settings) -> None:
    if wanted != settings(draft):
        draft.put(SETTINGS, wanted)


def _cancel_open(draft: Draft, now: Now, reason: str) -> None:
    """End what is open for this reason; the host's own requests only where the companion itself is hidden."""
    for request in draft.all(REQUESTS):
        spared = is_host(request.client_id) and reason != "hidden_by_user"
        by_policy = reason == "access_disabled" or capability_of(draft, request).on_hidden == "cancel"
        if not request.ended and not spared and by_policy:
            finish(draft, request, now, Step.CANCEL, reason)
