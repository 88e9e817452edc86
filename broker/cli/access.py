"""`companion access status`, `hide` and `pause`: the owner looks and tightens, over the control socket (CP-4.9).

Loosening is for the person in the presenter alone, so there is no command for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import click

from broker.cli.command import JsonCommand, JsonGroup
from broker.cli.console import Console, pass_console
from broker.cli.control import ask_status, control
from protocols.control.messages import AccessStatus, Hide, Pause, PresenterStatus, StatusResult


@attrs.frozen(kw_only=True)
class Standing:
    """Whether requests are taken now: `reason` is what one would be refused with (RUNTIME_UNAVAILABLE), or None."""

    access: AccessStatus
    hidden: bool
    paused: bool
    presenter: PresenterStatus
    reason: str | None


@click.group(cls=JsonGroup)
def access() -> None:
    """Look at who may reach the person."""


@access.command("status")
@pass_console
def access_status(console: Console) -> None:
    """Show whether programs may reach the person now, and if not, why.

    Access is enabled by the person in the presenter, or by the owner's configuration file.
    """
    found, _raw = ask_status()
    standing = _standing(found)
    console.result(standing, _lines(standing))


@click.command(cls=JsonCommand)
@pass_console
def hide(console: Console) -> None:
    """Take everything off the screen and show nothing more.

    Open requests are cancelled (hidden_by_user), new ones refused, until the person shows it again in the presenter.
    """
    with control() as connection:
        answer = connection.call("hide", Hide())
    console.result(answer.raw, ["hidden, until the person shows it again in the presenter"])


@click.command(cls=JsonCommand)
@pass_console
def pause(console: Console) -> None:
    """Take no requests of other programs for now.

    Open requests are cancelled (paused_by_user), new ones refused, until the person resumes in the presenter.
    """
    with control() as connection:
        answer = connection.call("pause", Pause())
    console.result(answer.raw, ["paused, until the person resumes in the presenter"])


def _standing(found: StatusResult) -> Standing:
    reasons = {
        "access_off": not found.access.enabled,
        "hidden": found.hidden,
        "paused": found.paused,
        "no_presenter": found.presenter.name is None,
    }
    return Standing(
        access=found.access,
        hidden=found.hidden,
        paused=found.paused,
        presenter=found.presenter,
        reason=next((reason for reason, holds in reasons.items() if holds), None),
    )


def _lines(standing: Standing) -> Iterator[str]:
    yield f"access {'on' if standing.access.enabled else 'off'}"
    if standing.hidden or standing.paused:
        yield " and ".join(word for word in ("hidden", "paused") if getattr(standing, word))
    nobody = "" if standing.presenter.person else ", nobody can answer"
    yield f"presenter {standing.presenter.name or 'none'}{nobody}"
    yield "requests are taken" if standing.reason is None else f"requests are refused: {standing.reason}"
