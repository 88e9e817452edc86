"""The command line over the life of a broker: it becomes one, stops one, and outlives the end of one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from broker.client.blocking.control import ControlConnection
from protocols.control.leases import LeaseList, ListLeases
from tests.cli.conftest import COMMAND, COMMAND_CONFIG, CommandLine
from tests.cli.person import LEFT, Person
from tests.cli.test_lease import RUN
from tests.cli.test_requests import choice
from tests.support.broker_process import BrokerProcess, running_broker


def test_serve_becomes_the_broker_and_stop_ends_it(folder: Path) -> None:
    with running_broker(folder, config=COMMAND_CONFIG, command=(*COMMAND, "serve")) as broker:
        assert CommandLine(folder).json("status")["connections"]["control"] >= 1
        assert CommandLine(folder).json("stop") == {}
        assert broker.process.wait(10) == 0


def pair(broker: BrokerProcess) -> CommandLine:
    Person(broker.presenter).start()
    run = CommandLine(broker.folder)
    run.json("pair", "Tester", "--scopes", "interact", "--credential-profile", "p")
    return run


@pytest.mark.requirement("CP-4.2", "CP-4.13", "CP-6.5")
def test_a_wait_outlives_the_broker_and_tells_what_became_of_the_request(folder: Path) -> None:
    with running_broker(folder, config=COMMAND_CONFIG) as broker:
        companion = pair(broker)
        content = choice(LEFT)
        request_id = companion.json("requests", "create", "--file", "-", stdin=content)["requestId"]
        with companion.start("requests", "wait", request_id, "--json") as waiting:
            wait_for_connection(folder, "companion")
            broker.kill()
            with running_broker(folder, config=COMMAND_CONFIG):
                stdout, _ = waiting.communicate(timeout=20)
    assert waiting.returncode == 5
    ended = json.loads(stdout)
    assert (ended["error"]["code"], ended["request"]["reason"]) == ("REQUEST_FAILED", "runtime_restarted")


def wait_for_connection(folder: Path, protocol: str) -> None:
    """Until somebody has connected to this protocol's socket."""
    while protocol not in CommandLine(folder).json("status")["connections"]:
        pass


@pytest.mark.requirement("LP-12")
def test_a_lease_outlives_the_broker_and_the_command_notices_nothing(folder: Path) -> None:
    with running_broker(folder, config=COMMAND_CONFIG) as broker:
        companion = CommandLine(folder)
        command = (*RUN, "--seconds", "60", "--", "sh", "-c", "echo started; exec cat")
        with companion.start(*command, stdin=subprocess.PIPE) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            assert running.stdout.readline() == "started\n"
            held = wait_for_lease(folder)
            broker.kill()
            assert "connection to the broker is lost" in running.stderr.readline()
            with running_broker(folder, config=COMMAND_CONFIG):
                assert "connected to the broker again" in running.stderr.readline()
                assert wait_for_lease(folder) == held
                assert running.communicate("went on", timeout=10)[0] == "went on"
    assert running.returncode == 0


def wait_for_lease(folder: Path) -> str:
    """The holder of the one lease, once there is one."""
    while True:
        with ControlConnection.open(folder / "run" / "control.sock") as connection:
            found = connection.call("leases.list", ListLeases()).result
        assert isinstance(found, LeaseList)
        if found.leases:
            return found.leases[0].holder_id
