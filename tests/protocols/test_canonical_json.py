"""RFC 8785: one form for all values that mean the same."""

from __future__ import annotations

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.canonical_json import canonical, digest
from protocols.errors import EncodeError
from protocols.json_values import JSON, JSONObject
from protocols.strict_json import decode
from tests.protocols.json_strategies import containers, json_objects, numbers, texts

doubles = numbers | st.integers(-(2**53), 2**53)
values: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | doubles | texts, containers, max_leaves=12
)


@pytest.mark.parametrize(
    ("bits", "written"),
    [  # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_ecmascript_writes_them(bits: str, written: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value) == written.encode()


def test_members_are_ordered_by_utf16_code_units() -> None:  # RFC 8785, 3.2.3
    value: JSON = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    written = json.loads(canonical(value))
    assert list(written) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_the_example_of_the_rfc() -> None:  # RFC 8785, 3.2.2
    frame = rb"""{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"""
    assert canonical(decode(frame).value) == (
        rb'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        rb'"string":"' + "€$".encode() + rb"""\u000f\nA'B\"\\\\\"/"}"""
    )


@given(values)
def test_the_canonical_form_means_the_same_and_is_its_own_canonical_form(value: JSON) -> None:
    written = canonical(value)
    read = json.loads(written, parse_int=float)
    assert read == value
    assert canonical(read) == written


@given(json_objects, st.data())
def test_the_order_of_members_does_not_matter(value: JSONObject, data: st.DataObject) -> None:
    members = data.draw(st.permutations(list(value.items())))
    assert digest(dict(members)) == digest(value)


@given(st.integers(-(2**53), 2**53))
def test_an_integer_is_its_double(value: int) -> None:
    assert canonical(value) == canonical(float(value)) == str(value).encode()


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}, "\ud800", {"\udc00": 1}])
def test_what_has_no_canonical_form_is_our_own_error(value: JSON) -> None:
    with pytest.raises(EncodeError):
        canonical(value)


def test_a_digest_is_sha256_in_hex() -> None:
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
