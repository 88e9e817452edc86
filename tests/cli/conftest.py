"""One real broker for the tests of a file, a person at its presenter, and the command line as real processes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import pytest

from broker.cli.main import run
from tests.cli.person import Person
from tests.support import keyrings
from tests.support.broker_process import CONFIG, BrokerProcess, running_broker

COMMAND = (sys.executable, "-P", "-m", "broker.cli.main")
PROFILE = "tester"
COMMAND_CONFIG = CONFIG.replace("min_seconds = 0.2", "min_seconds = 1").replace(
    "close_check_timeout_seconds = 0.5", "close_check_timeout_seconds = 5"
)


@attrs.frozen
class CommandLine:
    """Runs `companion` with the sockets, state and credentials of one folder."""

    folder: Path
    variables: Mapping[str, str] = {}
    """What the environment has beside that, or instead."""

    def with_variables(self, variables: Mapping[str, str]) -> CommandLine:
        """The same in another environment."""
        return attrs.evolve(self, variables={**self.variables, **variables})

    @property
    def environment(self) -> dict[str, str]:
        places = {
            "COMPANION_RUNTIME_DIR": self.folder / "run",
            "COMPANION_STATE_DIR": self.folder / "state",
            "COMPANION_CONFIG": self.folder / "config.toml",
            "XDG_CONFIG_HOME": self.folder / "xdg",
            "HOME": self.folder,
        }
        no_keychain = {"PYTHON_KEYRING_BACKEND": keyrings.NONE}  # never the developer's own
        named = {name: str(place) for name, place in places.items()}
        return {**os.environ, **no_keychain, **named, **self.variables}

    def __call__(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            [*COMMAND, *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    @contextlib.contextmanager
    def start(
        self, *arguments: str, wrapped: Sequence[str] = (), **options: Any
    ) -> Iterator[subprocess.Popen[str]]:
        """A running command, in a session of its own; whatever is left of it ends with the block.

        `wrapped`: a command that becomes it.
        """
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [*wrapped, *COMMAND, *arguments]
        with subprocess.Popen(
            command, env=self.environment, text=True, start_new_session=True, **(pipes | options)
        ) as running:
            try:
                yield running
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)

    def inside(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one command to its end in this process, which is faster."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as stdout,
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(io.StringIO()) as stderr,
            mock.patch.dict(os.environ, self.environment),
            mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))),
        ):
            code = run(arguments)
            stdout.seek(0)
            return subprocess.CompletedProcess(arguments, code, stdout.read(), stderr.getvalue())

    def json(self, *arguments: str, stdin: str = "", exit_code: int = 0) -> Any:
        """Run with --json in this process: looks at the exit code, gives the value on stdout."""
        ended = self.inside("--json", *arguments, stdin=stdin)
        assert ended.returncode == exit_code, ended
        return one_value(ended.stdout)


def one_value(printed: str) -> Any:
    """What a command printed with --json: one value on one line."""
    assert printed.count("\n") == 1, printed
    assert printed.endswith("\n")
    return json.loads(printed)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder whose name leaves room for a socket's path, which `tmp_path` may not."""
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A running broker."""
    with (
        tempfile.TemporaryDirectory(prefix="cb-") as name,
        running_broker(Path(name), config=COMMAND_CONFIG) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def person(broker: BrokerProcess) -> Person:
    """Somebody who answers."""
    person = Person(broker.presenter)
    person.start()
    return person


@pytest.fixture(scope="module")
def companion(broker: BrokerProcess, person: Person) -> CommandLine:
    """The command line, paired under one profile."""
    line = CommandLine(broker.folder)
    scopes = "discover,notify,interact"
    ended = line("pair", "Tester", "--scopes", scopes, "--credential-profile", PROFILE)
    assert ended.returncode == 0, ended
    return line


@pytest.fixture
def lonely(tmp_path: Path) -> CommandLine:
    """The command line where no broker runs and nothing is paired."""
    return CommandLine(tmp_path)
