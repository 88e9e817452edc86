"""characters.list, capabilities.list, capabilities.describe, styles.list (CP-2.4 to CP-2.8)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from protocols.companion.capabilities import Catalog
from protocols.companion.catalog import AION, CATALOG, MOMO, STRETCH
from protocols.companion.characters import Character, Expression, Style
from protocols.companion.discovery import (
    CharacterList,
    DescribeCapability,
    ListCapabilities,
    ListCharacters,
    ListStyles,
)
from protocols.presenter.messages import Setting
from protocols.refusal import Refused
from protocols.strict_json import encode
from protocols.structure import unstructure
from tests.support.companion_world import Session, World, refusal

LISTS = {"characters": ListCharacters, "capabilities": ListCapabilities, "styles": ListStyles}


@pytest.fixture
def session(world: World) -> Session:
    return world.session("c1", "discover", "animate", "notify", "interact")


def ids(items: Any) -> list[str]:
    return [item.id for item in items]


@pytest.mark.requirement("CP-2.8", "CP-5.3")
@pytest.mark.parametrize(
    "message", [ListCharacters(), ListCapabilities(), ListStyles(), DescribeCapability(id="no.such")]
)
def test_discovery_takes_the_scope_discover(world: World, message: object) -> None:
    body = world.session("c2", "animate", "notify", "interact").call(message)
    assert isinstance(body, Refused)
    assert (body.code.value, body.details["scope"]) == ("FORBIDDEN", "discover")


@pytest.mark.requirement("CP-2.4")
def test_the_characters_are_told_with_what_each_supports_and_which_is_current(
    world: World, session: Session
) -> None:
    told = session.call(ListCharacters())
    assert unstructure(told) == {
        "characters": [
            {
                "id": character.id,
                "name": character.name,
                "capabilities": [*character.capabilities],
                "expressions": [*character.expressions],
            }
            for character in (AION, MOMO)
        ],
        "current": "aion",
        "catalogRevision": CATALOG.revision,
        "nextCursor": None,
    }
    world.presenter.user("set", setting=Setting(character="momo"))
    again = session.call(ListCharacters())
    assert again == attrs.evolve(told, current="momo")


@pytest.mark.requirement("CP-2.5")
@pytest.mark.parametrize(
    ("scopes", "listed"),
    [
        (("discover",), []),
        (("discover", "notify"), ["notice.show", "progress.track"]),
        (("discover", "animate"), ["animation.play", STRETCH.id]),
        (("discover", "interact"), ["interaction.choose", "interaction.ask_text"]),
    ],
)
def test_the_capabilities_are_those_that_the_scopes_allow(
    world: World, scopes: tuple[str, ...], listed: list[str]
) -> None:
    told = world.session("c2", *scopes).call(ListCapabilities())
    assert ids(told.capabilities) == listed
    assert (told.catalog_revision, told.next_cursor) == (CATALOG.revision, None)


@pytest.mark.requirement("CP-2.5", "CP-5.3")
def test_a_scope_that_is_taken_away_takes_its_capabilities_from_the_list(world: World) -> None:
    session = world.session("c2", "discover", "notify", "interact")
    world.presenter.user("narrow", client_id="c2", scopes=("discover", "notify"))
    assert ids(session.call(ListCapabilities()).capabilities) == ["notice.show", "progress.track"]


@pytest.mark.requirement("CP-2.2", "CP-2.5")
def test_a_listed_capability_says_the_same_as_its_description(session: Session) -> None:
    for item in session.call(ListCapabilities()).capabilities:
        described = unstructure(session.call(DescribeCapability(id=item.id)))
        assert isinstance(described, dict)
        short = unstructure(item)
        assert isinstance(short, dict)
        assert short.items() <= described.items()


@pytest.mark.requirement("CP-2.6")
def test_a_capability_is_described_to_whoever_may_look_even_if_not_use_it(world: World) -> None:
    session = world.session("c2", "discover")
    assert session.call(DescribeCapability(id=STRETCH.id)) == CATALOG.descriptions[STRETCH.id]
    assert refusal(session.call(DescribeCapability(id="no.such")))[0] == "UNSUPPORTED_CAPABILITY"


@pytest.mark.requirement("CP-2.7")
def test_the_styles_are_told_with_what_each_applies_to(session: Session) -> None:
    told = session.call(ListStyles())
    assert unstructure(told) == {
        "styles": [
            {"id": "default", "name": "Default", "capabilities": [*CATALOG.capabilities]},
            {"id": "compact", "name": "Compact", "capabilities": ["notice.show", "progress.track"]},
        ],
        "catalogRevision": CATALOG.revision,
        "nextCursor": None,
    }


# -- pages -------------------------------------------------------------------------------------------------


def pages(session: Session, name: str, limit: int) -> list[list[str]]:
    """The ids of every page of a list."""
    found: list[list[str]] = []
    cursor = None
    while True:
        page = session.call(LISTS[name](cursor=cursor, limit=limit))
        found.append(ids(getattr(page, name)))
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.requirement("CP-2.5")
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 100])
def test_the_pages_of_a_list_together_are_the_list(session: Session, name: str, limit: int) -> None:
    found = pages(session, name, limit)
    assert [id for page in found for id in page] == list(getattr(CATALOG, name))
    assert {len(page) for page in found[:-1]} <= {limit}
    assert 1 <= len(found[-1]) <= limit


@pytest.mark.requirement("CP-2.5")
def test_a_client_that_is_narrowed_between_two_pages_misses_nothing_and_reads_nothing_twice(
    world: World, session: Session
) -> None:
    first = session.call(ListCapabilities(limit=2))
    assert ids(first.capabilities) == ["animation.play", "notice.show"]
    world.presenter.user("narrow", client_id="c1", scopes=("discover", "notify", "interact"))
    rest = session.call(ListCapabilities(cursor=first.next_cursor))
    assert ids(rest.capabilities) == ["progress.track", "interaction.choose", "interaction.ask_text"]


def cursor_of(session: Session, message: object) -> str:
    cursor = session.call(message).next_cursor
    assert isinstance(cursor, str)
    return cursor


@pytest.mark.requirement("CP-7.1", "CP-2.5")
def test_a_cursor_is_good_for_its_own_list_and_catalog_only(session: Session) -> None:
    cursor = cursor_of(session, ListCapabilities(limit=1))
    with_more = attrs.evolve(AION, name="Other")
    other = World(
        catalog=Catalog.of((with_more, MOMO), CATALOG.styles.values(), CATALOG.capabilities.values())
    )
    stranger = other.session("c1", "discover", "animate")
    for asking, message in (
        (stranger, ListCapabilities(cursor=cursor)),
        (session, ListCharacters(cursor=cursor)),
        (session, ListStyles(cursor="0")),
        (session, ListCapabilities(cursor=cursor.replace("1", "0", 1))),
        (session, ListCapabilities(cursor=cursor.replace("1", "99", 1))),
    ):
        body = asking.call(message)
        assert isinstance(body, Refused)
        assert (body.code.value, body.details["field"]) == ("INVALID_PARAMS", "cursor")


def test_a_page_ends_early_where_its_frame_would_be_full() -> None:
    faces = {f"face-{number:058}": Expression() for number in range(64)}
    crowd = [Character(f"c{number}", "C" * 64, (), faces) for number in range(40)]
    catalog = Catalog.of(crowd, (Style("default", "Default", ()),), ())
    session = World(catalog=catalog).session("c1", "discover")
    page = session.call(ListCharacters(limit=100))
    assert isinstance(page, CharacterList)
    assert len(encode(unstructure(page))) < 65_536
    assert 1 < len(page.characters) < 40
    found = pages(session, "characters", 100)
    assert [id for page in found for id in page] == [character.id for character in crowd]
