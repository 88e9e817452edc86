"""The demo's stage: a private folder, a broker and an app as real processes, and their end whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import attrs

from broker.client.blocking.control import ControlConnection
from broker.client.errors import NotConnected
from protocols.control.messages import Status, StatusResult

APP_KEY = "org.example.Editor"
_APP = (sys.executable, "-c", "import sys; sys.stdin.read()")  # ends with whoever started it
_START_SECONDS = 20.0
_LEAVE_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.05
_SCRIPT = {
    "pairing": [{"do": "approve", "after_ms": 800}],
    "prompts": [
        {"capability": "interaction.choose", "do": "choose", "option": "publish", "after_ms": 800},
        {"capability": "interaction.ask_text", "do": "text", "text": "Autumn report", "after_ms": 800},
    ],
}
_CONFIG = """\
[access]
enabled = true
[lease]
min_seconds = 1
grace_seconds = 0.5
close_check_timeout_seconds = 3
close_check_cooldown_seconds = 0.5
startup_hold_seconds = 0
[apps."{app}"]
name = "Example Editor"
executable = {executable}
"""


class StageFailed(Exception):
    """The demo cannot be shown; the text says why."""


@attrs.frozen
class Stage:
    """What stands on it: the processes' environment, the owner's socket, the broker and the app."""

    environment: dict[str, str]
    control_socket: Path
    broker: subprocess.Popen[bytes]
    app: subprocess.Popen[bytes]


@contextlib.contextmanager
def stage(presenter: str) -> Iterator[Stage]:
    """Set the stage; at the end no process, socket or folder of it is left."""
    with private_folder() as folder, open(folder / "broker.log", "wb") as log:
        environment = _environment(folder)
        command = (sys.executable, "-P", "-m", "broker.daemon", "--presenter", presenter)
        with (
            running(
                command, environment, stderr=log, group=None
            ) as broker,  # its presenter reads the terminal
            running(_APP, environment, stdin=subprocess.PIPE) as app,
        ):
            ready = Stage(environment, folder / "run" / "control.sock", broker, app)
            _wait_for_presenter(ready, folder / "broker.log")
            yield ready


def scripted_presenter() -> str:
    """The presenter kind that answers without a person; raises StageFailed outside of a checkout."""
    program = Path(__file__).parents[2] / "fixtures" / "presenters" / "scripted.py"
    if not program.is_file():
        raise StageFailed("nobody is at a terminal, and the scripted presenter is in the checkout only")
    return f"exec:{shlex.join([sys.executable, str(program)])}"


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A folder with the demo's configuration, gone after the block."""
    folder = Path(tempfile.mkdtemp(prefix="demo-"))
    try:
        executable = json.dumps(os.path.realpath(sys.executable), ensure_ascii=False)  # TOML quotes alike
        config = folder / "config.toml"
        config.touch(0o600)
        config.write_text(_CONFIG.format(app=APP_KEY, executable=executable), "utf-8")
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def running(
    command: Sequence[str],
    environment: dict[str, str],
    *,
    stdin: int | None = None,
    stderr: IO[bytes] | None = None,
    group: int | None = 0,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has ended after the block: by itself, because it was asked to, or killed.

    `group` 0: in a process group of its own, so that Ctrl-C does not reach it; None: in this one's.
    """
    with subprocess.Popen(
        command, env=environment, stdin=stdin, stderr=stderr, process_group=group
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _environment(folder: Path) -> dict[str, str]:
    """Every place of the broker inside the folder, and what the scripted presenter does if it is the one."""
    return {
        **os.environ,
        "COMPANION_RUNTIME_DIR": str(folder / "run"),
        "COMPANION_STATE_DIR": str(folder / "state"),
        "COMPANION_CONFIG": str(folder / "config.toml"),
        "COMPANION_SCRIPT": json.dumps(_SCRIPT),
    }


def _wait_for_presenter(ready: Stage, log: Path) -> None:
    """Until the broker answers and its presenter has shown up; raises StageFailed with the broker's last words."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and ready.broker.poll() is None:
        with contextlib.suppress(NotConnected), ControlConnection.open(ready.control_socket) as connection:
            status = connection.call("status", Status()).result
            if isinstance(status, StatusResult) and status.presenter.name is not None:
                return
        time.sleep(_LOOK_AGAIN_SECONDS)
    raise StageFailed(f"the broker did not start: {log.read_text('utf-8', 'replace')[-2000:].strip()}")
