"""Every exit code but 0 comes with a code, a text and `retryable`, and they are those of the published table."""

from __future__ import annotations

import contextlib
import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import broker.client.errors
import broker.credentials
import protocols.errors
from broker.cli.command import JsonGroup
from broker.cli.interrupts import Interrupted
from broker.cli.main import companion as root
from broker.cli.outcome import MEANINGS, CodeRow, CommandFailed, Exit, Failure, codes, failure, failure_of
from broker.client.errors import CallFailed, LeaseRefused
from broker.credentials import CredentialError
from protocols.errors import InvalidValue, ParseError
from protocols.json_values import JSONObject
from protocols.lease.codes import Code, HandshakeCode
from protocols.refusal import CODES, ErrorCode
from tests.cli.conftest import CommandLine, one_value

TABLE = {row.code: row for row in codes()}


def hold(failure: Failure) -> None:
    """The failure is what the table says of its code."""
    row = TABLE[failure.code]
    assert (failure.exit, failure.retryable) == (row.exit, row.retryable)
    assert failure.exit != Exit.DONE
    assert failure.message.strip()
    told: Any = failure.as_json()
    assert set(told["error"]) >= {"code", "message", "retryable"}
    assert isinstance(told["error"]["retryable"], bool)


def errors() -> Iterator[Exception]:
    """One of every class of error that a command may meet."""
    for module in (broker.client.errors, broker.credentials, protocols.errors):
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, Exception) and kind.__module__ == module.__name__:
                yield from _made(kind)
    for word in (*HandshakeCode, *(code for code in Code if code is not Code.ACCEPTED)):
        yield LeaseRefused(word.value, "refused")
    for code in ErrorCode:
        yield CallFailed(code.value, "refused", CODES[code].retryable, {})
    yield from (click.UsageError("usage"), click.NoSuchOption("-x"), click.BadParameter("bad"))
    yield from (OSError(5, "I/O"), ValueError(), KeyError("x"), RecursionError())


def _made(kind: type[Exception]) -> Iterator[Exception]:
    if kind is InvalidValue:
        yield InvalidValue("params.x", "too long", 3)
    elif kind is protocols.errors.FrameTooLong:
        yield protocols.errors.FrameTooLong(65_536)
    elif kind is ParseError:
        yield ParseError("syntax error")
    elif kind not in (CallFailed, LeaseRefused):
        yield kind("something")


@pytest.mark.requirement("CP-6.5", "CP-6.6", "CP-6.7")
@pytest.mark.parametrize("error", list(errors()), ids=lambda error: f"{type(error).__name__}-{error}"[:60])
def test_every_error_becomes_a_failure_of_the_table(error: Exception) -> None:
    hold(failure_of(error))


@pytest.mark.requirement("CP-6.6")
@pytest.mark.parametrize("row", list(codes()), ids=lambda row: row.code)
def test_every_code_has_one_exit_code_and_one_retryable(row: CodeRow) -> None:
    assert TABLE[row.code] == row
    hold(failure(row.code, "text"))


@pytest.mark.requirement("CP-6.5", "CP-6.6", "CP-6.7")
def test_the_table_holds_every_code_and_every_exit_code() -> None:
    assert {code.value for code in ErrorCode} <= set(TABLE)
    assert {row.exit for row in codes()} == set(Exit) - {Exit.DONE}
    assert set(MEANINGS) == set(Exit)
    facts = {code.value: (TABLE[code.value].exit, TABLE[code.value].retryable) for code in ErrorCode}
    assert facts == {code.value: (row.exit, row.retryable) for code, row in CODES.items()}


def test_a_code_that_this_side_does_not_know_is_passed_on() -> None:
    told = failure_of(CallFailed("NEWER_CODE", "text", True, {"detail": 1}))
    assert (told.exit, told.code, told.retryable) == (Exit.FAILED, "NEWER_CODE", True)
    assert failure_of(LeaseRefused("newer_code", "text")).code == "newer_code"


def test_details_never_hide_what_every_error_has() -> None:
    details: JSONObject = {"code": "FAKE", "message": "fake", "retryable": False, "limit": 3}
    told: Any = Failure(exit=5, code="X", message="real", retryable=True, details=details).as_json()
    assert told == {"error": {"code": "X", "message": "real", "retryable": True, "limit": 3}}


def test_a_signal_is_told_by_its_number() -> None:
    for number, exit_code in ((1, 129), (2, 130), (15, 143)):
        hold(told := Interrupted(number).failure("text"))
        assert told.exit == exit_code


def test_a_failure_of_a_command_s_own_is_passed_on() -> None:
    own = failure("DECLINED", "text")
    assert failure_of(CommandFailed(own)) is own
    assert failure_of(CredentialError("text")).code == "UNAUTHENTICATED"


# -- any line at all -----------------------------------------------------------------------------------------------


def commands(command: click.Command = root, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command."""
    yield path
    if isinstance(command, JsonGroup):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from commands(found, (*path, name))


RUNS_PROGRAMS = [("serve",), ("lease", "run")]
WORDS = [
    "-",
    "--",
    "---",
    "-h",
    "-rf",
    "",
    "x",
    "1",
    "nan",
    "--text",
    "--text=",
    "\udcff",
    "\x1b[2J",
    "né",
    "a=b",
]


def options() -> list[str]:
    """Every option of every command."""
    found = set()
    for path in commands():
        command: click.Command = root
        for name in path:
            assert isinstance(command, JsonGroup)
            command = command.get_command(click.Context(command), name) or command
        found |= {name for param in command.params if isinstance(param, click.Option) for name in param.opts}
    return sorted(found)


LINES = st.tuples(
    st.sampled_from([path for path in commands() if path not in RUNS_PROGRAMS]),
    st.lists(st.sampled_from([*WORDS, *options()]), max_size=5),
)


@pytest.mark.requirement("CP-6.3", "CP-6.5", "CP-6.6", "G18")
@given(line=LINES)
@example(line=(("access", "status"), ["\udcff"]))
@settings(deadline=None, max_examples=300)
def test_whatever_the_line_there_is_one_value_and_every_failure_has_a_code(
    line: tuple[tuple[str, ...], list[str]],
) -> None:
    """Where no broker runs and nothing is paired."""
    path, words = line
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        ended = CommandLine(Path(name)).inside("--json", *path, *words)
    if "Usage: " in ended.stdout:  # --help was asked for
        assert ended.returncode == 0
        return
    value = one_value(ended.stdout)
    if ended.returncode == 0:
        assert "error" not in value
        return
    row = TABLE[value["error"]["code"]]
    assert (ended.returncode, value["error"]["retryable"]) == (row.exit, row.retryable)
    assert value["error"]["message"]
    assert ended.stderr.startswith("companion: ")
    assert "\x1b" not in ended.stderr + ended.stdout


@pytest.mark.requirement("CP-6.6")
@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_without_json_the_line_for_people_ends_with_the_code(
    lonely: CommandLine, path: tuple[str, ...]
) -> None:
    ended = lonely.inside(*path, "--no-such-option", "x", "y")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith("[INVALID_PARAMS]\n")
    assert ended.stderr.startswith("Usage: companion")
