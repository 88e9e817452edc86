"""The companion protocol in the pure world, with its messages handed in and out as values, not as bytes.

Every decision is committed at once unless `world.holding` is set.  Replies are collected by call; what reaches
the presenter is in `world.presenter.pushed`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import attrs

from handlers import connections
from handlers.companion import routes as companion_routes
from handlers.companion.rows import CLIENTS, REQUESTS, Client, Request
from handlers.events import Call, CallRef, Hangup, Push, Reply
from handlers.policy import Limits, Policy, Retention
from handlers.presenter import routes as presenter_routes
from handlers.routes import Routes, merge
from handlers.rule import Change, Draft, Now, Row, Table
from protocols.companion.capabilities import Catalog
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
from protocols.presenter.engine import PresenterEngine
from protocols.process import ProcessId
from protocols.refusal import Refused
from tests.support.presenter_end import Presenter
from tests.support.pure_world import Process, PureWorld, Spoken

R = TypeVar("R", bound=Row)

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
        self._presenters = [self.presenter]
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
        elif isinstance(effect, Push):
            for presenter in self._presenters:
                if presenter.connection == effect.connection:
                    presenter.take(effect.body)
        return done

    def restart(self, *, down_seconds: float = 0, reboot: bool = False) -> None:
        for presenter in self._presenters:
            presenter.connection = None
        super().restart(down_seconds=down_seconds, reboot=reboot)

    def advance(self, ms: int) -> None:
        """Let time pass; deadlines fire at their instants."""
        self.wait(ms / 1000)

    def suspend(self, ms: int) -> None:
        """The machine sleeps; nothing fires until somebody looks."""
        self.clocks.sleep(ms / 1000)

    # -- who is there -----------------------------------------------------------------------------------------

    def new_presenter(self, *, person: bool = True) -> Presenter:
        """One more presenter, ready."""
        presenter = Presenter(self)
        self._presenters.append(presenter)
        presenter.ready(person=person)
        return presenter

    def open(
        self, protocol: str = "companion", process: ProcessId | None = None, program: str | None = None
    ) -> int:
        """Open a connection; its messages are handed in by `ask`, past its engine."""
        peer = self.connect(protocol, Process(process) if process else self.spawn(), program)
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

    def call(self, connection: int, message: object) -> Any:
        """Send a message; its reply, None while there is none."""
        return self.reply(self.ask(connection, message))

    def pair(self, name: str = "c1", *scopes: str, label: str | None = None) -> Client:
        """A client that is paired already; its key is `key_of(name)`, its label the name in capitals or this one."""
        digest = hashlib.sha256(key_of(name).encode()).hexdigest()
        allowed = scopes or ("animate", "notify", "interact")
        client = Client(name, label or name.upper(), allowed, digest, 0, revision=1)
        self.disk.rows[CLIENTS.name, name] = client
        self.ledger.load([(CLIENTS, client)])
        return client

    def session(
        self, name: str = "c1", *scopes: str, label: str | None = None, program: str | None = None
    ) -> Session:
        """An authenticated session of a client, which is paired if it is not yet."""
        if (CLIENTS.name, name) not in self.disk.rows:
            self.pair(name, *scopes, label=label)
        connection = self.open(program=program)
        self.ask(connection, Authenticate(client_id=name, key=key_of(name)))
        return Session(self, connection, name)

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

    def row(self, table: Table[R], key: str) -> R:
        row = self.ledger.rows.get(table, key)
        assert isinstance(row, table.row)
        return row

    def rows(self, table: Table[R]) -> Sequence[R]:
        return self.ledger.rows.all(table)  # type: ignore[return-value]  # rows under a table's name are of its class

    def pid_of(self, connection: int) -> int:
        """The process at the other end."""
        return self.peers[connection].process.id.pid

    def pushed_to(self, connection: int) -> list[object]:
        """What was sent there without being asked for."""
        return [one.body for one in self.effects if isinstance(one, Push) and one.connection == connection]

    def hung_up(self) -> list[int]:
        return [effect.connection for effect in self.effects if isinstance(effect, Hangup)]


def key_of(name: str) -> str:
    return f"key of {name}"


@attrs.frozen
class Session:
    """A client's authenticated connection, and its calls."""

    world: World
    connection: int
    client_id: str = ""

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

    def choose(self, title: str = "Go?", **members: Any) -> Snapshot:
        snapshot = self.create("interaction.choose", {**CHOICE, "title": title}, **members)
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


def refusal(body: object) -> tuple[str, Any]:
    """Code and reason of a refusal."""
    assert isinstance(body, Refused), body
    return body.code.value, body.details.get("reason")
