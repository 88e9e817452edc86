"""The presenter's end in the pure world, and the person before it.

It draws whatever it is told to, and reports nothing before the test says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from handlers.events import CallRef
from protocols.companion.capabilities import Interaction, Kind
from protocols.companion.pairing import Scope
from protocols.json_values import JSONObject
from protocols.presenter.messages import (
    Answer,
    ConfirmPairing,
    Dismiss,
    Dismissed,
    Outcome,
    PairingDecision,
    Ping,
    Pong,
    Present,
    Presented,
    Ready,
    Update,
    User,
)

if TYPE_CHECKING:
    from tests.support.companion_world import World


class Presenter:
    """A presenter that draws whatever it is told to, when the test says so."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.connection: int | None = None
        self.pushed: list[object] = []
        self.pongs = True
        """Whether it answers when it is asked if it lives."""
        self._read = 0

    def take(self, body: object) -> None:
        """The broker says something."""
        self.pushed.append(body)
        if isinstance(body, Ping) and self.pongs:
            self.say(Pong())

    def ready(
        self,
        kinds: Sequence[Kind] = tuple(Kind),
        interactions: Sequence[Interaction] = (Interaction.CHOICE, Interaction.TEXT),
        *,
        person: bool = True,
    ) -> None:
        self.connection = self.world.open("presenter")
        self.say(
            Ready(
                protocol_version="0.1",
                name="desktop",
                version="1",
                person=person,
                kinds=tuple(kinds),
                interactions=tuple(interactions),
            )
        )

    def gone(self) -> None:
        assert self.connection is not None
        connection, self.connection = self.connection, None
        self.world.close(connection)

    def say(self, message: object) -> CallRef:
        assert self.connection is not None
        return self.world.ask(self.connection, message)

    def call(self, message: object) -> Any:
        """Say something; its reply, None while there is none."""
        return self.world.reply(self.say(message))

    def user(self, action: Any, **members: Any) -> Any:
        """The person does something outside of any request; returns the reply."""
        return self.call(User(action=action, **members))

    # -- what it was told ---------------------------------------------------------------------------------

    def news(self) -> list[Any]:
        """What it was told since the last look."""
        news = self.pushed[self._read :]
        self._read = len(self.pushed)
        return news

    def pictures(self) -> list[Present]:
        return [body for body in self.pushed if isinstance(body, Present)]

    def shown(self) -> list[str]:
        """The ids of the requests that were handed over, in order."""
        return [present.request_id for present in self.pictures() if not isinstance(present, Update)]

    def dismissals(self) -> list[Dismiss]:
        return [body for body in self.pushed if isinstance(body, Dismiss)]

    def dismissed(self) -> dict[str | None, str]:
        return {body.request_id: body.reason for body in self.dismissals()}

    def picture(self, request_id: str) -> Present:
        return [present for present in self.pictures() if present.request_id == request_id][-1]

    def updates(self) -> list[Update]:
        return [body for body in self.pushed if isinstance(body, Update)]

    def question(self) -> ConfirmPairing:
        """The last pairing that was to be drawn."""
        return [body for body in self.pushed if isinstance(body, ConfirmPairing)][-1]

    # -- what is on the screen, and what the person does --------------------------------------------------

    def presented(self, request_id: str) -> Present:
        """Report that the request is on the screen, as it was last sent; returns that picture."""
        picture = self.picture(request_id)
        self.say(Presented(request_id=request_id, revision=picture.revision, digest=picture.digest))
        return picture

    def present_question(self) -> ConfirmPairing:
        """Report that the last pairing is on the screen."""
        shown = self.question()
        self.say(Presented(pairing_id=shown.pairing_id, digest=shown.digest))
        return shown

    def answer(self, request_id: str, selected_id: str) -> Any:
        """The person chooses; returns the outcome."""
        return self.world.reply(self.choose(request_id, selected_id))

    def choose(self, request_id: str, selected_id: str) -> CallRef:
        """The person chooses; the outcome comes with the reply."""
        return self.reply(request_id, {"selectedId": selected_id})

    def write(self, request_id: str, text: str) -> Any:
        """The person writes; returns the outcome."""
        return self.world.reply(self.reply(request_id, {"text": text}))

    def reply(self, request_id: str, result: JSONObject) -> CallRef:
        """The person answers the last picture; the outcome comes with the reply."""
        return self.say(_answer(self.picture(request_id), result))

    def answer_to(
        self, shown: Present, result: JSONObject, *, age: int = 0, digest: str | None = None
    ) -> Outcome:
        """The person answers this picture by an input that began `age` milliseconds ago."""
        said = _answer(shown, result)
        return self._outcome(attrs.evolve(said, input_started_ms=age, digest=digest or said.digest))

    def dismiss(self, shown: Present, *, age: int = 0) -> Outcome:
        """The person closes this picture by an input that began `age` milliseconds ago."""
        return self._outcome(_dismissed(shown, age))

    def close_bubble(self, request_id: str, drawn: Present | None = None) -> Any:
        """The person closes it, as it was last sent or as it was `drawn`; the reply, None while there is none."""
        return self.call(_dismissed(drawn or self.picture(request_id), 0))

    def decide(
        self,
        shown: ConfirmPairing,
        scopes: Sequence[Scope] | None = None,
        *,
        approved: bool = True,
        age: int = 0,
        digest: str | None = None,
    ) -> Outcome:
        """The person decides on a pairing; by default everything that was asked for is granted."""
        return self._outcome(
            PairingDecision(
                pairing_id=shown.pairing_id,
                digest=digest or shown.digest,
                input_started_ms=age,
                approved=approved,
                scopes=tuple(shown.scopes if scopes is None else scopes),
            )
        )

    def _outcome(self, said: object) -> Outcome:
        outcome = self.call(said)
        assert isinstance(outcome, Outcome), outcome
        return outcome


def _dismissed(shown: Present, age: int) -> Dismissed:
    return Dismissed(
        request_id=shown.request_id, revision=shown.revision, digest=shown.digest, input_started_ms=age
    )


def _answer(shown: Present, result: JSONObject) -> Answer:
    return Answer(
        request_id=shown.request_id,
        revision=shown.revision,
        digest=shown.digest,
        input_started_ms=0,
        result=result,
    )
