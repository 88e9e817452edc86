"""`companion ask`, `confirm` and `input`: put a question to the person and print the answer (CP-6.5)."""

from __future__ import annotations

from typing import Any

import attrs
import click

from broker.cli.asking import Common, ask_person, request_options
from broker.cli.command import CONTENT, TextCommand, text_argument, the_text
from broker.cli.console import Console, pass_console
from broker.cli.outcome import CommandFailed, failure
from broker.client.plan import Result
from protocols.companion.messages import Snapshot
from protocols.json_values import JSONObject

_SECONDS = 300
YES, NO = "yes", "no"


class Answer(click.ParamType[JSONObject]):
    """One answer to choose from, as `ID=LABEL`, or a label that is its own id."""

    name = "option"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> JSONObject:
        text = CONTENT.convert(value, param, ctx)
        id, equals, label = text.partition("=")
        return {"id": id, "label": label if equals else id}


@click.command(cls=TextCommand)
@text_argument("TITLE")
@click.option(
    "--option",
    "options",
    type=Answer(),
    multiple=True,
    required=True,
    metavar="ID=LABEL",
    help="An answer: its id, which is printed, and the label that the person reads. Repeat it, 2 to 5 times.",
)
@request_options(_SECONDS)
@pass_console
def ask(
    console: Console,
    argument: str | None,
    text: str | None,
    options: tuple[JSONObject, ...],
    common: Common,
) -> None:
    """Ask the person to choose, and print the id of what was chosen.

    Exit code 0 means that the person has chosen, whatever it was; 6 that nobody did: cancelled or expired. Ctrl-C
    takes the question back. With --json the request is printed as it ended.

    \b
    companion ask "Deploy to production?" --option yes="Ship it" --option no=Wait
    """
    request = common.request("interaction.choose", {"title": the_text(argument, text), "options": [*options]})
    _print(console, ask_person(request, common.profile))


@click.command(cls=TextCommand)
@text_argument("TITLE")
@click.option(
    "--yes", default="Yes", show_default=True, type=CONTENT, metavar="LABEL", help="The label of yes."
)
@click.option("--no", default="No", show_default=True, type=CONTENT, metavar="LABEL", help="The label of no.")
@click.option("--only-yes", is_flag=True, help="Make no an exit code too: 0 is yes, 1 is no.")
@request_options(_SECONDS)
@pass_console
def confirm(
    console: Console,
    argument: str | None,
    text: str | None,
    yes: str,
    no: str,
    only_yes: bool,
    common: Common,
) -> None:
    """Ask the person for yes or no, and print "yes" or "no".

    Exit code 0 means that the person has answered, and no is an answer too: read what is printed, or use --only-yes
    where a shell is to go on after yes alone. 6 means that nobody answered.

    \b
    companion confirm "Delete the old backups?" --only-yes && rm -r backups
    """
    options: list[JSONObject] = [{"id": YES, "label": yes}, {"id": NO, "label": no}]
    request = common.request("interaction.choose", {"title": the_text(argument, text), "options": [*options]})
    ended = ask_person(request, common.profile)
    if only_yes and _said(ended) != YES:
        raise CommandFailed(attrs.evolve(failure("DECLINED", "the answer is no"), request=ended.raw))
    _print(console, ended)


@click.command("input", cls=TextCommand)
@text_argument("TITLE")
@click.option("--placeholder", type=CONTENT, metavar="TEXT", help="What the empty field shows.")
@click.option("--multiline", is_flag=True, help="Let the answer have several lines.")
@click.option("--max-length", type=int, metavar="N", help="The longest answer, in characters; default: 1000.")
@request_options(_SECONDS)
@pass_console
def input_(
    console: Console,
    argument: str | None,
    text: str | None,
    placeholder: str | None,
    multiline: bool,
    max_length: int | None,
    common: Common,
) -> None:
    """Ask the person to write something, and print it.

    What is printed is exactly what was written, in UTF-8, and a line break; at a terminal, control characters are
    shown instead of obeyed. Exit code 0 means that there is an answer, 6 that nobody gave one.

    \b
    name=$(companion input "What shall the release be called?")
    """
    params: JSONObject = {"title": the_text(argument, text)}
    if placeholder is not None:
        params["placeholder"] = placeholder
    if multiline:
        params["multiline"] = True
    if max_length is not None:
        params["maxLength"] = max_length
    _print(console, ask_person(common.request("interaction.ask_text", params), common.profile))


def _print(console: Console, ended: Result[Snapshot]) -> None:
    console.answer(ended.raw, _said(ended))


def _said(ended: Result[Snapshot]) -> str:
    """The chosen id or the text of a request that was answered."""
    match ended.value.result:
        case {"selectedId": str(said)} | {"text": str(said)}:
            return said
    raise CommandFailed(failure("INTERNAL_ERROR", "the broker told no answer", request=ended.raw))
