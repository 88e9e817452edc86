"""A client asks for a key, a person decides (companion.md, Pairing; docs/authentication.md)."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from handlers.companion.pairing_rows import PAIRING_PARKS, PAIRINGS
from handlers.companion.rows import Client
from handlers.events import CallRef
from handlers.policy import Limits, Policy
from handlers.presenter.rows import SHOWINGS
from protocols.companion.messages import Authenticate, AuthenticateResult
from protocols.companion.pairing import (
    PairingCancel,
    PairingCancelled,
    PairingEnded,
    PairingOutcome,
    PairingRequest,
    PairingRequested,
    PairingWait,
    RetentionNotice,
    Scope,
)
from protocols.presenter.messages import COMMITTED, Outcome, rejected, too_late
from protocols.refusal import ErrorCode, Refused
from protocols.session import NotSaved
from tests.support.companion_world import World
from tests.support.presenter_end import Presenter

ARMING = Policy().arming_ms
OPEN_MS = 300_000


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def screen(world: World) -> Presenter:
    return world.new_presenter()


@pytest.fixture
def asker(world: World, screen: Presenter) -> int:
    return world.open(program="/usr/bin/agent")


def ask(world: World, asker: int, *scopes: Scope, name: str = "Agent", purpose: str | None = None) -> Any:
    request = PairingRequest(client_name=name, scopes=scopes or ("discover",), purpose=purpose)
    return world.call(asker, request)


def asked(world: World, asker: int, *scopes: Scope, name: str = "Agent") -> str:
    """The id of a pairing that is accepted."""
    requested = ask(world, asker, *scopes, name=name)
    assert isinstance(requested, PairingRequested), requested
    return requested.pairing_id


def wait(world: World, asker: int, pairing: str, wait_ms: int = 0) -> Any:
    return world.call(asker, PairingWait(pairing_id=pairing, wait_ms=wait_ms))


def approve(world: World, screen: Presenter, scopes: tuple[Scope, ...] | None = None) -> Outcome:
    shown = screen.present_question()
    world.advance(ARMING)
    return screen.decide(shown, scopes)


def told(world: World, ref: CallRef) -> PairingOutcome:
    """The answer to a parked wait."""
    outcome = world.reply(ref)
    assert isinstance(outcome, PairingOutcome)
    return outcome


def stored(world: World) -> list[Client]:
    """The clients on the disk."""
    return [row for (table, _), row in world.disk.rows.items() if table == "clients"]  # type: ignore[misc]


def refusal(body: object) -> tuple[ErrorCode, object]:
    assert isinstance(body, Refused), body
    return body.code, body.details.get("reason")


# -- the question ------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.6", "CP-4.10", "CP-5.1")
def test_the_person_sees_who_asks_for_what_and_for_how_long_it_is_kept(
    world: World, screen: Presenter, asker: int
) -> None:
    requested = ask(world, asker, "interact", "discover", purpose="asks questions")
    shown = screen.question()
    assert requested == PairingRequested(
        pairing_id=shown.pairing_id,
        verification_code=shown.verification_code,
        expires_at=shown.expires_at,
        retention=RetentionNotice(hours=24, tombstone_days=7),
    )
    assert (shown.client_name, shown.name_in_use, shown.purpose) == ("Agent", False, "asks questions")
    assert (shown.program, shown.pid) == ("/usr/bin/agent", world.pid_of(asker))
    assert shown.scopes == ("discover", "interact")
    assert shown.retention_hours == 24
    assert len(shown.verification_code) == 6
    assert shown.verification_code.isdecimal()


@pytest.mark.requirement("CP-5.6", "G08")
def test_the_name_is_shown_neutralized(world: World, screen: Presenter, asker: int) -> None:
    asked(world, asker, name="Ag\u202eent\u200b")
    assert screen.question().client_name == "Ag<U+202E>ent<U+200B>"


@pytest.mark.requirement("CP-5.6")
@pytest.mark.parametrize("name", ["Agent", "agent", "  Agent ", "Ａgent"])
def test_a_name_that_reads_like_a_paired_one_is_pointed_out(
    world: World, screen: Presenter, asker: int, name: str
) -> None:
    world.pair(label="Agent")
    asked(world, asker, name=name)
    assert screen.question().name_in_use


def test_the_name_of_a_revoked_client_is_free(world: World, screen: Presenter, asker: int) -> None:
    screen.user("revoke", client_id=world.pair(label="Agent").id)
    asked(world, asker, name="Agent")
    assert not screen.question().name_in_use


@pytest.mark.parametrize("name", [" ", "\u200b\u200b", "a\nb", "a\u2028b", "x" * 65])
def test_a_name_that_cannot_be_read_is_refused(
    world: World, screen: Presenter, asker: int, name: str
) -> None:
    body = ask(world, asker, name=name)
    assert refusal(body)[0] is ErrorCode.INVALID_PARAMS
    assert body.details["field"] == "clientName"
    assert world.rows(PAIRINGS) == []


@pytest.mark.requirement("CP-4.4")
@pytest.mark.parametrize(
    "name",
    [
        *("Companion", "companion", " C O M P A N I O N ", "Сompаnіоn", "Companion\u200b", "c0mpan1on!"),
        *("Ｃompanion", "System", "sys-tem", "ЅYSTЕM", "sуs\u202etem", "Host", "h\u00f3st"),
    ],
)
def test_a_name_that_reads_like_the_host_or_the_system_is_refused(
    world: World, screen: Presenter, asker: int, name: str
) -> None:
    body = ask(world, asker, name=name)
    assert refusal(body)[0] is ErrorCode.INVALID_PARAMS
    assert (body.details["field"], body.details["reason"]) == ("clientName", "reserved")
    assert world.rows(PAIRINGS) == []


@pytest.mark.parametrize("name", ["Companion Agent", "System Monitor", "Compass", "👻", "猫"])
def test_a_name_that_only_reminds_of_them_is_free(
    world: World, screen: Presenter, asker: int, name: str
) -> None:
    asked(world, asker, name=name)


@pytest.mark.parametrize("name", ["x" * 64, "x" * 64 + "\u200b", "猫"])
def test_invisible_code_points_of_a_name_are_not_counted(
    world: World, screen: Presenter, asker: int, name: str
) -> None:
    asked(world, asker, name=name)


def test_two_pairings_have_nothing_in_common(world: World, screen: Presenter) -> None:
    first, second = (ask(world, world.open()) for _ in range(2))
    assert first.pairing_id != second.pairing_id
    assert first.verification_code != second.verification_code


# -- where nobody can be asked -----------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.1")
def test_access_off_is_refused_and_nobody_is_asked() -> None:
    world = World(access=False)
    screen = world.new_presenter()
    screen.news()
    body = ask(world, world.open())
    assert refusal(body) == (ErrorCode.RUNTIME_UNAVAILABLE, "access_off")
    assert screen.news() == []


@pytest.mark.requirement("CP-5.6")
@pytest.mark.parametrize("person", [None, False])
def test_without_a_person_there_is_no_pairing(world: World, person: bool | None) -> None:
    if person is not None:
        world.new_presenter(person=person)
    assert refusal(ask(world, world.open())) == (ErrorCode.RUNTIME_UNAVAILABLE, "no_presenter")


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(("action", "reason"), [("hide", "hidden"), ("pause", "paused")])
def test_who_does_not_want_to_be_asked_is_not(
    world: World, screen: Presenter, asker: int, action: str, reason: str
) -> None:
    screen.user(action)
    assert refusal(ask(world, asker)) == (ErrorCode.RUNTIME_UNAVAILABLE, reason)


@pytest.mark.requirement("CP-5.1", "CP-4.9")
@pytest.mark.parametrize("action", ["disable_access", "hide", "pause"])
def test_a_person_who_shuts_the_door_denies_what_is_pending(
    world: World, screen: Presenter, asker: int, action: str
) -> None:
    pairing = asked(world, asker)
    ref = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    screen.user(action)
    assert told(world, ref) == PairingOutcome(status="denied")
    assert [gone.pairing_id for gone in screen.dismissals()] == [pairing]


@pytest.mark.requirement("CP-5.1")
def test_access_off_comes_before_a_pairing_that_is_still_open(
    world: World, screen: Presenter, asker: int
) -> None:
    asked(world, asker)
    assert approve(world, screen) == COMMITTED  # open until its key is fetched
    screen.user("disable_access")
    assert refusal(ask(world, asker)) == (ErrorCode.RUNTIME_UNAVAILABLE, "access_off")


@pytest.mark.requirement("CP-5.6")
def test_where_no_person_can_be_nothing_is_approved(world: World, screen: Presenter, asker: int) -> None:
    asked(world, asker)
    screen.gone()
    alone = world.new_presenter(person=False)
    assert approve(world, alone) == rejected("not_armed")
    assert stored(world) == []


# -- one pairing a connection ------------------------------------------------------------------------------


@pytest.mark.requirement("G10", "CP-5.6")
def test_a_prompt_does_not_grow_after_it_was_shown(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker, "discover")
    shown = screen.present_question()
    world.advance(1_000)
    wider = ask(world, asker, "discover", "animate", "notify", "interact")
    assert refusal(wider) == (ErrorCode.RATE_LIMITED, "pairings")
    world.advance(1_000)
    again = ask(world, asker, "discover")
    assert refusal(again) == (ErrorCode.RATE_LIMITED, "pairings")
    assert again.details["retryAfterMs"] == OPEN_MS - 2_000
    assert screen.question() == shown
    assert screen.decide(shown) == COMMITTED
    outcome = wait(world, asker, pairing)
    assert (outcome.status, outcome.scopes) == ("approved", ("discover",))
    assert [client.scopes for client in stored(world)] == [("discover",)]


@pytest.mark.requirement("CP-4.10", "CP-5.5")
def test_what_the_program_wrote_and_the_code_are_in_no_repr(
    world: World, screen: Presenter, asker: int
) -> None:
    question = PairingRequest(client_name="Agent", scopes=("discover",), purpose="a secret plan")
    requested = world.call(asker, question)
    told = repr((question, requested, world.rows(PAIRINGS), screen.news()))
    assert "a secret plan" not in told
    assert requested.verification_code not in told


def test_a_second_connection_has_its_own_pairing(world: World, screen: Presenter, asker: int) -> None:
    first, second = asked(world, asker), asked(world, world.open())
    assert {pairing.id for pairing in world.rows(PAIRINGS)} == {first, second}


def test_there_is_a_small_number_in_all() -> None:
    world = World(Limits(max_pending_pairings=2))
    screen = world.new_presenter()
    asked(world, world.open())
    second = world.open()
    asked(world, second)
    third = world.open()
    assert refusal(ask(world, third)) == (ErrorCode.RATE_LIMITED, "pairings")
    screen.present_question()
    world.close(second)
    asked(world, third)


def test_after_a_denial_the_connection_may_ask_again(world: World, screen: Presenter, asker: int) -> None:
    asked(world, asker)
    shown = screen.present_question()
    world.advance(ARMING)
    assert screen.decide(shown, approved=False) == COMMITTED
    second = asked(world, asker)
    assert [pairing.id for pairing in world.rows(PAIRINGS)] == [second]


# -- the decision ------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.1", "CP-5.2")
def test_an_approval_hands_the_key_over_once_and_keeps_only_its_digest(
    world: World, screen: Presenter, asker: int
) -> None:
    pairing = asked(world, asker, "discover", "interact")
    ref = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    assert world.reply(ref) is None
    assert approve(world, screen) == COMMITTED
    outcome = told(world, ref)
    assert (outcome.status, outcome.scopes) == ("approved", ("discover", "interact"))
    assert outcome.key is not None
    assert len(base64.urlsafe_b64decode(outcome.key + "=")) == 32
    [client] = stored(world)
    assert (client.id, client.label) == (outcome.client_id, "Agent")
    assert client.key_sha256 == hashlib.sha256(outcome.key.encode()).hexdigest()
    assert outcome.key not in repr(world.disk.rows) + repr(world.ledger.rows.contents())
    again = wait(world, asker, pairing)
    assert again == PairingOutcome(status="approved", client_id=client.id, scopes=outcome.scopes)


@pytest.mark.requirement("CP-5.1")
def test_two_waits_share_one_key(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    refs = [world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000)) for _ in range(2)]
    approve(world, screen)
    first, second = (told(world, ref) for ref in refs)
    assert first.key is not None
    assert (second.status, second.key) == ("approved", None)


@pytest.mark.requirement("CP-5.1", "CP-5.2")
def test_the_same_connection_may_then_authenticate(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    outcome = wait(world, asker, pairing)
    body = world.call(asker, Authenticate(client_id=outcome.client_id, key=outcome.key))
    assert isinstance(body, AuthenticateResult)


@pytest.mark.requirement("CP-5.2")
def test_before_the_key_is_fetched_nobody_can_authenticate(
    world: World, screen: Presenter, asker: int
) -> None:
    asked(world, asker)
    approve(world, screen)
    [client] = stored(world)
    other = world.open()
    for key in ("", client.key_sha256, "A" * 43):
        body = world.call(other, Authenticate(client_id=client.id, key=key))
        assert refusal(body)[0] is ErrorCode.UNAUTHENTICATED


@pytest.mark.requirement("G10", "CP-5.3")
def test_fewer_scopes_may_be_granted(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker, "discover", "notify", "interact")
    assert approve(world, screen, ("interact",)) == COMMITTED
    assert wait(world, asker, pairing).scopes == ("interact",)
    assert [client.scopes for client in stored(world)] == [("interact",)]


@pytest.mark.requirement("G10", "CP-5.6")
def test_more_scopes_than_shown_are_rejected_and_it_stays_pending(
    world: World, screen: Presenter, asker: int
) -> None:
    pairing = asked(world, asker, "discover")
    assert approve(world, screen, ("discover", "interact")) == rejected("invalid")
    assert approve(world, screen, ()) == rejected("invalid")
    assert wait(world, asker, pairing).status == "pending"
    assert stored(world) == []


@pytest.mark.requirement("G10", "CP-5.6")
def test_a_decision_counts_only_for_what_was_on_the_screen_long_enough(
    world: World, screen: Presenter, asker: int
) -> None:
    pairing = asked(world, asker)
    shown = screen.question()
    world.advance(1_000)
    assert screen.decide(shown) == rejected("not_presented")
    screen.present_question()
    assert screen.decide(shown, digest="0" * 64) == rejected("stale")
    assert screen.decide(shown, approved=False) == rejected("not_armed")
    world.advance(ARMING)
    assert screen.decide(shown, age=1) == rejected("not_armed")
    assert wait(world, asker, pairing).status == "pending"
    assert screen.decide(shown) == COMMITTED
    assert screen.decide(shown, approved=False) == too_late("approved", None)


def test_a_denial_is_told(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    ref = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    world.advance(ARMING)
    screen.decide(shown, approved=False)
    assert told(world, ref) == PairingOutcome(status="denied")
    assert stored(world) == []


@pytest.mark.requirement("CP-4.12")
def test_an_approval_that_is_not_saved_grants_nothing(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    ref = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    world.advance(ARMING)
    world.saving = False
    with pytest.raises(AssertionError, match="NotSaved"):
        screen.decide(shown)
    assert world.reply(ref) is None
    world.saving = True
    assert wait(world, asker, pairing).status == "pending"
    assert screen.decide(shown) == COMMITTED
    assert told(world, ref).key is not None


@pytest.mark.requirement("CP-4.12")
def test_a_key_that_is_not_saved_is_not_handed_over(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    world.saving = False
    assert wait(world, asker, pairing) == NotSaved()
    world.saving = True
    assert wait(world, asker, pairing).key is not None


# -- the end -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.6")
def test_the_asker_gone_takes_the_prompt_from_the_screen(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    world.advance(ARMING)
    world.close(asker)
    assert [gone.pairing_id for gone in screen.dismissals()] == [pairing]
    assert screen.decide(shown) == too_late("cancelled", None)
    assert stored(world) == []
    assert (world.rows(PAIRINGS), world.rows(PAIRING_PARKS), world.rows(SHOWINGS)) == ([], [], [])


@pytest.mark.requirement("CP-5.1")
def test_a_key_that_was_not_fetched_is_no_key(world: World, screen: Presenter, asker: int) -> None:
    asked(world, asker)
    approve(world, screen)
    assert len(stored(world)) == 1
    world.close(asker)
    assert stored(world) == []


@pytest.mark.requirement("CP-5.1")
def test_a_key_that_was_fetched_outlives_the_connection(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    wait(world, asker, pairing)
    world.close(asker)
    assert len(stored(world)) == 1


@pytest.mark.requirement("CP-5.1", "CP-5.2")
def test_a_key_whose_bytes_never_left_the_broker_is_no_key(
    world: World, screen: Presenter, asker: int
) -> None:
    """The asker reads no more, then it goes."""
    pairing = asked(world, asker)
    parked = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    world.deaf = True
    approve(world, screen)
    assert told(world, parked).key is not None
    assert len(stored(world)) == 1
    world.close(asker)
    assert stored(world) == []


@pytest.mark.parametrize("ends", ["cancel", "time"])
def test_a_key_that_is_on_its_way_for_too_long_is_no_key(
    world: World, screen: Presenter, asker: int, ends: str
) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    world.deaf = True
    assert wait(world, asker, pairing).key is not None
    again = ask(world, asker)
    assert refusal(again) == (ErrorCode.RATE_LIMITED, "pairings")  # the one before is not done yet
    if ends == "time":
        world.advance(OPEN_MS)
    else:
        assert world.call(asker, PairingCancel(pairing_id=pairing)).status == "cancelled"
    assert stored(world) == []


@pytest.mark.requirement("CP-5.1")
def test_a_crash_before_the_key_is_fetched_leaves_no_client(
    world: World, screen: Presenter, asker: int
) -> None:
    asked(world, asker)
    approve(world, screen)
    world.pair(label="Other")
    world.restart()
    assert [client.label for client in stored(world)] == ["Other"]


def test_it_expires(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    screen.present_question()
    world.advance(OPEN_MS - 30_000)
    ref = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    world.advance(29_999)
    assert world.reply(ref) is None
    world.advance(1)
    assert told(world, ref) == PairingOutcome(status="expired")
    assert [gone.reason for gone in screen.dismissals()] == ["expired"]
    asked(world, asker)


def test_an_approval_that_nobody_fetches_expires(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    world.advance(OPEN_MS)
    assert wait(world, asker, pairing) == PairingOutcome(status="expired")
    assert stored(world) == []


def test_a_client_that_was_revoked_before_it_fetched_its_key_gets_none(
    world: World, screen: Presenter, asker: int
) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    screen.user("revoke", client_id=stored(world)[0].id)
    assert wait(world, asker, pairing) == PairingOutcome(status="denied")


def test_cancel_takes_the_question_back(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    ref = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    assert world.call(asker, PairingCancel(pairing_id=pairing)) == PairingCancelled(status="cancelled")
    assert told(world, ref) == PairingOutcome(status="cancelled")
    assert [gone.pairing_id for gone in screen.dismissals()] == [pairing]
    world.advance(ARMING)
    assert screen.decide(shown) == too_late("cancelled", None)


def test_cancel_of_an_approval_takes_the_client_back_until_it_has_its_key(
    world: World, screen: Presenter, asker: int
) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    assert world.call(asker, PairingCancel(pairing_id=pairing)) == PairingCancelled(status="cancelled")
    assert stored(world) == []
    second = asked(world, asker)
    approve(world, screen)
    wait(world, asker, second)
    assert world.call(asker, PairingCancel(pairing_id=second)) == PairingCancelled(status="approved")
    assert len(stored(world)) == 1


def test_a_wait_ends_without_news(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    ref = world.ask(asker, PairingWait(pairing_id=pairing, wait_ms=1_000))
    world.advance(1_000)
    assert told(world, ref) == PairingOutcome(status="pending")
    assert world.rows(PAIRING_PARKS) == []


def test_a_wait_beyond_the_published_limit_is_refused(world: World, screen: Presenter, asker: int) -> None:
    body = wait(world, asker, asked(world, asker), 60_001)
    assert refusal(body)[0] is ErrorCode.INVALID_PARAMS
    assert (body.details["field"], body.details["limit"]) == ("waitMs", 60_000)


def test_a_pairing_belongs_to_the_connection_that_asked(world: World, screen: Presenter, asker: int) -> None:
    pairing = asked(world, asker)
    approve(world, screen)
    other = world.open()
    assert refusal(wait(world, other, pairing))[0] is ErrorCode.NOT_FOUND
    assert refusal(world.call(other, PairingCancel(pairing_id=pairing)))[0] is ErrorCode.NOT_FOUND
    assert wait(world, asker, pairing).key is not None


def test_the_engine_learns_that_the_pairing_has_ended(world: World, screen: Presenter, asker: int) -> None:
    asked(world, asker)
    assert world.pushed_to(asker) == []
    approve(world, screen)
    assert world.pushed_to(asker) == [PairingEnded()]
