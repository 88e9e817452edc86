"""Scopes on the command line: words with commas between them."""

from __future__ import annotations

import click

from protocols.companion.pairing import SCOPES, Scope


class Scopes(click.ParamType[tuple[Scope, ...]]):
    """Scopes with commas between them; with `or_none` the word none is no scope at all."""

    name = "scopes"

    def __init__(self, *, or_none: bool = False) -> None:
        self._or_none = or_none

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Scope, ...]:
        named = [word.strip() for word in str(value).split(",")]
        if self._or_none and named == ["none"]:
            return ()
        if not set(named) <= set(SCOPES):
            self.fail(f"each must be one of {', '.join(SCOPES)}", param, ctx)
        return tuple(scope for scope in SCOPES if scope in named)
