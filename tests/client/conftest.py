"""A folder for sockets; a real broker with a person at it, and clients of both flavours that are paired with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocols.companion.client import Credential
from tests.client.agents import FLAVOURS, Agent
from tests.client.desk import Desk
from tests.support.broker_process import BrokerProcess, running_broker

SCOPES = ("discover", "animate", "notify", "interact")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder whose name leaves room for a socket's path, which `tmp_path` may not."""
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A running broker."""
    with tempfile.TemporaryDirectory(prefix="cb-") as name, running_broker(Path(name)) as running:
        yield running


@pytest.fixture(scope="module")
def credential(broker: BrokerProcess) -> Credential:
    """What a paired client of it has."""
    return Credential(*broker.credential(*SCOPES))


@pytest.fixture(scope="module")
def desk(broker: BrokerProcess, credential: Credential) -> Desk:
    """The person at it, who has paired the client already."""
    return Desk(broker.presenter)


@pytest.fixture(params=FLAVOURS)
def agent(request: pytest.FixtureRequest, broker: BrokerProcess, desk: Desk, credential: Credential) -> Agent:
    """The paired client, in each flavour, before an empty screen."""
    desk.screen.clear()
    return FLAVOURS[request.param](broker.runtime / "companion.sock", credential)
