"""One real broker for the tests of a file, over real sockets; the test itself is the presenter.

A file that needs another configuration sets `BROKER_CONFIG`.  A test that ends, fills or damages its broker takes
`alone`, or makes one in `folder`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_process import CONFIG, BrokerProcess, running_broker


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder whose name leaves room for a socket's path, which `tmp_path` may not."""
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """The broker of this file."""
    config = getattr(request.module, "BROKER_CONFIG", CONFIG)
    with (
        tempfile.TemporaryDirectory(prefix="cb-") as name,
        running_broker(Path(name), config=config) as broker,
    ):
        yield broker


@pytest.fixture
def broker(running: BrokerProcess) -> Iterator[BrokerProcess]:
    """The broker of this file; it must outlive the test, whose connections are closed."""
    yield running
    running.close_connections()
    assert running.process.poll() is None


@pytest.fixture
def alone(folder: Path) -> Iterator[BrokerProcess]:
    """A broker for this test only."""
    with running_broker(folder) as broker:
        yield broker
