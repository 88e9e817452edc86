"""What a draft says of its own changes: what the steps behind a decision go by."""

from __future__ import annotations

from typing import cast

from handlers.environment import Environment
from handlers.policy import Policy
from handlers.presenter.rows import PULSE, SHOWINGS, Pulse
from handlers.rule import Draft, View

OLD = Pulse(7, 100, revision=4)


class OldPulse:
    """One row, of the pulse."""

    def get(self, table: object, key: str) -> Pulse | None:
        return OLD if table is PULSE else None


def draft() -> Draft:
    return Draft(cast(View, OldPulse()), Environment(Policy(), "run", "boot"))


def test_a_change_is_told_once_with_the_row_before_it_and_the_newest_one() -> None:
    changing = draft()
    changing.put(PULSE, Pulse(7, 200))
    changing.put(PULSE, Pulse(7, 300))
    assert changing.changes(PULSE) == [(OLD, Pulse(7, 300, revision=5))]
    assert changing.changes(SHOWINGS) == []


def test_a_row_that_goes_has_none_after_it_and_one_that_never_was_is_left_out() -> None:
    changing = draft()
    changing.drop(PULSE, "presenter")
    changing.drop(SHOWINGS, "nothing")
    assert changing.changes(PULSE) == [(OLD, None)]
    assert changing.changes(SHOWINGS) == []
