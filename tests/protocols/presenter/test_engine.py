"""The broker's side of the presenter protocol: what is delivered, what is sent, what ends the connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocols.companion.capabilities import Interaction, Kind
from protocols.presenter import messages
from protocols.presenter.engine import PresenterEngine
from protocols.session import Charge, Close, Deliver, Fault, NotSaved, Output, Refusal, Send

READY = {
    "protocolVersion": "0.1",
    "name": "test",
    "version": "1",
    "person": True,
    "kinds": ["notice", "interaction"],
    "interactions": ["choice"],
}
DIGEST = "a" * 64
ANSWER = {
    "requestId": "r1",
    "revision": 2,
    "digest": DIGEST,
    "inputStartedMs": 10,
    "result": {"selectedId": "y"},
}


def line(method: str, params: object, id: int | None = None) -> bytes:
    call: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
    if id is not None:
        call["id"] = id
    return json.dumps(call).encode() + b"\n"


def outputs(engine: PresenterEngine, data: bytes = b"") -> list[Output]:
    engine.receive(data)
    found = []
    while (output := engine.next_output()) is not None:
        found.append(output)
    return found


def sent(engine: PresenterEngine) -> list[dict[str, Any]]:
    return [json.loads(output.data) for output in outputs(engine) if isinstance(output, Send)]


@pytest.fixture
def engine() -> PresenterEngine:
    engine = PresenterEngine()
    delivered = outputs(engine, line("ready", READY))
    assert [type(output) for output in delivered] == [Deliver]
    return engine


def test_ready_is_delivered_and_ends_the_handshake() -> None:
    engine = PresenterEngine()
    assert not engine.authenticated
    assert outputs(engine, line("ready", READY)) == [
        Deliver(
            1,
            messages.Ready(
                protocol_version="0.1",
                name="test",
                version="1",
                person=True,
                kinds=(Kind.NOTICE, Kind.INTERACTION),
                interactions=(Interaction.CHOICE,),
            ),
            Charge.FREE,
        )
    ]
    assert engine.authenticated


@pytest.mark.parametrize(
    "first",
    [
        line("presented", {"requestId": "r1", "revision": 1, "digest": DIGEST}),
        line("answer", ANSWER, 1),
        line("list", {"what": "pending"}, 1),
        line("user", {"action": "enable_access"}, 1),
        line("no_such_notification", {}),
        line("ready", {**READY, "protocolVersion": "0.2"}),
        line("ready", {**READY, "person": "yes"}),
        b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
        b"not json\n",
        b"[]\n",
    ],
)
@pytest.mark.requirement("CP-5.6")
def test_before_ready_nothing_else_is_accepted(first: bytes) -> None:
    engine = PresenterEngine()
    assert outputs(engine, first + line("ready", READY))[-1] == Close()
    assert not any(isinstance(output, Deliver) for output in outputs(engine))
    assert not engine.authenticated


def test_nothing_is_delivered_with_the_close_before_ready() -> None:
    engine = PresenterEngine()
    found = outputs(engine, line("answer", ANSWER, 1))
    assert [output for output in found if isinstance(output, Deliver)] == []


@pytest.mark.parametrize(
    "broken",
    [
        b"{\n",
        b'{"jsonrpc":"2.0","method":7}\n',
        b"x" * 65_537,
        line("presented", {"requestId": "r1", "digest": DIGEST}),
        line("presented", {"requestId": "r1", "revision": 1, "pairingId": "p1", "digest": DIGEST}),
        line("deferred", {"requestId": "r1", "revision": 1, "why": "bored"}),
        line("ready", READY),
        b'{"jsonrpc":"2.0","id":99,"result":{}}\n',
    ],
)
def test_a_broken_or_oversize_line_closes(engine: PresenterEngine, broken: bytes) -> None:
    assert outputs(engine, broken) == [Close()]


def test_a_frame_of_64_kib_is_read(engine: PresenterEngine) -> None:
    frame = line("answer", {**ANSWER, "result": {"text": ""}}, 1)
    padded = frame.replace(b'"text": ""', b'"text": "' + b"a" * (65_536 - len(frame) + 1) + b'"')
    assert len(padded) == 65_537
    assert [type(output) for output in outputs(engine, padded)] == [Deliver]


def test_a_call_with_bad_params_is_answered_and_the_connection_lives(engine: PresenterEngine) -> None:
    outputs(engine, line("ready_or_not", {}))
    engine.receive(line("answer", {**ANSWER, "inputStartedMs": -1}, 5))
    [reply] = sent(engine)
    assert (reply["id"], reply["error"]["code"]) == (5, -32602)
    assert reply["error"]["data"]["field"] == "inputStartedMs"


def test_an_answer_is_answered_with_its_outcome(engine: PresenterEngine) -> None:
    [delivered] = outputs(engine, line("answer", ANSWER, 7))
    assert isinstance(delivered, Deliver)
    engine.reply(delivered.number, messages.too_late("cancelled", "cancelled_by_client"))
    assert sent(engine) == [
        {
            "jsonrpc": "2.0",
            "id": 7,
            "result": {"outcome": "too_late", "state": "cancelled", "reason": "cancelled_by_client"},
        }
    ]


@pytest.mark.requirement("CP-4.12")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("answer", ANSWER),
        ("dismissed", {name: value for name, value in ANSWER.items() if name != "result"}),
        (
            "pairing_decision",
            {"pairingId": "p", "digest": DIGEST, "inputStartedMs": 0, "approved": True, "scopes": ["notify"]},
        ),
    ],
)
def test_what_could_not_be_saved_is_rejected_and_not_an_error(
    engine: PresenterEngine, method: str, params: dict[str, object]
) -> None:
    [delivered] = outputs(engine, line(method, params, 7))
    assert isinstance(delivered, Deliver)
    engine.reply(delivered.number, NotSaved())
    assert sent(engine) == [
        {"jsonrpc": "2.0", "id": 7, "result": {"outcome": "rejected", "reason": "not_saved"}}
    ]


def test_an_action_that_could_not_be_saved_is_an_error(engine: PresenterEngine) -> None:
    [delivered] = outputs(engine, line("user", {"action": "hide"}, 7))
    assert isinstance(delivered, Deliver)
    engine.reply(delivered.number, NotSaved())
    [reply] = sent(engine)
    assert reply["error"]["data"]["code"] == "RUNTIME_UNAVAILABLE"


@pytest.mark.parametrize("refusal", [NotSaved(), Fault()])
def test_a_ready_that_could_not_be_decided_or_saved_starts_again(
    engine: PresenterEngine, refusal: Refusal
) -> None:
    engine.reply(1, refusal)
    assert outputs(engine) == [Close()]


def test_a_ping_is_answered_by_a_pong_once(engine: PresenterEngine) -> None:
    engine.push(messages.Ping())
    [ping] = sent(engine)
    assert (ping["method"], ping["params"]) == ("ping", {})
    answer = json.dumps({"jsonrpc": "2.0", "id": ping["id"], "result": {}}).encode() + b"\n"
    [delivered] = outputs(engine, answer)
    assert isinstance(delivered, Deliver)
    assert delivered.message == messages.Pong()
    assert outputs(engine, answer) == [Close()]


def test_absent_members_are_left_out_of_a_push(engine: PresenterEngine) -> None:
    engine.push(messages.Dismiss(request_id="r1", reason="deadline"))
    assert sent(engine) == [
        {"jsonrpc": "2.0", "method": "dismiss", "params": {"requestId": "r1", "reason": "deadline"}}
    ]


def test_no_message_that_carries_content_shows_it_when_printed() -> None:
    answer = messages.Answer(
        request_id="r", revision=1, digest=DIGEST, input_started_ms=0, result={"text": "secret"}
    )
    assert "secret" not in repr(answer)
