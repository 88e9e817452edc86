"""A person before a pseudo terminal: reads the screen, types."""

from __future__ import annotations

import codecs
import os
import select
import time
from collections.abc import Callable

SECONDS = 20.0


class Hands:
    """See the module header; `sources` are the descriptors that are read while the person waits."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.screen = ""
        """What has not been looked at yet."""
        self.drawn = b""
        """Everything that was ever drawn."""
        self.sources: dict[int, Callable[[], None]] = {master: self._look}

    def see(self, text: str) -> str:
        """Wait until this is on the screen; everything up to it, which is then gone."""
        until = time.monotonic() + SECONDS
        while text not in self.screen:
            self.wait(until)
        seen, self.screen = self.screen.split(text, 1)
        return seen

    def type(self, keys: str) -> None:
        """Press these keys, as many at a time as the terminal takes."""
        left = keys.encode()
        until = time.monotonic() + SECONDS
        while left:
            if self.wait(until, writing=True):
                left = left[os.write(self._master, left[:1024]) :]

    def wait(self, until: float, *, writing: bool = False) -> bool:
        """Take what comes, once something has; whether the terminal takes keys."""
        left = max(0.0, until - time.monotonic())
        ready, writable, _ = select.select([*self.sources], [self._master] * writing, [], left)
        assert ready or writable, f"nothing came; on the screen: {self.screen[-2000:]}"
        for source in ready:
            self.sources[source]()
        return bool(writable)

    def _look(self) -> None:
        data = os.read(self._master, 65536)
        self.drawn += data
        self.screen += self._decoder.decode(data)
