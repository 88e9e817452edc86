"""What is before the person at a terminal: one question at a time, the others counted and shown in turn.

A pairing goes before everything else, since its protocol knows no "later"; requests are deferred until their
turn.  A line that the person typed is read as an answer to what is drawn, and to nothing else: an empty line is
no answer, nothing is chosen beforehand, and what comes too late is told.

The desk does no input or output: it reports through a `PresenterClient` and draws by `say`; `ask` is called
whenever something new wants an answer, so that what was typed before counts for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from broker.presenters import drawing, words
from broker.presenters.keyboard import Line
from protocols.companion.capabilities import Interaction, Kind
from protocols.json_values import JSONObject
from protocols.presenter import picture
from protocols.presenter.client import Failed, PresenterClient, Pushed, Replied
from protocols.presenter.messages import (
    Answer,
    ConfirmPairing,
    Deferred,
    Dismiss,
    Dismissed,
    Listing,
    Outcome,
    PairingDecision,
    Present,
    Presented,
    Settings,
)

Picture = Present | ConfirmPairing

_REJECTED = {
    "not_armed": "That was too quick to count. Please answer again.",
    "not_saved": "It could not be saved, so nothing has been answered. Please answer again.",
    "not_presented": "It was not on the screen. Please look again and answer.",
    "stale": "It has changed. Please look again and answer.",
    "invalid": "That is no answer to it. Please answer again.",
}


class Desk:
    """See the module header.  `width` gives the columns of the terminal."""

    def __init__(
        self,
        client: PresenterClient,
        say: Callable[[Sequence[str]], None],
        ask: Callable[[], None],
        width: Callable[[], int],
    ) -> None:
        self._client = client
        self._say = say
        self._ask = ask
        self._width = width
        self._waiting: dict[str, Picture] = {}
        self._current: Picture | None = None
        self._sent: dict[int, str] = {}
        self._settings: Settings | None = None
        self._text: list[str] = []
        self._text_started = math.inf

    # -- from the broker -------------------------------------------------------------------------------------

    def receive(self, said: Pushed | Replied | Failed) -> None:
        """Act on one message of the broker."""
        match said:
            case Present() | ConfirmPairing():
                self._show(said)
            case Dismiss():
                self._take_away(said.request_id or said.pairing_id or "", said.reason)
            case Settings():
                self._on_settings(said)
            case Replied(number, body):
                self._on_reply(number, body)
            case Failed(number, _, message):
                self._say([f"The broker could not do that: {message}"])
                self._draw_again(self._sent.pop(number, ""))

    def _show(self, shown: Picture) -> None:
        current = self._current
        if current is None or _id(current) == _id(shown):
            self._draw(shown)
        elif isinstance(shown, ConfirmPairing):
            self._waiting[_id(current)] = current
            self._defer(current)
            self._draw(shown)
        else:
            self._waiting[_id(shown)] = shown
            self._defer(shown)

    def _defer(self, shown: Picture) -> None:
        if isinstance(shown, Present):
            report = Deferred(request_id=shown.request_id, revision=shown.revision, why="space")
            self._client.notify(report)

    def _draw(self, shown: Picture) -> None:
        """Draw it, then report what is really on the screen now."""
        self._text, self._text_started = [], math.inf
        if isinstance(shown, ConfirmPairing):
            self._current = shown
            self._say(drawing.pairing_lines(shown, self._width()))
            digest = picture.digest(picture.of_confirmation(shown))
            self._client.notify(Presented(pairing_id=shown.pairing_id, digest=digest))
        else:
            self._current = shown if shown.kind is Kind.INTERACTION else self._current
            self._say(drawing.request_lines(shown, self._width(), len(self._waiting)))
            digest = picture.digest(picture.of_present(shown))
            report = Presented(request_id=shown.request_id, revision=shown.revision, digest=digest)
            self._client.notify(report)
        if self._current is shown:
            self._ask()

    def _draw_again(self, id: str) -> None:
        if self._current is not None and _id(self._current) == id:
            self._draw(self._current)

    def _take_away(self, id: str, reason: str) -> None:
        self._waiting.pop(id, None)
        if self._current is not None and _id(self._current) == id:
            if id not in self._sent.values():
                self._say([f"It has been withdrawn ({reason})."])
            self._next()

    def _next(self) -> None:
        """Draw what waits: pairings first; what needs no answer makes room for the next at once."""
        self._current = None
        while self._waiting and self._current is None:
            pairings = [id for id, shown in self._waiting.items() if isinstance(shown, ConfirmPairing)]
            self._draw(self._waiting.pop(next(iter(pairings or self._waiting))))

    def _on_settings(self, said: Settings) -> None:
        if said == self._settings:
            return
        self._settings = said
        access = "on" if said.access_enabled else "off"
        state = "paused" if said.paused else "shown" if said.visible else "hidden"
        self._say([f"The companion is {state}, access for programs is {access}. :help tells more."])

    def _on_reply(self, number: int, body: object) -> None:
        id = self._sent.pop(number, "")
        if isinstance(body, Listing):
            self._say(drawing.listing_lines(body))
        elif not isinstance(body, Outcome):
            self._say(["Done."])
        elif body.outcome == "rejected":
            self._say([_REJECTED.get(body.reason or "", "It was not accepted. Please answer again.")])
            self._draw_again(id)
        else:
            late = f"Too late: it had ended already ({body.state}, {body.reason})."
            self._say(["Done." if body.outcome == "committed" else late])
            if self._current is not None and _id(self._current) == id:
                self._next()

    # -- from the person -------------------------------------------------------------------------------------

    def line(self, line: Line, now: float) -> None:
        """The person has typed a line and Enter; times in seconds."""
        shown = self._current
        writing = isinstance(shown, Present) and shown.interaction is Interaction.TEXT
        if line.text.startswith(":") and not writing:
            self._command(line.text)
        elif shown is not None and _id(shown) not in self._sent.values():
            try:
                self._read(shown, line, now)
            except words.Unreadable as error:
                self._say([str(error)])

    def _command(self, text: str) -> None:
        asked = words.command(text)
        if asked is None:
            self._say(words.HELP)
        else:
            self._client.call(asked)

    def _read(self, shown: Picture, line: Line, now: float) -> None:
        if isinstance(shown, ConfirmPairing):
            decision = words.decision_on(shown, line.text)
            if decision is not None:
                self._decide(shown, decision, _age(line.started, now))
        elif shown.input is not None and shown.input.multiline:
            self._write(shown, line, now)
        else:
            self._answer(shown, words.answer_to(shown, line.text), _age(line.started, now))

    def _write(self, shown: Present, line: Line, now: float) -> None:
        """One more line of a longer text; its age is that of the first."""
        self._text_started = min(self._text_started, line.started)
        age = _age(self._text_started, now)
        if not self._text and line.text.strip() in ("", words.CLOSE):
            self._answer(shown, words.answer_to(shown, line.text), age)
        elif line.text != words.END_OF_TEXT:
            self._text.append(line.text.removeprefix("\\"))
        else:
            text, self._text = self._text, []
            self._text_started = math.inf
            self._answer(shown, words.text_of(shown, text), age)

    def _answer(self, shown: Present, answer: JSONObject | words.Closed | None, age: int) -> None:
        if answer is None:
            return
        id, revision, digest = shown.request_id, shown.revision, shown.digest
        if isinstance(answer, words.Closed):
            closed = Dismissed(request_id=id, revision=revision, digest=digest, input_started_ms=age)
            self._sent[self._client.call(closed)] = id
        else:
            said = Answer(
                request_id=id, revision=revision, digest=digest, input_started_ms=age, result=answer
            )
            self._sent[self._client.call(said)] = id

    def _decide(self, shown: ConfirmPairing, decided: words.Decided, age: int) -> None:
        decision = PairingDecision(
            pairing_id=shown.pairing_id,
            digest=shown.digest,
            input_started_ms=age,
            approved=decided.approved,
            scopes=decided.scopes,
        )
        self._sent[self._client.call(decision)] = shown.pairing_id


def _id(shown: Picture) -> str:
    return shown.pairing_id if isinstance(shown, ConfirmPairing) else shown.request_id


def _age(started: float, now: float) -> int:
    """Whole milliseconds, rounded to the older side."""
    return math.ceil(max(0.0, now - started) * 1000)
