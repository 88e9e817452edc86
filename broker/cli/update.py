"""`companion requests update`: change what a request shows (CP-3.11)."""

from __future__ import annotations

from typing import Any

import click

from broker.cli.command import CONTENT, ID, JsonCommand
from broker.cli.console import Console, pass_console
from broker.cli.ends import snapshot_lines
from broker.cli.files import read_json
from broker.cli.outcome import invalid
from broker.cli.profiles import paired, profile_option
from protocols.errors import ParseError
from protocols.json_values import JSON, JSONObject
from protocols.strict_json import decode


class Field(click.ParamType[tuple[str, JSON]]):
    """`NAME=VALUE`, the value as JSON, or as the text that stands there."""

    name = "field"

    def __init__(self, *, is_text: bool) -> None:
        self._is_text = is_text

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, JSON]:
        text = CONTENT.convert(value, param, ctx)
        name, equals, rest = text.partition("=")
        if not (name and equals):
            self.fail("must be NAME=VALUE", param, ctx)
        return name, rest if self._is_text else self._json(rest, param, ctx)

    def _json(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> JSON:
        try:
            document = decode(text.encode())
        except ParseError:
            self.fail("the value is not JSON; --set-text takes it as a text", param, ctx)
        if document.flaw is not None:
            self.fail(f"the value is not JSON: {document.flaw.reason}", param, ctx)
        return document.value


@click.command(cls=JsonCommand)
@click.argument("request_id", type=ID)
@click.option(
    "--expected-revision",
    "revision",
    type=click.IntRange(min=1, max=2**63 - 1),
    required=True,
    metavar="N",
    help="The revision that the change is meant for, as a snapshot tells it.",
)
@click.option("--file", "source", metavar="FILE", help="JSON with the fields that change; - is stdin.")
@click.option(
    "--set",
    "fields",
    type=Field(is_text=False),
    multiple=True,
    metavar="NAME=JSON",
    help="One field; repeatable.",
)
@click.option(
    "--set-text",
    "texts",
    type=Field(is_text=True),
    multiple=True,
    metavar="NAME=TEXT",
    help="One field that is a text, whatever it holds; repeatable.",
)
@profile_option
@pass_console
def update(
    console: Console,
    request_id: str,
    revision: int,
    source: str | None,
    fields: tuple[tuple[str, JSON], ...],
    texts: tuple[tuple[str, JSON], ...],
    profile: str | None,
) -> None:
    """Change the fields of a request that its capability lets be updated.

    A request that has another revision by then is not changed (REVISION_CONFLICT, with the request as it stands).

    \b
    companion requests update ID --expected-revision 2 --set fraction=0.5
    companion requests update ID --expected-revision 3 --set finished=true
    """
    params = _params(source, fields, texts)
    with paired(profile) as client:
        result = client.run(client.calls.update(request_id, revision, params))
    console.result(result.raw, snapshot_lines(result.value))


def _params(
    source: str | None, fields: tuple[tuple[str, JSON], ...], texts: tuple[tuple[str, JSON], ...]
) -> JSONObject:
    """What changes: the file's members and the options'; a name that stands twice is refused."""
    params: JSONObject = {}
    if source is not None:
        value = read_json(source)
        if not isinstance(value, dict):
            raise invalid("the file must hold an object", field="--file")
        params |= value
    for name, value in (*fields, *texts):
        if name in params:
            raise invalid("a field stands twice", field=f"params.{name}")
        params[name] = value
    return params
