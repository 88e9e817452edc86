"""The one deadline heap: the instants at which rows have to be looked at again.

A lazy heap a clock: `set` replaces a key's deadline in O(log n) and leaves the old entry to be skipped when it
comes up.  When more than half of a heap is stale it is rebuilt, so that renewals do not make it grow.

A deadline goes only when its row goes or gets another one.  Taking it merely puts it off, so a handler that failed
or left its row as it was is asked again: no deadline is ever lost, and none can keep the broker busy.
"""

from __future__ import annotations

import heapq

import attrs

from handlers.rule import Deadline, Now

Key = tuple[str, str]
"""The name of a table and the key of a row."""

AGAIN_MS = 1_000
"""How long after it was taken a deadline comes again, if its row still has it."""

_Entry = tuple[int, int, Key]
_SMALL = 64


@attrs.frozen
class _Pending:
    """A deadline as its row has it; `at` is when it will be taken, `serial` tells its entry in the heap."""

    deadline: Deadline
    at: int
    serial: int


class Deadlines:
    """Deadlines by key; at most one each."""

    def __init__(self) -> None:
        self._pending: dict[Key, _Pending] = {}
        self._heaps: dict[str, list[_Entry]] = {"elapsed": [], "awake": []}
        self._serial = 0

    def set(self, key: Key, deadline: Deadline | None) -> None:
        """Replace or (None) remove the deadline of a key; the same one again changes nothing."""
        if deadline is None:
            self._pending.pop(key, None)
            return
        pending = self._pending.get(key)
        if pending is None or pending.deadline != deadline:
            self._push(key, deadline, deadline.at)

    def take_due(self, now: Now) -> Key | None:
        """The key whose deadline came first among those that are due, put off by AGAIN_MS; None when none is."""
        due = [
            (*entry, time)
            for heap, time in self._by_clock(now)
            if (entry := self._head(heap)) and entry[0] <= time
        ]
        if not due:
            return None
        _, _, key, time = min(due)
        self._push(key, self._pending[key].deadline, time + AGAIN_MS)
        return key

    def next_in(self, now: Now) -> int | None:
        """Milliseconds until the next deadline (0 when one is due); None when there is none."""
        waits = [entry[0] - time for heap, time in self._by_clock(now) if (entry := self._head(heap))]
        return max(0, min(waits)) if waits else None

    def contents(self) -> dict[Key, Deadline]:
        """Every deadline by key: for comparing them with the rows in tests."""
        return {key: pending.deadline for key, pending in self._pending.items()}

    def _push(self, key: Key, deadline: Deadline, at: int) -> None:
        self._serial += 1
        self._pending[key] = _Pending(deadline, at, self._serial)
        heap = self._heaps[deadline.clock]
        heapq.heappush(heap, (at, self._serial, key))
        if len(heap) > _SMALL and len(heap) > 2 * len(self._pending):
            self._rebuild()

    def _by_clock(self, now: Now) -> tuple[tuple[list[_Entry], int], ...]:
        return (self._heaps["elapsed"], now.elapsed), (self._heaps["awake"], now.awake)

    def _head(self, heap: list[_Entry]) -> _Entry | None:
        while heap:
            _, serial, key = heap[0]
            pending = self._pending.get(key)
            if pending is not None and pending.serial == serial:
                return heap[0]
            heapq.heappop(heap)
        return None

    def _rebuild(self) -> None:
        for clock in self._heaps:
            self._heaps[clock] = [
                (pending.at, pending.serial, key)
                for key, pending in self._pending.items()
                if pending.deadline.clock == clock
            ]
            heapq.heapify(self._heaps[clock])
