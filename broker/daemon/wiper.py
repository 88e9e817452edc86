"""Leaves nothing of what was deleted (CP-4.14): in the store's files, and in what the user's own programs keep.

`secure_delete` zeroes a row where it lay last, but not the copies that SQLite leaves behind when it moves rows from
page to page, so the whole file is written anew.  The old pages are then in the log's way only: a checkpoint that
truncates it takes them away, unless somebody reads the store just now.  Both are tried until they have worked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import trio

from broker.credentials import forget_client
from broker.daemon.committer import StoreThread
from broker.daemon.logs import Log
from broker.daemon.store import Store
from handlers.events import ForgetKey, Scrub, Scrubbed
from handlers.rule import Event

AGAIN_SECONDS = 1.0
_READER_SECONDS = 0.01
_PATIENCE = 20
"""How often somebody who reads is waited for, before that is worth a line in the log."""


class Wiper:
    """See the module header.  The work is done in tasks of the nursery; `submit` takes the event that it is done."""

    def __init__(
        self,
        thread: StoreThread,
        nursery: trio.Nursery,
        credentials: Path,
        log: Log,
        submit: Callable[[Event], object],
    ) -> None:
        self._thread = thread
        self._nursery = nursery
        self._credentials = credentials
        self._log = log
        self._submit = submit

    def scrub(self, effect: Scrub) -> None:
        """Scrub the store's files, then say so with `Scrubbed`."""
        self._nursery.start_soon(self._scrub, effect)

    def forget(self, effect: ForgetKey) -> None:
        """Remove the credential profiles of a client, and their keys, as far as that goes."""
        self._nursery.start_soon(self._forget, effect.client_id)

    async def _scrub(self, effect: Scrub) -> None:
        await self._until_done(_rewrite, AGAIN_SECONDS, patience=1)
        await self._until_done(Store.truncate_log, _READER_SECONDS, patience=_PATIENCE)
        self._submit(Scrubbed(effect.id, effect.revision))

    async def _until_done(self, work: Callable[[Store], bool], pause: float, patience: int) -> None:
        while not await self._done(work):
            patience -= 1
            if patience == 0:
                self._log.warning("store_not_scrubbed_yet")
            await trio.sleep(pause if patience > 0 else AGAIN_SECONDS)

    async def _done(self, work: Callable[[Store], bool]) -> bool:
        """Whether it has worked; a disk that is full or locked may take it later."""
        try:
            return await self._thread.run(work)
        except sqlite3.Error:
            return False

    async def _forget(self, client_id: str) -> None:
        gone = await trio.to_thread.run_sync(
            forget_client, self._credentials, client_id, abandon_on_cancel=True
        )
        if gone:
            self._log.info("credential_profiles_removed", count=len(gone))


def _rewrite(store: Store) -> bool:
    store.rewrite()
    return True
