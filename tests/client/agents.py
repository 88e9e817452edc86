"""The two flavours of the client as one, for claims that hold for both: each call of the trio flavour is a run of its
own, so that a test may stay blocking."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import attrs
import trio

from broker.client import aio, blocking
from broker.client.errors import ClientError
from protocols.companion.client import Credential


class Agent(Protocol):
    """Calls any method of a `Companion` and gives its result."""

    def __call__(self, method: str, *args: Any, **kwargs: Any) -> Any: ...

    def work(self, title: str, *steps: Any, **how: Any) -> ClientError | None:
        """Work under a progress: a step is an update or something to be called; gives its `ended`."""


@attrs.frozen
class BlockingAgent:
    """With `broker.client.blocking`."""

    path: Path
    credential: Credential
    patience: float = 5.0

    def __call__(self, method: str, *args: Any, **kwargs: Any) -> Any:
        with blocking.Companion.open(
            path=self.path, credential=self.credential, patience=self.patience
        ) as companion:
            return getattr(companion, method)(*args, **kwargs)

    def work(self, title: str, *steps: Any, **how: Any) -> ClientError | None:
        with (
            blocking.Companion.open(path=self.path, credential=self.credential) as companion,
            companion.progress(title, **how) as progress,
        ):
            for step in steps:
                step() if callable(step) else progress.update(**step)
        return progress.ended


@attrs.frozen
class TrioAgent:
    """With `broker.client.aio`."""

    path: Path
    credential: Credential
    patience: float = 5.0

    def __call__(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return trio.run(functools.partial(self._call, method, *args, **kwargs))

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        async with aio.Companion.open(
            path=self.path, credential=self.credential, patience=self.patience
        ) as companion:
            return await getattr(companion, method)(*args, **kwargs)

    def work(self, title: str, *steps: Any, **how: Any) -> ClientError | None:
        return trio.run(functools.partial(self._work, title, *steps, **how))

    async def _work(self, title: str, *steps: Any, **how: Any) -> ClientError | None:
        async with (
            aio.Companion.open(path=self.path, credential=self.credential) as companion,
            companion.progress(title, **how) as progress,
        ):
            for step in steps:
                if callable(step):
                    await trio.to_thread.run_sync(step)
                else:
                    await progress.update(**step)
        return progress.ended


FLAVOURS: dict[str, Callable[..., Agent]] = {"blocking": BlockingAgent, "trio": TrioAgent}
