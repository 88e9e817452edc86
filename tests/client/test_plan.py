"""Plans, in virtual time and without a socket: which errors a call is repeated after, and for how long (CP-4.2)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pytest

from broker.client.calls import Calls
from broker.client.errors import CallFailed, ClientError, ConnectionLost, NotConnected, TimedOut
from broker.client.plan import Call, Pause, Plan, Result, T
from protocols.companion.discovery import ListStyles, StyleItem, StyleList
from protocols.companion.messages import CreateRequest, Snapshot, WaitRequest, WaitResult
from protocols.structure import structure
from tests.client.scripted_server import snapshot

GONE = ConnectionLost("gone")
NOBODY = NotConnected("nobody there")
PATIENCE = 5.0


@attrs.define
class Play:
    """Runs plans: each call takes `seconds` and has the next of these outcomes; a pause lets its time pass."""

    seconds: float = 0.0
    now: float = 100.0
    called: list[Call[object]] = attrs.field(factory=list)
    paused: list[float] = attrs.field(factory=list)

    @property
    def calls(self) -> Calls:
        return Calls(lambda: self.now, PATIENCE)

    def run(self, plan: Plan[T], outcomes: Iterable[object]) -> T:
        coming = iter(outcomes)
        try:
            step = next(plan)
            while True:
                if isinstance(step, Pause):
                    self.paused.append(step.seconds)
                    self.now += step.seconds
                    step = plan.send(None)
                    continue
                self.called.append(step)
                self.now += self.seconds
                outcome = next(coming)
                step = (
                    plan.throw(outcome)
                    if isinstance(outcome, ClientError)
                    else plan.send(Result(outcome, None))
                )
        except StopIteration as end:
            result: T = end.value
            return result


def seen(**members: object) -> Snapshot:
    return structure(Snapshot, snapshot(**members))


def refused(code: str, **details: object) -> CallFailed:
    return CallFailed(code, "no", True, details)  # type: ignore[arg-type]


@pytest.mark.requirement("CP-4.2")
@pytest.mark.parametrize(
    "errors",
    [
        [GONE],
        [GONE, NOBODY, NOBODY],
        [refused("RUNTIME_UNAVAILABLE", reason="stopping"), GONE, NOBODY],
        [refused("RUNTIME_UNAVAILABLE", reason="not_saved")],
        [refused("RATE_LIMITED", retryAfterMs=20)],
    ],
)
def test_a_call_whose_outcome_is_not_known_is_repeated_as_it_was(errors: list[ClientError]) -> None:
    play = Play()
    request = CreateRequest(capability="c", params={}, timeout_ms=1)
    assert play.run(play.calls.create(request), [*errors, seen()]).value == seen()
    assert len(play.called) == len(errors) + 1
    assert [call.params for call in play.called] == [play.called[0].params] * (len(errors) + 1)


@pytest.mark.parametrize(
    "error",
    [
        NOBODY,
        TimedOut("silent"),
        refused("NOT_FOUND"),
        refused("QUEUE_FULL"),
        refused("RUNTIME_UNAVAILABLE", reason="hidden"),
        refused("RATE_LIMITED", reason="waits"),
        refused("RATE_LIMITED", retryAfterMs=60_000),
    ],
)
def test_a_refusal_a_silence_and_an_absence_are_told_at_once(error: ClientError) -> None:
    play = Play()
    with pytest.raises(type(error)) as caught:
        play.run(play.calls.get("q1"), [error])
    assert (caught.value, play.paused) == (error, [])


def test_the_pauses_grow_and_end_with_the_patience() -> None:
    play = Play()
    with pytest.raises(NotConnected):
        play.run(play.calls.get("q1"), [GONE, *[NOBODY] * 100])
    assert play.paused[:5] == [0.05, 0.1, 0.2, 0.4, 0.5]
    assert sum(play.paused) == pytest.approx(PATIENCE)


def test_a_busy_broker_is_given_the_time_that_it_asks_for() -> None:
    play = Play()
    play.run(play.calls.get("q1"), [refused("RATE_LIMITED", retryAfterMs=700), seen()])
    assert play.paused == [0.7]


@pytest.mark.requirement("CP-3.9")
def test_each_loss_after_a_long_wait_is_met_with_new_patience() -> None:
    play = Play(seconds=30.0)
    news = WaitResult(changed=True, request=seen(revision=2))
    result = play.run(play.calls.wait("q1", 1, None), [*[GONE] * 10, news])
    assert result.value == news


def test_a_broker_that_takes_connections_and_drops_them_is_given_up() -> None:
    play = Play(seconds=0.1)
    with pytest.raises(ConnectionLost):
        play.run(play.calls.get("q1"), [GONE] * 100)


@pytest.mark.requirement("CP-3.9")
def test_the_brokers_longest_wait_is_asked_for_once_and_remembered() -> None:
    play = Play(seconds=1.0)
    calls = play.calls
    unchanged = WaitResult(changed=False, request=seen())
    limit = refused("INVALID_PARAMS", field="waitMs", limit=100)
    play.run(calls.wait("q1", 1, 3.0), [limit, unchanged, unchanged])
    play.run(calls.wait("q1", 1, 1.0), [unchanged])
    assert [waited(call) for call in play.called] == [3_000, 100, 100, 100]


def waited(call: Call[object]) -> int:
    assert isinstance(call.params, WaitRequest)
    return call.params.wait_ms


def test_the_end_is_waited_for_through_every_change() -> None:
    play = Play()
    states = [seen(state=state, revision=number) for number, state in enumerate(STATES, 2)]
    results = [WaitResult(changed=True, request=state) for state in states]
    assert play.run(play.calls.end_of(seen()), results) == states[-1]
    assert [call.method for call in play.called] == ["requests.wait"] * 3


STATES = ("running", "awaiting_user", "expired")


def test_a_request_that_has_ended_is_not_waited_for() -> None:
    play = Play()
    ended = seen(state="expired")
    assert play.run(play.calls.end_of(ended), []) == ended


def test_a_wait_whose_time_is_over_gives_the_request_as_it_stands() -> None:
    play = Play(seconds=1.0)
    unchanged = WaitResult(changed=False, request=seen())
    assert play.run(play.calls.end_of(seen(), 1.0), [unchanged]) == seen()


def page(*ids: str, cursor: str | None = None) -> StyleList:
    items = tuple(StyleItem(id=id, name=id, capabilities=()) for id in ids)
    return StyleList(styles=items, catalog_revision="r", next_cursor=cursor)


def cursors(play: Play) -> list[str | None]:
    return [call.params.cursor for call in play.called if isinstance(call.params, ListStyles)]


@pytest.mark.requirement("CP-2.5", "CP-2.7")
def test_a_list_is_read_to_its_last_page() -> None:
    play = Play()
    pages = [page("a", "b", cursor="1"), page("c", cursor="2"), page("d")]
    assert play.run(play.calls.styles(), pages) == page("a", "b", "c", "d")
    assert cursors(play) == [None, "1", "2"]


def test_a_list_whose_catalog_changes_on_the_way_is_read_from_the_start() -> None:
    play = Play()
    stale = refused("INVALID_PARAMS", field="cursor")
    pages = [page("a", cursor="1"), stale, page("b", cursor="2"), page("c")]
    assert play.run(play.calls.styles(), pages) == page("b", "c")
    assert cursors(play) == [None, "1", None, "2"]


def test_a_list_that_is_refused_is_refused() -> None:
    play = Play()
    with pytest.raises(CallFailed):
        play.run(play.calls.styles(), [page("a", cursor="1"), refused("FORBIDDEN")])
