"""A real broker process in a private folder, with the test itself as its presenter.

    with running_broker(tmp_path) as broker:
        client = broker.agent("discover", "interact")
        ...

The presenter's lines are passed on to the test (tests/support/puppet.py), which draws nothing and answers what
the test tells it to.  At the end the broker's log must not tell of a fault, whatever the test was about.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil

from tests.support.holder import Holder
from tests.support.lines import Lines, Rpc

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "broker.daemon")
PUPPET = Path(__file__).with_name("puppet.py")
START_SECONDS = 20.0
STOP_SECONDS = 10.0
SOCKETS = ("companion.sock", "ai-protection.sock", "control.sock")
ARMING_MS = 50
CONFIG = f"""
[access]
enabled = true
[presenter]
arming_ms = {ARMING_MS}
[lease]
min_seconds = 0.2
max_seconds = 1800
grace_seconds = 0.4
close_check_timeout_seconds = 0.5
close_check_cooldown_seconds = 0.6
startup_hold_seconds = 0
[apps."org.example.App"]
name = "Example"
executable = "/opt/example/bin/example"
"""

APP = "org.example.App"
"""The app that the configuration names."""
L = TypeVar("L", bound=Lines)


class Puppet(Rpc):
    """The test's end of the presenter's connection."""

    def ready(self, *, person: bool = True) -> None:
        """Say that the presenter is there."""
        params = {
            "protocolVersion": "0.1",
            "name": "puppet",
            "version": "1",
            "person": person,
            "kinds": ["animation", "notice", "progress", "interaction"],
            "interactions": ["choice", "text"],
        }
        self.notify("ready", **params)

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def wait_for(self, method: str, **members: Any) -> Any:
        """The params of the next notification with this method and these params; others are kept for later."""
        return self.notification(method, **members)

    def presented(self, shown: dict[str, Any]) -> None:
        """Report that a present or confirm_pairing is on the screen."""
        names = ("pairingId",) if "pairingId" in shown else ("requestId", "revision")
        self.notify("presented", digest=shown["digest"], **{name: shown[name] for name in names})

    def answer(self, shown: dict[str, Any], selected: str, *, input_ms: int = 0) -> Any:
        """Choose an option, after the arming time, and return the outcome."""
        time.sleep(ARMING_MS / 1000 * 1.5)
        return self.call(
            "answer",
            requestId=shown["requestId"],
            revision=shown["revision"],
            digest=shown["digest"],
            inputStartedMs=input_ms,
            result={"selectedId": selected},
        )

    def approve(self, scopes: Sequence[str] | None = None, **members: Any) -> Any:
        """Approve the next pairing with these params; by default with the scopes that were asked for."""
        shown = self.wait_for("confirm_pairing", **members)
        self.presented(shown)
        time.sleep(ARMING_MS / 1000 * 1.5)
        outcome = self.call(
            "pairing_decision",
            pairingId=shown["pairingId"],
            digest=shown["digest"],
            inputStartedMs=0,
            approved=True,
            scopes=list(shown["scopes"] if scopes is None else scopes),
        )
        assert outcome == {"outcome": "committed"}, outcome
        return shown


class BrokerProcess:
    """A started broker; `presenter` is the test's end of the presenter once it has connected."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, listener: socket.socket) -> None:
        self.process = process
        self.folder = folder
        self.runtime = folder / "run"
        self._listener = listener
        self._presenter: Puppet | None = None
        self._connections: list[Lines] = []
        self._credentials: dict[tuple[str, ...], tuple[str, str]] = {}

    @property
    def presenter(self) -> Puppet:
        if self._presenter is None:
            connection, _ = self._listener.accept()
            self._presenter = Puppet(connection)
            self._presenter.ready()
            self._presenter.wait_for("settings")  # from here on the broker counts on it
        return self._presenter

    def new_presenter(self) -> Puppet:
        """The presenter that was started in place of one that ended."""
        if self._presenter is not None:
            self._presenter.close()
            self._presenter = None
        return self.presenter

    # -- connections ------------------------------------------------------------------------------------------

    def connect(self, name: str) -> Rpc:
        """A raw connection to the socket of this file name."""
        return self._opened(Rpc.connect(self.runtime / name))

    def greet(self) -> Rpc:
        """A companion connection that has said hello."""
        client = self.connect("companion.sock")
        client.call("session.hello", protocolVersions=["0.1"], client={"name": "test", "version": "1"})
        return client

    def agent(self, *scopes: str) -> Rpc:
        """An authenticated companion connection of the one client that is paired for exactly these scopes."""
        return self.session(self.credential(*scopes))

    def credential(self, *scopes: str) -> tuple[str, str]:
        """Id and key of the client that `agent` is."""
        if scopes not in self._credentials:
            self._credentials[scopes] = self.pair("agent", scopes)
        return self._credentials[scopes]

    def holder(self, holder_id: str, *, pid: int | None = None) -> Holder:
        """A lease connection that is ready; by default the holder is the test's process."""
        holder = self._opened(Holder.connect(self.runtime / "ai-protection.sock"))
        holder.greet(holder_id, os.getpid() if pid is None else pid)
        return holder

    def control(self) -> Rpc:
        """A control connection."""
        return self.connect("control.sock")

    def close_connections(self) -> None:
        """Close every connection that was made so far."""
        while self._connections:
            self._connections.pop().close()

    def _opened(self, connection: L) -> L:
        self._connections.append(connection)
        return connection

    # -- pairing and prompts ----------------------------------------------------------------------------------

    def pair(self, name: str, scopes: Sequence[str]) -> tuple[str, str]:
        """Pair a client through the presenter; its id and key."""
        presenter = self.presenter
        with self.greet() as client:
            pairing = client.call("pairing.request", clientName=name, scopes=list(scopes))
            presenter.approve(pairingId=pairing["pairingId"])
            outcome = client.call("pairing.wait", pairingId=pairing["pairingId"], waitMs=5000)
        assert outcome["status"] == "approved", outcome["status"]
        return outcome["clientId"], outcome["key"]

    def session(self, credential: tuple[str, str]) -> Rpc:
        """An authenticated companion connection."""
        client = self.greet()
        client.call("session.authenticate", clientId=credential[0], key=credential[1])
        return client

    def show(self, client: Rpc, request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Report a question as presented: what was to be drawn, and the snapshot once it awaits the user."""
        shown = self.presenter.wait_for("present", requestId=request["requestId"])
        self.presenter.presented(shown)
        snapshot = client.call("requests.get", requestId=request["requestId"])
        while snapshot["state"] != "awaiting_user":
            after = snapshot["revision"]
            outcome = client.call(
                "requests.wait", requestId=request["requestId"], afterRevision=after, waitMs=10_000
            )
            assert outcome["changed"], "the report of the presenter changed nothing"
            snapshot = outcome["request"]
        return shown, snapshot

    # -- the process ------------------------------------------------------------------------------------------

    @property
    def log(self) -> str:
        """What it has written to standard error; not valid UTF-8 is an error."""
        return _log_file(self.folder).read_text(encoding="utf-8")

    @property
    def memory(self) -> int:
        """Its resident memory in bytes."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def kill(self) -> None:
        """End the broker at once, as a crash would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End the broker in good order; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STOP_SECONDS)


_STARTS = itertools.count()


@contextmanager
def running_broker(
    folder: Path,
    *,
    config: str = CONFIG,
    command: Sequence[str] = COMMAND,
    environment: dict[str, str] | None = None,
    faults: bool = False,
) -> Iterator[BrokerProcess]:
    """Start a broker in `folder` (again, when it has run there before) and end it with the block.

    `faults`: whether its log may tell of faults, which it must not unless the test provokes them.
    """
    write_config(folder, config)
    strings = folder / f"puppet-{next(_STARTS)}.sock"  # a killed broker's puppet finds no other's
    with socket.socket(socket.AF_UNIX) as listener, _log_file(folder).open("wb") as log:
        listener.bind(str(strings))
        listener.listen()
        listener.settimeout(START_SECONDS)
        process = subprocess.Popen(
            [*command, "--presenter", f"exec:{sys.executable} {PUPPET} {strings}"],
            cwd=ROOT,
            env={**environment_of(folder), **(environment or {})},
            stderr=log,
        )
        broker = BrokerProcess(process, folder, listener)
        try:
            _wait_for(process, broker.runtime / "control.sock")
            yield broker
        finally:
            broker.close_connections()
            if broker._presenter is not None:
                broker._presenter.close()
            _end(broker)
            sys.stderr.write(broker.log)
    if not faults:
        assert faults_in(broker.log) == []


def faults_in(log: str) -> list[str]:
    """The lines of a log that tell of a fault in the broker."""
    return [line for line in log.splitlines() if "level='error'" in line or line.startswith("Traceback")]


def characters_of(folder: Path) -> Path:
    """Where a broker that lives in this folder looks for character packs."""
    return folder / "xdg" / "companion" / "characters"


def write_config(folder: Path, text: str = CONFIG) -> None:
    """Write the configuration that a broker in this folder reads, as private as it has to be."""
    file = folder / "config.toml"
    file.write_text(text)
    file.chmod(0o600)


def environment_of(folder: Path) -> dict[str, str]:
    """The environment of a broker that lives in this folder."""
    return {
        **os.environ,
        "COMPANION_RUNTIME_DIR": str(folder / "run"),
        "COMPANION_STATE_DIR": str(folder / "state"),
        "COMPANION_CONFIG": str(folder / "config.toml"),
        "XDG_CONFIG_HOME": str(folder / "xdg"),
    }


def _log_file(folder: Path) -> Path:
    return folder / "broker.log"


def _end(broker: BrokerProcess) -> None:
    try:
        broker.stop()
    except subprocess.TimeoutExpired:
        broker.kill()
        raise


def _wait_for(process: subprocess.Popen[bytes], path: Path) -> None:
    """Wait until the socket takes connections; it is the last one that a start makes."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, f"the broker ended with status {process.returncode}"
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                time.sleep(0.02)
            else:
                return
    raise TimeoutError("the broker did not start")
