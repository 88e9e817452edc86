"""What a person sees of a request or a pairing: neutralized once, and covered by a digest (presenter.md).

A picture holds exactly the members that the digest covers, under the names that it covers them by.  The
broker makes it from the request; a presenter makes it from what it has drawn (`of_present`,
`of_confirmation`), so that a report of `presented` tells what is really on the screen.
"""

from __future__ import annotations

import attrs

from protocols import canonical_json
from protocols.companion.capabilities import Interaction, Kind, Tone
from protocols.companion.pairing import Scope
from protocols.json_values import JSON, JSONObject
from protocols.members import absent
from protocols.presenter.messages import ConfirmPairing, Input, Option, Present
from protocols.structure import unstructure
from protocols.text import neutralize


@attrs.frozen(kw_only=True, repr=False)
class Picture:
    """A request as it is drawn; every text of it is neutralized."""

    kind: Kind
    interaction: Interaction
    source_label: str
    program: str | None = absent()
    title: str | None = absent()
    text: str | None = absent()
    detail: str | None = absent()
    options: tuple[Option, ...] | None = absent()
    input: Input | None = absent()
    tone: Tone | None = absent()
    fraction: float | None = absent()


@attrs.frozen(kw_only=True, repr=False)
class PairingPicture:
    """A pairing as it is drawn: what is shown is what is granted."""

    client_name: str
    name_in_use: bool
    program: str | None = absent()
    scopes: tuple[Scope, ...]
    purpose: str | None = absent()
    verification_code: str
    retention_hours: int


def digest(picture: Picture | PairingPicture) -> str:
    """SHA-256 (hex) over the canonical JSON of the picture, absent members left out."""
    return canonical_json.digest(unstructure(picture))


def of_request(
    kind: Kind, interaction: Interaction, label: str, program: str | None, params: JSONObject
) -> Picture:
    """The picture of a request with these normalized params; members that nobody draws are left out."""
    return Picture(
        kind=kind,
        interaction=interaction,
        source_label=neutralize(label, multiline=False),
        program=_line(program),
        title=_line(params.get("title")),
        text=_lines(params.get("text")),
        detail=_lines(params.get("detail")),
        options=_options(params.get("options")) if interaction is Interaction.CHOICE else None,
        input=_input(params) if interaction is Interaction.TEXT else None,
        tone=_tone(params.get("tone")),
        fraction=_fraction(params.get("fraction")),
    )


def of_pairing(
    name: str,
    name_in_use: bool,
    program: str | None,
    scopes: tuple[Scope, ...],
    purpose: str | None,
    verification_code: str,
    retention_hours: int,
) -> PairingPicture:
    """The picture of a pairing request."""
    return PairingPicture(
        client_name=neutralize(name, multiline=False),
        name_in_use=name_in_use,
        program=_line(program),
        scopes=scopes,
        purpose=_line(purpose),
        verification_code=verification_code,
        retention_hours=retention_hours,
    )


def of_present(shown: Present) -> Picture:
    """The picture that a presenter draws when it draws all of this message."""
    return Picture(
        kind=shown.kind,
        interaction=shown.interaction,
        source_label=shown.source.label,
        program=shown.source.program,
        title=shown.title,
        text=shown.text,
        detail=shown.detail,
        options=shown.options,
        input=shown.input,
        tone=shown.tone,
        fraction=shown.fraction,
    )


def of_confirmation(shown: ConfirmPairing) -> PairingPicture:
    """The picture that a presenter draws when it draws all of this message."""
    return PairingPicture(
        client_name=shown.client_name,
        name_in_use=shown.name_in_use,
        program=shown.program,
        scopes=shown.scopes,
        purpose=shown.purpose,
        verification_code=shown.verification_code,
        retention_hours=shown.retention_hours,
    )


def _line(value: JSON) -> str | None:
    return neutralize(value, multiline=False) if isinstance(value, str) else None


def _lines(value: JSON) -> str | None:
    return neutralize(value, multiline=True) if isinstance(value, str) else None


def _options(value: JSON) -> tuple[Option, ...]:
    """Ids are never drawn and go back as they came."""
    items = value if isinstance(value, list) else []
    return tuple(
        Option(id=str(item["id"]), label=neutralize(str(item["label"]), multiline=False))
        for item in items
        if isinstance(item, dict)
    )


def _input(params: JSONObject) -> Input:
    length = params.get("maxLength")
    return Input(
        placeholder=_line(params.get("placeholder")) or "",
        multiline=params.get("multiline") is True,
        max_length=length if isinstance(length, int) else 0,
    )


def _tone(value: JSON) -> Tone | None:
    return Tone(value) if isinstance(value, str) else None


def _fraction(value: JSON) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
