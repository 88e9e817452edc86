"""CP-2.2: the schemas come from the same declarations as the codec, and both accept the same values.

One difference is known and left out: JSON Schema takes 1.0 for an integer (and for the number 1 of an enum),
the codec does not (wire.md, strict JSON).
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from protocols.errors import InvalidValue, OurError
from protocols.json_values import JSON, JSONObject
from protocols.structure import absent, integer, json_schema, number, structure, text, unstructure
from tests.protocols.json_strategies import json_values
from tests.protocols.test_structure import Sample, samples

pytestmark = pytest.mark.requirement("CP-2.2", "CP-2.9")

STRICT = Draft202012Validator(json_schema(Sample))
LENIENT = Draft202012Validator(json_schema(Sample, unknown="ignore"))


def without_whole_floats(value: JSON) -> JSON:
    """The value with a fraction in every float that JSON Schema would take for an integer."""
    if isinstance(value, float):
        return value if not value.is_integer() else 0.5
    if isinstance(value, list):
        return [without_whole_floats(item) for item in value]
    if isinstance(value, dict):
        return {name: without_whole_floats(member) for name, member in value.items()}
    return value


def replaced(value: JSON, data: st.DataObject) -> JSON:
    """The value with something somewhere in it put in, taken out or replaced."""
    if data.draw(st.integers(0, 3)) == 0 or not isinstance(value, dict | list) or not value:
        return data.draw(near_misses)
    if isinstance(value, list):
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], replaced(value[index], data), *value[index + 1 :]]
    name = data.draw(st.sampled_from(sorted(value)))
    if data.draw(st.booleans()):
        return {**value, name: replaced(value[name], data)}
    if data.draw(st.booleans()):
        return {**value, name + "x": 1}
    return {other: member for other, member in value.items() if other != name}


near_misses: st.SearchStrategy[JSON] = json_values | st.sampled_from(
    [
        "",
        "t" * 9,
        0,
        999,
        1000,
        60_001,
        True,
        None,
        -0.1,
        1.1,
        "information",
        "choice",
        1,
        2,
        [],
        {},
        ["abcd"],
        [1],
    ]
)


def is_taken(value: JSON, **how: Any) -> bool:
    try:
        structure(Sample, value, **how)
    except InvalidValue:
        return False
    return True


@given(samples, st.data())
def test_codec_and_schema_agree(sample: Sample, data: st.DataObject) -> None:
    value = unstructure(sample)
    for _ in range(data.draw(st.integers(0, 2))):
        value = replaced(value, data)
    value = without_whole_floats(value)
    assert is_taken(value) == STRICT.is_valid(value)
    assert is_taken(value, unknown="ignore") == LENIENT.is_valid(value)


KINDS: dict[str, st.SearchStrategy[JSON]] = {
    "str": st.text("ab🐈", max_size=4),
    "int": st.integers(-4, 4),
    "float": st.floats(-4, 4) | st.integers(-4, 4),
    "bool": st.booleans(),
    "tuple[int, ...]": st.lists(st.integers(-4, 4), max_size=4),
    "dict[str, int]": st.dictionaries(st.text("ab"), st.integers(-4, 4), max_size=4),
}
HELPERS: dict[str, Any] = {"str": text, "int": integer, "float": number}


@given(st.data())
def test_codec_and_schema_agree_on_any_class(data: st.DataObject) -> None:
    kinds = data.draw(st.dictionaries(st.sampled_from(["a", "b_c", "d"]), st.sampled_from(sorted(KINDS))))
    fields, annotations = {}, {}
    for name, kind in kinds.items():
        nullable, left_out = data.draw(st.booleans()), data.draw(st.booleans())
        low = data.draw(st.integers(0, 3))
        bounded = HELPERS.get(
            kind, lambda _low, _high, absent: attrs.field(default=None, metadata={"absent": absent})
        )
        fields[name] = bounded(low, low + data.draw(st.integers(0, 2)), absent=left_out)
        annotations[name] = f"{kind} | None" if nullable or left_out else kind
    message = attrs.make_class("Message", fields, frozen=True, kw_only=True)
    message.__annotations__ = annotations
    validator = Draft202012Validator(json_schema(message))
    for _ in range(4):
        value = data.draw(messages(kinds))
        try:
            structure(message, value)
        except InvalidValue:
            assert not validator.is_valid(value)
        else:
            assert validator.is_valid(value)


def messages(kinds: dict[str, str]) -> st.SearchStrategy[JSONObject]:
    wire = {"a": "a", "b_c": "bC", "d": "d"}
    mixed = st.none() | st.one_of(*KINDS.values()).map(without_whole_floats)
    members = {wire[name]: KINDS[kind].map(without_whole_floats) | mixed for name, kind in kinds.items()}
    return st.fixed_dictionaries({}, optional={**members, "other": st.just(1)})


def test_a_whole_float_is_an_integer_to_the_schema_only() -> None:
    value: JSON = {"title": "t", "timeoutMs": 2000.0}
    assert STRICT.is_valid(value)
    assert not is_taken(value)


def test_the_schema_itself_is_valid_and_says_what_the_class_declares() -> None:
    schema = json_schema(Sample)
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["title", "timeoutMs"]
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["title"] == {"type": "string", "minLength": 1, "maxLength": 8}
    assert properties["fraction"] == {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    assert properties["tone"] == {"enum": ["information", "warning"], "default": "information"}
    assert properties["level"] == {"enum": [1, 2, None]}
    assert properties["kind"] == {"const": "choice", "default": "choice"}
    assert properties["detail"] == {"type": "string", "minLength": 0, "maxLength": 8}
    assert properties["anything"] == {}


def test_a_message_without_members_says_so() -> None:
    message = attrs.make_class("Empty", {})
    assert json_schema(message) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_a_type_without_a_schema_is_our_own_error() -> None:
    message = attrs.make_class("Message", {"a": absent()})
    message.__annotations__ = {"a": "complex | None"}
    with pytest.raises(OurError):
        json_schema(message)
