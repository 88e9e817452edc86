"""Which handler decides what: one `Routes` a protocol, merged into the broker's whole.

`calls` is keyed by the class of the message, `due` by the name of the table whose deadline came, `facts` by the
class of the event; several protocols may listen to one fact.  `settle` lists what follows from any decision
(display places given anew): each step runs in the same draft, after the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from handlers.events import Call
from handlers.rule import Draft, Due, Event, Now, Table

# Handlers take the event class that they are registered for; a mapping cannot say so, hence the Any.
AnyHandler = Callable[[Draft, Any, Now], None]
Settle = Callable[[Draft, Now], None]


class UnroutedEvent(Exception):
    """Ours: an event that no handler is registered for."""


@attrs.frozen
class Routes:
    """The tables and handlers of one protocol."""

    tables: tuple[Table[Any], ...] = ()
    calls: Mapping[type[object], AnyHandler] = attrs.field(factory=dict)
    due: Mapping[str, AnyHandler] = attrs.field(factory=dict)
    facts: Mapping[type[Event], tuple[AnyHandler, ...]] = attrs.field(factory=dict)
    settle: tuple[Settle, ...] = ()


def merge(parts: Iterable[Routes]) -> Routes:
    """All protocols' routes as one; two handlers for one message or one table are an error of ours."""
    tables: dict[str, Table[Any]] = {}
    calls: dict[type[object], AnyHandler] = {}
    due: dict[str, AnyHandler] = {}
    facts: dict[type[Event], tuple[AnyHandler, ...]] = {}
    settle: list[Settle] = []
    for part in parts:
        _add(tables, {table.name: table for table in part.tables})
        _add(calls, part.calls)
        _add(due, part.due)
        for event, handlers in part.facts.items():
            facts[event] = facts.get(event, ()) + handlers
        settle += part.settle
    return Routes(tuple(tables.values()), calls, due, facts, tuple(settle))


def _add(whole: dict[Any, Any], part: Mapping[Any, Any]) -> None:
    for key, value in part.items():
        if key in whole and whole[key] is not value:
            raise ValueError(f"two entries for {key!r}")
        whole[key] = value


def decide(routes: Routes, draft: Draft, event: Event, now: Now) -> None:
    """Run the handlers of one event and what follows from them, in one draft."""
    if isinstance(event, Call):
        _handler(routes.calls, type(event.message))(draft, event, now)
    elif isinstance(event, Due):
        _handler(routes.due, event.table)(draft, event, now)
    else:
        for handler in routes.facts.get(type(event), ()):
            handler(draft, event, now)
    for step in routes.settle:
        step(draft, now)


def _handler(handlers: Mapping[Any, AnyHandler], key: object) -> AnyHandler:
    try:
        return handlers[key]
    except KeyError:
        raise UnroutedEvent(repr(key)) from None
