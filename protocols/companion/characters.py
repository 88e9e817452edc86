"""Who is on the screen and what it looks like: characters and styles, as data (CP-2.4, CP-2.7, CP-2.15).

A character says what it can do (`capabilities`), which faces it has (`expressions`) and which of them it wears while
it does something (`wears`).  Both tables lead from general names, which every caller may use, to the character's own
pictures.  A style is appearance only; what a text means is its tone, which no style touches (CP-2.12).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

DEFAULT_FRAME_MS = 200


@attrs.frozen(kw_only=True)
class Expression:
    """A face: its pictures one after the other, `frame_ms` milliseconds each.  Drawn still it is the first one.

    A built-in character has none: its presenter draws the expression in its own way.
    """

    pictures: tuple[str, ...] = ()
    frame_ms: int = DEFAULT_FRAME_MS


@attrs.frozen
class Character:
    """A figure on the screen; see the module header."""

    id: str
    name: str
    capabilities: tuple[str, ...] = ()
    expressions: Mapping[str, Expression] = attrs.field(factory=dict)
    """By the general id that animation.play asks for."""
    wears: Mapping[str, str] = attrs.field(factory=dict)
    """By capability id, the id of the expression; a capability that is not named leaves the face as it is."""


@attrs.frozen
class Style:
    """An appearance, and the capabilities that it applies to (CP-2.7)."""

    id: str
    name: str
    capabilities: tuple[str, ...]
