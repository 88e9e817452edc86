"""The one place that puts the broker together; `open_broker` is the embedding API, and what the tests use.

Order of a start: the packages come from one place, the folders are private, the lock is held, the store is whole
(or a fresh one), open and migrated, the rows are loaded, the restart is decided and committed, open wipes are done;
only then do sockets appear.  Order of an end: stop accepting, let what was decided be committed, tell who still
waits, flush, remove the sockets, commit what the closed connections left behind, close the store, release the lock.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import attrs
import trio

from broker.daemon.clocks import Clocks, SystemClocks, boot_id
from broker.daemon.committer import Committer, StoreThread
from broker.daemon.config import Config
from broker.daemon.dispatch import Dispatch
from broker.daemon.errors import StartRefused
from broker.daemon.host import HostEntry
from broker.daemon.ledger import Ledger
from broker.daemon.listener import Doorkeeper, Service
from broker.daemon.logs import Log
from broker.daemon.presenter_process import Admit, command_of, keep_presenter, published
from broker.daemon.protocol_table import Row, all_routes, protocol_table
from broker.daemon.runtime_dir import private_folder
from broker.daemon.sockets import Lock, SocketPlace, keep_places, lease_socket, open_places
from broker.daemon.store import Fault, Reader, Store, no_fault
from broker.daemon.store_file import damaged_at, open_store
from broker.daemon.wiper import Wiper
from broker.origin import check_origin
from broker.packs import load_packs
from broker.paths import RUNTIME_DIR, STATE_DIR, Paths
from handlers.companion.names import check_name
from handlers.companion.wiping import WIPES
from handlers.environment import Environment
from handlers.events import ForgetKey, Scrub, Started
from handlers.routes import merge
from handlers.rule import Event
from protocols.errors import InvalidValue

_COMMIT_SECONDS = 1.0
_WIPE_LOOK_SECONDS = 0.01
_WIPE_PATIENCE_SECONDS = 60.0
_LAST_WORDS_SECONDS = 1.0


@attrs.frozen
class Broker:
    """A running broker: its paths, the host's own entry, its ledger for looking at, and the way to end it."""

    paths: Paths
    host: HostEntry
    ledger: Ledger
    dispatch: Dispatch
    _committer: Committer

    def stop(self) -> None:
        """Begin the orderly end: `wait_stopping` returns."""
        self.dispatch.stopping.set()

    async def wait_stopping(self) -> None:
        """Wait until somebody asked for the end."""
        await self.dispatch.stopping.wait()

    def submit(self, event: Event) -> bool:
        """Decide an event of the host's own; False when its handler failed."""
        return self.dispatch.submit(event)


@attrs.frozen
class Setup:
    """What a broker is started with.

    `presenter` overrides the configuration's kind; `host_label` is what the person reads as the source of the host's
    own requests, 1 to 64 code points on one line; `fault` is the store's test hook.
    """

    config: Config
    paths: Paths
    presenter: str | None = None
    host_label: str = "Companion"
    clocks: Clocks = attrs.field(factory=SystemClocks)
    fault: Fault = no_fault
    log: Log = attrs.field(factory=Log)

    @property
    def presenter_kind(self) -> str:
        """The kind of presenter that this broker shall have, as it was written."""
        return self.config.presenter.kind if self.presenter is None else self.presenter

    @property
    def presenter_command(self) -> Sequence[str] | None:
        """The command line of the presenter, None for none; StartRefused for a kind that does not exist."""
        return command_of(self.presenter_kind)

    @property
    def checked_label(self) -> str:
        """The host's label; StartRefused for one that nobody could read."""
        try:
            check_name(self.host_label, "host_label")
        except InvalidValue as error:
            raise StartRefused(error.field, error.reason) from None
        return self.host_label


@asynccontextmanager
async def open_broker(setup: Setup) -> AsyncIterator[Broker]:
    """Run a broker for the length of the block.

    Raises StartRefused or StoreTooNew before anything was changed that another broker could mind, and StoreLost
    when the disk can no longer be trusted: then nobody has been told anything that is not on disk.
    """
    check_origin()
    command, _ = setup.presenter_command, setup.checked_label
    paths = setup.paths
    private_folder(paths.runtime, RUNTIME_DIR)
    private_folder(paths.state, STATE_DIR)
    with Lock(paths.lock_file) as lock, Lock(paths.state_lock_file):
        thread = StoreThread(lambda: _open_store(setup))
        await thread.start()
        try:
            async with _running(setup, thread, lock, command) as broker:
                yield broker
        finally:
            thread.stop()


def _open_store(setup: Setup) -> Store:
    def warn(reason: str, moved_to: str) -> None:
        setup.log.warning("store_damaged", reason=reason, setting=moved_to)

    tables = merge(all_routes(protocol_table(setup.config.policy))).tables
    wall_ms = setup.clocks.now().wall
    return open_store(setup.paths.database, tables, wall_ms=wall_ms, warn=warn, fault=setup.fault)


@asynccontextmanager
async def _running(
    setup: Setup, thread: StoreThread, lock: Lock, command: Sequence[str] | None
) -> AsyncIterator[Broker]:
    table = protocol_table(setup.config.policy)
    # The committer outlives everything but the reader: what closing connections decide is committed as well.
    with closing(Reader(setup.paths.database)) as reader:
        async with trio.open_nursery() as commits:
            async with trio.open_nursery() as serving:
                broker = await _assemble(setup, table, thread, reader, serving)
                commits.start_soon(_commit, broker)
                with open_places(_socket_paths(table, setup.paths)) as places:
                    front = _Front(setup, broker, lock, table, places, command)
                    listening = trio.CancelScope()
                    serving.start_soon(front.serve, listening)
                    try:
                        yield broker
                    finally:
                        with trio.CancelScope(shield=True):
                            listening.cancel()
                            broker.dispatch.wind_down()
                            await _say_goodbye(broker)
                serving.cancel_scope.cancel()
            commits.cancel_scope.cancel()


async def _assemble(
    setup: Setup, table: tuple[Row, ...], thread: StoreThread, reader: Reader, serving: trio.Nursery
) -> Broker:
    """Load the rows, decide the restart and commit it."""
    routes = merge(all_routes(table))
    environment = _environment(setup)
    dispatch = Dispatch(setup.clocks, serving, setup.log)
    ledger = Ledger(routes, environment, reader, setup.clocks.now, dispatch.report)
    committer = Committer(ledger, thread, dispatch.perform)
    dispatch.attach(ledger, committer)
    wiper = Wiper(thread, serving, setup.paths.credentials, setup.log, dispatch.submit)
    dispatch.carry(Scrub, wiper.scrub)
    dispatch.carry(ForgetKey, wiper.forget)
    await thread.run(lambda store: ledger.load(store.load(routes.tables)))
    started = Started(damaged_at(setup.paths.database))
    if not dispatch.submit(started):  # a fault of ours, logged: nobody may see requests that were not judged
        raise StartRefused("store", "the restart could not be decided")
    await committer.flush()
    if ledger.refusing:  # before the restart is on disk, nobody is let in to see what it has ended (CP-4.13)
        setup.log.warning("waiting_for_the_disk")
        await committer.settle()
    await _finish_wipes(setup, ledger, committer)
    host = HostEntry(dispatch, setup.config.policy.limits.max_frame_bytes)
    host.open()
    serving.start_soon(host.end_waits)
    return Broker(setup.paths, host, ledger, dispatch, committer)


async def _finish_wipes(setup: Setup, ledger: Ledger, committer: Committer) -> None:
    """What the last run was to delete for good is gone before anybody is let in.

    Somebody who keeps reading the store can hold the scrubbing up; that is no reason never to start.
    """
    with trio.move_on_after(_WIPE_PATIENCE_SECONDS):
        while ledger.rows.all(WIPES):
            await trio.sleep(_WIPE_LOOK_SECONDS)
            await committer.settle()
    if ledger.rows.all(WIPES):
        setup.log.warning("wipe_not_finished_yet")


def _environment(setup: Setup) -> Environment:
    """What stays the same in this run; character packs that cannot be taken in are left out."""
    packs = load_packs(setup.paths.characters)
    for skipped in packs.skipped:
        setup.log.warning("character_pack_skipped", setting=skipped.name)
    return Environment(
        setup.config.policy,
        os.urandom(16).hex(),
        boot_id(),
        packs.catalog,
        loaded_packs=packs.loaded,
        skipped_packs=packs.skipped,
        presenter=published(setup.presenter_kind),
        host_label=setup.checked_label,
    )


def _socket_paths(table: tuple[Row, ...], paths: Paths) -> list[Path]:
    """The sockets to make, in the order of the table."""
    chosen = attrs.evolve(paths, lease_socket=lease_socket(paths))
    return [row.socket(chosen) for row in table if row.socket is not None]


@attrs.frozen
class _Front:
    """What faces the outside: the listeners, the keeper of their sockets, the presenter, the deadlines."""

    setup: Setup
    broker: Broker
    lock: Lock
    table: tuple[Row, ...]
    places: tuple[SocketPlace, ...]
    command: Sequence[str] | None

    async def serve(self, listening: trio.CancelScope) -> None:
        """Serve until cancelled; `listening` alone ends the taking in of connections."""
        dispatch, log = self.broker.dispatch, self.setup.log
        door = Doorkeeper(dispatch, log, self.setup.config.policy.limits.max_connections_total)
        services = [row.service for row in self.table if row.socket is not None]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(dispatch.fire_deadlines)
            nursery.start_soon(dispatch.watch_processes)
            with listening:
                async with trio.open_nursery() as takers:
                    takers.start_soon(keep_places, self.places, self.lock, self._replaced, self._blocked)
                    for place, service in zip(self.places, services, strict=True):
                        takers.start_soon(_listen, door, place, service)
                    if self.command is not None:
                        takers.start_soon(keep_presenter, self.command, self._admit_presenter(door), log)

    def _admit_presenter(self, door: Doorkeeper) -> Admit:
        service = next(row.service for row in self.table if row.service.protocol == "presenter")
        return lambda sock: door.admit(sock, service)

    def _replaced(self, place: SocketPlace) -> None:
        self.setup.log.warning("socket_put_back", setting=place.path.name)

    def _blocked(self, place: SocketPlace, error: StartRefused) -> None:
        self.setup.log.warning("socket_not_put_back", setting=place.path.name, reason=error.reason)


async def _listen(door: Doorkeeper, place: SocketPlace, service: Service) -> None:
    while True:
        await trio.lowlevel.checkpoint()  # at the end the socket may be closed before this was ever run
        await door.listen(place.socket, service)  # returns when the socket was replaced


async def _commit(broker: Broker) -> None:
    try:
        await broker._committer.run()
    except Exception:  # StoreLost, or memory and disk disagree
        broker.dispatch.silence()
        raise
    finally:
        broker.host.lose()  # calls that nobody will commit are not waited for


async def _say_goodbye(broker: Broker) -> None:
    """Let what was decided be committed, tell whoever still waits, and let the last words be flushed."""
    if not broker.dispatch.silent:
        with trio.move_on_after(_COMMIT_SECONDS):
            await broker._committer.wait_quiet()
    if broker.dispatch.silent:
        return  # the store is lost, maybe just now: nobody is told anything
    broker.host.stop()
    connections = list(broker.dispatch.connections.values())
    for connection in connections:
        connection.stop()
    with trio.move_on_after(_LAST_WORDS_SECONDS):
        for connection in connections:
            await connection.ended.wait()
