"""`companion notify`: show the person something, without waiting for anything."""

from __future__ import annotations

import click

from broker.cli.asking import Common, request_options
from broker.cli.command import CONTENT, Seconds, TextCommand, text_argument, the_text
from broker.cli.console import Console, pass_console
from broker.cli.ends import create_request
from broker.cli.profiles import paired
from protocols.companion.capabilities import Tone
from protocols.json_values import JSONObject


@click.command(cls=TextCommand)
@text_argument("TEXT")
@click.option("--title", type=CONTENT, metavar="TEXT", help="A line above the text.")
@click.option(
    "--tone", type=click.Choice([tone.value for tone in Tone]), help="What it means; default: information."
)
@click.option("--display", type=Seconds(), metavar="SECONDS", help="How long it is shown; default: 8.")
@request_options(60)
@pass_console
def notify(
    console: Console,
    argument: str | None,
    text: str | None,
    title: str | None,
    tone: str | None,
    display: float | None,
    common: Common,
) -> None:
    """Show the person a text for a while, and print the request's id.

    Exit code 0 means that the broker has accepted it, not that it was seen; "companion requests wait ID" waits until
    it was shown.

    \b
    companion notify "The build has passed." --tone success
    """
    params: JSONObject = {"text": the_text(argument, text)}
    if title is not None:
        params["title"] = title
    if tone is not None:
        params["tone"] = tone
    if display is not None:
        params["displayMs"] = round(display * 1000)
    with paired(common.profile) as client:
        made = create_request(client, common.request("notice.show", params))
    console.answer(made.raw, made.value.request_id)
