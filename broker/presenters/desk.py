"""What is before the person at a terminal: one question at a time, the others counted and shown in turn.

A pairing goes before everything else, since its protocol knows no "later"; requests are deferred until their
turn.  What the person typed is read as an answer to what is drawn, and to nothing else: an empty line is no answer,
nothing is chosen beforehand, and what comes too late is told, with the text that was written.  What asks for nothing
is drawn by `Bubbles`, and not while a question is open.

The desk does no input or output: it reports through a `PresenterClient` and draws by its `Seat`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

from broker.presenters import commands, drawing, words
from broker.presenters.bubbles import Bubbles, report_presented
from broker.presenters.keyboard import COMMAND, Emptied, Form, Line, ManyLines, TooLong, Typed
from broker.presenters.seat import Seat
from protocols.companion.capabilities import Interaction, Kind
from protocols.presenter import picture
from protocols.presenter.client import Failed, PresenterClient, Pushed, Question, Replied
from protocols.presenter.messages import (
    Answer,
    Attention,
    ConfirmPairing,
    Deferred,
    Dismiss,
    Dismissed,
    Done,
    List,
    Listing,
    Outcome,
    PairingDecision,
    Present,
    Presented,
    Settings,
)

Picture = Present | ConfirmPairing


@attrs.frozen
class _About:
    """What a call to the broker is about: an answer or closing of `id`, a client to be found, or a command."""

    id: str = ""
    text: str = attrs.field(default="", repr=False)
    on: commands.OnClient | None = None
    done: Sequence[str] = ("Done.",)
    """What is said once the broker has done it."""


class Desk:
    """See the module header; times in seconds of the caller's clock."""

    def __init__(self, client: PresenterClient, seat: Seat) -> None:
        self._client = client
        self._seat = seat
        self._bubbles = Bubbles(client, seat)
        self._waiting: dict[str, Picture] = {}
        self._current: Picture | None = None
        self._attended: str | None = None
        self._asker: str | None = None
        self._calls: dict[int, _About] = {}
        self._settings: Settings | None = None

    # -- from the broker -------------------------------------------------------------------------------------

    def receive(self, said: Pushed | Replied | Failed, now: float) -> None:
        """Act on one message of the broker."""
        match said:
            case Present() | ConfirmPairing():
                self._show(said, now)
            case Dismiss():
                self._take_away(said.request_id or said.pairing_id or "", said.reason, now)
            case Settings():
                self._on_settings(said)
            case Replied(number, body):
                self._on_reply(self._calls.pop(number, _About()), body, now)
            case Failed(number, _, message):
                self._tell(f"The broker could not do that: {message}")
                self._ask_again(self._calls.pop(number, _About()), now)

    def _show(self, shown: Picture, now: float) -> None:
        current = self._current
        if isinstance(shown, Present) and self._bubbles.change(shown, now):
            return
        if current is None or _id(current) == _id(shown):
            self._draw(shown, now)
        elif isinstance(shown, ConfirmPairing):
            self._put_off(current)
            self._draw(shown, now)
        else:
            self._put_off(shown)

    def _put_off(self, shown: Picture) -> None:
        is_new = _id(shown) not in self._waiting
        self._waiting[_id(shown)] = shown
        if isinstance(shown, Present):
            report = Deferred(request_id=shown.request_id, revision=shown.revision, why="space")
            self._client.notify(report)
        if is_new and shown is not self._current:
            waiting = len(self._waiting)
            self._seat.say([f"{waiting} {'waits' if waiting == 1 else 'wait'} until this is answered."])

    def _draw(self, shown: Picture, now: float, text: str = "") -> None:
        """Draw it, then report what is really on the screen now; `text` stands as typed."""
        if isinstance(shown, ConfirmPairing):
            self._begin(shown, Form())
            self._seat.say(drawing.pairing_lines(shown, self._seat.paper))
            digest = picture.digest(picture.of_confirmation(shown))
            self._client.notify(Presented(pairing_id=shown.pairing_id, digest=digest))
        elif shown.kind is Kind.INTERACTION:
            self._begin(shown, _form_of(shown), text)
            until = self._seat.clock_at(shown.deadline_at)
            self._seat.say(drawing.question_lines(shown, self._seat.paper, until))
            report_presented(self._client, shown)
        else:
            self._bubbles.draw(shown, now)
        self._asker = shown.source.label if isinstance(shown, Present) else None

    def _begin(self, shown: Picture | None, form: Form, text: str = "") -> None:
        """What may be typed is for this from here on; what had been typed for something else is told."""
        self._current = shown
        self._tell_text(words.NOT_SENT, self._seat.ask(form, text))
        if shown is not None and self._settings is not None and self._settings.sound:
            self._seat.ring()

    def _tell(self, text: str) -> None:
        self._seat.say([self._seat.paper.characters.shown(text)])

    def _tell_text(self, what: str, text: str) -> None:
        if text.strip():
            self._seat.say([what, *drawing.barred(text, self._seat.paper)])

    def _take_away(self, id: str, reason: str, now: float) -> None:
        self._waiting.pop(id, None)
        self._bubbles.remove(id, reason)
        if self._current is not None and _id(self._current) == id:
            if not self._is_answered(id):
                self._seat.say([f"The question is gone: {words.end_of(reason)}."])
            self._next(now)

    def _next(self, now: float) -> None:
        """Draw what waits: pairings first; what needs no answer makes room for the next at once."""
        self._current = None
        while self._waiting and self._current is None:
            pairings = [id for id, shown in self._waiting.items() if isinstance(shown, ConfirmPairing)]
            self._draw(self._waiting.pop(next(iter(pairings or self._waiting))), now)
        if self._current is None:
            self._begin(None, Form())

    def _on_settings(self, said: Settings) -> None:
        if said == self._settings:
            return
        self._settings = said
        access = "on" if said.access_enabled else "off"
        state = "paused" if said.paused else "shown" if said.visible else "hidden"
        lines = [f"The companion is {state}, access for programs is {access}. :help tells more."]
        if said.sound or said.reduced_motion:
            motion = "reduced, and here nothing moves anyway" if said.reduced_motion else "as usual"
            lines.append(f"Sound is {'on' if said.sound else 'off'}, motion is {motion}.")
        self._seat.say(lines)

    def _on_reply(self, call: _About, body: Outcome | Done | Listing, now: float) -> None:
        if isinstance(body, Outcome):
            self._on_outcome(call, body, now)
        elif isinstance(body, Listing) and (asked := call.on) is not None:
            self._try(lambda: self._on_clients(asked, body))
        elif isinstance(body, Listing):
            self._seat.say(drawing.listing_lines(body, self._seat))
        else:
            self._seat.say(call.done)

    def _on_outcome(self, call: _About, said: Outcome, now: float) -> None:
        if said.outcome == "rejected":
            self._seat.say([words.rejection(said.reason)])
            self._ask_again(call, now)
            return
        if said.outcome == "committed":
            self._seat.say(call.done)
        else:
            self._seat.say([f"Too late, that had ended before: {words.end_of(said.reason or '')}."])
            self._tell_text(words.NOT_SENT, call.text)
        if self._current is not None and _id(self._current) == call.id:
            self._next(now)

    def _ask_again(self, call: _About, now: float) -> None:
        """The answer was not taken: the question stands, and a text that was written as well."""
        self._bubbles.keep(call.id)
        if self._current is not None and _id(self._current) == call.id:
            self._draw(self._current, now, call.text)
            if "\n" in call.text:
                self._tell_text("What you had typed still stands:", call.text)
        else:
            self._tell_text(words.NOT_SENT, call.text)

    # -- time ------------------------------------------------------------------------------------------------

    def look_at_clock(self, now: float) -> None:
        """Do what is due."""
        self._bubbles.look_at_clock(now, drawing_allowed=self._current is None)

    def next_in(self, now: float) -> float | None:
        """Seconds until something is due; None while nothing is."""
        return self._bubbles.next_in(now)

    # -- from the person -------------------------------------------------------------------------------------

    def typed(self, typed: Typed, now: float) -> None:
        """The person has typed something."""
        match typed:
            case Line():
                self._try(lambda: self._line(typed, now))
            case TooLong(limit):
                self._tell(f"At most {limit} characters are possible; what came after them was not taken.")
                self._tell("What stands can be sent, changed, or thrown away by Ctrl-U.")
            case ManyLines():
                self._tell("Several lines came at once, but one line is asked for: none of them was taken.")
            case Emptied():
                self._tell("What you had typed is thrown away.")

    def attend(self, *, typing: bool) -> None:
        """The person is typing, or not: what is being answered keeps its place meanwhile."""
        current = self._current
        id = current.request_id if typing and isinstance(current, Present) else None
        if id == self._attended:
            return
        for attended, held in ((self._attended, False), (id, True)):
            if attended is not None:
                self._client.notify(Attention(request_id=attended, held=held))
        self._attended = id

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except words.Unreadable as error:
            self._tell(str(error))

    def _line(self, line: Line, now: float) -> None:
        shown = self._current
        age = math.ceil(max(0.0, now - line.started) * 1000)
        if line.text.startswith(COMMAND):
            self._command(commands.command(line.text), age, now)
        elif shown is None or self._is_answered(_id(shown)):
            self._tell_text(words.NOT_SENT, line.text)
        elif isinstance(shown, ConfirmPairing):
            self._decide(shown, words.decision_on(shown, line.text), age)
        else:
            self._answer(shown, line.text, age)

    def _answer(self, shown: Present, text: str, age: int) -> None:
        answer = words.answer_to(shown, text)
        id, revision, digest = shown.request_id, shown.revision, shown.digest
        if isinstance(answer, words.Closed):
            self._close(shown, age, "Closed, without an answer.")
        elif answer is not None:
            said = Answer(
                request_id=id, revision=revision, digest=digest, input_started_ms=age, result=answer
            )
            written = text if shown.interaction is Interaction.TEXT else ""
            self._call(said, _About(id, written, done=("Your answer has been taken.",)))

    def _close(self, shown: Present, age: int, done: str) -> None:
        closed = Dismissed(
            request_id=shown.request_id, revision=shown.revision, digest=shown.digest, input_started_ms=age
        )
        self._call(closed, _About(shown.request_id, done=(done,)))

    def _decide(self, shown: ConfirmPairing, decided: words.Decided | None, age: int) -> None:
        if decided is None:
            return
        decision = PairingDecision(
            pairing_id=shown.pairing_id,
            digest=shown.digest,
            input_started_ms=age,
            approved=decided.approved,
            scopes=decided.scopes,
        )
        self._call(decision, _About(shown.pairing_id))

    def _command(self, asked: commands.Command, age: int, now: float) -> None:
        match asked:
            case commands.Help():
                self._seat.say(commands.HELP)
            case commands.Again() if self._current is not None:
                self._draw(self._current, now)
            case commands.Again():
                self._seat.say(["Nothing is asked."])
            case commands.Close(number):
                self._close(self._bubbles.close(number), age, "Closed.")
            case commands.OnClient():
                self._call(List(what="clients"), _About(on=asked))
            case _:
                self._call(asked, _About())

    def _on_clients(self, asked: commands.OnClient, listing: Listing) -> None:
        client = commands.the_client(listing.clients or (), asked, self._asker)
        done = (f"This client {asked.done}:", *drawing.barred(client.label, self._seat.paper))
        self._call(asked.to(client), _About(done=done))

    def _call(self, question: Question, about: _About) -> None:
        self._calls[self._client.call(question)] = about

    def _is_answered(self, id: str) -> bool:
        return any(call.id == id for call in self._calls.values())


def _form_of(shown: Present) -> Form:
    """What may be typed to answer."""
    limits = shown.input if shown.interaction is Interaction.TEXT else None
    return Form() if limits is None else Form(limits.max_length, text=True, multiline=limits.multiline)


def _id(shown: Picture) -> str:
    return shown.pairing_id if isinstance(shown, ConfirmPairing) else shown.request_id
