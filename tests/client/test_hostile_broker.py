"""Both flavours against brokers that are broken or lie: no answer is believed that nobody can have given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker.client.errors import CallFailed, ClientError, NotConnected, ProtocolBroken
from broker.client.outcomes import Expired, Unavailable
from protocols.companion.client import Credential
from tests.client.agents import FLAVOURS, Agent
from tests.client.scripted_server import Part, Peer, serving, snapshot

OPTIONS = {"a": "A", "b": "B"}
ANSWERED = {"state": "completed", "reason": "answered", "revision": 3, "result": {"selectedId": "a"}}


@pytest.fixture(params=FLAVOURS)
def agent(request: pytest.FixtureRequest, folder: Path) -> Agent:
    return FLAVOURS[request.param](folder / "s", Credential("c1", "k" * 43), 0.5)


def ends_as(**members: Any) -> Part:
    """A broker that accepts a question and ends it like this."""

    def part(peer: Peer) -> None:
        peer.greet()
        peer.answer(peer.read(), snapshot())
        peer.answer(peer.read(), {"changed": True, "request": snapshot(**members)})
        while call := peer.read():
            peer.answer(call, snapshot(**members))

    return part


def ask(agent: Agent) -> str:
    return str(agent("ask", "?", OPTIONS))


def test_an_honest_answer_is_an_answer(agent: Agent, folder: Path) -> None:
    with serving(folder / "s", ends_as(**ANSWERED)):
        assert ask(agent) == "a"


@pytest.mark.requirement("CP-2.14", "CP-3.5", "CP-3.7")
@pytest.mark.parametrize(
    "lie",
    [
        {"result": {"selectedId": "c"}},
        {"result": {"selectedId": "A"}},
        {"result": {"selectedId": None}},
        {"result": {}},
        {"result": None},
        {"reason": "finished"},
        {"reason": None},
    ],
)
def test_an_answer_that_was_not_offered_or_not_given_is_none(
    agent: Agent, folder: Path, lie: dict[str, Any]
) -> None:
    with serving(folder / "s", ends_as(**ANSWERED | lie)), pytest.raises(ProtocolBroken):
        ask(agent)


@pytest.mark.requirement("CP-3.7", "G14")
def test_an_end_without_an_answer_never_carries_one(agent: Agent, folder: Path) -> None:
    lie = {**ANSWERED, "state": "expired", "reason": "deadline"}
    with serving(folder / "s", ends_as(**lie)), pytest.raises(Expired) as caught:
        ask(agent)
    assert caught.value.request is not None
    assert caught.value.request.result is None


@pytest.mark.parametrize("text", ["", 7, None])
def test_a_text_that_nobody_wrote_is_none(agent: Agent, folder: Path, text: Any) -> None:
    with (
        serving(folder / "s", ends_as(**ANSWERED | {"result": {"text": text}})),
        pytest.raises(ProtocolBroken),
    ):
        agent("input", "?")


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\n",
        b'{"jsonrpc": "2.0", "id": 77, "result": {}}\n',
        b'{"jsonrpc": "2.0", "id": 3, "result": {"requestId": 1}}\n',
        b'{"jsonrpc": "2.0", "id": 3, "result": {"a": 1, "a": 2}}\n',
        b"[" * 10_000 + b"\n",
        b"x" * 1_048_577,
    ],
)
def test_a_broker_that_breaks_the_protocol_is_not_believed(agent: Agent, folder: Path, line: bytes) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        peer.read()
        peer.socket.sendall(line)
        while peer.read():
            pass

    with serving(folder / "s", part), pytest.raises(ProtocolBroken):
        agent("get", "q1")


def test_answers_cut_anywhere_are_put_together(agent: Agent, folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        call = peer.read()
        reply = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": snapshot(taskId="ä" * 100)})
        for byte in reply.encode() + b"\n":
            peer.socket.sendall(bytes([byte]))

    with serving(folder / "s", part):
        assert agent("get", "q1").task_id == "ä" * 100


def test_a_last_line_without_its_break_counts(agent: Agent, folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        reply = {"jsonrpc": "2.0", "id": peer.read()["id"], "result": snapshot()}
        peer.socket.sendall(json.dumps(reply).encode())

    with serving(folder / "s", part):
        assert agent("get", "q1").request_id == "q1"


@pytest.mark.requirement("CP-4.2")
def test_a_question_whose_reply_is_lost_is_asked_again_under_the_same_key(agent: Agent, folder: Path) -> None:
    said: list[Any] = []

    def loses(peer: Peer) -> None:
        peer.greet()
        said.append(peer.read())

    def finds(peer: Peer) -> None:
        peer.greet()
        said.append(call := peer.read())
        peer.answer(call, snapshot(**ANSWERED))

    with serving(folder / "s", loses, finds):
        assert ask(agent) == "a"
    assert said[0]["params"] == said[1]["params"]
    assert said[0]["params"]["idempotencyKey"]


def test_an_error_about_the_connection_is_the_answer_to_every_call(agent: Agent, folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        peer.read()
        data = {"code": "UNAUTHENTICATED", "retryable": False}
        peer.write({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "no", "data": data}})

    with serving(folder / "s", part), pytest.raises(CallFailed) as caught:
        agent("get", "q1")
    assert caught.value.code == "UNAUTHENTICATED"


@pytest.mark.parametrize("calls", [0, 1])
def test_a_refused_handshake_is_told(agent: Agent, folder: Path, calls: int) -> None:
    def part(peer: Peer) -> None:
        if calls:
            peer.greet_only()
        peer.refuse(peer.read(), "UNAUTHENTICATED")

    with serving(folder / "s", part), pytest.raises(CallFailed) as caught:
        agent("get", "q1")
    assert caught.value.code == "UNAUTHENTICATED"


def test_a_broker_that_hangs_up_at_once_is_not_connected(agent: Agent, folder: Path) -> None:
    with serving(folder / "s", lambda _peer: None), pytest.raises(NotConnected):
        agent("get", "q1")


def test_no_broker_is_not_connected(agent: Agent) -> None:
    with pytest.raises(NotConnected):
        agent("get", "q1")


@pytest.mark.parametrize("reason", ["no_presenter", "access_off", "something_new"])
def test_what_is_unavailable_for_another_reason_tells_the_reason(
    agent: Agent, folder: Path, reason: str
) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        peer.refuse(peer.read(), "RUNTIME_UNAVAILABLE", reason=reason)

    with serving(folder / "s", part), pytest.raises(Unavailable) as caught:
        ask(agent)
    assert (type(caught.value), caught.value.reason) == (Unavailable, reason)


def test_everything_that_is_raised_is_a_client_error() -> None:
    for kind in (CallFailed, NotConnected, ProtocolBroken, Expired):
        assert issubclass(kind, ClientError)
