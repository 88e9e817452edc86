"""The calls of one paired client as plans (`broker.client.plan`), over connections that may break."""

from __future__ import annotations

import os
from typing import Protocol, TypeVar

import attrs

from broker.client.errors import CallFailed
from broker.client.plan import RECONNECT_SECONDS, Call, Clock, Plan, Result, T, repeated
from protocols.companion.capabilities import CapabilityDescription
from protocols.companion.discovery import (
    CapabilityList,
    CharacterList,
    DescribeCapability,
    ListCapabilities,
    ListCharacters,
    ListPage,
    ListStyles,
    StyleList,
)
from protocols.companion.messages import (
    CancelRequest,
    CreateRequest,
    DescribeRuntime,
    GetRequest,
    RuntimeDescription,
    Snapshot,
    UpdateRequest,
    WaitRequest,
    WaitResult,
)
from protocols.companion.states import is_terminal
from protocols.json_values import JSONObject

LONGEST_WAIT_MS = 60_000
"""The longest wait of companion.md; a broker may publish a shorter one."""


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


P = TypeVar("P", bound=_Page)


class Calls:
    """See the module header.  A plan raises CallFailed for the broker's refusals, and NotConnected.

    `patience`: for how many seconds a broker that went away, or that is too busy, is tried again.
    """

    def __init__(self, clock: Clock, patience: float = RECONNECT_SECONDS) -> None:
        self.clock = clock
        self.patience = patience
        self._longest_wait_ms = LONGEST_WAIT_MS

    def describe(self) -> Plan[Result[RuntimeDescription]]:
        """runtime.describe."""
        return self._plan(Call("runtime.describe", DescribeRuntime(), RuntimeDescription))

    def characters(self) -> Plan[CharacterList]:
        """characters.list, all pages as one."""
        pages = yield from self._pages("characters.list", ListCharacters, CharacterList)
        return attrs.evolve(pages[-1], characters=tuple(item for page in pages for item in page.characters))

    def capabilities(self) -> Plan[CapabilityList]:
        """capabilities.list, all pages as one."""
        pages = yield from self._pages("capabilities.list", ListCapabilities, CapabilityList)
        items = tuple(item for page in pages for item in page.capabilities)
        return attrs.evolve(pages[-1], capabilities=items)

    def capability(self, id: str) -> Plan[Result[CapabilityDescription]]:
        """capabilities.describe."""
        return self._plan(Call("capabilities.describe", DescribeCapability(id=id), CapabilityDescription))

    def styles(self) -> Plan[StyleList]:
        """styles.list, all pages as one."""
        pages = yield from self._pages("styles.list", ListStyles, StyleList)
        return attrs.evolve(pages[-1], styles=tuple(item for page in pages for item in page.styles))

    def create(self, request: CreateRequest) -> Plan[Result[Snapshot]]:
        """requests.create; a request without an idempotency key gets one."""
        return self._plan(Call("requests.create", with_key(request), Snapshot))

    def get(self, request_id: str) -> Plan[Result[Snapshot]]:
        """requests.get."""
        return self._plan(Call("requests.get", GetRequest(request_id=request_id), Snapshot))

    def cancel(self, request_id: str) -> Plan[Result[Snapshot]]:
        """requests.cancel; a request that has ended stays as it is."""
        return self._plan(Call("requests.cancel", CancelRequest(request_id=request_id), Snapshot))

    def update(self, request_id: str, expected_revision: int, params: JSONObject) -> Plan[Result[Snapshot]]:
        """requests.update.

        REVISION_CONFLICT may also mean that this very update was made before a connection was lost; the snapshot in
        the error's details tells.
        """
        change = UpdateRequest(request_id=request_id, expected_revision=expected_revision, params=params)
        return self._plan(Call("requests.update", change, Snapshot))

    def wait(self, request_id: str, after_revision: int, seconds: float | None) -> Plan[Result[WaitResult]]:
        """requests.wait, as often as the broker's limit makes it necessary: until there is news or the time is over.

        `seconds` None: without end.
        """
        until = None if seconds is None else self.clock() + seconds
        while True:
            left = None if until is None else max(0.0, until - self.clock())
            longest = self._longest_wait_ms
            wait_ms = longest if left is None else min(longest, round(left * 1000))
            params = WaitRequest(request_id=request_id, after_revision=after_revision, wait_ms=wait_ms)
            try:
                result = yield from self._plan(Call("requests.wait", params, WaitResult, wait_ms / 1000))
            except CallFailed as error:
                self._longest_wait_ms = published_wait_limit(error, wait_ms)
                continue
            if result.value.changed or (until is not None and self.clock() >= until):
                return result

    def end_of(self, snapshot: Snapshot, seconds: float | None = None) -> Plan[Snapshot]:
        """Wait until the request has ended; the last snapshot, not terminal if the time was over before."""
        until = None if seconds is None else self.clock() + seconds
        while not is_terminal(snapshot.state):
            left = None if until is None else max(0.0, until - self.clock())
            waited = yield from self.wait(snapshot.request_id, snapshot.revision, left)
            snapshot = waited.value.request
            if not waited.value.changed:
                break
        return snapshot

    def _pages(self, method: str, params: type[ListPage], kind: type[P]) -> Plan[list[P]]:
        """Every page of a list, all of them of one catalog: a cursor that has become stale means to begin again."""
        pages: list[P] = []
        cursor: str | None = None
        while not pages or cursor is not None:
            try:
                page = (yield from self._plan(Call(method, params(cursor=cursor), kind))).value
            except CallFailed as error:
                if cursor is None or error.details.get("field") != "cursor":
                    raise
                pages, cursor = [], None
            else:
                pages.append(page)
                cursor = page.next_cursor
        return pages

    def _plan(self, call: Call[T]) -> Plan[Result[T]]:
        return repeated(call, self.clock, self.patience)


def with_key(request: CreateRequest) -> CreateRequest:
    """The request with an idempotency key: its own, or a new one."""
    if request.idempotency_key is not None:
        return request
    return attrs.evolve(request, idempotency_key=new_idempotency_key())


def new_idempotency_key() -> str:
    """A key that was not used before."""
    return os.urandom(16).hex()


def published_wait_limit(error: CallFailed, wait_ms: int) -> int:
    """The broker's own longest wait, as its refusal of `wait_ms` tells it; raises the error if it is another one."""
    limit = error.details.get("limit")
    if error.details.get("field") != "waitMs" or not isinstance(limit, int) or not 0 < limit < wait_ms:
        raise error
    return limit
