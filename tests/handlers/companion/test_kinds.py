"""What each kind of request needs to end: a written answer, a course that was run, a time that was shown."""

from __future__ import annotations

import pytest

from protocols.companion.states import State
from protocols.presenter.messages import Attention, Deferred, Finished
from tests.support.companion_world import Session, World


def defer(world: World, request_id: str) -> None:
    revision = world.presenter.picture(request_id).revision
    world.presenter.say(Deferred(request_id=request_id, revision=revision, why="quiet"))


# -- a question for text -----------------------------------------------------------------------------------


def asked(world: World, session: Session, **params: object) -> str:
    """A question for text that is on the screen and armed."""
    request_id = session.ask_text(params).request_id
    world.presenter.presented(request_id)
    world.advance(500)
    return request_id


@pytest.mark.requirement("CP-3.7", "CP-2.10", "G14")
@pytest.mark.parametrize("text", ["Rex", " Rex ", "\u202eRex\u200d", "x", "é" * 1_000])
def test_what_the_person_writes_is_the_result_unchanged(world: World, session: Session, text: str) -> None:
    request_id = asked(world, session)
    assert session.get(request_id).state is State.AWAITING_USER
    assert world.presenter.write(request_id, text).outcome == "committed"
    ended = session.get(request_id)
    assert (ended.state, ended.reason, ended.result) == (State.COMPLETED, "answered", {"text": text})


@pytest.mark.requirement("CP-3.7")
def test_the_question_is_drawn_as_asked(world: World, session: Session) -> None:
    shown = world.presenter.picture(asked(world, session, placeholder="a name", multiline=True, maxLength=7))
    assert shown.input is not None
    assert (shown.input.placeholder, shown.input.multiline, shown.input.max_length) == ("a name", True, 7)
    assert shown.options is None


@pytest.mark.requirement("CP-3.7", "G14")
@pytest.mark.parametrize("text", ["", "x" * 8, "a\nb"])
def test_a_text_that_does_not_fit_the_question_is_no_answer(
    world: World, session: Session, text: str
) -> None:
    request_id = asked(world, session, maxLength=7)
    assert world.presenter.write(request_id, text).reason == "invalid"
    assert session.get(request_id).state is State.AWAITING_USER


def test_several_lines_are_an_answer_where_they_were_asked_for(world: World, session: Session) -> None:
    request_id = asked(world, session, multiline=True)
    world.presenter.write(request_id, "a\nb")
    assert session.get(request_id).result == {"text": "a\nb"}


@pytest.mark.requirement("CP-3.7")
@pytest.mark.parametrize(
    "result", [{"selectedId": "allow"}, {"text": "a", "selectedId": "b"}, {"text": 7}, {}]
)
def test_an_answer_of_another_shape_is_none(
    world: World, session: Session, result: dict[str, object]
) -> None:
    request_id = asked(world, session)
    outcome = world.reply(world.presenter.reply(request_id, result))  # type: ignore[arg-type]
    assert outcome.reason == "invalid"
    assert session.get(request_id).state is State.AWAITING_USER


@pytest.mark.requirement("CP-3.5", "CP-3.7", "G14")
def test_closed_and_late_texts_leave_no_text(world: World, session: Session) -> None:
    closed, expired = asked(world, session), asked(world, session)
    assert world.presenter.close_bubble(closed).outcome == "committed"
    world.advance(60_000)
    late = world.presenter.write(expired, "Rex")
    assert (late.outcome, late.state, late.reason) == ("too_late", "expired", "deadline")
    assert [session.get(id).result for id in (closed, expired)] == [None, None]


# -- an animation ------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.6", "CP-2.11")
def test_an_animation_is_completed_when_it_has_run_its_course(world: World, session: Session) -> None:
    made = session.animate()
    world.presenter.presented(made.request_id)
    world.advance(1_000)
    assert session.get(made.request_id).state is State.RUNNING
    world.presenter.say(Finished(request_id=made.request_id))
    ended = session.get(made.request_id)
    assert (ended.state, ended.reason, ended.result) == (State.COMPLETED, "finished", None)


@pytest.mark.requirement("CP-3.6", "CP-2.11")
def test_an_animation_whose_end_is_never_reported_expires(world: World, session: Session) -> None:
    made = session.animate(timeout_ms=5_000)
    world.presenter.presented(made.request_id)
    world.advance(4_999)
    assert session.get(made.request_id).state is State.RUNNING
    world.advance(1)
    assert (session.get(made.request_id).state, session.get(made.request_id).reason) == (
        State.EXPIRED,
        "deadline",
    )
    world.presenter.say(Finished(request_id=made.request_id))
    assert session.get(made.request_id).state is State.EXPIRED


@pytest.mark.requirement("CP-3.6")
def test_an_animation_that_was_never_on_the_screen_has_not_finished(world: World, session: Session) -> None:
    made = session.animate()
    world.presenter.say(Finished(request_id=made.request_id))
    assert session.get(made.request_id) == made


def test_finished_by_a_presenter_that_does_not_draw_it_means_nothing(world: World, session: Session) -> None:
    made = session.animate()
    world.presenter.presented(made.request_id)
    world.presenter.gone()
    world.presenter.ready()
    world.presenter.say(Finished(request_id=made.request_id))
    assert session.get(made.request_id).state is State.RUNNING, "it has not been presented again"


@pytest.mark.requirement("CP-3.5")
def test_an_animation_that_the_person_closes_is_cancelled(world: World, session: Session) -> None:
    made = session.animate()
    world.presenter.presented(made.request_id)
    world.advance(500)
    world.presenter.close_bubble(made.request_id)
    assert session.get(made.request_id).reason == "dismissed_by_user"


# -- the display time of a notice --------------------------------------------------------------------------


def notice_on_screen(world: World, session: Session) -> str:
    """A notice of five seconds, of which one has passed."""
    made = session.notice({"displayMs": 5_000})
    world.presenter.presented(made.request_id)
    world.advance(1_000)
    return made.request_id


@pytest.mark.requirement("CP-3.8", "CP-3.6")
def test_display_time_stands_still_while_a_shown_notice_is_deferred(world: World, session: Session) -> None:
    request_id = notice_on_screen(world, session)
    defer(world, request_id)
    defer(world, request_id)
    world.advance(30_000)
    assert session.get(request_id).state is State.RUNNING
    world.presenter.presented(request_id)
    world.advance(3_999)
    assert session.get(request_id).state is State.RUNNING
    world.advance(1)
    assert session.get(request_id).reason == "presented"


@pytest.mark.requirement("CP-3.8")
def test_the_deadline_holds_while_a_notice_is_deferred(world: World, session: Session) -> None:
    request_id = notice_on_screen(world, session)
    defer(world, request_id)
    world.advance(59_000)
    assert session.get(request_id).reason == "deadline"


@pytest.mark.requirement("CP-3.8")
def test_who_looked_at_a_notice_when_it_was_deferred_does_not_hold_it_any_more(
    world: World, session: Session
) -> None:
    request_id = notice_on_screen(world, session)
    world.presenter.say(Attention(request_id=request_id, held=True))
    world.advance(10_000)
    defer(world, request_id)
    world.presenter.say(Attention(request_id=request_id, held=False))
    world.advance(10_000)
    world.presenter.presented(request_id)
    world.advance(4_000)
    assert session.get(request_id).reason == "presented"


@pytest.mark.requirement("CP-3.8", "CP-3.6")
def test_display_time_stands_still_while_no_presenter_is_there(world: World, session: Session) -> None:
    request_id = notice_on_screen(world, session)
    world.presenter.gone()
    world.advance(20_000)
    world.presenter.ready()
    world.presenter.presented(request_id)
    world.advance(3_999)
    assert session.get(request_id).state is State.RUNNING
    world.advance(1)
    assert session.get(request_id).reason == "presented"
