"""Quotas as pure accounting (wire.md, quotas): a rate is a bucket of tokens, everything else a charge to
release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from protocols.errors import OurError

_TOKEN = 1000  # of the bucket's unit: a rate per second is as many units a millisecond


@attrs.define
class TokenBucket:
    """At most `rate_per_second` takes a second on average and `burst` at once; full at the start.

    Times are milliseconds of one clock that the caller keeps; a step back of it gives and takes nothing.
    """

    rate_per_second: int
    burst: int
    _level: int = attrs.field(init=False)
    _filled_ms: int | None = attrs.field(default=None, init=False)

    @_level.default
    def _full(self) -> int:
        return self.burst * _TOKEN

    def take(self, now_ms: int) -> int:
        """Take one token: 0 when it was there, else the milliseconds after which one will be."""
        if self._filled_ms is not None:
            gained = max(0, now_ms - self._filled_ms) * self.rate_per_second
            self._level = min(self._full(), self._level + gained)
        self._filled_ms = now_ms
        if self._level >= _TOKEN:
            self._level -= _TOKEN
            return 0
        return -((self._level - _TOKEN) // self.rate_per_second)


@attrs.define
class Account:
    """What one connection or client holds of several limited things, by name.

    Every charge is released exactly once; an account that `total` says is empty owes nothing.
    """

    limits: Mapping[str, int]
    _held: Counter[str] = attrs.field(factory=Counter, init=False)

    def charge(self, name: str) -> bool:
        """Charge one unit, unless its limit is reached: then nothing is charged and the answer is False."""
        if self._held[name] >= self.limits[name]:
            return False
        self._held[name] += 1
        return True

    def release(self, name: str) -> None:
        """Give one unit back; raises OurError when none is held."""
        if self._held[name] == 0:
            raise OurError(f"released more than was charged: {name}")
        self._held[name] -= 1

    def held(self, name: str) -> int:
        """How many units of one thing are held."""
        return self._held[name]

    def total(self) -> int:
        """How many units are held in all."""
        return self._held.total()
