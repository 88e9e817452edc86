"""The person at a real broker's presenter, played by a thread while the test is busy with a client.

desk = Desk(broker.presenter)
desk.on("Deploy?", choose="ship")         or write="a text", close=True; what is not named is left standing
shown = desk.seen("Deploy?")              waits until it is on the screen
desk.gone(shown["requestId"])             waits until it has been taken from it
"""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.support.broker_process import ARMING_MS, Puppet
from tests.support.lines import GIVE_UP_SECONDS


class Desk:
    """See the module header.  It ends with the presenter's connection."""

    def __init__(self, presenter: Puppet) -> None:
        self.screen: list[dict[str, Any]] = []
        """Every picture that came, in order: of present and of update."""
        self._presenter = presenter
        self._parts: dict[str, dict[str, Any]] = {}
        self._dismissed: dict[str, str] = {}
        self._answered: dict[int, dict[str, Any]] = {}
        self._replied: set[int] = set()
        self._news = threading.Condition()
        presenter.socket.settimeout(None)
        threading.Thread(target=self._run, daemon=True).start()

    def on(self, title: str, **part: Any) -> None:
        """What to do when something with this title, text or expression is on the screen, or is there already."""
        self._parts[title] = part
        with self._news:
            standing = [one for one in self.screen if one["requestId"] not in self._dismissed]
        for shown in standing:
            if name_of(shown) == title:
                self._act(shown)

    def seen(self, title: str, **members: Any) -> dict[str, Any]:
        """The newest picture with this title and these members."""
        found = self._wait(lambda: [one for one in self.screen if _is(one, title, members)])
        picture: dict[str, Any] = found[-1]
        return picture

    def gone(self, request_id: str) -> str:
        """Why it was taken from the screen."""
        return str(self._wait(lambda: self._dismissed.get(request_id)))

    def count(self, title: str) -> int:
        """How many requests with this title were presented."""
        return len({one["requestId"] for one in self.screen if _is(one, title, {})})

    def user(self, action: str, **members: Any) -> None:
        """Press a button of the presenter's own: hide, show, pause, resume, mute; returns once it holds."""
        with self._news:
            number = self._presenter.start("user", action=action, **members)
        self._wait(lambda: number in self._replied)

    # -- the thread -------------------------------------------------------------------------------------------

    def _wait(self, fact: Any) -> Any:
        with self._news:
            assert self._news.wait_for(fact, GIVE_UP_SECONDS), "it never came to the screen"
            return fact()

    def _run(self) -> None:
        try:
            while message := self._presenter.read():
                self._take(message)
        except (EOFError, OSError):
            return

    def _take(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message:
            case {"method": "present" | "update"}:
                self._presenter.presented(params)
                with self._news:
                    self.screen.append(params)
                    self._news.notify_all()
                self._act(params)
            case {"method": "dismiss"} if "requestId" in params:
                with self._news:
                    self._dismissed[params["requestId"]] = params["reason"]
                    self._news.notify_all()
            case {"id": int(number), "result": {**nothing}} if not nothing:
                with self._news:
                    self._replied.add(number)
                    self._news.notify_all()
            case {"result": {"outcome": "rejected"}}:
                # Such as too early, for a broker that was slow: try again.
                with self._news:
                    shown = self._answered[message["id"]]
                self._act(shown)

    def _act(self, shown: dict[str, Any]) -> None:
        part = self._parts.get(name_of(shown), {})
        if shown["kind"] == "animation":
            self._presenter.notify("finished", requestId=shown["requestId"])
        if not part:
            return
        time.sleep(ARMING_MS / 1000 * 1.5)
        seen = {name: shown[name] for name in ("requestId", "revision", "digest")} | {"inputStartedMs": 0}
        match part:
            case {"choose": id}:
                call: tuple[str, dict[str, Any]] = ("answer", {"result": {"selectedId": id}})
            case {"write": text}:
                call = ("answer", {"result": {"text": text}})
            case _:
                call = ("dismissed", {})
        with self._news:
            self._answered[self._presenter.start(call[0], **seen, **call[1])] = shown


def name_of(shown: dict[str, Any]) -> str:
    """What a test calls a picture by."""
    return str(shown.get("title") or shown.get("text") or shown.get("expression"))


def _is(shown: dict[str, Any], title: str, members: dict[str, Any]) -> bool:
    return name_of(shown) == title and all(shown.get(name) == value for name, value in members.items())
