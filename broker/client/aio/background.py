"""A nursery for tasks in the background of a block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background() -> AsyncIterator[trio.Nursery]:
    """A nursery whose tasks are cancelled at the end of the block, and which hands on what the block raises as it is.

    A nursery by itself would wrap it in an ExceptionGroup, so that `except Dismissed` around the block would miss.
    """
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except BaseException as error:
            raised = error
        nursery.cancel_scope.shield = (
            True  # what ends the block from outside is told below, once and ungrouped
        )
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
