"""Being told to stop, by Ctrl-C, SIGTERM or SIGHUP, while a question stands that would be left behind.

    with Interrupts() as interrupts:
        created = ...                    a signal waits until the question is known
        with interrupts.at_once():
            ...                          a signal raises Interrupted, also one that has waited
        ...                              a second signal raises Interrupted anywhere

A signal that this process was started to ignore (nohup, a background job) stays ignored.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, TypeAlias

from broker.cli.outcome import Failure, failure

_CODES = {signal.SIGINT: "INTERRUPTED", signal.SIGTERM: "TERMINATED", signal.SIGHUP: "HANGUP"}
_Handler: TypeAlias = Any  # what signal.signal gives back


class Interrupted(BaseException):
    """A signal asks this process to end; no handler of ordinary errors is to swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def failure(self, message: str) -> Failure:
        """What the command ends with."""
        return failure(_CODES[signal.Signals(self.number)], message)


class Interrupts:
    """See the module header.  For the main thread; in another one signals stay as they are."""

    def __init__(self) -> None:
        self._seen: int | None = None
        self._at_once = False
        self._before: dict[int, _Handler] = {}

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Where a signal may break off whatever is going on."""
        self._at_once = True
        try:
            if self._seen is not None:
                raise Interrupted(self._seen)
            yield
        finally:
            self._at_once = False

    def __enter__(self) -> Interrupts:
        for number in _CODES:
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(ValueError):  # not the main thread
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        again = self._seen is not None
        self._seen = number
        if again or self._at_once:
            self._at_once = False
            raise Interrupted(number)
