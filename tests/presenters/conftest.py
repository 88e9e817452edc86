"""A terminal for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.seat import Seat


@pytest.fixture
def seat() -> Iterator[Seat]:
    """A terminal with the presenter in it, which has said that it is ready."""
    seat = Seat("--stdio")
    yield seat
    seat.close()
