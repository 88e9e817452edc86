"""From rows to the messages that put them on the screen: the door at which client text is neutralized."""

from __future__ import annotations

from typing import TypeVar

from handlers.companion import places
from handlers.companion.host import host_client, is_host
from handlers.companion.names import is_reserved
from handlers.companion.pairing_rows import Pairing
from handlers.companion.rows import CLIENTS, Request, capability_of
from handlers.companion.snapshots import stored_object
from handlers.presenter.rows import Showing
from handlers.rule import Draft, Now
from protocols.companion.declared import DeclaredParams
from protocols.json_values import JSONObject
from protocols.presenter import picture
from protocols.presenter.messages import ConfirmPairing, Present, Source
from protocols.timestamps import rfc3339

P = TypeVar("P", bound=Present)


def label_of(draft: Draft, request: Request) -> str:
    """The source label: the host's own, or from the pairing record (CP-4.4).

    A client that was paired before the host was called what it is called is told apart by what stands behind.
    """
    if is_host(request.client_id):
        return host_client(draft).label
    client = draft.get(CLIENTS, request.client_id)
    label = "" if client is None else client.label
    return f"{label} (external)" if is_reserved(draft, label) else label


def picture_of(draft: Draft, request: Request) -> picture.Picture:
    """What must be on the screen for the request."""
    capability = capability_of(draft, request)
    label = label_of(draft, request)
    params, _ = _params(draft, request)
    return picture.of_request(capability.kind, capability.interaction, label, request.program, params)


def present(draft: Draft, request: Request, showing: Showing, now: Now, message: type[P]) -> P:
    """The request as a message to draw."""
    shown = picture_of(draft, request)
    params, of_pack = _params(draft, request)
    return message(
        request_id=request.id,
        revision=showing.picture,
        digest=showing.digest,
        kind=shown.kind,
        interaction=shown.interaction,
        source=Source(label=shown.source_label, program=shown.program, pid=request.pid),
        capability=request.resolved_capability,
        character=request.resolved_character,
        style=request.resolved_style,
        tone=shown.tone,
        expression=_text(params, "expression") or _worn(draft, request),
        motion="still" if request.still else None,
        parameters=of_pack,
        title=shown.title,
        text=shown.text,
        detail=shown.detail,
        options=shown.options,
        input=shown.input,
        fraction=shown.fraction,
        display_ms=_integer(params, "displayMs"),
        deadline_at=rfc3339(request.deadline_at),
        remaining_ms=max(0, request.deadline - now.elapsed),
        queued=len(places.waiting(draft)),
    )


def pairing_picture(draft: Draft, pairing: Pairing) -> picture.PairingPicture:
    """What must be on the screen for the pairing."""
    return picture.of_pairing(
        name=pairing.client_name,
        name_in_use=pairing.name_in_use,
        program=pairing.program,
        scopes=pairing.scopes,
        purpose=pairing.purpose,
        verification_code=pairing.code,
        retention_hours=draft.environment.policy.retention.hours,
    )


def confirmation(draft: Draft, pairing: Pairing) -> ConfirmPairing:
    """The pairing as a message to draw."""
    shown = pairing_picture(draft, pairing)
    return ConfirmPairing(
        pairing_id=pairing.id,
        digest=picture.digest(shown),
        client_name=shown.client_name,
        name_in_use=shown.name_in_use,
        program=shown.program,
        pid=pairing.pid,
        scopes=shown.scopes,
        purpose=shown.purpose,
        verification_code=shown.verification_code,
        retention_hours=shown.retention_hours,
        expires_at=rfc3339(pairing.expires_at),
    )


def _params(draft: Draft, request: Request) -> tuple[JSONObject, JSONObject | None]:
    """The params that the core gives a meaning, and those of a pack's own capability, whatever their names are."""
    params = stored_object(request.params)
    declared = isinstance(capability_of(draft, request).params, DeclaredParams)
    return ({}, params) if declared else (params, None)


def _worn(draft: Draft, request: Request) -> str | None:
    """The character's own expression for this capability (CP-2.15)."""
    character = draft.environment.catalog.characters[request.resolved_character]
    return character.wears.get(request.resolved_capability)


def _text(params: JSONObject, name: str) -> str | None:
    value = params.get(name)
    return value if isinstance(value, str) else None


def _integer(params: JSONObject, name: str) -> int | None:
    value = params.get(name)
    return value if type(value) is int else None
