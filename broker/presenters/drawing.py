"""Pictures as lines of plain text: everything that the digest covers, and nothing that could be taken for ours.

What a client wrote stands behind a bar and is broken into lines here, so that no text of a client can look like
a line of the presenter's own.  Only characters that the terminal can show leave this module, and of the presenter's
own words only ASCII.
"""

from __future__ import annotations

from broker.presenters.characters import Paper
from broker.presenters.seat import Seat
from protocols.companion.capabilities import Interaction, Kind
from protocols.presenter.messages import ConfirmPairing, Input, Listing, Present, Source

_BAR = "  | "
_NARROWEST = 20
_BAR_STEPS = 20
_FACES = {
    "attentive": "o.o",
    "curious": "o.O",
    "greeting": "\\o",
    "happy": ":-)",
    "neutral": ":-|",
    "sad": ":-(",
    "sleepy": "-.-",
    "stretching": "~~~",
    "surprised": ":-o",
    "thinking": ":-?",
}
"""For the expressions of the built-in characters; others have their name only."""
_MEANING = {
    "discover": "see what the companion can do",
    "animate": "play animations",
    "notify": "show notices and progress",
    "interact": "ask you questions and get your answers",
}


def question_lines(shown: Present, paper: Paper, until: str) -> list[str]:
    """A question as it is drawn; `until` is the time of day at which it ends."""
    lines = [_rule("-", paper), *_source(shown.source, paper), *_body(shown, "", paper)]
    for number, option in enumerate(shown.options or (), 1):
        lines += _numbered(number, option.label, paper)
    if shown.input is not None and shown.input.placeholder:
        lines += ["For example:", *barred(shown.input.placeholder, paper)]
    return [*lines, *_how_to_answer(shown), f"It can be answered until {until}."]


def bubble_lines(shown: Present, number: int, paper: Paper) -> list[str]:
    """A notice, a progress or an animation as it is drawn, under the number by which it can be closed."""
    return [_rule("-", paper), *_source(shown.source, paper), *news_lines(shown, number, paper)]


def news_lines(shown: Present, number: int, paper: Paper) -> list[str]:
    """What such a bubble says: all of it that may change while it stands, and its title."""
    return _body(shown, f" {number}", paper)


def bar(fraction: float | None) -> str:
    """How much is done; 100% only when all of it is."""
    if fraction is None:
        return f"[{'?' * _BAR_STEPS}] how much is done is not known"
    return f"[{'#' * int(fraction * _BAR_STEPS):.<{_BAR_STEPS}}] {int(fraction * 100)}% done"


def pairing_lines(shown: ConfirmPairing, paper: Paper) -> list[str]:
    """A pairing as it is drawn."""
    lines = [_rule("=", paper), "A program asks to be paired. It calls itself:"]
    lines += barred(shown.client_name, paper)
    if shown.name_in_use:
        lines.append("A client with this name is paired already; this may be another one.")
    lines.append("It runs as:")
    lines += barred(_program(Source(label="", program=shown.program, pid=shown.pid)), paper)
    lines.append("It wants to:")
    lines += [f"  - {scope}: {_MEANING[scope]}" for scope in shown.scopes]
    if shown.purpose is not None:
        lines += ["What for, in its words:", *barred(shown.purpose, paper)]
    code = paper.characters.shown(shown.verification_code)
    lines += [
        f"Code: {code} (the program must show the same one)",
        f"What it sends and what you answer is kept for {shown.retention_hours} hours, then deleted.",
        f'"approve {code}" allows all of this, "approve {code} SCOPE..." only some of it,',
        '"deny" nothing.',
    ]
    return lines


def listing_lines(listing: Listing, seat: Seat) -> list[str]:
    """What the person asked to see."""
    lines = []
    for item in listing.pending or ():
        what = seat.paper.characters.shown(item.capability or "pairing")
        lines.append(f"  {what}, {item.state}, until {seat.clock_in(item.remaining_ms)}, from:")
        lines += barred(item.label, seat.paper)
    for client in listing.clients or ():
        facts = [f"  {client.client_id}: {', '.join(client.scopes)}; paired {client.created_at}"]
        facts += ["connected"] if client.connected else []
        facts += [f"muted until {seat.clock_at(client.muted_until)}"] if client.muted_until else []
        lines += [f"{', '.join(facts)}:", *barred(client.label, seat.paper)]
    return lines or ["  There is none."]


def barred(text: str, paper: Paper) -> list[str]:
    """A text that is not the presenter's own, each line of it behind a bar."""
    return [_BAR + row for row in paper.wrapped(text, max(_NARROWEST, paper.width - len(_BAR)))]


def _source(source: Source, paper: Paper) -> list[str]:
    return ["From:", *barred(source.label, paper), *barred(_program(source), paper)]


def _program(source: Source) -> str:
    program = "an unknown program" if source.program is None else source.program
    return program if source.pid is None else f"{program} (process {source.pid})"


def _body(shown: Present, number: str, paper: Paper) -> list[str]:
    heading = f"{shown.kind.value}{number}"
    if shown.tone is not None:
        heading += f", {shown.tone.value}"
    heading += ":"
    if shown.kind is Kind.PROGRESS or shown.fraction is not None:
        heading += f" {bar(shown.fraction)}"
    texts = [text for text in (shown.title, shown.text, shown.detail) if text]
    if shown.kind is Kind.ANIMATION:
        expression = shown.expression or "neutral"
        texts.append(f"{shown.character}: {expression} {_FACES.get(expression, '')}".rstrip())
    return [heading, *(line for text in texts for line in barred(text, paper))]


def _numbered(number: int, label: str, paper: Paper) -> list[str]:
    first, *rest = paper.wrapped(label, max(_NARROWEST, paper.width - 6))
    return [f"  {number}) {first}", *(f"  | {row}" for row in rest)]


def _how_to_answer(shown: Present) -> list[str]:
    if shown.interaction is not Interaction.TEXT:
        return ["Type a number and Enter. x closes it without an answer."]
    limits = shown.input or Input(placeholder="", multiline=False, max_length=0)
    how = "Type lines, then Ctrl-D sends them." if limits.multiline else "Type a line and Enter."
    return [
        f"{how} Up to {limits.max_length} characters.",
        "x and Enter closes it without an answer. A \\ before the text takes it as it is.",
    ]


def _rule(char: str, paper: Paper) -> str:
    return char * max(_NARROWEST, min(paper.width - 1, 72))
