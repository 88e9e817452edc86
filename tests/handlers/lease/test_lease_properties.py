"""Random lives of two holders and their apps, held against a model that knows only what was said on the wire.

The model keeps, for every holder and app key, until when the broker has promised to keep the app open.
It looks at each verdict in the instant in which it is sent: an app is called free only when every promise
is over and every holder that was owed a question has had it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.events import Push, Reply
from handlers.lease.rows import CHECKS, LEASES, Lease
from protocols.control.leases import MayCloseResult
from protocols.lease.codes import Code
from protocols.lease.messages import CanCloseRequest, Response
from tests.support.lease_world import BROWSER, EDITOR, NO_START_HOLD, Holder, LeaseWorld, Question
from tests.support.pure_world import Process

HOLDERS = ("one", "two")
WORK = f"{EDITOR}#work"
APP_KEYS = (EDITOR, WORK, BROWSER)


def base(app_key: str) -> str:
    return app_key.partition("#")[0]


@attrs.define
class Promise:
    """What one holder was told about one app key, in awake milliseconds; `owed`: it must be asked before
    a close.
    """

    active_until: int = 0
    until: int = 0
    owed: bool = False
    was_away: bool = False
    asked: set[str] = attrs.field(factory=set)


class Life(LeaseWorld):
    """The world under test together with the model."""

    def __init__(self) -> None:
        self.promises: dict[tuple[str, str], Promise] = defaultdict(Promise)
        self.questions: dict[int, tuple[str, Question | None]] = {}
        self.tickets: dict[str, tuple[str, int]] = {}
        self.closes: list[CanCloseRequest] = []
        self.free_verdicts = 0
        super().__init__()
        self.processes: dict[str, Process] = {name: self.spawn() for name in HOLDERS}
        self.holders: dict[str, Holder] = {}
        for name in HOLDERS:
            self.connect_holder(name)

    @property
    def awake(self) -> int:
        return self.clocks.now().awake

    # -- what is done ----------------------------------------------------------------------------------

    def act(self, name: str, message: Callable[[Holder], Any]) -> None:
        """Let a holder say something; nothing that it says may touch what another one holds."""
        if name in self.holders:
            before = self.held_by_others(name)
            message(self.holders[name])
            self.holders[name].peer.lines.clear()
            assert self.held_by_others(name) == before

    def held_by_others(self, name: str) -> list[Lease]:
        rows = [row for row in self.ledger.rows.all(LEASES) if isinstance(row, Lease)]
        return [row for row in rows if row.holder_id != name and row.state.protects]

    def reply_to(self, name: str, back: int, result: str, seconds: int) -> None:
        if not self.closes:
            return
        close = self.closes[-1 - back % len(self.closes)]
        wire = {"requestId": close.request_id, "appKey": close.app_key}
        self.act(name, lambda holder: holder.reply(wire, result, leaseSeconds=seconds))

    def ask(self, app_key: str, reserve: bool) -> None:
        peer = self.connect("control")
        self.questions[peer.number] = (app_key, None)
        self.questions[peer.number] = (app_key, Question(peer, app_key, reserve))

    def kill_holder(self, name: str) -> None:
        for (owner, _), promise in self.promises.items():
            if owner == name:
                promise.owed = False
                if promise.active_until > self.awake:
                    promise.active_until = self.awake
                    promise.until = self.awake + NO_START_HOLD.grace_ms
        self.kill(self.processes[name])
        self.processes[name] = self.spawn()
        self.connect_holder(name)

    def connect_holder(self, name: str) -> None:
        connected = [peer for peer in self.open_peers() if peer.process is self.processes[name]]
        if len(connected) == NO_START_HOLD.max_connections_per_holder:
            return
        self.holders[name] = self.holder(name, self.processes[name])

    def drop_holder(self, name: str) -> None:
        for (owner, _), promise in self.promises.items():
            promise.was_away |= owner == name
        self.holders.pop(name, None)
        for peer in self.open_peers():
            if peer.process is self.processes[name]:
                peer.disconnect()

    def restart_broker(self) -> None:
        self.questions.clear()
        self.tickets.clear()
        self.restart()
        for name in HOLDERS:
            self.drop_holder(name)
            self.connect_holder(name)

    # -- what is heard ---------------------------------------------------------------------------------

    def _carry_out(self) -> bool:
        found = super()._carry_out()
        match self.effects[-1] if found else None:
            case Reply(_, Response(code=Code.ACCEPTED) as response):
                self.on_accepted(response)
            case Push(_, CanCloseRequest() as close):
                self.closes.append(close)
                self.promises[close.holder_id, close.app_key].asked.add(close.request_id)
            case Reply(to, MayCloseResult() as result):
                app_key, _ = self.questions[to.connection]
                if result.allowed:
                    self.on_free(app_key, result)
        return found

    def on_accepted(self, response: Response) -> None:
        assert response.holder_id is not None
        assert response.app_key is not None
        key = (response.holder_id, response.app_key)
        if response.expires_at is not None and response.grace_ends_at is not None:
            assert not self.is_reserved(response.app_key), "a lease on an app that is being quit"
            self.promises[key] = Promise(
                self.from_wire(response.expires_at), self.from_wire(response.grace_ends_at), owed=True
            )
            return
        self.promises[key].owed = False
        if response.grace_ends_at is not None:
            self.promises[key].active_until = self.awake
            self.promises[key].until = self.from_wire(response.grace_ends_at)

    def from_wire(self, time: str) -> int:
        now = self.clocks.now()
        wall = datetime.fromisoformat(time).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return round(wall.total_seconds() * 1000) - now.wall + now.awake

    def on_free(self, app_key: str, result: MayCloseResult) -> None:
        self.free_verdicts += 1
        assert not self.is_reserved(app_key), "free twice while a quit is reserved"
        for (name, key), promise in self.promises.items():
            if app_key in (key, base(key)):
                assert promise.until <= self.awake, f"{app_key} is free while {name} holds {key}"
                asked_enough = len(promise.asked) >= NO_START_HOLD.close_check_strikes
                assert not promise.owed or promise.was_away or asked_enough, f"{name} was not asked"
        if result.ticket is not None:
            self.tickets[result.ticket] = (base(app_key), self.awake + NO_START_HOLD.ticket_ms)

    def is_reserved(self, app_key: str) -> bool:
        return any(on == base(app_key) and until > self.awake for on, until in self.tickets.values())

    def end(self) -> None:
        """However it went, every question is answered in the time of a check, and no check is left."""
        self.wait(3)
        for _, question in self.questions.values():
            assert question is not None
            assert question.answer() is not None
        assert self.ledger.rows.all(CHECKS) == []
        assert self.ledger.outstanding == 0


names = st.sampled_from(HOLDERS)
app_keys = st.sampled_from(APP_KEYS)
terms = st.sampled_from((60, 60, 61, 300, 5))
Step = Callable[[Life], object]


def steps() -> st.SearchStrategy[Step]:
    def say(name: str, verb: str, app_key: str, seconds: int) -> Step:
        if verb == "end":
            return lambda life: life.act(name, lambda holder: holder.end(app_key))
        return lambda life: life.act(name, lambda holder: getattr(holder, verb)(app_key, seconds))

    def answer(name: str, back: int, result: str, seconds: int) -> Step:
        return lambda life: life.reply_to(name, back, result, seconds)

    def wait(seconds: float) -> Step:
        return lambda life: life.wait(seconds)

    def ask(app_key: str, reserve: bool) -> Step:
        return lambda life: life.ask(app_key, reserve)

    def happen(what: str, name: str) -> Step:
        return lambda life: getattr(life, what)(name)

    verbs = st.sampled_from(("begin", "begin", "renew", "end"))
    results = st.sampled_from(("allow_close", "extend_lease"))
    says = st.builds(say, names, verbs, app_keys, terms)
    waits = st.builds(wait, st.sampled_from((0.5, 2.999, 3, 15, 60, 61, 122)))
    asks = st.builds(ask, app_keys, st.booleans())
    answers = st.builds(answer, names, st.integers(0, 3), results, terms)
    happens = st.builds(happen, st.sampled_from(("kill_holder", "drop_holder", "connect_holder")), names)
    rare = st.sampled_from([Life.restart_broker, lambda life: life.sleep(100)])
    return st.integers(0, 19).flatmap(
        lambda die: rare if die == 19 else (says, waits, asks, asks, waits, answers, happens)[die % 7]
    )


def scripts() -> st.SearchStrategy[list[Step]]:
    """Long ones as often as short ones, which lists alone are not."""
    return st.integers(0, 50).flatmap(lambda size: st.lists(steps(), min_size=size, max_size=size))


@pytest.mark.requirement("LP-8", "LP-9", "LP-12", "G19", "G20", "G24")
@settings(max_examples=150, deadline=None)
@given(scripts())
def test_no_app_is_free_while_a_promise_lives(script: list[Step]) -> None:
    life = Life()
    for step in script:
        step(life)
    life.end()


def test_the_scripts_reach_free_verdicts() -> None:
    life = Life()
    life.act("one", lambda holder: holder.begin(WORK))
    life.wait(122)
    life.ask(EDITOR, True)
    life.reply_to("one", 0, "allow_close", 60)
    assert life.free_verdicts == 1
    assert life.is_reserved(WORK)
    life.end()
