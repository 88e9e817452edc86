"""What a person commands at the terminal presenter: a line that begins with a colon, and answers nothing.

A client is named by its id, the beginning of its id, or its label, and the one whose picture is on the screen by
not being named at all.  Which client that is, is looked up in the broker's list before anything is done
(`OnClient`), since a picture tells who asks by label only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs

from broker.presenters.words import Unreadable
from protocols.companion.pairing import SCOPES, Scope
from protocols.errors import InvalidValue
from protocols.presenter.messages import Action, ClientItem, List, Setting, User

HELP = (
    "Whatever asks for an answer is shown by itself. Besides:",
    "  :again                 draws what is asked once more",
    "  :close NUMBER          closes a notice, a progress or an animation",
    "  :hide  :show           takes the companion off the screen, and back",
    "  :pause  :resume        keeps all programs from asking, and lets them again",
    "  :mute MINUTES [CLIENT] keeps it, or who asks now, from asking for a while",
    "  :unmute CLIENT         lets it ask again",
    "  :pending  :clients     lists what is open, and who is paired",
    "  :revoke CLIENT         ends its pairing, deletes what it has sent",
    "  :narrow CLIENT SCOPE.. leaves it only these scopes",
    "  :access on|off         programs may connect, or not",
    "  :character ID          who is on the screen",
    "  :motion less|full  :sound on|off  :language TAG",
    "  :clear records         deletes what has ended, of every program",
)


@attrs.frozen
class Help:
    """The person asks what there is to command, or has commanded what there is not."""


@attrs.frozen
class Again:
    """What is asked shall be drawn again."""


@attrs.frozen
class Close:
    """The bubble of this number shall be closed."""

    number: int


@attrs.frozen
class OnClient:
    """Something is to be done with one client: the one that is `named`, or who asks now.

    `done` says so afterwards.
    """

    named: str | None
    action: Action
    done: str
    scopes: tuple[Scope, ...] | None = None
    seconds: int | None = None

    def to(self, client: ClientItem) -> User:
        """The action on this client."""
        return User(action=self.action, client_id=client.client_id, scopes=self.scopes, seconds=self.seconds)


Command: TypeAlias = User | List | OnClient | Close | Again | Help

_PLAIN: Mapping[str, Command] = {
    "again": Again(),
    "hide": User(action="hide"),
    "show": User(action="show"),
    "pause": User(action="pause"),
    "resume": User(action="resume"),
    "pending": List(what="pending"),
    "clients": List(what="clients"),
    "access on": User(action="enable_access"),
    "access off": User(action="disable_access"),
    "sound on": User(action="set", setting=Setting(sound=True)),
    "sound off": User(action="set", setting=Setting(sound=False)),
    "motion less": User(action="set", setting=Setting(reduced_motion=True)),
    "motion full": User(action="set", setting=Setting(reduced_motion=False)),
    "clear records": User(action="clear_records"),
}
_LONGEST_ID = 128
_LONGEST_MINUTES = 525_600


def command(text: str) -> Command:
    """The command of the line.  Raises Unreadable where one is meant and its words are wrong."""
    name, *words = text.removeprefix(":").split() or [""]
    plain = _PLAIN.get(" ".join([name, *words]))
    if plain is not None:
        return plain
    read = _WITH_WORDS.get(name)
    return Help() if read is None else read(words)


def the_client(clients: Sequence[ClientItem], asked: OnClient, asker: str | None) -> ClientItem:
    """The client that is meant; `asker` is the label of who asks now.  Raises Unreadable."""
    named = asked.named
    if named is not None:
        alike = [one for one in clients if one.label == named or one.client_id.startswith(named)]
        found = [one for one in clients if one.client_id == named] or alike
    elif asker is not None:
        found = [one for one in clients if one.label == asker]
    else:
        raise Unreadable("Nobody asks now. Name the client; :clients lists them.")
    if len(found) != 1:
        many = "More than one client is" if found else "No client is"
        raise Unreadable(f"{many} called so. Name it by its id; :clients lists them.")
    return found[0]


def _close(words: list[str]) -> Command:
    if len(words) != 1 or not _is_number(words[0]):
        raise Unreadable("Type :close and the number of what is to be closed.")
    return Close(int(words[0]))


def _mute(words: list[str]) -> Command:
    if not words or not _is_number(words[0]) or not 1 <= int(words[0]) <= _LONGEST_MINUTES:
        raise Unreadable("Type :mute and for how many minutes, then the client if it is not who asks now.")
    named = " ".join(words[1:]) or None
    return OnClient(named, "mute", f"is muted for {int(words[0])} min", seconds=int(words[0]) * 60)


def _unmute(words: list[str]) -> Command:
    return OnClient(_named(words, "unmute"), "mute", "may ask again")


def _revoke(words: list[str]) -> Command:
    return OnClient(_named(words, "revoke"), "revoke", "is revoked")


def _narrow(words: list[str]) -> Command:
    scopes = tuple(scope for scope in SCOPES if scope in words)
    named = " ".join(word for word in words if word not in SCOPES)
    if not named or not scopes:
        raise Unreadable(f"Type :narrow, the client, and what remains of {', '.join(SCOPES)}.")
    return OnClient(named, "narrow", f"keeps {', '.join(scopes)}", scopes=scopes)


def _character(words: list[str]) -> Command:
    return _set("Type :character and its id.", lambda: Setting(character=_one(words)))


def _language(words: list[str]) -> Command:
    return _set("Type :language and its tag, en for example.", lambda: Setting(language=_one(words)))


def _one(words: list[str]) -> str:
    if len(words) != 1 or len(words[0]) > _LONGEST_ID:
        raise InvalidValue("", "not one word")
    return words[0]


def _set(instead: str, setting: Callable[[], Setting]) -> Command:
    try:
        return User(action="set", setting=setting())
    except InvalidValue:
        raise Unreadable(instead) from None


_WITH_WORDS: Mapping[str, Callable[[list[str]], Command]] = {
    "close": _close,
    "mute": _mute,
    "unmute": _unmute,
    "revoke": _revoke,
    "narrow": _narrow,
    "character": _character,
    "language": _language,
}


def _named(words: list[str], name: str) -> str:
    if not words:
        raise Unreadable(f"Type :{name} and the client; :clients lists them.")
    return " ".join(words)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 9
