"""requests.create: its checks, their order, and idempotency (companion.md, Requests)."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.companion.rows import REQUESTS, SETTINGS, Settings
from handlers.policy import Limits
from protocols.companion.capabilities import Catalog, Interaction, Kind
from protocols.companion.catalog import CATALOG
from protocols.companion.characters import Character, Style
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import State
from protocols.errors import InvalidValue
from protocols.json_values import JSON, JSONObject
from protocols.refusal import Refused
from protocols.structure import structure
from tests.support.companion_world import CHOICE, Session, World, refusal

OTHER_CHOICE: JSONObject = {**CHOICE, "title": "Delete?"}
TURNED: JSON = [{"id": "deny", "label": "Deny"}, {"id": "allow", "label": "Allow"}]
BAD_CHOICE: JSONObject = {**CHOICE, "title": ""}


def field_of(body: Any) -> tuple[str, Any, Any]:
    assert isinstance(body, Refused), body
    return body.code.value, body.details.get("field"), body.details.get("limit")


def stored(world: World) -> int:
    return len(world.ledger.rows.all(REQUESTS))


@pytest.mark.requirement("CP-3.1", "CP-3.3")
def test_an_accepted_request_is_told_in_full(world: World, session: Session) -> None:
    snapshot = session.choose(task_id="t1", timeout_ms=60_000)
    assert snapshot == Snapshot(
        request_id=snapshot.request_id,
        runtime_instance_id="run 1",
        capability="interaction.choose",
        state=State.RUNNING,
        revision=1,
        created_at="2027-01-15T08:00:00.000Z",
        deadline_at="2027-01-15T08:01:00.000Z",
        displayed_at=None,
        ended_at=None,
        resolved_capability="interaction.choose",
        resolved_character="aion",
        resolved_style="default",
        substitution=None,
        reason=None,
        result=None,
        task_id="t1",
    )
    assert session.get(snapshot.request_id) == snapshot


@pytest.mark.requirement("CP-3.2", "CP-3.4")
def test_a_request_that_nobody_can_see_yet_is_queued_or_running_and_never_awaiting(world: World) -> None:
    world.presenter.gone()
    world.presenter.ready()
    session = world.session("c1")
    states = [session.choose().state for _ in range(4)]
    assert states == [State.RUNNING, State.RUNNING, State.RUNNING, State.QUEUED]


@pytest.mark.requirement("CP-4.4", "CP-1.4")
def test_the_source_shown_is_the_pairings_label(world: World, session: Session) -> None:
    snapshot = session.choose()
    assert world.presenter.picture(snapshot.request_id).source.label == "C1"


# -- the order of the checks -------------------------------------------------------------------------------


@pytest.mark.requirement("CP-3.2")
def test_the_checks_come_in_the_documented_order() -> None:
    """One call that is wrong in every way; each time its first fault is mended, the next one is told."""
    world = World(Limits(max_queued_per_client=1))
    session = world.session("c1", "notify")
    made_with_key = {"idempotency_key": "k"}
    world.presenter.ready()
    session.notice({}, **made_with_key)
    world.presenter.gone()

    def told(capability: str, params: JSONObject, **members: Any) -> tuple[str, Any]:
        body = session.create(capability, params, **members)
        assert isinstance(body, Refused)
        return body.code.value, body.details.get("field") or body.details.get("reason")

    wrong: dict[str, Any] = {"timeout_ms": 0, "character": "x", "style": "x"}
    assert told("no.such", {}, **wrong, **made_with_key) == ("IDEMPOTENCY_CONFLICT", None)
    assert told("interaction.choose", BAD_CHOICE, **wrong)[0] == "FORBIDDEN"
    assert told("no.such", {}, **wrong) == ("UNSUPPORTED_CAPABILITY", None)
    assert told("notice.show", {"text": ""}, **wrong) == ("INVALID_PARAMS", "params.text")
    assert told("notice.show", {"text": "x"}, **wrong) == ("INVALID_PARAMS", "timeoutMs")
    wrong["timeout_ms"] = 1_000
    assert told("notice.show", {"text": "x"}, **wrong) == ("INVALID_PARAMS", "character")
    wrong["character"] = "aion"
    assert told("notice.show", {"text": "x"}, **wrong) == ("UNSUPPORTED_STYLE", None)
    wrong["style"] = "default"
    assert told("notice.show", {"text": "x"}, **wrong) == ("RUNTIME_UNAVAILABLE", "no_presenter")
    world.presenter.ready()
    assert told("notice.show", {"text": "x"}, **wrong) == ("QUEUE_FULL", "queue")


@pytest.mark.requirement("CP-3.2")
def test_a_refused_call_leaves_no_record(world: World, session: Session) -> None:
    before = stored(world)
    for body in (
        session.create("interaction.choose", BAD_CHOICE),
        session.create("no.such", {}),
        session.create("notice.show", {"text": "x"}, style="x"),
    ):
        assert isinstance(body, Refused)
    assert stored(world) == before
    assert world.presenter.pictures() == []


@pytest.mark.requirement("CP-5.3")
@pytest.mark.parametrize(
    ("scopes", "capability", "params"),
    [
        (("notify", "discover"), "interaction.choose", CHOICE),
        (("interact", "animate"), "notice.show", {"text": "x"}),
    ],
)
def test_each_capability_needs_its_scope(
    world: World, scopes: tuple[str, ...], capability: str, params: JSONObject
) -> None:
    assert refusal(world.session("c2", *scopes).create(capability, params))[0] == "FORBIDDEN"


@pytest.mark.requirement("CP-2.16")
def test_an_unknown_capability_or_style_is_refused_even_if_a_substitute_is_allowed(session: Session) -> None:
    unknown = session.create("interaction.vote", {}, allow_substitution=True)
    assert refusal(unknown)[0] == "UNSUPPORTED_CAPABILITY"
    style = session.create("interaction.choose", CHOICE, style="neon", allow_substitution=True)
    assert refusal(style)[0] == "UNSUPPORTED_STYLE"


@pytest.mark.requirement("CP-7.2", "CP-2.16")
def test_a_character_or_style_that_does_not_go_with_the_capability_is_refused() -> None:
    catalog = Catalog.of(
        characters=(*CATALOG.characters.values(), Character("mute", "Mute")),
        styles=(*CATALOG.styles.values(), Style("plain", "Plain", ("notice.show",))),
        capabilities=CATALOG.capabilities.values(),
    )
    world = World(catalog=catalog)
    world.presenter.ready()
    session = world.session("c1")
    mute = session.create("interaction.choose", CHOICE, character="mute")
    assert refusal(mute)[0] == "UNSUPPORTED_CAPABILITY"
    plain = session.create("interaction.choose", CHOICE, style="plain")
    assert refusal(plain)[0] == "UNSUPPORTED_STYLE"
    assert session.notice(style="plain").resolved_style == "plain"


@pytest.mark.requirement("CP-2.14")
def test_options_with_one_id_are_refused_under_their_path(session: Session) -> None:
    twice: JSONObject = {"title": "Go?", "options": [{"id": "y", "label": "A"}, {"id": "y", "label": "B"}]}
    assert field_of(session.create("interaction.choose", twice)) == ("INVALID_PARAMS", "params.options", None)


@pytest.mark.requirement("G09")
@pytest.mark.parametrize(
    ("timeout_ms", "limit"),
    [(2_592_000_000, 3_600_000), (2_147_483_648, 3_600_000), (0, 1_000), (-1, 1_000)],
)
def test_a_timeout_out_of_bounds_is_refused_with_the_bound(
    session: Session, timeout_ms: int, limit: int
) -> None:
    body = session.create("interaction.choose", CHOICE, timeout_ms=timeout_ms)
    assert field_of(body) == ("INVALID_PARAMS", "timeoutMs", limit)


@pytest.mark.requirement("CP-4.9")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Settings(access=False, hidden=True, paused=True), "access_off"),
        (Settings(hidden=True, paused=True), "hidden"),
        (Settings(paused=True), "paused"),
        (Settings(), "no_presenter"),
    ],
)
def test_what_the_user_said_is_the_reason_before_what_is_missing(
    world: World, session: Session, said: Settings, reason: str
) -> None:
    world.presenter.gone()
    world.ledger.load([(SETTINGS, said)])
    body = session.create("notice.show", {"text": "x"})
    assert refusal(body) == ("RUNTIME_UNAVAILABLE", reason)


@pytest.mark.parametrize(
    "draws",
    [
        None,
        {"kinds": tuple(Kind), "interactions": ()},
        {"kinds": (Kind.NOTICE,), "interactions": (Interaction.CHOICE,)},
        {"person": False},
    ],
    ids=["away", "no choices", "no interactions", "nobody there"],
)
def test_a_presenter_that_is_away_or_cannot_ask_it_is_no_presenter(
    world: World, session: Session, draws: dict[str, Any] | None
) -> None:
    world.presenter.gone()
    if draws is not None:
        world.presenter.ready(**draws)
        assert isinstance(session.create("notice.show", {"text": "x"}), Snapshot)
    body = session.create("interaction.choose", CHOICE)
    assert refusal(body) == ("RUNTIME_UNAVAILABLE", "no_presenter")


@pytest.mark.requirement("CP-4.5")
def test_a_client_and_all_together_have_a_published_number_of_open_requests() -> None:
    world = World(Limits(max_queued_per_client=2, max_queued_total=3))
    world.presenter.ready()
    one, two = world.session("c1"), world.session("c2")
    first = one.choose()
    one.choose()
    assert field_of(one.create("interaction.choose", CHOICE)) == ("QUEUE_FULL", None, 2)
    two.choose()
    assert field_of(two.create("interaction.choose", CHOICE)) == ("QUEUE_FULL", None, 3)
    one.cancel(first.request_id)
    two.choose()


@pytest.mark.requirement("CP-4.6")
def test_a_full_queue_refuses_the_new_and_keeps_the_old() -> None:
    world = World(Limits(max_queued_per_client=2, max_displayed=1))
    world.presenter.ready()
    session = world.session("c1")
    accepted = [session.notice().request_id, session.choose().request_id]
    assert isinstance(session.create("interaction.choose", CHOICE), Refused)
    assert [session.get(id).state for id in accepted] == [State.RUNNING, State.QUEUED]


# -- idempotency -------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-4.8")
def test_nothing_is_merged_and_nobody_can_ask_for_it(session: Session) -> None:
    first, second = session.notice(), session.notice()
    assert first.request_id != second.request_id
    assert [session.get(one.request_id).request_id for one in (first, second)] == [
        first.request_id,
        second.request_id,
    ]
    asked: JSONObject = {
        "capability": "notice.show",
        "params": {"text": "x"},
        "timeoutMs": 1_000,
        "mergeKey": "m",
    }
    with pytest.raises(InvalidValue, match="mergeKey"):
        structure(CreateRequest, asked)


@pytest.mark.requirement("CP-4.1", "G11", "CP-4.2")
def test_the_same_key_and_parameters_are_the_same_request(world: World) -> None:
    one, two = world.session("c1"), world.session("c1")
    world.holding = True  # neither is on disk when the other is decided
    refs = [
        one.ask(
            CreateRequest(
                capability="interaction.choose", params=CHOICE, timeout_ms=1_000, idempotency_key="k"
            )
        )
        for one in (one, two)
    ]
    world.holding = False
    world.settle()
    assert world.reply(refs[0]) == world.reply(refs[1])
    assert len(world.presenter.pictures()) == 1


@pytest.mark.requirement("CP-4.1", "G11")
def test_after_the_answer_the_same_key_still_finds_the_request(world: World, session: Session) -> None:
    made = session.choose(idempotency_key="k")
    world.presenter.presented(made.request_id)
    world.advance(500)
    world.presenter.answer(made.request_id, "allow")
    reordered: JSONObject = dict(reversed(CHOICE.items()))
    again = session.create("interaction.choose", reordered, idempotency_key="k")
    assert (again.request_id, again.state, again.result) == (
        made.request_id,
        State.COMPLETED,
        {"selectedId": "allow"},
    )
    assert len(world.presenter.pictures()) == 1


@pytest.mark.requirement("CP-4.1", "G11")
@pytest.mark.parametrize(
    "changed",
    [
        {"params": OTHER_CHOICE},
        {"params": BAD_CHOICE},
        {"params": {**CHOICE, "options": TURNED}},
        {"timeout_ms": 59_999},
        {"timeout_ms": -1},
        {"character": "aion"},
        {"style": "default"},
        {"allow_substitution": True},
        {"capability": "notice.show"},
        {"capability": "no.such"},
    ],
)
def test_the_same_key_with_other_parameters_is_a_conflict(session: Session, changed: dict[str, Any]) -> None:
    session.choose(idempotency_key="k")
    call = {"capability": "interaction.choose", "params": CHOICE, **changed}
    body = session.create(idempotency_key="k", **call)
    assert refusal(body)[0] == "IDEMPOTENCY_CONFLICT"


@pytest.mark.requirement("CP-4.1")
def test_what_is_left_out_equals_its_default_and_the_task_id_plays_no_part(session: Session) -> None:
    made = session.notice(idempotency_key="k", task_id="t1")
    same = session.notice(
        {"displayMs": 8_000, "tone": "information"},
        idempotency_key="k",
        task_id="t2",
        allow_substitution=False,
    )
    assert same == made
    assert same.task_id == "t1"


@pytest.mark.requirement("CP-4.1")
def test_keys_are_each_clients_own(world: World, session: Session) -> None:
    made = session.choose(idempotency_key="k")
    other = world.session("c2").create("interaction.choose", OTHER_CHOICE, idempotency_key="k")
    assert isinstance(other, Snapshot)
    assert other.request_id != made.request_id


def test_a_hit_is_answered_while_hidden_and_while_full() -> None:
    world = World(Limits(max_queued_per_client=1))
    world.presenter.ready()
    session = world.session("c1")
    made = session.choose(idempotency_key="k")
    assert session.choose(idempotency_key="k") == made
    world.presenter.user("hide")
    again = session.choose(idempotency_key="k")
    assert (again.request_id, again.state) == (made.request_id, State.CANCELLED)


def test_without_a_key_every_call_is_a_new_request(session: Session) -> None:
    assert session.choose().request_id != session.choose().request_id


@pytest.mark.requirement("CP-4.12")
def test_a_request_that_could_not_be_stored_was_never_accepted(world: World, session: Session) -> None:
    before = stored(world)
    world.holding = True
    ref = session.ask(CreateRequest(capability="interaction.choose", params=CHOICE, timeout_ms=1_000))
    assert world.reply(ref) is None
    world.fail_commit()
    assert type(world.reply(ref)).__name__ == "NotSaved"
    assert stored(world) == before
    assert world.presenter.pictures() == []
