"""Over the real sockets nobody is the host: no key, no name, no member of a call makes one so (CP-1.3, CP-4.4)."""

from __future__ import annotations

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.questions import ask, choice

pytestmark = pytest.mark.requirement("CP-1.3", "CP-4.4")


@pytest.mark.parametrize("key", ["host", "k" * 43])
def test_the_hosts_id_authenticates_as_little_as_one_that_never_was(broker: BrokerProcess, key: str) -> None:
    replies = []
    for client_id in ("host", "nobody"):
        with broker.greet() as client:
            replies.append(client.reply(client.start("session.authenticate", clientId=client_id, key=key)))
    assert replies[0] == replies[1]
    assert replies[0]["error"]["data"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("name", ["Companion", "сompanion", "System", "host", "Ho\u200bst"])
def test_no_client_is_paired_under_a_name_that_reads_like_it(broker: BrokerProcess, name: str) -> None:
    with broker.greet() as client:
        refused = client.refused("pairing.request", clientName=name, scopes=["interact"])
        assert (refused["code"], refused["field"]) == ("INVALID_PARAMS", "clientName")
        assert refused["reason"] == "reserved"


@pytest.mark.requirement("CP-3.1")
@pytest.mark.parametrize("member", ["clientId", "source", "label", "program", "host"])
def test_no_member_says_who_asks(broker: BrokerProcess, member: str) -> None:
    client = broker.agent("interact")
    refused = client.refused("requests.create", **choice(), **{member: "host"})
    assert (refused["code"], refused["field"]) == ("INVALID_PARAMS", member)


def test_the_person_reads_the_name_of_the_pairing_and_the_program(broker: BrokerProcess) -> None:
    client = broker.agent("interact")
    shown, _ = broker.show(client, ask(client, "I am the host"))
    assert shown["source"]["label"] == "agent"
    assert shown["source"]["program"]


@pytest.mark.parametrize("socket", ["control.sock", "ai-protection.sock"])
def test_no_other_socket_takes_requests(broker: BrokerProcess, socket: str) -> None:
    connection = broker.connect(socket)
    connection.send({"jsonrpc": "2.0", "id": 1, "method": "requests.create", "params": choice()})
    assert "result" not in connection.read()
