"""requests.update: revisions, what may change, and what is on the screen meanwhile (CP-3.11)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from protocols.companion.messages import Snapshot, UpdateRequest
from protocols.companion.states import State
from protocols.presenter.messages import Deferred
from protocols.refusal import Refused
from protocols.structure import unstructure
from tests.support.companion_world import Session, World, refusal


def shown(world: World, session: Session, **params: Any) -> Snapshot:
    """A progress that is on the screen."""
    made = session.progress(params)
    world.presenter.presented(made.request_id)
    snapshot = session.get(made.request_id)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def conflict(body: object) -> Any:
    """The snapshot that a conflict carries."""
    assert refusal(body)[0] == "REVISION_CONFLICT"
    assert isinstance(body, Refused)
    return body.details["request"]


# -- what changes ------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.11", "CP-2.1")
def test_an_update_keeps_the_request_and_its_bubble_and_shows_the_new_values(
    world: World, session: Session
) -> None:
    before = shown(world, session, fraction=0.25, detail="a")
    after = session.update(before.request_id, before.revision, fraction=0.5, tone="success")
    assert (after.request_id, after.revision) == (before.request_id, before.revision + 1)
    assert (after.state, after.deadline_at) == (State.RUNNING, before.deadline_at)
    [update] = world.presenter.updates()
    assert (update.request_id, update.revision) == (after.request_id, after.revision)
    assert (update.fraction, update.detail, update.title) == (0.5, "a", "Copying")
    assert update.tone is not None
    assert update.tone.value == "success"
    assert world.presenter.shown() == [before.request_id], "no second bubble"


@pytest.mark.requirement("CP-3.11")
def test_what_is_named_replaces_and_null_means_unknown_again(world: World, session: Session) -> None:
    before = shown(world, session, fraction=0.25)
    after = session.update(before.request_id, before.revision, fraction=None, detail="x")
    assert [(one.fraction, one.detail) for one in world.presenter.updates()] == [(None, "x")]
    session.update(before.request_id, after.revision, detail="")
    assert (world.presenter.updates()[-1].fraction, world.presenter.updates()[-1].detail) == (None, "")


@pytest.mark.requirement("CP-3.11")
@pytest.mark.parametrize("changes", [{"fraction": 0.5}, {"tone": "information"}, {"finished": False}])
def test_an_update_that_changes_nothing_is_the_same_snapshot(
    world: World, session: Session, changes: dict[str, Any]
) -> None:
    before = shown(world, session, fraction=0.5)
    assert session.update(before.request_id, before.revision, **changes) == before
    assert world.presenter.updates() == []


@pytest.mark.requirement("CP-3.4")
def test_finished_completes_a_progress_with_no_result(world: World, session: Session) -> None:
    before = shown(world, session)
    ended = session.update(before.request_id, before.revision, finished=True, fraction=1)
    assert (ended.state, ended.reason, ended.result) == (State.COMPLETED, "finished", None)
    assert world.presenter.dismissed() == {before.request_id: "finished"}
    assert world.presenter.updates() == []


def test_what_has_no_place_yet_is_changed_and_shown_as_it_is_then(world: World, session: Session) -> None:
    holders = [session.choose() for _ in range(3)]
    queued = session.progress({"fraction": 0.1})
    changed = session.update(queued.request_id, queued.revision, fraction=0.2)
    assert (changed.state, changed.revision) == (State.QUEUED, queued.revision + 1)
    assert world.presenter.updates() == []
    session.cancel(holders[0].request_id)
    assert world.presenter.picture(queued.request_id).fraction == 0.2


@pytest.mark.requirement("CP-3.4", "CP-3.6")
def test_a_progress_that_nobody_has_seen_can_be_finished(world: World, session: Session) -> None:
    for _ in range(3):
        session.choose()
    queued = session.progress()
    ended = session.update(queued.request_id, queued.revision, finished=True)
    assert (ended.state, ended.reason, ended.displayed_at) == (State.COMPLETED, "finished", None)
    assert ended.revision == queued.revision + 1
    assert queued.request_id not in world.presenter.shown()
    assert world.presenter.dismissed() == {}


@pytest.mark.requirement("CP-3.8")
def test_updates_never_stretch_the_deadline(world: World, session: Session) -> None:
    before = session.progress(timeout_ms=10_000)
    world.presenter.presented(before.request_id)
    revision = session.get(before.request_id).revision
    for percent in range(1, 10):
        world.advance(1_000)
        revision = session.update(before.request_id, revision, fraction=percent / 100).revision
        world.presenter.presented(before.request_id)
    world.advance(1_000)
    assert session.get(before.request_id).reason == "deadline"


@pytest.mark.requirement("CP-3.9")
def test_who_waits_is_told_of_an_update(world: World, session: Session) -> None:
    before = shown(world, session)
    wait = session.wait(before.request_id, before.revision)
    after = session.update(before.request_id, before.revision, fraction=0.5)
    assert world.reply(wait).request == after


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.11", "CP-6.7")
@pytest.mark.parametrize("off_by", [-1, 1])
def test_another_revision_than_the_present_one_is_a_conflict_that_tells_the_present(
    world: World, session: Session, off_by: int
) -> None:
    before = shown(world, session)
    refused = session.update(before.request_id, before.revision + off_by, fraction=0.5)
    assert conflict(refused) == unstructure(before)
    assert session.get(before.request_id) == before
    assert world.presenter.updates() == []


@pytest.mark.requirement("CP-3.10", "CP-3.11", "CP-2.1")
def test_what_has_ended_is_a_conflict_whatever_the_revision_and_the_params(session: Session) -> None:
    ended = session.cancel(session.progress().request_id)
    for revision in (ended.revision, 1, 77):
        assert conflict(session.update(ended.request_id, revision, finished=True)) == unstructure(ended)
        assert conflict(session.update(ended.request_id, revision, nonsense=1)) == unstructure(ended)


@pytest.mark.requirement("CP-3.11", "CP-2.1")
@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({}, "params", "too few"),
        ({"title": "Other"}, "params.title", "not updatable"),
        ({"nonsense": 1}, "params.nonsense", "not updatable"),
        ({"fraction": 0.5, "title": "Other"}, "params.title", "not updatable"),
        ({"fraction": 2}, "params.fraction", "too large"),
        ({"fraction": "0.5"}, "params.fraction", "not a number"),
        ({"detail": None}, "params.detail", "not a string"),
        ({"tone": "loud"}, "params.tone", "unknown value"),
        ({"finished": 1}, "params.finished", "not true or false"),
        ({"finished": None}, "params.finished", "not true or false"),
        ({"finished": True, "fraction": 2}, "params.fraction", "too large"),
    ],
)
def test_only_declared_fields_with_legal_values_are_taken_and_nothing_by_halves(
    world: World, session: Session, changes: dict[str, Any], field: str, reason: str
) -> None:
    before = shown(world, session)
    body = session.update(before.request_id, before.revision, **changes)
    assert isinstance(body, Refused)
    assert (body.code.value, body.details["field"], body.details["reason"]) == (
        "INVALID_PARAMS",
        field,
        reason,
    )
    assert session.get(before.request_id) == before


@pytest.mark.requirement("CP-3.11")
def test_bad_params_are_told_before_the_wrong_revision(world: World, session: Session) -> None:
    before = shown(world, session)
    assert refusal(session.update(before.request_id, 77, title="Other")) == (
        "INVALID_PARAMS",
        "not updatable",
    )


@pytest.mark.requirement("CP-3.11")
@pytest.mark.parametrize("on_screen", [False, True])
def test_question_and_options_of_an_interaction_never_change(
    world: World, session: Session, on_screen: bool
) -> None:
    for made in (session.choose(), session.ask_text()):
        if on_screen:
            world.presenter.presented(made.request_id)
        before = session.get(made.request_id)
        attempts: tuple[dict[str, Any], ...] = ({"title": "Other"}, {"options": []}, {"finished": True}, {})
        for changes in attempts:
            body = session.update(made.request_id, before.revision, **changes)
            assert refusal(body)[0] == "INVALID_PARAMS"
        assert session.get(made.request_id) == before


@pytest.mark.requirement("CP-2.1")
def test_what_a_capability_does_not_declare_cannot_be_updated(session: Session) -> None:
    for made in (session.notice(), session.animate()):
        assert refusal(session.update(made.request_id, made.revision, text="x"))[0] == "INVALID_PARAMS"


@pytest.mark.requirement("CP-3.2")
def test_finished_is_no_parameter_of_create(session: Session) -> None:
    body = session.create("progress.track", {"title": "x", "finished": False})
    assert isinstance(body, Refused)
    assert (body.details["field"], body.details["reason"]) == ("params.finished", "unknown member")


@pytest.mark.requirement("CP-4.3", "CP-6.8")
def test_somebody_elses_progress_is_as_unknown_as_none(world: World, session: Session) -> None:
    before = shown(world, session)
    stranger = world.session("c2")
    for changes in ({"fraction": 0.5}, {"nonsense": 1}, {}):
        theirs = stranger.update(before.request_id, before.revision, **changes)
        assert theirs == stranger.update("no such request", before.revision, **changes)
        assert refusal(theirs)[0] == "NOT_FOUND"
    assert session.get(before.request_id) == before


# -- races -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.11", "CP-3.10")
@pytest.mark.parametrize("holding", [False, True])
def test_of_two_updates_with_one_revision_one_wins(world: World, session: Session, holding: bool) -> None:
    before = shown(world, session)
    other = world.session("c1")
    world.holding = holding
    asked = [
        one.ask(
            UpdateRequest(
                request_id=before.request_id, expected_revision=before.revision, params={"fraction": value}
            )
        )
        for one, value in ((session, 0.3), (other, 0.6))
    ]
    if holding:
        assert [world.reply(ref) for ref in asked] == [None, None], "nothing is told before it is stored"
        world.holding = False
        world.settle()
    won, lost = (world.reply(ref) for ref in asked)
    assert won.revision == before.revision + 1
    assert conflict(lost) == unstructure(won)
    assert [one.fraction for one in world.presenter.updates()] == [0.3]


@pytest.mark.requirement("CP-4.12")
def test_an_update_that_could_not_be_stored_has_not_been(world: World, session: Session) -> None:
    before = shown(world, session)
    world.holding = True
    asked = session.ask(
        UpdateRequest(
            request_id=before.request_id, expected_revision=before.revision, params={"fraction": 0.5}
        )
    )
    world.fail_commit()
    assert type(world.reply(asked)).__name__ == "NotSaved"
    assert session.get(before.request_id) == before
    assert world.presenter.updates() == []
    world.advance(500)
    assert world.presenter.close_bubble(before.request_id).outcome == "committed"


@pytest.mark.requirement("CP-3.10", "CP-3.11")
@pytest.mark.parametrize("first", ["update", "close"])
def test_of_an_update_and_a_closing_the_first_decided_counts(
    world: World, session: Session, first: str
) -> None:
    before = shown(world, session)
    drawn = world.presenter.picture(before.request_id)
    world.advance(500)
    if first == "close":
        assert world.presenter.close_bubble(before.request_id, drawn).outcome == "committed"
        told = conflict(session.update(before.request_id, before.revision, fraction=0.5))
        assert told["reason"] == "dismissed_by_user"
    else:
        session.update(before.request_id, before.revision, fraction=0.5)
        assert world.presenter.close_bubble(before.request_id, drawn).outcome == "committed"
    ended = session.get(before.request_id)
    assert (ended.state, ended.reason) == (State.CANCELLED, "dismissed_by_user")


# -- the person closes it ----------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.11")
def test_a_busy_progress_can_be_closed_whatever_fraction_was_drawn(world: World, session: Session) -> None:
    before = shown(world, session)
    first = world.presenter.picture(before.request_id)
    revision = before.revision
    for percent in range(1, 10):
        world.advance(100)
        revision = session.update(before.request_id, revision, fraction=percent / 100).revision
        world.presenter.presented(before.request_id)
    assert world.presenter.close_bubble(before.request_id, first).outcome == "committed"


@pytest.mark.requirement("G13")
def test_closing_a_progress_is_armed_from_its_first_presentation(world: World, session: Session) -> None:
    before = shown(world, session)
    world.advance(499)
    assert world.presenter.close_bubble(before.request_id).reason == "not_armed"
    world.advance(1)
    assert world.presenter.close_bubble(before.request_id).outcome == "committed"


@pytest.mark.requirement("G13")
def test_a_progress_that_left_the_screen_is_armed_anew(world: World, session: Session) -> None:
    before = shown(world, session)
    world.advance(500)
    picture = world.presenter.picture(before.request_id)
    world.presenter.say(Deferred(request_id=before.request_id, revision=picture.revision, why="fullscreen"))
    assert world.presenter.close_bubble(before.request_id).reason == "not_presented"
    world.presenter.presented(before.request_id)
    assert world.presenter.close_bubble(before.request_id).reason == "not_armed"


def test_closing_a_picture_that_was_never_sent_is_stale(world: World, session: Session) -> None:
    before = shown(world, session)
    world.advance(500)
    update = session.update(before.request_id, before.revision, fraction=0.5)
    [later] = world.presenter.updates()
    assert update.revision == later.revision
    future = attrs.evolve(later, revision=later.revision + 1)
    assert world.presenter.close_bubble(before.request_id, future).reason == "stale"
