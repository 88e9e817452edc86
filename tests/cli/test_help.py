"""Every command and option is explained: in the help, and on the page about the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest

from broker.cli.command import JsonGroup
from broker.cli.help_topics import rows_of
from broker.cli.main import companion as root
from broker.cli.outcome import Exit
from tests.cli.conftest import CommandLine
from tests.cli.test_failures import commands

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
PATHS = list(commands())
WIDEST = 80


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, JsonGroup)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


@pytest.mark.requirement("CP-6.1")
@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_and_option_says_what_it_is_for(path: tuple[str, ...]) -> None:
    command = command_at(path)
    assert command.help
    assert command.get_short_help_str(1_000).endswith(".")
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name
            assert param.help[0].isupper(), param.name
            assert param.help.endswith(".") or "default:" in param.help, param.name


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_is_plain_text_that_fits_a_terminal(lonely: CommandLine, path: tuple[str, ...]) -> None:
    ended = lonely.inside(*path, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"Usage: {' '.join(('companion', *path))} ")
    assert ended.stdout.isascii()
    assert max(map(len, ended.stdout.splitlines())) <= WIDEST


@pytest.mark.requirement("CP-6.1")
def test_the_page_lists_exactly_the_commands_there_are() -> None:
    rows = re.findall(r"^\| `companion ([^`]*)`", PAGE.read_text(), re.MULTILINE)
    listed = {tuple(word for word in re.split(r" (?=[A-Z-])", row)[0].split()) for row in rows}
    assert listed == {path for path in PATHS if path and not isinstance(command_at(path), click.Group)}


@pytest.mark.requirement("CP-6.5", "CP-6.6", "CP-6.7")
def test_help_exit_codes_is_the_same_table_for_programs_and_people(lonely: CommandLine) -> None:
    told: Any = lonely.json("help", "exit-codes")
    rows = {
        (entry["exit"], row["code"], row["retryable"])
        for entry in told["exitCodes"]
        for row in entry["codes"]
    }
    assert rows == {(int(exit), row.code, row.retryable) for exit in Exit for row in rows_of(exit)}
    assert [entry["exit"] for entry in told["exitCodes"]] == sorted(map(int, Exit))
    lines = lonely.inside("help", "exit-codes").stdout
    for entry in told["exitCodes"]:
        assert f"{entry['exit']:>3}  {entry['meaning']}\n" in lines


@pytest.mark.requirement("CP-5.5")
def test_no_option_takes_a_key() -> None:
    taking = {
        name
        for path in PATHS
        for param in command_at(path).params
        if isinstance(param, click.Option)
        for name in param.opts
        if "key" in name or "secret" in name or "password" in name
    }
    assert taking == {"--idempotency-key", "--key-store"}
