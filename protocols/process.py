"""Which process: a pid together with its start time.  A bare pid never identifies one (wire.md, peer)."""

from __future__ import annotations

import attrs


@attrs.frozen
class ProcessId:
    """One process of this boot: the number can be given again, number and start time together cannot.

    `started` is the platform's own text for the start time (Linux: clock ticks since the boot); it is only
    compared for equality, and only with one from the same boot.
    """

    pid: int
    started: str
