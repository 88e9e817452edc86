"""The calling side of the control protocol: calls, and what a monitor is told unasked."""

from __future__ import annotations

from collections import deque

import attrs

from protocols import jsonrpc
from protocols.control.engine import METHODS, PUSHES
from protocols.json_values import JSON
from protocols.jsonrpc_client import JsonRpcClient
from protocols.strict_json import Document
from protocols.structure import structure

_KINDS = {method: kind for kind, method in PUSHES.items()}


@attrs.frozen
class Pushed:
    """A notification of the broker: typed, and as it stood on the wire."""

    body: object = attrs.field(repr=False)
    raw: JSON = attrs.field(repr=False)


class ControlClient(JsonRpcClient):
    """Sans-I/O client of one control connection; `pushed` holds what came unasked, oldest first."""

    def __init__(self) -> None:
        super().__init__(METHODS)
        self.pushed: deque[Pushed] = deque()

    def on_other(self, document: Document) -> None:
        """Keep a notification of a kind that is known; a newer broker may have more.  Raises TheirError."""
        call = jsonrpc.parse(document)
        if (
            isinstance(call, jsonrpc.Call)
            and not call.has_id
            and (kind := _KINDS.get(call.method)) is not None
        ):
            self.pushed.append(Pushed(structure(kind, call.params, unknown="ignore"), call.params))
