"""What discovery says is what requests.create does: for every capability, those of packs among them (CP-2.2, CP-7.4).

Nothing here knows a capability by its name.  What is asked for is drawn from its description, and each member of the
description is held against what happens.
"""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.companion.capabilities import CapabilityDescription, Catalog, Interaction, Kind
from protocols.companion.discovery import DescribeCapability, ListCharacters, ListStyles
from protocols.companion.messages import Snapshot
from protocols.companion.pairing import SCOPES
from protocols.companion.states import State
from protocols.json_values import JSON, JSONObject
from protocols.presenter.messages import Answer, Attention, Finished, Setting
from protocols.refusal import Refused
from tests.support.companion_world import Session, World, refusal
from tests.support.packs import catalog_with, pip
from tests.support.schema_values import accepted_object, nearly

CATALOG: Catalog = catalog_with(pip())
pytestmark = pytest.mark.requirement("CP-2.2", "CP-7.4")
for_every_capability = pytest.mark.parametrize("id", CATALOG.capabilities)


class Stage:
    """A world with the sample pack, and one client that may do everything."""

    def __init__(self) -> None:
        self.world = World(catalog=CATALOG)
        self.world.presenter.ready()
        self.session = self.world.session("c1", *SCOPES)

    def describe(self, id: str) -> CapabilityDescription:
        described = self.session.call(DescribeCapability(id=id))
        assert isinstance(described, CapabilityDescription)
        return described

    def ask(self, described: CapabilityDescription, session: Session | None = None, **members: Any) -> Any:
        """A request that the description allows, by a character that supports it unless another is named."""
        members.setdefault("character", described.characters[0])
        members.setdefault("params", self.sample(described))
        members.setdefault("timeout_ms", described.limits.min_timeout_ms)
        return (session or self.session).create(described.id, **members)

    def sample(self, described: CapabilityDescription) -> JSONObject:
        """Params that the description allows."""
        return self.meant(described, smallest(described.input_schema))

    def meant(self, described: CapabilityDescription, params: JSONObject) -> JSONObject:
        """The params with what no schema can say: an expression that the character has, option ids that differ."""
        if "expression" in params:
            characters = {one.id: one for one in self.session.call(ListCharacters()).characters}
            params = {**params, "expression": characters[described.characters[0]].expressions[0]}
        if isinstance(params.get("options"), list):
            options: Any = params["options"]
            params = {**params, "options": [{**one, "id": f"o{at}"} for at, one in enumerate(options)]}
        return params

    def shown(self, described: CapabilityDescription) -> Snapshot:
        """A request that is on the screen, for as long as it may be."""
        made = self.ask(described, timeout_ms=described.limits.max_timeout_ms)
        self.world.presenter.presented(made.request_id)
        snapshot = self.session.get(made.request_id)
        assert isinstance(snapshot, Snapshot)
        return snapshot


def smallest(schema: Any) -> Any:
    """The least that an object schema accepts."""
    values: dict[str, Any] = {}
    for name in schema["required"]:
        member = schema["properties"][name]
        if "enum" in member:
            values[name] = member["enum"][0]
        elif member["type"] == "array":
            values[name] = [smallest(member["items"])] * member["minItems"]
        else:
            values[name] = "x" if member["type"] == "string" else member["minimum"]
    return values


@pytest.fixture
def stage() -> Stage:
    return Stage()


def field_of(body: object) -> tuple[str, Any]:
    assert isinstance(body, Refused), body
    return body.code.value, body.details.get("field")


STAGE = Stage()
"""Shared by the examples of one property: each leaves nothing open."""


@for_every_capability
@given(st.data())
def test_the_input_schema_says_exactly_what_params_are_taken(id: str, data: st.DataObject) -> None:
    described = STAGE.describe(id)
    schema = described.input_schema
    if data.draw(st.booleans()):
        params = STAGE.meant(described, data.draw(accepted_object(schema)))
        assert jsonschema.Draft202012Validator(schema).is_valid(params)
    else:
        params = nearly(schema, data)
        if jsonschema.Draft202012Validator(schema).is_valid(params):
            params = STAGE.meant(described, params)
    body = STAGE.ask(described, params=params)
    if jsonschema.Draft202012Validator(schema).is_valid(params):
        assert isinstance(body, Snapshot), (params, body)
        STAGE.session.cancel(body.request_id)
    else:
        code, field = field_of(body)
        assert code == "INVALID_PARAMS"
        assert str(field).startswith("params")


@for_every_capability
@pytest.mark.requirement("CP-2.9")
def test_the_limits_are_the_bounds_of_the_timeout(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    low, high = described.limits.min_timeout_ms, described.limits.max_timeout_ms
    for timeout_ms in (low, high):
        assert isinstance(stage.ask(described, timeout_ms=timeout_ms), Snapshot)
    for timeout_ms in (low - 1, high + 1):
        assert field_of(stage.ask(described, timeout_ms=timeout_ms)) == ("INVALID_PARAMS", "timeoutMs")


@for_every_capability
@pytest.mark.requirement("CP-5.3")
def test_the_required_scopes_are_enough_and_nothing_else_is(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    enough = stage.world.session("enough", *described.required_scopes)
    assert isinstance(stage.ask(described, enough), Snapshot)
    others = stage.world.session("others", *(set(SCOPES) - set(described.required_scopes)))
    assert refusal(stage.ask(described, others))[0] == "FORBIDDEN"


@for_every_capability
@pytest.mark.requirement("CP-2.4", "CP-2.16")
def test_the_characters_are_those_that_do_it(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    params = stage.sample(described)
    if "expression" in params:
        params["expression"] = "happy"
    for character in stage.session.call(ListCharacters()).characters:
        assert (id in character.capabilities) == (character.id in described.characters)
        body = stage.ask(described, character=character.id, params=params)
        if character.id in described.characters:
            assert (body.resolved_character, body.substitution) == (character.id, None)
        else:
            assert refusal(body)[0] == "UNSUPPORTED_CAPABILITY"


@for_every_capability
@pytest.mark.requirement("CP-2.7", "CP-2.16")
def test_the_styles_apply_to_what_they_list(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    for style in stage.session.call(ListStyles()).styles:
        body = stage.ask(described, style=style.id)
        if id in style.capabilities:
            assert (body.resolved_style, body.substitution) == (style.id, None)
        else:
            assert refusal(body)[0] == "UNSUPPORTED_STYLE"


@for_every_capability
@pytest.mark.requirement("CP-2.16")
def test_the_declared_substitute_is_what_is_done_instead(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    for character in CATALOG.characters.keys() - set(described.characters):
        body = stage.ask(described, character=character, allow_substitution=True)
        done = described.substitute or id
        assert (body.capability, body.resolved_capability) == (id, done)
        assert body.substitution is not None
        assert body.resolved_character in CATALOG.descriptions[done].characters


@for_every_capability
def test_less_motion_changes_what_says_so(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    stage.world.presenter.user("set", setting=Setting(reduced_motion=True))
    body = stage.ask(described)
    still = described.reduced_motion == "still"
    assert (body.substitution is not None) == still
    assert (stage.world.presenter.picture(body.request_id).motion == "still") == still


@for_every_capability
@pytest.mark.requirement("CP-2.9")
def test_it_is_cancelled_and_hidden_as_declared(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    assert (described.cancelable, described.on_cancel, described.on_hidden) == (True, "withdraw", "cancel")
    cancelled, hidden = stage.shown(described), stage.shown(described)
    assert stage.session.cancel(cancelled.request_id).reason == "cancelled_by_client"
    stage.world.presenter.user("hide")
    assert stage.session.get(hidden.request_id).reason == "hidden_by_user"
    assert stage.world.presenter.dismissed().keys() >= {cancelled.request_id, hidden.request_id}


@for_every_capability
@pytest.mark.requirement("CP-2.1", "CP-3.11", "CP-2.9")
def test_the_updatable_fields_and_no_others_can_be_updated(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    values: dict[str, JSON] = {"fraction": 0.5, "detail": "x", "tone": "error", "finished": True}
    properties: Any = described.input_schema["properties"]
    for name in [*sorted(properties.keys() - {"finished"}), "finished"]:
        shown = stage.session.get(stage.shown(described).request_id)
        value = values.get(name, "x")
        body = stage.session.update(shown.request_id, shown.revision, **{name: value})
        if name in described.updatable_fields:
            assert isinstance(body, Snapshot), name
        else:
            assert field_of(body) == ("INVALID_PARAMS", f"params.{name}")
        stage.session.cancel(shown.request_id)


@for_every_capability
@pytest.mark.requirement("CP-1.1", "CP-2.9", "CP-2.11")
def test_it_completes_as_declared_and_its_result_is_of_the_output_schema(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    shown = stage.shown(described)
    complete(stage, described, shown)
    ended = stage.session.get(shown.request_id)
    reason = {"user_response": "answered"}.get(described.completion, described.completion)
    assert (ended.state, ended.reason) == (State.COMPLETED, reason)
    jsonschema.validate(ended.result, described.output_schema)


def complete(stage: Stage, described: CapabilityDescription, shown: Snapshot) -> None:
    """Bring about what the description calls its completion."""
    presenter = stage.world.presenter
    if described.completion == "presented":
        stage.world.advance(described.limits.max_timeout_ms)
    elif described.kind is Kind.ANIMATION:
        presenter.say(Finished(request_id=shown.request_id))
    elif described.kind is Kind.PROGRESS:
        stage.session.update(shown.request_id, shown.revision, finished=True)
    else:
        picture = presenter.picture(shown.request_id)
        choice = {Interaction.CHOICE: {"selectedId": "o1"}, Interaction.TEXT: {"text": "x"}}
        stage.world.advance(500)
        said = Answer(
            request_id=shown.request_id,
            revision=picture.revision,
            digest=picture.digest,
            input_started_ms=0,
            result={**choice[described.interaction]},
        )
        presenter.say(said)


@for_every_capability
@pytest.mark.requirement("CP-3.8")
def test_attention_holds_the_display_where_it_is_declared(stage: Stage, id: str) -> None:
    described = stage.describe(id)
    shown = stage.shown(described)
    stage.world.presenter.say(Attention(request_id=shown.request_id, held=True))
    stage.world.advance(described.limits.max_timeout_ms - 1)
    over = stage.session.get(shown.request_id).reason == "presented"
    assert over == (described.completion == "presented" and not described.pause_display_on)
