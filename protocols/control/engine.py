"""The serving side of the control socket: no hello and no key, authenticated at accept by the kernel's uid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from protocols import jsonrpc
from protocols.control import clients, data, messages, monitor
from protocols.control.leases import (
    LeaseList,
    ListLeases,
    MayClose,
    MayCloseResult,
    QuitAbandoned,
    QuitDone,
    QuitEnded,
)
from protocols.json_values import JSON
from protocols.jsonrpc_session import JsonRpcEngine, Method, method_table
from protocols.session import Charge
from protocols.structure import unstructure

METHODS = method_table(
    Method("status", messages.Status, messages.StatusResult),
    Method("hide", messages.Hide, messages.Done),
    Method("pause", messages.Pause, messages.Done),
    Method("stop", messages.Stop, messages.Done),
    Method("clients.list", clients.ListClients, clients.ClientList),
    Method("clients.revoke", clients.RevokeClient, messages.Done),
    Method("clients.narrow", clients.NarrowClient, clients.NarrowedClient),
    Method("data.clear", data.ClearData, data.ClearResult, charge=Charge.WAIT, batched=False),
    Method("monitor", monitor.Monitor, messages.Done, batched=False),
    Method("leases.list", ListLeases, LeaseList),
    Method("leases.may_close", MayClose, MayCloseResult),
    Method("leases.quit_done", QuitDone, QuitEnded),
    Method("leases.quit_abandoned", QuitAbandoned, QuitEnded),
)

PUSHES: Mapping[type[object], str] = {monitor.Event: "event"}
"""Notifications of the broker by the class of their params."""


class ControlEngine(JsonRpcEngine):
    """One connection of the owner's own tools."""

    methods: ClassVar = METHODS

    def __init__(self, limit: int, max_batch: int = jsonrpc.MAX_BATCH) -> None:
        super().__init__(limit, max_batch)
        self.authenticated = True

    def push(self, body: object) -> None:
        params: JSON = unstructure(body)
        assert isinstance(params, dict)
        self.send(jsonrpc.notification(PUSHES[type(body)], params))
