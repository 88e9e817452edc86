"""One connection of a lease holder, blocking: ask and get the answer, or wait for a close check.

Pushes that arrive while an answer is awaited are kept for `next_close_check`.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

from broker.client.blocking.stream import Deadline, Stream
from broker.client.errors import ConnectionLost, LeaseRefused, TimedOut
from broker.client.keeping import ANSWER_SECONDS, HolderIdentity, new_request_id, read_message
from protocols.lease.client import LeaseClient
from protocols.lease.codes import Code
from protocols.lease.messages import CanCloseRequest, Ready, Response, ServerMessage, SessionError


class LeaseConnection:
    """A session that is ready.  Every call raises LeaseRefused, or NotConnected when the connection is gone."""

    def __init__(self, stream: Stream, client: LeaseClient) -> None:
        self._stream = stream
        self._client = client
        self._pushed: deque[CanCloseRequest] = deque()

    @classmethod
    def open(cls, path: Path, holder: HolderIdentity, timeout: float = ANSWER_SECONDS) -> LeaseConnection:
        """Connect and shake hands; raises LeaseRefused for a session.error."""
        deadline = Deadline.after(timeout)
        connection = cls(Stream.connect(path, deadline), LeaseClient(holder.id))
        try:
            connection.shake_hands(holder, deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    def shake_hands(self, holder: HolderIdentity, deadline: Deadline) -> None:
        """Say hello and wait for ready, as `open` does; raises LeaseRefused for a session.error."""
        self._send(self._client.hello(holder.client_name, holder.pid), deadline)
        while self._client.ready is None:
            self._receive(deadline)

    @property
    def ready(self) -> Ready:
        """The handshake's answer, with the published limits."""
        assert self._client.ready is not None
        return self._client.ready

    def begin(self, app_key: str, lease_seconds: int) -> Response:
        """Take a lease."""
        request_id = new_request_id()
        return self._ask(request_id, self._client.begin(request_id, app_key, lease_seconds))

    def renew(self, app_key: str, lease_seconds: int) -> Response:
        """Let the own lease end so many seconds from now."""
        request_id = new_request_id()
        return self._ask(request_id, self._client.renew(request_id, app_key, lease_seconds))

    def end(self, app_key: str) -> Response:
        """Give the lease back."""
        request_id = new_request_id()
        return self._ask(request_id, self._client.end(request_id, app_key))

    def extend(self, check: CanCloseRequest, lease_seconds: int) -> Response:
        """Answer a close check: keep the app open."""
        return self._ask(check.request_id, self._client.extend(check, lease_seconds))

    def allow(self, check: CanCloseRequest) -> Response:
        """Answer a close check: the app may be closed."""
        return self._ask(check.request_id, self._client.allow(check))

    def next_close_check(self, timeout: float | None) -> CanCloseRequest | None:
        """The next close check; None when none came within `timeout` seconds."""
        deadline = Deadline.after(timeout)
        while not self._pushed:
            try:
                self._receive(deadline)
            except TimedOut:
                return None
        return self._pushed.popleft()

    def close(self) -> None:
        """End the connection; the leases stay until their time is over."""
        self._stream.close()

    def __enter__(self) -> LeaseConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- frames -----------------------------------------------------------------------------------------------

    def _ask(self, request_id: str, frame: bytes) -> Response:
        deadline = Deadline.after(ANSWER_SECONDS)
        self._send(frame, deadline)
        while True:
            message = self._receive(deadline)
            if isinstance(message, Response) and message.request_id == request_id:
                break
        if message.code is not Code.ACCEPTED:
            raise LeaseRefused(message.code.value, message.message or message.code.value)
        return message

    def _send(self, frame: bytes, deadline: Deadline) -> None:
        self._stream.send(frame, deadline)

    def _receive(self, deadline: Deadline) -> ServerMessage:
        """The next message; close checks are kept as well."""
        while (message := read_message(self._client)) is None:
            data = self._stream.receive(deadline)
            if not data:
                raise ConnectionLost("the broker closed the connection")
            self._client.receive(data)
        if isinstance(message, CanCloseRequest):
            self._pushed.append(message)
        if isinstance(message, SessionError):
            raise LeaseRefused(message.code.value, message.message)
        return message
