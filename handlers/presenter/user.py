"""What the person does outside of any request: the one place where anything may be loosened (wire.md).

A presenter before which nobody sits may tighten all the same; nothing else is done for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from handlers.companion import clients, mutes, settings, wiping
from handlers.events import Call, Reply
from handlers.presenter.rows import LINK, LINK_KEY
from handlers.rule import Draft, Now
from protocols.errors import InvalidValue
from protocols.jsonrpc_session import invalid_params
from protocols.presenter.messages import Action, Done, Setting, User
from protocols.refusal import ErrorCode, Refused

_TIGHTENING: Final = {"hide", "pause", "disable_access", "revoke", "narrow"}
"""What needs no person.  Muting is not among it: a shorter mute, or none, takes the person's word back."""

_SETTINGS: Mapping[Action, Callable[[Draft, Now], None]] = {
    "hide": settings.hide,
    "show": settings.show,
    "pause": settings.pause,
    "resume": settings.resume,
    "enable_access": settings.enable_access,
    "disable_access": settings.disable_access,
    "clear_records": wiping.clear_records,
}


def user(draft: Draft, call: Call[User], now: Now) -> None:
    """Do what the person asks for; the answer comes after the commit."""
    said = call.message
    change = _SETTINGS.get(said.action)
    body: Done | Refused = Done()
    if said.action not in _TIGHTENING and not _is_person(draft, call):
        body = Refused(ErrorCode.FORBIDDEN, "only a person can do that", {"reason": "no_person"})
    elif change is not None:
        change(draft, now)
    elif said.action == "set" and said.setting is not None:
        body = _set(draft, said.setting, now)
    elif said.action == "revoke" and said.client_id is not None:
        if not clients.revoke(draft, said.client_id, now):
            body = Refused(ErrorCode.NOT_FOUND, "no such client")
    elif said.action == "mute" and said.client_id is not None:
        if not mutes.mute(draft, said.client_id, said.seconds, now):
            body = Refused(ErrorCode.NOT_FOUND, "no such client")
    elif said.action == "narrow" and said.client_id is not None and said.scopes is not None:
        if not clients.narrow(draft, said.client_id, said.scopes, now):
            body = Refused(ErrorCode.NOT_FOUND, "no such client")
    else:
        body = _cannot(said)
    draft.effect(Reply(call.ref, body))


def _is_person(draft: Draft, call: Call[User]) -> bool:
    presenter = draft.get(LINK, LINK_KEY)
    return presenter is not None and presenter.person and presenter.connection == call.ref.connection


def _set(draft: Draft, setting: Setting, now: Now) -> Done | Refused:
    try:
        settings.change(draft, setting, now)
    except InvalidValue as error:
        return invalid_params(error)
    return Done()


def _cannot(said: User) -> Refused:
    if said.action in ("revoke", "narrow", "mute"):
        missing = "clientId" if said.client_id is None else "scopes"
        return invalid_params(InvalidValue(missing, "missing"))
    if said.action == "set":
        return invalid_params(InvalidValue("setting", "missing"))
    return invalid_params(InvalidValue("action", "not available"))
