"""A client asks for a key, a person decides (companion.md, Pairing; docs/authentication.md)."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import attrs
import pytest

from handlers.companion.pairing_rows import PAIRING_PARKS, PAIRINGS
from handlers.companion.rows import Client
from handlers.events import CallRef
from handlers.policy import Limits
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
from tests.support.stage import POLICY, Screen, Stage

ARMING = POLICY.arming_ms
OPEN_MS = 300_000


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def screen(stage: Stage) -> Screen:
    return stage.presenter()


@pytest.fixture
def asker(stage: Stage, screen: Screen) -> int:
    return stage.open()


def ask(stage: Stage, asker: int, *scopes: Scope, name: str = "Agent", purpose: str | None = None) -> Any:
    request = PairingRequest(client_name=name, scopes=scopes or ("discover",), purpose=purpose)
    return stage.call(asker, request)


def asked(stage: Stage, asker: int, *scopes: Scope, name: str = "Agent") -> str:
    """The id of a pairing that is accepted."""
    requested = ask(stage, asker, *scopes, name=name)
    assert isinstance(requested, PairingRequested), requested
    return requested.pairing_id


def wait(stage: Stage, asker: int, pairing: str, wait_ms: int = 0) -> Any:
    return stage.call(asker, PairingWait(pairing_id=pairing, wait_ms=wait_ms))


def approve(stage: Stage, screen: Screen, scopes: tuple[Scope, ...] | None = None) -> Outcome:
    shown = screen.present_question()
    stage.wait(ARMING)
    return screen.decide(shown, scopes)


def told(stage: Stage, ref: CallRef) -> PairingOutcome:
    """The answer to a parked wait."""
    outcome = stage.replies[ref]
    assert isinstance(outcome, PairingOutcome)
    return outcome


def stored(stage: Stage) -> list[Client]:
    """The clients on the disk."""
    return [row for (table, _), row in stage.disk.rows.items() if table == "clients"]  # type: ignore[misc]


def refusal(body: object) -> tuple[ErrorCode, object]:
    assert isinstance(body, Refused), body
    return body.code, body.details.get("reason")


# -- the question ------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.6", "CP-4.10", "CP-5.1")
def test_the_person_sees_who_asks_for_what_and_for_how_long_it_is_kept(
    stage: Stage, screen: Screen, asker: int
) -> None:
    requested = ask(stage, asker, "interact", "discover", purpose="asks questions")
    shown = screen.question()
    assert requested == PairingRequested(
        pairing_id=shown.pairing_id,
        verification_code=shown.verification_code,
        expires_at=shown.expires_at,
        retention=RetentionNotice(hours=24, tombstone_days=7),
    )
    assert (shown.client_name, shown.name_in_use, shown.purpose) == ("Agent", False, "asks questions")
    assert (shown.program, shown.pid) == ("/usr/bin/agent", 1000 + asker)
    assert shown.scopes == ("discover", "interact")
    assert shown.retention_hours == 24
    assert len(shown.verification_code) == 6
    assert shown.verification_code.isdecimal()


@pytest.mark.requirement("CP-5.6", "G08")
def test_the_name_is_shown_neutralized(stage: Stage, screen: Screen, asker: int) -> None:
    asked(stage, asker, name="Ag\u202eent\u200b")
    assert screen.question().client_name == "Ag<U+202E>ent<U+200B>"


@pytest.mark.requirement("CP-5.6")
@pytest.mark.parametrize("name", ["Agent", "agent", "  Agent ", "Ａgent"])
def test_a_name_that_reads_like_a_paired_one_is_pointed_out(
    stage: Stage, screen: Screen, asker: int, name: str
) -> None:
    stage.client(label="Agent")
    asked(stage, asker, name=name)
    assert screen.question().name_in_use


def test_the_name_of_a_revoked_client_is_free(stage: Stage, screen: Screen, asker: int) -> None:
    screen.user("revoke", client_id=f"client {stage.client(label='Agent')}")
    asked(stage, asker, name="Agent")
    assert not screen.question().name_in_use


@pytest.mark.parametrize("name", [" ", "\u200b\u200b", "a\nb", "a\u2028b", "x" * 65])
def test_a_name_that_cannot_be_read_is_refused(stage: Stage, screen: Screen, asker: int, name: str) -> None:
    body = ask(stage, asker, name=name)
    assert refusal(body)[0] is ErrorCode.INVALID_PARAMS
    assert body.details["field"] == "clientName"
    assert stage.rows(PAIRINGS) == []


@pytest.mark.requirement("CP-4.4")
@pytest.mark.parametrize(
    "name",
    [
        *("Companion", "companion", " C O M P A N I O N ", "Сompаnіоn", "Companion\u200b", "c0mpan1on!"),
        *("Ｃompanion", "System", "sys-tem", "ЅYSTЕM", "sуs\u202etem", "Host", "h\u00f3st"),
    ],
)
def test_a_name_that_reads_like_the_host_or_the_system_is_refused(
    stage: Stage, screen: Screen, asker: int, name: str
) -> None:
    body = ask(stage, asker, name=name)
    assert refusal(body)[0] is ErrorCode.INVALID_PARAMS
    assert (body.details["field"], body.details["reason"]) == ("clientName", "reserved")
    assert stage.rows(PAIRINGS) == []


@pytest.mark.parametrize("name", ["Companion Agent", "System Monitor", "Compass", "👻", "猫"])
def test_a_name_that_only_reminds_of_them_is_free(
    stage: Stage, screen: Screen, asker: int, name: str
) -> None:
    asked(stage, asker, name=name)


@pytest.mark.parametrize("name", ["x" * 64, "x" * 64 + "\u200b", "猫"])
def test_invisible_code_points_of_a_name_are_not_counted(
    stage: Stage, screen: Screen, asker: int, name: str
) -> None:
    asked(stage, asker, name=name)


def test_two_pairings_have_nothing_in_common(stage: Stage, screen: Screen) -> None:
    first, second = (ask(stage, stage.open()) for _ in range(2))
    assert first.pairing_id != second.pairing_id
    assert first.verification_code != second.verification_code


# -- where nobody can be asked -----------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.1")
def test_access_off_is_refused_and_nobody_is_asked() -> None:
    stage = Stage(attrs.evolve(POLICY, access_enabled=False))
    screen = stage.presenter()
    screen.news()
    body = ask(stage, stage.open())
    assert refusal(body) == (ErrorCode.RUNTIME_UNAVAILABLE, "access_off")
    assert screen.news() == []


@pytest.mark.requirement("CP-5.6")
@pytest.mark.parametrize("person", [None, False])
def test_without_a_person_there_is_no_pairing(stage: Stage, person: bool | None) -> None:
    if person is not None:
        stage.presenter(person=person)
    assert refusal(ask(stage, stage.open())) == (ErrorCode.RUNTIME_UNAVAILABLE, "no_presenter")


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(("action", "reason"), [("hide", "hidden"), ("pause", "paused")])
def test_who_does_not_want_to_be_asked_is_not(
    stage: Stage, screen: Screen, asker: int, action: str, reason: str
) -> None:
    screen.user(action)
    assert refusal(ask(stage, asker)) == (ErrorCode.RUNTIME_UNAVAILABLE, reason)


@pytest.mark.requirement("CP-5.1", "CP-4.9")
@pytest.mark.parametrize("action", ["disable_access", "hide", "pause"])
def test_a_person_who_shuts_the_door_denies_what_is_pending(
    stage: Stage, screen: Screen, asker: int, action: str
) -> None:
    pairing = asked(stage, asker)
    ref = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    screen.user(action)
    assert told(stage, ref) == PairingOutcome(status="denied")
    assert [gone.pairing_id for gone in screen.dismissals()] == [pairing]


@pytest.mark.requirement("CP-5.1")
def test_access_off_comes_before_a_pairing_that_is_still_open(
    stage: Stage, screen: Screen, asker: int
) -> None:
    asked(stage, asker)
    assert approve(stage, screen) == COMMITTED  # open until its key is fetched
    screen.user("disable_access")
    assert refusal(ask(stage, asker)) == (ErrorCode.RUNTIME_UNAVAILABLE, "access_off")


@pytest.mark.requirement("CP-5.6")
def test_where_no_person_can_be_nothing_is_approved(stage: Stage, screen: Screen, asker: int) -> None:
    asked(stage, asker)
    stage.close(screen.connection)
    alone = stage.presenter(person=False)
    assert approve(stage, alone) == rejected("not_armed")
    assert stored(stage) == []


# -- one pairing a connection ------------------------------------------------------------------------------


@pytest.mark.requirement("G10", "CP-5.6")
def test_a_prompt_does_not_grow_after_it_was_shown(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker, "discover")
    shown = screen.present_question()
    stage.wait(1_000)
    wider = ask(stage, asker, "discover", "animate", "notify", "interact")
    assert refusal(wider) == (ErrorCode.RATE_LIMITED, "pairings")
    stage.wait(1_000)
    again = ask(stage, asker, "discover")
    assert refusal(again) == (ErrorCode.RATE_LIMITED, "pairings")
    assert again.details["retryAfterMs"] == OPEN_MS - 2_000
    assert screen.question() == shown
    assert screen.decide(shown) == COMMITTED
    outcome = wait(stage, asker, pairing)
    assert (outcome.status, outcome.scopes) == ("approved", ("discover",))
    assert [client.scopes for client in stored(stage)] == [("discover",)]


@pytest.mark.requirement("CP-4.10", "CP-5.5")
def test_what_the_program_wrote_and_the_code_are_in_no_repr(stage: Stage, screen: Screen, asker: int) -> None:
    question = PairingRequest(client_name="Agent", scopes=("discover",), purpose="a secret plan")
    requested = stage.call(asker, question)
    told = repr((question, requested, stage.rows(PAIRINGS), screen.news()))
    assert "a secret plan" not in told
    assert requested.verification_code not in told


def test_a_second_connection_has_its_own_pairing(stage: Stage, screen: Screen, asker: int) -> None:
    first, second = asked(stage, asker), asked(stage, stage.open())
    assert {pairing.id for pairing in stage.rows(PAIRINGS)} == {first, second}


def test_there_is_a_small_number_in_all() -> None:
    stage = Stage(attrs.evolve(POLICY, limits=Limits(max_pending_pairings=2)))
    screen = stage.presenter()
    asked(stage, stage.open())
    second = stage.open()
    asked(stage, second)
    third = stage.open()
    assert refusal(ask(stage, third)) == (ErrorCode.RATE_LIMITED, "pairings")
    screen.present_question()
    stage.close(second)
    asked(stage, third)


def test_after_a_denial_the_connection_may_ask_again(stage: Stage, screen: Screen, asker: int) -> None:
    asked(stage, asker)
    shown = screen.present_question()
    stage.wait(ARMING)
    assert screen.decide(shown, approved=False) == COMMITTED
    second = asked(stage, asker)
    assert [pairing.id for pairing in stage.rows(PAIRINGS)] == [second]


# -- the decision ------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.1", "CP-5.2")
def test_an_approval_hands_the_key_over_once_and_keeps_only_its_digest(
    stage: Stage, screen: Screen, asker: int
) -> None:
    pairing = asked(stage, asker, "discover", "interact")
    ref = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    assert ref not in stage.replies
    assert approve(stage, screen) == COMMITTED
    outcome = told(stage, ref)
    assert (outcome.status, outcome.scopes) == ("approved", ("discover", "interact"))
    assert outcome.key is not None
    assert len(base64.urlsafe_b64decode(outcome.key + "=")) == 32
    [client] = stored(stage)
    assert (client.id, client.label) == (outcome.client_id, "Agent")
    assert client.key_sha256 == hashlib.sha256(outcome.key.encode()).hexdigest()
    assert outcome.key not in repr(stage.disk.rows) + repr(stage.ledger.rows.contents())
    again = wait(stage, asker, pairing)
    assert again == PairingOutcome(status="approved", client_id=client.id, scopes=outcome.scopes)


@pytest.mark.requirement("CP-5.1")
def test_two_waits_share_one_key(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    refs = [stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000)) for _ in range(2)]
    approve(stage, screen)
    first, second = (told(stage, ref) for ref in refs)
    assert first.key is not None
    assert (second.status, second.key) == ("approved", None)


@pytest.mark.requirement("CP-5.1", "CP-5.2")
def test_the_same_connection_may_then_authenticate(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    outcome = wait(stage, asker, pairing)
    body = stage.call(asker, Authenticate(client_id=outcome.client_id, key=outcome.key))
    assert isinstance(body, AuthenticateResult)


@pytest.mark.requirement("CP-5.2")
def test_before_the_key_is_fetched_nobody_can_authenticate(stage: Stage, screen: Screen, asker: int) -> None:
    asked(stage, asker)
    approve(stage, screen)
    [client] = stored(stage)
    other = stage.open()
    for key in ("", client.key_sha256, "A" * 43):
        body = stage.call(other, Authenticate(client_id=client.id, key=key))
        assert refusal(body)[0] is ErrorCode.UNAUTHENTICATED


@pytest.mark.requirement("G10", "CP-5.3")
def test_fewer_scopes_may_be_granted(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker, "discover", "notify", "interact")
    assert approve(stage, screen, ("interact",)) == COMMITTED
    assert wait(stage, asker, pairing).scopes == ("interact",)
    assert [client.scopes for client in stored(stage)] == [("interact",)]


@pytest.mark.requirement("G10", "CP-5.6")
def test_more_scopes_than_shown_are_rejected_and_it_stays_pending(
    stage: Stage, screen: Screen, asker: int
) -> None:
    pairing = asked(stage, asker, "discover")
    assert approve(stage, screen, ("discover", "interact")) == rejected("invalid")
    assert approve(stage, screen, ()) == rejected("invalid")
    assert wait(stage, asker, pairing).status == "pending"
    assert stored(stage) == []


@pytest.mark.requirement("G10", "CP-5.6")
def test_a_decision_counts_only_for_what_was_on_the_screen_long_enough(
    stage: Stage, screen: Screen, asker: int
) -> None:
    pairing = asked(stage, asker)
    shown = screen.question()
    stage.wait(1_000)
    assert screen.decide(shown) == rejected("not_presented")
    screen.present_question()
    assert screen.decide(shown, digest="0" * 64) == rejected("stale")
    assert screen.decide(shown, approved=False) == rejected("not_armed")
    stage.wait(ARMING)
    assert screen.decide(shown, age=1) == rejected("not_armed")
    assert wait(stage, asker, pairing).status == "pending"
    assert screen.decide(shown) == COMMITTED
    assert screen.decide(shown, approved=False) == too_late("approved", None)


def test_a_denial_is_told(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    ref = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    stage.wait(ARMING)
    screen.decide(shown, approved=False)
    assert told(stage, ref) == PairingOutcome(status="denied")
    assert stored(stage) == []


@pytest.mark.requirement("CP-4.12")
def test_an_approval_that_is_not_saved_grants_nothing(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    ref = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    stage.wait(ARMING)
    stage.saving = False
    with pytest.raises(AssertionError, match="NotSaved"):
        screen.decide(shown)
    assert ref not in stage.replies
    stage.saving = True
    assert wait(stage, asker, pairing).status == "pending"
    assert screen.decide(shown) == COMMITTED
    assert told(stage, ref).key is not None


@pytest.mark.requirement("CP-4.12")
def test_a_key_that_is_not_saved_is_not_handed_over(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    stage.saving = False
    assert wait(stage, asker, pairing) == NotSaved()
    stage.saving = True
    assert wait(stage, asker, pairing).key is not None


# -- the end -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-5.6")
def test_the_asker_gone_takes_the_prompt_from_the_screen(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    stage.wait(ARMING)
    stage.close(asker)
    assert [gone.pairing_id for gone in screen.dismissals()] == [pairing]
    assert screen.decide(shown) == too_late("cancelled", None)
    assert stored(stage) == []
    assert (stage.rows(PAIRINGS), stage.rows(PAIRING_PARKS), stage.rows(SHOWINGS)) == ([], [], [])


@pytest.mark.requirement("CP-5.1")
def test_a_key_that_was_not_fetched_is_no_key(stage: Stage, screen: Screen, asker: int) -> None:
    asked(stage, asker)
    approve(stage, screen)
    assert len(stored(stage)) == 1
    stage.close(asker)
    assert stored(stage) == []


@pytest.mark.requirement("CP-5.1")
def test_a_key_that_was_fetched_outlives_the_connection(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    wait(stage, asker, pairing)
    stage.close(asker)
    assert len(stored(stage)) == 1


@pytest.mark.requirement("CP-5.1")
@pytest.mark.requirement("CP-5.1", "CP-5.2")
def test_a_key_whose_bytes_never_left_the_broker_is_no_key(stage: Stage, screen: Screen, asker: int) -> None:
    """The asker reads no more, then it goes."""
    pairing = asked(stage, asker)
    parked = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    stage.deaf = True
    approve(stage, screen)
    assert told(stage, parked).key is not None
    assert len(stored(stage)) == 1
    stage.close(asker)
    assert stored(stage) == []


@pytest.mark.parametrize("ends", ["cancel", "time"])
def test_a_key_that_is_on_its_way_for_too_long_is_no_key(
    stage: Stage, screen: Screen, asker: int, ends: str
) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    stage.deaf = True
    assert wait(stage, asker, pairing).key is not None
    again = ask(stage, asker)
    assert refusal(again) == (ErrorCode.RATE_LIMITED, "pairings")  # the one before is not done yet
    if ends == "time":
        stage.wait(OPEN_MS)
    else:
        assert stage.call(asker, PairingCancel(pairing_id=pairing)).status == "cancelled"
    assert stored(stage) == []


def test_a_crash_before_the_key_is_fetched_leaves_no_client(stage: Stage, screen: Screen, asker: int) -> None:
    asked(stage, asker)
    approve(stage, screen)
    stage.client(label="Other")
    stage.start()
    assert [client.label for client in stored(stage)] == ["Other"]


def test_it_expires(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    screen.present_question()
    stage.wait(OPEN_MS - 30_000)
    ref = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    stage.wait(29_999)
    assert ref not in stage.replies
    stage.wait(1)
    assert told(stage, ref) == PairingOutcome(status="expired")
    assert [gone.reason for gone in screen.dismissals()] == ["expired"]
    asked(stage, asker)


def test_an_approval_that_nobody_fetches_expires(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    stage.wait(OPEN_MS)
    assert wait(stage, asker, pairing) == PairingOutcome(status="expired")
    assert stored(stage) == []


def test_a_client_that_was_revoked_before_it_fetched_its_key_gets_none(
    stage: Stage, screen: Screen, asker: int
) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    screen.user("revoke", client_id=stored(stage)[0].id)
    assert wait(stage, asker, pairing) == PairingOutcome(status="denied")


def test_cancel_takes_the_question_back(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    ref = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=60_000))
    shown = screen.present_question()
    assert stage.call(asker, PairingCancel(pairing_id=pairing)) == PairingCancelled(status="cancelled")
    assert told(stage, ref) == PairingOutcome(status="cancelled")
    assert [gone.pairing_id for gone in screen.dismissals()] == [pairing]
    stage.wait(ARMING)
    assert screen.decide(shown) == too_late("cancelled", None)


def test_cancel_of_an_approval_takes_the_client_back_until_it_has_its_key(
    stage: Stage, screen: Screen, asker: int
) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    assert stage.call(asker, PairingCancel(pairing_id=pairing)) == PairingCancelled(status="cancelled")
    assert stored(stage) == []
    second = asked(stage, asker)
    approve(stage, screen)
    wait(stage, asker, second)
    assert stage.call(asker, PairingCancel(pairing_id=second)) == PairingCancelled(status="approved")
    assert len(stored(stage)) == 1


def test_a_wait_ends_without_news(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    ref = stage.begin(asker, PairingWait(pairing_id=pairing, wait_ms=1_000))
    stage.wait(1_000)
    assert told(stage, ref) == PairingOutcome(status="pending")
    assert stage.rows(PAIRING_PARKS) == []


def test_a_wait_beyond_the_published_limit_is_refused(stage: Stage, screen: Screen, asker: int) -> None:
    body = wait(stage, asker, asked(stage, asker), 60_001)
    assert refusal(body)[0] is ErrorCode.INVALID_PARAMS
    assert (body.details["field"], body.details["limit"]) == ("waitMs", 60_000)


def test_a_pairing_belongs_to_the_connection_that_asked(stage: Stage, screen: Screen, asker: int) -> None:
    pairing = asked(stage, asker)
    approve(stage, screen)
    other = stage.open()
    assert refusal(wait(stage, other, pairing))[0] is ErrorCode.NOT_FOUND
    assert refusal(stage.call(other, PairingCancel(pairing_id=pairing)))[0] is ErrorCode.NOT_FOUND
    assert wait(stage, asker, pairing).key is not None


def test_the_engine_learns_that_the_pairing_has_ended(stage: Stage, screen: Screen, asker: int) -> None:
    asked(stage, asker)
    assert stage.pushes[asker] == []
    approve(stage, screen)
    assert stage.pushes[asker] == [PairingEnded()]
