"""`companion characters`, `capabilities` and `styles`: what can be asked for (CP-2.4 to CP-2.7, CP-6.1)."""

from __future__ import annotations

from collections.abc import Iterator

import click

from broker.cli.command import ID, JsonGroup
from broker.cli.console import Console, compact, pass_console
from broker.cli.profiles import paired, profile_option
from protocols.companion.discovery import CapabilityList, CharacterList, StyleList
from protocols.json_values import JSON


@click.group(cls=JsonGroup)
def characters() -> None:
    """Look at the figures that show what is asked for."""


@characters.command("list")
@profile_option
@pass_console
def list_characters(console: Console, profile: str | None) -> None:
    """List the characters, what each supports, and which is the person's own."""
    with paired(profile) as client:
        listed = client.run(client.calls.characters())
    console.result(listed, _character_lines(listed))


@click.group(cls=JsonGroup)
def capabilities() -> None:
    """Look at what can be asked for."""


@capabilities.command("list")
@profile_option
@pass_console
def list_capabilities(console: Console, profile: str | None) -> None:
    """List the capabilities that this client may use."""
    with paired(profile) as client:
        listed = client.run(client.calls.capabilities())
    console.result(listed, _capability_lines(listed))


@capabilities.command()
@click.argument("capability_id", metavar="ID", type=ID)
@profile_option
@pass_console
def describe(console: Console, capability_id: str, profile: str | None) -> None:
    """Show the full contract of a capability: parameters, result, limits, and how it ends."""
    with paired(profile) as client:
        found = client.run(client.calls.capability(capability_id))
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
        listed = client.run(client.calls.styles())
    console.result(listed, _style_lines(listed))


# -- for people ----------------------------------------------------------------------------------------------------


def _character_lines(listed: CharacterList) -> Iterator[str]:
    for one in listed.characters:
        yield f"{one.id}  {one.name}{'  (current)' if one.id == listed.current else ''}"
        yield f"    {', '.join(one.capabilities)}"
        if one.expressions:
            yield f"    expressions: {', '.join(one.expressions)}"


def _capability_lines(listed: CapabilityList) -> Iterator[str]:
    for one in listed.capabilities:
        yield f"{one.id}  {one.version}  {one.kind.value}"
        yield f"    {one.description}"


def _style_lines(listed: StyleList) -> Iterator[str]:
    for one in listed.styles:
        yield f"{one.id}  {one.name}"
        yield f"    {', '.join(one.capabilities)}"


def _contract_lines(described: JSON) -> Iterator[str]:
    """A line for each member, whatever a newer broker may add."""
    assert isinstance(described, dict)
    for name, value in described.items():
        yield f"{name}: {value if isinstance(value, str) else compact(value)}"
