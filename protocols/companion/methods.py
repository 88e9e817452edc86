"""The registry of the companion protocol's methods, which engines, clients and descriptions are made from
(CP-2.1, CP-2.2)."""

from __future__ import annotations

from protocols.companion.discovery import DISCOVERY_METHODS
from protocols.companion.messages import (
    Authenticate,
    AuthenticateResult,
    CancelRequest,
    CreateRequest,
    DescribeRuntime,
    GetRequest,
    Hello,
    HelloResult,
    RotatedKey,
    RotateKey,
    RuntimeDescription,
    Snapshot,
    UpdateRequest,
    WaitRequest,
    WaitResult,
)
from protocols.companion.pairing import PAIRING_METHODS
from protocols.jsonrpc_session import Method, method_table
from protocols.session import Charge

METHODS = method_table(
    Method("session.hello", Hello, HelloResult, serial=True, batched=False),
    Method("session.authenticate", Authenticate, AuthenticateResult, serial=True, batched=False),
    Method("session.rotate_key", RotateKey, RotatedKey, batched=False),
    Method("runtime.describe", DescribeRuntime, RuntimeDescription),
    *DISCOVERY_METHODS,
    Method("requests.create", CreateRequest, Snapshot),
    Method("requests.get", GetRequest, Snapshot),
    Method("requests.wait", WaitRequest, WaitResult, charge=Charge.WAIT, batched=False),
    Method("requests.update", UpdateRequest, Snapshot),
    Method("requests.cancel", CancelRequest, Snapshot, charge=Charge.FREE),
    *PAIRING_METHODS,
)
"""Every method by its name on the wire."""
