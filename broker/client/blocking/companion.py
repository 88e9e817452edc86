"""A companion session over one connection, blocking (companion.md, Session)."""

from __future__ import annotations

from pathlib import Path

from broker.client.blocking.rpc import RpcConnection
from broker.client.blocking.stream import Deadline, Stream
from broker.client.replies import REPLY_SECONDS, call_failed
from protocols.companion.client import CompanionClient, Credential, Ready, TurnedAway
from protocols.companion.messages import AuthenticateResult, Implementation


class CompanionConnection(RpcConnection):
    """A session that is open: authenticated, or for pairing only."""

    def __init__(self, stream: Stream, engine: CompanionClient) -> None:
        super().__init__(stream, engine)
        self._session = engine
        self.ready: Ready

    @classmethod
    def open(
        cls,
        path: Path,
        program: Implementation,
        credential: Credential | None = None,
        timeout: float = REPLY_SECONDS,
    ) -> CompanionConnection:
        """Connect, say hello and, with a credential, authenticate.  Raises CallFailed when the broker refuses."""
        deadline = Deadline.after(timeout)
        connection = cls(Stream.connect(path, deadline), CompanionClient(program, credential))
        try:
            connection.shake_hands(deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    def authenticate(self, credential: Credential, timeout: float = REPLY_SECONDS) -> AuthenticateResult:
        """Go on as a paired client; raises CallFailed when the broker refuses."""
        self._session.authenticate(credential)
        self.shake_hands(Deadline.after(timeout))
        assert self.ready.identity is not None
        return self.ready.identity

    def shake_hands(self, deadline: Deadline) -> None:
        """Wait until the session is open, as `open` and `authenticate` do; raises CallFailed when it is refused."""
        while not isinstance(event := self.next_event(deadline), Ready):
            if isinstance(event, TurnedAway):
                raise call_failed(event.error)
        self.ready = event

    def __enter__(self) -> CompanionConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
