"""What can be asked of the companion, and one request from its making to its end; both as values and plans.

A `Question` is the request that asks it and the way to read its answer.  An `Asking` follows one request: `outcome`
makes it and waits for its end, `withdraw` takes it back when nobody waits for it any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Generic, Literal, TypeAlias, TypedDict

import attrs

from broker.client.calls import Calls, with_key
from broker.client.errors import CallFailed, ProtocolBroken
from broker.client.outcomes import completed, unavailable
from broker.client.plan import Plan, T
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import is_terminal
from protocols.json_values import JSONObject

WITHDRAW_SECONDS = 2.0
"""How long an interrupted question is given to take itself back."""
QUESTION_SECONDS = 300.0
NOTICE_SECONDS = 60.0
ANIMATION_SECONDS = 30.0
PROGRESS_SECONDS = 3_600.0


Tone: TypeAlias = Literal["information", "success", "warning", "error"]
"""What a text means, whatever it looks like (CP-2.12)."""


class RequestOptions(TypedDict, total=False):
    """What every request may say besides what it asks or shows."""

    timeout: float
    """Seconds until the request expires, counted from its acceptance (CP-3.8)."""
    character: str
    """The id of the character that shows it; default: the person's current one."""
    style: str
    """The id of a style of that character."""
    allow_substitution: bool
    """Whether the broker may use a declared substitute, which the snapshot then tells (CP-2.16)."""
    key: str
    """The idempotency key: the same key and the same request again give the request that was made first, and so its
    answer, also after this program was restarted.  Default: a new one."""
    task_id: str
    """The program's own name for what the request belongs to; it comes back with every snapshot."""


@attrs.frozen
class Question(Generic[T]):
    """A request, and how its result is read; `read` raises ProtocolBroken for what cannot be an answer."""

    request: CreateRequest
    read: Callable[[JSONObject], T]


# -- what can be asked ---------------------------------------------------------------------------------------------


def choice(title: str, options: Mapping[str, str], how: RequestOptions) -> Question[str]:
    """Which option?  `options` gives the label of each stable id; the answer is an id."""
    listed: JSONObject = {
        "title": title,
        "options": [{"id": id, "label": label} for id, label in options.items()],
    }

    def read(result: JSONObject) -> str:
        selected = result.get("selectedId")
        if not isinstance(selected, str) or selected not in options:
            raise ProtocolBroken("the broker answered with an option that was not asked for")
        return selected

    return Question(request("interaction.choose", listed, QUESTION_SECONDS, how), read)


def confirmation(title: str, yes: str, no: str, how: RequestOptions) -> Question[bool]:
    """Yes or no?"""
    asked = choice(title, {"yes": yes, "no": no}, how)
    return Question(asked.request, lambda result: asked.read(result) == "yes")


def text(
    title: str, placeholder: str, multiline: bool, max_length: int, how: RequestOptions
) -> Question[str]:
    """What does the person write?"""
    wanted: JSONObject = {
        "title": title,
        "placeholder": placeholder,
        "multiline": multiline,
        "maxLength": max_length,
    }

    def read(result: JSONObject) -> str:
        written = result.get("text")
        if not isinstance(written, str) or not written:
            raise ProtocolBroken("the broker answered without a text")
        return written

    return Question(request("interaction.ask_text", wanted, QUESTION_SECONDS, how), read)


def notice(text: str, title: str | None, tone: Tone, seconds: float, how: RequestOptions) -> CreateRequest:
    """Show a text for so many seconds."""
    shown: JSONObject = {"text": text, "tone": tone, "displayMs": milliseconds(seconds)}
    if title is not None:
        shown["title"] = title
    return request("notice.show", shown, NOTICE_SECONDS, how)


def animation(expression: str, how: RequestOptions) -> CreateRequest:
    """Let the character play an expression."""
    return request("animation.play", {"expression": expression}, ANIMATION_SECONDS, how)


def progress(
    title: str, fraction: float | None, detail: str, tone: Tone, how: RequestOptions
) -> CreateRequest:
    """Show how far a piece of work has come."""
    shown: JSONObject = {"title": title, "fraction": fraction, "detail": detail, "tone": tone}
    return request("progress.track", shown, PROGRESS_SECONDS, how)


def request(capability: str, params: JSONObject, timeout: float, how: RequestOptions) -> CreateRequest:
    """Any request; `timeout` holds where `how` names none.  The broker judges the parameters (CP-7.2)."""
    return with_key(
        CreateRequest(
            capability=capability,
            params=params,
            timeout_ms=milliseconds(how.get("timeout", timeout)),
            character=how.get("character"),
            style=how.get("style"),
            idempotency_key=how.get("key"),
            task_id=how.get("task_id"),
            allow_substitution=how.get("allow_substitution", False),
        )
    )


def milliseconds(seconds: float) -> int:
    """A time as the wire has it; raises ValueError for what is no time."""
    if not math.isfinite(seconds):
        raise ValueError("a time is a finite number of seconds")
    return round(seconds * 1000)


# -- one request ---------------------------------------------------------------------------------------------------


class Asking:
    """See the module header.  `last` is the newest snapshot, once the broker has made the request."""

    def __init__(self, calls: Calls, request: CreateRequest) -> None:
        self.last: Snapshot | None = None
        self._calls = calls
        self._request = request
        self._made = False

    def made(self) -> Plan[Snapshot]:
        """Make the request.  Raises Unavailable when nothing can be shown, CallFailed for other refusals."""
        self._made = True
        try:
            self.last = (yield from self._calls.create(self._request)).value
        except CallFailed as error:
            self._made = False
            if (told := unavailable(error)) is None:
                raise
            raise told from error
        return self.last

    def outcome(self) -> Plan[Snapshot]:
        """Make the request and wait for its end.  Raises NotCompleted unless it was completed."""
        first = yield from self.made()
        try:
            self.last = yield from self._calls.end_of(first)
        except CallFailed as error:
            if (told := unavailable(error, first)) is None:
                raise
            raise told from error
        return completed(self.last)

    def answer(self, question: Question[T]) -> Plan[T]:
        """The person's answer: nothing but a completed request whose reason is that it was answered has one."""
        ended = yield from self.outcome()
        if ended.reason != "answered" or ended.result is None:
            raise ProtocolBroken("the broker completed a question that nobody has answered")
        return question.read(ended.result)

    def withdraw(self) -> Plan[None]:
        """Take the request back, if it may have been made and has not ended.

        Where the reply to create was lost, create under the same key tells which request it is.
        """
        if not self._made:
            return
        if self.last is None:
            self.last = (yield from self._calls.create(self._request)).value
        if not is_terminal(self.last.state):
            self.last = (yield from self._calls.cancel(self.last.request_id)).value
