"""The pure world with the lease and control protocols, two known apps, and holders that speak in short
calls.
"""

from __future__ import annotations

from typing import Any

from handlers import connections
from handlers.lease.routes import ROUTES
from handlers.lease.rows import LEASES, Lease, lease_key
from handlers.lease.session import HelloSeen
from handlers.policy import App, LeasePolicy, Policy
from handlers.routes import merge
from protocols.control.engine import ControlEngine
from protocols.lease.engine import LeaseEngine
from protocols.lease.messages import Hello
from tests.support.pure_world import Peer, Process, PureWorld, Spoken

EDITOR = "org.example.Editor"
BROWSER = "org.example.Browser"
APPS = {
    EDITOR: App("Editor", "/opt/example/bin/editor"),
    BROWSER: App("Browser", "/opt/example/bin/browser"),
}
NO_START_HOLD = LeasePolicy(startup_hold_ms=0)


def look(message: object, process: Process) -> object:
    """What the kernel says of a hello's pid (lease.md, hello)."""
    if not isinstance(message, Hello):
        return message
    wanted = process.id.pid if message.pid == 0 else message.pid
    found = next((one.id for one in process.lineage() if one.id.pid == wanted), None)
    return HelloSeen(message, found)


class Holder:
    """A holder's session on one connection; calls return the line that came as the answer."""

    def __init__(self, peer: Peer, holder_id: str) -> None:
        self.peer = peer
        self.id = holder_id
        self._requests = 0

    def begin(self, app_key: str = EDITOR, seconds: object = 60, **more: object) -> Any:
        return self.ask("lease.begin", appKey=app_key, leaseSeconds=seconds, **more)

    def renew(self, app_key: str = EDITOR, seconds: object = 60, **more: object) -> Any:
        return self.ask("lease.renew", appKey=app_key, leaseSeconds=seconds, **more)

    def end(self, app_key: str = EDITOR, **more: object) -> Any:
        return self.ask("lease.end", appKey=app_key, **more)

    def reply(self, close: Any, result: str, **more: object) -> Any:
        """Answer a lease.can_close.request."""
        return self.ask(
            "lease.can_close.reply",
            requestId=close["requestId"],
            appKey=close["appKey"],
            result=result,
            **more,
        )

    def ask(self, action: str, **members: object) -> Any:
        self._requests += 1
        message = {
            "action": action,
            "requestId": f"req_{self.peer.number}_{self._requests}",
            "holderId": self.id,
        }
        return self.peer.ask({**message, **members})

    def pushed(self) -> Any:
        """The close check that has come, None when none has."""
        line = self.peer.read()
        assert line is None or line["action"] == "lease.can_close.request", line
        return line


class Question:
    """A leases.may_close on a control connection of its own; `answer()` is None while a check is under
    way.
    """

    def __init__(self, peer: Peer, app_key: str, reserve: bool) -> None:
        self.peer = peer
        params = {"appKey": app_key, "reserve": reserve}
        peer.send({"jsonrpc": "2.0", "id": 1, "method": "leases.may_close", "params": params})

    def answer(self) -> Any:
        """The answer, once; None while there is none."""
        line = self.peer.read()
        return None if line is None else line["result"]


class LeaseWorld(PureWorld):
    """See the module header.  Without a start hold unless the policy has one."""

    def __init__(self, lease: LeasePolicy = NO_START_HOLD) -> None:
        spoken = {
            "lease": Spoken(lambda: LeaseEngine(lease.max_frame_bytes), look, ordered=True),
            "control": Spoken(lambda: ControlEngine(65_536)),
        }
        super().__init__(merge((connections.ROUTES, ROUTES)), spoken, Policy(lease=lease, apps=APPS))

    def hello(self, holder_id: str, process: Process | None = None, *, pid: int = 0) -> tuple[Peer, Any]:
        """Connect and say hello; the connection and what came back."""
        peer = self.connect("lease", process)
        members = {"protocolVersion": 1, "holderId": holder_id, "clientName": "Test Agent", "pid": pid}
        return peer, peer.ask({"action": "session.hello", **members})

    def holder(self, holder_id: str = "agent", process: Process | None = None, *, pid: int = 0) -> Holder:
        """A holder that is ready."""
        peer, ready = self.hello(holder_id, process, pid=pid)
        assert ready["action"] == "session.ready", ready
        return Holder(peer, holder_id)

    def ask_may_close(self, app_key: str = EDITOR, *, reserve: bool = False) -> Question:
        """Ask; the answer may come later."""
        return Question(self.connect("control"), app_key, reserve)

    def may_close(self, app_key: str = EDITOR, *, reserve: bool = False) -> Any:
        """Ask where the answer comes at once."""
        answer = self.ask_may_close(app_key, reserve=reserve).answer()
        assert answer is not None, "a close check is under way"
        return answer

    def control(self, method: str, **params: object) -> Any:
        """The reply to any control call."""
        peer = self.connect("control")
        return peer.ask({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def lease(self, holder_id: str = "agent", app_key: str = EDITOR) -> Lease | None:
        """The row as the newest decision left it."""
        row = self.ledger.rows.get(LEASES, lease_key(holder_id, app_key))
        return row if isinstance(row, Lease) else None

    def expired_holder(self, holder_id: str = "agent", app_key: str = EDITOR) -> Holder:
        """A holder whose lease and grace are over: it has to be asked before the app is closed."""
        holder = self.holder(holder_id)
        assert holder.begin(app_key)["code"] == "accepted"
        self.wait(121)
        return holder
