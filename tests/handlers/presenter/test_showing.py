"""What is put on the screen, what the presenter reports of it, and what its silence leads to."""

from __future__ import annotations

import pytest

from handlers.companion.rows import REQUESTS
from handlers.policy import Limits, Policy
from handlers.presenter import showing
from handlers.presenter.rows import LINK, SHOWINGS
from handlers.rule import Draft
from protocols.companion.pairing import PairingRequest, PairingWait
from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.presenter.messages import (
    COMMITTED,
    Attention,
    ConfirmPairing,
    Deferred,
    Dismiss,
    Finished,
    Present,
    Presented,
    Settings,
    Source,
    Update,
    rejected,
)
from tests.support.companion_world import Session, World
from tests.support.presenter_end import Presenter

REPORT_MS = showing.REPORT_MS
LOST_MS = showing.LOST_MS
ARMING = Policy().arming_ms
PLACES = Limits().max_displayed


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def screen(world: World) -> Presenter:
    return world.new_presenter()


@pytest.fixture
def agent(world: World, screen: Presenter) -> Session:
    return world.session(label="My\u202eAgent", program="/usr/bin/agent")


# -- the picture -------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.4", "G08")
def test_the_source_is_the_pairing_record_and_the_kernels_word(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = screen.picture(agent.choose("Delete\u202e?").request_id)
    assert shown.source == Source(
        label="My<U+202E>Agent", program="/usr/bin/agent", pid=world.pid_of(agent.connection)
    )
    assert shown.title == "Delete<U+202E>?"
    assert [(option.id, option.label) for option in shown.options or ()] == [
        ("allow", "Allow"),
        ("deny", "Deny"),
    ]


@pytest.mark.requirement("CP-4.4", "G08")
def test_of_two_programs_with_one_key_the_one_that_asks_is_shown(
    world: World, screen: Presenter, agent: Session
) -> None:
    other = world.session(program="/usr/bin/other")
    asked = [session.choose().request_id for session in (agent, other)]
    first, second = (screen.picture(id).source for id in asked)
    assert (first.program, first.pid) == ("/usr/bin/agent", world.pid_of(agent.connection))
    assert (second.program, second.pid) == ("/usr/bin/other", world.pid_of(other.connection))


def test_the_program_is_shown_though_it_has_gone_meanwhile(
    world: World, agent: Session, screen: Presenter
) -> None:
    first, *_ = (agent.choose().request_id for _ in range(PLACES))
    other = world.session(program="/usr/bin/other")
    queued = other.choose().request_id
    other.close()
    agent.cancel(first)
    assert screen.picture(queued).source.program == "/usr/bin/other"


@pytest.mark.requirement("CP-3.8")
def test_the_deadline_and_the_waiting_are_told(world: World, screen: Presenter, agent: Session) -> None:
    first, *_ = (agent.choose(timeout_ms=30_000).request_id for _ in range(PLACES))
    waiting = agent.choose(timeout_ms=30_000).request_id
    world.advance(1_000)
    agent.cancel(first)
    shown = screen.picture(waiting)
    assert (shown.remaining_ms, shown.queued) == (29_000, 0)


@pytest.mark.requirement("CP-3.2", "CP-3.4")
def test_handed_over_is_running_and_presented_is_awaiting_the_user(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.choose().request_id
    assert (world.request(id).state, world.request(id).displayed_at) == (State.RUNNING, None)
    world.advance(100)
    shown = screen.presented(id)
    request = world.request(id)
    assert (request.state, request.displayed_at) == (State.AWAITING_USER, world.clocks.now().wall)
    assert request.revision == shown.revision + 1, "the picture keeps its own revision"


@pytest.mark.requirement("CP-3.6")
def test_another_digest_is_not_what_was_to_be_shown(world: World, screen: Presenter, agent: Session) -> None:
    shown = screen.picture(agent.choose().request_id)
    report = Presented(request_id=shown.request_id, revision=shown.revision, digest="0" * 64)
    screen.call(report)
    assert world.request(shown.request_id).state is State.RUNNING
    world.advance(ARMING)
    assert screen.answer_to(shown, {"selectedId": "allow"}) == rejected("not_presented")


@pytest.mark.requirement("CP-3.8", "CP-3.6")
def test_a_notices_display_time_runs_from_the_real_display(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.notice({"text": "Done.", "displayMs": 5_000}).request_id
    world.advance(1_000)
    assert screen.presented(id).display_ms == 5_000
    world.advance(4_999)
    assert world.request(id).state is State.RUNNING
    world.advance(1)
    assert (world.request(id).state, world.request(id).reason) == (State.COMPLETED, "presented")
    assert [gone.request_id for gone in screen.dismissals()] == [id]


@pytest.mark.requirement("CP-3.8")
def test_attention_holds_display_time_but_never_the_deadline(
    world: World, screen: Presenter, agent: Session
) -> None:
    notice: JSONObject = {"text": "Done.", "displayMs": 5_000}
    id = agent.notice(notice, timeout_ms=60_000).request_id
    screen.presented(id)
    world.advance(4_000)
    screen.call(Attention(request_id=id, held=True))
    world.advance(20_000)
    assert world.request(id).state is State.RUNNING
    screen.call(Attention(request_id=id, held=False))
    world.advance(999)
    assert world.request(id).state is State.RUNNING
    screen.call(Attention(request_id=id, held=True))
    world.advance(60_000)
    assert world.request(id).state is State.EXPIRED


@pytest.mark.requirement("CP-3.8")
def test_a_presenter_that_dies_lets_go_of_what_it_held(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.notice({"text": "Done.", "displayMs": 5_000}).request_id
    screen.presented(id)
    world.advance(4_000)
    screen.call(Attention(request_id=id, held=True))
    screen.gone()
    world.new_presenter().presented(id)
    world.advance(999)
    assert world.request(id).state is State.RUNNING
    world.advance(1)
    assert world.request(id).state is State.COMPLETED


def test_finished_means_nothing_for_what_is_no_animation(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.choose().request_id
    screen.presented(id)
    screen.call(Finished(request_id=id))
    assert world.request(id).state is State.AWAITING_USER


# -- an update ---------------------------------------------------------------------------------------------


def change_picture(world: World, id: str) -> None:
    """A new picture of a request, as requests.update makes one."""
    draft = Draft(world.ledger.rows, world.ledger._environment)  # type: ignore[arg-type]
    request = draft.get(REQUESTS, id)
    assert request is not None
    showing.update(draft, draft.put(REQUESTS, request), world.clocks.now())
    decision = draft.decision()
    for change in decision.changes:
        world.ledger.rows.set(change.table, change.key, change.after)
    world.ledger._ready += decision.effects
    world.settle()


def test_an_update_has_its_own_revision_and_must_be_presented_again(
    world: World, screen: Presenter, agent: Session
) -> None:
    first = screen.presented(agent.notice({"text": "a"}).request_id)
    change_picture(world, first.request_id)
    second = screen.news()[-1]
    assert isinstance(second, Update)
    assert second.revision > first.revision
    world.advance(ARMING)
    assert screen.dismiss(second) == rejected("stale")
    screen.presented(first.request_id)
    assert screen.dismiss(first) == rejected("stale")
    world.advance(ARMING)
    assert screen.dismiss(second) == COMMITTED


def test_an_update_that_is_not_reported_is_presented_once_more(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.notice({"text": "a", "displayMs": 60_000}).request_id
    screen.presented(id)
    change_picture(world, id)
    update = screen.news()[-1]
    world.advance(REPORT_MS)
    [again] = screen.news()
    assert (type(again), again.revision) == (Present, update.revision)
    world.advance(REPORT_MS)
    assert world.request(id).reason == "render_failed"


def test_a_presenter_that_lags_behind_updates_is_alive(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.notice({"text": "a", "displayMs": 60_000}).request_id
    shown = screen.presented(id)
    for _ in range(10):
        change_picture(world, id)
        late = Presented(request_id=id, revision=shown.revision, digest=shown.digest)
        world.advance(REPORT_MS - 1)
        screen.call(late)
        shown = screen.picture(id)
    assert world.request(id).state is State.RUNNING


# -- silence -----------------------------------------------------------------------------------------------


def test_what_is_not_reported_is_presented_once_more_then_failed(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.choose().request_id
    first = screen.news()[-1]
    world.advance(REPORT_MS - 1)
    assert screen.news() == []
    world.advance(1)
    [again] = screen.news()
    assert isinstance(again, Present)
    assert (again.revision, again.digest) == (first.revision, first.digest)
    world.advance(REPORT_MS)
    assert (world.request(id).state, world.request(id).reason) == (State.FAILED, "render_failed")
    assert screen.news() == [Dismiss(request_id=id, reason="render_failed")]
    assert world.rows(SHOWINGS) == []


def test_a_report_after_the_second_present_counts(world: World, screen: Presenter, agent: Session) -> None:
    id = agent.choose().request_id
    world.advance(REPORT_MS + 1)
    screen.presented(id)
    world.advance(REPORT_MS)
    assert world.request(id).state is State.AWAITING_USER


def test_deferred_stops_the_watchdog_and_the_request_stays_running(
    world: World, screen: Presenter, agent: Session
) -> None:
    shown = screen.picture(agent.choose(timeout_ms=30_000).request_id)
    deferred = Deferred(request_id=shown.request_id, revision=shown.revision, why="locked")
    screen.call(deferred)
    world.advance(10_000)
    assert world.request(shown.request_id).state is State.RUNNING
    screen.presented(shown.request_id)
    assert world.request(shown.request_id).state is State.AWAITING_USER
    world.advance(20_000)
    assert world.request(shown.request_id).state is State.EXPIRED


def test_a_pairing_that_is_not_shown_expires(world: World, screen: Presenter) -> None:
    asker = world.open()
    pairing = world.call(asker, PairingRequest(client_name="Agent", scopes=("discover",)))
    world.advance(2 * REPORT_MS)
    assert [type(one) for one in screen.news()] == [Settings, ConfirmPairing, ConfirmPairing, Dismiss]
    outcome = world.call(asker, PairingWait(pairing_id=pairing.pairing_id, wait_ms=0))
    assert outcome.status == "expired"


# -- the presenter comes and goes --------------------------------------------------------------------------


def test_a_presenter_is_told_the_settings_first_and_whenever_they_change(
    world: World, screen: Presenter
) -> None:
    before = screen.news()
    assert [type(one) for one in before] == [Settings]
    screen.user("hide")
    [hidden] = screen.news()
    assert isinstance(hidden, Settings)
    assert (before[0].visible, hidden.visible) == (True, False)


def test_a_new_presenter_is_shown_everything_that_runs_in_order(
    world: World, screen: Presenter, agent: Session
) -> None:
    first, second = (agent.choose().request_id for _ in range(2))
    screen.presented(first)
    pairing = world.call(world.open(), PairingRequest(client_name="Other", scopes=("discover",)))
    screen.gone()
    assert world.rows(LINK) == []
    world.advance(1_000)
    news = world.new_presenter().news()
    assert [type(one) for one in news] == [Settings, ConfirmPairing, Present, Present]
    assert news[1].pairing_id == pairing.pairing_id
    assert [one.request_id for one in news[2:]] == [first, second]
    assert [one.remaining_ms for one in news[2:]] == [59_000, 59_000]


def test_what_is_presented_again_keeps_its_state_and_is_armed_anew(
    world: World, screen: Presenter, agent: Session
) -> None:
    first = screen.presented(agent.choose().request_id)
    displayed = world.request(first.request_id)
    screen.gone()
    world.advance(1_000)
    newer = world.new_presenter()
    shown = newer.picture(first.request_id)
    assert (shown.revision, shown.digest) == (first.revision, first.digest)
    world.advance(1_000)
    assert newer.answer_to(shown, {"selectedId": "allow"}) == rejected("not_presented")
    newer.presented(first.request_id)
    assert world.request(first.request_id) == displayed
    assert newer.answer_to(shown, {"selectedId": "allow"}) == rejected("not_armed")
    world.advance(ARMING)
    assert newer.answer_to(shown, {"selectedId": "allow"}) == COMMITTED


def test_not_back_within_a_minute_is_presenter_lost(world: World, screen: Presenter, agent: Session) -> None:
    id = agent.choose(timeout_ms=600_000).request_id
    screen.presented(id)
    screen.gone()
    world.advance(LOST_MS - 1)
    assert world.request(id).state is State.AWAITING_USER
    world.advance(1)
    assert (world.request(id).state, world.request(id).reason) == (State.FAILED, "presenter_lost")


def test_back_at_the_last_moment_it_has_its_time_to_report(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.choose(timeout_ms=600_000).request_id
    screen.presented(id)
    screen.gone()
    world.advance(LOST_MS - 1)
    newer = world.new_presenter()
    world.advance(REPORT_MS - 1)
    newer.presented(id)
    world.advance(LOST_MS)
    assert world.request(id).state is State.AWAITING_USER


def test_back_and_silent_is_render_failed(world: World, screen: Presenter, agent: Session) -> None:
    id = agent.choose(timeout_ms=600_000).request_id
    screen.presented(id)
    screen.gone()
    world.advance(LOST_MS - 1)
    world.new_presenter()
    world.advance(2 * REPORT_MS)
    assert (world.request(id).state, world.request(id).reason) == (State.FAILED, "render_failed")


def test_a_presenter_that_comes_and_goes_shows_nothing(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.choose(timeout_ms=600_000).request_id
    screen.presented(id)
    screen.gone()
    for _ in range(LOST_MS // 1_000):
        world.advance(500)
        flapping = world.new_presenter()
        world.advance(500)
        flapping.gone()
    world.advance(1)
    assert (world.request(id).state, world.request(id).reason) == (State.FAILED, "presenter_lost")


def test_back_in_time_is_as_if_nothing_had_been(world: World, screen: Presenter, agent: Session) -> None:
    id = agent.choose(timeout_ms=600_000).request_id
    screen.presented(id)
    screen.gone()
    world.advance(LOST_MS - 1)
    world.new_presenter().presented(id)
    world.advance(LOST_MS)
    assert world.request(id).state is State.AWAITING_USER


def test_the_old_presenters_end_does_not_undo_the_new_one(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.choose().request_id
    newer = world.new_presenter()
    newer.presented(id)
    screen.gone()
    assert [link.connection for link in world.rows(LINK)] == [newer.connection]
    [row] = world.rows(SHOWINGS)
    assert row.connection == newer.connection
    assert row.lost_by is None


@pytest.mark.requirement("CP-4.12")
def test_a_report_that_was_not_saved_is_asked_for_again(
    world: World, screen: Presenter, agent: Session
) -> None:
    id = agent.choose().request_id
    world.saving = False
    screen.presented(id)
    world.saving = True
    assert world.request(id).state is State.RUNNING
    screen.news()
    world.advance(REPORT_MS)
    assert [type(one) for one in screen.news()] == [Present]
