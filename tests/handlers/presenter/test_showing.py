"""What is put on the screen, what the presenter reports of it, and what its silence leads to."""

from __future__ import annotations

import pytest

from handlers.companion.rows import REQUESTS
from handlers.presenter import showing
from handlers.presenter.rows import LINK, SHOWINGS
from handlers.rule import Draft
from protocols.companion.messages import CancelRequest
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
from tests.support.stage import POLICY, Screen, Stage, choice

REPORT_MS = showing.REPORT_MS
LOST_MS = showing.LOST_MS


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def screen(stage: Stage) -> Screen:
    return stage.presenter()


@pytest.fixture
def agent(stage: Stage, screen: Screen) -> int:
    return stage.client("interact", "notify", label="My\u202eAgent")


# -- the picture -------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.4", "G08")
def test_the_source_is_the_pairing_record_and_the_kernels_word(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = screen.shown(stage.ask(agent, choice("Delete\u202e?")).request_id)
    assert shown.source == Source(label="My<U+202E>Agent", program="/usr/bin/agent", pid=1000 + agent)
    assert shown.title == "Delete<U+202E>?"
    assert [(option.id, option.label) for option in shown.options or ()] == [("y", "Allow"), ("n", "Deny")]


@pytest.mark.requirement("CP-4.4", "G08")
def test_of_two_programs_with_one_key_the_one_that_asks_is_shown(
    stage: Stage, screen: Screen, agent: int
) -> None:
    other = stage.another_session(agent, "/usr/bin/other")
    asked = [stage.ask(connection, choice()).request_id for connection in (agent, other)]
    first, second = (screen.shown(id).source for id in asked)
    assert (first.program, first.pid) == ("/usr/bin/agent", 1000 + agent)
    assert (second.program, second.pid) == ("/usr/bin/other", 1000 + other)


def test_the_program_is_shown_though_it_has_gone_meanwhile(stage: Stage, agent: int, screen: Screen) -> None:
    first, *_ = (stage.ask(agent, choice()).request_id for _ in range(POLICY.limits.max_displayed))
    other = stage.another_session(agent, "/usr/bin/other")
    queued = stage.ask(other, choice()).request_id
    stage.close(other)
    stage.call(agent, CancelRequest(request_id=first))
    assert screen.shown(queued).source.program == "/usr/bin/other"


@pytest.mark.requirement("CP-3.8")
def test_the_deadline_and_the_waiting_are_told(stage: Stage, screen: Screen, agent: int) -> None:
    places = POLICY.limits.max_displayed
    first, *_ = (stage.ask(agent, choice(), timeout_ms=30_000).request_id for _ in range(places))
    waiting = stage.ask(agent, choice(), timeout_ms=30_000).request_id
    stage.wait(1_000)
    stage.call(agent, CancelRequest(request_id=first))
    shown = screen.shown(waiting)
    assert (shown.remaining_ms, shown.queued) == (29_000, 0)


@pytest.mark.requirement("CP-3.2", "CP-3.4")
def test_handed_over_is_running_and_presented_is_awaiting_the_user(
    stage: Stage, screen: Screen, agent: int
) -> None:
    id = stage.ask(agent, choice()).request_id
    assert (stage.request(id).state, stage.request(id).displayed_at) == (State.RUNNING, None)
    stage.wait(100)
    shown = screen.present(id)
    request = stage.request(id)
    assert (request.state, request.displayed_at) == (State.AWAITING_USER, stage.now.wall)
    assert request.revision == shown.revision + 1, "the picture keeps its own revision"


@pytest.mark.requirement("CP-3.6")
def test_another_digest_is_not_what_was_to_be_shown(stage: Stage, screen: Screen, agent: int) -> None:
    shown = screen.shown(stage.ask(agent, choice()).request_id)
    report = Presented(request_id=shown.request_id, revision=shown.revision, digest="0" * 64)
    stage.call(screen.connection, report)
    assert stage.request(shown.request_id).state is State.RUNNING
    stage.wait(POLICY.arming_ms)
    assert screen.answer(shown, {"selectedId": "y"}) == rejected("not_presented")


@pytest.mark.requirement("CP-3.8", "CP-3.6")
def test_a_notices_display_time_runs_from_the_real_display(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, {"text": "Done.", "displayMs": 5_000}, "notice.show").request_id
    stage.wait(1_000)
    assert screen.present(id).display_ms == 5_000
    stage.wait(4_999)
    assert stage.request(id).state is State.RUNNING
    stage.wait(1)
    assert (stage.request(id).state, stage.request(id).reason) == (State.COMPLETED, "presented")
    assert [gone.request_id for gone in screen.dismissals()] == [id]


@pytest.mark.requirement("CP-3.8")
def test_attention_holds_display_time_but_never_the_deadline(
    stage: Stage, screen: Screen, agent: int
) -> None:
    notice: JSONObject = {"text": "Done.", "displayMs": 5_000}
    id = stage.ask(agent, notice, "notice.show", timeout_ms=60_000).request_id
    screen.present(id)
    stage.wait(4_000)
    stage.call(screen.connection, Attention(request_id=id, held=True))
    stage.wait(20_000)
    assert stage.request(id).state is State.RUNNING
    stage.call(screen.connection, Attention(request_id=id, held=False))
    stage.wait(999)
    assert stage.request(id).state is State.RUNNING
    stage.call(screen.connection, Attention(request_id=id, held=True))
    stage.wait(60_000)
    assert stage.request(id).state is State.EXPIRED


@pytest.mark.requirement("CP-3.8")
def test_a_presenter_that_dies_lets_go_of_what_it_held(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, {"text": "Done.", "displayMs": 5_000}, "notice.show").request_id
    screen.present(id)
    stage.wait(4_000)
    stage.call(screen.connection, Attention(request_id=id, held=True))
    stage.close(screen.connection)
    stage.presenter().present(id)
    stage.wait(999)
    assert stage.request(id).state is State.RUNNING
    stage.wait(1)
    assert stage.request(id).state is State.COMPLETED


def test_finished_means_nothing_for_what_is_no_animation(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice()).request_id
    screen.present(id)
    stage.call(screen.connection, Finished(request_id=id))
    assert stage.request(id).state is State.AWAITING_USER


# -- an update ---------------------------------------------------------------------------------------------


def change_picture(stage: Stage, id: str) -> None:
    """A new picture of a request, as requests.update makes one."""
    draft = Draft(stage.ledger.rows, stage.ledger._environment)  # type: ignore[arg-type]
    request = draft.get(REQUESTS, id)
    assert request is not None
    showing.update(draft, draft.put(REQUESTS, request), stage.now)
    decision = draft.decision()
    for change in decision.changes:
        stage.ledger.rows.set(change.table, change.key, change.after)
    stage.ledger._ready += decision.effects
    stage._settle()


def test_an_update_has_its_own_revision_and_must_be_presented_again(
    stage: Stage, screen: Screen, agent: int
) -> None:
    first = screen.present(stage.ask(agent, {"text": "a"}, "notice.show").request_id)
    change_picture(stage, first.request_id)
    second = screen.news()[-1]
    assert isinstance(second, Update)
    assert second.revision > first.revision
    stage.wait(POLICY.arming_ms)
    assert screen.dismiss(second) == rejected("stale")
    screen.present(first.request_id)
    assert screen.dismiss(first) == rejected("stale")
    stage.wait(POLICY.arming_ms)
    assert screen.dismiss(second) == COMMITTED


def test_an_update_that_is_not_reported_is_presented_once_more(
    stage: Stage, screen: Screen, agent: int
) -> None:
    id = stage.ask(agent, {"text": "a", "displayMs": 60_000}, "notice.show").request_id
    screen.present(id)
    change_picture(stage, id)
    update = screen.news()[-1]
    stage.wait(REPORT_MS)
    [again] = screen.news()
    assert (type(again), again.revision) == (Present, update.revision)
    stage.wait(REPORT_MS)
    assert stage.request(id).reason == "render_failed"


def test_a_presenter_that_lags_behind_updates_is_alive(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, {"text": "a", "displayMs": 60_000}, "notice.show").request_id
    shown = screen.present(id)
    for _ in range(10):
        change_picture(stage, id)
        late = Presented(request_id=id, revision=shown.revision, digest=shown.digest)
        stage.wait(REPORT_MS - 1)
        stage.call(screen.connection, late)
        shown = screen.shown(id)
    assert stage.request(id).state is State.RUNNING


# -- silence -----------------------------------------------------------------------------------------------


def test_what_is_not_reported_is_presented_once_more_then_failed(
    stage: Stage, screen: Screen, agent: int
) -> None:
    id = stage.ask(agent, choice()).request_id
    first = screen.news()[-1]
    stage.wait(REPORT_MS - 1)
    assert screen.news() == []
    stage.wait(1)
    [again] = screen.news()
    assert isinstance(again, Present)
    assert (again.revision, again.digest) == (first.revision, first.digest)
    stage.wait(REPORT_MS)
    assert (stage.request(id).state, stage.request(id).reason) == (State.FAILED, "render_failed")
    assert screen.news() == [Dismiss(request_id=id, reason="render_failed")]
    assert stage.rows(SHOWINGS) == []


def test_a_report_after_the_second_present_counts(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice()).request_id
    stage.wait(REPORT_MS + 1)
    screen.present(id)
    stage.wait(REPORT_MS)
    assert stage.request(id).state is State.AWAITING_USER


def test_deferred_stops_the_watchdog_and_the_request_stays_running(
    stage: Stage, screen: Screen, agent: int
) -> None:
    shown = screen.shown(stage.ask(agent, choice(), timeout_ms=30_000).request_id)
    deferred = Deferred(request_id=shown.request_id, revision=shown.revision, why="locked")
    stage.call(screen.connection, deferred)
    stage.wait(10_000)
    assert stage.request(shown.request_id).state is State.RUNNING
    screen.present(shown.request_id)
    assert stage.request(shown.request_id).state is State.AWAITING_USER
    stage.wait(20_000)
    assert stage.request(shown.request_id).state is State.EXPIRED


def test_a_pairing_that_is_not_shown_expires(stage: Stage, screen: Screen) -> None:
    asker = stage.open()
    pairing = stage.call(asker, PairingRequest(client_name="Agent", scopes=("discover",)))
    stage.wait(2 * REPORT_MS)
    assert [type(one) for one in screen.news()] == [Settings, ConfirmPairing, ConfirmPairing, Dismiss]
    outcome = stage.call(asker, PairingWait(pairing_id=pairing.pairing_id, wait_ms=0))
    assert outcome.status == "expired"


# -- the presenter comes and goes --------------------------------------------------------------------------


def test_a_presenter_is_told_the_settings_first_and_whenever_they_change(
    stage: Stage, screen: Screen
) -> None:
    before = screen.news()
    assert [type(one) for one in before] == [Settings]
    screen.user("hide")
    [hidden] = screen.news()
    assert isinstance(hidden, Settings)
    assert (before[0].visible, hidden.visible) == (True, False)


def test_a_new_presenter_is_shown_everything_that_runs_in_order(
    stage: Stage, screen: Screen, agent: int
) -> None:
    first, second = (stage.ask(agent, choice()).request_id for _ in range(2))
    screen.present(first)
    pairing = stage.call(stage.open(), PairingRequest(client_name="Other", scopes=("discover",)))
    stage.close(screen.connection)
    assert stage.rows(LINK) == []
    stage.wait(1_000)
    news = stage.presenter().news()
    assert [type(one) for one in news] == [Settings, ConfirmPairing, Present, Present]
    assert news[1].pairing_id == pairing.pairing_id
    assert [one.request_id for one in news[2:]] == [first, second]
    assert [one.remaining_ms for one in news[2:]] == [59_000, 59_000]


def test_what_is_presented_again_keeps_its_state_and_is_armed_anew(
    stage: Stage, screen: Screen, agent: int
) -> None:
    first = screen.present(stage.ask(agent, choice()).request_id)
    displayed = stage.request(first.request_id)
    stage.close(screen.connection)
    stage.wait(1_000)
    newer = stage.presenter()
    shown = newer.shown(first.request_id)
    assert (shown.revision, shown.digest) == (first.revision, first.digest)
    stage.wait(1_000)
    assert newer.answer(shown, {"selectedId": "y"}) == rejected("not_presented")
    newer.present(first.request_id)
    assert stage.request(first.request_id) == displayed
    assert newer.answer(shown, {"selectedId": "y"}) == rejected("not_armed")
    stage.wait(POLICY.arming_ms)
    assert newer.answer(shown, {"selectedId": "y"}) == COMMITTED


def test_not_back_within_a_minute_is_presenter_lost(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice(), timeout_ms=600_000).request_id
    screen.present(id)
    stage.close(screen.connection)
    stage.wait(LOST_MS - 1)
    assert stage.request(id).state is State.AWAITING_USER
    stage.wait(1)
    assert (stage.request(id).state, stage.request(id).reason) == (State.FAILED, "presenter_lost")


def test_back_at_the_last_moment_it_has_its_time_to_report(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice(), timeout_ms=600_000).request_id
    screen.present(id)
    stage.close(screen.connection)
    stage.wait(LOST_MS - 1)
    newer = stage.presenter()
    stage.wait(REPORT_MS - 1)
    newer.present(id)
    stage.wait(LOST_MS)
    assert stage.request(id).state is State.AWAITING_USER


def test_back_and_silent_is_render_failed(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice(), timeout_ms=600_000).request_id
    screen.present(id)
    stage.close(screen.connection)
    stage.wait(LOST_MS - 1)
    stage.presenter()
    stage.wait(2 * REPORT_MS)
    assert (stage.request(id).state, stage.request(id).reason) == (State.FAILED, "render_failed")


def test_a_presenter_that_comes_and_goes_shows_nothing(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice(), timeout_ms=600_000).request_id
    screen.present(id)
    stage.close(screen.connection)
    for _ in range(LOST_MS // 1_000):
        stage.wait(500)
        flapping = stage.presenter()
        stage.wait(500)
        stage.close(flapping.connection)
    stage.wait(1)
    assert (stage.request(id).state, stage.request(id).reason) == (State.FAILED, "presenter_lost")


def test_back_in_time_is_as_if_nothing_had_been(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice(), timeout_ms=600_000).request_id
    screen.present(id)
    stage.close(screen.connection)
    stage.wait(LOST_MS - 1)
    stage.presenter().present(id)
    stage.wait(LOST_MS)
    assert stage.request(id).state is State.AWAITING_USER


def test_the_old_presenters_end_does_not_undo_the_new_one(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice()).request_id
    newer = stage.presenter()
    newer.present(id)
    stage.close(screen.connection)
    assert [link.connection for link in stage.rows(LINK)] == [newer.connection]
    [row] = stage.rows(SHOWINGS)
    assert row.connection == newer.connection
    assert row.lost_by is None


@pytest.mark.requirement("CP-4.12")
def test_a_report_that_was_not_saved_is_asked_for_again(stage: Stage, screen: Screen, agent: int) -> None:
    id = stage.ask(agent, choice()).request_id
    stage.saving = False
    screen.present(id)
    stage.saving = True
    assert stage.request(id).state is State.RUNNING
    screen.news()
    stage.wait(REPORT_MS)
    assert [type(one) for one in screen.news()] == [Present]
