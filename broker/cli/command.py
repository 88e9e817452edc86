"""What every command has in common: `--json` in any place, and parameters that fit the wire."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from broker.cli.console import Console
from broker.credentials import CredentialError, check_profile_name
from protocols.strict_json import has_lone_surrogate


class JsonCommand(click.Command):
    """A command that takes `--json`, wherever it stands among the options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_json_option())


class JsonGroup(click.Group):
    """A group of such commands, that takes `--json` itself too."""

    command_class = JsonCommand
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_json_option())


class LazyGroup(JsonGroup):
    """A group whose commands lie in modules of their own, imported when they are used: imports are start-up time.

    `places` gives a command's place as `module:name` within `broker.cli`.
    """

    def __init__(self, *args: Any, places: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return None
        module, name = self._places[cmd_name].split(":")
        found = getattr(importlib.import_module(f"broker.cli.{module}"), name)
        assert isinstance(found, click.Command)
        return found


def _json_option() -> click.Option:
    return click.Option(
        ["--json"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_turn_on,
        help="One JSON value on stdout, for programs.",
    )


def _turn_on(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Console).json = True


class Text(click.ParamType[str]):
    """A text of `low` to `high` code points that can be sent as UTF-8; never taken for an option by what it holds."""

    name = "text"

    def __init__(self, low: int = 1, high: int = 128) -> None:
        self._low = low
        self._high = high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if has_lone_surrogate(text):
            self.fail("not valid UTF-8", param, ctx)
        if not self._low <= len(text) <= self._high:
            self.fail(f"must have {self._low} to {self._high} characters", param, ctx)
        return text


ID = Text()


class ProfileName(click.ParamType[str]):
    """The name of a credential profile."""

    name = "profile"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            check_profile_name(str(value))
        except CredentialError as error:
            self.fail(str(error), param, ctx)
        return str(value)
