"""What a person types at the terminal presenter, and what it means.

Answers are read against what is drawn (`answer_to`, `decision_on`); a line that begins with a colon is a command
to the broker (`command`) and answers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from protocols.companion.capabilities import Interaction
from protocols.companion.pairing import Scope
from protocols.json_values import JSONObject
from protocols.presenter.messages import Action, ConfirmPairing, List, Present, Setting, User

CLOSE = "x"
END_OF_TEXT = "."

HELP = (
    ":pending  :clients  :revoke CLIENT  :access on|off  :hide  :show  :pause  :resume  :help",
    ":character ID  :motion less|full",
    "Whatever asks for an answer is shown by itself.",
)


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


Command: TypeAlias = User | List
_ACTIONS: Mapping[str, Action] = {
    "hide": "hide",
    "show": "show",
    "pause": "pause",
    "resume": "resume",
    "access on": "enable_access",
    "access off": "disable_access",
}
_MOTION = {"motion less": True, "motion full": False}


def answer_to(shown: Present, text: str) -> JSONObject | Closed | None:
    """What the line answers; None for an empty line, which answers nothing.  Raises Unreadable."""
    if not text.strip():
        return None
    if text.strip() == CLOSE:
        return Closed()
    if shown.interaction is Interaction.CHOICE:
        return {"selectedId": _option(shown, text.strip())}
    return {"text": _within(shown, text.removeprefix("\\"))}


def text_of(shown: Present, lines: list[str]) -> JSONObject:
    """The answer that several lines make.  Raises Unreadable."""
    return {"text": _within(shown, "\n".join(lines))}


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


def command(text: str) -> Command | None:
    """The command after the colon, None for help."""
    words = text.removeprefix(":").split()
    joined = " ".join(words)
    if joined in _ACTIONS:
        return User(action=_ACTIONS[joined])
    if joined in ("pending", "clients"):
        return List(what="pending" if joined == "pending" else "clients")
    if len(words) == 2 and words[0] == "revoke" and len(words[1]) <= 128:
        return User(action="revoke", client_id=words[1])
    setting = _setting(words)
    return None if setting is None else User(action="set", setting=setting)


def _setting(words: list[str]) -> Setting | None:
    """What the words set, if they set anything; a character goes by its id."""
    if (joined := " ".join(words)) in _MOTION:
        return Setting(reduced_motion=_MOTION[joined])
    if len(words) == 2 and words[0] == "character" and len(words[1]) <= 128:
        return Setting(character=words[1])
    return None


def _option(shown: Present, text: str) -> str:
    options = shown.options or ()
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:3]) <= len(options) and len(text) < 3):
        raise Unreadable(f"Type a number from 1 to {len(options)}, or x to close it without an answer.")
    return options[int(text) - 1].id


def _within(shown: Present, text: str) -> str:
    longest = 0 if shown.input is None else shown.input.max_length
    if not text:
        raise Unreadable("There is nothing in it.")
    if len(text) > longest:
        raise Unreadable(f"That has {len(text)} characters; {longest} are possible. Please type it again.")
    return text
