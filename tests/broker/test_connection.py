"""A connection over a real socketpair: what is read when, what is answered, how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.daemon.connection import Terms
from handlers.events import Call, Closed, HalfClosed
from tests.support.toy_session import Ask, Session, Told, open_session

LONG = 1_000_000
"""More than a socket buffers."""
FEW = Terms(max_calls=2, max_waits=1, calls_per_second=6)


@pytest.fixture
async def session() -> AsyncIterator[Session]:
    async with open_session() as session:
        yield session


# -- reading ------------------------------------------------------------------------------------------------------


async def test_nothing_behind_a_serial_call_is_read_before_its_reply(session: Session) -> None:
    await session.peer.send("login", "ask")
    (login,) = await session.handlers.wait(Call)
    await wait_all_tasks_blocked()
    assert session.handlers.asked() == [0]
    session.reply(login.ref)
    await session.handlers.wait(Call, 2)
    assert session.handlers.asked() == [0, 1]


async def test_many_calls_in_one_piece_are_delivered_in_order(session: Session) -> None:
    session.answer_at_once()
    await session.peer.send(*["ask"] * 150)
    await session.handlers.wait(Call, 150)
    assert session.handlers.asked() == list(range(150))
    assert [(await session.peer.read() or {})["id"] for _ in range(150)] == list(range(1, 151))


async def test_replies_that_come_while_a_batch_is_delivered_are_one_line(session: Session) -> None:
    session.answer_at_once()
    lines = b",".join(session.peer.line("ask", value).strip() for value in range(3))
    await session.peer.stream.send_all(b"[" + lines + b"]\n")
    replies = await session.peer.read_batch()
    assert [reply["result"]["words"] for reply in replies] == ["0", "1", "2"]
    assert session.connection.charged == 0


# -- what has left -------------------------------------------------------------------------------------------------


async def test_what_the_kernel_takes_at_once_is_told_to_be_sent_at_once(session: Session) -> None:
    sent: list[str] = []
    session.reply(await session.call("ask"), "a word")
    session.connection.when_sent(lambda: sent.append("told"))
    assert sent == ["told"]


async def test_what_a_slow_peer_has_not_taken_is_told_to_be_sent_when_it_has(session: Session) -> None:
    sent: list[str] = []
    call = await session.call("ask")
    session.reply(call, "x" * LONG)
    session.connection.when_sent(lambda: sent.append("told"))
    await wait_all_tasks_blocked()
    assert sent == []
    assert (await session.peer.read() or {})["result"]["words"] == "x" * LONG
    await wait_all_tasks_blocked()
    assert sent == ["told"]


async def test_what_a_peer_never_took_is_never_told_to_be_sent(session: Session) -> None:
    sent: list[str] = []
    session.reply(await session.call("ask"), "x" * LONG)
    session.connection.when_sent(lambda: sent.append("told"))
    await session.peer.stream.aclose()
    await session.ended()
    assert sent == []


async def test_a_reply_within_the_delivery_is_sent_before_that_is_told(session: Session) -> None:
    """Its bytes are still in the engine when it was given."""
    sent: list[bool] = []

    def decide(call: Call[Ask]) -> bool:
        session.reply(call.ref, "now")
        session.connection.when_sent(lambda: sent.append(session.connection._draining))
        assert sent == []
        return True

    session.handlers.decide = decide
    await session.peer.send("ask")
    assert (await session.peer.read() or {})["result"] == {"words": "now"}
    assert sent == [False]


# -- quotas -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.5")
async def test_a_call_in_flight_is_charged_until_its_reply() -> None:
    async with open_session(FEW) as session:
        first = await session.call("ask")
        await session.call("ask")
        await session.peer.send("ask")
        refused = await session.peer.read()
        assert refused is not None
        assert refused["error"]["data"]["reason"] == "maxCallsInFlight"
        assert session.connection.charged == 2
        session.reply(first)
        assert session.connection.charged == 1
        await session.call("ask")


async def test_waits_calls_and_cancels_do_not_use_up_each_other() -> None:
    async with open_session(FEW) as session:
        for method in ("ask", "ask", "wait", "cancel"):
            await session.call(method)
        await session.peer.send("wait")
        refused = await session.peer.read()
        assert refused is not None
        assert refused["error"]["data"]["reason"] == "maxWaits"


@pytest.mark.parametrize("method", ["ask", "cancel"])
async def test_over_the_rate_every_kind_of_call_is_refused(
    method: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_session(FEW) as session:
        session.answer_at_once()
        await session.peer.send(*[method] * 7)
        replies = [await session.peer.read() for _ in range(7)]
        refused = replies[-1]
        assert refused is not None
        assert refused["error"]["data"]["reason"] == "callsPerSecond"
        assert not [reply for reply in replies[:-1] if reply is None or "error" in reply]
        await trio.sleep(refused["error"]["data"]["retryAfterMs"] / 1000)
        await session.call(method)


@pytest.mark.parametrize("end", ["peer leaves", "broker hangs up", "broker aborts", "cancelled"])
async def test_every_charge_is_given_back_at_the_end(end: str) -> None:
    async with open_session() as session:
        for method in ("ask", "wait", "wait", "cancel"):
            await session.call(method)
        assert session.connection.charged == 3
        match end:
            case "peer leaves":
                await session.peer.stream.aclose()
            case "broker hangs up":
                session.connection.hang_up()
            case "broker aborts":
                session.connection.abort()
            case "cancelled":
                session.handlers.nursery.cancel_scope.cancel()
                return  # `open_session` looks
        await session.ended()
        assert session.connection.charged == 0
        assert session.handlers.of(Closed) == [Closed(7)]


# -- the peer's end -----------------------------------------------------------------------------------------------


async def test_a_half_close_is_no_disconnect(session: Session) -> None:
    await session.peer.send("ask", "wait")
    ask, wait = await session.handlers.wait(Call, 2)
    await session.peer.stream.send_eof()
    await session.handlers.wait(HalfClosed)
    session.reply(ask.ref, "one")
    await wait_all_tasks_blocked()
    assert not session.connection.ended.is_set()
    session.reply(wait.ref, "two")
    assert [reply["result"]["words"] for reply in await session.peer.rest()] == ["one", "two"]
    await session.ended()


async def test_after_a_half_close_with_nothing_to_answer_the_broker_closes(session: Session) -> None:
    await session.peer.stream.send_eof()
    assert await session.peer.rest() == []
    await session.ended()


async def test_who_leaves_after_a_half_close_is_noticed(
    session: Session, autojump_clock: trio.testing.MockClock
) -> None:
    await session.call("wait")
    await session.peer.stream.send_eof()
    await session.handlers.wait(HalfClosed)
    await session.peer.stream.aclose()
    await session.ended()


async def test_a_disconnect_is_no_half_close_and_ends_the_waits(session: Session) -> None:
    await session.call("wait")
    await session.peer.stream.aclose()
    await session.handlers.wait(Closed)
    assert session.handlers.of(HalfClosed) == []


@pytest.mark.parametrize("half", [True, False])
async def test_an_unterminated_last_line_counts(session: Session, half: bool) -> None:
    await session.peer.stream.send_all(session.peer.line("ask").rstrip(b"\n"))
    if half:
        await session.peer.stream.send_eof()
    else:
        await session.peer.stream.aclose()
    await session.handlers.wait(Call)


async def test_what_was_sent_before_a_disconnect_counts_though_nobody_hears_the_answers(
    session: Session,
) -> None:
    session.answer_at_once()
    await session.peer.send(*["ask"] * 100)
    await session.peer.stream.aclose()
    await session.handlers.wait(Closed)
    assert session.handlers.asked() == list(range(100))


# -- the broker's end ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.9")
async def test_whoever_waits_is_told_that_the_broker_stops_and_nothing_after_it(session: Session) -> None:
    call = await session.call("wait")
    session.connection.stop()
    session.reply(call, "too late")
    session.connection.push(Told("too late"))
    (told,) = await session.peer.rest()
    assert told["error"]["data"] == {"code": "RUNTIME_UNAVAILABLE", "retryable": True, "reason": "stopping"}
    await session.ended()


async def test_what_was_said_before_a_hang_up_is_still_delivered(session: Session) -> None:
    words = "x" * 60_000
    for _ in range(20):
        session.connection.push(Told(words))
    session.connection.hang_up()
    assert [line["params"]["words"] for line in await session.peer.rest()] == [words] * 20


async def test_a_call_whose_handler_failed_is_told_so_and_ends_the_connection(session: Session) -> None:
    def fail(call: Call[Ask]) -> bool:
        return False

    session.handlers.decide = fail
    await session.peer.send("ask")
    (told,) = await session.peer.rest()
    assert told["error"]["data"]["code"] == "INTERNAL_ERROR"
    await session.ended()


# -- peers that do not read ---------------------------------------------------------------------------------------

SMALL = Terms(outbox_bytes=400_000, max_calls=1000, calls_per_second=1000)
WORDS = "x" * 50_000


async def test_a_peer_that_does_not_read_is_not_read_from_until_it_does() -> None:
    async with open_session(SMALL) as session:
        while not session.connection._outbox.crowded:
            session.connection.push(Told(WORDS))
        await session.peer.send("ask")
        await wait_all_tasks_blocked()
        assert session.handlers.asked() == []
        while not session.handlers.asked():
            assert await session.peer.read() is not None
            await wait_all_tasks_blocked()


@pytest.mark.requirement("G06")
@pytest.mark.parametrize("words", ["x", WORDS])
async def test_a_peer_that_never_reads_is_dropped_at_a_line_end(words: str) -> None:
    async with open_session(SMALL) as session:
        while not session.connection._closing:
            session.connection.push(Told(words))
        session.connection.push(Told("nothing follows"))
        for line in await session.peer.rest():
            assert line["params"]["words"] == words
        await session.ended()


async def test_a_deaf_peer_does_not_hold_its_connection_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_session(SMALL) as session:
        while session.connection._outbox.empty:
            session.connection.push(Told(WORDS))
        session.connection.hang_up()
        await session.ended()
