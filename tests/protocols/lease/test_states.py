"""The state machine of a lease, and the diagram in the docs that is drawn from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocols.diagrams import state_diagram, state_table
from protocols.lease.states import TRANSITIONS, IllegalStep, LeaseEvent, LeaseState, step

PAGE = Path(__file__).parents[3] / "docs" / "lease.md"
EVERY_STEP = [(state, event) for state in LeaseState for event in LeaseEvent]


@pytest.mark.parametrize(("state", "event"), EVERY_STEP)
def test_a_step_is_in_the_table_or_raises(state: LeaseState, event: LeaseEvent) -> None:
    if event in TRANSITIONS[state]:
        assert step(state, event) is TRANSITIONS[state][event]
    else:
        with pytest.raises(IllegalStep):
            step(state, event)


@pytest.mark.requirement("LP-8")
def test_an_active_lease_ends_only_through_a_grace() -> None:
    leads_to = {
        target for event, target in TRANSITIONS[LeaseState.ACTIVE].items() if event is not LeaseEvent.REBOOT
    }
    assert leads_to == {LeaseState.ACTIVE, LeaseState.GRACE, LeaseState.ENDING}
    assert all(state.protects for state in leads_to)


def test_only_a_begin_or_an_extend_brings_an_ended_lease_back() -> None:
    back = {event for event, target in TRANSITIONS[LeaseState.ENDED].items() if target is LeaseState.ACTIVE}
    assert back == {LeaseEvent.BEGIN, LeaseEvent.EXTEND}


def test_the_diagram_and_the_table_in_the_docs_are_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert state_diagram(TRANSITIONS, LeaseState.ENDED) in page, "docs/lease.md: put the drawn diagram in"
    assert state_table(TRANSITIONS) in page, "docs/lease.md: put the drawn table in"
