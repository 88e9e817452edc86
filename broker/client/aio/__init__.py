"""The client for programs that use trio: what `broker.client.blocking` is for others, under the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.client.lazy import lazily

if TYPE_CHECKING:
    from broker.client.aio.client import Companion, Progress
    from broker.client.aio.holder import Holder, lease

__all__ = ["Companion", "Holder", "Progress", "lease"]

__getattr__ = lazily(
    __name__,
    {
        "Companion": "broker.client.aio.client",
        "Holder": "broker.client.aio.holder",
        "Progress": "broker.client.aio.client",
        "lease": "broker.client.aio.holder",
    },
)
