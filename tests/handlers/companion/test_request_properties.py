"""Random scripts of everything that can happen to requests, with commits that fail: what always holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.companion.places import PLACES
from handlers.companion.rows import DISPLAYS, REQUESTS, WAITS, Request
from handlers.events import CallRef, Reply
from handlers.policy import Limits
from handlers.presenter.rows import SHOWINGS
from protocols.companion.messages import (
    CancelRequest,
    CreateRequest,
    GetRequest,
    Snapshot,
    UpdateRequest,
    WaitRequest,
    WaitResult,
)
from protocols.presenter.messages import Attention, Deferred, Finished, Outcome
from protocols.refusal import Refused
from tests.support.companion_world import CHOICE, Session, World, refusal

LIMITS = Limits(max_queued_per_client=5, max_queued_total=6, max_displayed=2)
CLIENTS = ("c1", "c2")
TURN_MS = 2_500
KINDS: dict[str, Any] = {
    "notice.show": {"text": "x", "displayMs": 1_500},
    "interaction.choose": CHOICE,
    "interaction.ask_text": {"title": "x"},
    "progress.track": {"title": "x"},
    "animation.play": {"expression": "happy"},
}


class Script:
    """Two clients, a person, a presenter, a clock and a disk, each doing anything at any time.

    `seen` counts what has come up, so that a test can tell whether the scripts reach everything.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.world = World(LIMITS, turn_ms=TURN_MS)
        self.presenter = self.world.presenter
        self.presenter.ready()
        self.sessions: dict[str, Session] = {name: self.world.session(name) for name in CLIENTS}
        self.asked: dict[CallRef, object] = {}
        self.requests: list[str] = []
        self.by_key: dict[tuple[str, str], str] = {}
        self.told: dict[tuple[str, int], Snapshot] = {}
        self.answers: dict[CallRef, str] = {}
        self.answered: set[str] = set()
        self.looked_at = 0
        self.seen: Counter[str] = Counter()
        self.steps: dict[Callable[[], None], int] = {
            self.create: 9,
            self.get: 3,
            self.cancel: 3,
            self.update: 4,
            self.wait: 8,
            self.reconnect: 1,
            self.draw: 7,
            self.answer: 7,
            self.close_bubble: 2,
            self.attention: 2,
            self.defer: 1,
            self.finish: 1,
            self.user: 2,
            self.presenter_restarts: 1,
            self.pass_time: 7,
            self.hold_commits: 2,
            self.commit: 4,
        }

    def play(self, length: int) -> None:
        steps, weights = list(self.steps), list(self.steps.values())
        for _ in range(length):
            self.random.choices(steps, weights)[0]()
            self.check()
        self.end()

    # -- what clients do --------------------------------------------------------------------------------------

    def ask(self, message: object) -> None:
        ref = self.sessions[self.random.choice(CLIENTS)].ask(message)
        self.asked[ref] = message

    def create(self) -> None:
        kind = self.random.choices(list(KINDS), (4, 4, 1, 3, 1))[0]
        message = CreateRequest(
            capability=kind,
            params=KINDS[kind],
            timeout_ms=self.random.choice((1_000, 4_000, 20_000)),
            idempotency_key=self.random.choice((None, None, "k1", "k2")),
        )
        self.ask(message)

    def get(self) -> None:
        for request_id in self.one_of(self.requests):
            self.ask(GetRequest(request_id=request_id))

    def cancel(self) -> None:
        for request_id in self.one_of(self.requests):
            self.ask(CancelRequest(request_id=request_id))

    def update(self) -> None:
        for request_id in self.one_of(self.requests):
            revision = self.world.request(request_id).revision + self.random.choice((0, 0, 0, -1))
            changes: Any = self.random.choice(({"fraction": 0.5}, {"fraction": 0.7}, {"finished": True}))
            message = UpdateRequest(request_id=request_id, expected_revision=max(1, revision), params=changes)
            self.ask(message)

    def wait(self) -> None:
        for request_id in self.one_of(self.requests):
            after = max(0, self.world.request(request_id).revision - self.random.choice((0, 0, 1)))
            wait_ms = self.random.choice((0, 700, 3_000, 60_000))
            self.ask(WaitRequest(request_id=request_id, after_revision=after, wait_ms=wait_ms))

    def reconnect(self) -> None:
        if not self.world.holding:
            name = self.random.choice(CLIENTS)
            self.sessions[name].close()
            self.sessions[name] = self.world.session(name)

    # -- what the person and the presenter do -----------------------------------------------------------------

    def pictures(self) -> list[str]:
        """The pictures on the screen; now and then also those that are there no longer."""
        if self.presenter.connection is None:
            return []
        open_ids = {row.id for row in self.world.ledger.rows.all(SHOWINGS)}  # type: ignore[attr-defined]
        late = self.random.random() < 0.1
        return [id for id in dict.fromkeys(self.presenter.shown()) if late or id in open_ids]

    def draw(self) -> None:
        for request_id in self.pictures():
            self.presenter.presented(request_id)

    def answer(self) -> None:
        for request_id in self.one_of(self.pictures()):
            option = self.random.choice(("allow", "deny", "other"))
            self.answers[self.presenter.choose(request_id, option)] = request_id

    def close_bubble(self) -> None:
        for request_id in self.one_of(self.pictures()):
            self.presenter.close_bubble(request_id)

    def attention(self) -> None:
        for request_id in self.one_of(self.pictures()):
            held = self.random.random() < 0.5
            self.presenter.say(Attention(request_id=request_id, held=held))

    def defer(self) -> None:
        for request_id in self.one_of(self.pictures()):
            revision = self.presenter.picture(request_id).revision
            self.presenter.say(Deferred(request_id=request_id, revision=revision, why="space"))

    def finish(self) -> None:
        for request_id in self.pictures():
            self.presenter.say(Finished(request_id=request_id))

    def user(self) -> None:
        if self.presenter.connection is not None:
            for act in self.random.choice((("hide", "show"), ("pause", "resume"), ("show",), ("resume",))):
                self.presenter.user(act)
            if self.random.random() < 0.2:
                seconds = self.random.choice((1, 2, None))
                self.presenter.user("mute", client_id=self.random.choice(CLIENTS), seconds=seconds)

    def presenter_restarts(self) -> None:
        if self.presenter.connection is not None:
            self.presenter.gone()
        if self.random.random() < 0.7:
            self.presenter.ready()

    # -- what time and the disk do ----------------------------------------------------------------------------

    def pass_time(self) -> None:
        self.world.advance(self.random.choice((1, 400, 600, 1_000)))

    def hold_commits(self) -> None:
        """What is decided in the next steps is committed together, or fails together."""
        self.world.holding = True

    def commit(self) -> None:
        if self.world.holding and self.world.ledger.has_batch and self.random.random() < 0.4:
            self.seen["failed commit"] += 1
            self.world.fail_commit()
        self.world.holding = False
        self.world.settle()

    # -- what always holds ------------------------------------------------------------------------------------

    def check(self) -> None:
        self.check_decisions()
        self.check_what_was_told()
        self.check_the_display()

    def check_decisions(self) -> None:
        """Revisions grow by one, and nothing leads out of a terminal state."""
        for change in self.world.decided:
            before, after = change.before, change.after
            assert isinstance(after, Request)
            if isinstance(before, Request):
                assert not before.ended
            assert after.revision == (before.revision + 1 if before else 1)
        self.world.decided.clear()

    def check_what_was_told(self) -> None:
        """Nobody is told two things under one revision, or anything that is not on disk."""
        effects = self.world.effects[self.looked_at :]
        self.looked_at += len(effects)
        for effect in effects:
            if not isinstance(effect, Reply):
                continue
            asked, body = self.asked.get(effect.to), effect.body
            if isinstance(body, Outcome) and effect.to in self.answers:
                self.hear_outcome(self.answers[effect.to], body)
            elif isinstance(asked, WaitRequest) and isinstance(body, WaitResult):
                self.hear(body.request)
                self.seen["news" if body.changed else "no news"] += 1
                assert body.changed == (body.request.revision > asked.after_revision)
            elif isinstance(asked, UpdateRequest) and isinstance(body, Refused):
                self.seen[refusal(body)[0]] += 1
            elif isinstance(body, Snapshot):
                self.hear(body)
                if isinstance(asked, CreateRequest):
                    self.hear_created(asked, body)

    def hear(self, snapshot: Snapshot) -> None:
        known = self.told.setdefault((snapshot.request_id, snapshot.revision), snapshot)
        assert known == snapshot
        assert self.world.disk.rows[REQUESTS.name, snapshot.request_id].revision >= snapshot.revision
        assert (snapshot.result is not None) == (snapshot.reason == "answered")

    def hear_created(self, asked: CreateRequest, snapshot: Snapshot) -> None:
        if snapshot.request_id not in self.requests:
            self.requests.append(snapshot.request_id)
        elif asked.idempotency_key is not None:
            self.seen["idempotent retry"] += 1
        if asked.idempotency_key is not None:
            owner = self.world.request(snapshot.request_id).client_id
            known = self.by_key.setdefault((owner, asked.idempotency_key), snapshot.request_id)
            assert known == snapshot.request_id

    def hear_outcome(self, request_id: str, outcome: Outcome) -> None:
        self.seen[outcome.reason or outcome.outcome] += 1
        if outcome.outcome == "committed":
            assert request_id not in self.answered
            self.answered.add(request_id)

    def check_the_display(self) -> None:
        """What is handed over has a place and is shown, or was set aside; and no limit is exceeded."""
        rows: list[Any] = self.world.ledger.rows.all(REQUESTS)
        places: list[Any] = self.world.ledger.rows.all(PLACES)
        shown = {place.request_id for place in places if place.line is None}
        aside = {place.request_id for place in places if place.line is not None}
        assert len(shown) <= LIMITS.max_displayed
        assert shown == {row.id for row in self.world.ledger.rows.all(SHOWINGS)}  # type: ignore[attr-defined]
        assert shown | aside == {row.id for row in rows if row.state.value in ("running", "awaiting_user")}
        self.seen["set aside"] += len(aside)
        for name in CLIENTS:
            unfinished = [row for row in rows if row.client_id == name and not row.ended]
            assert len(unfinished) <= LIMITS.max_queued_per_client

    def end(self) -> None:
        """In the end everything has ended, and each call of a session that stayed was answered once."""
        self.world.holding = False
        self.world.settle()
        self.world.advance(120_000)
        self.check()
        for table in (WAITS, DISPLAYS, SHOWINGS, PLACES):
            assert self.world.ledger.rows.all(table) == []
        assert self.world.ledger.outstanding == 0
        assert all(len(bodies) == 1 for bodies in self.world.replies.values())
        open_sessions = {session.connection for session in self.sessions.values()}
        unanswered = [ref for ref in self.asked if ref not in self.world.replies]
        assert open_sessions.isdisjoint(ref.connection for ref in unanswered)
        for request_id in self.requests:
            row = self.world.request(request_id)
            assert row.ended
            assert (row.result is not None) == (request_id in self.answered)
            self.seen[row.reason or ""] += 1

    def one_of(self, ids: list[str]) -> list[str]:
        """One of them, or none where there are none; mostly one of the newest."""
        if not ids:
            return []
        return [self.random.choice(ids[-4:] if self.random.random() < 0.8 else ids)]


@pytest.mark.requirement("CP-3.4", "CP-3.9", "CP-3.10", "CP-4.1", "CP-4.6", "CP-4.12")
@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_script_keeps_the_rules_of_requests(random: Random) -> None:
    Script(random).play(60)


def test_the_scripts_reach_everything_that_they_are_about() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        script = Script(Random(seed))
        script.play(80)
        seen += script.seen
    wanted = {
        *("answered", "presented", "cancelled_by_client", "dismissed_by_user", "hidden_by_user"),
        *("paused_by_user", "muted_by_user", "queue_evicted", "finished", "set aside"),
        *("deadline", "presenter_lost", "render_failed", "REVISION_CONFLICT", "INVALID_PARAMS"),
        *("committed", "not_armed", "not_presented", "invalid", "failed commit"),
        *("news", "no news", "idempotent retry"),
    }
    assert wanted <= seen.keys(), wanted - seen.keys()
