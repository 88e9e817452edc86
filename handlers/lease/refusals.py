"""How a decision about a lease message ends early: with a business code, and with nothing changed (LP-6)."""

from __future__ import annotations

from protocols.errors import TheirError
from protocols.lease.codes import Code
from protocols.lease.messages import Response


class LeaseRefused(TheirError):
    """The message is refused.  It is raised before anything is put into the draft; `text` is for people."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    def response(self, request_id: str) -> Response:
        """The answer that tells the holder."""
        return Response(request_id=request_id, code=self.code, message=self.text)
