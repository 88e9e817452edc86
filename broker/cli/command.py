"""What every command has in common: `--json` in any place, and parameters that fit the wire.

A text that somebody wrote may look like an option (G18).  As the value of an option it is taken as it is, and so it
is behind `--`.  A `TextCommand` also takes it where its one argument stands, unless it is exactly an option of the
command: that is what `--text=` is for.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from broker.cli.console import Console
from broker.credentials import CredentialError, check_profile_name
from protocols.strict_json import has_lone_surrogate


class JsonCommand(click.Command):
    """A command that takes `--json`, wherever it stands among the options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_json_option())

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _helpful(super().get_help_option(ctx))


class TextCommand(JsonCommand):
    """A command with one argument that is somebody's text."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Without any short option there is no letter in a text that could act as one.
        settings = {
            "help_option_names": ["--help"],
            "ignore_unknown_options": True,
            "allow_extra_args": True,
        }
        super().__init__(*args, context_settings=settings, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            ctx.fail(
                "More than one text, or an option that does not exist. "
                "A text stands in quotes; one that begins with a dash goes last, behind --."
            )
        return rest


class JsonGroup(click.Group):
    """A group of such commands, that takes `--json` itself too."""

    command_class = JsonCommand
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_json_option())

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _helpful(super().get_help_option(ctx))


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


class RootGroup(LazyGroup):
    """The command line as a whole."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None


def _helpful(option: click.Option | None) -> click.Option | None:
    """The help option, whose text goes the way of every result, into closed pipes and full disks too."""
    if option is not None:
        option.callback = _show_help
    return option


def _show_help(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.ensure_object(Console).text(f"{context.get_help()}\n")
        context.exit()


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
CONTENT = Text(0, 2**31)
"""A text whose bounds are a capability's: the broker names the one that is crossed."""


class Seconds(click.ParamType[float]):
    """A number of seconds, at least `low`."""

    name = "seconds"
    _HIGHEST = 1e12
    """Far from what any timer or message cannot hold."""

    def __init__(self, low: float = -_HIGHEST) -> None:
        self._low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not max(self._low, -self._HIGHEST) <= seconds <= self._HIGHEST:
            least = f", at least {self._low:g}" if self._low > -self._HIGHEST else ""
            self.fail(f"not a number of seconds{least}", param, ctx)
        return seconds


class ProfileName(click.ParamType[str]):
    """The name of a credential profile."""

    name = "profile"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            check_profile_name(str(value))
        except CredentialError as error:
            self.fail(str(error), param, ctx)
        return str(value)


F = TypeVar("F", bound=Callable[..., Any])


def text_argument(name: str) -> Callable[[F], F]:
    """The one text of a TextCommand, as argument or as `--text`; `the_text` puts the two together."""

    def decorate(function: F) -> F:
        option = click.option(
            "--text", type=CONTENT, metavar="TEXT", help=f"{name}, for a text that may begin with a dash."
        )
        return click.argument("argument", metavar=name, type=CONTENT, required=False)(option(function))

    return decorate


def the_text(argument: str | None, option: str | None) -> str:
    """The text that was given one way or the other; fails for none or both."""
    text = option if argument is None else argument
    if text is None or (option is not None and argument is not None):
        click.get_current_context().fail("Exactly one text is needed: as the argument, or as --text=TEXT.")
    return text
