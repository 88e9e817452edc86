"""Somebody else's request reads like one that never was: the same bytes, at the same time (CP-4.3, CP-6.8).

Each method of the table that takes a requestId is called for both, by a stranger, over the real engine; a method
that is added to the table is tested with it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handlers.companion.age import AGES
from handlers.companion.retention_rows import SWEEPS, TOMBSTONES
from handlers.companion.rows import REQUESTS, WAITS
from handlers.events import Reply
from handlers.policy import DAY
from handlers.presenter.rows import PULSE
from handlers.rule import Row
from protocols.companion.messages import CancelRequest
from protocols.json_values import JSONObject
from tests.support.companion_world import Session, World, key_of
from tests.support.pure_world import Peer
from tests.support.request_calls import CALLS, METHODS_OF_A_REQUEST, NEVER, line


def test_the_methods_of_a_request_are_those_of_the_profile() -> None:
    assert {"requests.get", "requests.wait", "requests.cancel"} <= set(METHODS_OF_A_REQUEST)


class Stage:
    """An owner with its request, and a stranger on a connection of bytes."""

    def __init__(self) -> None:
        self.world = World()
        self.world.presenter.ready()
        self.owner: Session = self.world.session("owner")
        self.world.pair("stranger")
        self.stranger: Peer = self.world.connect("companion", self.world.spawn())
        hello: JSONObject = {"protocolVersions": ["0.1"], "client": {"name": "s", "version": "1"}}
        self.stranger.ask(line("session.hello", hello))
        self.stranger.ask(line("session.authenticate", {"clientId": "stranger", "key": key_of("stranger")}))

    def told(self, method: str, params: JSONObject, request_id: str) -> tuple[list[bytes], list[int]]:
        """The stranger's bytes, and how long each reply was held back."""
        before = len(self.world.effects)
        self.stranger.send(line(method, {**params, "requestId": request_id}))
        lines = list(self.stranger.lines)
        self.stranger.lines.clear()
        replies = [one for one in self.world.effects[before:] if isinstance(one, Reply)]
        return lines, [reply.delay_ms for reply in replies]

    def all_rows(self) -> dict[tuple[str, str], Row]:
        """Everything on disk and in memory, but for what time does by itself."""
        rows = {**self.world.disk.rows, **self.world.ledger.rows.contents()}
        by_itself = (PULSE.name, SWEEPS.name, AGES.name)
        return {key: row for key, row in rows.items() if key[0] not in by_itself}


# -- what may have become of the request --------------------------------------------------------------------


def running(stage: Stage) -> str:
    return stage.owner.choose().request_id


def queued(stage: Stage) -> str:
    return [stage.owner.choose().request_id for _ in range(4)][-1]


def awaiting_user(stage: Stage) -> str:
    request_id = running(stage)
    stage.world.presenter.presented(request_id)
    return request_id


def answered(stage: Stage) -> str:
    request_id = awaiting_user(stage)
    stage.world.advance(500)
    stage.world.presenter.answer(request_id, "allow")
    return request_id


def cancelled(stage: Stage) -> str:
    request_id = running(stage)
    stage.owner.cancel(request_id)
    return request_id


def expired(stage: Stage) -> str:
    request_id = stage.owner.choose(timeout_ms=1_000).request_id
    stage.world.advance(1_000)
    return request_id


def no_longer_kept(stage: Stage) -> str:
    """Its time is over, and the sweep has not come that far."""
    request_id = cancelled(stage)
    stage.world.ledger.rows.set(SWEEPS, REQUESTS.name, None)
    stage.world.sleep(DAY / 1000)
    assert stage.world.disk.read(REQUESTS, request_id) is not None
    return request_id


def buried(stage: Stage) -> str:
    request_id = cancelled(stage)
    stage.world.sleep(DAY / 1000)
    assert stage.world.disk.read(TOMBSTONES, request_id) is not None
    return request_id


def forgotten(stage: Stage) -> str:
    request_id = buried(stage)
    stage.world.sleep(7 * DAY / 1000)
    assert stage.world.disk.read(TOMBSTONES, request_id) is None
    return request_id


def revoked(stage: Stage) -> str:
    request_id = answered(stage)
    stage.world.presenter.user("revoke", client_id="owner")
    return request_id


def narrowed(stage: Stage) -> str:
    request_id = running(stage)
    stage.world.presenter.user("narrow", client_id="owner", scopes=())
    return request_id


def hidden(stage: Stage) -> str:
    request_id = running(stage)
    stage.world.presenter.user("hide")
    return request_id


def waited_for(stage: Stage) -> str:
    request_id = running(stage)
    stage.owner.wait(request_id, 1)
    return request_id


FATES: list[Callable[[Stage], str]] = [
    running,
    queued,
    awaiting_user,
    answered,
    cancelled,
    expired,
    no_longer_kept,
    buried,
    forgotten,
    revoked,
    narrowed,
    hidden,
    waited_for,
]


@pytest.mark.requirement("CP-4.3", "CP-6.8", "CP-5.9", "CP-7.4")
@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.__name__)
def test_a_foreign_request_reads_like_one_that_never_was(fate: Callable[[Stage], str]) -> None:
    stage = Stage()
    request_id = fate(stage)
    assert len(request_id) == len(NEVER)
    before = stage.all_rows(), stage.world.ledger.rows.all(WAITS)
    for method, params in CALLS:
        foreign = stage.told(method, params, request_id)
        assert foreign == stage.told(method, params, NEVER), method
        assert len(foreign[0]) == 1, "answered at once"
    assert (stage.all_rows(), stage.world.ledger.rows.all(WAITS)) == before


@pytest.mark.requirement("CP-4.3", "CP-6.8")
@pytest.mark.parametrize(("method", "params"), CALLS)
def test_nor_does_a_deadline_that_nobody_has_looked_at(method: str, params: JSONObject) -> None:
    stage = Stage()
    request_id = stage.owner.choose(timeout_ms=1_000).request_id
    stage.world.suspend(1_000)
    assert stage.told(method, params, request_id) == stage.told(method, params, NEVER)


@pytest.mark.requirement("CP-4.3", "CP-6.8", "CP-4.12")
@pytest.mark.parametrize(("method", "params"), CALLS)
@pytest.mark.parametrize("saved", [True, False])
def test_not_even_a_commit_on_its_way_tells_them_apart(method: str, params: JSONObject, saved: bool) -> None:
    """What the owner has just done is not on disk yet, and may never be."""
    stages = Stage(), Stage()
    told = []
    for stage, foreign in zip(stages, (True, False), strict=True):
        request_id = running(stage)
        stage.world.holding = True
        stage.owner.ask(CancelRequest(request_id=request_id))
        at_once = stage.told(method, params, request_id if foreign else NEVER)
        if saved:
            stage.world.holding = False
            stage.world.settle()
        else:
            stage.world.fail_commit()
        told.append((at_once, list(stage.stranger.lines)))
    assert told[0] == told[1]


@pytest.mark.requirement("CP-4.3", "CP-6.8", "CP-4.12")
@pytest.mark.parametrize(("method", "params"), CALLS)
def test_nor_does_a_disk_that_takes_no_writes(method: str, params: JSONObject) -> None:
    """Deadlines pause meanwhile: a request past its own must not show by an ending that cannot be stored."""
    stage = Stage()
    request_id = stage.owner.choose(timeout_ms=1_000).request_id
    stage.world.holding = True
    stage.owner.ask(CancelRequest(request_id=request_id))
    stage.world.fail_commit(refusing=True)
    stage.world.suspend(1_000)
    assert stage.told(method, params, request_id) == stage.told(method, params, NEVER)
