"""An orderly end: whoever waits is told, everything is flushed, nothing is left behind (wire.md, shutdown)."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_process import (
    APP,
    COMMAND,
    ROOT,
    SOCKETS,
    BrokerProcess,
    environment_of,
    write_config,
)
from tests.support.lines import GIVE_UP_SECONDS, Lines, Rpc, Stopwatch, call_of, line_of, until
from tests.support.questions import ask

END_SECONDS = 3.0
SLOW_SECONDS = 3.0
"""How much later than that a slow machine may be."""
STOPPING = {"code": "RUNTIME_UNAVAILABLE", "retryable": True, "reason": "stopping"}


@pytest.mark.requirement("CP-3.9", "CP-6.7")
def test_whoever_waits_is_told_that_the_broker_stops(alone: BrokerProcess) -> None:
    client, idle = alone.agent("discover", "interact"), alone.greet()
    _, snapshot = alone.show(client, ask(client))
    waits = [wait(client, snapshot) for _ in range(64)]
    pairing_client, pairing_wait = wait_for_pairing(alone)
    deaf = deaf_client(alone)
    question, close_wait, holder = wait_for_close(alone)

    watch = Stopwatch()
    alone.process.send_signal(signal.SIGTERM)
    assert [client.reply(number)["error"]["data"] for number in waits] == [STOPPING] * 64
    assert pairing_client.reply(pairing_wait)["error"]["data"] == STOPPING
    assert question.reply(close_wait)["error"]["data"] == STOPPING
    assert [connection.rest() for connection in (client, pairing_client, question, idle)] == [[]] * 4
    assert holder.rest() == []
    assert alone.process.wait(timeout=END_SECONDS + SLOW_SECONDS) == 0
    assert watch.seconds < END_SECONDS + SLOW_SECONDS
    assert not [name for name in SOCKETS if (alone.runtime / name).exists()]
    deaf.rest()  # what it still got are whole lines


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, None])
def test_an_end_that_is_asked_for_as_soon_as_there_are_sockets_is_orderly(
    alone: BrokerProcess, sent: signal.Signals | None
) -> None:
    if sent is None:
        alone.control().call("stop")
    else:
        alone.process.send_signal(sent)
    assert alone.process.wait(timeout=END_SECONDS + SLOW_SECONDS) == 0
    assert not [name for name in SOCKETS if (alone.runtime / name).exists()]


def test_an_end_that_is_asked_for_during_the_start_leaves_no_socket(folder: Path) -> None:
    write_config(folder)
    command = [*COMMAND, "--presenter", "none"]
    with subprocess.Popen(command, cwd=ROOT, env=environment_of(folder), stderr=subprocess.PIPE) as process:
        until((folder / "run" / "companion.lock").exists)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=GIVE_UP_SECONDS)
    assert process.returncode == 0
    assert log == b""
    assert not list((folder / "run").glob("*.sock"))


@pytest.mark.requirement("CP-4.12")
def test_what_was_sent_before_the_end_is_decided_once_or_told_to_be_not(alone: BrokerProcess) -> None:
    """Whatever calls the signal meets, each that is answered is answered whole and once."""
    client = alone.agent("interact")
    calls = [call_of(number, "requests.get", requestId="none") for number in range(150)]
    client.send(b"".join(map(line_of, calls[:100])))
    alone.process.send_signal(signal.SIGTERM)
    replies = client.rest()
    ids = [reply["id"] for reply in replies]
    assert sorted(ids) == list(range(len(ids)))
    assert {reply["error"]["data"]["code"] for reply in replies} <= {"NOT_FOUND", "RUNTIME_UNAVAILABLE"}
    assert alone.process.wait(timeout=END_SECONDS + SLOW_SECONDS) == 0


def wait(client: Rpc, snapshot: dict[str, Any]) -> int:
    return client.start(
        "requests.wait",
        requestId=snapshot["requestId"],
        afterRevision=snapshot["revision"],
        waitMs=60_000,
    )


def wait_for_pairing(broker: BrokerProcess) -> tuple[Rpc, int]:
    client = broker.greet()
    pairing = client.call("pairing.request", clientName="too late", scopes=["discover"])
    return client, client.start("pairing.wait", pairingId=pairing["pairingId"], waitMs=60_000)


def wait_for_close(broker: BrokerProcess) -> tuple[Rpc, int, Lines]:
    """A close check under way: its asker, the asker's call, and the holder that does not answer."""
    holder, question = broker.holder("silent"), broker.control()
    assert holder.begin(APP, 1)["code"] == "accepted"
    until(lambda: question.call("leases.list")["leases"][0]["state"] == "expired")
    asked = question.start("leases.may_close", appKey=APP)
    holder.pushed()
    return question, asked, holder


def deaf_client(broker: BrokerProcess) -> Lines:
    client = broker.agent("discover", "interact")
    client.send_until_stuck(line_of(call_of("x" * 128, "runtime.describe")) * 20_000, 0.2)
    return client
