"""Params that a pack declares: what may be declared, and that this is what is checked (CP-2.2, CP-2.9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from protocols.companion.declared import MAX_PROPERTIES, DeclaredParams, InputSchema
from protocols.errors import InvalidValue
from protocols.json_values import JSON, JSONObject
from protocols.structure import structure
from tests.protocols.json_strategies import json_values
from tests.protocols.test_json_schema import without_whole_floats

COUNT: JSONObject = {"type": "integer", "minimum": 1, "maximum": 5}
SIDE: JSONObject = {"type": "string", "enum": ["left", "right"]}


def schema(properties: dict[str, Any], required: list[str] | None = None, **others: JSON) -> JSONObject:
    names: list[JSON] = [*(required or [])]
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
        **others,
    }


def declared(properties: dict[str, Any], required: list[str] | None = None, **others: JSON) -> DeclaredParams:
    return DeclaredParams(structure(InputSchema, schema(properties, required, **others)))


def refused(properties: dict[str, Any], required: list[str] | None = None, **others: JSON) -> str:
    """The place at which a schema is refused."""
    with pytest.raises(InvalidValue) as error:
        declared(properties, required, **others)
    return error.value.field


@pytest.mark.requirement("CP-2.9", "CP-2.2")
def test_the_schema_is_told_as_it_was_written() -> None:
    written = schema(
        {
            "times": {**COUNT, "default": 2, "description": "How often."},
            "height": {"type": "number", "minimum": 0.5, "maximum": 2},
            "side": SIDE,
            "chirp": {"type": "boolean", "default": False},
        },
        ["side"],
    )
    assert DeclaredParams(structure(InputSchema, written)).schema == written
    Draft202012Validator.check_schema(written)
    nothing = schema({})
    assert DeclaredParams(structure(InputSchema, nothing)).schema == nothing


@pytest.mark.requirement("CP-1.4")
@pytest.mark.parametrize(
    "text",
    [
        {"type": "string"},
        {"type": "string", "maxLength": 10},
        {"type": "string", "pattern": "x"},
        {"type": "string", "format": "uri"},
        {"type": "string", "enum": []},
        {"type": "string", "enum": ["x" * 65]},
        {"type": "string", "enum": ["a", "a"]},
        {"type": "array", "items": SIDE},
        {"type": "object", "properties": {}},
        {"type": ["string", "null"], "enum": ["a"]},
        {"$ref": "#/definitions/x"},
        {"enum": ["a"]},
        {"const": "a"},
        {},
        True,
    ],
)
def test_no_text_of_a_clients_own_and_nothing_without_bounds_can_be_declared(text: JSON) -> None:
    assert refused({"words": text}).startswith("properties.words")


@pytest.mark.parametrize(
    "number",
    [
        {"type": "integer"},
        {"type": "integer", "minimum": 1},
        {"type": "number", "maximum": 1},
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "integer", "minimum": 0, "maximum": 2**53 + 2},
        {"type": "integer", "minimum": 0, "maximum": 1e999},
        {"type": "integer", "minimum": True, "maximum": 2},
        {**COUNT, "exclusiveMaximum": 5},
        {**COUNT, "enum": ["1"]},
        {"type": "boolean", "minimum": 0, "maximum": 1},
    ],
)
def test_numbers_have_both_bounds(number: JSON) -> None:
    assert refused({"times": number}).startswith("properties.times")


@pytest.mark.parametrize(
    ("one", "default"), [(COUNT, 0), (COUNT, 1.0), (COUNT, True), (COUNT, "1"), (SIDE, "up"), (SIDE, 1)]
)
def test_a_default_is_within_its_own_bounds(one: JSONObject, default: JSON) -> None:
    assert refused({"x": {**one, "default": default}}) == "properties.x.default"


def test_a_schema_is_closed_and_small_and_says_all_of_it() -> None:
    for name in ("", "9lives", "a b", "x" * 65, "__proto__", "A"):
        assert refused({name: COUNT}).startswith("properties")
    assert refused({f"n{number}": COUNT for number in range(MAX_PROPERTIES + 1)}) == "properties"
    assert refused({}, additionalProperties=True) == "additionalProperties"
    assert refused({}, type="array") == "type"
    assert refused({}, title="x") == "title"
    assert refused({"x": COUNT}, ["y"]) == "required"
    assert refused({"x": COUNT}, ["x", "x"]) == "required"
    assert refused({"x": {**COUNT, "default": 1}}, ["x"]) == "required"


@pytest.mark.parametrize(
    ("params", "field", "reason", "limit"),
    [
        ({}, "side", "missing", None),
        ({"side": "up"}, "side", "unknown value", None),
        ({"side": "left", "times": 0}, "times", "too small", 1),
        ({"side": "left", "times": 6}, "times", "too large", 5),
        ({"side": "left", "times": 1.0}, "times", "not of its type", None),
        ({"side": "left", "times": True}, "times", "not of its type", None),
        ({"side": "left", "times": None}, "times", "not of its type", None),
        ({"side": "left", "source": "system"}, "source", "unknown member", None),
        ({"side": 1}, "side", "unknown value", None),
    ],
)
def test_params_outside_the_schema_are_refused_by_name(
    params: JSONObject, field: str, reason: str, limit: int | None
) -> None:
    params_of = declared({"times": {**COUNT, "default": 2}, "side": SIDE}, ["side"])
    with pytest.raises(InvalidValue) as error:
        params_of.normalize(params)
    assert (error.value.field, error.value.limit) == (field, limit)
    assert error.value.reason in (reason, "not of its type")


def test_what_is_left_out_is_its_default() -> None:
    params = declared({"times": {**COUNT, "default": 2}, "side": SIDE, "chirp": {"type": "boolean"}})
    assert params.normalize({}) == {"times": 2}
    assert params.normalize({"side": "left", "times": 3}) == {"times": 3, "side": "left"}


numbers = st.tuples(st.integers(-9, 9), st.integers(0, 9)).map(
    lambda pair: {"minimum": pair[0], "maximum": pair[0] + pair[1]}
)
properties = st.one_of(
    numbers.map(lambda bounds: {"type": "integer", **bounds}),
    numbers.map(lambda bounds: {"type": "number", **bounds}),
    st.lists(st.sampled_from("abcd"), min_size=1, unique=True).map(
        lambda words: {"type": "string", "enum": words}
    ),
    st.just({"type": "boolean"}),
)
values = st.integers(-12, 12) | st.floats(-12, 12) | st.sampled_from("abcde") | st.booleans() | json_values


@pytest.mark.requirement("CP-2.2", "CP-7.4")
@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), properties), st.data())
def test_what_the_schema_says_is_what_is_taken(declaring: dict[str, Any], data: st.DataObject) -> None:
    required = data.draw(st.lists(st.sampled_from(sorted(declaring)), unique=True)) if declaring else []
    params_of = declared(declaring, required)
    told = Draft202012Validator(params_of.schema)
    for _ in range(4):
        params = data.draw(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), values))
        params = {name: without_whole_floats(value) for name, value in params.items()}
        try:
            normal = params_of.normalize(params)
        except InvalidValue:
            assert not told.is_valid(params)
        else:
            assert told.is_valid(params)
            assert told.is_valid(normal)
            assert params.items() <= normal.items()
