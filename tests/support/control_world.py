"""The pure world with every protocol that the daemon speaks, and a control connection that speaks in bytes.

world = ControlWorld()
owner = world.owner()
owner.call("clients.list")
"""

from __future__ import annotations

from typing import Any, ClassVar

from broker.daemon.protocol_table import all_routes, protocol_table
from handlers.companion.host import HOST, HOST_CONNECTION
from handlers.events import Opened
from handlers.policy import App, LeasePolicy, Limits, Policy
from handlers.routes import Routes, merge
from protocols.companion.engine import CompanionEngine
from protocols.control.engine import ControlEngine
from protocols.lease.engine import LeaseEngine
from protocols.presenter.engine import PresenterEngine
from tests.support.companion_world import Session, World
from tests.support.lease_world import Holder, look
from tests.support.pure_world import Peer, Spoken

APP = "org.example.Editor"


class ControlWorld(World):
    """See the module header."""

    routes: ClassVar[Routes] = merge(all_routes(protocol_table(Policy())))
    spoken: ClassVar = {
        "companion": Spoken(CompanionEngine),
        "presenter": Spoken(PresenterEngine),
        "control": Spoken(lambda: ControlEngine(65_536)),
        "lease": Spoken(lambda: LeaseEngine(8_192), look, ordered=True),
    }

    def __init__(self, limits: Limits | None = None, *, access: bool = True) -> None:
        super().__init__(limits, access=access)
        self.policy = Policy(
            access_enabled=access,
            limits=limits or Limits(),
            lease=LeasePolicy(startup_hold_ms=0),
            apps={APP: App("Editor", "/opt/example/bin/editor")},
        )
        super().restart()  # with that policy

    def owner(self) -> Owner:
        """A control connection."""
        return Owner(self.connect("control"))

    def host(self) -> Session:
        """The host's connection, which the daemon opens at its start."""
        self.submit(Opened(HOST_CONNECTION, HOST, None))
        return Session(self, HOST_CONNECTION)

    def holder(self, holder_id: str = "agent") -> Holder:
        """A lease holder that is ready."""
        peer = self.connect("lease")
        hello = {"protocolVersion": 1, "holderId": holder_id, "clientName": "secret name", "pid": 0}
        assert peer.ask({"action": "session.hello", **hello})["action"] == "session.ready"
        return Holder(peer, holder_id)


class Owner:
    """A tool of the owner; replies and events are read apart."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._calls = 0
        self._events: list[Any] = []
        self._replies: dict[int, Any] = {}

    def start(self, method: str, **params: Any) -> int:
        """Send a call; its number."""
        self._calls += 1
        self.peer.send({"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params})
        return self._calls

    def reply(self, number: int) -> Any:
        """The reply to a call, None while there is none."""
        self._read()
        return self._replies.get(number)

    def call(self, method: str, **params: Any) -> Any:
        """The result of a call that is answered at once."""
        reply = self.reply(self.start(method, **params))
        assert reply is not None, "no reply yet"
        assert "result" in reply, reply
        return reply["result"]

    def refused(self, method: str, **params: Any) -> Any:
        """The data of the error of a call that is refused at once."""
        reply = self.reply(self.start(method, **params))
        assert "error" in reply, reply
        return reply["error"]["data"]

    def events(self) -> list[Any]:
        """The events since the last look, as they stood on the wire, without their time."""
        self._read()
        events, self._events = self._events, []
        return events

    def _read(self) -> None:
        while (line := self.peer.read()) is not None:
            if "method" in line:
                assert line["method"] == "event", line
                self._events.append({name: value for name, value in line["params"].items() if name != "at"})
            else:
                self._replies[line["id"]] = line
