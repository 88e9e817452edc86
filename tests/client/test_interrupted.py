"""Questions whose asker is interrupted, and what a repetition finds: through a real broker."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from types import FrameType
from typing import TypeAlias

import pytest
import trio

from broker.client import aio, blocking
from broker.client.outcomes import Cancelled
from protocols.companion.client import Credential
from protocols.companion.states import State, is_terminal
from tests.client.agents import Agent
from tests.client.desk import Desk
from tests.support.broker_process import BrokerProcess

OPTIONS = {"a": "A", "b": "B"}


@pytest.fixture
def companion(broker: BrokerProcess, credential: Credential, desk: Desk) -> Iterator[blocking.Companion]:
    desk.screen.clear()
    with blocking.Companion.open(path=broker.runtime / "companion.sock", credential=credential) as companion:
        yield companion


Opener: TypeAlias = Callable[[], AbstractAsyncContextManager[aio.Companion]]


@pytest.fixture
def opened(broker: BrokerProcess, credential: Credential, desk: Desk) -> Opener:
    """Opens a companion of the trio flavour."""
    desk.screen.clear()
    return lambda: aio.Companion.open(path=broker.runtime / "companion.sock", credential=credential)


class Interrupted(BaseException):
    """What a signal handler raises, as Ctrl-C does."""


@contextmanager
def interrupted_when(fact: Callable[[], object]) -> Iterator[None]:
    """Interrupt this thread once the fact holds."""

    def raise_it(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    def watch() -> None:
        fact()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raise_it)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)


# -- the same question twice ---------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.1", "CP-4.2")
def test_the_same_key_twice_at_once_is_one_question_with_one_answer(agent: Agent, desk: Desk) -> None:
    desk.on("Once?", choose="b")
    key = f"once-{agent}"[:128]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda _: agent("ask", "Once?", OPTIONS, key=key), range(3)))
    assert (answers, desk.count("Once?")) == (["b"] * 3, 1)


@pytest.mark.requirement("CP-4.2")
def test_a_question_that_was_left_standing_is_found_again_by_its_key(
    companion: blocking.Companion, desk: Desk
) -> None:
    with interrupted_when(lambda: desk.seen("Left?")), pytest.raises(Interrupted):
        companion.ask("Left?", OPTIONS, key="left", withdraw=False)
    request_id = desk.seen("Left?")["requestId"]
    assert not is_terminal(companion.get(request_id).state)
    desk.on("Left?", choose="a")
    assert companion.ask("Left?", OPTIONS, key="left") == "a"
    assert desk.count("Left?") == 1


# -- interrupted ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.7")
def test_an_interrupted_question_is_taken_from_the_screen(companion: blocking.Companion, desk: Desk) -> None:
    with interrupted_when(lambda: desk.seen("Interrupted?")), pytest.raises(Interrupted):
        companion.ask("Interrupted?", OPTIONS)
    request_id = desk.seen("Interrupted?")["requestId"]
    assert companion.get(request_id).reason == "cancelled_by_client"
    assert desk.gone(request_id)


def test_interrupted_work_takes_its_bubble_away(companion: blocking.Companion, desk: Desk) -> None:
    with (
        pytest.raises(Interrupted),
        interrupted_when(lambda: desk.seen("Working")),
        companion.progress("Working"),
    ):
        threading.Event().wait(10)
    assert companion.get(desk.seen("Working")["requestId"]).state is State.CANCELLED


def test_threads_may_share_a_companion(companion: blocking.Companion, desk: Desk) -> None:
    titles = [f"Thread {number}" for number in range(5)]
    for number, title in enumerate(titles):
        desk.on(title, choose="ab"[number % 2])
    with ThreadPoolExecutor() as pool, companion.progress("Shared") as progress:
        answers = list(pool.map(lambda title: companion.ask(title, OPTIONS), titles))
        list(pool.map(lambda number: progress.update(fraction=number / 20), range(20)))
    assert answers == ["a", "b", "a", "b", "a"]
    assert progress.ended is None


# -- trio ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.7")
async def test_a_cancelled_question_is_taken_from_the_screen(opened: Opener, desk: Desk) -> None:
    async with opened() as companion:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(companion.ask, "Cancelled?", OPTIONS)
                shown = await trio.to_thread.run_sync(desk.seen, "Cancelled?")
                scope.cancel()
        assert (await companion.get(shown["requestId"])).reason == "cancelled_by_client"


async def test_a_cancelled_question_may_be_left_standing(opened: Opener, desk: Desk) -> None:
    async with opened() as companion:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_leave, companion)
            shown = await trio.to_thread.run_sync(desk.seen, "Standing?")
            nursery.cancel_scope.cancel()
        assert not is_terminal((await companion.get(shown["requestId"])).state)
        await companion.cancel(shown["requestId"])


async def _leave(companion: aio.Companion) -> None:
    await companion.ask("Standing?", OPTIONS, withdraw=False)


async def test_cancelling_the_whole_block_takes_its_questions_and_its_bubbles_away(
    opened: Opener, desk: Desk
) -> None:
    with trio.CancelScope() as scope:
        async with opened() as companion, companion.progress("Block"), trio.open_nursery() as nursery:
            nursery.start_soon(companion.ask, "In the block?", OPTIONS)
            shown = [await trio.to_thread.run_sync(desk.seen, title) for title in ("Block", "In the block?")]
            scope.cancel()
    async with opened() as companion:
        for one in shown:
            assert (await companion.get(one["requestId"])).reason == "cancelled_by_client"


async def test_whenever_a_question_is_cancelled_nothing_of_it_stays_and_the_connection_goes_on(
    opened: Opener, desk: Desk
) -> None:
    async with opened() as companion:
        for number in range(40):
            with trio.move_on_after(number / 4_000):
                await companion.ask(f"Moment {number}", OPTIONS)
        assert (await companion.describe()).authorization.authenticated
        asked = {one["requestId"] for one in desk.screen}
        for request_id in asked:
            assert (await companion.get(request_id)).reason == "cancelled_by_client"


async def test_tasks_may_share_a_companion(opened: Opener, desk: Desk) -> None:
    answers: dict[str, str] = {}
    async with opened() as companion:

        async def ask(title: str, choice: str) -> None:
            desk.on(title, choose=choice)
            answers[title] = await companion.ask(title, OPTIONS)

        async with companion.progress("Shared by tasks") as progress, trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(ask, f"Task {number}", "ab"[number % 2])
            for number in range(20):
                nursery.start_soon(_update, progress, number / 20)
    assert answers == {f"Task {number}": "ab"[number % 2] for number in range(8)}
    assert progress.ended is None


async def _update(progress: aio.Progress, fraction: float) -> None:
    await progress.update(fraction=fraction)


async def test_what_ends_the_block_is_raised_as_it_is_and_not_in_a_group(opened: Opener, desk: Desk) -> None:
    with pytest.raises(KeyError):
        async with opened() as companion, companion.progress("Raises"):
            raise KeyError
    with pytest.raises(Cancelled):
        async with opened() as companion:
            await companion.outcome(desk.seen("Raises")["requestId"])
