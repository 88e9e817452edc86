"""The same key with the same normalized parameters is the same request, however it is written down (CP-4.1)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.companion.messages import Snapshot
from protocols.json_values import JSON, JSONObject
from tests.support.companion_world import Session, World, refusal

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
TONE = st.sampled_from(("information", "success", "warning", "error"))
OPTIONS = st.lists(
    st.fixed_dictionaries({"id": TEXT, "label": TEXT}),
    min_size=2,
    max_size=5,
    unique_by=lambda one: one["id"],
)
FULL: dict[str, Any] = {
    "animation.play": st.fixed_dictionaries({"expression": st.sampled_from(("happy", "sad", "neutral"))}),
    "notice.show": st.fixed_dictionaries(
        {"text": TEXT, "tone": TONE, "displayMs": st.integers(1_000, 60_000) | st.just(8_000)}
    ),
    "progress.track": st.fixed_dictionaries(
        {
            "title": TEXT,
            "fraction": st.none() | st.floats(0, 1) | st.integers(0, 1),
            "detail": st.just("") | TEXT,
            "tone": TONE,
        }
    ),
    "interaction.choose": st.fixed_dictionaries({"title": TEXT, "options": OPTIONS}),
    "interaction.ask_text": st.fixed_dictionaries(
        {
            "title": TEXT,
            "placeholder": st.just("") | TEXT,
            "multiline": st.booleans(),
            "maxLength": st.integers(1, 4_000) | st.just(1_000),
        }
    ),
}
"""Every member of each capability's params; those with a default often have it."""
DEFAULTS: JSONObject = {
    "tone": "information",
    "displayMs": 8_000,
    "fraction": None,
    "detail": "",
    "placeholder": "",
    "multiline": False,
    "maxLength": 1_000,
}
WRITTEN = st.sampled_from(sorted(FULL)).flatmap(lambda id: st.tuples(st.just(id), FULL[id]))


def rewritten(params: JSONObject, random: Random) -> JSONObject:
    """The same in other words: members in another order, and some that have their default left out."""
    kept = [
        (name, value)
        for name, value in params.items()
        if not (name in DEFAULTS and value == DEFAULTS[name] and random.random() < 0.5)
    ]
    random.shuffle(kept)
    written = {name: _shuffled(value, random) for name, value in kept}
    if written.get("fraction") in (0, 1):  # one number, however it is written
        written["fraction"] = random.choice((int, float))(written["fraction"])  # type: ignore[arg-type]
    return written


def _shuffled(value: JSON, random: Random) -> JSON:
    """Members of inner objects have no order either; items of an array do."""
    if isinstance(value, list):
        return [_shuffled(item, random) for item in value]
    if isinstance(value, dict):
        return dict(random.sample(list(value.items()), len(value)))
    return value


def create(session: Session, capability: str, params: JSONObject, **members: Any) -> Any:
    return session.create(capability, params, timeout_ms=60_000, idempotency_key="k", **members)


def new_session() -> Session:
    world = World()
    world.presenter.ready()
    return world.session("c1")


@pytest.mark.requirement("CP-4.1", "CP-4.2", "CP-3.1", "G11")
@settings(max_examples=100, deadline=None)
@given(WRITTEN, st.randoms(use_true_random=False))
def test_however_it_is_written_it_is_the_same_request(
    written: tuple[str, JSONObject], random: Random
) -> None:
    capability, params = written
    session = new_session()
    made = create(session, capability, rewritten(params, random), task_id="t1")
    assert isinstance(made, Snapshot)
    for _ in range(3):
        again = create(session, capability, rewritten(params, random), task_id=random.choice((None, "t2")))
        assert again == made
        assert again.task_id == "t1"
    assert len(session.world.presenter.shown()) == 1


@pytest.mark.requirement("CP-4.1", "G11")
@settings(max_examples=100, deadline=None)
@given(WRITTEN, st.data())
def test_whatever_else_is_meant_is_a_conflict(written: tuple[str, JSONObject], data: st.DataObject) -> None:
    capability, params = written
    session = new_session()
    made = create(session, capability, params)
    assert isinstance(made, Snapshot)
    name = data.draw(st.sampled_from(sorted(params)))
    other = data.draw(FULL[capability].filter(lambda one: one[name] != params[name]))
    body = create(session, capability, {**params, name: other[name]})
    assert refusal(body)[0] == "IDEMPOTENCY_CONFLICT"
    assert session.get(made.request_id) == made
    assert len(session.world.presenter.shown()) == 1
