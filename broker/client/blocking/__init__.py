"""Blocking connections: one thread, one socket, every wait with a deadline.  Nothing here imports trio.

For authors of programs: `Companion`, `Holder` and `lease`, imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.client.lazy import lazily

if TYPE_CHECKING:
    from broker.client.blocking.client import Companion, Progress
    from broker.client.blocking.holder import Holder, lease

__all__ = ["Companion", "Holder", "Progress", "lease"]

__getattr__ = lazily(
    __name__,
    {
        "Companion": "broker.client.blocking.client",
        "Holder": "broker.client.blocking.holder",
        "Progress": "broker.client.blocking.client",
        "lease": "broker.client.blocking.holder",
    },
)
