"""What a capability declares, and the catalog of everything that can be asked for.

A `Capability` is one entry of the registry: every field of CP-2.9 as data, and what its params and result are
checked by.  Schemas and descriptions are made from it, so there is no second list to keep (CP-2.2).  Which characters
support it is said by the characters alone.  The core's entries stand in `protocols.companion.catalog`, and
`protocols.companion.packs` adds those of character packs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import attrs

from protocols.canonical_json import digest
from protocols.companion.characters import Character, Style
from protocols.companion.declared import DeclaredParams
from protocols.companion.pairing import Scope
from protocols.errors import InvalidValue
from protocols.json_values import JSON, JSONObject
from protocols.structure import json_schema, structure, unstructure


class Tone(Enum):
    """What a text means, apart from how it looks (CP-2.12)."""

    INFORMATION = "information"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"


class Kind(Enum):
    """What is drawn (CP-2.10)."""

    ANIMATION = "animation"
    NOTICE = "notice"
    PROGRESS = "progress"
    INTERACTION = "interaction"


class Interaction(Enum):
    """How the person answers (CP-2.10)."""

    NONE = "none"
    CHOICE = "choice"
    TEXT = "text"


@attrs.frozen(kw_only=True)
class CapabilityLimits:
    """The bounds of timeoutMs, both included."""

    min_timeout_ms: int
    max_timeout_ms: int


@attrs.frozen(kw_only=True)
class CapabilityDescription:
    """The full contract of one capability on the wire (CP-2.6)."""

    id: str
    version: str
    description: str
    characters: tuple[str, ...]
    kind: Kind
    interaction: Interaction
    input_schema: JSONObject
    output_schema: JSONObject
    required_scopes: tuple[str, ...]
    updatable_fields: tuple[str, ...]
    completion: str
    cancelable: bool
    on_cancel: str
    on_hidden: str
    queue: str
    evictable: bool
    pause_display_on: tuple[str, ...]
    reduced_motion: str
    substitute: str | None
    limits: CapabilityLimits


@attrs.frozen(kw_only=True)
class Substitute:
    """What may be done instead where a character lacks the capability and the caller allows it (CP-2.16)."""

    capability: str
    params: JSONObject


@attrs.frozen(kw_only=True, eq=False)
class Capability:
    """One thing that can be asked for.  `result` None: it has no business output, and its result is null.

    `reduced_motion` says how it is drawn for a person who wants less of it: `still`, or the `same` as ever because
    nothing of it moves.  `names_expression`: the member `expression` of its params must be one that the character has
    (CP-2.15), which no schema can say.
    """

    id: str
    version: str
    description: str
    kind: Kind
    interaction: Interaction = Interaction.NONE
    params: type[attrs.AttrsInstance] | DeclaredParams
    result: type[attrs.AttrsInstance] | None = None
    required_scopes: tuple[Scope, ...]
    updatable_fields: tuple[str, ...] = ()
    completion: Literal["user_response", "presented", "finished"]
    cancelable: bool = True
    on_cancel: Literal["withdraw"] = "withdraw"
    on_hidden: Literal["cancel"] = "cancel"
    queue: Literal["fifo_per_client"] = "fifo_per_client"
    evictable: bool = False
    pause_display_on: tuple[Literal["hover", "focus"], ...] = ()
    reduced_motion: Literal["same", "still"] = "same"
    names_expression: bool = False
    substitute: Substitute | None = None
    limits: CapabilityLimits

    def normalize(self, params: JSONObject) -> JSONObject:
        """The params with every default filled in; raises InvalidValue, its field counted from these
        params."""
        if isinstance(self.params, DeclaredParams):
            return self.params.normalize(params)
        normal = unstructure(structure(self.params, params))
        assert isinstance(normal, dict)
        return normal

    def check_timeout(self, timeout_ms: int) -> None:
        """Raise InvalidValue that names the bound which timeoutMs crosses (CP-3.1)."""
        if timeout_ms < self.limits.min_timeout_ms:
            raise InvalidValue("timeoutMs", "too small", self.limits.min_timeout_ms)
        if timeout_ms > self.limits.max_timeout_ms:
            raise InvalidValue("timeoutMs", "too large", self.limits.max_timeout_ms)

    def describe(self, characters: Iterable[str]) -> CapabilityDescription:
        """The contract for capabilities.describe; `characters` are those that support it."""
        made = ("characters", "input_schema", "output_schema", "substitute")
        same = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(CapabilityDescription)
            if field.name not in made
        }
        return CapabilityDescription(
            characters=tuple(characters),
            input_schema=self._input_schema(),
            output_schema={"type": "null"} if self.result is None else json_schema(self.result),
            substitute=None if self.substitute is None else self.substitute.capability,
            **same,
        )

    def _input_schema(self) -> JSONObject:
        return self.params.schema if isinstance(self.params, DeclaredParams) else json_schema(self.params)

    def can_stand_for(self, other: Capability) -> bool:
        """Whether it gives the same guarantee as the other, so that only the looks differ (CP-2.16)."""
        guarantees = ("kind", "interaction", "result", "required_scopes", "completion", "limits")
        return all(getattr(self, name) == getattr(other, name) for name in guarantees)


class _Entry(Protocol):
    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=_Entry)


@attrs.frozen(eq=False)
class Catalog:
    """Everything that can be asked for.  The first character and the first style are those of the default."""

    characters: Mapping[str, Character]
    styles: Mapping[str, Style]
    capabilities: Mapping[str, Capability]

    @classmethod
    def of(
        cls, characters: Iterable[Character], styles: Iterable[Style], capabilities: Iterable[Capability]
    ) -> Catalog:
        """A catalog of these entries.  Raises ValueError for ids that stand twice or lead nowhere."""
        of_character = _by_id(characters)
        of_style = _by_id(styles)
        of_capability = _by_id(capabilities)
        for character in of_character.values():
            _check_character(character, of_capability)
        for style in of_style.values():
            _all_known(style.capabilities, of_capability)
        for capability in of_capability.values():
            _check_substitute(capability, of_capability)
        _all_known(of_capability, set(next(iter(of_style.values())).capabilities))
        return cls(of_character, of_style, of_capability)

    @cached_property
    def descriptions(self) -> Mapping[str, CapabilityDescription]:
        """The contract of each capability, by its id (CP-2.6)."""
        characters = self.characters.values()
        return {
            id: capability.describe(one.id for one in characters if id in one.capabilities)
            for id, capability in self.capabilities.items()
        }

    @cached_property
    def revision(self) -> str:
        """catalogRevision: the digest of the content, so it changes with it and only with it (CP-7.1)."""
        content: JSON = {
            "characters": [_content_of(character) for character in self.characters.values()],
            "styles": [
                {"id": one.id, "name": one.name, "capabilities": [*one.capabilities]}
                for one in self.styles.values()
            ],
            "capabilities": [unstructure(description) for description in self.descriptions.values()],
        }
        return digest(content)

    @property
    def default_character(self) -> Character:
        """The character of a user who has chosen none."""
        return next(iter(self.characters.values()))

    @property
    def default_style(self) -> Style:
        """The style of a request that names none; it applies to every capability."""
        return next(iter(self.styles.values()))


def _by_id(entries: Iterable[E]) -> dict[str, E]:
    listed = tuple(entries)
    found = {entry.id: entry for entry in listed}
    if len(found) < len(listed):
        raise ValueError("two entries with one id")
    return found


def _all_known(ids: Iterable[str], entries: Container[str]) -> None:
    for id in ids:
        if id not in entries:
            raise ValueError(f"no entry with the id {id}")


def _check_character(character: Character, capabilities: Mapping[str, Capability]) -> None:
    _all_known(character.capabilities, capabilities)
    _all_known(character.wears, character.capabilities)
    _all_known(character.wears.values(), character.expressions)


def _check_substitute(capability: Capability, capabilities: Mapping[str, Capability]) -> None:
    if capability.substitute is None:
        return
    _all_known((capability.substitute.capability,), capabilities)
    substitute = capabilities[capability.substitute.capability]
    if not substitute.can_stand_for(capability) or substitute.substitute is not None:
        raise ValueError(f"the substitute of {capability.id} does not give the same guarantee")
    substitute.normalize(capability.substitute.params)


def _content_of(character: Character) -> JSON:
    return {
        "id": character.id,
        "name": character.name,
        "capabilities": [*character.capabilities],
        "expressions": [*character.expressions],
    }
