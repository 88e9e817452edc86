"""The presenter's side against the broker's: everything that one writes, the other reads."""

from __future__ import annotations

import pytest

from protocols.companion.capabilities import Interaction, Kind, Tone
from protocols.errors import TheirError
from protocols.presenter import messages
from protocols.presenter.client import Failed, PresenterClient, Pushed, Question, Replied, Report
from protocols.presenter.engine import PresenterEngine
from protocols.refusal import ErrorCode, Refused
from protocols.session import Deliver, Send

DIGEST = "0" * 64
READY = messages.Ready(
    protocol_version="0.1",
    name="test",
    version="1",
    person=True,
    kinds=(Kind.INTERACTION,),
    interactions=(Interaction.CHOICE, Interaction.TEXT),
)
PRESENT = messages.Present(
    request_id="r1",
    revision=2,
    digest=DIGEST,
    kind=Kind.INTERACTION,
    interaction=Interaction.CHOICE,
    source=messages.Source(label="Agent", program="/usr/bin/agent", pid=7),
    capability="interaction.choose",
    character="aion",
    style="default",
    tone=Tone.WARNING,
    title="Read file?",
    options=(messages.Option(id="y", label="Yes"), messages.Option(id="n", label="No")),
    deadline_at="2026-11-12T00:00:00.000Z",
    remaining_ms=1000,
    queued=1,
)


class Line:
    """Both ends, joined by nothing but bytes."""

    def __init__(self) -> None:
        self.client = PresenterClient()
        self.engine = PresenterEngine()
        self.client.notify(READY)
        assert self.to_broker() == [READY]

    def to_broker(self) -> list[object]:
        self.engine.receive(self.client.data_to_send())
        found = []
        while isinstance(output := self.engine.next_output(), Deliver):
            found.append(output.message)
            self.number = output.number
        return found

    def to_presenter(self) -> list[Pushed | Replied | Failed]:
        data = b""
        while isinstance(output := self.engine.take_output(), Send):
            data += output.data
        return [message for at in range(len(data)) for message in self.client.receive(data[at : at + 1])]


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.mark.parametrize(
    "push",
    [
        PRESENT,
        messages.Dismiss(pairing_id="p1", reason="expired"),
        messages.ConfirmPairing(
            pairing_id="p1",
            digest=DIGEST,
            client_name="Agent",
            name_in_use=True,
            scopes=("discover", "interact"),
            purpose="asks",
            verification_code="012345",
            retention_hours=24,
            expires_at="2026-11-12T00:00:00.000Z",
        ),
        messages.Settings(
            visible=True,
            paused=False,
            access_enabled=True,
            language="en",
            reduced_motion=False,
            sound=False,
        ),
    ],
    ids=lambda push: type(push).__name__,
)
def test_what_the_broker_pushes_arrives(line: Line, push: Pushed) -> None:
    line.engine.push(push)
    assert line.to_presenter() == [push]


@pytest.mark.parametrize(
    "report",
    [
        messages.Presented(request_id="r1", revision=2, digest=DIGEST),
        messages.Presented(pairing_id="p1", digest=DIGEST),
        messages.Deferred(request_id="r1", revision=2, why="locked"),
        messages.Finished(request_id="r1"),
        messages.Attention(request_id="r1", held=True),
    ],
    ids=lambda report: type(report).__name__,
)
def test_what_the_presenter_reports_arrives(line: Line, report: Report) -> None:
    line.client.notify(report)
    assert line.to_broker() == [report]


@pytest.mark.parametrize(
    ("question", "body"),
    [
        (
            messages.Answer(
                request_id="r1", revision=2, digest=DIGEST, input_started_ms=5, result={"selectedId": "y"}
            ),
            messages.COMMITTED,
        ),
        (
            messages.Dismissed(request_id="r1", revision=2, digest=DIGEST, input_started_ms=5),
            messages.too_late("expired", "deadline"),
        ),
        (
            messages.PairingDecision(
                pairing_id="p1", digest=DIGEST, input_started_ms=5, approved=True, scopes=("discover",)
            ),
            messages.rejected("stale"),
        ),
        (messages.User(action="hide"), messages.Done()),
        (messages.List(what="clients"), messages.Listing(clients=())),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_question_is_answered_under_its_number(
    line: Line, question: Question, body: messages.Outcome | messages.Done | messages.Listing
) -> None:
    number = line.client.call(question)
    assert line.to_broker() == [question]
    line.engine.reply(line.number, body)
    assert line.to_presenter() == [Replied(number, body)]


def test_an_error_is_told_by_its_stable_word(line: Line) -> None:
    number = line.client.call(messages.User(action="set"))
    line.to_broker()
    line.engine.reply(line.number, Refused(ErrorCode.INVALID_PARAMS, "no"))
    assert line.to_presenter() == [Failed(number, "INVALID_PARAMS", "no")]


def test_a_ping_is_answered_by_itself(line: Line) -> None:
    line.engine.push(messages.Ping())
    assert line.to_presenter() == []
    assert line.to_broker() == [messages.Pong()]


def test_a_push_that_is_not_known_is_ignored(line: Line) -> None:
    assert line.client.receive(b'{"jsonrpc":"2.0","method":"sing","params":{}}\n') == []


def test_a_broker_that_speaks_no_json_is_an_error(line: Line) -> None:
    with pytest.raises(TheirError):
        line.client.receive(b"hello\n")
