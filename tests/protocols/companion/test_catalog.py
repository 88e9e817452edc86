"""The capability registry and the core catalog (companion.md, Discovery; the original's section 2)."""

from __future__ import annotations

import attrs
import jsonschema
import pytest

from protocols.companion.capabilities import (
    Capability,
    Catalog,
    Interaction,
    Kind,
    Substitute,
    Tone,
)
from protocols.companion.catalog import (
    AION,
    ANIMATION_PLAY,
    CATALOG,
    INTERACTION_CHOOSE,
    MOMO,
    NOTICE_SHOW,
    STRETCH,
)
from protocols.companion.characters import Character, Expression, Style
from protocols.errors import InvalidValue
from protocols.json_values import JSON, JSONObject
from protocols.structure import json_schema, unstructure

TWO_OPTIONS: list[JSON] = [{"id": "y", "label": "Yes"}, {"id": "n", "label": "No"}]


def choice(**members: JSON) -> JSONObject:
    return {"title": "Go?", "options": TWO_OPTIONS, **members}


@pytest.mark.requirement("CP-2.13")
def test_the_schemas_of_choose_are_exactly_the_originals() -> None:
    described = CATALOG.descriptions["interaction.choose"]
    assert described.input_schema == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 160},
            "options": {
                "type": "array",
                "minItems": 2,
                "maxItems": 5,
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "minLength": 1, "maxLength": 64},
                        "label": {"type": "string", "minLength": 1, "maxLength": 24},
                    },
                    "required": ["id", "label"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["title", "options"],
        "additionalProperties": False,
    }
    assert described.output_schema == {
        "type": "object",
        "properties": {"selectedId": {"type": "string"}},
        "required": ["selectedId"],
        "additionalProperties": False,
    }


@pytest.mark.requirement("CP-2.6", "CP-2.9")
def test_a_description_has_every_field_that_a_capability_must_declare() -> None:
    written = unstructure(CATALOG.descriptions["interaction.choose"])
    assert isinstance(written, dict)
    assert {name: value for name, value in written.items() if not name.endswith("Schema")} == {
        "id": "interaction.choose",
        "version": "0.1.0",
        "description": INTERACTION_CHOOSE.description,
        "characters": ["aion", "momo"],
        "kind": "interaction",
        "interaction": "choice",
        "requiredScopes": ["interact"],
        "updatableFields": [],
        "completion": "user_response",
        "cancelable": True,
        "onCancel": "withdraw",
        "onHidden": "cancel",
        "queue": "fifo_per_client",
        "evictable": False,
        "pauseDisplayOn": [],
        "reducedMotion": "same",
        "substitute": None,
        "limits": {"minTimeoutMs": 1000, "maxTimeoutMs": 3600000},
    }


@pytest.mark.requirement("CP-2.9")
def test_no_business_output_is_said_and_not_left_out() -> None:
    assert CATALOG.descriptions["notice.show"].output_schema == {"type": "null"}


@pytest.mark.requirement("CP-2.9")
def test_empty_parameters_are_said_and_not_left_out() -> None:
    assert CATALOG.descriptions[STRETCH.id].input_schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.requirement("CP-2.2")
@pytest.mark.parametrize("capability", CATALOG.capabilities.values(), ids=lambda capability: capability.id)
def test_the_described_schema_is_the_one_that_checks(capability: Capability) -> None:
    described = CATALOG.descriptions[capability.id]
    assert isinstance(capability.params, type)
    assert described.input_schema == json_schema(capability.params)
    jsonschema.Draft202012Validator.check_schema(described.input_schema)
    jsonschema.Draft202012Validator.check_schema(described.output_schema)


@pytest.mark.requirement("CP-2.14")
def test_two_options_with_one_id_are_refused() -> None:
    twice: list[JSON] = [{"id": "y", "label": "Yes"}, {"id": "y", "label": "No"}]
    with pytest.raises(InvalidValue) as error:
        INTERACTION_CHOOSE.normalize(choice(options=twice))
    assert error.value.field == "options"


@pytest.mark.requirement("CP-2.13")
@pytest.mark.parametrize(
    ("params", "field", "limit"),
    [
        (choice(title=""), "title", 1),
        (choice(title="x" * 161), "title", 160),
        (choice(options=TWO_OPTIONS[:1]), "options", 2),
        (choice(options=[{"id": str(n), "label": "x"} for n in range(6)]), "options", 5),
        (choice(options=[TWO_OPTIONS[0], {"id": "n", "label": "x" * 25}]), "options.1.label", 24),
        (choice(options=[TWO_OPTIONS[0], {"id": "x" * 65, "label": "No"}]), "options.1.id", 64),
        (choice(options=[TWO_OPTIONS[0], {"id": "n", "label": "No", "hint": "x"}]), "options.1.hint", None),
        (choice(source="system"), "source", None),
        ({"title": "Go?"}, "options", None),
    ],
)
def test_a_choice_outside_its_bounds_is_refused_by_name(
    params: JSONObject, field: str, limit: int | None
) -> None:
    with pytest.raises(InvalidValue) as error:
        INTERACTION_CHOOSE.normalize(params)
    assert (error.value.field, error.value.limit) == (field, limit)


@pytest.mark.requirement("CP-2.13")
def test_bounds_count_code_points() -> None:
    params = choice(title="\N{CAT FACE}" * 160)
    assert INTERACTION_CHOOSE.normalize(params) == params


@pytest.mark.requirement("CP-2.12")
def test_a_notice_has_defaults_and_a_tone_apart_from_any_style() -> None:
    normal = NOTICE_SHOW.normalize({"text": "hello"})
    assert normal == {"text": "hello", "tone": "information", "displayMs": 8000}
    assert [tone.value for tone in Tone] == ["information", "success", "warning", "error"]
    with pytest.raises(InvalidValue):
        NOTICE_SHOW.normalize({"text": "hello", "style": "default"})


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "x" * 2001}, "text"),
        ({"text": "x", "title": ""}, "title"),
        ({"text": "x", "title": "x" * 161}, "title"),
        ({"text": "x", "title": None}, "title"),
        ({"text": "x", "displayMs": 999}, "displayMs"),
        ({"text": "x", "displayMs": 60001}, "displayMs"),
        ({"text": "x", "displayMs": True}, "displayMs"),
        ({"text": "x", "tone": "angry"}, "tone"),
    ],
)
def test_a_notice_outside_its_bounds_is_refused_by_name(params: JSONObject, field: str) -> None:
    with pytest.raises(InvalidValue) as error:
        NOTICE_SHOW.normalize(params)
    assert error.value.field == field


@pytest.mark.requirement("G09")
@pytest.mark.parametrize(
    ("capability", "low", "high"), [(NOTICE_SHOW, 1_000, 600_000), (INTERACTION_CHOOSE, 1_000, 3_600_000)]
)
def test_the_bounds_of_the_timeout_are_the_capabilitys(capability: Capability, low: int, high: int) -> None:
    capability.check_timeout(low)
    capability.check_timeout(high)
    for timeout_ms, limit in ((low - 1, low), (0, low), (-1, low), (high + 1, high), (2**31, high)):
        with pytest.raises(InvalidValue) as error:
            capability.check_timeout(timeout_ms)
        assert (error.value.field, error.value.limit) == ("timeoutMs", limit)


@pytest.mark.requirement("CP-2.10")
def test_kinds_and_interactions_are_the_originals_words() -> None:
    assert [kind.value for kind in Kind] == ["animation", "notice", "progress", "interaction"]
    assert [interaction.value for interaction in Interaction] == ["none", "choice", "text"]


def catalog(character: Character, *capabilities: Capability) -> Catalog:
    ids = tuple(capability.id for capability in capabilities)
    return Catalog.of((character,), (Style("default", "Default", ids),), capabilities)


@pytest.mark.requirement("CP-7.1")
def test_the_catalog_revision_changes_with_the_content_and_only_with_it() -> None:
    plain = Character("aion", "Aion")
    revision = catalog(plain, NOTICE_SHOW).revision
    assert catalog(plain, NOTICE_SHOW).revision == revision
    others = [
        catalog(Character("aion", "Other"), NOTICE_SHOW),
        catalog(Character("aion", "Aion", (NOTICE_SHOW.id,)), NOTICE_SHOW),
        catalog(Character("aion", "Aion", (), {"happy": Expression()}), NOTICE_SHOW),
        catalog(plain, attrs.evolve(NOTICE_SHOW, version="0.1.1")),
        catalog(plain, NOTICE_SHOW, INTERACTION_CHOOSE),
    ]
    assert len({revision, *(other.revision for other in others)}) == 1 + len(others)


def test_a_catalog_has_no_id_twice_and_no_id_that_leads_nowhere() -> None:
    character, style = Character("aion", "Aion"), Style("default", "Default", ())
    for characters, styles, capabilities in (
        ((character, character), (style,), ()),
        ((character,), (Style("default", "Default", ("no.such",)),), ()),
        ((character,), (style,), (NOTICE_SHOW,)),
        ((Character("aion", "Aion", ("no.such",)),), (style,), ()),
        ((Character("aion", "Aion", (), {}, {"no.such": "happy"}),), (style,), ()),
    ):
        with pytest.raises(ValueError, match="id"):
            Catalog.of(characters, styles, capabilities)


def test_a_character_wears_only_what_it_has() -> None:
    with pytest.raises(ValueError, match="id"):
        catalog(Character("aion", "Aion", (NOTICE_SHOW.id,), {}, {NOTICE_SHOW.id: "happy"}), NOTICE_SHOW)


@pytest.mark.requirement("CP-2.16")
def test_a_substitute_gives_the_same_guarantee() -> None:
    def with_substitute(id: str, **params: JSON) -> Capability:
        return attrs.evolve(STRETCH, substitute=Substitute(capability=id, params=params))

    plain = Character("aion", "Aion")
    catalog(plain, ANIMATION_PLAY, with_substitute("animation.play", expression="happy"))
    for wrong in (
        with_substitute("notice.show", text="x"),
        with_substitute(STRETCH.id),
        with_substitute("no.such"),
    ):
        with pytest.raises(ValueError, match=r"guarantee|no entry"):
            catalog(plain, ANIMATION_PLAY, NOTICE_SHOW, wrong)
    with pytest.raises(InvalidValue):
        catalog(plain, ANIMATION_PLAY, with_substitute("animation.play"))


@pytest.mark.requirement("CP-2.4", "CP-2.15")
def test_the_built_in_characters_differ_in_what_they_support() -> None:
    core = {id for id in CATALOG.capabilities if not id.startswith("vendor.")}
    assert set(AION.capabilities) == core
    assert set(MOMO.capabilities) == core - {"progress.track"} | {"vendor.dev.companion-broker.stretch"}
    assert set(AION.expressions) & set(MOMO.expressions), "some expressions are general"
    assert set(AION.expressions) ^ set(MOMO.expressions), "and some are not"
    assert CATALOG.default_character is AION


@pytest.mark.requirement("CP-2.15")
def test_each_character_has_its_own_face_for_a_general_capability() -> None:
    assert AION.wears["interaction.choose"] != MOMO.wears["interaction.choose"]


@pytest.mark.requirement("CP-2.7")
def test_a_style_says_what_it_applies_to_and_the_default_one_to_all() -> None:
    assert set(CATALOG.default_style.capabilities) == set(CATALOG.capabilities)
    compact = CATALOG.styles["compact"]
    assert set(compact.capabilities) < set(CATALOG.capabilities)


@pytest.mark.requirement("CP-2.10", "CP-2.15")
def test_what_is_not_of_the_core_carries_a_namespace_and_asks_nobody_anything() -> None:
    core = [id for id in CATALOG.capabilities if not id.startswith("vendor.")]
    assert core == [
        "animation.play",
        "notice.show",
        "progress.track",
        "interaction.choose",
        "interaction.ask_text",
    ]
    for id in CATALOG.capabilities.keys() - core:
        assert CATALOG.capabilities[id].kind is Kind.ANIMATION


def test_every_capability_has_a_character() -> None:
    for description in CATALOG.descriptions.values():
        assert description.characters
