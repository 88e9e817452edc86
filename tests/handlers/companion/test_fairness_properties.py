"""Whatever clients ask for, everybody comes to the display, and nobody keeps it (CP-4.6, CP-4.7)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.companion.places import PLACES, Place
from handlers.companion.rows import REQUESTS, Request
from handlers.policy import Limits
from protocols.companion.capabilities import Kind
from protocols.companion.catalog import CATALOG
from protocols.companion.messages import CreateRequest
from protocols.companion.states import State
from tests.support.companion_world import CHOICE, World

TURN_MS = 10_000
CLIENTS = ("a", "b", "c", "d")
LIMITS = Limits(max_queued_per_client=6, max_queued_total=12)
SHORT: dict[str, Any] = {"notice.show": {"text": "x", "displayMs": TURN_MS // 2}}
LONG: dict[str, Any] = {"progress.track": {"title": "x"}, "interaction.choose": CHOICE}
LIFE_MS = 3_600_000


class Crowd:
    """Clients that ask for anything, and a presenter that draws what it is told within half a second.

    The person does nothing, so nothing long ends but by its owner, and nothing keeps its place by being looked at.
    """

    def __init__(self, random: Random, places: int) -> None:
        self.random = random
        self.places = places
        limits = Limits(
            max_displayed=places,
            max_queued_per_client=LIMITS.max_queued_per_client,
            max_queued_total=LIMITS.max_queued_total,
        )
        self.world = World(limits, turn_ms=TURN_MS)
        self.world.presenter.ready()
        self.sessions = {name: self.world.session(name) for name in CLIENTS}
        self.out_since: dict[str, int] = {}
        self.waits_since: dict[str, int] = {}
        self.seen: Counter[str] = Counter()

    def play(self, length: int) -> None:
        greedy = self.random.choice(CLIENTS)
        for _ in range(length):
            for _ in range(self.random.choice((0, 1, 1, 3))):
                self.ask(greedy if self.random.random() < 0.5 else self.random.choice(CLIENTS))
            if self.random.random() < 0.3:
                self.end_one()
            for _ in range(self.random.choice((1, 1, 5, 20))):
                self.pass_time()

    def ask(self, name: str) -> None:
        kinds = SHORT if self.random.random() < 0.3 else LONG
        kind = self.random.choice(list(kinds))
        timeout_ms = 600_000 if kinds is SHORT else LIFE_MS
        self.sessions[name].ask(CreateRequest(capability=kind, params=kinds[kind], timeout_ms=timeout_ms))

    def end_one(self) -> None:
        open_requests = [row for row in self.rows() if not row.ended]
        if open_requests:
            row = self.random.choice(open_requests)
            self.sessions[row.client_id].cancel(row.id)

    def pass_time(self) -> None:
        for place in self.held():
            self.world.presenter.presented(place.request_id)
        self.world.advance(500)
        self.check()

    def rows(self) -> list[Request]:
        return self.world.ledger.rows.all(REQUESTS)  # type: ignore[return-value]

    def stands(self) -> dict[str, Place]:
        places: list[Any] = self.world.ledger.rows.all(PLACES)
        return {place.request_id: place for place in places}

    def held(self) -> list[Place]:
        return [place for place in self.stands().values() if place.line is None]

    # -- what always holds ------------------------------------------------------------------------------------

    def check(self) -> None:
        now = self.world.clocks.now().awake
        held, stands = self.held(), self.stands()
        holders = Counter(place.client_id for place in held)
        waiting = [row for row in self.rows() if not row.ended and self.waits(row, stands)]
        self.check_the_clients_that_are_out(now, holders, waiting)
        self.check_the_requests_that_wait(now, waiting)
        assert not waiting or len(held) == self.places, "a place is free and wanted"
        for row in waiting:
            self.seen["aside" if row.id in stands else "queued"] += 1
            self.check_nobody_has_to_give_way(row, stands, held, holders)

    @staticmethod
    def waits(row: Request, stands: dict[str, Place]) -> bool:
        return row.state is State.QUEUED or stands[row.id].line is not None

    def check_the_clients_that_are_out(self, now: int, holders: Counter[str], waiting: list[Request]) -> None:
        """A client with no place that wants one has it after a turn for each client at the latest."""
        out = {row.client_id for row in waiting} - holders.keys()
        self.out_since = {name: self.out_since.get(name, now) for name in out}
        for since in self.out_since.values():
            assert now - since <= len(CLIENTS) * TURN_MS

    def check_the_requests_that_wait(self, now: int, waiting: list[Request]) -> None:
        """Whatever waits is shown (again) after a turn for each request that is open at the latest."""
        self.waits_since = {row.id: self.waits_since.get(row.id, now) for row in waiting}
        for since in self.waits_since.values():
            self.seen["a long wait"] += now - since > TURN_MS
            assert now - since <= LIMITS.max_queued_total * TURN_MS

    def check_nobody_has_to_give_way(
        self, row: Request, stands: dict[str, Place], held: list[Place], holders: Counter[str]
    ) -> None:
        """Nobody has a place beyond its turn that it would have to give up for this request."""
        patient = row.id in stands and stands[row.id].until is not None
        for place in held:
            owed = place.client_id == row.client_id or holders[place.client_id] > holders[row.client_id]
            over = place.until is None and self.is_long(place)
            assert patient or not (owed and over)

    def is_long(self, place: Place) -> bool:
        capability = CATALOG.capabilities[self.world.request(place.request_id).resolved_capability]
        return capability.kind in (Kind.PROGRESS, Kind.INTERACTION)

    def end(self) -> None:
        """Only notices that nobody had seen were evicted."""
        for (table, _), row in self.world.disk.rows.items():
            if table == REQUESTS.name and isinstance(row, Request) and row.reason == "queue_evicted":
                assert CATALOG.capabilities[row.capability].kind is Kind.NOTICE
                assert row.displayed_at is None
                self.seen["evicted"] += 1


@pytest.mark.requirement("CP-4.6", "CP-4.7")
@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from((1, 2, 3)))
def test_everybody_comes_to_the_display_and_nobody_keeps_it(random: Random, places: int) -> None:
    crowd = Crowd(random, places)
    crowd.play(25)
    crowd.end()


def test_the_crowds_are_such_that_it_matters() -> None:
    seen: Counter[str] = Counter()
    for seed in range(10):
        crowd = Crowd(Random(seed), 1 + seed % 3)
        crowd.play(25)
        crowd.end()
        seen += crowd.seen
    assert seen.keys() >= {"aside", "queued", "a long wait", "evicted"}
