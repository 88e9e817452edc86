"""From rows to the messages that put them on the screen: the door at which client text is neutralized."""

from __future__ import annotations

from typing import TypeVar

import attrs

from handlers.companion.pairing_rows import Pairing
from handlers.companion.rows import CLIENTS, REQUESTS, Request
from handlers.companion.snapshots import stored_object
from handlers.connections import CONNECTIONS
from handlers.presenter.rows import Showing
from handlers.rule import Draft, Now
from protocols.companion.capabilities import Capability
from protocols.companion.catalog import CATALOG
from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.presenter import picture
from protocols.presenter.messages import ConfirmPairing, Present, Source
from protocols.timestamps import rfc3339

P = TypeVar("P", bound=Present)


@attrs.frozen
class Origin:
    """The program behind a request, by the kernel's word; None where it cannot be told."""

    program: str | None
    pid: int | None


def origin(draft: Draft, request: Request) -> Origin:
    """Which program of the client is connected now; of several the first that came."""
    connections = draft.find(CONNECTIONS, "client", request.client_id)
    first = min(connections, key=lambda row: row.number, default=None)
    if first is None:
        return Origin(None, None)
    return Origin(first.program, None if first.process is None else first.process.pid)


def capability_of(request: Request) -> Capability:
    """What is really drawn for the request (CP-2.16)."""
    return CATALOG.capabilities[request.resolved_capability]


def label_of(draft: Draft, request: Request) -> str:
    """The source label: always from the pairing record (CP-4.4)."""
    client = draft.get(CLIENTS, request.client_id)
    return "" if client is None else client.label


def picture_of(draft: Draft, request: Request, program: str | None) -> picture.Picture:
    """What must be on the screen for the request."""
    capability = capability_of(request)
    label = label_of(draft, request)
    return picture.of_request(
        capability.kind, capability.interaction, label, program, stored_object(request.params)
    )


def present(draft: Draft, request: Request, showing: Showing, now: Now, message: type[P]) -> P:
    """The request as a message to draw."""
    shown = picture_of(draft, request, showing.program)
    params = stored_object(request.params)
    return message(
        request_id=request.id,
        revision=showing.picture,
        digest=showing.digest,
        kind=shown.kind,
        interaction=shown.interaction,
        source=Source(label=shown.source_label, program=shown.program, pid=showing.pid),
        capability=request.resolved_capability,
        character=request.resolved_character,
        style=request.resolved_style,
        tone=shown.tone,
        expression=_text(params, "expression"),
        title=shown.title,
        text=shown.text,
        detail=shown.detail,
        options=shown.options,
        input=shown.input,
        fraction=shown.fraction,
        display_ms=_integer(params, "displayMs"),
        deadline_at=rfc3339(request.deadline_at),
        remaining_ms=max(0, request.deadline - now.elapsed),
        queued=len(draft.find(REQUESTS, "state", State.QUEUED.value)),
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


def _text(params: JSONObject, name: str) -> str | None:
    value = params.get(name)
    return value if isinstance(value, str) else None


def _integer(params: JSONObject, name: str) -> int | None:
    value = params.get(name)
    return value if type(value) is int else None
