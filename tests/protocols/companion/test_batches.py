"""A batch: its size, what may stand in it, and one line of replies (companion.md, JSON-RPC)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.policy import Limits
from protocols.companion.engine import CompanionEngine
from protocols.companion.messages import CancelRequest, GetRequest, UpdateRequest
from protocols.companion.methods import METHODS
from protocols.control.engine import ControlEngine
from protocols.refusal import ErrorCode, Refused
from protocols.session import Charge, Close, Deliver, RateLimited, Send
from tests.support.snapshots import snapshot

SNAPSHOT = snapshot("r")


class Peer:
    """A client whose session is authenticated; `delivered` are the calls that nobody has answered."""

    def __init__(self, max_batch: int = 16) -> None:
        self.engine = CompanionEngine(max_batch=max_batch)
        self.engine.authenticated = True
        self.engine._greeted = True
        self.engine.limit = 65_536
        self.delivered: list[Deliver] = []
        self.closed = False

    def say(self, batch: list[Any]) -> list[Any]:
        """Send a batch; the lines that come back."""
        self.engine.receive(json.dumps(batch).encode() + b"\n")
        return self.lines()

    def lines(self) -> list[Any]:
        lines: list[Any] = []
        while (output := self.engine.next_output()) is not None:
            match output:
                case Send(data):
                    lines += [json.loads(line) for line in data.splitlines()]
                case Deliver():
                    self.delivered.append(output)
                case Close():
                    self.closed = True
        return lines

    def answer(self, index: int, body: object = SNAPSHOT) -> list[Any]:
        self.engine.reply(self.delivered[index].number, body)
        return self.lines()


def call(method: str, id: Any = None, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def get(id: Any) -> dict[str, Any]:
    return call("requests.get", id, requestId="r")


def code_of(reply: Any) -> tuple[Any, int]:
    return reply["id"], reply["error"]["code"]


@pytest.mark.requirement("CP-4.5", "CP-2.3")
@pytest.mark.parametrize("most", [1, 16, 17, 40])
def test_a_batch_holds_as_many_calls_as_are_published(most: int) -> None:
    peer = Peer(most)
    assert peer.say([get(number) for number in range(most)]) == []
    assert len(peer.delivered) == most
    [told] = peer.say([get(number) for number in range(most + 1)])
    assert code_of(told) == (None, -32600)
    assert told["error"]["data"]["limit"] == most
    assert len(peer.delivered) == most, "none of it was taken"
    assert not peer.closed


def test_the_default_is_the_published_default() -> None:
    most = Limits().max_batch
    for engine in (CompanionEngine(), ControlEngine(65_536)):
        engine.authenticated = True
        engine.receive(json.dumps([7] * (most + 1)).encode() + b"\n")
        output = engine.next_output()
        assert isinstance(output, Send)
        assert json.loads(output.data)["error"]["data"]["limit"] == most


def test_the_owners_tools_have_the_same_limit() -> None:
    engine = ControlEngine(65_536, max_batch=2)
    engine.receive(json.dumps([call("status", 1), call("status", 2)]).encode() + b"\n")
    assert isinstance(engine.next_output(), Deliver)
    assert isinstance(engine.next_output(), Deliver)
    engine.receive(json.dumps([call("status", 1)] * 3).encode() + b"\n")
    output = engine.next_output()
    assert isinstance(output, Send)
    assert json.loads(output.data)["error"]["data"]["limit"] == 2


def test_an_empty_batch_is_one_error() -> None:
    [told] = Peer().say([])
    assert code_of(told) == (None, -32600)


def test_the_replies_are_one_line_when_the_last_of_them_is_there_in_any_order() -> None:
    peer = Peer()
    assert peer.say([get("a"), get("b"), call("requests.cancel", "c", requestId="r")]) == []
    assert peer.answer(2) == []
    assert peer.answer(0, Refused(ErrorCode.NOT_FOUND, "no")) == []
    [replies] = peer.answer(1)
    assert [reply["id"] for reply in replies] == ["c", "a", "b"]
    assert [("error" in reply) for reply in replies] == [False, True, False]


def test_a_batch_does_not_hold_up_what_comes_behind_it() -> None:
    peer = Peer()
    peer.say([get("a")])
    peer.engine.receive(json.dumps(get("alone")).encode() + b"\n")
    peer.lines()
    [told] = peer.answer(1)
    assert told["id"] == "alone"
    [[told]] = peer.answer(0)
    assert told["id"] == "a"


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.batched])
def test_what_may_not_stand_in_a_batch_is_one_error_under_its_own_id(method: str) -> None:
    peer = Peer()
    peer.say([call(method, "x"), get("a")])
    [replies] = peer.answer(0)
    assert {code_of(reply) for reply in replies if "error" in reply} == {("x", -32600)}
    assert [reply["id"] for reply in replies if "result" in reply] == ["a"]


def test_sessions_pairings_and_waits_are_what_may_not() -> None:
    alone = {name for name, method in METHODS.items() if not method.batched}
    pairing = {name for name in METHODS if name.startswith(("session.", "pairing."))}
    assert alone == pairing | {"requests.wait"}


def test_each_bad_element_is_one_error_and_the_others_are_calls() -> None:
    peer = Peer()
    bad: list[Any] = [
        7,
        None,
        [],
        {"jsonrpc": "2.0", "id": "m"},
        {"jsonrpc": "1.0", "id": "v", "method": "requests.get"},
    ]
    wrong = [
        call("no.such", "u"),
        call("requests.get", "p"),
        call("requests.get", "q", requestId="r", more=1),
    ]
    peer.say([*bad, *wrong, get("a")])
    [replies] = peer.answer(0)
    assert [code_of(reply) for reply in replies if "error" in reply] == [
        *[(None, -32600)] * 3,
        ("m", -32600),
        ("v", -32600),
        ("u", -32601),
        ("p", -32602),
        ("q", -32602),
    ]
    assert len(replies) == len(bad) + len(wrong) + 1


def test_of_nothing_but_bad_elements_there_is_a_line_at_once() -> None:
    [replies] = Peer().say([1, 2])
    assert [code_of(reply) for reply in replies] == [(None, -32600)] * 2


@pytest.mark.parametrize(
    "element",
    [
        {"jsonrpc": "2.0", "method": "requests.cancel", "params": {"requestId": "r"}},
        {"jsonrpc": "2.0", "method": "no.such"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ],
)
def test_a_batch_that_asks_nothing_has_no_effect_and_no_reply(element: dict[str, Any]) -> None:
    peer = Peer()
    assert peer.say([element, element]) == []
    assert peer.delivered == []
    peer.say([element, get("a")])
    [replies] = peer.answer(0)
    assert [reply["id"] for reply in replies] == ["a"]


def test_an_id_of_null_is_answered_and_the_same_id_twice_is_answered_twice() -> None:
    peer = Peer()
    peer.say([get(None), get("a"), get("a")])
    peer.answer(0)
    peer.answer(1)
    [replies] = peer.answer(2)
    assert [reply["id"] for reply in replies] == [None, "a", "a"]


@pytest.mark.requirement("CP-4.5")
def test_each_call_of_a_batch_is_charged_like_one_that_comes_alone() -> None:
    peer = Peer()
    update = call("requests.update", 2, requestId="r", expectedRevision=1, params={"fraction": 1})
    peer.say([get(1), update, call("requests.cancel", 3, requestId="r")])
    kinds = [(type(one.message), one.charge) for one in peer.delivered]
    assert kinds == [
        (GetRequest, Charge.CALL),
        (UpdateRequest, Charge.CALL),
        (CancelRequest, Charge.FREE),
    ]
    peer.answer(0)
    peer.answer(1, RateLimited(5, "callsPerSecond"))
    [replies] = peer.answer(2)
    assert [reply.get("error", {}).get("data", {}).get("code") for reply in replies] == [
        None,
        "RATE_LIMITED",
        None,
    ]


def test_what_closes_closes_behind_the_line() -> None:
    peer = Peer()
    peer.say([get("a"), get("b")])
    peer.answer(0, Refused(ErrorCode.UNAUTHENTICATED, "no", closes=True))
    assert not peer.closed
    [replies] = peer.answer(1)
    assert [reply["id"] for reply in replies] == ["a", "b"]
    assert peer.closed
