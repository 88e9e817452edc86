"""Lists that come in pages, as one list: a command prints all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from broker.client.blocking.rpc import RpcConnection
from broker.client.errors import CallFailed
from protocols.json_values import JSON, JSONObject


class Page(Protocol):
    """What every page has."""

    @property
    def next_cursor(self) -> str | None: ...


class Cursored(Protocol):
    """The class of a list's params."""

    def __call__(self, *, cursor: str | None) -> object: ...


P = TypeVar("P", bound=Page)
_ATTEMPTS = 5


def whole_list(ask: Callable[[str | None], tuple[P, JSON]], member: str) -> tuple[list[P], JSONObject]:
    """Every page, typed, and the list as it would stand on the wire if one page held it.

    `ask` is given the cursor.  A list that changes while it is read, so that a cursor no longer leads on, is read
    again from its beginning.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _read(ask, member)
        except CallFailed as error:
            if error.details.get("field") != "cursor" or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def asker(
    connection: RpcConnection, method: str, params: Cursored, kind: type[P]
) -> Callable[[str | None], tuple[P, JSON]]:
    """What asks for the page at a cursor."""

    def ask(cursor: str | None) -> tuple[P, JSON]:
        answer = connection.call(method, params(cursor=cursor))
        assert isinstance(answer.result, kind)
        return answer.result, answer.raw

    return ask


def _read(ask: Callable[[str | None], tuple[P, JSON]], member: str) -> tuple[list[P], JSONObject]:
    page, raw = ask(None)
    assert isinstance(raw, dict)
    pages, whole, items = [page], raw, _items(raw, member)
    while page.next_cursor is not None:
        page, raw = ask(page.next_cursor)
        pages.append(page)
        items += _items(raw, member)
    return pages, whole | {member: items, "nextCursor": None}


def _items(raw: JSON, member: str) -> list[JSON]:
    assert isinstance(raw, dict)
    items = raw[member]
    assert isinstance(items, list)
    return [*items]
