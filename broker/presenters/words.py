"""What the person at the terminal presenter reads when something ends, and what a typed answer means.

Answers are read against what is drawn (`answer_to`, `decision_on`).  What begins with a colon is read by `commands`.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.presenters.keyboard import CLOSE, LITERAL
from protocols.companion.capabilities import Interaction
from protocols.companion.pairing import Scope
from protocols.json_values import JSONObject
from protocols.presenter.messages import ConfirmPairing, Present
from protocols.text import neutralize

NOT_SENT = "What you had typed has not been sent:"

_ENDS: Mapping[str, str] = {
    "access_disabled": "programs have no access any more",
    "answered": "it has been answered",
    "cancelled": "its program has gone",
    "cancelled_by_client": "its program has taken it back",
    "deadline": "its time is over",
    "denied": "it has been denied",
    "dismissed_by_user": "it has been closed",
    "expired": "its time is over",
    "finished": "it is done",
    "hidden_by_user": "the companion has been hidden",
    "key_revoked": "its program's pairing has been ended",
    "muted_by_user": "its program has been muted",
    "paused_by_user": "all programs have been paused",
    "presented": "it has been shown",
    "presenter_lost": "it was not on the screen for too long",
    "queue_evicted": "others needed its place",
    "render_failed": "it was not drawn in time",
    "runtime_restarted": "the broker has started again",
    "scope_revoked": "its program may not do this any more",
    "set_aside": "others wait, so it makes room and comes back in its turn",
}
_REJECTIONS: Mapping[str, str] = {
    "not_armed": "That was too quick to count. Please answer again.",
    "not_saved": "It could not be saved, so nothing has been answered. Please answer again.",
    "not_presented": "It was not on the screen. Please look again and answer.",
    "stale": "It has changed. Please look again and answer.",
    "invalid": "That is no answer to it. Please answer again.",
}


class Unreadable(Exception):
    """The line is no answer to what is drawn; the message says what would be."""


@attrs.frozen
class Closed:
    """The person closes the prompt without an answer."""


@attrs.frozen
class Decided:
    """The person's decision on a pairing."""

    approved: bool
    scopes: tuple[Scope, ...] = ()


def end_of(reason: str) -> str:
    """Why something has left the screen, as half a sentence."""
    return _ENDS.get(reason) or f"it has been withdrawn ({neutralize(reason, multiline=False)})"


def rejection(reason: str | None) -> str:
    """Why an answer was not accepted, and that another one may be given."""
    return _REJECTIONS.get(reason or "", "It was not accepted. Please answer again.")


def answer_to(shown: Present, text: str) -> JSONObject | Closed | None:
    """What was typed answers; None for nothing, which answers nothing.  Raises Unreadable."""
    if not text:
        return None
    if text.strip() == CLOSE:
        return Closed()
    if shown.interaction is Interaction.TEXT:
        return {"text": _text(shown, text)}
    return {"selectedId": _option(shown, text.strip())} if text.strip() else None


def decision_on(shown: ConfirmPairing, text: str) -> Decided | None:
    """The decision that the line makes; None for an empty line.  Approving takes the code.  Raises Unreadable."""
    words = text.split()
    if not words:
        return None
    if words in (["deny"], [CLOSE]):
        return Decided(False)
    if words[:2] != ["approve", shown.verification_code]:
        raise Unreadable(f'Type "approve" and the code {shown.verification_code}, or "deny".')
    asked = {str(scope): scope for scope in shown.scopes}
    if not set(words[2:]) <= set(asked):
        raise Unreadable("It can be allowed what it asks for, or less: " + ", ".join(asked))
    granted = words[2:] or list(asked)
    return Decided(True, tuple(scope for scope in shown.scopes if scope in granted))


def _option(shown: Present, text: str) -> str:
    options = shown.options or ()
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:3]) <= len(options) and len(text) < 3):
        raise Unreadable(f"Type a number from 1 to {len(options)}, or x to close it without an answer.")
    return options[int(text) - 1].id


def _text(shown: Present, text: str) -> str:
    if shown.input is not None and shown.input.multiline:
        text = text.removesuffix("\n")  # the Enter that ended the last line
    if not text.strip(f"{LITERAL} \n\t"):
        raise Unreadable("There is nothing in it, so nothing has been sent.")
    return text.removeprefix(LITERAL)
