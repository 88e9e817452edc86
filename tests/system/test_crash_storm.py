"""Two clients on four connections, the person and a lease holder at once, and SIGKILL among them: what anybody was
told has to hold, and what nobody was told may have happened wholly or not at all.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.crashes import CONFIG, pushed, ready_presenter
from tests.support.leases_over_crashes import listed, same_time
from tests.support.storm import ENDED, Asked, Journal, storm

SEEDS = (1, 2, 3)
Snapshots = dict[str, Any]


@attrs.frozen
class Aftermath:
    """The journal, and what the keys in it led to after two restarts and after a retry; None for no request."""

    journal: Journal
    first: Snapshots
    second: Snapshots
    leases: dict[str, Any]
    retried: Snapshots
    retried_again: Snapshots
    prompts: list[str]

    def found(self) -> list[tuple[Asked, Any]]:
        """The requests that were there after the restart."""
        return [(asked, self.first[asked.key]) for asked in self.journal.asked if self.first[asked.key]]


@pytest.fixture(scope="module", params=SEEDS)
def aftermath(request: pytest.FixtureRequest) -> Aftermath:
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        folder = Path(name)
        with running_broker(folder, config=CONFIG) as broker:
            ready_presenter(broker)
            clients = [broker.pair(label, ["interact"]) for label in ("one", "two")]
            journal = storm(broker, clients, request.param)
        with running_broker(folder, config=CONFIG) as broker:
            first, leases = _create_all(broker, journal), listed(broker)
            broker.kill()
        with running_broker(folder, config=CONFIG) as broker:
            second = _create_all(broker, journal)
            presenter = ready_presenter(broker)
            retried, again = _create_all(broker, journal), _create_all(broker, journal)
            prompts = [prompt["requestId"] for prompt in pushed(presenter, "present")]
    return Aftermath(journal, first, second, leases, retried, again, prompts)


def _create_all(broker: BrokerProcess, journal: Journal) -> Snapshots:
    """Send every create again; while no presenter is ready, a key that made no request makes none now."""
    sessions = {client: broker.session(client) for client in {asked.client for asked in journal.asked}}
    found: Snapshots = {}
    for asked in journal.asked:
        session = sessions[asked.client]
        found[asked.key] = session.reply(session.start("requests.create", **asked.params)).get("result")
    broker.close_connections()
    return found


def test_the_storm_was_one(aftermath: Aftermath) -> None:
    journal = aftermath.journal
    assert journal.entries_left <= 0
    assert len(journal.asked) > 8
    assert journal.granted
    assert any(outcome["outcome"] == "committed" for outcome in journal.outcomes.values())


@pytest.mark.requirement("CP-3.4", "CP-3.10", "CP-4.12")
def test_what_a_client_was_told_is_stored(aftermath: Aftermath) -> None:
    for asked in aftermath.journal.asked:
        if asked.snapshot is None:
            continue
        now = aftermath.first[asked.key]
        assert now["requestId"] == asked.id
        if asked.snapshot["state"] in ENDED:
            assert now == asked.snapshot
        else:
            assert now["revision"] > asked.snapshot["revision"]


@pytest.mark.requirement("CP-3.7", "CP-3.10", "CP-4.12")
def test_an_answer_that_was_committed_is_the_result_and_no_other_is(aftermath: Aftermath) -> None:
    journal, found = aftermath.journal, {now["requestId"]: now for _, now in aftermath.found()}
    for request_id, outcome in journal.outcomes.items():
        now = found[request_id]
        if outcome["outcome"] == "committed":
            assert now["result"] == {"selectedId": journal.answers[request_id]}
        else:
            assert outcome == {"outcome": "too_late", "state": now["state"], "reason": now["reason"]}
    for now in found.values():
        if now["state"] == "completed":
            assert now["result"] == {"selectedId": journal.answers[now["requestId"]]}
        else:
            assert now["result"] is None


@pytest.mark.requirement("CP-4.13")
def test_whatever_had_not_ended_was_failed_by_the_restart(aftermath: Aftermath) -> None:
    for asked, now in aftermath.found():
        end = (now["state"], now["reason"])
        possible = [("completed", "answered"), ("failed", "runtime_restarted")]
        assert end in possible or (asked.cancelling and end == ("cancelled", "cancelled_by_client"))


@pytest.mark.requirement("CP-3.4", "CP-4.13")
def test_a_second_restart_changes_nothing(aftermath: Aftermath) -> None:
    assert aftermath.second == aftermath.first


@pytest.mark.requirement("CP-4.1", "CP-4.2")
def test_a_retry_finds_the_request_or_makes_one(aftermath: Aftermath) -> None:
    made_now = []
    for key, before in aftermath.second.items():
        once, twice = aftermath.retried[key], aftermath.retried_again[key]
        assert once["requestId"] == twice["requestId"]
        if before is None:
            made_now.append(once["requestId"])
        else:
            assert before == once == twice
    assert set(aftermath.prompts) <= set(made_now)


@pytest.mark.requirement("LP-4", "LP-12")
def test_the_lease_is_as_the_holder_was_told_or_as_it_asked_next(aftermath: Aftermath) -> None:
    journal = aftermath.journal
    (lease,) = aftermath.leases.values()
    last = journal.granted[-1]
    assert {response["code"] for response in journal.granted} == {"accepted"}
    if lease["leaseSeconds"] == last["leaseSeconds"]:
        assert same_time(lease["expiresAt"], last["expiresAt"])
    else:
        assert lease["leaseSeconds"] == journal.lease_seconds[-1]
        assert lease["expiresAt"] > last["expiresAt"]
