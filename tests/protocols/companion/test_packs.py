"""The manifest of a character pack: strict, bounded, and it adds without changing (CP-2.15, CP-7.3)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.companion.capabilities import Kind
from protocols.companion.catalog import CATALOG
from protocols.companion.packs import (
    MAX_CAPABILITIES,
    MAX_CHARACTERS,
    MAX_EXPRESSIONS,
    MAX_MANIFEST_BYTES,
    MAX_PACKS,
    BadPack,
    add_pack,
    read_manifest,
)
from protocols.json_values import JSON
from protocols.strict_json import encode
from protocols.structure import unstructure
from tests.protocols.json_strategies import json_values
from tests.support.packs import HOP, catalog_with, dot, parsed, pip


def changed(path: str, value: Any) -> dict[str, Any]:
    """The sample's manifest with the member at a dotted path set to the value; `...` takes it out."""
    manifest = pip()
    target, last = place_in(manifest, path)
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return manifest


def place_in(manifest: Any, path: str) -> tuple[Any, str | int]:
    """The object or array that holds the member at the path, and the member's name in it."""
    *parents, last = (int(name) if name.isdecimal() else name for name in path.split("/"))
    for name in parents:
        manifest = manifest[name]
    return manifest, last


def refused(manifest: dict[str, Any]) -> str:
    """Why the manifest is not taken in."""
    with pytest.raises(BadPack) as error:
        catalog_with(manifest)
    return error.value.reason


@pytest.mark.requirement("CP-2.15", "CP-2.4")
def test_a_pack_adds_its_character_expressions_and_capability() -> None:
    catalog = catalog_with(pip())
    character = catalog.characters["pip"]
    assert (character.name, character.wears["notice.show"]) == ("Pip", "happy")
    hopping = character.expressions["hopping"]
    assert (hopping.pictures, hopping.frame_ms) == (("neutral.svg", "hop.svg"), 300)
    assert catalog.descriptions[HOP].characters == ("pip",)
    assert catalog.descriptions["notice.show"].characters == ("aion", "momo", "pip")
    assert HOP in catalog.default_style.capabilities
    assert HOP not in catalog.styles["compact"].capabilities


@pytest.mark.requirement("CP-7.3")
def test_a_pack_leaves_everything_that_was_there_as_it_was() -> None:
    catalog = catalog_with(pip(), dot())
    for id, capability in CATALOG.capabilities.items():
        assert catalog.capabilities[id] is capability
    for id, character in CATALOG.characters.items():
        assert catalog.characters[id] is character
    assert catalog.default_character is CATALOG.default_character
    assert [*catalog.styles] == [*CATALOG.styles]
    assert catalog.revision not in (CATALOG.revision, catalog_with(pip()).revision)


@pytest.mark.requirement("CP-7.3", "CP-2.10", "CP-2.11")
def test_what_a_pack_declares_is_an_animation_with_the_rights_and_bounds_of_every_animation() -> None:
    own, play = catalog_with(pip()).descriptions[HOP], CATALOG.descriptions["animation.play"]
    assert own.kind is Kind.ANIMATION
    for name in (
        "required_scopes",
        "interaction",
        "output_schema",
        "completion",
        "limits",
        "on_hidden",
        "queue",
    ):
        assert getattr(own, name) == getattr(play, name), name


@pytest.mark.requirement("CP-7.3")
@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("formatVersion", 2, "formatVersion"),
        ("formatVersion", ..., "formatVersion"),
        ("styles", [], "styles"),
        ("methods", [], "methods"),
        ("characters", [], "characters"),
        ("characters", {}, "characters"),
        ("characters/0/id", "aion", "characters.0.id"),
        ("characters/0/id", "momo", "characters.0.id"),
        ("characters/0/id", "Pip", "characters.0.id"),
        ("characters/0/id", "pip\n", "characters.0.id"),
        ("characters/0/id", "p" * 65, "characters.0.id"),
        ("characters/0/name", "Aion", "characters.0.name"),
        ("characters/0/name", " mOMo ", "characters.0.name"),
        ("characters/0/name", "P\u202eip", "characters.0.name"),
        ("characters/0/name", " ", "characters.0.name"),
        ("characters/0/capabilities", [], "characters.0.capabilities"),
        ("characters/0/capabilities/0", "animation.stop", "characters.0.capabilities.0"),
        ("characters/0/capabilities/0", "notice.show", "characters.0.capabilities"),
        ("characters/0/expressions", {}, "characters.0.expressions"),
        ("characters/0/expressions/UP", {"pictures": ["a.svg"]}, "characters.0.expressions"),
        ("characters/0/expressions/happy/pictures", [], "characters.0.expressions.happy.pictures"),
        ("characters/0/expressions/happy/frameMs", 39, "characters.0.expressions.happy.frameMs"),
        ("characters/0/expressions/happy/sound", "x.ogg", "characters.0.expressions.happy.sound"),
        ("characters/0/wears/notice.show", "sad", "characters.0.wears"),
        ("characters/0/wears/progress.track", "happy", "characters.0.wears"),
        (f"characters/0/wears/{HOP}", ..., "characters.0.wears"),
        ("characters/0/scopes", ["interact"], "characters.0.scopes"),
        ("capabilities/0/id", "notice.show", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.hop", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.example.hop", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.org.example.", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.org.-example.hop", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.org.example.Hop", "capabilities.0.id"),
        ("capabilities/0/id", "requests.create", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.dev.companion-broker.stretch", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.dev.companion-broker.hop", "capabilities.0.id"),
        ("capabilities/0/id", "vendor.org.example.other", "capabilities.0.id"),
        ("capabilities/0/version", "1", "capabilities.0.version"),
        ("capabilities/0/description", "", "capabilities.0.description"),
        ("capabilities/0/description", "x\x07", "capabilities.0.description"),
        ("capabilities/0/description", "x" * 401, "capabilities.0.description"),
        ("capabilities/0/kind", "interaction", "capabilities.0.kind"),
        ("capabilities/0/requiredScopes", [], "capabilities.0.requiredScopes"),
        ("capabilities/0/limits", {}, "capabilities.0.limits"),
        ("capabilities/0/completion", "user_response", "capabilities.0.completion"),
        ("capabilities/0/inputSchema", ..., "capabilities.0.inputSchema"),
        ("capabilities/0/inputSchema/$schema", "x", "capabilities.0.inputSchema.$schema"),
        (
            "capabilities/0/inputSchema/properties/times/default",
            9,
            "capabilities.0.inputSchema.properties.times",
        ),
        ("capabilities/0/reducedMotion", "faster", "capabilities.0.reducedMotion"),
        ("capabilities/0/substitute", ..., "capabilities.0.substitute"),
        ("capabilities/0/substitute/capability", HOP, "capabilities.0.substitute.capability"),
        ("capabilities/0/substitute/capability", "no.such", "capabilities.0.substitute.capability"),
        ("capabilities/0/substitute/capability", "notice.show", "capabilities.0.substitute.capability"),
        (
            "capabilities/0/substitute/capability",
            "vendor.dev.companion-broker.stretch",
            "capabilities.0.substitute.capability",
        ),
        ("capabilities/0/substitute/params", {}, "capabilities.0.substitute.params.expression"),
    ],
)
def test_whatever_takes_a_name_or_a_right_or_breaks_a_rule_is_refused(
    path: str, value: Any, place: str
) -> None:
    assert refused(changed(path, value)).startswith(place)


@pytest.mark.parametrize(
    "name",
    ["../a.svg", "a/b.svg", "/a.svg", ".svg", ".a.svg", "a.svg\n", "A.svg", "a.gif", "a.svg.exe", "c:a.svg"],
)
def test_pictures_lie_beside_the_manifest_under_plain_names(name: str) -> None:
    reason = refused(changed("characters/0/expressions/happy/pictures", [name]))
    assert reason.startswith("characters.0.expressions.happy.pictures.0: ")


@pytest.mark.requirement("CP-7.3")
def test_no_pack_takes_what_another_one_has() -> None:
    first = pip()
    for second, place in (
        (pip(), "capabilities.0.id"),
        (dot(id="pip"), "characters.0.id"),
        (dot(name="PIP"), "characters.0.name"),
    ):
        with pytest.raises(BadPack, match=f"{place}: is taken"):
            catalog_with(first, second)


def test_two_of_a_kind_in_one_pack_are_refused() -> None:
    twice = pip()
    twice["characters"] *= 2
    assert refused(twice) == "characters.1.id: is taken"
    twice = pip()
    twice["capabilities"] *= 2
    assert refused(twice) == "capabilities.1.id: is taken"


def test_a_character_may_do_what_another_character_of_the_house_does() -> None:
    stretch = "vendor.dev.companion-broker.stretch"
    catalog = catalog_with(dot(capabilities=[stretch], wears={stretch: "neutral"}))
    assert catalog.descriptions[stretch].characters == ("momo", "dot-0")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"a": 1, "a": 1}',
        b'{"a": NaN}',
        b"\xff",
        b'"\\ud800"',
        b"[" * 100,
        b"1e999",
    ],
)
def test_what_is_no_manifest_at_all_is_refused(content: bytes) -> None:
    with pytest.raises(BadPack):
        read_manifest(content)


@pytest.mark.requirement("CP-4.10")
def test_a_reason_quotes_no_value_and_can_be_looked_at() -> None:
    secret = "sk-\u202e-secret"
    for path in ("characters/0/id", "capabilities/0/description", "capabilities/0/substitute/capability"):
        assert "secret" not in refused(changed(path, secret))
    reason = refused(changed(f"characters/0/{chr(0x202E)}", 1))
    assert reason == "characters.0.<U+202E>: unknown member"


PLACES = [
    "formatVersion",
    "characters",
    "characters/0",
    "characters/0/id",
    "characters/0/name",
    "characters/0/capabilities",
    "characters/0/expressions",
    "characters/0/expressions/happy",
    "characters/0/wears",
    "capabilities",
    "capabilities/0",
    "capabilities/0/inputSchema",
    "capabilities/0/inputSchema/properties",
    "capabilities/0/inputSchema/properties/times",
    "capabilities/0/substitute",
    "capabilities/0/substitute/params",
]


@given(st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=2))
def test_whatever_is_in_it_the_answer_is_a_catalog_or_a_reason(changes: list[tuple[str, JSON]]) -> None:
    manifest: Any = pip()
    for path, value in changes:
        with suppress(TypeError, KeyError, IndexError):  # an earlier change may have taken the place away
            target, last = place_in(manifest, path)
            target[last] = value
    with suppress(BadPack):
        catalog_with(manifest)


@pytest.mark.requirement("CP-2.5")
def test_the_largest_packs_still_fit_a_frame() -> None:
    catalog = CATALOG
    for number in range(MAX_PACKS):
        catalog = add_pack(catalog, parsed(largest(number)))
    assert len(catalog.characters) == len(CATALOG.characters) + MAX_PACKS * MAX_CHARACTERS
    for description in catalog.descriptions.values():
        assert len(encode(unstructure(description))) < 48 * 1024
    for style in catalog.styles.values():
        assert len(encode([style.id, style.name, *style.capabilities])) < 48 * 1024
    for character in catalog.characters.values():
        entry: list[JSON] = [character.name, *character.capabilities, *character.expressions]
        assert len(encode(entry)) < 48 * 1024


def largest(number: int) -> dict[str, Any]:
    """A pack with as much in it as there may be."""
    own = [f"vendor.org.{'e' * 60}.{'x' * 40}_{number}_{at}" for at in range(MAX_CAPABILITIES)]
    faces = {f"face{at:060}": {"pictures": ["dot.svg"]} for at in range(MAX_EXPRESSIONS)}
    core = [id for id in CATALOG.capabilities if not id.startswith("vendor.")]
    characters = [
        {
            "id": f"c-{number}-{at}".ljust(64, "x"),
            "name": f"C {number} {at} ".ljust(64, "x"),
            "capabilities": [*core, *own],
            "expressions": faces if at == 0 else {"a": {"pictures": ["dot.svg"]}},
            "wears": dict.fromkeys(own, next(iter(faces)) if at == 0 else "a"),
        }
        for at in range(MAX_CHARACTERS)
    ]
    template = pip()["capabilities"][0]
    capabilities = [{**template, "id": id, "description": "x" * 400} for id in own]
    manifest = {"formatVersion": 1, "characters": characters, "capabilities": capabilities}
    assert len(json.dumps(manifest)) <= MAX_MANIFEST_BYTES
    return manifest
