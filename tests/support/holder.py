"""A lease client over a real connection: one that says hello, asks, and reads answers and close checks apart."""

from __future__ import annotations

import itertools
from typing import Any

from tests.support.lines import Lines

_NUMBERS = itertools.count(1)


class Holder(Lines):
    """A session of one holder; `ask` gives the answer to a message, `pushed` the next close check."""

    id = ""

    def greet(self, holder_id: str, pid: int) -> dict[str, Any]:
        """Say hello, which must be accepted; what session.ready tells."""
        self.send(hello_of(holder_id, pid))
        ready: dict[str, Any] = self.read()
        assert ready["action"] == "session.ready", ready
        self.id = holder_id
        self._pushes: list[dict[str, Any]] = []
        return ready

    def begin(self, app_key: str, seconds: int) -> dict[str, Any]:
        return self.ask("lease.begin", appKey=app_key, leaseSeconds=seconds)

    def renew(self, app_key: str, seconds: int) -> dict[str, Any]:
        return self.ask("lease.renew", appKey=app_key, leaseSeconds=seconds)

    def end(self, app_key: str) -> dict[str, Any]:
        return self.ask("lease.end", appKey=app_key)

    def answer(self, check: dict[str, Any], result: str, **members: Any) -> dict[str, Any]:
        """Reply to a close check."""
        return self.ask(
            "lease.can_close.reply",
            requestId=check["requestId"],
            appKey=check["appKey"],
            result=result,
            **members,
        )

    def ask(self, action: str, **members: Any) -> dict[str, Any]:
        """Send a business message; its lease.response."""
        message = {"action": action, "requestId": f"req_{next(_NUMBERS)}", "holderId": self.id, **members}
        self.send(message)
        response = self._next("lease.response")
        assert response["requestId"] == message["requestId"], response
        return response

    def pushed(self) -> dict[str, Any]:
        """The next lease.can_close.request."""
        return self._pushes.pop(0) if self._pushes else self._next("lease.can_close.request")

    def unasked(self) -> bool:
        """Whether no close check has come so far; lines of the broker that are on their way count."""
        return not self._pushes and self.nothing(0.1)

    def _next(self, action: str) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = self.read()
            if message["action"] == action:
                return message
            assert message["action"] == "lease.can_close.request", message
            self._pushes.append(message)


def hello_of(holder_id: str, pid: int) -> dict[str, Any]:
    """A session.hello."""
    return {
        "action": "session.hello",
        "protocolVersion": 1,
        "holderId": holder_id,
        "clientName": "Test Agent",
        "pid": pid,
    }
