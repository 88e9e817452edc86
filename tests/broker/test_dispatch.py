"""A fault ends one connection and is logged without a word of content; nobody else notices (G01, why)."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from broker.daemon.logs import Log
from handlers.connections import CONNECTIONS
from handlers.events import CallRef, Hangup, Opened, Push, Reply, Stop, Then
from handlers.rule import Effect
from tests.support.toy_dispatch import (
    DELAY_MS,
    ENGINE_FAILS,
    HANDLER_FAILS,
    LOOK_FAILS,
    SECRET,
    UNSPEAKABLE,
    ToyDispatch,
    open_toy_dispatch,
)
from tests.support.toy_session import Peer, Told

FAULTS = {
    HANDLER_FAILS: "handler_failed",
    LOOK_FAILS: "connection_failed",
    ENGINE_FAILS: "connection_failed",
    UNSPEAKABLE: "effect_failed",
}


@pytest.fixture
async def toy() -> AsyncIterator[ToyDispatch]:
    async with open_toy_dispatch() as toy:
        yield toy


async def is_served(peer: Peer) -> bool:
    await peer.stream.send_all(peer.line("ask", 1))
    reply = await peer.read()
    return reply is not None and reply["result"] == {"words": "1"}


@pytest.mark.requirement("G01")
@pytest.mark.parametrize("value", FAULTS)
async def test_a_fault_ends_its_connection_and_no_other(toy: ToyDispatch, value: int) -> None:
    async with toy.connect() as unlucky, toy.connect() as other:
        await unlucky.stream.send_all(unlucky.line("cancel") + unlucky.line("ask", value))
        told = await unlucky.rest()
        assert [line["error"]["data"]["code"] for line in told] == ["INTERNAL_ERROR"] * (
            value == HANDLER_FAILS
        )
        assert await is_served(other)
        assert len(toy.dispatch._ledger.rows.all(CONNECTIONS)) == 1
    assert FAULTS[value] in toy.logged.getvalue()


@pytest.mark.requirement("CP-5.7")
@pytest.mark.parametrize("value", FAULTS)
async def test_of_a_fault_the_log_shows_class_and_place_and_no_content(toy: ToyDispatch, value: int) -> None:
    async with toy.connect() as peer:
        await peer.stream.send_all(peer.line("ask", value))
        await peer.rest()
    assert SECRET not in toy.logged.getvalue()
    assert "error=" in toy.logged.getvalue()
    assert ".py:" in toy.logged.getvalue()


async def test_a_log_that_nobody_reads_any_more_ends_nothing() -> None:
    closed = io.StringIO()
    closed.close()
    async with open_toy_dispatch(log=Log(closed)) as toy, toy.connect() as unlucky, toy.connect() as other:
        await unlucky.stream.send_all(unlucky.line("ask", ENGINE_FAILS))
        assert await unlucky.rest() == []
        assert await is_served(other)


async def test_an_effect_for_somebody_who_has_gone_goes_nowhere(toy: ToyDispatch) -> None:
    gone: list[Effect] = [Reply(CallRef(99, 1), Told()), Push(99, Told()), Hangup(99)]
    for effect in gone:
        toy.dispatch.perform(effect)
    assert toy.logged.getvalue() == ""


async def test_work_goes_on_in_decisions_of_its_own_until_the_broker_winds_down(toy: ToyDispatch) -> None:
    def opened() -> set[str]:
        return {name for _, name in toy.dispatch._ledger.rows.contents()}

    toy.dispatch.perform(Then(Opened(77, "toy", None)))
    assert "77" in opened()
    toy.dispatch.wind_down()
    toy.dispatch.perform(Then(Opened(78, "toy", None)))
    assert "78" not in opened()


async def test_a_delayed_reply_comes_when_it_is_time_and_holds_nobody_up(
    toy: ToyDispatch, autojump_clock: MockClock
) -> None:
    async with toy.connect() as waiting, toy.connect() as other:
        await waiting.send("wait")
        assert await is_served(other)
        assert trio.current_time() == 0
        assert (await waiting.read() or {})["result"] == {"words": "late"}
        assert trio.current_time() == DELAY_MS / 1000


async def test_who_leaves_before_a_delayed_reply_is_not_missed(
    toy: ToyDispatch, autojump_clock: MockClock
) -> None:
    async with toy.connect() as waiting:
        await waiting.send("wait")
    await trio.sleep(2 * DELAY_MS / 1000)
    assert toy.logged.getvalue() == ""


async def test_once_silent_the_broker_tells_nobody_anything(
    toy: ToyDispatch, autojump_clock: MockClock
) -> None:
    async with toy.connect() as peer:
        assert await is_served(peer)
        await peer.send("wait")
        toy.dispatch.silence()
        toy.dispatch.perform(Push(1, Told()))
        toy.dispatch.perform(Stop())
        await peer.stream.send_all(peer.line("ask", 1))
        with trio.move_on_after(2 * DELAY_MS / 1000) as waited:
            await peer.stream.receive_some()
        assert waited.cancelled_caught
        assert not toy.dispatch.stopping.is_set()
