"""What a capability declares, and the catalog of everything that can be asked for.

A `Capability` is one entry of the registry: every field of CP-2.9 as data, and the two message classes that
its params and result are checked by.  Schemas and descriptions are made from it, so there is no second list
to keep (CP-2.2).  The entries themselves stand in `protocols.companion.catalog`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Literal, Protocol, TypeVar

import attrs

from protocols.canonical_json import digest
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
    limits: CapabilityLimits


@attrs.frozen(kw_only=True, eq=False)
class Capability:
    """One thing that can be asked for.  `result` None: it has no business output, and its result is null."""

    id: str
    version: str
    description: str
    characters: tuple[str, ...]
    kind: Kind
    interaction: Interaction = Interaction.NONE
    params: type[attrs.AttrsInstance]
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
    reduced_motion: Literal["same"] = "same"
    limits: CapabilityLimits

    def normalize(self, params: JSONObject) -> JSONObject:
        """The params with every default filled in; raises InvalidValue, its field counted from these
        params."""
        normal = unstructure(structure(self.params, params))
        assert isinstance(normal, dict)
        return normal

    def check_timeout(self, timeout_ms: int) -> None:
        """Raise InvalidValue that names the bound which timeoutMs crosses (CP-3.1)."""
        if timeout_ms < self.limits.min_timeout_ms:
            raise InvalidValue("timeoutMs", "too small", self.limits.min_timeout_ms)
        if timeout_ms > self.limits.max_timeout_ms:
            raise InvalidValue("timeoutMs", "too large", self.limits.max_timeout_ms)

    def describe(self) -> CapabilityDescription:
        """The contract for capabilities.describe."""
        same = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(CapabilityDescription)
            if field.name not in ("input_schema", "output_schema")
        }
        return CapabilityDescription(
            input_schema=json_schema(self.params),
            output_schema={"type": "null"} if self.result is None else json_schema(self.result),
            **same,
        )


@attrs.frozen
class Character:
    """A figure on the screen."""

    id: str
    name: str


@attrs.frozen
class Style:
    """An appearance, and the capabilities that it applies to (CP-2.7)."""

    id: str
    name: str
    capabilities: tuple[str, ...]


class _Entry(Protocol):
    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=_Entry)


@attrs.frozen(eq=False)
class Catalog:
    """Everything that can be asked for.  The first character and the first style are the ones used by
    default."""

    characters: Mapping[str, Character]
    styles: Mapping[str, Style]
    capabilities: Mapping[str, Capability]
    revision: str
    """catalogRevision: the digest of the content, so it changes with it and only with it (CP-7.1)."""

    @classmethod
    def of(
        cls, characters: Iterable[Character], styles: Iterable[Style], capabilities: Iterable[Capability]
    ) -> Catalog:
        """A catalog of these entries; ids that stand twice or lead nowhere are an error of ours."""
        of_character = _by_id(characters)
        of_style = _by_id(styles)
        of_capability = _by_id(capabilities)
        for capability in of_capability.values():
            _all_known(capability.characters, of_character)
        for style in of_style.values():
            _all_known(style.capabilities, of_capability)
        content: JSON = {
            "characters": [{"id": one.id, "name": one.name} for one in of_character.values()],
            "styles": [
                {"id": one.id, "name": one.name, "capabilities": [*one.capabilities]}
                for one in of_style.values()
            ],
            "capabilities": [unstructure(one.describe()) for one in of_capability.values()],
        }
        return cls(of_character, of_style, of_capability, digest(content))

    @property
    def default_character(self) -> Character:
        """The user's current character, used when a request names none."""
        return next(iter(self.characters.values()))

    def default_style(self, capability: Capability) -> Style:
        """The first style that applies to the capability."""
        return next(style for style in self.styles.values() if capability.id in style.capabilities)


def _by_id(entries: Iterable[E]) -> dict[str, E]:
    listed = tuple(entries)
    found = {entry.id: entry for entry in listed}
    if len(found) < len(listed):
        raise ValueError("two entries with one id")
    return found


def _all_known(ids: Iterable[str], entries: Mapping[str, object]) -> None:
    for id in ids:
        if id not in entries:
            raise ValueError(f"no entry with the id {id}")
