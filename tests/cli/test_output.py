"""Where a command's words cannot be shown or written: other locales, terminals, closed pipes, full disks."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.charset import ascii_json, encoding_of, visible
from tests.cli.conftest import COMMAND, CommandLine
from tests.cli.person import Person

NAME = "猫 né"
SHOWN = "<U+732B> n<U+00E9>"
NO_HELP = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
ASCII_LOCALES = [
    pytest.param({"LC_ALL": "C"}, id="LC_ALL=C"),
    pytest.param({"LANG": "C", "LC_ALL": "", "LC_CTYPE": ""}, id="LANG=C"),
    pytest.param({"LANG": "POSIX", "LC_ALL": "", "LC_CTYPE": "C"}, id="LC_CTYPE=C"),
    pytest.param({"LC_ALL": "C", **NO_HELP}, id="C, and Python takes it literally"),
    pytest.param({"PYTHONIOENCODING": "ascii"}, id="PYTHONIOENCODING"),
]


def ask(run: CommandLine, *options: str) -> subprocess.CompletedProcess[bytes]:
    """A question whose answer is NAME, as bytes."""
    command = [*COMMAND, "input", NAME, *options]
    return subprocess.run(command, env=run.environment, capture_output=True, timeout=30, check=False)


@pytest.fixture
def answered(companion: CommandLine, person: Person) -> CommandLine:
    person.answers[NAME] = NAME
    return companion


# -- locales -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-6.3")
@pytest.mark.parametrize("variables", ASCII_LOCALES)
def test_json_is_the_same_value_in_ascii(
    answered: CommandLine, person: Person, variables: dict[str, str]
) -> None:
    ended = ask(answered.with_variables(variables), "--json")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.isascii()
    assert json.loads(ended.stdout)["result"] == {"text": NAME}
    assert person.seen[-1]["title"] == NAME  # the argument was read as what it was, too


@pytest.mark.requirement("CP-6.3")
@pytest.mark.parametrize("variables", ASCII_LOCALES)
def test_lines_for_people_show_what_the_locale_cannot(
    answered: CommandLine, variables: dict[str, str]
) -> None:
    made = json.loads(ask(answered, "--json").stdout)["requestId"]
    run = answered.with_variables(variables)
    command = [*COMMAND, "requests", "get", made]
    ended = subprocess.run(command, env=run.environment, capture_output=True, timeout=30, check=True)
    assert ended.stdout.isascii()
    assert SHOWN in ended.stdout.decode()


@pytest.mark.requirement("CP-6.3")
def test_an_answer_for_a_program_is_utf_8_in_any_locale(answered: CommandLine) -> None:
    for variables in ({"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C.UTF-8"}):
        assert ask(answered.with_variables(variables)).stdout == f"{NAME}\n".encode()


@pytest.mark.requirement("CP-6.3")
def test_with_utf_8_json_holds_the_characters_themselves(answered: CommandLine) -> None:
    assert NAME.encode() in ask(answered.with_variables({"LC_ALL": "C.UTF-8"}), "--json").stdout


def test_errors_in_ascii(lonely: CommandLine) -> None:
    run = lonely.with_variables({"LC_ALL": "C", **NO_HELP})
    ended = run("no-such-" + NAME)
    assert ended.returncode == 2
    assert f"no-such-{SHOWN}" in ended.stderr


def test_bytes_that_are_no_utf_8_are_refused_in_any_locale(lonely: CommandLine) -> None:
    for variables in ({"LC_ALL": "C", **NO_HELP}, {"LC_ALL": "C.UTF-8"}):
        ended = lonely.with_variables(variables)("notify", "\udcff", "--json")
        assert json.loads(ended.stdout)["error"]["code"] == "INVALID_PARAMS"


def test_json_escapes_what_does_not_print() -> None:
    document = json.dumps({"a": "\u202e\x9b\N{CAT FACE}é\xa0\ue000"}, ensure_ascii=False)
    for only_unprintable in (True, False):
        escaped = ascii_json(document, only_unprintable=only_unprintable)
        assert json.loads(escaped) == json.loads(document)
        assert escaped.isprintable()
        assert escaped.isascii() != only_unprintable


def test_the_locale_is_read_as_the_user_has_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = [
        ({}, "utf-8"),
        ({"LANG": "en_US.UTF-8"}, "utf-8"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "ascii"),  # what Python makes of LANG=C
        ({"LC_CTYPE": "UTF-8"}, "utf-8"),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "ascii"),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8"),
    ]
    for variables, encoding in settings:
        for name in ("LC_ALL", "LC_CTYPE", "LANG"):
            monkeypatch.setenv(name, variables.get(name, ""))
        assert encoding_of(None) == encoding, variables
    assert visible("né\N{CAT FACE}", "latin-1") == b"n\xe9<U+1F431>"


# -- terminals -----------------------------------------------------------------------------------------------------


def at_a_terminal(run: CommandLine, *arguments: str) -> tuple[int, str]:
    """Run with a terminal for everything."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND[0], [*COMMAND, *arguments], run.environment)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while data := os.read(terminal, 4096):
            shown += data
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


@pytest.mark.requirement("G08")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_byte_of_an_answer_repaints_a_terminal(
    companion: CommandLine, person: Person, options: tuple[str, ...]
) -> None:
    person.answers["Paint?"] = "a\x1b[2J\x9b2J\u202eb"
    status, shown = at_a_terminal(companion, "input", "Paint?", *options)
    assert status == 0
    assert shown.replace("\r\n", "").isprintable()
    assert "a" in shown


@pytest.mark.requirement("G08")
def test_no_byte_of_an_argument_does_either(lonely: CommandLine) -> None:
    status, shown = at_a_terminal(lonely, "no-such\x1b[2J")
    assert status == 2
    assert "\x1b" not in shown


def test_no_terminal_is_needed(companion: CommandLine) -> None:
    """Every other test runs without one too; this one closes all three streams."""
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *COMMAND]
    for arguments, status in (
        (["notify", "t"], 5),
        (["requests", "create", "--file", "-"], 2),
        (["nope"], 2),
    ):
        ended = subprocess.run([*closed, *arguments], env=companion.environment, timeout=30, check=False)
        assert ended.returncode == status, arguments


# -- pipes and disks -----------------------------------------------------------------------------------------------

PRINTING: Sequence[list[str]] = [
    ["status"],
    ["requests", "get", "no-such", "--json"],
    ["--help"],
    ["ask", "--help"],
    ["help", "exit-codes"],
]


def ended_with(run: CommandLine, arguments: list[str], **streams: Any) -> tuple[int, str]:
    """Exit code, and what was on stderr."""
    with run.start(*arguments, **streams) as ended:
        _, errors = ended.communicate(timeout=20)
    return ended.returncode, errors or ""


@pytest.fixture
def closed_pipe() -> Any:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.requirement("CP-6.3", "CP-6.5")
@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_closed_stdout_ends_quietly(companion: CommandLine, closed_pipe: int, arguments: list[str]) -> None:
    code, errors = ended_with(companion, arguments, stdout=closed_pipe)
    assert code == 141
    assert "Traceback" not in errors
    assert "Broken" not in errors


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_full_disk_behind_stdout_is_told(companion: CommandLine, arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        code, errors = ended_with(companion, arguments, stdout=full)
    assert code == 5
    assert "could not be written" in errors
    assert "Traceback" not in errors


@pytest.mark.requirement("CP-6.5")
@pytest.mark.parametrize("where", ["closed pipe", "/dev/full"])
def test_a_stderr_that_takes_nothing_changes_nothing(
    companion: CommandLine, closed_pipe: int, where: str
) -> None:
    with open("/dev/full", "w") as full:
        stderr = closed_pipe if where == "closed pipe" else full
        for arguments, status in (
            (["requests", "get", "no-such"], 5),
            (["no-such"], 2),
            (["status"], 0),
            ([], 2),
        ):
            assert ended_with(companion, arguments, stderr=stderr)[0] == status


def test_a_full_disk_behind_the_profile_is_3_and_the_old_profile_stays(lonely: CommandLine) -> None:
    """The folder of credentials cannot be made: nobody is asked."""
    (lonely.folder / "xdg").write_text("")
    ended = lonely.inside("pair", "A", "--scopes", "notify", "--credential-profile", "p", "--json")
    assert ended.returncode == 3
    assert json.loads(ended.stdout)["error"]["code"] == "UNAUTHENTICATED"
    assert str(Path(lonely.folder)) not in ended.stdout + ended.stderr
