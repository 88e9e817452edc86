"""The given cases about lines and messages: G01, G02, G04, G07."""

from __future__ import annotations

import json
import time

import pytest

from tests.support.broker_process import APP, BrokerProcess
from tests.support.lines import call_of, line_of
from tests.support.questions import ask, choice, withdraw

CAT = "猫🐈‍⬛ né?"
DESCRIBE = "runtime.describe"


# -- G01: one garbage line must not end the session, and id 0 is an id ---------------------------------------


@pytest.mark.requirement("G01")
def test_a_garbage_line_costs_one_error_and_no_session(broker: BrokerProcess) -> None:
    client, idle = broker.agent("discover"), broker.agent("discover")
    client.send(b'{"jsonrpc":"2.0","id":1,"method":"runtime.describe","params":\n')
    client.send(b"not json at all\n")
    client.send(call_of(0, DESCRIBE))
    for _ in range(2):
        error = client.read()
        assert (error["id"], error["error"]["code"]) == (None, -32700)
        assert error["error"]["data"]["code"] == "INVALID_PARAMS"
    result = client.read()
    assert "result" in result
    assert result["id"] == 0
    assert type(result["id"]) is int
    idle.send(call_of("x", DESCRIBE))
    assert "result" in idle.reply("x")
    assert client.nothing()
    client.call(DESCRIBE)


@pytest.mark.requirement("G01", "LP-6")
def test_a_garbage_line_costs_a_lease_holder_one_answer_and_no_session(broker: BrokerProcess) -> None:
    holder = broker.holder("g01")
    holder.send(b"not json at all\n")
    error = holder.read()
    assert (error["action"], error["requestId"]) == ("lease.response", None)
    assert error["code"] == "invalid_payload"
    assert holder.begin(APP, 60)["code"] == "accepted"


# -- G02: a character cut in two by the transport ------------------------------------------------------------


@pytest.mark.requirement("G02", "CP-6.3")
def test_characters_survive_any_fragmentation(broker: BrokerProcess) -> None:
    client = broker.agent("discover", "interact")
    create = call_of(1, "requests.create", **choice(CAT, idempotencyKey="g02"))
    for byte in json.dumps(create, ensure_ascii=False).encode() + b"\n":
        client.send(bytes([byte]))
        time.sleep(0.002)
    request = client.reply(1)["result"]
    shown = broker.presenter.wait_for("present", requestId=request["requestId"])
    assert shown["title"] == CAT
    gets = [call_of(number, "requests.get", requestId=request["requestId"]) for number in (2, 3)]
    client.send(b"".join(map(line_of, gets)))
    assert [client.reply(number)["result"]["requestId"] for number in (2, 3)] == [request["requestId"]] * 2
    withdraw(client, request)
    assert client.nothing()


@pytest.mark.requirement("G02")
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\n\n \t\n\r\n"])
def test_line_breaks_of_other_systems_and_blank_lines_are_tolerated(
    broker: BrokerProcess, ending: bytes
) -> None:
    client = broker.agent("discover")
    client.send(ending)
    for number in (1, 2):
        client.send(line_of(call_of(f"r{number}", DESCRIBE)).rstrip(b"\n") + ending)
        assert "result" in client.reply(f"r{number}")
    assert client.nothing()


@pytest.mark.requirement("G02")
def test_only_the_byte_0a_ends_a_line(broker: BrokerProcess) -> None:
    """U+2028 and U+0085 are line breaks to some, and a part of the text here."""
    client = broker.agent("discover")
    call = call_of("a\u2028b\u0085c\x0b", DESCRIBE)
    client.send(json.dumps(call, ensure_ascii=False).replace("\x0b", "\\u000b").encode() + b"\n")
    assert "result" in client.reply("a\u2028b\u0085c\x0b")


# -- G04: the client says "that was all" and then waits for the reply ----------------------------------------


@pytest.mark.requirement("G04")
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_half_close_is_not_a_disconnect(broker: BrokerProcess, ending: bytes) -> None:
    client = broker.agent("discover")
    client.send(line_of(call_of("last", DESCRIBE)).rstrip(b"\n") + ending)
    client.half_close()
    (reply,) = client.rest()
    assert reply["id"] == "last"
    assert "result" in reply


@pytest.mark.requirement("G04")
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_the_first_words_may_be_the_last(broker: BrokerProcess, ending: bytes) -> None:
    """A shell pipe sends everything at once and closes; what an authentication unlocks is behind it."""
    client_id, key = broker.pair("pipe", ["discover"])
    client = broker.connect("companion.sock")
    client.send(
        line_of(
            call_of(1, "session.hello", protocolVersions=["0.1"], client={"name": "pipe", "version": "1"})
        )
        + line_of(call_of(2, "session.authenticate", clientId=client_id, key=key))
        + line_of(call_of(3, DESCRIBE)).rstrip(b"\n")
        + ending
    )
    client.half_close()
    replies = client.rest()
    assert [reply["id"] for reply in replies] == [1, 2, 3]
    assert all("result" in reply for reply in replies)


@pytest.mark.requirement("G04", "CP-3.9")
def test_a_half_close_still_gets_the_answers_that_are_pending(broker: BrokerProcess) -> None:
    client, other = broker.agent("interact"), broker.agent("interact")
    request = ask(client)
    shown, snapshot = broker.show(other, request)
    waiting = client.start(
        "requests.wait",
        requestId=request["requestId"],
        afterRevision=snapshot["revision"],
        waitMs=30_000,
    )
    client.half_close()
    assert client.nothing()
    assert broker.presenter.answer(shown, "y") == {"outcome": "committed"}
    (reply,) = client.rest()
    assert reply["id"] == waiting
    assert reply["result"]["request"]["result"] == {"selectedId": "y"}


@pytest.mark.requirement("G04")
def test_an_unfinished_line_at_the_end_of_the_stream_is_judged_as_one(broker: BrokerProcess) -> None:
    client = broker.agent("discover")
    client.send(b'{"jsonrpc":"2.0","id":1,"met')
    client.half_close()
    (reply,) = client.rest()
    assert (reply["id"], reply["error"]["code"]) == (None, -32700)


@pytest.mark.requirement("G04", "LP-4")
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_lease_holder_that_half_closes_gets_its_answer(broker: BrokerProcess, ending: bytes) -> None:
    holder = broker.holder("g04")
    begin = {"action": "lease.begin", "requestId": "b", "holderId": "g04", "appKey": APP, "leaseSeconds": 60}
    holder.send(line_of(begin).rstrip(b"\n") + ending)
    holder.half_close()
    (response,) = holder.rest()
    assert (response["requestId"], response["code"]) == ("b", "accepted")


@pytest.mark.requirement("G04")
def test_the_control_socket_answers_what_came_before_the_end(broker: BrokerProcess) -> None:
    control = broker.control()
    control.send(line_of(call_of(1, "status")).rstrip(b"\n"))
    control.half_close()
    (reply,) = control.rest()
    assert "result" in reply


# -- G07: half an emoji in the input -------------------------------------------------------------------------


@pytest.mark.requirement("G07", "CP-6.3")
def test_half_an_emoji_is_refused_under_the_id_of_its_message(broker: BrokerProcess) -> None:
    client = broker.agent("discover", "interact")
    client.send(
        b'{"jsonrpc":"2.0","id":1,"method":"requests.create","params":{"capability":"interaction.choose",'
        b'"\\ud800":1,"params":{"title":"hi","options":[]},"timeoutMs":60000}}\n'
    )
    client.send(
        b'{"jsonrpc":"2.0","id":2,"method":"requests.create","params":{"capability":"interaction.choose",'
        b'"params":{"title":"hi \\ud83d","options":[{"id":"y","label":"Y"},{"id":"n","label":"N"}]},'
        b'"timeoutMs":60000}}\n'
    )
    client.send(b'{"jsonrpc":"2.0","id":3,"method":"no.such.\\udc00"}\n')
    client.send(b'{"jsonrpc":"2.0","id":4,"method":"runtime.describe"}\n')
    replies = {reply["id"]: reply for reply in (client.read() for _ in range(4))}
    assert [error_code(replies[number]) for number in (1, 2, 3)] == [-32602, -32602, -32601]
    assert all(replies[number]["error"]["data"]["code"] == "INVALID_PARAMS" for number in (1, 2, 3))
    assert replies[2]["error"]["data"]["field"] == "params.title"
    assert "result" in replies[4]


@pytest.mark.requirement("G07")
def test_half_an_emoji_in_an_id_cannot_be_echoed(broker: BrokerProcess) -> None:
    client = broker.agent("discover")
    client.send(b'{"jsonrpc":"2.0","id":"\\udc00","method":"runtime.describe"}\n')
    reply = client.read()
    assert (reply["id"], error_code(reply)) == (None, -32600)
    client.call(DESCRIBE)


@pytest.mark.requirement("G07", "LP-6")
def test_half_an_emoji_is_refused_the_same_in_lease_messages(broker: BrokerProcess) -> None:
    holder = broker.holder("g07")
    for text in (
        b'{"action":"lease.begin","requestId":"r1","holderId":"g07","appKey":"\\ud83d","leaseSeconds":60}\n',
        b'{"action":"lease.begin","requestId":"r1","holderId":"g07","appKey":"a","leaseSeconds":60,"\\ud800":1}\n',
    ):
        holder.send(text)
        response = holder.read()
        assert (response["requestId"], response["code"]) == ("r1", "invalid_payload")
    holder.send(
        b'{"action":"lease.begin","requestId":"\\ud83d","holderId":"g07","appKey":"a","leaseSeconds":60}\n'
    )
    response = holder.read()
    assert (response["requestId"], response["code"]) == (None, "invalid_payload")
    assert holder.begin(APP, 60)["code"] == "accepted"


@pytest.mark.requirement("G07", "LP-5")
def test_half_an_emoji_in_a_hello_ends_the_handshake(broker: BrokerProcess) -> None:
    lease = broker.connect("ai-protection.sock")
    lease.send(
        b'{"action":"session.hello","protocolVersion":1,"holderId":"\\ud800","clientName":"x","pid":0}\n'
    )
    (error,) = lease.rest()
    assert (error["action"], error["code"]) == ("session.error", "invalid_handshake")


@pytest.mark.requirement("G07")
def test_a_whole_emoji_written_as_two_escapes_is_a_character(broker: BrokerProcess) -> None:
    client = broker.agent("interact")
    title = "\N{CAT} and \N{DOG}"
    request = ask(client, title=title)  # the sender of this file writes escapes
    assert broker.presenter.wait_for("present", requestId=request["requestId"])["title"] == title
    withdraw(client, request)


def error_code(reply: dict[str, dict[str, int]]) -> int:
    return reply["error"]["code"]
