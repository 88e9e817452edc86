"""The given case about a store that is damaged: G22, each run over a real broker with access enabled in its file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.crashes import ready_presenter
from tests.support.lines import Rpc
from tests.system.test_given_platform import start_and_end

pytestmark = pytest.mark.requirement("G22", "CP-4.15")

OPTIONS = [{"id": "y", "label": "Allow"}, {"id": "n", "label": "Deny"}]
CALLS: dict[str, dict[str, Any]] = {
    "requests.get": {},
    "requests.wait": {"afterRevision": 0, "waitMs": 0},
    "requests.cancel": {},
    "requests.update": {"expectedRevision": 1, "params": {"detail": "x"}},
}


@attrs.frozen
class Before:
    """What a broker leaves behind that has stopped: its store, and what its one client knows."""

    store: Path
    credential: tuple[str, str]
    request_id: str


@pytest.fixture
def before(folder: Path) -> Before:
    with running_broker(folder) as broker:
        credential = broker.pair("agent", ["interact"])
        with broker.session(credential) as agent:
            request = _ask(agent)
        assert broker.stop() == 0
    return Before(folder / "state" / "companion.db", credential, request["requestId"])


def _ask(agent: Rpc) -> Any:
    params = {"title": "Read file?", "options": OPTIONS}
    return agent.call("requests.create", capability="interaction.choose", params=params, timeoutMs=3_600_000)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "run 1: empty": lambda content: b"",
    "run 2: the first half": lambda content: content[: len(content) // 2],
    "no database at all": lambda content: b'{"clients": [' * 1000,
}


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, before: Before) -> bytes:
    """Damage the store; its content from then on."""
    content = DAMAGES[request.param](before.store.read_bytes())
    before.store.write_bytes(content)
    return content


def test_the_damaged_store_is_moved_aside_and_the_log_warns_of_it(
    folder: Path, before: Before, damaged: bytes
) -> None:
    with running_broker(folder) as broker:
        (aside,) = before.store.parent.glob("companion.db.damaged-*Z")
        assert aside.read_bytes() == damaged
        assert "store_damaged" in broker.log
        assert aside.name in broker.log
        assert str(folder) not in broker.log


@pytest.mark.requirement("CP-5.1")
def test_the_old_credential_is_unauthenticated_and_nobody_else_is_let_in(
    folder: Path, before: Before, damaged: bytes
) -> None:
    with running_broker(folder) as broker:
        client_id, key = before.credential
        with broker.greet() as client:
            refused = client.refused("session.authenticate", clientId=client_id, key=key)
            assert refused["code"] == "UNAUTHENTICATED"
            assert client.call("runtime.describe")["authorization"]["authenticated"] is False
        with broker.greet() as client:
            assert client.refused("requests.get", requestId="x")["code"] == "UNAUTHENTICATED"


def test_a_new_pairing_works_and_survives_the_restart(folder: Path, before: Before, damaged: bytes) -> None:
    with running_broker(folder) as broker:
        ready_presenter(broker)
        credential = broker.pair("agent", ["interact"])
        with broker.session(credential) as agent:
            request = _ask(agent)
        broker.kill()
    with running_broker(folder) as broker, broker.session(credential) as agent:
        seen = agent.call("requests.get", requestId=request["requestId"])
        assert (seen["state"], seen["reason"]) == ("failed", "runtime_restarted")
        assert "store_damaged" not in broker.log


@pytest.mark.requirement("CP-6.8")
def test_every_not_found_says_when_records_were_lost_whosever_the_id_is(
    folder: Path, before: Before, damaged: bytes
) -> None:
    with running_broker(folder) as broker:
        ready_presenter(broker)
        credential = broker.pair("agent", ["interact"])
        with broker.agent("interact") as other:
            foreign = _ask(other)["requestId"]
        told = [_not_found(broker, credential, id) for id in (before.request_id, foreign, "never")]
        broker.kill()
    with running_broker(folder) as broker:
        told.append(_not_found(broker, credential, before.request_id))
        lost_at = broker.control().call("status")["recordsLostAt"]
    assert all(one == told[0] for one in told)
    assert {error["recordsLostAt"] for error in told[0]} == {lost_at}


def _not_found(broker: BrokerProcess, credential: tuple[str, str], request_id: str) -> list[Any]:
    with broker.session(credential) as agent:
        errors = [agent.refused(method, requestId=request_id, **params) for method, params in CALLS.items()]
    assert {error["code"] for error in errors} == {"NOT_FOUND"}
    return errors


def test_a_store_that_was_never_damaged_tells_of_no_loss(folder: Path, before: Before) -> None:
    with running_broker(folder) as broker:
        for error in _not_found(broker, before.credential, "never"):
            assert "recordsLostAt" not in error


def test_run_3_a_folder_in_its_place_refuses_the_start(folder: Path, before: Before) -> None:
    before.store.unlink()
    before.store.mkdir()
    refused = start_and_end(folder)
    assert refused.returncode == 2
    assert refused.stderr == "companion: store: is not a regular file\n"
    assert before.store.is_dir()
    assert not list((folder / "run").glob("*.sock"))


def test_a_killed_broker_leaves_a_store_and_no_damage(folder: Path) -> None:
    for _ in range(3):
        with running_broker(folder) as broker:
            assert "store_damaged" not in broker.log
            broker.kill()
    with closing(sqlite3.connect(folder / "state" / "companion.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
