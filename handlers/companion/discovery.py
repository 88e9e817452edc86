"""Discovery: the lists and descriptions of this run's catalog, for clients with the scope discover (CP-2.8).

All of it is read from the same entries that requests.create checks by (CP-2.2).  A page ends early where its frame
would be full; a cursor is the place in the catalog, so that a client whose scopes are narrowed between two pages
misses nothing and reads nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from handlers.companion.calls import declined, for_client, require_scopes
from handlers.companion.rows import Client
from handlers.companion.settings import current_character
from handlers.events import Call
from handlers.rule import Draft, Now
from protocols.companion.capabilities import CapabilityDescription
from protocols.companion.discovery import (
    CapabilityItem,
    CapabilityList,
    CharacterItem,
    CharacterList,
    DescribeCapability,
    ListCapabilities,
    ListCharacters,
    ListPage,
    ListStyles,
    StyleItem,
    StyleList,
)
from protocols.control.pages import fitting
from protocols.errors import InvalidValue
from protocols.refusal import ErrorCode

ItemT = TypeVar("ItemT")


@for_client
def list_characters(draft: Draft, client: Client, call: Call[ListCharacters], now: Now) -> CharacterList:
    """The characters and what each supports; which one is the user's own (CP-2.4)."""
    require_scopes(client, "discover")
    catalog = draft.environment.catalog
    items = [
        CharacterItem(
            id=one.id, name=one.name, capabilities=one.capabilities, expressions=tuple(one.expressions)
        )
        for one in catalog.characters.values()
    ]
    page, cursor = _page("characters", items, call.message, catalog.revision)
    return CharacterList(
        characters=page,
        current=current_character(draft).id,
        catalog_revision=catalog.revision,
        next_cursor=cursor,
    )


@for_client
def list_capabilities(draft: Draft, client: Client, call: Call[ListCapabilities], now: Now) -> CapabilityList:
    """The capabilities that the client may use (CP-2.5)."""
    require_scopes(client, "discover")
    catalog = draft.environment.catalog
    items = [
        _capability_item(one) if set(one.required_scopes) <= set(client.scopes) else None
        for one in catalog.descriptions.values()
    ]
    page, cursor = _page("capabilities", items, call.message, catalog.revision)
    return CapabilityList(capabilities=page, catalog_revision=catalog.revision, next_cursor=cursor)


@for_client
def describe_capability(
    draft: Draft, client: Client, call: Call[DescribeCapability], now: Now
) -> CapabilityDescription:
    """The full contract (CP-2.6), also of what the client may not use: it says which scopes that takes."""
    require_scopes(client, "discover")
    description = draft.environment.catalog.descriptions.get(call.message.id)
    if description is None:
        raise declined(ErrorCode.UNSUPPORTED_CAPABILITY, "no such capability")
    return description


@for_client
def list_styles(draft: Draft, client: Client, call: Call[ListStyles], now: Now) -> StyleList:
    """The styles and what each applies to (CP-2.7)."""
    require_scopes(client, "discover")
    catalog = draft.environment.catalog
    items = [
        StyleItem(id=one.id, name=one.name, capabilities=one.capabilities) for one in catalog.styles.values()
    ]
    page, cursor = _page("styles", items, call.message, catalog.revision)
    return StyleList(styles=page, catalog_revision=catalog.revision, next_cursor=cursor)


def _capability_item(described: CapabilityDescription) -> CapabilityItem:
    return CapabilityItem(
        id=described.id,
        version=described.version,
        description=described.description,
        kind=described.kind,
        interaction=described.interaction,
        characters=described.characters,
        required_scopes=described.required_scopes,
    )


def _page(
    name: str, items: Sequence[ItemT | None], asked: ListPage, revision: str
) -> tuple[tuple[ItemT, ...], str | None]:
    """The items of one page (None: not for this caller) and the cursor of the next one."""
    first = _place(name, asked.cursor, revision, len(items))
    left = [(place, item) for place, item in enumerate(items) if place >= first and item is not None]
    page = fitting((item for _, item in left), asked.limit)
    more = left[len(page) :]
    return page, _cursor(name, more[0][0], revision) if more else None


def _cursor(name: str, place: int, revision: str) -> str:
    return f"{name}.{place}.{revision[:32]}"


def _place(name: str, cursor: str | None, revision: str, count: int) -> int:
    """Where the page begins; only a cursor that this list of this catalog has given leads anywhere."""
    if cursor is None:
        return 0
    for place in range(1, count):
        if cursor == _cursor(name, place, revision):
            return place
    raise InvalidValue("cursor", "not of this list and catalog")
