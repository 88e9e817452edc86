"""The time for the handshake, in virtual time (wire.md, time)."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.daemon.connection import Terms
from protocols.session import NotSaved
from tests.support.toy_session import Told, open_session

pytestmark = pytest.mark.requirement("CP-5.7")

SECONDS = Terms().handshake_seconds


async def test_who_is_not_authenticated_in_time_is_told_once_and_closed(autojump_clock: MockClock) -> None:
    async with open_session(authenticated=False) as session:
        (told,) = await session.peer.rest()
        assert (told["id"], told["error"]["data"]["reason"]) == (None, "timeout")
        await session.ended()
        assert trio.current_time() == SECONDS


async def test_bytes_that_make_no_session_win_no_time(autojump_clock: MockClock) -> None:
    async with open_session(authenticated=False) as session:
        await session.peer.stream.send_all(b'{"half a')
        await trio.sleep(SECONDS - 1)
        await session.peer.stream.send_all(b" line")
        await session.ended()
        assert trio.current_time() == SECONDS


@pytest.mark.parametrize("at_accept", [True, False])
async def test_who_is_authenticated_may_be_silent_for_ever(
    autojump_clock: MockClock, at_accept: bool
) -> None:
    async with open_session(authenticated=at_accept) as session:
        if not at_accept:
            session.answer_at_once()
            await session.call("login")
        await trio.sleep(100 * SECONDS)
        assert not session.connection.ended.is_set()


async def test_a_reply_that_is_late_does_not_stop_the_time(autojump_clock: MockClock) -> None:
    async with open_session(authenticated=False) as session:
        await session.call("login")
        await session.ended()
        assert trio.current_time() == SECONDS


async def test_a_refused_login_wins_no_time(autojump_clock: MockClock) -> None:
    async with open_session(authenticated=False) as session:
        login = await session.call("login")
        await trio.sleep(SECONDS - 1)
        session.connection.reply(login.number, NotSaved())
        await session.ended()
        assert trio.current_time() == SECONDS


async def test_a_pairing_suspends_the_time_and_then_there_is_the_full_time_again(
    autojump_clock: MockClock,
) -> None:
    async with open_session(authenticated=False) as session:
        session.answer_at_once()
        await session.call("pair")
        await trio.sleep(100 * SECONDS)
        assert not session.connection.ended.is_set()
        ended_at = trio.current_time()
        session.connection.push(Told())
        await session.ended()
        assert trio.current_time() == ended_at + SECONDS


async def test_an_answer_that_the_broker_holds_back_stops_the_time_and_gives_no_new_one(
    autojump_clock: MockClock,
) -> None:
    async with open_session(authenticated=False) as session:
        for _ in range(3):
            await trio.sleep(1)
            held = await session.call("hold")
            await trio.sleep(100 * SECONDS)
            session.reply(held)
            await wait_all_tasks_blocked()
        answered_at = trio.current_time()
        await session.ended()
        assert trio.current_time() == answered_at + SECONDS - 3


async def test_a_pairing_that_ends_while_an_answer_is_held_back_gives_the_full_time_after_it(
    autojump_clock: MockClock,
) -> None:
    async with open_session(authenticated=False) as session:
        session.answer_at_once()
        await trio.sleep(SECONDS - 1)
        await session.call("pair")
        session.handlers.decide = lambda call: True
        held = await session.call("hold")
        session.connection.push(Told())
        await trio.sleep(100 * SECONDS)
        session.reply(held)
        answered_at = trio.current_time()
        await session.ended()
        assert trio.current_time() == answered_at + SECONDS


@pytest.mark.parametrize("attempt", range(10))  # which task runs first is left to chance
async def test_a_login_in_the_last_instant_either_holds_or_does_not(
    autojump_clock: MockClock, attempt: int
) -> None:
    async with open_session(authenticated=False) as session:
        login = await session.call("login")
        await trio.sleep_until(SECONDS)
        session.reply(login)
        await wait_all_tasks_blocked()
        told = await session.peer.read()
        assert told is not None
        assert ("result" in told) == (not session.connection.ended.is_set())
