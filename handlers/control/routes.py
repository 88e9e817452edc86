"""The control protocol's tables and handlers, those about leases apart (`handlers/lease/routes.py`)."""

from __future__ import annotations

from handlers.control import broker, clearing, clients, monitor
from handlers.events import Closed
from handlers.routes import Routes
from protocols.control import clients as client_messages
from protocols.control import messages
from protocols.control.data import ClearData
from protocols.control.monitor import Monitor

ROUTES = Routes(
    tables=(clearing.CLEARINGS, monitor.LISTENERS),
    calls={
        messages.Status: broker.status,
        messages.Hide: broker.hide,
        messages.Pause: broker.pause,
        messages.Stop: broker.stop,
        client_messages.ListClients: clients.list_clients,
        client_messages.RevokeClient: clients.revoke,
        client_messages.NarrowClient: clients.narrow,
        ClearData: clearing.clear,
        Monitor: monitor.monitor,
    },
    facts={Closed: (clearing.closed, monitor.closed)},
    settle=(clearing.settle, monitor.tell),
)
