"""Nobody holds a display place for good: what has had its turn is set aside for others, and shown again (CP-4.7)."""

from __future__ import annotations

import pytest

from handlers.companion.places import PLACES
from handlers.policy import Limits, Policy
from handlers.presenter.rows import SHOWINGS
from protocols.companion.capabilities import Kind
from protocols.companion.messages import Snapshot
from protocols.companion.states import State
from protocols.presenter.messages import Attention, Deferred, Dismiss, Finished, Present
from tests.support.companion_world import Session, World

TURN_MS = Policy().display_turn_ms


class Stage(World):
    """A world with few places."""

    def __init__(self, places: int = 1) -> None:
        super().__init__(Limits(max_displayed=places))
        self.presenter.ready()
        self._heard = 0

    def show(self, made: Snapshot) -> str:
        """Report it as presented."""
        self.presenter.presented(made.request_id)
        return made.request_id

    def on_display(self) -> set[str]:
        return {row.id for row in self.ledger.rows.all(SHOWINGS)}  # type: ignore[attr-defined]

    def live(self, ms: int) -> None:
        """Let time pass, with a presenter that draws within a second."""
        for _ in range(ms // 1_000):
            self.advance(1_000)
            for request_id in self.on_display():
                self.presenter.presented(request_id)

    def news(self) -> list[tuple[str, str | None]]:
        """What the presenter was told to draw and to take away since the last look."""
        pushed = self.presenter.pushed[self._heard :]
        self._heard = len(self.presenter.pushed)
        told = [body for body in pushed if isinstance(body, Present | Dismiss)]
        return [(type(body).__name__.lower(), body.request_id) for body in told]


@pytest.mark.requirement("CP-4.7", "CP-4.6")
def test_after_its_turn_a_progress_gives_way_and_comes_back_when_the_place_is_free() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    work = world.show(a.progress(timeout_ms=600_000))
    before = a.get(work)
    asked = b.choose(timeout_ms=600_000)
    world.advance(TURN_MS - 1)
    assert world.on_display() == {work}
    world.news()
    world.advance(1)
    assert world.news() == [("dismiss", work), ("present", asked.request_id)]
    assert a.get(work) == before, "neither its state nor its revision has moved"
    b.cancel(asked.request_id)
    assert world.news() == [("dismiss", asked.request_id), ("present", work)]


def test_the_presenter_is_told_that_it_was_only_set_aside() -> None:
    world = Stage()
    work = world.show(world.session("a").progress(timeout_ms=600_000))
    world.session("b").choose(timeout_ms=600_000)
    world.advance(TURN_MS)
    assert world.presenter.dismissed() == {work: "set_aside"}


@pytest.mark.requirement("CP-4.7")
def test_without_anybody_who_waits_a_place_is_kept_and_then_given_up_at_once() -> None:
    world = Stage()
    work = world.show(world.session("a").progress(timeout_ms=3_600_000))
    world.advance(10 * TURN_MS)
    assert world.on_display() == {work}
    asked = world.session("b").choose()
    assert asked.state is State.RUNNING, "its turn was over long ago"
    assert world.on_display() == {asked.request_id}


@pytest.mark.requirement("CP-4.7")
def test_two_that_want_one_place_have_it_in_turns() -> None:
    world = Stage()
    work = world.show(world.session("a").progress(timeout_ms=3_600_000))
    other = world.session("b").progress(timeout_ms=3_600_000).request_id
    for turn in range(6):
        now = (work, other)[turn % 2]
        world.presenter.presented(now)
        assert world.on_display() == {now}
        world.advance(TURN_MS - 1)
        assert world.on_display() == {now}
        world.advance(1)


@pytest.mark.requirement("CP-4.7", "CP-3.4")
def test_a_question_that_was_set_aside_still_awaits_its_user_and_is_armed_anew() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    asked = world.show(a.choose(timeout_ms=600_000))
    notice = b.notice(timeout_ms=600_000)
    world.advance(TURN_MS)
    assert a.get(asked).state is State.AWAITING_USER
    assert world.presenter.answer(asked, "allow").reason == "not_presented"
    world.show(notice)
    world.advance(8_000)
    assert world.on_display() == {asked}
    assert world.presenter.answer(asked, "allow").reason == "not_presented", "not yet drawn again"
    world.presenter.presented(asked)
    assert world.presenter.answer(asked, "allow").reason == "not_armed"
    world.advance(500)
    assert world.presenter.answer(asked, "allow").outcome == "committed"
    assert a.get(asked).revision == 3


@pytest.mark.requirement("CP-3.8")
def test_the_deadline_of_what_was_set_aside_holds() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    asked = world.show(a.choose(timeout_ms=TURN_MS + 5_000))
    b.choose(timeout_ms=600_000)
    world.advance(TURN_MS + 5_000)
    assert a.get(asked).reason == "deadline"
    assert a.get(asked).result is None


@pytest.mark.requirement("CP-4.9", "CP-3.10")
@pytest.mark.parametrize("end", ["cancel", "hide", "mute", "finish"])
def test_what_was_set_aside_ends_like_anything_else_and_is_not_taken_away_twice(end: str) -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    work = world.show(a.progress(timeout_ms=600_000))
    b.choose(timeout_ms=600_000)
    world.advance(TURN_MS)
    world.news()
    match end:
        case "cancel":
            a.cancel(work)
        case "finish":
            a.update(work, a.get(work).revision, finished=True)
        case "mute":
            world.presenter.user("mute", client_id="a", seconds=60)
        case "hide":
            world.presenter.user("hide")
    assert a.get(work).state in (State.CANCELLED, State.COMPLETED)
    assert ("dismiss", work) not in world.news()
    assert work not in {row.request_id for row in world.ledger.rows.all(PLACES)}  # type: ignore[attr-defined]


@pytest.mark.requirement("CP-3.11")
def test_what_was_set_aside_is_updated_without_a_word_and_shown_as_it_is_then() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    work = world.show(a.progress(timeout_ms=600_000))
    asked = b.choose(timeout_ms=600_000)
    world.advance(TURN_MS)
    world.news()
    updated = a.update(work, a.get(work).revision, fraction=0.7)
    assert world.news() == []
    b.cancel(asked.request_id)
    shown = world.presenter.picture(work)
    assert (shown.fraction, shown.revision) == (0.7, updated.revision)


# -- who gives way -----------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.7", "CP-3.8")
def test_what_the_person_is_attending_to_stays_until_they_look_away() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    asked = world.show(a.choose(timeout_ms=600_000))
    other = b.choose(timeout_ms=600_000)
    world.presenter.say(Attention(request_id=asked, held=True))
    world.advance(3 * TURN_MS)
    assert world.on_display() == {asked}
    world.presenter.say(Attention(request_id=asked, held=False))
    assert world.on_display() == {other.request_id}


def test_a_presenter_that_dies_lets_go_of_what_the_person_attended_to() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    asked = world.show(a.choose(timeout_ms=600_000))
    b.choose(timeout_ms=600_000)
    world.presenter.say(Attention(request_id=asked, held=True))
    world.advance(2 * TURN_MS)
    world.presenter.gone()
    assert world.on_display() == {asked}
    world.presenter.ready()
    assert asked not in world.on_display()


@pytest.mark.requirement("CP-4.7")
def test_notices_and_animations_are_never_set_aside() -> None:
    world = Stage(2)
    a, b = world.session("a"), world.session("b")
    notice = world.show(a.notice({"displayMs": 60_000}, timeout_ms=600_000))
    moving = world.show(a.animate(timeout_ms=60_000))
    world.presenter.say(
        Deferred(request_id=notice, revision=world.presenter.picture(notice).revision, why="quiet")
    )
    b.choose(timeout_ms=600_000)
    world.advance(TURN_MS - 1)
    assert world.on_display() == {notice, moving}
    world.presenter.say(Finished(request_id=moving))
    world.advance(5 * TURN_MS)
    assert notice in world.on_display()


@pytest.mark.requirement("CP-4.7")
def test_who_has_one_place_keeps_it_while_another_has_more() -> None:
    world = Stage(3)
    greedy, modest = world.session("a"), world.session("b")
    work = {world.show(greedy.progress(timeout_ms=3_600_000)) for _ in range(3)}
    work.add(greedy.progress(timeout_ms=3_600_000).request_id)
    asked = modest.choose(timeout_ms=3_600_000)
    world.advance(TURN_MS)
    assert asked.request_id in world.on_display()
    world.presenter.presented(asked.request_id)
    for _ in range(5):
        world.live(TURN_MS)
        assert asked.request_id in world.on_display(), "only its client's own give way to the greedy one"
        assert len(world.on_display() & work) == 2


@pytest.mark.requirement("CP-4.7")
def test_a_client_gives_way_to_itself_so_its_own_question_is_not_behind_its_progress_for_good() -> None:
    world = Stage(2)
    session = world.session("a")
    bars = [world.show(session.progress(timeout_ms=3_600_000)) for _ in range(2)]
    asked = session.choose(timeout_ms=3_600_000)
    assert asked.state is State.QUEUED
    world.advance(TURN_MS)
    assert world.on_display() == {bars[1], asked.request_id}, "the one that was there longest gives way"


@pytest.mark.requirement("CP-4.7")
def test_of_several_that_give_way_none_comes_back_in_the_same_breath() -> None:
    world = Stage(2)
    a, b = world.session("a"), world.session("b")
    bars = [world.show(a.progress(timeout_ms=3_600_000)) for _ in range(2)]
    world.advance(2 * TURN_MS)
    world.news()
    asked = b.choose(timeout_ms=3_600_000)
    assert world.news() == [("dismiss", bars[0]), ("present", asked.request_id)]
    world.presenter.presented(asked.request_id)
    world.advance(TURN_MS - 1)
    assert world.news() == []
    world.advance(1)
    assert world.news() == [("dismiss", bars[1]), ("present", bars[0])]


@pytest.mark.requirement("CP-4.7")
def test_what_was_set_aside_stands_behind_those_who_wait_already_and_before_those_who_come() -> None:
    world = Stage()
    a = world.session("a")
    first = world.show(a.progress(timeout_ms=3_600_000))
    second = a.choose(timeout_ms=3_600_000)
    third = a.choose(timeout_ms=3_600_000)
    world.advance(TURN_MS)
    a.cancel(third.request_id)
    fourth = a.choose(timeout_ms=3_600_000)
    fifth = a.choose(timeout_ms=3_600_000)
    for expected in (second.request_id, first, fourth.request_id, fifth.request_id):
        assert world.on_display() == {expected}
        a.cancel(expected)


@pytest.mark.requirement("CP-4.7")
def test_turns_run_while_the_machine_is_awake() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    work = world.show(a.progress(timeout_ms=3_600_000))
    b.choose(timeout_ms=3_600_000)
    world.suspend(10 * TURN_MS)
    world.advance(TURN_MS - 1)
    assert world.on_display() == {work}
    world.advance(1)
    assert world.on_display() != {work}


def test_the_presenter_is_told_how_many_wait_those_that_were_set_aside_among_them() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    world.show(a.progress(timeout_ms=600_000))
    asked = b.choose(timeout_ms=600_000)
    b.choose(timeout_ms=600_000)
    world.advance(TURN_MS)
    assert world.presenter.picture(asked.request_id).queued == 2


def test_what_waits_in_vain_for_a_presenter_that_can_draw_it_pushes_nobody_away() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    asked = a.choose(timeout_ms=600_000)
    b.progress(timeout_ms=600_000)
    world.presenter.gone()
    world.presenter.ready(kinds=(Kind.INTERACTION,))
    world.presenter.presented(asked.request_id)
    world.advance(3 * TURN_MS)
    assert world.on_display() == {asked.request_id}


@pytest.mark.requirement("CP-4.12")
def test_a_turn_that_could_not_be_stored_is_decided_again() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    work = world.show(a.progress(timeout_ms=600_000))
    asked = b.choose(timeout_ms=600_000)
    world.holding = True
    world.advance(TURN_MS)
    world.fail_commit()
    world.advance(1_000)
    assert world.on_display() == {asked.request_id}
    assert b.get(asked.request_id).state is State.RUNNING
    assert a.get(work).state is State.RUNNING
    assert world.presenter.shown().count(asked.request_id) == 1


def test_sessions_come_and_go_without_moving_anything() -> None:
    world = Stage()
    a, b = world.session("a"), world.session("b")
    work = world.show(a.progress(timeout_ms=600_000))
    asked = b.choose(timeout_ms=600_000)
    a.close()
    b.close()
    world.advance(TURN_MS)
    assert world.on_display() == {asked.request_id}
    again: Session = world.session("a")
    assert again.get(work).state is State.RUNNING
