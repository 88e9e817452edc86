"""Lists of the control protocol, which come in pages, as one list: a command prints all of it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from broker.client.blocking.control import ControlConnection
from protocols.json_values import JSON, JSONObject


class Page(Protocol):
    """What every page has."""

    @property
    def next_cursor(self) -> str | None: ...


class Params(Protocol):
    """The class of a list's params."""

    def __call__(self, *, cursor: str | None) -> object: ...


P = TypeVar("P", bound=Page)


def whole_list(
    connection: ControlConnection, method: str, params: Params, kind: type[P]
) -> tuple[list[P], JSONObject]:
    """Every page, typed, and the list as it would stand on the wire if one page held it."""
    member = method.split(".", maxsplit=1)[0]
    pages: list[P] = []
    whole: list[JSON] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        answer = connection.call(method, params(cursor=cursor))
        assert isinstance(answer.result, kind)
        assert isinstance(answer.raw, dict)
        pages.append(answer.result)
        items = answer.raw[member]
        assert isinstance(items, list)
        whole += items
        cursor = answer.result.next_cursor
    return pages, {member: whole, "nextCursor": None}
