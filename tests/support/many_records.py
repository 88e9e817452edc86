"""A store with many ended requests of a few clients, written past the broker: for tests and benchmarks of wiping."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

from broker.daemon.ledger import Write
from broker.daemon.store import Store
from handlers.companion.age import AGE_KEY, AGES, AgeClock
from handlers.companion.rows import CLIENTS, REQUESTS, Client, Request
from protocols.canonical_json import canonical
from protocols.companion.states import State

WALL_MS = 1_800_000_000_000
_BATCH = 500


def key_of(client_id: str) -> str:
    """The key of a client of such a store."""
    return f"the key of {client_id}"


def mark_of(client_id: str) -> str:
    """What is in every text that such a client has sent, and in every answer that it got."""
    return f"mark-of-{client_id}"


def fill(path: Path, clients: Sequence[str], records: int, seed: int = 1) -> None:
    """Make a store in which each client has so many records, of all sizes, one client's between the others'."""
    random = Random(seed)
    with closing(Store(path)) as store:
        store.commit([Write(AGES, AGE_KEY, None, AgeClock(0, 0, "no boot of this machine", revision=1))])
        store.commit([Write(CLIENTS, client_id, None, _client(client_id)) for client_id in clients])
        owners = [client_id for client_id in clients for _ in range(records)]
        random.shuffle(owners)
        for start in range(0, len(owners), _BATCH):
            rows = [
                _request(random, n, owner) for n, owner in enumerate(owners[start : start + _BATCH], start)
            ]
            store.commit([Write(REQUESTS, row.id, None, row) for row in rows])


def _client(client_id: str) -> Client:
    digest = hashlib.sha256(key_of(client_id).encode()).hexdigest()
    label = f"label {mark_of(client_id)}"
    return Client(client_id, label, ("notify", "interact"), digest, WALL_MS, revision=1)


def _request(random: Random, number: int, owner: str) -> Request:
    text = f"{mark_of(owner)} {number} " + "x" * random.choice((10, 100, 400, 400, 1_500, 6_000))
    return Request(
        id=random.randbytes(16).hex(),
        client_id=owner,
        capability="interaction.ask_text",
        params=canonical({"title": text, "multiline": False, "maxLength": 1000}).decode(),
        fingerprint=random.randbytes(32).hex(),
        timeout_ms=60_000,
        state=State.COMPLETED,
        created_at=WALL_MS,
        deadline_at=WALL_MS + 60_000,
        deadline=60_000,
        resolved_capability="interaction.ask_text",
        resolved_character="aion",
        resolved_style="default",
        runtime_instance_id="run",
        idempotency_key=f"{mark_of(owner)} {number}",
        displayed_at=WALL_MS,
        ended_at=WALL_MS + 1_000,
        ended_age=number,
        reason="answered",
        result=canonical({"text": f"answer {mark_of(owner)} {number}"}).decode(),
        revision=3,
    )
