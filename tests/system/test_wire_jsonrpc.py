"""What a client may write as JSON-RPC, over the real socket (companion.md, JSON-RPC and the order of a session)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.lines import Rpc, call_of
from tests.support.questions import ask, choice, withdraw

DESCRIBE = "runtime.describe"
NOTHING: dict[str, Any] = {}


@pytest.fixture
def client(broker: BrokerProcess) -> Rpc:
    return broker.agent("discover", "interact")


# -- ids and the envelope ------------------------------------------------------------------------------------


@pytest.mark.requirement("G01")
@pytest.mark.parametrize("call_id", [0, -1, 2**63 - 1, -(2**63), "", "0", "\N{CAT}" * 128, None])
def test_an_id_is_echoed_exactly(client: Rpc, call_id: str | int | None) -> None:
    client.send(call_of(call_id, DESCRIBE))
    reply = client.read()
    assert "result" in reply
    assert (reply["id"], type(reply["id"])) == (call_id, type(call_id))


@pytest.mark.requirement("G01")
@pytest.mark.parametrize("written", ["1.5", "1.0", "1e3", "true", "{}", "[1]", f'"{"x" * 129}"', str(2**63)])
def test_an_id_that_cannot_be_echoed_is_refused_under_none(client: Rpc, written: str) -> None:
    client.send(f'{{"jsonrpc":"2.0","id":{written},"method":"runtime.describe"}}\n'.encode())
    reply = client.read()
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)
    client.call(DESCRIBE)


def test_a_call_without_id_gets_no_reply_and_has_no_effect(broker: BrokerProcess, client: Rpc) -> None:
    create = call_of(None, "requests.create", **choice("Unheard?"))
    del create["id"]
    client.send(create)
    client.send({"jsonrpc": "2.0", "method": "no.such.method", "params": 7})
    request = ask(client, "Heard?")
    assert broker.presenter.wait_for("present")["title"] == "Heard?"
    withdraw(client, request)
    assert client.nothing()


def test_a_response_from_a_client_is_ignored(client: Rpc) -> None:
    client.send({"jsonrpc": "2.0", "id": 1, "result": {}})
    client.send({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}})
    client.call(DESCRIBE)
    assert client.nothing()


def test_params_may_be_left_out_and_unknown_members_of_the_envelope_are_ignored(client: Rpc) -> None:
    client.send({"jsonrpc": "2.0", "id": "bare", "method": DESCRIBE, "trace": {"deep": [1]}})
    assert "result" in client.reply("bare")


@pytest.mark.parametrize(
    "message",
    [
        {"id": 7, "method": DESCRIBE},
        {"jsonrpc": "1.0", "id": 7, "method": DESCRIBE},
        {"jsonrpc": "2.0", "id": 7},
        {"jsonrpc": "2.0", "id": 7, "method": 1},
    ],
)
def test_what_is_no_request_is_refused_under_its_own_id(client: Rpc, message: dict[str, Any]) -> None:
    client.send(message)
    error = client.reply(7)["error"]
    assert (error["code"], error["data"]["code"]) == (-32600, "INVALID_PARAMS")
    client.call(DESCRIBE)


@pytest.mark.requirement("CP-6.6", "CP-6.7")
@pytest.mark.parametrize(
    ("method", "params", "code", "field"),
    [
        ("no.such.method", NOTHING, -32601, None),
        ("Runtime.describe", NOTHING, -32601, None),
        ("", NOTHING, -32601, None),
        (DESCRIBE, [], -32602, None),
        (DESCRIBE, "x", -32602, None),
        (DESCRIBE, None, -32602, None),
        (DESCRIBE, {"verbose": True}, -32602, "verbose"),
        ("requests.get", NOTHING, -32602, "requestId"),
        ("requests.get", {"requestId": 7}, -32602, "requestId"),
        ("requests.create", choice(timeoutMs=60_000.0), -32602, "timeoutMs"),
        ("requests.create", choice(timeoutMs=True), -32602, "timeoutMs"),
        ("requests.create", choice(source="system"), -32602, "source"),
        ("requests.create", choice(params={"title": "x", "options": []}), -32602, "params.options"),
    ],
)
def test_an_unknown_method_or_a_bad_parameter_says_which(
    client: Rpc, method: str, params: Any, code: int, field: str | None
) -> None:
    client.send({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    error = client.reply(7)["error"]
    assert error["code"] == code
    assert (error["data"]["code"], error["data"]["retryable"]) == ("INVALID_PARAMS", False)
    if field is not None:
        assert error["data"]["field"] == field
    assert error["message"]
    client.call(DESCRIBE)


# -- batches -------------------------------------------------------------------------------------------------


def test_a_batch_is_answered_in_one_line(client: Rpc) -> None:
    client.send([call_of(number, DESCRIBE) for number in range(16)])
    replies = client.read()
    assert sorted(reply["id"] for reply in replies) == list(range(16))
    assert all("result" in reply for reply in replies)


@pytest.mark.parametrize("size", [0, 17])
def test_a_batch_of_none_or_too_many_is_one_error(client: Rpc, size: int) -> None:
    client.send([call_of(number, DESCRIBE) for number in range(size)])
    reply = client.read()
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)
    assert reply["error"]["data"]["code"] == "INVALID_PARAMS"
    client.call(DESCRIBE)


def test_what_does_not_belong_into_a_batch_is_one_error_each(client: Rpc) -> None:
    hello = {"protocolVersions": ["0.1"], "client": {"name": "x", "version": "1"}}
    wait = {"requestId": "x", "afterRevision": 1, "waitMs": 1}
    client.send(
        [
            call_of("good", DESCRIBE),
            1,
            [],
            {},
            call_of("s", "session.hello", **hello),
            call_of("a", "session.authenticate", clientId="x", key="y"),
            call_of("p", "pairing.request", clientName="x", scopes=["discover"]),
            call_of("w", "requests.wait", **wait),
            {"jsonrpc": "2.0", "method": DESCRIBE},
        ]
    )
    replies = client.read()
    good = [reply["id"] for reply in replies if "result" in reply]
    bad = [reply["id"] for reply in replies if "error" in reply]
    assert good == ["good"]
    assert sorted(map(str, bad)) == ["None"] * 3 + ["a", "p", "s", "w"]
    assert {reply["error"]["code"] for reply in replies if "error" in reply} == {-32600}
    client.call(DESCRIBE)


@pytest.mark.parametrize(
    "element", [{"jsonrpc": "2.0", "method": DESCRIBE}, {"jsonrpc": "2.0", "id": 1, "result": 1}]
)
def test_a_batch_that_asks_nothing_gets_no_reply(client: Rpc, element: dict[str, Any]) -> None:
    client.send([element] * 3)
    client.call(DESCRIBE)
    assert client.nothing()


# -- the order of a session ----------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.1")
@pytest.mark.parametrize("method", [DESCRIBE, "requests.get", "pairing.request", "no.such.method"])
def test_hello_comes_first(broker: BrokerProcess, method: str) -> None:
    client = broker.connect("companion.sock")
    client.send(call_of(1, method))
    (error,) = client.rest()
    assert error["id"] == 1
    assert error["error"]["data"]["code"] == "INVALID_PARAMS"
    assert error["error"]["data"]["reason"]


def test_hello_comes_once(broker: BrokerProcess) -> None:
    client = broker.greet()
    client.send(call_of(7, "session.hello", protocolVersions=["0.1"], client={"name": "x", "version": "1"}))
    (error,) = client.rest()
    assert (error["id"], error["error"]["data"]["code"]) == (7, "INVALID_PARAMS")
    assert error["error"]["data"]["reason"]


@pytest.mark.requirement("CP-7.1")
def test_no_version_in_common_is_a_refusal(broker: BrokerProcess) -> None:
    client = broker.connect("companion.sock")
    client.send(call_of(1, "session.hello", protocolVersions=["9.9"], client={"name": "x", "version": "1"}))
    (error,) = client.rest()
    assert error["error"]["data"]["code"] == "INVALID_PARAMS"
    assert error["error"]["data"]["reason"]


@pytest.mark.requirement("CP-7.1")
def test_a_version_in_common_is_found_among_others(broker: BrokerProcess) -> None:
    client = broker.connect("companion.sock")
    hello = {"protocolVersions": ["9.9", "0.1"], "client": {"name": "x", "version": "1"}}
    assert client.call("session.hello", **hello)["protocolVersion"] == "0.1"


@pytest.mark.requirement("CP-5.1", "CP-5.3")
@pytest.mark.parametrize("method", ["requests.create", "requests.get", "requests.wait", "requests.cancel"])
def test_business_before_authentication_ends_the_connection(broker: BrokerProcess, method: str) -> None:
    client = broker.greet()
    client.send(call_of("b", method))
    (error,) = client.rest()
    assert (error["id"], error["error"]["code"]) == ("b", -32001)
    assert error["error"]["data"]["code"] == "UNAUTHENTICATED"


@pytest.mark.requirement("CP-2.3")
def test_the_runtime_may_be_described_before_authentication(broker: BrokerProcess) -> None:
    description = broker.greet().call(DESCRIBE)
    assert description["authorization"]["authenticated"] is False


def test_a_second_authenticate_changes_nothing(broker: BrokerProcess) -> None:
    credential = broker.pair("twice", ["discover"])
    client = broker.session(credential)
    refused = client.refused("session.authenticate", clientId=credential[0], key=credential[1])
    assert refused["code"] == "INVALID_PARAMS"
    assert client.call(DESCRIBE)["authorization"]["clientId"] == credential[0]
