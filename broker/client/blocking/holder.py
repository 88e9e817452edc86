"""Keeps apps open while a program drives them (LP-12): leases as context managers, for a program that blocks.

    with lease("org.example.Editor"):
        ...                                     the app is not quit meanwhile

    with Holder("My Agent") as holder:          several apps over one connection
        with holder.lease("org.example.Editor", on_close_check=decide):
            ...

A thread of the holder's own renews, answers close checks and connects again; callbacks run in it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from broker.client.keeper import LeaseKeeper
from broker.client.keeping import CloseCheck, Extend, Hold, Verdict
from broker.client.leases import GIVE_BACK_SECONDS, Lease, close_check, new_keeper, verdict_of
from protocols.lease.messages import CanCloseRequest

OnCloseCheck: TypeAlias = Callable[[CloseCheck], Verdict]


class Holder:
    """See the module header.  Threads may share it.

    `name` is what the owner of the machine is shown; default: the program's file name.  `path` is another socket than
    that of the user's own broker.  `id` stands for one process and is new by default.
    """

    def __init__(self, name: str | None = None, *, path: Path | None = None, id: str | None = None) -> None:
        self._keeper = new_keeper(name, path, id)
        self._leases: dict[Hold, tuple[Lease, OnCloseCheck | None]] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._waker, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="lease holder", daemon=True)

    def __enter__(self) -> Holder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._wake()
        self._thread.join()
        self._waker.close()
        self._woken.close()

    @contextlib.contextmanager
    def lease(
        self,
        app_key: str,
        *,
        seconds: int | None = None,
        on_close_check: OnCloseCheck | None = None,
        renew: bool = True,
        required: bool = True,
    ) -> Iterator[Lease]:
        """Hold an app open during the block.

        `seconds` is the term, renewed at a third of it; default: ten minutes, or what the broker allows.
        `on_close_check` decides, with `Extend()` or `Allow()`, when a lease that ran out is asked about; default:
        extend.  What it raises keeps the app open, and is raised at the end of the block.  With `renew` false the
        lease runs out, so that every further term is the callback's decision.  With `required` false the block runs
        without a lease where there is none to be had, and it is tried for on the way.

        Raises LeaseRefused and NotConnected before the block, ValueError for a second lease on an app.
        """
        if not self._thread.is_alive():
            raise RuntimeError("a holder is used as a context manager")
        hold = Hold(app_key, seconds, renews=renew, decides=on_close_check is not None)
        one = Lease(hold)
        with self._change() as keeper:
            keeper.hold(hold)
            self._leases[hold] = one, on_close_check
        try:
            self._wait(lambda: hold.answered or hold.failure is not None)
            if required and not hold.held and one.failure is not None:
                raise one.failure
            yield one
        finally:
            self._give_back(hold)
        if one.error is not None:
            raise one.error

    def _give_back(self, hold: Hold) -> None:
        with self._change() as keeper:
            keeper.give_back(hold)
        self._wait(lambda: hold not in keeper.holds or keeper.channel is None, GIVE_BACK_SECONDS)
        del self._leases[hold]

    # -- the two sides of the lock ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _change(self) -> Iterator[LeaseKeeper]:
        """What the block tells the keeper is said at once."""
        with self._changed:
            yield self._keeper
        self._wake()

    def _wait(self, fact: Callable[[], bool], seconds: float | None = None) -> None:
        with self._changed:
            self._changed.wait_for(fact, seconds)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is full of wake-ups
            self._waker.send(b"\0", socket.MSG_DONTWAIT)

    # -- the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping:
            self._sleep()
            with self._changed:
                self._keeper.step()
                checks = self._keeper.take_checks()
                self._changed.notify_all()
            for hold, request in checks:
                self._decide(hold, request)
        self._keeper.close()

    def _sleep(self) -> None:
        """Until something arrives, is due, or was told to the keeper."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if self._keeper.channel is not None:
            poll.register(self._keeper.channel, select.POLLIN)
        seconds = max(0.0, self._keeper.wake_at - time.monotonic())
        poll.poll(None if seconds == float("inf") else seconds * 1000)
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096, socket.MSG_DONTWAIT)

    def _decide(self, hold: Hold, request: CanCloseRequest) -> None:
        with self._changed:
            one, callback = self._leases.get(hold, (None, None))
        if one is None or callback is None:  # given back meanwhile
            return
        verdict: Verdict = Extend()
        try:
            verdict = verdict_of(callback(close_check(request)))
        except Exception as error:
            one.error = error
        with self._changed:
            self._keeper.decide(hold, request, verdict)
            self._keeper.step()


@contextlib.contextmanager
def lease(
    app_key: str,
    *,
    name: str | None = None,
    path: Path | None = None,
    seconds: int | None = None,
    on_close_check: OnCloseCheck | None = None,
    renew: bool = True,
    required: bool = True,
) -> Iterator[Lease]:
    """Hold one app open during the block, as a holder of its own; see `Holder` and `Holder.lease`."""
    with (
        Holder(name, path=path) as holder,
        holder.lease(
            app_key, seconds=seconds, on_close_check=on_close_check, renew=renew, required=required
        ) as one,
    ):
        yield one
