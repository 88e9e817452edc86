"""The two flavours of holders as one, for claims that hold for both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import attrs
import trio

from broker.client import aio, blocking
from broker.client.keeping import CloseCheck, Verdict
from broker.client.leases import Lease


class Driver(Protocol):
    """Runs steps, each with the lease, under a lease on an app; gives the lease."""

    def __call__(self, app_key: str, *steps: Callable[[Lease], object], **how: Any) -> Lease: ...


@attrs.frozen
class BlockingDriver:
    """With `broker.client.blocking`."""

    path: Path

    def __call__(self, app_key: str, *steps: Callable[[Lease], object], **how: Any) -> Lease:
        with blocking.lease(app_key, name="Test", path=self.path, **how) as lease:
            for step in steps:
                step(lease)
        return lease


@attrs.frozen
class TrioDriver:
    """With `broker.client.aio`; steps run in threads."""

    path: Path

    def __call__(self, app_key: str, *steps: Callable[[Lease], object], **how: Any) -> Lease:
        if "on_close_check" in how:
            how["on_close_check"] = _as_task(how["on_close_check"])
        return trio.run(functools.partial(self._drive, app_key, *steps, **how))

    async def _drive(self, app_key: str, *steps: Callable[[Lease], object], **how: Any) -> Lease:
        async with aio.lease(app_key, name="Test", path=self.path, **how) as lease:
            for step in steps:
                await trio.to_thread.run_sync(step, lease)
        return lease


def _as_task(callback: Callable[[CloseCheck], Verdict]) -> Any:
    async def decide(check: CloseCheck) -> Verdict:
        await trio.lowlevel.checkpoint()
        return callback(check)

    return decide


DRIVERS: dict[str, Callable[[Path], Driver]] = {"blocking": BlockingDriver, "trio": TrioDriver}
