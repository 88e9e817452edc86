"""Leases as blocks of work, through a real broker and its owner's questions: both flavours."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.client import aio, blocking
from broker.client.errors import LeaseRefused, NotConnected
from broker.client.keeping import Allow, CloseCheck, Extend, Verdict
from broker.client.leases import Lease
from tests.client.holders import DRIVERS, Driver
from tests.support.broker_process import APP, CONFIG, BrokerProcess, running_broker
from tests.support.lines import until

SLOW_CHECKS = CONFIG.replace("close_check_timeout_seconds = 0.5", "close_check_timeout_seconds = 5")


class Owner:
    """The owner of the machine, who looks at leases and asks whether an app may be closed."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.path = broker.runtime / "ai-protection.sock"
        self._control = broker.control()

    def leases(self, app_key: str = APP) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self._control.call("leases.list")["leases"]
        return [one for one in listed if one["appKey"] == app_key]

    def states(self, app_key: str = APP) -> list[str]:
        return [one["state"] for one in self.leases(app_key)]

    def may_close(self) -> dict[str, Any]:
        """The answer, once nothing holds the question back."""
        while (answer := self._control.call("leases.may_close", appKey=APP))["reason"] == "cooldown":
            pass
        result: dict[str, Any] = answer
        return result

    def run_out(self, _lease: Lease) -> None:
        """Wait until the lease and its grace are over."""
        until(lambda: self.states() == ["expired"])


@pytest.fixture(scope="module")
def lender() -> Iterator[BrokerProcess]:
    """A broker that gives an answer to a close check some time."""
    with (
        tempfile.TemporaryDirectory(prefix="cb-") as name,
        running_broker(Path(name), config=SLOW_CHECKS) as broker,
    ):
        yield broker


@pytest.fixture
def owner(lender: BrokerProcess) -> Iterator[Owner]:
    """Whose machine has no leases left from the test before."""
    owner = Owner(lender)
    until(lambda: not owner.leases())
    yield owner
    until(lambda: not owner.leases())


@pytest.fixture(params=DRIVERS)
def drive(request: pytest.FixtureRequest, lender: BrokerProcess) -> Driver:
    return DRIVERS[request.param](lender.runtime / "ai-protection.sock")


@pytest.mark.requirement("LP-4", "LP-12")
def test_an_app_is_held_during_the_block_and_given_back_at_its_end(owner: Owner, drive: Driver) -> None:
    seen: list[Any] = []
    lease = drive(
        APP,
        lambda lease: seen.append((lease.held, owner.states(), owner.leases()[0]["clientName"])),
        lambda _: seen.append(owner.may_close()["reason"]),
        seconds=60,
    )
    assert seen == [(True, ["active"], "Test"), "leased"]
    assert owner.states() != ["active"]
    assert not lease.held


def test_an_error_in_the_block_gives_the_app_back_and_is_raised_as_it_is(owner: Owner, drive: Driver) -> None:
    def fails(_lease: Lease) -> None:
        raise KeyError("the work failed")

    with pytest.raises(KeyError, match="the work failed"):
        drive(APP, fails, seconds=60)
    assert owner.states() != ["active"]


@pytest.mark.requirement("LP-7")
def test_an_unknown_app_is_refused_before_the_block(owner: Owner, drive: Driver) -> None:
    entered: list[Lease] = []
    with pytest.raises(LeaseRefused) as caught:
        drive("org.example.Unknown", entered.append)
    assert (caught.value.code, entered) == ("unknown_app", [])


@pytest.mark.parametrize("flavour", DRIVERS)
def test_without_a_broker_the_block_is_not_entered_unless_the_lease_is_not_required(
    folder: Path, flavour: str
) -> None:
    drive = DRIVERS[flavour](folder / "s")
    entered: list[bool] = []
    with pytest.raises(NotConnected):
        drive(APP, lambda lease: entered.append(lease.held))
    lease = drive(APP, lambda lease: entered.append(lease.held), required=False)
    assert entered == [False]
    assert isinstance(lease.failure, NotConnected)


def test_a_lease_is_renewed_for_as_long_as_the_block_runs(owner: Owner, drive: Driver) -> None:
    ends: list[str] = []

    def renewed(_lease: Lease) -> bool:
        [one] = owner.leases()
        assert one["state"] == "active"
        ends.append(one["expiresAt"])
        return len(set(ends)) > 4

    drive(APP, lambda lease: until(lambda: renewed(lease)), seconds=1)
    assert ends == sorted(ends)


# -- close checks --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("LP-9", "LP-10", "LP-12")
def test_a_close_check_is_answered_with_extend_while_the_block_runs(owner: Owner, drive: Driver) -> None:
    answers: list[Any] = []
    drive(APP, owner.run_out, lambda _: answers.append(owner.may_close()), seconds=1, renew=False)
    assert (answers[0]["allowed"], answers[0]["reason"]) == (False, "kept")


@pytest.mark.requirement("LP-9", "LP-10")
def test_the_callback_decides_what_a_close_check_is_answered_with(owner: Owner, drive: Driver) -> None:
    asked: list[CloseCheck] = []
    answers: list[bool] = []

    def decide(check: CloseCheck) -> Verdict:
        asked.append(check)
        return Extend(1) if len(asked) == 1 else Allow()

    def asks(_lease: Lease) -> None:
        answers.append(owner.may_close()["allowed"])

    lease = drive(
        APP, owner.run_out, asks, owner.run_out, asks, seconds=1, renew=False, on_close_check=decide
    )
    assert answers == [False, True]
    assert asked == [CloseCheck(APP, 5)] * 2
    assert not lease.held


@pytest.mark.requirement("LP-10", "LP-12")
@pytest.mark.parametrize(("result", "error"), [(KeyError("no idea"), KeyError), (None, TypeError)])
def test_a_callback_that_fails_keeps_the_app_and_is_told_at_the_end(
    owner: Owner, drive: Driver, result: Any, error: type[Exception]
) -> None:
    answers: list[bool] = []

    def decide(_check: CloseCheck) -> Verdict:
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[no-any-return]

    with pytest.raises(error):
        drive(
            APP,
            owner.run_out,
            lambda _: answers.append(owner.may_close()["allowed"]),
            seconds=1,
            renew=False,
            on_close_check=decide,
        )
    assert answers == [False]


# -- a broker that comes and goes ----------------------------------------------------------------------------------


@pytest.mark.requirement("LP-12")
@pytest.mark.parametrize("flavour", DRIVERS)
def test_a_lease_outlives_the_broker_under_the_same_holder(folder: Path, flavour: str) -> None:
    held: list[str] = []

    def look(owner: Owner) -> None:
        until(lambda: owner.states() == ["active"])
        held.append(owner.leases()[0]["holderId"])

    with running_broker(folder) as first:

        def restart(lease: Lease) -> None:
            look(Owner(first))
            first.kill()
            until(lambda: not lease.held)
            with running_broker(folder) as second:
                look(Owner(second))
                until(lambda: lease.held)

        DRIVERS[flavour](first.runtime / "ai-protection.sock")(APP, restart, seconds=60)
    assert len(held) == 2
    assert len(set(held)) == 1


# -- several leases ------------------------------------------------------------------------------------------------


def test_one_holder_holds_several_apps_and_each_only_once(owner: Owner) -> None:
    with (
        blocking.Holder("Test", path=owner.path) as holder,
        holder.lease(APP, seconds=60),
        holder.lease(f"{APP}#profile", seconds=60) as other,
    ):
        assert other.held
        assert owner.leases()[0]["holderId"] == owner.leases(f"{APP}#profile")[0]["holderId"]
        with pytest.raises(ValueError, match="already"), holder.lease(APP):
            pass
    with pytest.raises(RuntimeError, match="context manager"), holder.lease(APP):
        pass


async def test_one_trio_holder_holds_several_apps_and_gives_back_each_at_its_end(owner: Owner) -> None:
    async with aio.Holder.open("Test", path=owner.path) as holder, holder.lease(APP, seconds=60):
        async with holder.lease(f"{APP}#profile", seconds=60):
            assert owner.states(f"{APP}#profile") == ["active"]
        assert owner.states(f"{APP}#profile") != ["active"]
        assert owner.states() == ["active"]
        with pytest.raises(ValueError, match="already"):
            async with holder.lease(APP):
                pass


async def test_a_cancelled_block_gives_the_app_back(owner: Owner) -> None:
    with trio.CancelScope() as scope:
        async with aio.lease(APP, path=owner.path, seconds=60):
            scope.cancel()
            await trio.sleep_forever()
    assert owner.states() != ["active"]
