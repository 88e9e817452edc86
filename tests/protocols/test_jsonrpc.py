"""companion.md, JSON-RPC: ids, envelopes, batches, and what flaws inside a message lead to."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocols import jsonrpc
from protocols.errors import InvalidValue
from protocols.json_values import JSON, JSONObject
from protocols.jsonrpc import (
    INVALID_REQUEST,
    Batch,
    Call,
    ErrorReply,
    Id,
    Ignored,
    Malformed,
    Reply,
    parse,
    parse_reply,
)
from protocols.strict_json import LONE_SURROGATE, Document, Flaw, decode, encode
from tests.protocols.json_strategies import integers, json_objects, json_values, texts

ids = st.none() | integers | st.text(st.characters(exclude_categories=["Cs"]), max_size=128)


def read(frame: bytes) -> Call | Batch | Ignored | Malformed:
    return parse(decode(frame))


def one_call(frame: bytes) -> Call:
    call = read(frame)
    assert isinstance(call, Call)
    return call


@given(ids, texts, json_objects)
@example(0, "m", {})
@example("", "m", {})
@pytest.mark.requirement("G01")
def test_a_request_is_read_as_it_was_written(call_id: Id, method: str, params: JSONObject) -> None:
    call = one_call(jsonrpc.request(call_id, method, params))
    assert call == Call(id=call_id, has_id=True, method=method, params=params)
    assert type(call.id) is type(call_id)


def test_a_call_without_id_is_a_notification_and_null_is_an_id() -> None:
    assert not one_call(jsonrpc.notification("m", {})).has_id
    assert one_call(b'{"jsonrpc":"2.0","id":null,"method":"m"}').has_id


def test_params_may_be_left_out_and_unknown_envelope_members_are_ignored() -> None:
    assert one_call(b'{"jsonrpc":"2.0","id":1,"method":"m","more":[]}').params == {}


@pytest.mark.parametrize(
    "bad_id",
    [b"true", b"1.0", b"1e3", b"[1]", b"{}", b"9223372036854775808", rb'"\ud800"', b'"%b"' % (b"x" * 129)],
)
def test_an_unusable_id_is_an_invalid_request_with_id_null(bad_id: bytes) -> None:
    answer = read(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % bad_id)
    assert isinstance(answer, Malformed)
    assert (answer.id, answer.code, answer.field) == (None, INVALID_REQUEST, "id")
    assert answer.limit == (128 if b"xxx" in bad_id else None)


def test_an_id_of_128_code_points_is_the_longest() -> None:
    assert one_call(jsonrpc.request("🐈" * 128, "m", {})).id == "🐈" * 128


@pytest.mark.parametrize(
    ("frame", "answered_id", "field"),
    [
        (b"1", None, ""),
        (b'"text"', None, ""),
        (b"null", None, ""),
        (b"{}", None, "jsonrpc"),
        (b'{"id":7,"method":"m"}', 7, "jsonrpc"),
        (b'{"jsonrpc":"1.0","id":7,"method":"m"}', 7, "jsonrpc"),
        (b'{"jsonrpc":2.0,"id":7,"method":"m"}', 7, "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":7}', 7, "method"),
        (b'{"jsonrpc":"2.0","id":7,"method":1}', 7, "method"),
        (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', None, "method"),
    ],
)
def test_what_is_no_request_is_answered_under_its_own_id_where_it_has_one(
    frame: bytes, answered_id: Id, field: str
) -> None:
    answer = read(frame)
    assert isinstance(answer, Malformed)
    assert (answer.id, answer.code, answer.field) == (answered_id, INVALID_REQUEST, field)


@pytest.mark.parametrize(
    "reply", [jsonrpc.result(1, {}), jsonrpc.error(1, -32600, "no", {}), b'{"id":1,"result":"\\ud800"}']
)
def test_a_response_object_is_ignored(reply: bytes) -> None:
    assert read(reply) == Ignored()


@pytest.mark.parametrize("params", [b"[]", b"null", b'"x"', b"0"])
def test_params_that_are_no_object_are_refused_when_they_are_read(params: bytes) -> None:
    call = one_call(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % params)
    assert call.params_flaw == Flaw((), "not an object")
    with pytest.raises(InvalidValue) as caught:
        _ = call.params
    assert (caught.value.field, caught.value.reason) == ("", "not an object")


@pytest.mark.requirement("G07")
def test_a_flaw_in_params_is_told_from_params_on_under_the_own_id() -> None:
    call = one_call(rb'{"jsonrpc":"2.0","id":2,"method":"m","params":{"params":{"prompt":"hi \ud83d"}}}')
    assert (call.id, call.params_flaw) == (2, Flaw(("params", "prompt"), LONE_SURROGATE))
    with pytest.raises(InvalidValue) as caught:
        _ = call.params
    assert caught.value.field == "params.prompt"


@pytest.mark.requirement("G07")
def test_a_name_that_is_half_a_character_can_be_told_without_it() -> None:
    call = one_call(rb'{"jsonrpc":"2.0","id":1,"method":"m","params":{"capability":"text","\ud800":1}}')
    with pytest.raises(InvalidValue) as caught:
        _ = call.params
    assert caught.value.field == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.requirement("G07")
def test_a_method_that_holds_half_a_character_is_one_that_nobody_has() -> None:
    call = one_call(rb'{"jsonrpc":"2.0","id":3,"method":"no.such.\udc00"}')
    assert (call.id, call.method) == (3, "no.such.\N{REPLACEMENT CHARACTER}")


@pytest.mark.requirement("G07")
def test_a_flaw_elsewhere_in_the_envelope_is_an_invalid_request_under_the_own_id() -> None:
    answer = read(rb'{"jsonrpc":"2.0","id":4,"method":"m","extra":["\udc00"]}')
    assert answer == Malformed(4, INVALID_REQUEST, LONE_SURROGATE, "extra.0")


def test_a_second_flaw_is_not_hidden_by_the_first() -> None:
    frame = rb'{"jsonrpc":"2.0","params":{"a":1e999},"id":"\ud800","method":"m"}'
    assert read(frame) == Malformed(None, INVALID_REQUEST, LONE_SURROGATE, "id")
    call = one_call(rb'{"jsonrpc":"2.0","id":1,"method":"\ud800","params":{"a":1e999}}')
    assert call.params_flaw is not None


def test_a_batch_keeps_its_order_and_judges_each_element_by_itself() -> None:
    calls = [
        jsonrpc.request(1, "a", {}),
        b"5",
        jsonrpc.result(1, None),
        rb'{"jsonrpc":"2.0","id":2,"method":"b","params":{"x":"\ud800"}}',
        jsonrpc.notification("c", {}),
        b"[]",
    ]
    batch = read(jsonrpc.batch(calls))
    assert isinstance(batch, Batch)
    kinds = [type(element) for element in batch.elements]
    assert kinds == [Call, Malformed, Ignored, Call, Call, Malformed]
    flawed = [isinstance(element, Call) and element.params_flaw is not None for element in batch.elements]
    assert flawed == [False, False, False, True, False, False]


def test_a_batch_has_1_to_16_elements() -> None:
    call = jsonrpc.request(1, "m", {})
    assert isinstance(read(jsonrpc.batch([call] * 16)), Batch)
    assert read(jsonrpc.batch([call] * 17)) == Malformed(None, INVALID_REQUEST, "batch too long", limit=16)
    assert read(b"[]") == Malformed(None, INVALID_REQUEST, "empty batch", limit=1)
    assert isinstance(parse(decode(jsonrpc.batch([call] * 17)), max_batch=17), Batch)


def test_a_batch_without_replies_has_no_payload() -> None:
    assert jsonrpc.batch([]) == b""


@given(json_values)
def test_any_json_is_read_as_something(value: JSON) -> None:
    assert isinstance(parse(Document(value)), Call | Batch | Ignored | Malformed)


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
        json_values | st.just("2.0"),
    )
)
def test_whatever_a_message_holds_its_answer_can_be_written(message: JSONObject) -> None:
    answer = parse(decode(encode(message)))
    if isinstance(answer, Call | Malformed):
        assert json.loads(jsonrpc.error(answer.id, INVALID_REQUEST, "no", {}))["id"] == answer.id


def test_params_are_not_in_the_text_of_a_call() -> None:
    assert "secret" not in repr(Call(1, True, "session.authenticate", {"key": "secret"}))


@given(ids, json_values)
def test_a_result_is_read_by_the_caller_as_it_was_written(call_id: Id, value: JSON) -> None:
    payload = jsonrpc.result(call_id, value)
    assert parse_reply(decode(payload)) == Reply(call_id, value)
    assert payload == jsonrpc.encoded_result(call_id, encode(value))


@given(ids, integers, texts, json_objects)
def test_an_error_is_read_by_the_caller_as_it_was_written(
    call_id: Id, code: int, message: str, data: JSONObject
) -> None:
    reply = parse_reply(decode(jsonrpc.error(call_id, code, message, data)))
    assert reply == ErrorReply(call_id, code, message, data)


@pytest.mark.parametrize("data", [b"", b',"data":"text"', b',"data":null'])
def test_error_data_that_is_no_object_counts_as_none(data: bytes) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"%b}}' % data
    assert parse_reply(decode(frame)) == ErrorReply(1, 1, "no", {})


@pytest.mark.parametrize(
    "frame", [b"[]", b"1", jsonrpc.request(1, "m", {}), jsonrpc.notification("m", {}), b"{}"]
)
def test_what_is_no_response_object_is_no_reply(frame: bytes) -> None:
    assert parse_reply(decode(frame)) is None


@pytest.mark.parametrize(
    ("frame", "field"),
    [
        (b'{"id":1,"result":1}', "jsonrpc"),
        (b'{"jsonrpc":"2.0","result":1}', "id"),
        (b'{"jsonrpc":"2.0","id":1.5,"result":1}', "id"),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}', "result"),
        (b'{"jsonrpc":"2.0","id":1,"error":1}', "error"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"message":""}}', "error.code"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":""}}', "error.code"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}', "error.message"),
        (rb'{"jsonrpc":"2.0","id":1,"result":{"text":"\ud800"}}', "result.text"),
    ],
)
def test_a_response_that_breaks_the_rules_is_an_invalid_value(frame: bytes, field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_reply(decode(frame))
    assert caught.value.field == field
