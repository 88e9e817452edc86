"""The companion protocol in the pure world, with its messages handed in and out as values, not as bytes.

Every decision is committed at once unless `world.holding` is set.  Replies are collected by call; what reaches
the presenter is in `world.presenter.pushed`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from handlers import connections
from handlers.companion import routes as companion_routes
from handlers.companion.rows import CLIENTS, REQUESTS, Client, Request
from handlers.events import Call, CallRef, Hangup, Push, Reply
from handlers.policy import Limits, Policy, Retention
from handlers.presenter import routes as presenter_routes
from handlers.routes import Routes, merge
from handlers.rule import Change, Draft, Now
from protocols.companion.capabilities import Catalog, Interaction, Kind
from protocols.companion.catalog import CATALOG
from protocols.companion.engine import CompanionEngine
from protocols.companion.messages import (
    Authenticate,
    CancelRequest,
    CreateRequest,
    GetRequest,
    Snapshot,
    UpdateRequest,
    WaitRequest,
)
from protocols.json_values import JSONObject
from protocols.presenter import messages as presenter_messages
from protocols.presenter.engine import PresenterEngine
from protocols.presenter.messages import Dismiss, Present, Update
from protocols.process import ProcessId
from protocols.refusal import Refused
from tests.support.pure_world import Process, PureWorld, Spoken

ROUTES = merge((connections.ROUTES, companion_routes.ROUTES, presenter_routes.ROUTES))
CHOICE: JSONObject = {
    "title": "Go?",
    "options": [{"id": "allow", "label": "Allow"}, {"id": "deny", "label": "Deny"}],
}


class World(PureWorld):
    """See the module header; times are milliseconds."""

    routes: ClassVar[Routes] = ROUTES
    spoken: ClassVar[Mapping[str, Spoken]] = {
        "companion": Spoken(CompanionEngine),
        "presenter": Spoken(PresenterEngine),
    }

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        access: bool = True,
        catalog: Catalog = CATALOG,
        retention: Retention | None = None,
        turn_ms: int = Policy().display_turn_ms,
    ) -> None:
        self.replies: dict[CallRef, list[object]] = {}
        self.delays: dict[CallRef, int] = {}
        self.decided: list[Change] = []
        """Every change to a request, in the order of the decisions, stored or not."""
        self._calls = 0
        self.presenter = Presenter(self)
        policy = Policy(
            access_enabled=access,
            limits=limits or Limits(),
            retention=retention or Retention(),
            display_turn_ms=turn_ms,
        )
        super().__init__(merge((self.routes, Routes(settle=(self._note,)))), self.spoken, policy, catalog)

    def _note(self, draft: Draft, now: Now) -> None:
        self.decided += [change for change in draft.decision().changes if change.table is REQUESTS]

    def _carry_out(self) -> bool:
        done = super()._carry_out()
        effect = self.effects[-1] if done else None
        if isinstance(effect, Reply):
            self.replies.setdefault(effect.to, []).append(effect.body)
            self.delays[effect.to] = effect.delay_ms
        elif isinstance(effect, Push) and effect.connection == self.presenter.connection:
            self.presenter.pushed.append(effect.body)
            if isinstance(effect.body, presenter_messages.Ping):
                self.presenter.say(presenter_messages.Pong())
        return done

    def restart(self, *, down_seconds: float = 0, reboot: bool = False) -> None:
        self.presenter.connection = None
        super().restart(down_seconds=down_seconds, reboot=reboot)

    def advance(self, ms: int) -> None:
        """Let time pass; deadlines fire at their instants."""
        self.wait(ms / 1000)

    def suspend(self, ms: int) -> None:
        """The machine sleeps; nothing fires until somebody looks."""
        self.clocks.sleep(ms / 1000)

    # -- who is there -----------------------------------------------------------------------------------------

    def open(self, protocol: str = "companion", process: ProcessId | None = None) -> int:
        """Open a connection; its messages are handed in by `ask`, past its engine."""
        peer = self.connect(protocol, Process(process) if process else self.spawn())
        peer.engine.authenticated = True
        return peer.number

    def close(self, connection: int) -> None:
        self.peers[connection].disconnect()

    def ask(self, connection: int, message: object) -> CallRef:
        """Send a message; the reply, once there is one, is `world.reply(ref)`."""
        self._calls += 1
        ref = CallRef(connection, self._calls)
        self.submit(Call(ref, message, hashlib.sha256(b"call %d" % self._calls).digest()))
        return ref

    def reply(self, ref: CallRef) -> Any:
        """The one reply to a call, None while there is none."""
        bodies = self.replies.get(ref, [])
        assert len(bodies) <= 1, "answered twice"
        return bodies[0] if bodies else None

    def pair(self, name: str = "c1", *scopes: str) -> Client:
        """A client that is paired already; its key is `key_of(name)`."""
        digest = hashlib.sha256(key_of(name).encode()).hexdigest()
        client = Client(
            name, name.upper(), scopes or ("animate", "notify", "interact"), digest, 0, revision=1
        )
        self.disk.rows[CLIENTS.name, name] = client
        self.ledger.load([(CLIENTS, client)])
        return client

    def session(self, name: str = "c1", *scopes: str) -> Session:
        """An authenticated session of a client, which is paired if it is not yet."""
        if (CLIENTS.name, name) not in self.disk.rows:
            self.pair(name, *scopes)
        connection = self.open()
        self.ask(connection, Authenticate(client_id=name, key=key_of(name)))
        return Session(self, connection)

    def request(self, request_id: str) -> Request:
        row = self.ledger.rows.get(REQUESTS, request_id) or self.disk.read(REQUESTS, request_id)
        assert isinstance(row, Request)
        return row

    def last_seen(self, request_id: str) -> Request:
        """The request as a decision last left it, whether or not it is still kept."""
        rows = [
            change.after for change in self.decided if change.key == request_id and change.after is not None
        ]
        assert isinstance(rows[-1], Request)
        return rows[-1]

    def hung_up(self) -> list[int]:
        return [effect.connection for effect in self.effects if isinstance(effect, Hangup)]


def key_of(name: str) -> str:
    return f"key of {name}"


@attrs.frozen
class Session:
    """A client's authenticated connection, and its calls."""

    world: World
    connection: int

    def ask(self, message: object) -> CallRef:
        return self.world.ask(self.connection, message)

    def call(self, message: object) -> Any:
        """Send a message that is answered at once; returns the reply."""
        reply = self.world.reply(self.ask(message))
        assert reply is not None, "no reply yet"
        return reply

    def create(self, capability: str, params: JSONObject, **members: Any) -> Any:
        members.setdefault("timeout_ms", 60_000)
        return self.call(CreateRequest(capability=capability, params=params, **members))

    def choose(self, **members: Any) -> Snapshot:
        snapshot = self.create("interaction.choose", CHOICE, **members)
        assert isinstance(snapshot, Snapshot), snapshot
        return snapshot

    def notice(self, params: Mapping[str, Any] | None = None, **members: Any) -> Snapshot:
        snapshot = self.create("notice.show", {"text": "hello", **(params or {})}, **members)
        assert isinstance(snapshot, Snapshot), snapshot
        return snapshot

    def progress(self, params: Mapping[str, Any] | None = None, **members: Any) -> Snapshot:
        snapshot = self.create("progress.track", {"title": "Copying", **(params or {})}, **members)
        assert isinstance(snapshot, Snapshot), snapshot
        return snapshot

    def ask_text(self, params: Mapping[str, Any] | None = None, **members: Any) -> Snapshot:
        snapshot = self.create("interaction.ask_text", {"title": "Name?", **(params or {})}, **members)
        assert isinstance(snapshot, Snapshot), snapshot
        return snapshot

    def animate(self, expression: str = "happy", **members: Any) -> Snapshot:
        snapshot = self.create("animation.play", {"expression": expression}, **members)
        assert isinstance(snapshot, Snapshot), snapshot
        return snapshot

    def update(self, request_id: str, revision: int, **params: Any) -> Any:
        return self.call(UpdateRequest(request_id=request_id, expected_revision=revision, params=params))

    def get(self, request_id: str) -> Any:
        return self.call(GetRequest(request_id=request_id))

    def cancel(self, request_id: str) -> Any:
        return self.call(CancelRequest(request_id=request_id))

    def wait(self, request_id: str, after: int, wait_ms: int = 30_000) -> CallRef:
        return self.ask(WaitRequest(request_id=request_id, after_revision=after, wait_ms=wait_ms))

    def close(self) -> None:
        self.world.close(self.connection)


class Presenter:
    """A presenter that draws whatever it is told to, when the test says so."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.connection: int | None = None
        self.pushed: list[object] = []

    def ready(
        self,
        kinds: Sequence[Kind] = tuple(Kind),
        interactions: Sequence[Interaction] = (Interaction.CHOICE, Interaction.TEXT),
        *,
        person: bool = True,
    ) -> None:
        self.connection = self.world.open("presenter")
        self.say(
            presenter_messages.Ready(
                protocol_version="0.1",
                name="desktop",
                version="1",
                person=person,
                kinds=tuple(kinds),
                interactions=tuple(interactions),
            )
        )

    def gone(self) -> None:
        assert self.connection is not None
        connection, self.connection = self.connection, None
        self.world.close(connection)

    def say(self, message: object) -> CallRef:
        assert self.connection is not None
        return self.world.ask(self.connection, message)

    def user(self, action: Any, **members: Any) -> Any:
        """The person does something outside of any request; returns the reply."""
        return self.world.reply(self.say(presenter_messages.User(action=action, **members)))

    def pictures(self) -> list[Present]:
        return [body for body in self.pushed if isinstance(body, Present)]

    def shown(self) -> list[str]:
        """The ids of the requests that were handed over, in order."""
        return [present.request_id for present in self.pictures() if not isinstance(present, Update)]

    def dismissed(self) -> dict[str | None, str]:
        return {body.request_id: body.reason for body in self.pushed if isinstance(body, Dismiss)}

    def picture(self, request_id: str) -> Present:
        return [present for present in self.pictures() if present.request_id == request_id][-1]

    def presented(self, request_id: str) -> None:
        """Report that the request is on the screen, and let the input be armed."""
        picture = self.picture(request_id)
        self.say(
            presenter_messages.Presented(
                request_id=request_id, revision=picture.revision, digest=picture.digest
            )
        )

    def updates(self) -> list[Update]:
        return [body for body in self.pushed if isinstance(body, Update)]

    def answer(self, request_id: str, selected_id: str) -> Any:
        """The person chooses; returns the outcome."""
        return self.world.reply(self.choose(request_id, selected_id))

    def choose(self, request_id: str, selected_id: str) -> CallRef:
        """The person chooses; the outcome comes with the reply."""
        return self.reply(request_id, {"selectedId": selected_id})

    def write(self, request_id: str, text: str) -> Any:
        """The person writes; returns the outcome."""
        return self.world.reply(self.reply(request_id, {"text": text}))

    def reply(self, request_id: str, result: JSONObject) -> CallRef:
        """The person answers the last picture; the outcome comes with the reply."""
        picture = self.picture(request_id)
        return self.say(
            presenter_messages.Answer(
                request_id=request_id,
                revision=picture.revision,
                digest=picture.digest,
                input_started_ms=0,
                result=result,
            )
        )

    def close_bubble(self, request_id: str, drawn: Present | None = None) -> Any:
        """The person closes it, as it was last sent or as it was `drawn`; returns the outcome."""
        picture = drawn or self.picture(request_id)
        ref = self.say(
            presenter_messages.Dismissed(
                request_id=request_id, revision=picture.revision, digest=picture.digest, input_started_ms=0
            )
        )
        return self.world.reply(ref)


def refusal(body: object) -> tuple[str, Any]:
    """Code and reason of a refusal."""
    assert isinstance(body, Refused), body
    return body.code.value, body.details.get("reason")
