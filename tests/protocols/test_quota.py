"""wire.md, quotas: rates and charges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import OurError
from protocols.quota import Account, TokenBucket

pytestmark = pytest.mark.requirement("CP-4.5")


def test_a_burst_is_granted_and_then_the_rate() -> None:
    bucket = TokenBucket(rate_per_second=2, burst=3)
    assert [bucket.take(0) for _ in range(4)] == [0, 0, 0, 500]
    assert bucket.take(499) == 1
    assert bucket.take(500) == 0
    assert bucket.take(500) == 500


def test_a_rest_does_not_save_more_than_one_burst() -> None:
    bucket = TokenBucket(rate_per_second=2, burst=3)
    assert [bucket.take(1_000_000) for _ in range(4)] == [0, 0, 0, 500]


def test_a_clock_that_steps_back_gives_and_takes_nothing() -> None:
    bucket = TokenBucket(rate_per_second=1, burst=1)
    assert bucket.take(5_000) == 0
    assert bucket.take(0) == 1_000
    assert bucket.take(1_000) == 0


@given(st.integers(1, 1_000), st.integers(1, 50), st.lists(st.integers(0, 500), max_size=200))
def test_no_span_of_time_sees_more_than_a_burst_and_its_rate(
    rate: int, burst: int, pauses: list[int]
) -> None:
    bucket, now, granted = TokenBucket(rate, burst), 0, 0
    for pause in pauses:
        now += pause
        granted += bucket.take(now) == 0
    assert granted <= burst + now * rate // 1_000


@given(st.integers(1, 1_000), st.integers(1, 5), st.lists(st.integers(0, 20), max_size=30))
def test_who_waits_as_long_as_told_is_granted_and_a_millisecond_less_is_not_enough(
    rate: int, burst: int, pauses: list[int]
) -> None:
    bucket, now = TokenBucket(rate, burst), 0
    for pause in pauses:
        now += pause
        if retry_after := bucket.take(now):
            assert retry_after == 1 or bucket.take(now + retry_after - 1) == 1
            now += retry_after
            assert bucket.take(now) == 0


def test_a_charge_beyond_its_limit_is_not_made() -> None:
    account = Account({"calls": 1, "waits": 2})
    assert [account.charge("calls"), account.charge("calls"), account.charge("waits")] == [True, False, True]
    assert (account.held("calls"), account.held("waits"), account.total()) == (1, 1, 2)


def test_a_released_charge_makes_room() -> None:
    account = Account({"calls": 1})
    assert account.charge("calls")
    account.release("calls")
    assert account.total() == 0
    assert account.charge("calls")


def test_releasing_what_was_not_charged_is_our_own_error() -> None:
    account = Account({"calls": 1, "waits": 1})
    account.charge("waits")
    with pytest.raises(OurError):
        account.release("calls")
    assert account.total() == 1


@given(st.lists(st.sampled_from(["calls", "waits"])))
def test_an_account_is_empty_once_all_charges_are_released(names: list[str]) -> None:
    account = Account({"calls": 3, "waits": 1})
    held = [name for name in names if account.charge(name)]
    assert account.total() == len(held)
    for name in held:
        account.release(name)
    assert account.total() == 0
