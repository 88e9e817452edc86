"""The core catalog (companion.md, Discovery): the capabilities, characters and styles that exist."""

from __future__ import annotations

import attrs

from protocols import members
from protocols.companion.capabilities import (
    Capability,
    CapabilityLimits,
    Catalog,
    Character,
    Interaction,
    Kind,
    Style,
    Tone,
)
from protocols.errors import InvalidValue
from protocols.members import array, integer


@attrs.frozen(kw_only=True, repr=False)
class Notice:
    """Params of notice.show."""

    text: str = members.text(1, 2_000)
    title: str | None = members.text(1, 160, absent=True)
    tone: Tone = Tone.INFORMATION
    display_ms: int = integer(1_000, 60_000, default=8_000)


@attrs.frozen(kw_only=True, repr=False)
class Option:
    """One answer to choose from: a stable id and the label that people read."""

    id: str = members.text(1, 64)
    label: str = members.text(1, 24)


@attrs.frozen(kw_only=True, repr=False)
class Choice:
    """Params of interaction.choose (CP-2.13), with the check that a schema cannot say (CP-2.14)."""

    title: str = members.text(1, 160)
    options: tuple[Option, ...] = array(2, 5)

    def __attrs_post_init__(self) -> None:
        if len({option.id for option in self.options}) < len(self.options):
            raise InvalidValue("options", "two options have the same id")


@attrs.frozen(kw_only=True, repr=False)
class ChoiceResult:
    """Result of interaction.choose: the id of the option, never its label."""

    selected_id: str


_CHARACTER = Character("aion", "Aion")

NOTICE_SHOW = Capability(
    id="notice.show",
    version="0.1.0",
    description="Shows a short text for a while. Completed means shown as agreed, not read.",
    characters=(_CHARACTER.id,),
    kind=Kind.NOTICE,
    params=Notice,
    required_scopes=("notify",),
    completion="presented",
    pause_display_on=("hover", "focus"),
    limits=CapabilityLimits(min_timeout_ms=1_000, max_timeout_ms=600_000),
)

INTERACTION_CHOOSE = Capability(
    id="interaction.choose",
    version="0.1.0",
    description="Asks the person to choose one of two to five options.",
    characters=(_CHARACTER.id,),
    kind=Kind.INTERACTION,
    interaction=Interaction.CHOICE,
    params=Choice,
    result=ChoiceResult,
    required_scopes=("interact",),
    completion="user_response",
    limits=CapabilityLimits(min_timeout_ms=1_000, max_timeout_ms=3_600_000),
)

CATALOG = Catalog.of(
    characters=(_CHARACTER,),
    styles=(Style("default", "Default", (NOTICE_SHOW.id, INTERACTION_CHOOSE.id)),),
    capabilities=(NOTICE_SHOW, INTERACTION_CHOOSE),
)
