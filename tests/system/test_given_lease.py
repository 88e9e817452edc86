"""The given cases about leases: G19, G20, G21 (its protocol part), G24.

The seconds are scaled: the shortest lease is one second, grace 0.4 s, a close check 0.5 s, the cooldown 0.6 s.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psutil
import pytest

from tests.support.broker_process import APP, ROOT, BrokerProcess
from tests.support.children import child, kill_uncollected, read_line
from tests.support.lines import GIVE_UP_SECONDS, Stopwatch, until

APPS = [f"{APP}#{word}" for word in ("one", "two", "three", "four", "five", "six", "seven")]
GRACE_SECONDS = 0.4
CHECK_SECONDS = 0.5


def same_instant(one: str, other: str) -> bool:
    """Whether two times are the same: an awake instant is told in wall time, which slews a little against it."""
    return abs(datetime.fromisoformat(one) - datetime.fromisoformat(other)) < timedelta(milliseconds=50)


# -- G19: the old connection's end must not undo the new one -------------------------------------------------


@pytest.mark.requirement("G19", "LP-9", "LP-12")
def test_the_end_of_an_old_connection_does_not_touch_the_lease(broker: BrokerProcess) -> None:
    first = broker.holder("h1")
    assert first.begin(APP, 600)["code"] == "accepted"
    second = broker.holder("h1")
    renewed = second.renew(APP, 600)
    assert renewed["code"] == "accepted"
    first.close()
    time.sleep(GRACE_SECONDS * 2)
    (lease,) = leases_of(broker, "h1")
    assert (lease["state"], same_instant(lease["expiresAt"], renewed["expiresAt"])) == ("active", True)

    assert second.renew(APP, 1)["code"] == "accepted"
    wait_for_state(broker, "h1", "expired")
    question = broker.control()
    asked = question.start("leases.may_close", appKey=APP)
    check = second.pushed()
    assert (check["holderId"], check["appKey"]) == ("h1", APP)
    assert second.answer(check, "extend_lease", leaseSeconds=1)["code"] == "accepted"
    answer = question.reply(asked)["result"]
    assert (answer["allowed"], answer["reason"]) == (False, "kept")
    assert second.unasked()
    assert second.end(APP)["code"] == "accepted"


@pytest.mark.requirement("G19", "LP-9")
def test_a_check_goes_to_the_connection_that_is_left(broker: BrokerProcess) -> None:
    app = APPS[0]
    older, newer = broker.holder("h2"), broker.holder("h2")
    assert newer.begin(app, 1)["code"] == "accepted"
    wait_for_state(broker, "h2", "expired")
    newer.close()
    question = broker.control()
    asked = question.start("leases.may_close", appKey=app)
    check = older.pushed()
    assert older.answer(check, "allow_close")["code"] == "accepted"
    assert question.reply(asked)["result"]["allowed"]


@pytest.mark.requirement("G19")
def test_a_holder_without_a_connection_keeps_its_lease(broker: BrokerProcess) -> None:
    app = APPS[1]
    holder = broker.holder("h3")
    begun = holder.begin(app, 1800)
    holder.close()
    time.sleep(GRACE_SECONDS * 2)
    (lease,) = leases_of(broker, "h3")
    assert (lease["state"], same_instant(lease["expiresAt"], begun["expiresAt"])) == ("active", True)
    back = broker.holder("h3")
    assert back.end(app)["code"] == "accepted"


# -- G20: two holders of one app -----------------------------------------------------------------------------


@pytest.mark.requirement("G20", "LP-8", "LP-12")
def test_nothing_that_one_holder_does_shortens_the_lease_of_another(broker: BrokerProcess) -> None:
    app = APPS[2]
    long, short = broker.holder("long"), broker.holder("short")
    begun = long.begin(app, 1800)
    assert short.begin(app, 60)["code"] == "accepted"
    assert short.renew(app, 1)["code"] == "accepted"
    assert short.begin(app, 1)["code"] == "accepted"
    wait_for_state(broker, "short", "expired")
    assert may_close(broker, app)["reason"] == "leased"
    assert short.unasked(), "nobody is asked while somebody else protects the app"
    assert short.renew(app, 60)["code"] == "request_expired"
    assert short.begin(app, 60)["code"] == "accepted"
    assert short.end(app)["code"] == "accepted"
    time.sleep(GRACE_SECONDS * 2)
    answer = may_close(broker, app)
    assert (answer["allowed"], answer["reason"]) == (False, "leased")
    (lease,) = leases_of(broker, "long")
    assert (lease["state"], same_instant(lease["expiresAt"], begun["expiresAt"])) == ("active", True)
    assert long.unasked()

    # The last lease and its grace are over: only then is the app free.
    ended = long.end(app)
    assert ended["code"] == "accepted"
    assert may_close(broker, app)["reason"] == "grace"
    until(lambda: may_close(broker, app)["allowed"])


# -- G21: the quitter asks first and believes only a timely answer -------------------------------------------


@pytest.mark.requirement("G21", "LP-9", "LP-10")
def test_an_app_is_closed_only_after_its_holder_was_asked_and_allowed_it(broker: BrokerProcess) -> None:
    app = APPS[3]
    holder = broker.holder("h4")
    assert holder.begin(app, 1)["code"] == "accepted"
    wait_for_state(broker, "h4", "expired")
    question = broker.control()
    asked = question.start("leases.may_close", appKey=app, reserve=True)
    check = holder.pushed()
    assert check["timeoutSeconds"] == CHECK_SECONDS
    assert question.nothing(0.05), "no answer to the asker before that of the holder"
    allowed = holder.answer(check, "allow_close")
    assert (allowed["code"], allowed["requestId"]) == ("accepted", check["requestId"])
    answer = question.reply(asked)["result"]
    assert (answer["allowed"], answer["reason"]) == (True, "free")
    assert holder.begin(app, 60)["code"] == "lease_conflict"
    question.call("leases.quit_done", ticket=answer["ticket"])


@pytest.mark.requirement("G21", "LP-10")
def test_an_extension_keeps_the_app(broker: BrokerProcess) -> None:
    app = APPS[4]
    holder = broker.holder("h5")
    assert holder.begin(app, 1)["code"] == "accepted"
    wait_for_state(broker, "h5", "expired")
    question = broker.control()
    asked = question.start("leases.may_close", appKey=app, reserve=True)
    extended = holder.answer(holder.pushed(), "extend_lease", leaseSeconds=60)
    assert (extended["code"], extended["leaseSeconds"]) == ("accepted", 60)
    answer = question.reply(asked)["result"]
    assert (answer["allowed"], answer["reason"]) == (False, "kept")
    assert "ticket" not in answer
    assert holder.end(app)["code"] == "accepted"


@pytest.mark.requirement("G21", "LP-8", "LP-9")
def test_a_silence_closes_nothing_and_a_late_allow_counts_for_nothing(broker: BrokerProcess) -> None:
    app = APPS[5]
    holder = broker.holder("h6")
    assert holder.begin(app, 1)["code"] == "accepted"
    wait_for_state(broker, "h6", "expired")
    question = broker.control()
    watch = Stopwatch()
    answer = question.call("leases.may_close", appKey=app)
    assert CHECK_SECONDS <= watch.seconds < CHECK_SECONDS + 3
    assert (answer["allowed"], answer["reason"]) == (False, "silent")
    assert holder.answer(holder.pushed(), "allow_close")["code"] == "request_expired"
    assert question.call("leases.may_close", appKey=app)["reason"] == "cooldown"
    assert holder.unasked()

    answers = iter(lambda: question.call("leases.may_close", appKey=app)["reason"], "free")
    reasons = list(slowly(answers))
    assert reasons.count("silent") == 1, "the second silence; the third is an allow"
    assert set(reasons) == {"cooldown", "silent"}
    assert [holder.pushed()["appKey"] for _ in range(2)] == [app, app]
    assert holder.unasked()


# -- G24: a dead holder that still has a process id ----------------------------------------------------------


@pytest.mark.requirement("G24", "LP-12")
def test_a_holder_that_died_and_was_not_collected_holds_nothing(broker: BrokerProcess) -> None:
    path = broker.runtime / "ai-protection.sock"
    command = (sys.executable, "-m", "tests.support.acting_agent", str(path), APPS[6])
    with child(command, cwd=ROOT) as agent:
        ready = json.loads(read_line(agent))
        assert ready["action"] == "session.ready"
        begun = json.loads(read_line(agent))
        assert begun["code"] == "accepted"
        assert may_close(broker, APPS[6])["reason"] == "leased"
        kill_uncollected(agent)
        assert read_line(agent) == "closed", (
            "the session of a dead process is closed, whoever holds its socket"
        )
        until(lambda: may_close(broker, APPS[6])["allowed"])
        assert psutil.Process(agent.pid).status() == psutil.STATUS_ZOMBIE


def may_close(broker: BrokerProcess, app: str) -> Any:
    return broker.control().call("leases.may_close", appKey=app)


def leases_of(broker: BrokerProcess, holder_id: str) -> list[dict[str, Any]]:
    leases = broker.control().call("leases.list")["leases"]
    return [lease for lease in leases if lease["holderId"] == holder_id]


def wait_for_state(broker: BrokerProcess, holder_id: str, state: str) -> None:
    until(lambda: [lease["state"] for lease in leases_of(broker, holder_id)] == [state])


def slowly(facts: Iterator[object]) -> Iterator[object]:
    """The same, with a pause after each."""
    watch = Stopwatch()
    for fact in facts:
        assert watch.seconds < GIVE_UP_SECONDS
        yield fact
        time.sleep(0.05)
