"""Prints the frames of a connection as they are sent and received: who to whom, what, in short (CP-5.5: no key)."""

from __future__ import annotations

import socket
import sys
import textwrap
from typing import ClassVar

from broker.client.blocking.stream import Deadline, Stream
from protocols.framing import FrameSplitter
from protocols.json_values import JSON, JSONObject
from protocols.jsonrpc_client import RECEIVE_LIMIT
from protocols.strict_json import decode, encode
from protocols.text import neutralize

_WIDTH = 100
_INDENT = 23
_HIDDEN = "key"
_IDS = {"requestId", "pairingId", "clientId", "ticket"}
_ID_LENGTH = 12
_DULL = {
    *("runtimeInstanceId", "createdAt", "deadlineAt", "displayedAt", "endedAt", "taskId", "substitution"),
    *(
        "resolvedCapability",
        "resolvedCharacter",
        "resolvedStyle",
        "holderId",
        "limits",
        "retention",
        "expiresAt",
    ),
    *("graceEndsAt", "idempotencyKey", "action", "implementation"),
}
"""Members that are left out of the short form."""


def say(text: str) -> None:
    """A line of the demo, wrapped; at once, since several processes write."""
    shown = neutralize(text, multiline=False)
    lines = textwrap.wrap(
        shown, _WIDTH, subsequent_indent=" " * _INDENT, break_long_words=False, break_on_hyphens=False
    )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def say_heading(text: str) -> None:
    """What comes next."""
    sys.stdout.write("\n")
    say(text)


class Transcript:
    """One side's view of its conversation with the broker; `who` is that side."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._calls: dict[JSON, str] = {}

    def sent(self, frame: bytes) -> None:
        """Print what this side says."""
        self._print(self._who, "broker", frame)

    def received(self, frame: bytes) -> None:
        """Print what the broker says."""
        self._print("broker", self._who, frame)

    def _print(self, source: str, target: str, frame: bytes) -> None:
        value = decode(frame).value
        if isinstance(value, dict):
            say(f"   {source:>6} -> {target:<6}  {self._short(value)}")

    def _short(self, message: JSONObject) -> str:
        if "action" in message:
            return f"{message['action']}  {_members(message)}"
        if "method" in message:
            method = str(message["method"])
            self._calls[str(message["id"])] = method
            return f"{method}  {_members(message.get('params'))}"
        called = self._calls.pop(str(message.get("id")), "the call")
        if "error" in message:
            return f"{called} failed:  {_members(message['error'])}"
        return f"{called} =  {_members(message.get('result'))}"


def _members(value: JSON) -> str:
    return _text("", value).removeprefix("{").removesuffix("}")


def _text(name: str, value: JSON) -> str:
    """The value of a member for people: without dull members, ids cut and every key hidden, at any depth."""
    if name == _HIDDEN:
        return "(hidden)"
    if isinstance(value, list):
        return f"[{', '.join(_text('', item) for item in value)}]"
    if isinstance(value, dict):
        told = {key: member for key, member in value.items() if key not in _DULL and member is not None}
        return "{" + ", ".join(f"{key}: {_text(key, member)}" for key, member in told.items()) + "}"
    if isinstance(value, str):
        return f"{value[:_ID_LENGTH]}…" if name in _IDS and len(value) > _ID_LENGTH else value
    return encode(value).decode()


class ToldStream(Stream):
    """A stream whose frames are printed; a subclass says whose it is."""

    who: ClassVar[str]

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._transcript = Transcript(self.who)
        self._frames = FrameSplitter(RECEIVE_LIMIT)

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send, and print each frame."""
        for line in data.splitlines():
            self._transcript.sent(line)
        super().send(data, deadline)

    def receive(self, deadline: Deadline) -> bytes:
        """Receive, and print each frame that is whole by now."""
        data = super().receive(deadline)
        self._frames.feed(data)
        while (frame := self._frames.next_frame()) is not None:
            self._transcript.received(frame)
        return data
