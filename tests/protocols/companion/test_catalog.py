"""The capability registry and the core catalog (companion.md, Discovery; the original's section 2)."""

from __future__ import annotations

import attrs
import jsonschema
import pytest

from protocols.companion.capabilities import (
    Capability,
    Catalog,
    Character,
    Interaction,
    Kind,
    Style,
    Tone,
)
from protocols.companion.catalog import CATALOG, INTERACTION_CHOOSE, NOTICE_SHOW
from protocols.errors import InvalidValue
from protocols.json_values import JSON, JSONObject
from protocols.structure import json_schema, unstructure

TWO_OPTIONS: list[JSON] = [{"id": "y", "label": "Yes"}, {"id": "n", "label": "No"}]


def choice(**members: JSON) -> JSONObject:
    return {"title": "Go?", "options": TWO_OPTIONS, **members}


@pytest.mark.requirement("CP-2.13")
def test_the_schemas_of_choose_are_exactly_the_originals() -> None:
    described = INTERACTION_CHOOSE.describe()
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
    written = unstructure(INTERACTION_CHOOSE.describe())
    assert isinstance(written, dict)
    assert {name: value for name, value in written.items() if not name.endswith("Schema")} == {
        "id": "interaction.choose",
        "version": "0.1.0",
        "description": INTERACTION_CHOOSE.description,
        "characters": ["aion"],
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
        "limits": {"minTimeoutMs": 1000, "maxTimeoutMs": 3600000},
    }


@pytest.mark.requirement("CP-2.9")
def test_no_business_output_is_said_and_not_left_out() -> None:
    assert NOTICE_SHOW.describe().output_schema == {"type": "null"}


@pytest.mark.requirement("CP-2.2")
@pytest.mark.parametrize("capability", CATALOG.capabilities.values(), ids=lambda capability: capability.id)
def test_the_described_schema_is_the_one_that_checks(capability: Capability) -> None:
    described = capability.describe()
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


@pytest.mark.requirement("CP-7.1")
def test_the_catalog_revision_changes_with_the_content_and_only_with_it() -> None:
    def catalog(name: str, capability: Capability) -> Catalog:
        return Catalog.of((Character("aion", name),), (Style("default", "Default", ()),), (capability,))

    revision = catalog("Aion", NOTICE_SHOW).revision
    assert catalog("Aion", NOTICE_SHOW).revision == revision
    assert catalog("Other", NOTICE_SHOW).revision != revision
    assert catalog("Aion", attrs.evolve(NOTICE_SHOW, version="0.1.1")).revision != revision


def test_a_catalog_has_no_id_twice_and_no_id_that_leads_nowhere() -> None:
    character, style = Character("aion", "Aion"), Style("default", "Default", ())
    for characters, styles, capabilities in (
        ((character, character), (style,), ()),
        ((character,), (Style("default", "Default", ("no.such",)),), ()),
        ((), (style,), (NOTICE_SHOW,)),
    ):
        with pytest.raises(ValueError, match="id"):
            Catalog.of(characters, styles, capabilities)


def test_every_capability_has_a_character_and_a_style() -> None:
    for capability in CATALOG.capabilities.values():
        assert set(capability.characters) <= set(CATALOG.characters)
        assert capability.id in CATALOG.default_style(capability).capabilities
