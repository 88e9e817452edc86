"""The trio connection against scripted brokers: calls at once, cancelled calls, busy and silent brokers."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.client.aio.background import background
from broker.client.aio.connection import CompanionConnection
from broker.client.aio.paired import PairedClient
from broker.client.errors import ConnectionLost, TimedOut
from protocols.companion.client import Credential
from protocols.companion.messages import CreateRequest, GetRequest, Implementation, Snapshot
from tests.client.scripted_server import Peer, serving, snapshot
from tests.client.test_stream import full_listener

PROGRAM = Implementation(name="test", version="1")
CREDENTIAL = Credential("c1", "k" * 43)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[CompanionConnection]:
    async with background() as tasks:
        connection = await CompanionConnection.open(tasks, path, PROGRAM, CREDENTIAL, 5)
        try:
            yield connection
        finally:
            connection.close()


async def get(connection: CompanionConnection, request_id: str, seconds: float = 5) -> str:
    answer = await connection.call("requests.get", GetRequest(request_id=request_id), seconds)
    assert isinstance(answer.result, Snapshot)
    return answer.result.request_id


async def test_answers_are_given_to_their_calls_in_whatever_order_they_come(folder: Path) -> None:
    answers: dict[str, str] = {}

    def part(peer: Peer) -> None:
        peer.greet()
        calls = [peer.read() for _ in range(10)]
        for call in reversed(calls):
            peer.answer(call, snapshot(requestId=call["params"]["requestId"]))

    async def ask(connection: CompanionConnection, name: str) -> None:
        answers[name] = await get(connection, name)

    with serving(folder / "s", part):
        async with opened(folder / "s") as connection, trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(ask, connection, f"q{number}")
    assert answers == {f"q{number}": f"q{number}" for number in range(10)}


async def test_calls_that_are_cancelled_while_they_are_sent_leave_only_whole_frames(folder: Path) -> None:
    heard: list[Any] = []
    slow = threading.Event()

    def part(peer: Peer) -> None:
        peer.greet()
        assert slow.wait(10)
        while call := peer.read():
            heard.append(call)
            peer.answer(call, snapshot(requestId=call["params"].get("requestId", "late")))

    big = CreateRequest(capability="c", params={"text": "x" * 60_000}, timeout_ms=1)
    with serving(folder / "s", part):
        async with opened(folder / "s") as connection:
            for _ in range(20):
                with trio.move_on_after(0.001):
                    await connection.call("requests.create", big)
            slow.set()
            assert await get(connection, "q1") == "q1"
    assert [call["method"] for call in heard] == ["requests.create"] * 20 + ["requests.get"]
    assert len(json.dumps(heard)) > 20 * 60_000


async def test_a_connection_may_be_closed_in_the_middle_of_sending(folder: Path) -> None:
    closed = threading.Event()

    def deaf(peer: Peer) -> None:
        peer.greet()
        assert closed.wait(10)

    async def call(connection: CompanionConnection) -> None:
        with pytest.raises(ConnectionLost):
            await connection.call("requests.create", big)

    big = CreateRequest(capability="c", params={"text": "x" * 60_000}, timeout_ms=1)
    with serving(folder / "s", *[deaf] * 20, at_once=True):
        for ticks in range(20):
            async with opened(folder / "s") as connection, trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(call, connection)
                for _ in range(1 + ticks % 4):
                    await trio.lowlevel.checkpoint()
                connection.close()
        closed.set()


async def test_the_answer_to_a_cancelled_call_is_dropped(folder: Path) -> None:
    cancelled = threading.Event()

    def part(peer: Peer) -> None:
        peer.greet()
        late = peer.read()
        assert cancelled.wait(10)
        peer.answer(late, snapshot(requestId="late"))
        peer.answer(peer.read(), snapshot(requestId="q1"))

    with serving(folder / "s", part):
        async with opened(folder / "s") as connection:
            with trio.move_on_after(0.05):
                await get(connection, "late")
            cancelled.set()
            assert await get(connection, "q1") == "q1"


async def test_a_connection_that_ends_ends_every_call(folder: Path) -> None:
    def part(peer: Peer) -> None:
        peer.greet()
        peer.read()
        peer.read()

    async def lost(connection: CompanionConnection) -> None:
        with pytest.raises(ConnectionLost):
            await get(connection, "q1")

    with serving(folder / "s", part):
        async with opened(folder / "s") as connection:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lost, connection)
                nursery.start_soon(lost, connection)
            with pytest.raises(ConnectionLost):
                await get(connection, "q1")


async def test_a_full_backlog_is_tried_again_until_there_is_room(folder: Path) -> None:
    listener, waiting = full_listener(folder / "s")

    def make_room() -> None:
        """Let those that wait go, and greet the one that speaks."""
        for one in waiting:
            one.close()
        while True:
            sock, _ = listener.accept()
            with sock, contextlib.closing(Peer(sock)) as peer:
                if sock.recv(1, socket.MSG_PEEK):
                    return peer.greet()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_later, make_room)
        async with opened(folder / "s") as connection:
            assert connection.ready.identity is not None
    listener.close()


async def _later(work: Callable[[], None]) -> None:
    await trio.sleep(0.05)
    await trio.to_thread.run_sync(work)


async def test_a_backlog_that_stays_full_times_out(folder: Path) -> None:
    listener, waiting = full_listener(folder / "s")
    async with background() as tasks:
        with pytest.raises(TimedOut):
            await CompanionConnection.open(tasks, folder / "s", PROGRAM, CREDENTIAL, 0.05)
    for one in (listener, *waiting):
        one.close()


@pytest.mark.requirement("CP-4.2")
async def test_who_is_silent_to_one_call_is_left_by_all_and_the_others_go_on_elsewhere(folder: Path) -> None:
    def silent(peer: Peer) -> None:
        peer.greet()
        while peer.read():
            pass

    def speaks(peer: Peer) -> None:
        peer.greet()
        peer.answer(peer.read(), snapshot())

    async def times_out(client: PairedClient) -> None:
        with pytest.raises(TimedOut):
            await client.run(client.calls.get("q1"), within=0.2)

    with serving(folder / "s", silent, speaks):
        async with background() as tasks:
            client = PairedClient(tasks, folder / "s", PROGRAM, CREDENTIAL, 5)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(times_out, client)
                    assert (await client.run(client.calls.get("q1"))).value.request_id == "q1"
            finally:
                client.close()


async def test_what_a_block_raises_passes_its_background_tasks_as_it_is() -> None:
    with pytest.raises(KeyError):
        await _raise_in_block(cancelled=False)
    with trio.CancelScope() as scope:
        async with background() as tasks:
            tasks.start_soon(trio.sleep_forever)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_an_error_outlives_a_cancellation_that_comes_with_it() -> None:
    with pytest.raises(KeyError):
        await _raise_in_block(cancelled=True)


async def _raise_in_block(*, cancelled: bool) -> None:
    with trio.CancelScope() as scope:
        async with background() as tasks:
            tasks.start_soon(trio.sleep_forever)
            if cancelled:
                scope.cancel()
            raise KeyError


async def test_a_background_task_that_breaks_ends_the_block_and_is_told() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await _break_beside_block()
    assert caught.group_contains(KeyError)


async def _break_beside_block() -> None:
    async with background() as tasks:
        tasks.start_soon(_break)
        await trio.sleep_forever()


async def _break() -> None:
    await trio.lowlevel.checkpoint()
    raise KeyError
