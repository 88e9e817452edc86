"""Character packs: characters that a user adds as data, without code (CP-2.15, CP-7.3).

A pack is a folder with a manifest, `character.json`, and pictures.  This module reads the manifest and adds it to a
catalog; `broker.packs` reads the folders, and `protocols.companion.pack_pictures` says which pictures are harmless.
The format is described in fixtures/characters/README.md.

A pack adds and never changes: no id of the core, of a built-in or of another pack can be taken.  Its capabilities are
animations under `vendor.<reverse-domain>.<name>` with the scope, states, bounds and guarantees of every animation;
it cannot ask the person anything, put text on the screen or grant anything.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Literal

import attrs

from protocols.companion.capabilities import Capability, Catalog, Kind, Substitute
from protocols.companion.catalog import ANIMATION_LIMITS, ANIMATION_PLAY
from protocols.companion.characters import DEFAULT_FRAME_MS, Character, Expression, Style
from protocols.companion.declared import DeclaredParams, InputSchema
from protocols.errors import InvalidValue, ParseError
from protocols.json_values import JSONObject
from protocols.members import array, integer, text
from protocols.strict_json import decode
from protocols.structure import structure
from protocols.text import neutralize, visible_length

MANIFEST = "character.json"
MAX_MANIFEST_BYTES = 32_768
"""Together with the bounds below: whatever is made of it, a description or an item of a list, fits a frame."""
MAX_PACKS = 32
MAX_CHARACTERS = 4
MAX_CAPABILITIES = 8
MAX_EXPRESSIONS = 64
MAX_PICTURES = 256

_OURS = "vendor.dev.companion-broker."
_CHARACTER_ID = re.compile(r"[a-z][a-z0-9-]*")
_EXPRESSION_ID = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_CAPABILITY_ID = re.compile(r"vendor(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?){2,}\.[a-z][a-z0-9_]*")
_VERSION = re.compile(r"\d{1,6}\.\d{1,6}\.\d{1,6}")
_PICTURE = re.compile(r"[a-z0-9][a-z0-9_-]*\.(svg|png)")


class BadPack(Exception):
    """A pack cannot be taken in; `reason` names the place and the rule, and quotes no value."""

    def __init__(self, reason: str) -> None:
        self.reason = neutralize(reason, multiline=False)
        super().__init__(self.reason)


@attrs.frozen
class SkippedPack:
    """A pack that could not be taken in: the name of its folder, and why."""

    name: str
    reason: str


@attrs.frozen(kw_only=True)
class PackExpression:
    """A face: pictures that lie beside the manifest, shown one after the other."""

    pictures: tuple[str, ...] = array(1, 24, each=(5, 64))
    frame_ms: int = integer(40, 10_000, default=DEFAULT_FRAME_MS)

    def __attrs_post_init__(self) -> None:
        for number, picture in enumerate(self.pictures):
            _check(
                bool(_PICTURE.fullmatch(picture)), f"pictures.{number}", "not the name of an SVG or PNG file"
            )


@attrs.frozen(kw_only=True)
class PackCharacter:
    """A character; the members are those of `protocols.companion.characters.Character`."""

    id: str = text(1, 64)
    name: str = text(1, 64)
    capabilities: tuple[str, ...] = array(1, 64, each=(1, 128))
    expressions: dict[str, PackExpression]
    wears: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        _check(bool(_CHARACTER_ID.fullmatch(self.id)), "id", "not an id")
        _check(_is_plain(self.name), "name", "not a name that can be read")
        _check(len(set(self.capabilities)) == len(self.capabilities), "capabilities", "an id stands twice")
        _check(1 <= len(self.expressions) <= MAX_EXPRESSIONS, "expressions", "none or too many")
        for id in self.expressions:
            _check(bool(_EXPRESSION_ID.fullmatch(id)), "expressions", "not an id")
        for id, expression in self.wears.items():
            _check(id in self.capabilities, "wears", "for a capability that it does not support")
            _check(expression in self.expressions, "wears", "an expression that it does not have")
        for id in self.capabilities:
            dressed = id in self.wears or not id.startswith("vendor.")
            _check(dressed, "wears", "nothing for a capability under vendor.")

    def character(self) -> Character:
        """The entry of the catalog."""
        expressions = {
            id: Expression(pictures=face.pictures, frame_ms=face.frame_ms)
            for id, face in self.expressions.items()
        }
        return Character(self.id, self.name, self.capabilities, expressions, self.wears)


@attrs.frozen(kw_only=True)
class PackSubstitute:
    """What is done instead by a character that lacks the capability, where the caller allows it."""

    capability: str = text(1, 128)
    params: JSONObject


@attrs.frozen(kw_only=True)
class PackCapability:
    """An animation of the pack's own."""

    id: str = text(1, 128)
    version: str = text(1, 32)
    description: str = text(1, 400)
    input_schema: InputSchema
    reduced_motion: Literal["same", "still"] = "still"
    substitute: PackSubstitute

    def __attrs_post_init__(self) -> None:
        own = _CAPABILITY_ID.fullmatch(self.id) is not None and not self.id.startswith(_OURS)
        _check(own, "id", "not vendor.<reverse-domain>.<name> of its own")
        _check(_VERSION.fullmatch(self.version) is not None, "version", "not three numbers")
        _check(_is_plain(self.description), "description", "not a text that can be read")

    def capability(self) -> Capability:
        """The entry of the catalog.  Raises InvalidValue for a schema whose defaults it would refuse itself."""
        return Capability(
            id=self.id,
            version=self.version,
            description=self.description,
            kind=Kind.ANIMATION,
            params=DeclaredParams(self.input_schema),
            required_scopes=ANIMATION_PLAY.required_scopes,
            completion=ANIMATION_PLAY.completion,
            reduced_motion=self.reduced_motion,
            substitute=Substitute(capability=self.substitute.capability, params=self.substitute.params),
            limits=ANIMATION_LIMITS,
        )


@attrs.frozen(kw_only=True)
class Manifest:
    """character.json."""

    format_version: Literal[1]
    characters: tuple[PackCharacter, ...] = array(1, MAX_CHARACTERS)
    capabilities: tuple[PackCapability, ...] = array(0, MAX_CAPABILITIES, default=())

    def __attrs_post_init__(self) -> None:
        _check(len(self.pictures) <= MAX_PICTURES, "characters", "too many pictures")

    @property
    def pictures(self) -> tuple[str, ...]:
        """The names of the files that it draws with, each once."""
        faces = (face for character in self.characters for face in character.expressions.values())
        return tuple(dict.fromkeys(picture for face in faces for picture in face.pictures))


def read_manifest(content: bytes) -> Manifest:
    """The manifest in these bytes; raises BadPack for anything that is not one."""
    try:
        document = decode(content)
    except ParseError as error:
        raise BadPack(f"{MANIFEST}: {error.reason}") from None
    if document.flaw is not None:
        raise BadPack(f"{document.flaw.dotted}: {document.flaw.reason}")
    try:
        return structure(Manifest, document.value)
    except InvalidValue as error:
        raise BadPack(str(error)) from None


def add_pack(catalog: Catalog, manifest: Manifest) -> Catalog:
    """The catalog with the entries of the pack; raises BadPack when they do not go with those that are there."""
    try:
        capabilities = _new_capabilities(catalog, manifest)
        characters = _new_characters(catalog, manifest, capabilities)
        _check_substitutes(catalog, capabilities)
    except InvalidValue as error:
        raise BadPack(str(error)) from None
    first, *others = catalog.styles.values()
    style = Style(first.id, first.name, (*first.capabilities, *capabilities))
    return Catalog.of(
        (*catalog.characters.values(), *characters),
        (style, *others),
        (*catalog.capabilities.values(), *capabilities.values()),
    )


def _new_capabilities(catalog: Catalog, manifest: Manifest) -> Mapping[str, Capability]:
    supported = {id for character in manifest.characters for id in character.capabilities}
    found: dict[str, Capability] = {}
    for number, declared in enumerate(manifest.capabilities):
        place = f"capabilities.{number}"
        _check(declared.id not in (*catalog.capabilities, *found), f"{place}.id", "is taken")
        _check(declared.id in supported, f"{place}.id", "no character of the pack supports it")
        try:
            found[declared.id] = declared.capability()
        except InvalidValue as error:
            wrong = error.under("inputSchema").under(number).under("capabilities")
        else:
            continue
        raise wrong
    return found


def _new_characters(
    catalog: Catalog, manifest: Manifest, capabilities: Container[str]
) -> Iterable[Character]:
    ids = set(catalog.characters)
    names = {_folded(character.name) for character in catalog.characters.values()}
    for number, declared in enumerate(manifest.characters):
        place = f"characters.{number}"
        _check(declared.id not in ids, f"{place}.id", "is taken")
        _check(_folded(declared.name) not in names, f"{place}.name", "is taken")
        for at, id in enumerate(declared.capabilities):
            known = id in catalog.capabilities or id in capabilities
            _check(known, f"{place}.capabilities.{at}", "unknown capability")
        ids.add(declared.id)
        names.add(_folded(declared.name))
    return [declared.character() for declared in manifest.characters]


def _check_substitutes(catalog: Catalog, capabilities: Mapping[str, Capability]) -> None:
    """A substitute is there already and gives the same guarantee (CP-2.16)."""
    for number, capability in enumerate(capabilities.values()):
        place = f"capabilities.{number}.substitute"
        assert capability.substitute is not None
        substitute = catalog.capabilities.get(capability.substitute.capability)
        if substitute is None or substitute.substitute is not None:
            raise InvalidValue(f"{place}.capability", "not a capability that can stand for it")
        _check(substitute.can_stand_for(capability), f"{place}.capability", "not of the same guarantee")
        try:
            substitute.normalize(capability.substitute.params)
        except InvalidValue as error:
            wrong = error
        else:
            continue
        raise InvalidValue(f"{place}.params.{wrong.field}", wrong.reason, wrong.limit)


def _check(holds: bool, field: str, reason: str) -> None:
    if not holds:
        raise InvalidValue(field, reason)


def _is_plain(written: str) -> bool:
    """Whether the text can be read as it stands: nothing in it repaints, reorders or hides anything."""
    return neutralize(written, multiline=False) == written and visible_length(written) > 0


def _folded(name: str) -> str:
    """Names that read alike are one."""
    return " ".join(name.casefold().split())
