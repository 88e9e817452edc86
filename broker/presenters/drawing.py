"""Pictures as lines of plain text: everything that the digest covers, and nothing that could be taken for ours.

What a client wrote stands behind a bar and is broken into lines here, so that no text of a client can look like
a line of the presenter's own.  Only printable characters leave this module.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.presenters.keyboard import columns_of
from protocols.companion.capabilities import Interaction, Kind
from protocols.presenter.messages import ConfirmPairing, Input, Listing, Present, Source
from protocols.text import neutralize

_BAR = "  | "
_NARROWEST = 20
_MEANING = {
    "discover": "see what the companion can do",
    "animate": "play animations",
    "notify": "show notices and progress",
    "interact": "ask you questions and get your answers",
}


def request_lines(shown: Present, width: int, waiting: int) -> list[str]:
    """A request as it is drawn; `waiting` counts what is not drawn yet."""
    lines = [_rule("-", width), *_source(shown.source, width), *_body(shown, width)]
    if shown.options is not None:
        for number, option in enumerate(shown.options, 1):
            lines += _numbered(number, option.label, width)
    if shown.input is not None and shown.input.placeholder:
        lines += ["For example:", *_barred(shown.input.placeholder, width)]
    if shown.kind is Kind.INTERACTION:
        lines += [_how_to_answer(shown), _time_and_others(shown, waiting)]
    return lines


def pairing_lines(shown: ConfirmPairing, width: int) -> list[str]:
    """A pairing as it is drawn."""
    lines = [_rule("=", width), "A program asks to be paired. It calls itself:"]
    lines += _barred(shown.client_name, width)
    if shown.name_in_use:
        lines.append("A client with this name is paired already; this may be another one.")
    lines.append("It runs as:")
    lines += _barred(_program(Source(label="", program=shown.program, pid=shown.pid)), width)
    lines.append("It wants to:")
    lines += [f"  - {scope}: {_MEANING[scope]}" for scope in shown.scopes]
    if shown.purpose is not None:
        lines += ["What for, in its words:", *_barred(shown.purpose, width)]
    code = _clean(shown.verification_code)
    lines += [
        f"Code: {code} (the program must show the same one)",
        f"What it sends and what you answer is kept for {shown.retention_hours} hours, then deleted.",
        f'"approve {code}" allows all of this, "approve {code} SCOPE..." only some, "deny" nothing.',
    ]
    return lines


def wrapped(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most `width` columns."""
    for line in neutralize(text, multiline=True).split("\n"):
        row, used = "", 0
        for char in line:
            columns = columns_of(char)
            if row and used + columns > width:
                yield row
                row, used = "", 0
            row, used = row + char, used + columns
        yield row


def _source(source: Source, width: int) -> list[str]:
    return ["From:", *_barred(source.label, width), *_barred(_program(source), width)]


def _program(source: Source) -> str:
    program = "an unknown program" if source.program is None else source.program
    return program if source.pid is None else f"{program} (process {source.pid})"


def _body(shown: Present, width: int) -> list[str]:
    heading = shown.kind.value if shown.tone is None else f"{shown.kind.value}, {shown.tone.value}"
    if shown.fraction is not None:
        heading += f", {shown.fraction:.0%} done"
    lines = [f"{heading}:"]
    for text in (shown.title, shown.text, shown.detail):
        if text is not None:
            lines += _barred(text, width)
    return lines


def _numbered(number: int, label: str, width: int) -> list[str]:
    first, *rest = wrapped(label, max(_NARROWEST, width - 6))
    return [f"  {number}) {first}", *(f"  | {row}" for row in rest)]


def _how_to_answer(shown: Present) -> str:
    if shown.interaction is Interaction.CHOICE:
        return "Type a number and Enter. x closes it without an answer."
    limits = shown.input or Input(placeholder="", multiline=False, max_length=0)
    end = "Type lines, then . alone on a line." if limits.multiline else "Type a line and Enter."
    return f"{end} Up to {limits.max_length} characters. x closes it without an answer, \\x is an x."


def _time_and_others(shown: Present, waiting: int) -> str:
    others = waiting + shown.queued
    return f"{shown.remaining_ms // 1000} s are left. Others that wait: {others}."


def _barred(text: str, width: int) -> list[str]:
    return [_BAR + row for row in wrapped(text, max(_NARROWEST, width - len(_BAR)))]


def _rule(char: str, width: int) -> str:
    return char * max(_NARROWEST, min(width - 1, 72))


def _clean(text: str) -> str:
    return neutralize(text, multiline=False)


def listing_lines(listing: Listing) -> list[str]:
    """What the person asked to see."""
    lines = [
        f"  {item.state}: {_clean(item.label)} ({_clean(item.capability or 'pairing')}), "
        f"{item.remaining_ms // 1000} s left"
        for item in listing.pending or ()
    ]
    lines += [
        f"  {_clean(item.client_id)}: {_clean(item.label)} ({', '.join(item.scopes)}), paired {item.created_at}"
        for item in listing.clients or ()
    ]
    return lines or ["  There is none."]
