"""Discovery: which characters, capabilities and styles there are (CP-2.4 to CP-2.8; companion.md, Discovery).

Lists come in pages: `limit` items at the most, and fewer where more would not fit a frame.  `next_cursor` leads on
and is null on the last page.  A cursor is good for its own list and catalog only, so that no page is ever read
against another catalog than the first; its text means nothing to a client.
"""

from __future__ import annotations

import attrs

from protocols.companion.capabilities import CapabilityDescription, Interaction, Kind
from protocols.jsonrpc_session import Method
from protocols.members import integer, text

DEFAULT_PAGE = 50
MAX_PAGE = 100


@attrs.frozen(kw_only=True)
class ListPage:
    """What every list takes."""

    cursor: str | None = text(1, 128, absent=True)
    limit: int = integer(1, MAX_PAGE, default=DEFAULT_PAGE)


@attrs.frozen(kw_only=True)
class ListCharacters(ListPage):
    """characters.list."""


@attrs.frozen(kw_only=True)
class CharacterItem:
    """A character, the capabilities that it supports, and the expressions that animation.play may name."""

    id: str
    name: str
    capabilities: tuple[str, ...]
    expressions: tuple[str, ...]


@attrs.frozen(kw_only=True)
class CharacterList:
    """`current` is the user's own character: that of a request which names none."""

    characters: tuple[CharacterItem, ...]
    current: str
    catalog_revision: str
    next_cursor: str | None


@attrs.frozen(kw_only=True)
class ListCapabilities(ListPage):
    """capabilities.list."""


@attrs.frozen(kw_only=True)
class CapabilityItem:
    """A capability in short; capabilities.describe tells all of it."""

    id: str
    version: str
    description: str
    kind: Kind
    interaction: Interaction
    characters: tuple[str, ...]
    required_scopes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class CapabilityList:
    """Those that the client's scopes allow."""

    capabilities: tuple[CapabilityItem, ...]
    catalog_revision: str
    next_cursor: str | None


@attrs.frozen(kw_only=True)
class DescribeCapability:
    """capabilities.describe."""

    id: str = text(1, 128)


@attrs.frozen(kw_only=True)
class ListStyles(ListPage):
    """styles.list."""


@attrs.frozen(kw_only=True)
class StyleItem:
    """A style and the capabilities that it applies to."""

    id: str
    name: str
    capabilities: tuple[str, ...]


@attrs.frozen(kw_only=True)
class StyleList:
    """The first style is that of a request which names none."""

    styles: tuple[StyleItem, ...]
    catalog_revision: str
    next_cursor: str | None


DISCOVERY_METHODS = (
    Method("characters.list", ListCharacters, CharacterList),
    Method("capabilities.list", ListCapabilities, CapabilityList),
    Method("capabilities.describe", DescribeCapability, CapabilityDescription),
    Method("styles.list", ListStyles, StyleList),
)
