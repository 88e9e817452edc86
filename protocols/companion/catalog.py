"""The core catalog (companion.md, Discovery): the capabilities, characters and styles that exist."""

from __future__ import annotations

import attrs

from protocols import members
from protocols.companion.capabilities import (
    Capability,
    CapabilityLimits,
    Catalog,
    Interaction,
    Kind,
    Substitute,
    Tone,
)
from protocols.companion.characters import Character, Expression, Style
from protocols.errors import InvalidValue
from protocols.members import array, integer, number


@attrs.frozen(kw_only=True)
class Animation:
    """Params of animation.play; whether the character has the expression is for its own list to say (CP-2.15)."""

    expression: str = members.text(1, 128)


@attrs.frozen(kw_only=True, repr=False)
class Notice:
    """Params of notice.show."""

    text: str = members.text(1, 2_000)
    title: str | None = members.text(1, 160, absent=True)
    tone: Tone = Tone.INFORMATION
    display_ms: int = integer(1_000, 60_000, default=8_000)


@attrs.frozen(kw_only=True, repr=False)
class Progress:
    """Params of progress.track; `fraction` None: how much is done is not known."""

    title: str = members.text(1, 160)
    fraction: float | None = number(0, 1, default=None)
    detail: str = members.text(0, 2_000, default="")
    tone: Tone = Tone.INFORMATION


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


@attrs.frozen(kw_only=True, repr=False)
class AskText:
    """Params of interaction.ask_text; `max_length` counts code points."""

    title: str = members.text(1, 160)
    placeholder: str = members.text(0, 160, default="")
    multiline: bool = False
    max_length: int = integer(1, 4_000, default=1_000)


@attrs.frozen(kw_only=True, repr=False)
class AskTextResult:
    """Result of interaction.ask_text: what the person wrote, not empty and not trimmed."""

    text: str


@attrs.frozen(kw_only=True)
class NoParams:
    """Params of a capability that takes none."""


ANIMATION_LIMITS = CapabilityLimits(min_timeout_ms=1_000, max_timeout_ms=60_000)

ANIMATION_PLAY = Capability(
    id="animation.play",
    version="0.1.0",
    description="Plays one of the character's expressions. Completed means that it has run its course.",
    kind=Kind.ANIMATION,
    params=Animation,
    required_scopes=("animate",),
    completion="finished",
    reduced_motion="still",
    names_expression=True,
    limits=ANIMATION_LIMITS,
)

NOTICE_SHOW = Capability(
    id="notice.show",
    version="0.1.0",
    description="Shows a short text for a while. Completed means shown as agreed, not read.",
    kind=Kind.NOTICE,
    params=Notice,
    required_scopes=("notify",),
    completion="presented",
    evictable=True,
    pause_display_on=("hover", "focus"),
    limits=CapabilityLimits(min_timeout_ms=1_000, max_timeout_ms=600_000),
)

PROGRESS_TRACK = Capability(
    id="progress.track",
    version="0.1.0",
    description="Shows how far a piece of work has come. Completed means that its caller has said so.",
    kind=Kind.PROGRESS,
    params=Progress,
    required_scopes=("notify",),
    updatable_fields=("fraction", "detail", "tone", "finished"),
    completion="finished",
    limits=CapabilityLimits(min_timeout_ms=1_000, max_timeout_ms=86_400_000),
)

INTERACTION_CHOOSE = Capability(
    id="interaction.choose",
    version="0.1.0",
    description="Asks the person to choose one of two to five options.",
    kind=Kind.INTERACTION,
    interaction=Interaction.CHOICE,
    params=Choice,
    result=ChoiceResult,
    required_scopes=("interact",),
    completion="user_response",
    limits=CapabilityLimits(min_timeout_ms=1_000, max_timeout_ms=3_600_000),
)

INTERACTION_ASK_TEXT = Capability(
    id="interaction.ask_text",
    version="0.1.0",
    description="Asks the person to write a text.",
    kind=Kind.INTERACTION,
    interaction=Interaction.TEXT,
    params=AskText,
    result=AskTextResult,
    required_scopes=("interact",),
    completion="user_response",
    limits=CapabilityLimits(min_timeout_ms=1_000, max_timeout_ms=3_600_000),
)

STRETCH = Capability(
    id="vendor.dev.companion-broker.stretch",
    version="0.1.0",
    description="Stretches from nose to tail, as cats do.",
    kind=Kind.ANIMATION,
    params=NoParams,
    required_scopes=("animate",),
    completion="finished",
    reduced_motion="still",
    substitute=Substitute(capability=ANIMATION_PLAY.id, params={"expression": "happy"}),
    limits=ANIMATION_LIMITS,
)
"""A capability of one character only (CP-2.15): anybody else looks happy instead, where the caller allows it."""

_CORE = (ANIMATION_PLAY, NOTICE_SHOW, PROGRESS_TRACK, INTERACTION_CHOOSE, INTERACTION_ASK_TEXT)
_ALL = (*_CORE, STRETCH)


def _faces(*ids: str) -> dict[str, Expression]:
    return {id: Expression() for id in ids}


AION = Character(
    "aion",
    "Aion",
    capabilities=tuple(capability.id for capability in _CORE),
    expressions=_faces("neutral", "happy", "sad", "surprised", "greeting", "thinking", "attentive"),
    wears={
        NOTICE_SHOW.id: "greeting",
        PROGRESS_TRACK.id: "thinking",
        INTERACTION_CHOOSE.id: "attentive",
        INTERACTION_ASK_TEXT.id: "attentive",
    },
)
MOMO = Character(
    "momo",
    "Momo",
    capabilities=tuple(capability.id for capability in _ALL if capability is not PROGRESS_TRACK),
    expressions=_faces("neutral", "happy", "sad", "greeting", "curious", "sleepy", "stretching"),
    wears={
        NOTICE_SHOW.id: "greeting",
        INTERACTION_CHOOSE.id: "curious",
        INTERACTION_ASK_TEXT.id: "curious",
        STRETCH.id: "stretching",
    },
)

DEFAULT_STYLE = Style("default", "Default", tuple(capability.id for capability in _ALL))
COMPACT_STYLE = Style("compact", "Compact", (NOTICE_SHOW.id, PROGRESS_TRACK.id))

CATALOG = Catalog.of(characters=(AION, MOMO), styles=(DEFAULT_STYLE, COMPACT_STYLE), capabilities=_ALL)
