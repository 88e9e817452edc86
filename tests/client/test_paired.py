"""The client of a paired program: what becomes of a call whose connection breaks (CP-4.2)."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from broker.client.blocking.paired import PairedClient
from broker.client.errors import CallFailed, NotConnected, ProtocolBroken
from protocols.companion.client import Credential
from protocols.companion.messages import CreateRequest, Implementation
from tests.client.scripted_server import Part, Peer, serving, snapshot

REQUEST = CreateRequest(capability="interaction.choose", params={"title": "?"}, timeout_ms=5_000)


def client_at(path: Path, patience: float = 5.0) -> PairedClient:
    program = Implementation(name="test", version="1")
    return PairedClient(path, program, Credential("c1", "k" * 43), patience)


def loses(calls: list[Any]) -> Part:
    """A connection that breaks after the call has arrived."""

    def part(peer: Peer) -> None:
        peer.greet()
        calls.append(peer.read())

    return part


def answers(calls: list[Any], *results: Any) -> Part:
    def part(peer: Peer) -> None:
        peer.greet()
        for result in results:
            calls.append(call := peer.read())
            peer.answer(call, result)

    return part


@pytest.mark.requirement("CP-4.2")
def test_a_create_whose_reply_is_lost_is_repeated_with_the_same_key(folder: Path) -> None:
    calls: list[Any] = []
    with (
        serving(folder / "s", loses(calls), answers(calls, snapshot())),
        client_at(folder / "s") as client,
    ):
        assert client.create(REQUEST).value.request_id == "q1"
    first, second = (call["params"] for call in calls)
    assert first == second
    assert first["idempotencyKey"]


@pytest.mark.requirement("CP-4.2")
def test_the_callers_own_key_is_kept(folder: Path) -> None:
    calls: list[Any] = []
    own = CreateRequest(capability="c", params={}, timeout_ms=1, idempotency_key="mine")
    with serving(folder / "s", answers(calls, snapshot())), client_at(folder / "s") as client:
        client.create(own)
    assert calls[0]["params"]["idempotencyKey"] == "mine"


@pytest.mark.requirement("CP-4.2")
def test_two_requests_never_share_a_key(folder: Path) -> None:
    calls: list[Any] = []
    with serving(folder / "s", answers(calls, snapshot(), snapshot())), client_at(folder / "s") as client:
        client.create(REQUEST)
        client.create(REQUEST)
    first, second = (call["params"]["idempotencyKey"] for call in calls)
    assert first != second


def test_a_wait_goes_on_over_a_new_connection(folder: Path) -> None:
    calls: list[Any] = []
    ended = {"changed": True, "request": snapshot(state="expired", revision=2, reason="deadline")}
    with serving(folder / "s", loses(calls), answers(calls, ended)), client_at(folder / "s") as client:
        assert client.wait("q1", 1, None).value.request.revision == 2
    assert [call["method"] for call in calls] == ["requests.wait"] * 2


def test_a_broker_that_does_not_come_back_is_not_connected(folder: Path) -> None:
    with (
        client_at(folder / "s", patience=0.1) as client,
        serving(folder / "s", loses([])),
        pytest.raises(NotConnected),
    ):
        client.get("q1")


def test_a_wait_longer_than_the_brokers_limit_loops(folder: Path) -> None:
    calls: list[Any] = []

    def part(peer: Peer) -> None:
        peer.greet()
        calls.append(first := peer.read())
        peer.refuse(first, "INVALID_PARAMS", field="waitMs", limit=100)
        for changed in (False, False, True):
            calls.append(call := peer.read())
            peer.answer(call, {"changed": changed, "request": snapshot()})

    with serving(folder / "s", part), client_at(folder / "s") as client:
        assert client.wait("q1", 1, None).value.changed
    assert [call["params"]["waitMs"] for call in calls] == [60_000, 100, 100, 100]


def test_a_wait_ends_without_news_when_its_time_is_over(folder: Path) -> None:
    with (
        serving(folder / "s", answers([], {"changed": False, "request": snapshot()})),
        client_at(folder / "s") as client,
    ):
        assert not client.wait("q1", 1, 0).value.changed


def test_a_refusal_is_not_repeated(folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        peer.refuse(peer.read(), "NOT_FOUND", recordsLostAt="2026-01-01T00:00:00.000Z")

    with (
        serving(folder / "s", part),
        client_at(folder / "s") as client,
        pytest.raises(CallFailed) as caught,
    ):
        client.get("q1")
    assert caught.value.code == "NOT_FOUND"
    assert caught.value.details == {"recordsLostAt": "2026-01-01T00:00:00.000Z"}


@pytest.mark.parametrize("text", ["x" * 70_000, "\ud800"])
def test_a_call_that_cannot_be_sent_is_refused_and_costs_no_connection(folder: Path, text: str) -> None:
    bad = CreateRequest(capability="c", params={"text": text}, timeout_ms=1)
    with serving(folder / "s", answers([], snapshot())), client_at(folder / "s") as client:
        with pytest.raises(CallFailed) as caught:
            client.create(bad)
        assert client.get("q1").value.request_id == "q1"
    assert caught.value.code == "INVALID_PARAMS"


def test_threads_share_a_client_and_never_a_connection(folder: Path) -> None:
    waits, asked = threading.Event(), threading.Event()
    revisions: list[int] = []

    def slow(peer: Peer) -> None:
        peer.greet()
        call = peer.read()
        waits.set()
        assert asked.wait(10)
        peer.answer(call, {"changed": True, "request": snapshot(revision=2)})

    def quick(peer: Peer) -> None:
        peer.greet()
        peer.answer(peer.read(), snapshot())
        asked.set()

    with serving(folder / "s", slow, quick, at_once=True), client_at(folder / "s") as client:
        thread = threading.Thread(
            target=lambda: revisions.append(client.wait("q1", 1, None).value.request.revision)
        )
        thread.start()
        assert waits.wait(10)
        assert client.get("q1").value.revision == 1
        thread.join(10)
    assert revisions == [2]


def test_an_answer_in_many_fragments_is_put_together(folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        call = peer.read()
        reply = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": snapshot(taskId="ä" * 100)})
        for byte in reply.encode() + b"\n":
            peer.socket.sendall(bytes([byte]))

    with serving(folder / "s", part), client_at(folder / "s") as client:
        assert client.get("q1").value.task_id == "ä" * 100


def test_a_broker_that_breaks_the_protocol_is_not_believed(folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        peer.read()
        peer.socket.sendall(b'{"jsonrpc": "2.0", "id": 77, "result": {}}\n')

    with serving(folder / "s", part), client_at(folder / "s") as client, pytest.raises(ProtocolBroken):
        client.get("q1")
