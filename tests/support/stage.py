"""A broker without a world: the handlers over the real ledger, a disk of memory and a clock that a test moves.

    stage = Stage()
    presenter = stage.presenter()
    agent = stage.client("interact")
    snapshot = stage.ask(agent, choice())
    presenter.present(snapshot.request_id)

Every event is decided, committed and its effects carried out before the call returns; `stage.saving = False`
lets commits fail instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any, TypeVar

import attrs

from broker.daemon.ledger import Ledger
from handlers import connections
from handlers.companion.keys import NO_KEY_YET
from handlers.companion.routes import ROUTES as COMPANION
from handlers.companion.rows import CLIENTS, REQUESTS, Client, Request
from handlers.environment import Environment
from handlers.events import (
    Call,
    CallRef,
    Closed,
    Hangup,
    Opened,
    Push,
    Reply,
    Scrub,
    Scrubbed,
    Sent,
    Started,
    TellWhenSent,
    Then,
)
from handlers.policy import Policy
from handlers.presenter.routes import ROUTES as PRESENTER
from handlers.routes import Routes, merge
from handlers.rule import Effect, Event, Now, Row, Table
from protocols.companion.capabilities import Interaction, Kind
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.pairing import SCOPES, Scope
from protocols.json_values import JSONObject
from protocols.presenter.messages import (
    Answer,
    ConfirmPairing,
    Dismiss,
    Dismissed,
    Outcome,
    PairingDecision,
    Present,
    Presented,
    Ready,
    User,
)
from protocols.process import ProcessId
from tests.support.memory_disk import MemoryDisk

M = TypeVar("M")
R = TypeVar("R", bound=Row)

POLICY = Policy(access_enabled=True)


class Stage:
    """See the module header.  `replies` and `pushes` hold what each call and connection was told."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.policy = policy
        self.routes: Routes = merge((connections.ROUTES, COMPANION, PRESENTER))
        self.saving = True
        self.deaf = False
        """Whether no byte gets to the connections any more."""
        self.replies: dict[CallRef, object] = {}
        self.pushes: dict[int, list[object]] = defaultdict(list)
        self.hung_up: list[int] = []
        self.now = Now(elapsed=1_000_000, awake=500_000, wall=1_800_000_000_000)
        self.disk = MemoryDisk()
        self._numbers = count(1)
        self.start()

    def start(self) -> None:
        """Start the broker, again with what is on the disk."""
        environment = Environment(self.policy, f"run {next(self._numbers)}", "boot")
        self.ledger = Ledger(self.routes, environment, self.disk, lambda: self.now, self._report)
        self.ledger.load(self.disk.live(self.routes.tables))
        self.happen(Started())

    # -- events -----------------------------------------------------------------------------------------------

    def happen(self, event: Event) -> None:
        """Decide, commit, carry out."""
        self.ledger.decide(event)
        self._settle()

    def wait(self, milliseconds: int) -> None:
        """Let time pass on every clock, one deadline after the other."""
        end = self.now.elapsed + milliseconds
        while self.now.elapsed < end:
            step = self.ledger.deadlines.next_in(self.now)
            left = end - self.now.elapsed
            self._pass(left if step is None else min(max(step, 1), left))
            self.ledger.fire_due()
            self._settle()

    def sleep(self, milliseconds: int) -> None:
        """The machine sleeps: awake time stands still."""
        self.now = attrs.evolve(
            self.now, elapsed=self.now.elapsed + milliseconds, wall=self.now.wall + milliseconds
        )
        self.ledger.fire_due()
        self._settle()

    def open(self, protocol: str = "companion", program: str | None = "/usr/bin/agent") -> int:
        """A new connection; its number."""
        number = next(self._numbers)
        self.happen(Opened(number, protocol, ProcessId(1000 + number, "0"), program))
        return number

    def close(self, connection: int) -> None:
        self.happen(Closed(connection))

    def call(self, connection: int, message: object) -> Any:
        """Deliver a message; its reply, or None while there is none."""
        return self.replies.get(self.begin(connection, message))

    def begin(self, connection: int, message: object) -> CallRef:
        """Deliver a message whose reply may come later, in `replies`."""
        ref = CallRef(connection, next(self._numbers))
        self.happen(Call(ref, message, ref.number.to_bytes(32)))
        return ref

    # -- people and programs ----------------------------------------------------------------------------------

    def presenter(self, *, person: bool = True) -> Screen:
        """A presenter that can draw everything, ready."""
        screen = Screen(self, self.open("presenter", None))
        screen.ready(person=person)
        return screen

    def client(self, *scopes: Scope, label: str = "Agent") -> int:
        """A connection that is authenticated as a new paired client."""
        connection = self.open()
        client = Client(
            f"client {connection}", label, scopes or SCOPES, f"sha of {connection}", self.now.wall
        )
        assert client.key_sha256 != NO_KEY_YET
        self.disk.rows[CLIENTS.name, client.id] = attrs.evolve(client, revision=1)
        self.ledger.load([(CLIENTS, attrs.evolve(client, revision=1))])
        self._authenticate(connection, client.id)
        return connection

    def another_session(self, of: int, program: str) -> int:
        """One more connection, of another program, that is authenticated as the client of this one."""
        connection = self.open(program=program)
        self._authenticate(connection, f"client {of}")
        return connection

    def ask(
        self,
        connection: int,
        params: JSONObject,
        capability: str = "interaction.choose",
        timeout_ms: int = 60_000,
    ) -> Snapshot:
        """requests.create that must succeed."""
        asked = CreateRequest(capability=capability, params=params, timeout_ms=timeout_ms)
        snapshot = self.call(connection, asked)
        assert isinstance(snapshot, Snapshot), snapshot
        return snapshot

    # -- looking ----------------------------------------------------------------------------------------------

    def request(self, id: str) -> Request:
        """The request as it is on the disk."""
        row = self.disk.rows[REQUESTS.name, id]
        assert isinstance(row, Request)
        return row

    def row(self, table: Table[R], key: str) -> R:
        row = self.ledger.rows.get(table, key)
        assert isinstance(row, table.row)
        return row

    def rows(self, table: Table[R]) -> list[R]:
        return self.ledger.rows.all(table)  # type: ignore[return-value]

    # -- inside -----------------------------------------------------------------------------------------------

    def _authenticate(self, connection: int, client_id: str) -> None:
        row = self.row(connections.CONNECTIONS, connections.key_of(connection))
        self.ledger.load([(connections.CONNECTIONS, attrs.evolve(row, client_id=client_id))])

    def _pass(self, milliseconds: int) -> None:
        now = self.now
        self.now = Now(now.elapsed + milliseconds, now.awake + milliseconds, now.wall + milliseconds)

    def _settle(self) -> None:
        while (batch := self.ledger.take_batch()) is not None:
            if self.saving:
                self.disk.apply(batch.writes())
                self.ledger.committed()
            else:
                self.ledger.failed(refusing=False)
        while (effect := self.ledger.take_ready()) is not None:
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case TellWhenSent(connection) if not self.deaf:
                self.happen(Sent(connection))
            case Then(event):
                self.happen(event)
            case Scrub(id, revision):
                self.happen(Scrubbed(id, revision))
            case Reply(to, body):
                assert to not in self.replies, "a call is answered once"
                self.replies[to] = body
            case Push(connection, body):
                self.pushes[connection].append(body)
            case Hangup(connection):
                self.hung_up.append(connection)

    def _report(self, event: Event, error: Exception) -> None:
        raise error


class Screen:
    """The presenter's end, and the person before it.  Reports nothing by itself."""

    def __init__(self, stage: Stage, connection: int) -> None:
        self.stage = stage
        self.connection = connection
        self._read = 0

    def ready(self, *, person: bool = True) -> None:
        said = Ready(
            protocol_version="0.1",
            name="test",
            version="1",
            person=person,
            kinds=tuple(Kind),
            interactions=tuple(Interaction),
        )
        self.stage.call(self.connection, said)

    def news(self) -> list[Any]:
        """What was pushed since the last look."""
        pushed = self.stage.pushes[self.connection]
        news = pushed[self._read :]
        self._read = len(pushed)
        return news

    def shown(self, id: str) -> Present:
        """The last picture of this request."""
        pushed = self.stage.pushes[self.connection]
        return [one for one in pushed if isinstance(one, Present) and one.request_id == id][-1]

    def question(self) -> ConfirmPairing:
        """The last pairing that was put on the screen."""
        return [one for one in self.stage.pushes[self.connection] if isinstance(one, ConfirmPairing)][-1]

    def dismissals(self) -> list[Dismiss]:
        return [one for one in self.stage.pushes[self.connection] if isinstance(one, Dismiss)]

    def present(self, id: str) -> Present:
        """Report the last picture of this request as presented."""
        shown = self.shown(id)
        report = Presented(request_id=id, revision=shown.revision, digest=shown.digest)
        self.stage.call(self.connection, report)
        return shown

    def present_question(self) -> ConfirmPairing:
        """Report the last pairing as presented."""
        shown = self.question()
        self.stage.call(self.connection, Presented(pairing_id=shown.pairing_id, digest=shown.digest))
        return shown

    def answer(
        self, shown: Present, result: JSONObject, *, age: int = 0, digest: str | None = None
    ) -> Outcome:
        """An answer whose input began `age` milliseconds ago."""
        said = Answer(
            request_id=shown.request_id,
            revision=shown.revision,
            digest=shown.digest if digest is None else digest,
            input_started_ms=age,
            result=result,
        )
        outcome = self.stage.call(self.connection, said)
        assert isinstance(outcome, Outcome), outcome
        return outcome

    def dismiss(self, shown: Present, *, age: int = 0) -> Outcome:
        """Close the picture without an answer."""
        said = Dismissed(
            request_id=shown.request_id,
            revision=shown.revision,
            digest=shown.digest,
            input_started_ms=age,
        )
        outcome = self.stage.call(self.connection, said)
        assert isinstance(outcome, Outcome), outcome
        return outcome

    def decide(
        self,
        shown: ConfirmPairing,
        scopes: Sequence[Scope] | None = None,
        *,
        approved: bool = True,
        age: int = 0,
        digest: str | None = None,
    ) -> Outcome:
        """A decision on a pairing; by default everything that was asked for is granted."""
        said = PairingDecision(
            pairing_id=shown.pairing_id,
            digest=shown.digest if digest is None else digest,
            input_started_ms=age,
            approved=approved,
            scopes=tuple(shown.scopes if scopes is None else scopes),
        )
        outcome = self.stage.call(self.connection, said)
        assert isinstance(outcome, Outcome), outcome
        return outcome

    def user(self, action: Any, **members: Any) -> Any:
        """Something that the person does outside of any request."""
        return self.stage.call(self.connection, User(action=action, **members))


def choice(title: str = "Read file?") -> JSONObject:
    """Params of interaction.choose: y or n."""
    return {"title": title, "options": [{"id": "y", "label": "Allow"}, {"id": "n", "label": "Deny"}]}
