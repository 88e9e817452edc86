"""What a request is resolved to: character, expression, style, substitutes, less motion (CP-2.12 to CP-2.16)."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.companion.capabilities import Kind
from protocols.companion.catalog import AION, CATALOG, MOMO, STRETCH
from protocols.companion.messages import Snapshot, Substitution, WaitResult
from protocols.json_values import JSONObject
from protocols.presenter.messages import Done, Setting, Update
from protocols.refusal import Refused
from tests.support.companion_world import CHOICE, Session, World, refusal

HAPPY: JSONObject = {"expression": "happy"}
PROGRESS: JSONObject = {"title": "Copying"}
TEXT: JSONObject = {"text": "hello"}


@pytest.fixture
def session(world: World) -> Session:
    return world.session("c1", "discover", "animate", "notify", "interact")


def choose_character(world: World, id: str) -> None:
    assert world.presenter.user("set", setting=Setting(character=id)) == Done()


def resolved(snapshot: Snapshot) -> tuple[str, str, str, str | None]:
    reason = None if snapshot.substitution is None else snapshot.substitution.reason
    return (
        snapshot.resolved_capability,
        snapshot.resolved_character,
        snapshot.resolved_style,
        reason,
    )


# -- characters --------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.1", "CP-2.4")
def test_a_request_that_names_no_character_gets_the_users_current_one(world: World, session: Session) -> None:
    assert session.notice().resolved_character == "aion"
    choose_character(world, "momo")
    assert session.notice().resolved_character == "momo"
    assert session.notice(character="aion").resolved_character == "aion"
    world.restart()
    world.presenter.ready()
    assert world.session("c1").notice().resolved_character == "momo"


@pytest.mark.requirement("CP-2.16", "CP-7.2")
def test_a_character_that_does_not_support_it_is_told_so(world: World, session: Session) -> None:
    body = session.create(STRETCH.id, {})
    assert refusal(body)[0] == "UNSUPPORTED_CAPABILITY"
    choose_character(world, "momo")
    assert session.create(STRETCH.id, {}).resolved_character == "momo"
    assert refusal(session.create("progress.track", PROGRESS))[0] == "UNSUPPORTED_CAPABILITY"


@pytest.mark.requirement("CP-2.15")
@pytest.mark.parametrize("character", [AION, MOMO], ids=lambda character: character.id)
def test_the_expression_must_be_one_that_the_character_has(session: Session, character: Any) -> None:
    everywhere = AION.expressions.keys() | MOMO.expressions.keys()
    for expression in sorted(everywhere | {"no.such"}):
        for allowed in (False, True):
            body = session.create(
                "animation.play",
                {"expression": expression},
                character=character.id,
                allow_substitution=allowed,
            )
            if expression in character.expressions:
                assert isinstance(body, Snapshot)
                session.cancel(body.request_id)
            else:
                assert isinstance(body, Refused)
                assert (body.code.value, body.details["field"]) == ("INVALID_PARAMS", "params.expression")


@pytest.mark.requirement("CP-2.15")
def test_the_presenter_is_told_the_characters_own_expression(world: World, session: Session) -> None:
    def shown(snapshot: Snapshot) -> tuple[str, str | None]:
        picture = world.presenter.picture(snapshot.request_id)
        session.cancel(snapshot.request_id)
        return picture.character, picture.expression

    assert shown(session.choose()) == ("aion", "attentive")
    assert shown(session.choose(character="momo")) == ("momo", "curious")
    assert shown(session.create("animation.play", HAPPY)) == ("aion", "happy")
    assert shown(session.create(STRETCH.id, {}, character="momo")) == ("momo", "stretching")


# -- substitutes -------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-2.16", "CP-3.3")
def test_the_declared_substitute_is_presented_and_recorded_where_it_is_allowed(
    world: World, session: Session
) -> None:
    made = session.create(STRETCH.id, {}, allow_substitution=True)
    assert (made.capability, *resolved(made)) == (
        STRETCH.id,
        "animation.play",
        "aion",
        "default",
        "capability_not_supported",
    )
    picture = world.presenter.picture(made.request_id)
    assert (picture.capability, picture.character, picture.expression) == ("animation.play", "aion", "happy")
    assert session.get(made.request_id) == made


@pytest.mark.requirement("CP-2.16")
def test_without_a_declared_substitute_another_character_does_it(world: World, session: Session) -> None:
    choose_character(world, "momo")
    made = session.create("progress.track", PROGRESS, allow_substitution=True)
    assert resolved(made) == ("progress.track", "aion", "default", "character_lacks_capability")
    assert world.presenter.picture(made.request_id).character == "aion"


@pytest.mark.requirement("CP-2.16")
def test_of_the_characters_that_could_do_it_the_users_own_is_asked_first(session: Session) -> None:
    named = session.create("progress.track", PROGRESS, character="momo", allow_substitution=True)
    assert resolved(named) == ("progress.track", "aion", "default", "character_lacks_capability")


@pytest.mark.requirement("CP-2.16")
def test_what_is_supported_is_done_as_asked_though_a_substitute_is_allowed(session: Session) -> None:
    made = session.create(STRETCH.id, {}, character="momo", allow_substitution=True)
    assert resolved(made) == (STRETCH.id, "momo", "default", None)


@pytest.mark.requirement("CP-4.1", "CP-2.16")
def test_a_substituted_request_is_found_again_by_its_key(world: World, session: Session) -> None:
    made = session.create(STRETCH.id, {}, allow_substitution=True, idempotency_key="k")
    choose_character(world, "momo")
    again = session.create(STRETCH.id, {}, allow_substitution=True, idempotency_key="k")
    assert again == made
    other = session.create(STRETCH.id, {}, idempotency_key="k")
    assert refusal(other)[0] == "IDEMPOTENCY_CONFLICT"


# -- styles ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-2.7", "CP-2.16")
def test_a_style_holds_for_the_capabilities_that_it_lists(session: Session) -> None:
    assert resolved(session.notice(style="compact")) == ("notice.show", "aion", "compact", None)
    body = session.create("interaction.choose", CHOICE, style="compact")
    assert refusal(body)[0] == "UNSUPPORTED_STYLE"
    made = session.choose(style="compact", allow_substitution=True)
    assert resolved(made) == ("interaction.choose", "aion", "default", "style_not_applicable")


@pytest.mark.requirement("CP-2.16")
def test_a_style_that_there_is_not_is_refused_whatever_is_allowed(session: Session) -> None:
    body = session.create("interaction.choose", CHOICE, style="neon", allow_substitution=True)
    assert refusal(body)[0] == "UNSUPPORTED_STYLE"


@pytest.mark.requirement("CP-2.12")
def test_style_and_tone_leave_each_other_alone(world: World, session: Session) -> None:
    for style in ("default", "compact"):
        for tone in ("information", "success", "warning", "error"):
            made = session.notice({"tone": tone}, style=style)
            picture = world.presenter.picture(made.request_id)
            assert picture.tone is not None
            assert (picture.style, picture.tone.value) == (style, tone)
            session.cancel(made.request_id)


# -- less motion -------------------------------------------------------------------------------------------


def want_less_motion(world: World, wanted: bool = True) -> None:
    world.presenter.user("set", setting=Setting(reduced_motion=wanted))


@pytest.mark.requirement("CP-2.16", "CP-7.4")
@pytest.mark.parametrize("allowed", [False, True])
def test_who_wants_less_motion_gets_animations_drawn_still_and_the_record_says_so(
    world: World, session: Session, allowed: bool
) -> None:
    want_less_motion(world)
    made = session.create("animation.play", HAPPY, allow_substitution=allowed)
    assert made.substitution == Substitution(reason="reduced_motion")
    assert world.presenter.picture(made.request_id).motion == "still"


@pytest.mark.requirement("CP-7.4")
def test_what_does_not_move_is_the_same_for_everybody(world: World, session: Session) -> None:
    want_less_motion(world)
    for id, capability in CATALOG.capabilities.items():
        assert (capability.reduced_motion == "still") == (capability.kind is Kind.ANIMATION), id
    made = session.notice()
    assert made.substitution is None
    assert world.presenter.picture(made.request_id).motion is None


@pytest.mark.requirement("CP-2.16", "CP-7.4")
def test_every_reason_is_recorded_in_a_fixed_order(world: World, session: Session) -> None:
    want_less_motion(world)
    made = session.create(STRETCH.id, {}, style="compact", allow_substitution=True)
    assert resolved(made) == (
        "animation.play",
        "aion",
        "default",
        "capability_not_supported,style_not_applicable,reduced_motion",
    )


@pytest.mark.requirement("CP-7.4")
def test_the_wish_holds_at_once_for_what_is_on_the_screen(world: World, session: Session) -> None:
    moving = session.create(STRETCH.id, {}, allow_substitution=True)
    question = session.choose()
    wait = session.wait(moving.request_id, moving.revision)
    want_less_motion(world)
    news = world.reply(wait)
    assert isinstance(news, WaitResult)
    assert news.request.substitution == Substitution(reason="capability_not_supported,reduced_motion")
    [update] = [body for body in world.presenter.pushed if isinstance(body, Update)]
    assert (update.request_id, update.motion) == (moving.request_id, "still")
    assert session.get(question.request_id) == question


@pytest.mark.requirement("CP-7.4")
def test_a_wish_that_is_taken_back_leaves_the_record_true(world: World, session: Session) -> None:
    want_less_motion(world)
    made = session.create("animation.play", HAPPY)
    want_less_motion(world, False)
    assert session.get(made.request_id) == made
    assert session.create("animation.play", HAPPY).substitution is None


@pytest.mark.requirement("CP-7.4")
def test_what_has_ended_is_not_touched_by_the_wish(world: World, session: Session) -> None:
    made = session.create("animation.play", HAPPY)
    ended = session.cancel(made.request_id)
    want_less_motion(world)
    assert session.get(made.request_id) == ended
