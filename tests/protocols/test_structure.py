"""The strict codec of message classes: what is taken, what is refused, how the first wrong member is told."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, Literal, TypeAlias

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import InvalidValue, OurError
from protocols.json_values import JSON, JSONObject
from protocols.strict_json import decode, encode
from protocols.structure import array, integer, number, structure, text, unstructure
from tests.protocols.json_strategies import json_objects, json_values

Scope: TypeAlias = Literal["discover", "interact"]


class Tone(StrEnum):
    INFORMATION = "information"
    WARNING = "warning"


class Level(Enum):
    LOW = 1
    HIGH = 2


@attrs.frozen(kw_only=True)
class Option:
    id: str = text(1, 4)
    label: str = text(1, 8)


@attrs.frozen(kw_only=True)
class Sample:
    title: str = text(1, 8)
    timeout_ms: int = integer(1000, 60_000)
    options: tuple[Option, ...] = array(1, 3, default=())
    scopes: tuple[Scope, ...] = ()
    names: tuple[str, ...] = array(0, 2, each=(1, 3), default=())
    fraction: float | None = number(0, 1, default=None)
    tone: Tone = Tone.INFORMATION
    level: Level | None = None
    armed: bool = False
    kind: Literal["choice"] = "choice"
    detail: str | None = text(0, 8, absent=True)
    option: Option | None = attrs.field(default=None, metadata={"absent": True})
    counts: dict[str, int] = attrs.field(factory=dict)
    params: JSONObject = attrs.field(factory=dict)
    anything: JSON = None
    app_key: str = text(0, 8, default="", wire="bundle")


LEAST: JSONObject = {"title": "t", "timeoutMs": 1000}

options = st.builds(
    Option, id=st.text("ab🐈", min_size=1, max_size=4), label=st.text("xy", min_size=1, max_size=8)
)
samples = st.builds(
    Sample,
    title=st.text("a猫", min_size=1, max_size=8),
    timeout_ms=st.integers(1000, 60_000),
    options=st.lists(options, min_size=1, max_size=3).map(tuple),
    scopes=st.lists(st.sampled_from(["discover", "interact"])).map(tuple),
    names=st.lists(st.text("n", min_size=1, max_size=3), max_size=2).map(tuple),
    fraction=st.none() | st.floats(0, 1),
    tone=st.sampled_from(Tone),
    level=st.none() | st.sampled_from(Level),
    armed=st.booleans(),
    detail=st.none() | st.text("d", max_size=8),
    option=st.none() | options,
    counts=st.dictionaries(st.text("k"), st.integers(-5, 5)),
    params=json_objects,
    anything=json_values,
)


def refusal(change: dict[str, JSON], **how: Any) -> tuple[str, str, int | None]:
    """Field, reason and limit with which the least message, so changed, is refused."""
    with pytest.raises(InvalidValue) as caught:
        structure(Sample, {**LEAST, **change}, **how)
    assert caught.value.__context__ is None or isinstance(caught.value.__context__, InvalidValue)
    return caught.value.field, caught.value.reason, caught.value.limit


@given(samples)
def test_what_is_written_is_read_as_the_same(sample: Sample) -> None:
    assert structure(Sample, unstructure(sample)) == sample
    assert structure(Sample, decode(encode(unstructure(sample))).value) == sample


def test_members_are_camel_case_or_as_they_are_named() -> None:
    written = unstructure(Sample(title="t", timeout_ms=1000, app_key="org.x"))
    assert written == {
        **LEAST,
        "options": [],
        "scopes": [],
        "names": [],
        "fraction": None,
        "tone": "information",
        "level": None,
        "armed": False,
        "kind": "choice",
        "counts": {},
        "params": {},
        "anything": None,
        "bundle": "org.x",
    }


def test_what_is_left_out_has_its_default() -> None:
    assert structure(Sample, LEAST) == Sample(title="t", timeout_ms=1000)


@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_a_message_is_an_object(value: JSON) -> None:
    with pytest.raises(InvalidValue, match=r"^value: not an object$"):
        structure(Sample, value)


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"title": 1}, "title", "not a string"),
        ({"title": None}, "title", "not a string"),
        ({"timeoutMs": True}, "timeoutMs", "not an integer"),
        ({"timeoutMs": 60000.0}, "timeoutMs", "not an integer"),
        ({"timeoutMs": "1000"}, "timeoutMs", "not an integer"),
        ({"armed": 1}, "armed", "not true or false"),
        ({"armed": "no"}, "armed", "not true or false"),
        ({"fraction": True}, "fraction", "not a number"),
        ({"fraction": "0.5"}, "fraction", "not a number"),
        ({"fraction": float("inf")}, "fraction", "number is not finite"),
        ({"tone": "loud"}, "tone", "unknown value"),
        ({"tone": ["information"]}, "tone", "unknown value"),
        ({"level": True}, "level", "unknown value"),
        ({"level": 1.0}, "level", "unknown value"),
        ({"kind": None}, "kind", "unknown value"),
        ({"scopes": "discover"}, "scopes", "not an array"),
        ({"scopes": ["discover", "all"]}, "scopes.1", "unknown value"),
        ({"options": [{"id": "a", "label": "x"}, {"id": "b"}]}, "options.1.label", "missing"),
        ({"options": [{"id": "a", "label": "x", "more": 1}]}, "options.0.more", "unknown member"),
        ({"options": {"0": 1}}, "options", "not an array"),
        ({"detail": None}, "detail", "not a string"),
        ({"option": None}, "option", "not an object"),
        ({"counts": {"a": 1, "b": None}}, "counts.b", "not an integer"),
        ({"counts": []}, "counts", "not an object"),
        ({"params": [1]}, "params", "not an object"),
        ({"app_key": "x"}, "app_key", "unknown member"),
        ({"appKey": "x"}, "appKey", "unknown member"),
    ],
)
def test_nothing_is_coerced(change: dict[str, JSON], field: str, reason: str) -> None:
    assert refusal(change) == (field, reason, None)


@pytest.mark.parametrize(
    ("change", "field", "reason", "limit"),
    [
        ({"title": ""}, "title", "too short", 1),
        ({"title": "🐈" * 9}, "title", "too long", 8),
        ({"timeoutMs": 999}, "timeoutMs", "too small", 1000),
        ({"timeoutMs": 60_001}, "timeoutMs", "too large", 60_000),
        ({"fraction": -0.1}, "fraction", "too small", 0),
        ({"fraction": 2}, "fraction", "too large", 1),
        ({"options": []}, "options", "too few", 1),
        ({"options": [{"id": "a", "label": "x"}] * 4}, "options", "too many", 3),
        ({"options": [{"id": "a" * 5, "label": "x"}]}, "options.0.id", "too long", 4),
        ({"names": ["abc", ""]}, "names.1", "too short", 1),
        ({"detail": "d" * 9}, "detail", "too long", 8),
    ],
)
def test_a_crossed_bound_is_told(change: dict[str, JSON], field: str, reason: str, limit: int) -> None:
    assert refusal(change) == (field, reason, limit)


def test_bounds_are_inclusive_and_count_code_points() -> None:
    assert structure(Sample, {"title": "🐈" * 8, "timeoutMs": 60_000, "fraction": 1}).fraction == 1.0


def test_the_first_wrong_member_is_the_classes_first_and_unknown_ones_come_last() -> None:
    assert refusal({"more": 1, "tone": 1, "timeoutMs": 0})[0] == "timeoutMs"
    assert refusal({"more": 1, "other": 1})[0] == "more"
    with pytest.raises(InvalidValue) as caught:
        structure(Sample, {"timeoutMs": 0})
    assert (caught.value.field, caught.value.reason) == ("title", "missing")


def test_unknown_members_are_ignored_on_demand_at_every_depth() -> None:
    value: JSON = {**LEAST, "more": 1, "options": [{"id": "a", "label": "x", "more": 1}]}
    sample = structure(Sample, value, unknown="ignore")
    assert sample.options == (Option(id="a", label="x"),)
    assert refusal({"more": 1, "tone": 1}, unknown="ignore")[0] == "tone"


@pytest.mark.requirement("CP-4.10")
def test_an_error_holds_no_value() -> None:
    with pytest.raises(InvalidValue) as caught:
        structure(Sample, {**LEAST, "title": "secret" * 9})
    assert "secret" not in str(caught.value)


def test_an_unknown_name_is_cut_and_can_be_written() -> None:
    field, *_ = refusal({"\ud800" + "n" * 70: 1})
    assert field == "\N{REPLACEMENT CHARACTER}" + "n" * 62 + "…"


def test_json_is_passed_through_untouched() -> None:
    params: JSONObject = {"a_b": [{"x": 1.0}], "n": None}
    sample = structure(Sample, {**LEAST, "params": params, "anything": [params]})
    assert sample.params == params
    assert sample.anything == [params]


@attrs.frozen(kw_only=True)
class Range:
    low: int
    high: int

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            raise InvalidValue("high", "below low")


def test_a_class_may_check_across_its_members() -> None:
    with pytest.raises(InvalidValue) as caught:
        structure(message(ranges="tuple[Range, ...]"), {"ranges": [{"low": 2, "high": 1}]})
    assert caught.value.field == "ranges.0.high"


def message(*, fields: dict[str, Any] | None = None, **annotations: str) -> type:
    """A message class with members of these types, as a module would declare them."""
    fields = {name: attrs.field() for name in annotations} | (fields or {})
    made = attrs.make_class("Message", fields, frozen=True, kw_only=True)
    made.__annotations__ = annotations
    made.__module__ = __name__
    return made


@pytest.mark.parametrize(
    "kind",
    ["int | str", "list[int]", "tuple[int, str]", "tuple", "dict", "set[int]", "bytes", "complex", "Any"],
)
def test_a_type_that_json_cannot_be_strict_about_is_our_own_error(kind: str) -> None:
    with pytest.raises(OurError):
        structure(message(member=kind), {"member": [1]})


def test_two_members_of_one_name_are_our_own_error() -> None:
    twice = message(a_b="str", c="str", fields={"c": text(0, 1, wire="aB")})
    with pytest.raises(OurError):
        structure(twice, {})


def test_bounds_need_a_type_that_has_a_size() -> None:
    with pytest.raises(OurError):
        structure(message(a="bool", fields={"a": text(0, 1)}), {})


def test_what_is_no_message_cannot_be_written() -> None:
    with pytest.raises(OurError):
        unstructure(object())
