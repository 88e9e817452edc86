"""Revoking over a real broker: sessions and waits end, and another process that scans every byte finds nothing."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from broker.credentials import Credential, list_profiles, write_credential
from tests.support.broker_process import ARMING_MS, BrokerProcess, running_broker
from tests.support.byte_scan import scan
from tests.support.crashes import told
from tests.support.faulty_broker import Faults
from tests.support.lines import Rpc
from tests.support.many_records import fill, key_of, mark_of

pytestmark = pytest.mark.requirement("CP-4.14", "CP-5.2")

GIVE_UP_SECONDS = 60.0
LABEL = "label-of-the-bubble"
PROMPT = "prompt-that-was-shown"
OPTION = "option-that-was-offered"
ANSWER = "answer-of-the-person"
MARKS = {
    "label": LABEL,
    "prompt": PROMPT,
    "option": OPTION,
    "answer": ANSWER,
    "idempotency key": "key-of-idempotency",
    "task id": "id-of-the-task",
}


@attrs.frozen
class Agent:
    """A paired client that has asked and was answered, and keeps its key in a credential profile."""

    folder: Path
    credential: tuple[str, str]
    session: Rpc
    waiting: int
    """A wait that is parked."""

    @property
    def needles(self) -> dict[str, bytes]:
        """What no file may hold once it is revoked."""
        key = self.credential[1].encode()
        digest = hashlib.sha256(key)
        marks = {name: mark.encode() for name, mark in MARKS.items()}
        return {**marks, "key": key, "digest": digest.hexdigest().encode(), "raw digest": digest.digest()}

    def found(self) -> dict[str, list[str]]:
        """Which of it another process finds, and in which files."""
        return scan((self.folder,), self.needles)


def credentials_of(folder: Path) -> Path:
    return folder / "config" / "companion" / "credentials"


def environment_of(folder: Path) -> dict[str, str]:
    """The broker looks for credential profiles below this folder, and for nobody else's."""
    return {"XDG_CONFIG_HOME": str(folder / "config"), "HOME": str(folder)}


@pytest.fixture
def broker(folder: Path) -> Iterator[BrokerProcess]:
    with running_broker(folder, environment=environment_of(folder)) as broker:
        yield broker


def an_agent(broker: BrokerProcess, folder: Path) -> Agent:
    """Pair it, let it ask, answer it, and let it ask again and wait."""
    credential = broker.pair(LABEL, ["notify", "interact"])
    client_id, key = credential
    write_credential(credentials_of(folder), "agent", Credential(client_id, ("notify", "interact"), key))
    session = broker.session(credential)
    asked = _ask(session, idempotencyKey=MARKS["idempotency key"], taskId=MARKS["task id"])
    shown, _ = broker.show(session, asked)
    time.sleep(ARMING_MS / 1000 * 1.5)
    answer = {name: shown[name] for name in ("requestId", "revision", "digest")}
    outcome = broker.presenter.call("answer", inputStartedMs=0, result={"text": ANSWER}, **answer)
    assert outcome == {"outcome": "committed"}
    _ask(
        session,
        "interaction.choose",
        options=[{"id": OPTION, "label": OPTION[:24]}, {"id": "n", "label": "No"}],
    )
    waited_for = _ask(session)
    waiting = session.start("requests.wait", requestId=waited_for["requestId"], afterRevision=9, waitMs=0)
    assert "error" in session.reply(waiting)  # so the one before is on disk
    waiting = session.start("requests.wait", **_after(session, waited_for))
    session.call("requests.get", requestId=waited_for["requestId"])  # so the wait is parked
    return Agent(folder, credential, session, waiting)


def _ask(
    session: Rpc,
    capability: str = "interaction.ask_text",
    title: str = PROMPT,
    options: Sequence[Mapping[str, str]] | None = None,
    **members: Any,
) -> Any:
    params = {"title": title} if options is None else {"title": title, "options": options}
    return session.call(
        "requests.create", capability=capability, params=params, timeoutMs=3_600_000, **members
    )


def _after(session: Rpc, request: Mapping[str, Any]) -> dict[str, Any]:
    snapshot = session.call("requests.get", requestId=request["requestId"])
    return {"requestId": request["requestId"], "afterRevision": snapshot["revision"], "waitMs": 60_000}


def wait_until_clean(find: Any) -> None:
    """Until nothing is found any more."""
    until = time.monotonic() + GIVE_UP_SECONDS
    while (found := find()) != {}:
        assert time.monotonic() < until, found
        time.sleep(0.05)


@pytest.mark.parametrize("how", ["presenter", "control socket"])
def test_after_a_revoke_nothing_is_left_in_any_file(broker: BrokerProcess, folder: Path, how: str) -> None:
    agent = an_agent(broker, folder)
    assert agent.found().keys() == agent.needles.keys() - {"raw digest"}, "the scan sees what is there"
    other = broker.agent("interact")
    spared = _ask(other, title="another question")["requestId"]
    if how == "presenter":
        assert broker.presenter.call("user", action="revoke", clientId=agent.credential[0]) == {}
    else:
        assert broker.control().call("clients.revoke", clientId=agent.credential[0]) == {}
    assert agent.session.reply(agent.waiting)["error"]["data"]["code"] == "UNAUTHENTICATED"
    assert agent.session.rest() == []
    assert other.call("requests.cancel", requestId=spared)["reason"] == "cancelled_by_client"
    wait_until_clean(agent.found)
    assert list_profiles(credentials_of(folder)) == []
    refused = broker.greet().refused(
        "session.authenticate", clientId=agent.credential[0], key=agent.credential[1]
    )
    assert refused["code"] == "UNAUTHENTICATED"
    assert other.call("runtime.describe")["authorization"]["authenticated"] is True


def test_other_clients_keep_their_credentials(broker: BrokerProcess, folder: Path) -> None:
    agent = an_agent(broker, folder)
    other_id, other_key = broker.pair("other", ["interact"])
    write_credential(credentials_of(folder), "other", Credential(other_id, ("interact",), other_key))
    broker.control().call("clients.revoke", clientId=agent.credential[0])
    wait_until_clean(agent.found)
    assert list_profiles(credentials_of(folder)) == ["other"]
    broker.session((other_id, other_key))


def test_of_many_records_in_between_others_nothing_is_left(folder: Path) -> None:
    """SQLite moves rows about and leaves copies; the more rows, the more copies."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    fill(state / "companion.db", ["gone", "spared"], 10_000)
    gone = {
        "texts": mark_of("gone").encode(),
        "digest": hashlib.sha256(key_of("gone").encode()).hexdigest().encode(),
    }
    spared = {"texts": mark_of("spared").encode()}
    with running_broker(folder, environment=environment_of(folder)) as broker:
        assert scan((folder,), gone).keys() == gone.keys()
        session = broker.session(("gone", key_of("gone")))
        assert broker.control().call("clients.revoke", clientId="gone") == {}
        assert session.rest() == []
        broker.session(("spared", key_of("spared"))).call("runtime.describe")
        wait_until_clean(lambda: scan((folder,), gone))
        assert scan((folder,), spared).keys() == spared.keys()
        assert broker.stop() == 0
    with closing(sqlite3.connect(state / "companion.db")) as db:
        (left,) = db.execute("SELECT COUNT(*) FROM requests").fetchone()
        assert left == 10_000
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.requirement("CP-4.15")
def test_after_the_person_has_cleared_no_prompt_and_no_answer_is_left(
    broker: BrokerProcess, folder: Path
) -> None:
    agent = an_agent(broker, folder)
    for request in broker.presenter.call("list", what="pending")["pending"]:
        agent.session.call("requests.cancel", requestId=request["requestId"])
    assert broker.presenter.call("user", action="clear_records") == {}
    contents = {name: needle for name, needle in agent.needles.items() if name in MARKS and name != "label"}
    wait_until_clean(lambda: scan((folder,), contents))
    assert "recordsLostAt" in agent.session.refused("requests.get", requestId="x")
    assert agent.found().keys() == {"label", "key", "digest"}, "the client itself stays"


@pytest.mark.parametrize(
    "call", ["before write requests", "before rewrite", "before truncate", "after truncate"]
)
def test_a_wipe_that_was_killed_is_finished_before_the_next_broker_listens(folder: Path, call: str) -> None:
    faults = Faults(folder)
    environment = environment_of(folder)
    with running_broker(folder, command=faults.command, environment=environment) as broker:
        agent = an_agent(broker, folder)
        faults.kill_at_call(call)
        told(lambda: broker.control().call("clients.revoke", clientId=agent.credential[0]))
        broker.process.wait(GIVE_UP_SECONDS)
    faults.lift()
    with running_broker(folder, environment=environment):
        if call == "before write requests":  # the revoke itself was not stored
            assert agent.found().keys() >= MARKS.keys()
        else:
            assert {name: files for name, files in agent.found().items() if files != ["agent.json"]} == {}
            wait_until_clean(agent.found)


def test_somebody_who_reads_the_store_delays_the_scrubbing_and_nothing_else(
    broker: BrokerProcess, folder: Path
) -> None:
    agent = an_agent(broker, folder)
    with closing(sqlite3.connect(folder / "state" / "companion.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM requests").fetchone()
        assert broker.control().call("clients.revoke", clientId=agent.credential[0]) == {}
        assert agent.session.reply(agent.waiting)["error"]["data"]["code"] == "UNAUTHENTICATED"
        other = broker.agent("interact")
        assert other.call("runtime.describe")["authorization"]["authenticated"] is True
        while "store_not_scrubbed_yet" not in broker.log:
            time.sleep(0.05)
    wait_until_clean(agent.found)
