"""`companion characters`, `capabilities` and `styles`: what can be asked for (CP-2.4 to CP-2.7, CP-6.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import click

from broker.cli.command import ID, JsonGroup
from broker.cli.console import Console, compact, pass_console
from broker.cli.pages import whole_list
from broker.cli.profiles import paired, profile_option
from broker.client.blocking.paired import PairedClient
from broker.client.plan import Call, Result, repeated
from protocols.companion.capabilities import CapabilityDescription
from protocols.companion.discovery import (
    CapabilityList,
    CharacterList,
    DescribeCapability,
    ListCapabilities,
    ListCharacters,
    ListPage,
    ListStyles,
    StyleList,
)
from protocols.json_values import JSON

T = TypeVar("T")


@click.group(cls=JsonGroup)
def characters() -> None:
    """Look at the figures that show what is asked for."""


@characters.command("list")
@profile_option
@pass_console
def list_characters(console: Console, profile: str | None) -> None:
    """List the characters, what each supports, and which is the person's own."""
    with paired(profile) as client:
        ask = _pages(client, "characters.list", ListCharacters, CharacterList)
        pages, raw = whole_list(ask, "characters")
    console.result(raw, _character_lines(pages))


@click.group(cls=JsonGroup)
def capabilities() -> None:
    """Look at what can be asked for."""


@capabilities.command("list")
@profile_option
@pass_console
def list_capabilities(console: Console, profile: str | None) -> None:
    """List the capabilities that this client may use."""
    with paired(profile) as client:
        ask = _pages(client, "capabilities.list", ListCapabilities, CapabilityList)
        pages, raw = whole_list(ask, "capabilities")
    console.result(raw, _capability_lines(pages))


@capabilities.command()
@click.argument("capability_id", metavar="ID", type=ID)
@profile_option
@pass_console
def describe(console: Console, capability_id: str, profile: str | None) -> None:
    """Show the full contract of a capability: parameters, result, limits, and how it ends."""
    with paired(profile) as client:
        params = DescribeCapability(id=capability_id)
        found = _call(client, Call("capabilities.describe", params, CapabilityDescription))
    console.result(found.raw, _contract_lines(found.raw))


@click.group(cls=JsonGroup)
def styles() -> None:
    """Look at how things can be drawn."""


@styles.command("list")
@profile_option
@pass_console
def list_styles(console: Console, profile: str | None) -> None:
    """List the styles, and the capabilities that each applies to."""
    with paired(profile) as client:
        ask = _pages(client, "styles.list", ListStyles, StyleList)
        pages, raw = whole_list(ask, "styles")
    console.result(raw, _style_lines(pages))


def _call(client: PairedClient, call: Call[T]) -> Result[T]:
    return client.run(repeated(call, client.calls.clock, client.calls.patience))


def _pages(
    client: PairedClient, method: str, params: type[ListPage], kind: type[T]
) -> Callable[[str | None], tuple[T, JSON]]:
    """What asks for the page at a cursor."""

    def ask(cursor: str | None) -> tuple[T, JSON]:
        page = _call(client, Call(method, params(cursor=cursor), kind))
        return page.value, page.raw

    return ask


# -- for people ----------------------------------------------------------------------------------------------------


def _character_lines(pages: list[CharacterList]) -> Iterator[str]:
    for page in pages:
        for one in page.characters:
            yield f"{one.id}  {one.name}{'  (current)' if one.id == page.current else ''}"
            yield f"    {', '.join(one.capabilities)}"
            if one.expressions:
                yield f"    expressions: {', '.join(one.expressions)}"


def _capability_lines(pages: list[CapabilityList]) -> Iterator[str]:
    for page in pages:
        for one in page.capabilities:
            yield f"{one.id}  {one.version}  {one.kind.value}"
            yield f"    {one.description}"


def _style_lines(pages: list[StyleList]) -> Iterator[str]:
    for page in pages:
        for one in page.styles:
            yield f"{one.id}  {one.name}"
            yield f"    {', '.join(one.capabilities)}"


def _contract_lines(described: JSON) -> Iterator[str]:
    """A line for each member, whatever a newer broker may add."""
    assert isinstance(described, dict)
    for name, value in described.items():
        yield f"{name}: {value if isinstance(value, str) else compact(value)}"
