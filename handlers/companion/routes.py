"""The companion protocol's tables and handlers, as one entry for the broker's whole."""

from __future__ import annotations

from handlers.companion import (
    age,
    describe,
    discovery,
    expiry,
    losses,
    mutes,
    pairing,
    places,
    records,
    requests,
    restart,
    retention,
    scheduler,
    session,
    waits,
    wiping,
)
from handlers.companion.age import AGES
from handlers.companion.create import create
from handlers.companion.losses import LOSSES
from handlers.companion.places import PLACES
from handlers.companion.retention_rows import RECORD_COUNTS, SWEEPS, TOMBSTONES
from handlers.companion.rows import (
    CLIENTS,
    DISPLAYS,
    FAILURES,
    REQUESTS,
    SETTINGS,
    TURN,
    WAITS,
)
from handlers.companion.update import update
from handlers.companion.wiping import WIPES, WipeOn
from handlers.events import Abandoned, Closed, Scrubbed, Started
from handlers.routes import Routes, merge
from protocols.companion.discovery import DescribeCapability, ListCapabilities, ListCharacters, ListStyles
from protocols.companion.messages import (
    Authenticate,
    CancelRequest,
    CreateRequest,
    DescribeRuntime,
    GetRequest,
    Hello,
    RotateKey,
    UpdateRequest,
    WaitRequest,
)

_REQUESTS = Routes(
    tables=(
        CLIENTS,
        REQUESTS,
        DISPLAYS,
        PLACES,
        TURN,
        WAITS,
        SETTINGS,
        FAILURES,
        LOSSES,
        AGES,
        TOMBSTONES,
        SWEEPS,
        RECORD_COUNTS,
        WIPES,
    ),
    calls={
        Hello: session.hello,
        Authenticate: session.authenticate,
        RotateKey: session.rotate_key,
        DescribeRuntime: describe.describe_runtime,
        ListCharacters: discovery.list_characters,
        ListCapabilities: discovery.list_capabilities,
        DescribeCapability: discovery.describe_capability,
        ListStyles: discovery.list_styles,
        CreateRequest: create,
        GetRequest: requests.get,
        WaitRequest: requests.wait,
        UpdateRequest: update,
        CancelRequest: requests.cancel,
    },
    due={
        CLIENTS.name: mutes.over,
        REQUESTS.name: expiry.deadline,
        DISPLAYS.name: expiry.display_over,
        PLACES.name: places.turn_over,
        WAITS.name: expiry.wait_over,
        FAILURES.name: session.forget,
        AGES.name: age.save,
        SWEEPS.name: retention.sweep,
    },
    facts={
        Started: (
            age.started,
            restart.started,
            mutes.started,
            losses.started,
            retention.started,
            wiping.started,
        ),
        WipeOn: (wiping.go_on,),
        Scrubbed: (wiping.scrubbed,),
        Closed: (waits.closed, session.closed),
        Abandoned: (waits.abandoned,),
    },
    settle=(scheduler.settle, records.settle, retention.settle),
)

ROUTES = merge((_REQUESTS, pairing.ROUTES))
