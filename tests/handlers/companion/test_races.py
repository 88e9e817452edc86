"""Whatever competes for the end of a request, the first decided wins, for everybody and for good (CP-3.10).

Each act is tried against each other, both ways: with every decision stored at once, with both still on their way to
the disk, and with a disk that takes neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handlers.companion.places import PLACES
from handlers.companion.rows import DISPLAYS, REQUESTS, Request
from handlers.events import CallRef
from handlers.presenter.rows import SHOWINGS
from protocols.companion.messages import CancelRequest, Snapshot, UpdateRequest, WaitResult
from protocols.presenter.messages import Dismissed, Outcome, User
from protocols.refusal import Refused
from protocols.session import NotSaved
from tests.support.companion_world import World, refusal

TIMEOUT_MS = 20_000
Act = Callable[["Race"], CallRef | None]


class Race:
    """A request on the screen, armed, of a client with two connections; one of them waits for its end."""

    def __init__(self, kind: str) -> None:
        self.world = World()
        self.world.presenter.ready()
        self.session = self.world.session("a")
        self.other = self.world.session("a")
        ask = self.session.choose if kind == "question" else self.session.progress
        self.id = ask(timeout_ms=TIMEOUT_MS).request_id
        self.world.presenter.presented(self.id)
        self.world.advance(500)
        self.wait = self.other.wait(self.id, self.row.revision)

    @property
    def row(self) -> Request:
        """As it is, or (of a client that was wiped) as it was last."""
        kept = self.world.ledger.rows.get(REQUESTS, self.id) or self.world.disk.read(REQUESTS, self.id)
        return kept if isinstance(kept, Request) else self.world.last_seen(self.id)

    def act(self, name: str) -> CallRef | None:
        return ACTS[name](self)

    def user(self, action: Any, **members: Any) -> CallRef:
        return self.world.presenter.say(User(action=action, **members))

    def close(self) -> CallRef:
        shown = self.world.presenter.picture(self.id)
        return self.world.presenter.say(
            Dismissed(request_id=self.id, revision=shown.revision, digest=shown.digest, input_started_ms=0)
        )

    def deadline(self) -> None:
        self.world.advance(TIMEOUT_MS)

    def finish(self) -> CallRef:
        asked = UpdateRequest(
            request_id=self.id, expected_revision=self.row.revision, params={"finished": True}
        )
        return self.session.ask(asked)

    def left_over(self) -> list[object]:
        """What still hangs on the request though it has ended."""
        tables = (SHOWINGS, PLACES, DISPLAYS)
        return [row for table in tables for row in self.world.ledger.rows.all(table)]


ACTS: dict[str, Act] = {
    "allow": lambda race: race.world.presenter.choose(race.id, "allow"),
    "deny": lambda race: race.world.presenter.choose(race.id, "deny"),
    "close": Race.close,
    "finish": Race.finish,
    "cancel": lambda race: race.session.ask(CancelRequest(request_id=race.id)),
    "deadline": Race.deadline,
    "hide": lambda race: race.user("hide"),
    "pause": lambda race: race.user("pause"),
    "mute": lambda race: race.user("mute", client_id="a", seconds=60),
    "narrow": lambda race: race.user("narrow", client_id="a", scopes=()),
    "revoke": lambda race: race.user("revoke", client_id="a"),
    "access off": lambda race: race.user("disable_access"),
}
ENDS = {
    "allow": "answered",
    "deny": "answered",
    "close": "dismissed_by_user",
    "finish": "finished",
    "cancel": "cancelled_by_client",
    "deadline": "deadline",
    "hide": "hidden_by_user",
    "pause": "paused_by_user",
    "mute": "muted_by_user",
    "narrow": "scope_revoked",
    "revoke": "key_revoked",
    "access off": "access_disabled",
}
"""The reason that each act gives when it wins."""
ONLY_FOR = {"allow": "question", "deny": "question", "finish": "progress"}


def acts_on(kind: str) -> list[str]:
    return [name for name in ACTS if ONLY_FOR.get(name, kind) == kind]


CONTESTS = [(kind, name) for kind in ("question", "progress") for name in acts_on(kind)]
"""A kind of request and the act that comes first; every act comes second in turn."""


def hears_it_was_late(race: Race, body: object, won: Request) -> bool:
    """Whether the reply to the act that came second tells what the first has made of the request."""
    match body:
        case Outcome():
            wiped = won.reason == "key_revoked" and body.reason == "cancelled"
            assert (body.outcome, body.state) == ("too_late", won.state.value)
            return body.reason == won.reason or wiped
        case Snapshot():
            return (body.state, body.reason, body.revision) == (won.state, won.reason, won.revision)
        case Refused():
            code = refusal(body)[0]
            gone = won.reason in ("key_revoked", "access_disabled") and code == "UNAUTHENTICATED"
            revoked = won.reason == "key_revoked" and code == "NOT_FOUND"  # no such client to take from
            return gone or revoked or code == "REVISION_CONFLICT"
    return True  # an act of the person that is not about this request


@pytest.mark.requirement("CP-3.10", "CP-3.7", "CP-3.5", "CP-4.9", "CP-4.14", "G12", "G14")
@pytest.mark.parametrize("on_its_way", [False, True], ids=["stored", "on its way"])
@pytest.mark.parametrize(("kind", "first"), CONTESTS)
def test_the_first_decided_wins_for_everybody_and_for_good(kind: str, first: str, on_its_way: bool) -> None:
    for second in acts_on(kind):
        run(Race(kind), first, second, on_its_way)


def run(race: Race, first: str, second: str, on_its_way: bool) -> None:
    race.world.decided.clear()
    race.world.holding = on_its_way
    race.act(first)
    late = race.act(second)
    if on_its_way:
        assert late is None or race.world.reply(late) is None, "nobody hears what is not on disk"
        assert race.world.reply(race.wait) is None
        race.world.holding = False
        race.world.settle()
    won = race.row
    assert won.reason == ENDS[first]
    assert won.result == ({"allow": '{"selectedId":"allow"}', "deny": '{"selectedId":"deny"}'}.get(first))
    assert late is None or hears_it_was_late(race, race.world.reply(late), won)
    transitions = [change for change in race.world.decided if change.after is not None]
    assert len(transitions) == 1, "there was one transition"
    assert race.left_over() == []
    told = race.world.reply(race.wait)
    if isinstance(told, WaitResult):
        assert (told.request.reason, told.request.revision) == (won.reason, won.revision)
    else:
        assert refusal(told)[0] == "UNAUTHENTICATED"
    race.world.advance(120_000)
    assert race.row == won


@pytest.mark.requirement("CP-4.12", "CP-3.10")
@pytest.mark.parametrize(("kind", "first"), CONTESTS)
def test_of_two_that_could_not_be_stored_neither_has_happened(kind: str, first: str) -> None:
    for second in acts_on(kind):
        run_in_vain(Race(kind), first, second)


def run_in_vain(race: Race, first: str, second: str) -> None:
    before, picture = race.row, race.world.presenter.picture(race.id)
    race.world.holding = True
    asked = [race.act(first), race.act(second)]
    race.world.fail_commit()
    told = [race.world.reply(ref) for ref in asked if ref is not None]
    assert all(isinstance(body, NotSaved) for body in told)
    assert race.world.reply(race.wait) is None, "it still waits"
    if "deadline" in (first, second):
        race.world.advance(1_000)
        assert race.row.reason == "deadline"
        return
    assert race.row == before
    assert race.world.presenter.picture(race.id) == picture
    assert race.world.presenter.dismissed() == {}
    race.act(first)
    assert race.row.reason == ENDS[first]
