"""What a request becomes: who does what in which style, and why that differs from what was asked (CP-2.16).

Something else than what was asked for is done only where the caller allows it, and the request's row then says so:
`resolved_*` are what is really presented, `substitution` the reasons.  A substitute gives the same guarantee (its
catalog has checked that); only the looks may differ.  The person's wish for less motion needs no caller's leave.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from handlers.companion.calls import declined
from handlers.companion.rows import REDUCED_MOTION
from handlers.companion.settings import current_character, wants_stillness
from handlers.rule import Draft
from protocols.companion.capabilities import Capability
from protocols.companion.characters import Character, Style
from protocols.companion.messages import CreateRequest
from protocols.errors import InvalidValue
from protocols.json_values import JSONObject
from protocols.refusal import ErrorCode


@attrs.frozen
class Deed:
    """A capability with its normalized params, and the character that carries it out; `reason`: why not as asked."""

    capability: Capability
    params: JSONObject
    character: Character
    reason: str | None = None

    def can_be_done(self) -> bool:
        """Whether the character supports the capability and has the expression that the params name."""
        return self.capability.id in self.character.capabilities and self.has_expression()

    def has_expression(self) -> bool:
        """Whether the character has the expression that the params name, if they name one (CP-2.15)."""
        return not self.capability.names_expression or self.params["expression"] in self.character.expressions


@attrs.frozen
class Resolved:
    """What is really presented."""

    deed: Deed
    style: Style
    substitution: str | None
    """The reasons, in a fixed order, joined by commas."""


def resolve(draft: Draft, asked: CreateRequest, capability: Capability, params: JSONObject) -> Resolved:
    """Check character and style of a request with these normalized params, and choose what is presented.

    Raises InvalidValue and Declined, in the order of companion.md: character, then style.
    """
    deed = _deed(draft, asked, Deed(capability, params, _character(draft, asked)))
    style, style_reason = _style(draft, asked, deed.capability)
    still = wants_stillness(draft, deed.capability)
    reasons = (deed.reason, style_reason, REDUCED_MOTION if still else None)
    return Resolved(deed, style, ",".join(filter(None, reasons)) or None)


def _character(draft: Draft, asked: CreateRequest) -> Character:
    if asked.character is None:
        return current_character(draft)
    named = draft.environment.catalog.characters.get(asked.character)
    if named is None:
        raise InvalidValue("character", "unknown character")
    return named


def _deed(draft: Draft, asked: CreateRequest, wanted: Deed) -> Deed:
    if wanted.capability.id in wanted.character.capabilities:
        if not wanted.has_expression():
            raise InvalidValue("params.expression", "not an expression of the character")
        return wanted
    if asked.allow_substitution:
        for other in _substitutes(draft, wanted):
            if other.can_be_done():
                return other
    raise declined(ErrorCode.UNSUPPORTED_CAPABILITY, "the character does not support this capability")


def _substitutes(draft: Draft, wanted: Deed) -> Iterator[Deed]:
    """What is declared to stand for the capability; else the same by another character, the user's own first."""
    catalog = draft.environment.catalog
    if (substitute := wanted.capability.substitute) is not None:
        capability = catalog.capabilities[substitute.capability]
        params = capability.normalize(substitute.params)
        yield Deed(capability, params, wanted.character, "capability_not_supported")
    for character in (current_character(draft), *catalog.characters.values()):
        yield attrs.evolve(wanted, character=character, reason="character_lacks_capability")


def _style(draft: Draft, asked: CreateRequest, capability: Capability) -> tuple[Style, str | None]:
    catalog = draft.environment.catalog
    if asked.style is None:
        return catalog.default_style, None
    named = catalog.styles.get(asked.style)
    if named is not None and capability.id in named.capabilities:
        return named, None
    if named is not None and asked.allow_substitution:
        return catalog.default_style, "style_not_applicable"
    raise declined(ErrorCode.UNSUPPORTED_STYLE, "no such style for this capability")
