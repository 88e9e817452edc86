"""A whole broker in a terminal: a program pairs and asks, and a person at the keys decides (CP-5.6)."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.broker_process import CONFIG, ROOT, START_SECONDS
from tests.support.lines import Rpc

SECONDS = 20.0
LOG_IN = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes its standard input the terminal of what it then becomes."""


class Hands:
    """The person before the terminal: reads the screen, types."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.screen = ""

    def see(self, text: str) -> str:
        """Wait until this is on the screen; everything up to it, which is then gone."""
        until = time.monotonic() + SECONDS
        while text not in self.screen:
            assert select.select([self._master], [], [], max(0.0, until - time.monotonic()))[0], self.screen
            self.screen += os.read(self._master, 65536).decode()
        seen, self.screen = self.screen.split(text, 1)
        return seen

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())


@contextmanager
def broker_in_a_terminal(folder: Path) -> Iterator[Hands]:
    config = folder / "config.toml"
    config.write_text(CONFIG)
    config.chmod(0o600)
    master, slave = pty.openpty()
    environment = {
        **os.environ,
        "COMPANION_RUNTIME_DIR": str(folder / "run"),
        "COMPANION_STATE_DIR": str(folder / "state"),
        "COMPANION_CONFIG": str(config),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", LOG_IN, sys.executable, "-m", "broker.daemon", "--presenter", "terminal"],
        cwd=ROOT,
        env=environment,
        stdin=slave,
    )
    try:
        yield Hands(master)
    finally:
        process.terminate()
        process.wait(SECONDS)
        os.close(master)
        os.close(slave)


def connect(folder: Path) -> Rpc:
    path = folder / "run" / "companion.sock"
    until = time.monotonic() + START_SECONDS
    while not path.exists():
        assert time.monotonic() < until
        select.select([], [], [], 0.02)
    client = Rpc.connect(path)
    assert isinstance(client, Rpc)
    client.call("session.hello", protocolVersions=["0.1"], client={"name": "test", "version": "1"})
    return client


@pytest.mark.requirement("CP-5.6", "CP-3.5", "CP-5.1")
def test_a_person_at_a_terminal_pairs_and_answers(tmp_path: Path) -> None:
    with broker_in_a_terminal(tmp_path) as hands:
        hands.see("access for programs is on")
        client = connect(tmp_path)
        pairing = client.call("pairing.request", clientName="Agent", scopes=["discover", "interact"])
        hands.see(f"Code: {pairing['verificationCode']}")
        hands.see("> ")
        hands.type(f"approve {pairing['verificationCode']} interact\r")
        outcome = client.call("pairing.wait", pairingId=pairing["pairingId"], waitMs=10_000)
        assert (outcome["status"], outcome["scopes"]) == ("approved", ["interact"])
        hands.see("Done.")
        client.call("session.authenticate", clientId=outcome["clientId"], key=outcome["key"])
        options = [{"id": "yes", "label": "Allow"}, {"id": "no", "label": "Deny"}]
        request = client.call(
            "requests.create",
            capability="interaction.choose",
            params={"title": "Read file?", "options": options},
            timeoutMs=60_000,
        )
        hands.see("| Agent")
        hands.see("| Read file?")
        hands.see("> ")
        hands.type("2\r")
        waiting = {"requestId": request["requestId"], "waitMs": 10_000}
        while request["state"] != "completed":
            revision = request["revision"]
            request = client.call("requests.wait", afterRevision=revision, **waiting)["request"]
        assert request["result"] == {"selectedId": "no"}
        assert outcome["key"] not in hands.screen
        client.close()
