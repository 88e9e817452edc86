"""What a draft says of its own changes: what the steps behind a decision go by."""

from __future__ import annotations

from typing import cast

import hypothesis
import hypothesis.strategies as st

from handlers.environment import Environment
from handlers.policy import Policy
from handlers.presenter.rows import PULSE, SHOWINGS, Pulse
from handlers.rule import Draft, View
from tests.support.memory_disk import MemoryDisk
from tests.support.toy_routes import PAPERS, Item, order_of

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


# -- reading in order, and counting, over its own changes ------------------------------------------------------


class Committed:
    """A view of rows that are all on disk."""

    def __init__(self, items: list[Item]) -> None:
        self.disk = MemoryDisk()
        self.disk.rows = {(PAPERS.name, item.key): item for item in items}

    def get(self, table: object, key: str) -> object:
        return self.disk.read(PAPERS, key)

    def up_to(self, table: object, index: str, value: str, limit: int, start: str) -> object:
        return self.disk.up_to(PAPERS, index, (start, value), limit, ())

    def count(self, table: object, index: str, value: str) -> int:
        return self.disk.count(PAPERS, index, value, ())


ITEMS = st.builds(Item, st.sampled_from("uvwxyz"), st.sampled_from(("ann", "bob")), st.integers(0, 9))


@hypothesis.given(
    st.lists(ITEMS, unique_by=lambda item: item.key),
    st.lists(st.one_of(ITEMS, st.sampled_from("uvwxyz"))),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(1, 6),
)
@hypothesis.settings(deadline=None)
def test_rows_in_order_and_their_count_are_those_that_the_draft_leaves(
    committed: list[Item], changes: list[Item | str], first: int, last: int, limit: int
) -> None:
    changing = Draft(cast(View, Committed(committed)), Environment(Policy(), "run", "boot"))
    rows = {item.key: item for item in committed}
    for change in changes:
        if isinstance(change, Item):
            rows[change.key] = changing.put(PAPERS, change)
        else:
            changing.drop(PAPERS, change)
            rows.pop(change, None)
    start, end = order_of(first), order_of(last + 1)
    within = sorted(
        (order_of(item.value, item.key), item) for item in rows.values() if first <= item.value <= last
    )
    assert changing.up_to(PAPERS, "order", end, limit, start) == [item for _, item in within][:limit]
    assert changing.count(PAPERS, "owner", "ann") == sum(item.owner == "ann" for item in rows.values())
