"""Durations as they are written on the wire by the lease protocol: seconds, an integer where they are
whole.
"""

from __future__ import annotations


def seconds(ms: int) -> int | float:
    """1500 as 1.5, 60000 as 60."""
    return ms // 1000 if ms % 1000 == 0 else ms / 1000
