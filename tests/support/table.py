"""The desk of the terminal presenter with the broker's engine before it and a test as the person behind it.

Pictures are made here as the broker makes them (`whole`), for every test that draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import attrs

from broker.presenters.characters import Paper
from broker.presenters.desk import Desk
from broker.presenters.keyboard import Form, Line
from protocols.companion.capabilities import Interaction, Kind
from protocols.presenter import picture
from protocols.presenter.client import Failed, PresenterClient, Pushed, Replied
from protocols.presenter.engine import PresenterEngine
from protocols.presenter.messages import (
    Answer,
    ConfirmPairing,
    Deferred,
    Input,
    Option,
    Present,
    Presented,
    Source,
    Update,
)
from protocols.session import Deliver
from tests.protocols.presenter.test_client import READY

M = TypeVar("M", Present, ConfirmPairing)


def whole(shown: M) -> M:
    """The message with the digest that the broker gives it."""
    if isinstance(shown, Present):
        return attrs.evolve(shown, digest=picture.digest(picture.of_present(shown)))
    return attrs.evolve(shown, digest=picture.digest(picture.of_confirmation(shown)))


def question(id: str, title: str = "Read file?", **changes: Any) -> Present:
    shown = Present(
        request_id=id,
        revision=2,
        digest="",
        kind=Kind.INTERACTION,
        interaction=Interaction.CHOICE,
        source=Source(label="Agent"),
        capability="interaction.choose",
        character="aion",
        style="default",
        title=title,
        options=(Option(id="yes", label="Allow"), Option(id="no", label="Deny")),
        deadline_at="2030-01-02T12:34:56.000Z",
        remaining_ms=60_000,
        queued=0,
    )
    return whole(attrs.evolve(shown, **changes))


def text_question(id: str, title: str = "Name?", *, multiline: bool = False, max_length: int = 10) -> Present:
    limits = Input(placeholder="", multiline=multiline, max_length=max_length)
    return question(id, title, interaction=Interaction.TEXT, options=None, input=limits)


def bubble(id: str, kind: Kind, **changes: Any) -> Present:
    """A picture that asks for nothing."""
    return question(id, kind=kind, interaction=Interaction.NONE, options=None, **changes)


def progress(id: str, fraction: float | None = None, **changes: Any) -> Present:
    return bubble(id, Kind.PROGRESS, title="Build", fraction=fraction, **changes)


def updated(shown: Present, **changes: Any) -> Update:
    """The next picture of the same request."""
    changed = whole(attrs.evolve(shown, revision=shown.revision + 1, **changes))
    return Update(**attrs.asdict(changed, recurse=False))


NOTICE = bubble("n1", Kind.NOTICE, title=None, text="Hello.")
PAIRING = whole(
    ConfirmPairing(
        pairing_id="p1",
        digest="",
        client_name="Agent",
        name_in_use=False,
        scopes=("discover", "interact"),
        verification_code="012345",
        retention_hours=24,
        expires_at="",
    )
)


class Table:
    """A desk with a broker before it and a person behind it, on a clock that stands until it is moved."""

    paper = Paper()

    def __init__(self) -> None:
        self.client = PresenterClient()
        self.engine = PresenterEngine()
        self.drawn: list[str] = []
        self.forms: list[Form] = []
        self.begun = ""
        """What the person has typed without an Enter."""
        self.rung = 0
        self.now = 100.0
        self.desk = Desk(self.client, self)
        self.client.notify(READY)
        assert self.reported() == [READY]

    # -- the seat ------------------------------------------------------------------------------------------

    def say(self, lines: Sequence[str]) -> None:
        self.drawn += lines

    def ask(self, form: Form, text: str = "") -> str:
        self.forms.append(form)
        forgotten, self.begun = self.begun, text
        return forgotten

    def ring(self) -> None:
        self.rung += 1

    def clock_at(self, instant: str) -> str:
        return f"({instant})"

    def clock_in(self, milliseconds: int) -> str:
        return f"(in {milliseconds} ms)"

    # -- what happens --------------------------------------------------------------------------------------

    def show(self, *pushed: Pushed | Replied | Failed) -> list[Any]:
        """What the presenter reports on these messages."""
        for message in pushed:
            self.desk.receive(message, self.now)
        return self.reported()

    def type(self, text: str, *, age: float = 0.25) -> list[Any]:
        """What the presenter sends when a line is typed that began so many seconds ago."""
        self.desk.typed(Line(text, self.now - age), self.now)
        return self.reported()

    def wait(self, seconds: float) -> list[Any]:
        """What the presenter reports in this time."""
        end = self.now + seconds
        while (next_in := self.desk.next_in(self.now)) is not None and self.now + next_in <= end:
            self.now += next_in
            self.desk.look_at_clock(self.now)
        self.now = end
        return self.reported()

    def reported(self) -> list[Any]:
        self.engine.receive(self.client.data_to_send())
        found = []
        while isinstance(output := self.engine.next_output(), Deliver):
            found.append(output.message)
        return found

    def text(self) -> str:
        drawn, self.drawn[:] = "\n".join(self.drawn), []
        return drawn


def presented(shown: Present) -> Presented:
    return Presented(request_id=shown.request_id, revision=shown.revision, digest=shown.digest)


def answered(shown: Present, selected: str, age: int = 250) -> Answer:
    return Answer(
        request_id=shown.request_id,
        revision=shown.revision,
        digest=shown.digest,
        input_started_ms=age,
        result={"selectedId": selected},
    )


def deferred(shown: Present) -> Deferred:
    return Deferred(request_id=shown.request_id, revision=shown.revision, why="space")
