"""A person at the presenter, played by a thread: approves, denies, answers, or leaves a question standing."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.support.broker_process import ARMING_MS, Puppet

DENIED = "denied by the person"
"""The name of a client that is not let in."""
LEFT = "leave this open"
"""The title of a question that is not answered."""
TEXT = "an answer"
"""What is written where nothing else is known."""
CLOSED = "close this"
"""The title of a question that is dismissed without an answer."""


class Person(threading.Thread):
    """Answers choices with their first option, and requests for a text with `TEXT`, unless `answers` knows better."""

    def __init__(self, presenter: Puppet) -> None:
        super().__init__(daemon=True)
        self.codes: list[str] = []
        """The verification codes that were on the screen."""
        self.seen: list[dict[str, Any]] = []
        """What was to be drawn."""
        self.answers: dict[str, str] = {}
        """By the title of a question: the id or the text that it is answered with, CLOSED, or LEFT."""
        self._presenter = presenter
        presenter.socket.settimeout(None)

    def run(self) -> None:
        """Play the part until the broker ends."""
        parts = {"ping": self._pong, "confirm_pairing": self._decide, "present": self._answer}
        while line := self._read():
            if part := parts.get(line.get("method", "")):
                part(line)

    def _read(self) -> dict[str, Any]:
        try:
            message: dict[str, Any] = self._presenter.read()
        except (EOFError, OSError):
            return {}
        return message

    def _pong(self, message: dict[str, Any]) -> None:
        self._presenter.send({"jsonrpc": "2.0", "id": message["id"], "result": {}})

    def _decide(self, message: dict[str, Any]) -> None:
        shown = message["params"]
        self.codes.append(shown["verificationCode"])
        self._look_at(shown)
        self._presenter.start(
            "pairing_decision",
            pairingId=shown["pairingId"],
            digest=shown["digest"],
            inputStartedMs=0,
            approved=shown["clientName"] != DENIED,
            scopes=[] if shown["clientName"] == DENIED else shown["scopes"],
        )

    def _answer(self, message: dict[str, Any]) -> None:
        shown = message["params"]
        self.seen.append(shown)
        self._look_at(shown)
        does = self.answers.get(shown.get("title", ""), shown.get("title"))
        if shown["kind"] != "interaction" or does == LEFT:
            return
        seen = {name: shown[name] for name in ("requestId", "revision", "digest")} | {"inputStartedMs": 0}
        if does == CLOSED:
            self._presenter.start("dismissed", **seen)
        else:
            self._presenter.start("answer", **seen, result=self._result(shown))

    def _result(self, shown: dict[str, Any]) -> dict[str, str]:
        known = self.answers.get(shown["title"])
        if "options" in shown:
            return {"selectedId": known or shown["options"][0]["id"]}
        return {"text": known or TEXT}

    def _look_at(self, shown: dict[str, Any]) -> None:
        self._presenter.presented(shown)
        time.sleep(ARMING_MS / 1000 * 1.5)
