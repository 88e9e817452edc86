"""wire.md, strict JSON: what is a parse error, what is an invalid value under the message's own id."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocols.errors import EncodeError, ParseError
from protocols.json_values import JSON
from protocols.strict_json import LONE_SURROGATE, NOT_64_BIT, NOT_FINITE, Document, Flaw, decode, encode
from tests.protocols.json_strategies import json_values


@given(json_values)
@pytest.mark.requirement("CP-6.3")
def test_what_is_encoded_decodes_to_the_same(value: JSON) -> None:
    assert decode(encode(value)) == Document(value)


@given(json_values)
def test_an_encoding_is_one_line_of_unescaped_utf8(value: JSON) -> None:
    assert b"\n" not in encode(value)
    assert encode("né 猫") == '"né 猫"'.encode()


@given(st.binary(max_size=60) | st.text('[]{}",:\\u0d8-1e.tfn ', max_size=60).map(str.encode))
def test_no_bytes_at_all_raise_anything_but_a_parse_error(frame: bytes) -> None:
    try:
        document = decode(frame)
    except ParseError:
        return
    if document.flaw is None:
        assert decode(encode(document.value)) == document


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"not json at all",
        b'{"jsonrpc":"2.0","method":"runtime.describe","params":',
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"NaN",
        b"[-Infinity]",
        b'{"a":Infinity}',
        b'{"a":1,"a":1}',
        b'[{"b":{"a":1,"\\u0061":2}}]',
        b'"\\ud800',
        b"01",
        b'"a\tb"',
    ],
)
@pytest.mark.requirement("G01", "CP-6.3")
def test_what_is_no_strict_json_is_a_parse_error(frame: bytes) -> None:
    with pytest.raises(ParseError):
        decode(frame)


@pytest.mark.parametrize("frame", [b'{"secret-key-17":', b'"secret-key-17\\q"', b'"secret-key-17\xff"'])
@pytest.mark.requirement("CP-5.5")
def test_a_parse_error_holds_nothing_of_the_input(frame: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        decode(frame)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def nested(depth: int) -> bytes:
    return b'{"a":[' * (depth // 2) + b"[" * (depth % 2) + b"]" * (depth % 2) + b"]}" * (depth // 2)


def test_nesting_of_32_is_the_deepest() -> None:
    assert decode(nested(32)).flaw is None
    for depth in (33, 34, 1_000, 60_000):
        with pytest.raises(ParseError):
            decode(nested(depth))


@pytest.mark.parametrize("frame", [b"[" * 60_000, b'{"a":' * 12_000, b'[{"a":' * 20_000 + b"}]" * 3])
def test_deep_nesting_without_an_end_is_a_parse_error(frame: bytes) -> None:
    with pytest.raises(ParseError):
        decode(frame)


@pytest.mark.parametrize(
    "text", ["[" * 99, '"' + "]" * 99, "\\" + "{" * 99, "\\\\", '\\"' + "[" * 99, "\\\\" + "[" * 99 + '"']
)
def test_brackets_in_strings_are_no_nesting(text: str) -> None:
    value: JSON = [{"a": [text, text]}, text]
    assert decode(encode(value)) == Document(value)


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    value: JSON = [[{}, []] for _ in range(5_000)]
    assert decode(encode(value)) == Document(value)


@pytest.mark.parametrize(
    ("frame", "path", "reason"),
    [
        (rb'{"id":1,"params":{"prompt":"hi \ud83d"}}', ("params", "prompt"), LONE_SURROGATE),
        (rb'["\udc00\ud800"]', (0,), LONE_SURROGATE),
        (rb'{"a":[0,9223372036854775808]}', ("a", 1), NOT_64_BIT),
        (b"-9223372036854775809", (), NOT_64_BIT),
        (b"[" + b"9" * 5_000 + b"]", (0,), NOT_64_BIT),
        (b"[-" + b"9" * 5_000 + b"]", (0,), NOT_64_BIT),
        (b'{"a":1e400}', ("a",), NOT_FINITE),
        (b"[1, -1e400, 9223372036854775808]", (1,), NOT_FINITE),
    ],
)
@pytest.mark.requirement("G07")
def test_an_invalid_value_leaves_the_message_readable(
    frame: bytes, path: tuple[str | int, ...], reason: str
) -> None:
    assert decode(frame).flaw == Flaw(path, reason)


@pytest.mark.requirement("G07")
def test_the_first_flaw_is_told_and_a_name_comes_before_its_value() -> None:
    flaw = decode(rb'{"a":{"x":1,"\ud800":1e400},"b":"\ud800"}').flaw
    assert flaw is not None
    assert flaw.path == ("a", "\ud800")
    assert flaw.dotted == "a.\N{REPLACEMENT CHARACTER}"


def test_a_dotted_path_is_bounded() -> None:
    flaw = decode(b'{"' + b"n" * 60_000 + b'":[1e999]}').flaw
    assert flaw is not None
    assert flaw.dotted == "n" * 63 + "….0"


@pytest.mark.parametrize(
    ("frame", "value"),
    [
        (rb'"\ud83d\udc08"', "🐈"),
        (rb'"\\ud83d"', "\\ud83d"),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1.7976931348623157e308", 1.7976931348623157e308),
        (b"60000.0", 60000.0),
        (b" [1 ,\t2 ]\r", [1, 2]),
    ],
)
def test_what_only_looks_like_a_flaw_is_none(frame: bytes, value: JSON) -> None:
    assert decode(frame) == Document(value)


@given(st.integers())
@example(2**63 - 1)
@example(2**63)
@example(-(2**63))
@example(-(2**63) - 1)
@example(10**18)
@example(-(10**17))
def test_an_integer_is_flawed_beyond_64_bits_and_exact_within(value: int) -> None:
    document = decode(str(value).encode())
    if -(2**63) <= value < 2**63:
        assert document == Document(value)
    else:
        assert document.flaw == Flaw((), NOT_64_BIT)


@pytest.mark.parametrize(
    "value", ["\ud800", {"\udfff": 1}, [math.nan], math.inf, {"a": object()}, "x" * 9 + "\udc00"]
)
@pytest.mark.requirement("G07", "CP-6.3")
def test_what_json_cannot_carry_is_our_own_error(value: JSON) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(value)
    assert caught.value.__context__ is None


@given(json_values)
def test_any_other_parser_reads_what_is_encoded(value: JSON) -> None:
    assert json.loads(encode(value)) == value
