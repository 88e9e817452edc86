"""The serving side of the control socket: no hello and no key, authenticated at accept by the kernel's uid."""

from __future__ import annotations

from typing import ClassVar

from protocols.control import messages
from protocols.control.leases import (
    LeaseList,
    ListLeases,
    MayClose,
    MayCloseResult,
    QuitAbandoned,
    QuitDone,
    QuitEnded,
)
from protocols.jsonrpc_session import JsonRpcEngine, Method, method_table

METHODS = method_table(
    Method("status", messages.Status, messages.StatusResult),
    Method("hide", messages.Hide, messages.Done),
    Method("pause", messages.Pause, messages.Done),
    Method("stop", messages.Stop, messages.Done),
    Method("leases.list", ListLeases, LeaseList),
    Method("leases.may_close", MayClose, MayCloseResult),
    Method("leases.quit_done", QuitDone, QuitEnded),
    Method("leases.quit_abandoned", QuitAbandoned, QuitEnded),
)


class ControlEngine(JsonRpcEngine):
    """One connection of the owner's own tools."""

    methods: ClassVar = METHODS

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.authenticated = True
