"""The given cases about things that happen at the same moment: G05, G06, G11, G12."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.broker_process import CONFIG, BrokerProcess
from tests.support.lines import Rpc, Stopwatch, call_of, line_of
from tests.support.questions import OPTIONS, ask, choice, withdraw

BROKER_CONFIG = CONFIG + "[limits]\ncallsPerSecond = 1000000\n"
SOON_SECONDS = 3.0
"""The cases say one second; what they guard against is not slowness but standing still."""
MEGABYTE = 1024 * 1024
OUTBOX_BYTES = 4 * MEGABYTE
LONG = "x" * 128
BIG: dict[str, Any] = {
    "taskId": "\N{CAT}" * 128,
    "params": {"title": "?", "options": [{"id": "y" * 64, "label": "Yes"}, OPTIONS[1]]},
}
"""The members that make a snapshot as big as one gets."""


# -- G05: many replies fall due on one connection at the same moment -----------------------------------------


@pytest.mark.requirement("G05", "CP-3.9")
def test_many_replies_that_fall_due_at_once_are_lines_of_their_own(broker: BrokerProcess) -> None:
    """Fifty waits and, before them, more replies than the socket's buffer holds, so that the writer is behind."""
    client = broker.agent("discover", "interact")
    shown, snapshot = broker.show(client, ask(client, **BIG))
    waits = [wait_call(number, snapshot) for number in range(50)]
    gets = [
        call_of(f"get {number}", "requests.get", requestId=snapshot["requestId"]) for number in range(400)
    ]
    client.send(b"".join(map(line_of, waits + gets)))
    assert broker.presenter.answer(shown, "y" * 64) == {"outcome": "committed"}
    replies = [client.read() for _ in waits + gets]
    assert {reply["id"] for reply in replies} == {call["id"] for call in waits + gets}
    waited = [reply["result"] for reply in replies if type(reply["id"]) is int]
    assert all(result["changed"] for result in waited)
    assert {result["request"]["state"] for result in waited} == {"completed"}
    assert {result["request"]["result"]["selectedId"] for result in waited} == {"y" * 64}
    client.call("runtime.describe")
    assert client.nothing()


# -- G06: a client that stops reading ------------------------------------------------------------------------


@pytest.mark.requirement("G06")
def test_a_client_that_stops_reading_stops_nobody_else(broker: BrokerProcess) -> None:
    deaf, other = broker.agent("discover", "interact"), broker.agent("discover", "interact")
    request = ended(broker, deaf)
    before = broker.memory
    gets = b"".join(
        line_of(call_of(f"{number:06} {LONG}"[:128], "requests.get", requestId=request["requestId"]))
        for number in range(20_000)
    )
    sent = deaf.send_until_stuck(gets)
    assert sent < len(gets), "the broker goes on reading from a peer that does not read"
    assert broker.memory - before < 4 * OUTBOX_BYTES

    watch = Stopwatch()
    other.call("runtime.describe")
    assert broker.control().call("status")["connections"]["companion"] == 2
    shown, _ = broker.show(other, ask(other))
    assert broker.presenter.answer(shown, "y") == {"outcome": "committed"}
    assert broker.holder("g06").begin("org.example.App", 60)["code"] == "accepted"
    assert watch.seconds < SOON_SECONDS

    # Its own answers have waited for it, each whole and each once.
    whole = gets[:sent].count(b"\n")
    numbers = [int(deaf.read()["id"][:6]) for _ in range(whole)]
    assert sorted(numbers) == list(range(whole))
    deaf.send(gets[sent:].split(b"\n", 1)[0] + b"\n")
    deaf.call("runtime.describe")


@pytest.mark.requirement("G06")
def test_a_lease_holder_that_stops_reading_stops_nobody_else(broker: BrokerProcess) -> None:
    deaf, other = broker.holder("deaf"), broker.holder("other")
    before = broker.memory
    unknown = line_of({"action": f"no.such.action {LONG}", "requestId": LONG}) * 100_000
    assert deaf.send_until_stuck(unknown) < len(unknown)
    assert broker.memory - before < 4 * OUTBOX_BYTES
    watch = Stopwatch()
    assert other.begin("org.example.App", 60)["code"] == "accepted"
    broker.agent("discover").call("runtime.describe")
    assert watch.seconds < SOON_SECONDS


@pytest.mark.requirement("G06")
def test_a_client_that_leaves_without_reading_is_forgotten(broker: BrokerProcess) -> None:
    before = broker.memory
    for _ in range(4):
        deaf = broker.agent("discover", "interact")
        deaf.send_until_stuck(line_of(call_of(LONG, "runtime.describe")) * 20_000, 0.2)
        deaf.close()
    control = broker.control()
    while control.call("status")["connections"].get("companion"):
        assert control.nothing(0.05)
    assert broker.memory - before < 2 * OUTBOX_BYTES


# -- G11: the same idempotency key, twice at once, then with another body ------------------------------------


@pytest.mark.requirement("G11", "CP-4.1", "CP-4.2")
def test_the_same_key_twice_at_once_makes_one_request(broker: BrokerProcess) -> None:
    clients = [broker.agent("interact") for _ in range(2)]
    for round_number in range(10):
        calls = at_once(clients, "requests.create", **choice(idempotencyKey=f"twice {round_number}"))
        assert calls[0]["result"]["requestId"] == calls[1]["result"]["requestId"]
        broker.presenter.wait_for("present", requestId=calls[0]["result"]["requestId"])
        withdraw(clients[0], calls[0]["result"])
    ask_and_expect_only_that_bubble(broker, clients[0])


@pytest.mark.requirement("G11", "CP-4.1", "CP-4.2")
def test_a_key_belongs_to_one_request_for_as_long_as_that_is_kept(broker: BrokerProcess) -> None:
    client, again = broker.agent("interact"), broker.agent("interact")
    request = ask(client, idempotencyKey="k-1")
    shown, _ = broker.show(client, request)
    assert client.refused("requests.create", **choice("Delete?", idempotencyKey="k-1")) == {
        "code": "IDEMPOTENCY_CONFLICT",
        "retryable": False,
    }
    assert broker.presenter.answer(shown, "y") == {"outcome": "committed"}
    repeats = [ask(again, idempotencyKey="k-1"), again.call("requests.create", **other_member_order("k-1"))]
    for repeat in repeats:
        assert repeat["requestId"] == request["requestId"]
        assert (repeat["state"], repeat["result"]) == ("completed", {"selectedId": "y"})
    code = again.refused("requests.create", **choice("Delete?", idempotencyKey="k-1"))["code"]
    assert code == "IDEMPOTENCY_CONFLICT"
    ask_and_expect_only_that_bubble(broker, client)


@pytest.mark.requirement("G11", "CP-4.1")
def test_a_key_is_the_clients_own(broker: BrokerProcess) -> None:
    one, another = broker.agent("interact"), broker.agent("discover", "interact")
    requests = [ask(client, idempotencyKey="shared word") for client in (one, another)]
    assert requests[0]["requestId"] != requests[1]["requestId"]
    for client, request in zip((one, another), requests, strict=True):
        withdraw(client, request)


# -- G12: cancel must overtake a wait on the same connection -------------------------------------------------


@pytest.mark.requirement("G12", "CP-3.4", "CP-3.10")
def test_a_cancel_overtakes_a_wait(broker: BrokerProcess) -> None:
    client = broker.agent("interact")
    shown, snapshot = broker.show(client, ask(client))
    cancel = call_of(2, "requests.cancel", requestId=snapshot["requestId"])
    watch = Stopwatch()
    client.send(line_of(wait_call(1, snapshot)) + line_of(cancel))
    waited, cancelled = client.reply(1)["result"], client.reply(2)["result"]
    dismissed = broker.presenter.wait_for("dismiss", requestId=snapshot["requestId"])
    assert watch.seconds < SOON_SECONDS
    assert waited["changed"]
    assert waited["request"] == cancelled
    assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "cancelled_by_client")
    assert cancelled["revision"] > snapshot["revision"]
    assert cancelled["result"] is None
    assert dismissed["reason"] == "cancelled_by_client"

    late = broker.presenter.answer(shown, "y")
    assert late == {"outcome": "too_late", "state": "cancelled", "reason": "cancelled_by_client"}
    assert client.call("requests.get", requestId=snapshot["requestId"]) == cancelled
    assert client.nothing()


@pytest.mark.requirement("G12", "CP-3.10")
def test_of_an_answer_and_a_cancel_one_wins_for_everybody(broker: BrokerProcess) -> None:
    client = broker.agent("interact")
    for _ in range(5):
        shown, snapshot = broker.show(client, ask(client))
        outcomes: list[dict[str, Any]] = []
        answering = threading.Thread(target=lambda: outcomes.append(broker.presenter.answer(shown, "n")))  # noqa: B023
        answering.start()
        waited = client.start("requests.wait", **wait_call(0, snapshot)["params"])
        assert client.nothing(0.075)
        final = withdraw(client, snapshot)
        answering.join()
        assert client.reply(waited)["result"]["request"] == final
        if outcomes[0]["outcome"] == "committed":
            assert (final["state"], final["result"]) == ("completed", {"selectedId": "n"})
        else:
            assert outcomes[0] == {"outcome": "too_late", "state": "cancelled", "reason": final["reason"]}
            assert (final["state"], final["result"]) == ("cancelled", None)
        assert client.call("requests.get", requestId=snapshot["requestId"]) == final


def wait_call(call_id: int, snapshot: dict[str, Any]) -> dict[str, Any]:
    return call_of(
        call_id,
        "requests.wait",
        requestId=snapshot["requestId"],
        afterRevision=snapshot["revision"],
        waitMs=30_000,
    )


def ended(broker: BrokerProcess, client: Rpc) -> dict[str, Any]:
    """A request with the biggest possible result."""
    request = ask(client, **BIG)
    shown, _ = broker.show(client, request)
    assert broker.presenter.answer(shown, "y" * 64) == {"outcome": "committed"}
    return request


def at_once(clients: list[Rpc], method: str, **params: Any) -> list[dict[str, Any]]:
    """The same call on each connection at the same moment; the replies."""
    start = threading.Barrier(len(clients))
    replies: dict[int, dict[str, Any]] = {}

    def call(index: int) -> None:
        start.wait()
        replies[index] = clients[index].reply(clients[index].start(method, **params))

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [replies[index] for index in range(len(clients))]


def other_member_order(key: str) -> dict[str, Any]:
    """The very request of `choice`, with the members of every object the other way round."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turned(value[name]) for name in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    params: dict[str, Any] = turned(choice(idempotencyKey=key))
    return params


def ask_and_expect_only_that_bubble(broker: BrokerProcess, client: Rpc) -> None:
    """The next picture is that of a request made now: nothing else was drawn before it."""
    request = ask(client, "The only new one?")
    assert broker.presenter.wait_for("present")["requestId"] == request["requestId"]
    withdraw(client, request)
