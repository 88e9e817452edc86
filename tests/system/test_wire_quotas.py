"""The published quotas: connections, waits, calls a second (wire.md, quotas)."""

from __future__ import annotations

import time

import pytest

from tests.support.broker_process import APP, CONFIG, BrokerProcess
from tests.support.lines import Rpc, call_of, line_of, until
from tests.support.questions import ask, withdraw

MAX_IN_HANDSHAKE = 64
TOTAL, PER_CLIENT = 24, 3
BROKER_CONFIG = CONFIG + f"[limits]\nmaxConnectionsTotal = {TOTAL}\nmaxConnectionsPerClient = {PER_CLIENT}\n"


# -- connections ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.5", "CP-2.3")
def test_a_client_has_so_many_connections_as_are_published(broker: BrokerProcess) -> None:
    clients = [broker.agent("discover") for _ in range(PER_CLIENT)]
    assert clients[0].call("runtime.describe")["limits"]["maxConnectionsPerClient"] == PER_CLIENT
    credential = broker.pair("another", ["discover"])
    broker.session(credential)
    one_more = broker.greet()
    client_id, key = broker.credential("discover")
    refused = one_more.refused("session.authenticate", clientId=client_id, key=key)
    assert (refused["code"], refused["retryable"]) == ("RATE_LIMITED", True)
    assert refused["retryAfterMs"] > 0
    clients.pop().close()
    until(lambda: "result" in authenticated(broker, client_id, key))


@pytest.mark.requirement("CP-4.5", "LP-5")
def test_over_the_total_a_client_is_turned_away_and_the_presenter_is_not(broker: BrokerProcess) -> None:
    presenter = broker.presenter
    within = [broker.greet() for _ in range(TOTAL - connections(broker))]

    turned_away = broker.connect("companion.sock")
    (error,) = turned_away.rest()
    assert (error["id"], error["error"]["data"]["code"]) == (None, "RATE_LIMITED")
    assert error["error"]["data"]["retryAfterMs"] > 0
    lease = broker.connect("ai-protection.sock")
    (error,) = lease.rest()
    assert (error["action"], error["code"]) == ("session.error", "invalid_handshake")
    assert "maxConnectionsTotal" in error["message"]

    # The person's side is no client: it can come back however many of those there are.
    presenter.close()
    assert broker.new_presenter() is not presenter
    for client in within:
        client.call("runtime.describe")

    within.pop().close()
    until(lambda: is_taken_in(broker))


def test_at_most_64_are_in_the_handshake_and_the_others_wait(alone: BrokerProcess) -> None:
    broker = alone
    ready = broker.agent("discover")
    handshaking = [broker.connect("companion.sock") for _ in range(MAX_IN_HANDSHAKE)]
    for client in handshaking[:2]:
        hello(client)
    waiting = broker.connect("companion.sock")
    waiting.send(HELLO)
    assert waiting.nothing()

    # Whoever is ready, and the owner's own tools, notice nothing of it.
    ready.call("runtime.describe")
    assert broker.control().call("status")["connections"]["companion"] == 1 + MAX_IN_HANDSHAKE

    handshaking.pop().close()
    assert "result" in waiting.reply("h")


# -- calls ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.5", "CP-3.9")
def test_64_waits_are_allowed_and_each_is_given_back(broker: BrokerProcess) -> None:
    client = broker.agent("interact")
    _, snapshot = broker.show(client, ask(client))
    wait = {
        "requestId": snapshot["requestId"],
        "afterRevision": snapshot["revision"],
        "waitMs": 30_000,
    }
    waits = [client.start("requests.wait", **wait) for _ in range(64)]
    refused = client.refused("requests.wait", **wait)
    assert (refused["code"], refused["retryable"]) == ("RATE_LIMITED", True)
    assert refused["retryAfterMs"] > 0
    client.call("requests.get", requestId=snapshot["requestId"])
    final = withdraw(client, snapshot)
    assert [client.reply(number)["result"]["request"] for number in waits] == [final] * 64
    assert client.call("requests.wait", **wait)["request"] == final


@pytest.mark.requirement("CP-3.9")
def test_a_disconnect_ends_the_waits_and_never_the_request(broker: BrokerProcess) -> None:
    client, other = broker.agent("interact"), broker.agent("interact")
    shown, snapshot = broker.show(client, ask(client))
    for _ in range(64):
        client.start(
            "requests.wait",
            requestId=snapshot["requestId"],
            afterRevision=snapshot["revision"],
            waitMs=30_000,
        )
    client.close()
    assert other.call("requests.get", requestId=snapshot["requestId"]) == snapshot
    assert broker.presenter.answer(shown, "y") == {"outcome": "committed"}
    final = other.call("requests.get", requestId=snapshot["requestId"])
    assert (final["state"], final["result"]) == ("completed", {"selectedId": "y"})


@pytest.mark.requirement("CP-4.5")
def test_calls_over_the_published_rate_are_refused_and_the_session_lives(broker: BrokerProcess) -> None:
    client, other = broker.agent("discover"), broker.agent("discover")
    rate = client.call("runtime.describe")["limits"]["callsPerSecond"]
    flood = [call_of(number, "runtime.describe") for number in range(10 * rate)]
    client.send(b"".join(map(line_of, flood)))
    replies = [client.read() for _ in flood]
    assert sorted(reply["id"] for reply in replies) == list(range(10 * rate))
    errors = [reply["error"]["data"] for reply in replies if "error" in reply]
    assert len(replies) - len(errors) >= rate // 2
    assert {(error["code"], error["retryable"]) for error in errors} == {("RATE_LIMITED", True)}
    other.call("runtime.describe")
    time.sleep(max(error["retryAfterMs"] for error in errors) / 1000)
    client.call("runtime.describe")


@pytest.mark.requirement("LP-6")
def test_lease_messages_over_the_published_rate_are_refused_and_change_nothing(broker: BrokerProcess) -> None:
    holder = broker.holder("flood")
    end = {"action": "lease.end", "holderId": "flood", "appKey": APP}
    flood = [line_of({**end, "requestId": f"r{number}"}) for number in range(1000)]
    holder.send(b"".join(flood))
    answers = [holder.read() for _ in flood]
    assert [answer["requestId"] for answer in answers] == [f"r{number}" for number in range(1000)]
    assert {answer["code"] for answer in answers} == {"request_expired", "not_entitled"}
    assert all("messagesPerSecond" in a["message"] for a in answers if a["code"] == "not_entitled")


HELLO = line_of(
    call_of("h", "session.hello", protocolVersions=["0.1"], client={"name": "test", "version": "1"})
)


def hello(client: Rpc) -> None:
    client.send(HELLO)
    assert "result" in client.reply("h")


def connections(broker: BrokerProcess) -> int:
    """How many there are beside the one that asks."""
    with Rpc.connect(broker.runtime / "control.sock") as control:
        counts: dict[str, int] = control.call("status")["connections"]
    return sum(counts.values()) - 1


def is_taken_in(broker: BrokerProcess) -> bool:
    """Whether a new client is served, and not turned away."""
    with Rpc.connect(broker.runtime / "companion.sock") as client:
        try:
            client.send(HELLO)
            return "result" in client.read()
        except OSError:
            return False


def authenticated(broker: BrokerProcess, client_id: str, key: str) -> dict[str, object]:
    client = broker.greet()
    reply: dict[str, object] = client.reply(client.start("session.authenticate", clientId=client_id, key=key))
    return reply
