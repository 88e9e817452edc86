"""The rows of the companion protocol: paired clients, requests, parked waits, and what the user has set.

Bodies that only travel through (parameters, results) are kept as canonical JSON text: the broker decides
nothing by them, and texts cost the garbage collector nothing.
"""

from __future__ import annotations

import attrs

from handlers.companion.retention_rows import place_in_age
from handlers.rule import Deadline, Draft, Keep, Table
from protocols.companion.capabilities import Capability
from protocols.companion.states import State, is_terminal


@attrs.frozen
class Mute:
    """The person does not want to hear of a client until `until`, elapsed milliseconds of the boot `boot_id`.

    `until_at` is the same in wall milliseconds, to be told; `ms` is how long it was meant to be.
    """

    until: int
    until_at: int
    ms: int
    boot_id: str


@attrs.frozen
class Client:
    """A paired client.  `key_sha256` is all that is kept of its key (CP-5.2); times are wall milliseconds.

    `next_key_sha256` is that of a key which it has asked for and not used yet: until then both hold.
    """

    id: str
    label: str
    scopes: tuple[str, ...]
    key_sha256: str = attrs.field(repr=False)
    created_at: int
    revoked: bool = False
    next_key_sha256: str | None = attrs.field(default=None, repr=False)
    mute: Mute | None = None
    revision: int = 0


CLIENTS: Table[Client] = Table(
    name="clients",
    row=Client,
    keep=Keep.STORED,
    key=lambda row: row.id,
    deadline=lambda row: None if row.mute is None else Deadline(row.mute.until),
)


REDUCED_MOTION = "reduced_motion"
"""The reason of a substitution that no caller has to allow."""


@attrs.frozen
class Request:
    """One request and its outcome.  `*_at` are wall milliseconds, `deadline` is elapsed milliseconds, `ended_age` is
    what the age clock showed at its end.

    `params` is canonical JSON of what the resolved capability takes, with the defaults filled in; `fingerprint` is
    the digest of the normalized parameters of create (companion.md, Requests); `result` is canonical JSON or None.
    `program` and `pid` are the kernel's word on who asked; None where it cannot tell.
    """

    id: str
    client_id: str
    capability: str
    params: str = attrs.field(repr=False)
    fingerprint: str
    timeout_ms: int
    state: State
    created_at: int
    deadline_at: int
    deadline: int
    resolved_capability: str
    resolved_character: str
    resolved_style: str
    runtime_instance_id: str
    idempotency_key: str | None = None
    task_id: str | None = None
    program: str | None = None
    pid: int | None = None
    displayed_at: int | None = None
    ended_at: int | None = None
    ended_age: int | None = None
    substitution: str | None = None
    reason: str | None = None
    result: str | None = attrs.field(default=None, repr=False)
    order: int = 0
    """Place in the queue: requests are shown in this order."""
    revision: int = 0

    @property
    def ended(self) -> bool:
        """Whether the state is terminal; it never changes again (CP-3.4)."""
        return is_terminal(self.state)

    @property
    def still(self) -> bool:
        """Whether it is drawn without motion, because the person wants less of it."""
        return self.substitution is not None and REDUCED_MOTION in self.substitution.split(",")


def capability_of(draft: Draft, request: Request) -> Capability:
    """The capability that the request was resolved to, and that is really drawn (CP-2.16)."""
    return draft.environment.catalog.capabilities[request.resolved_capability]


def idempotency_index(client_id: str, key: str) -> str:
    """Keys are scoped to the authenticated client (CP-4.1)."""
    return f"{client_id} {key}"


def _idempotency(row: Request) -> str | None:
    return None if row.idempotency_key is None else idempotency_index(row.client_id, row.idempotency_key)


def _age(row: Request) -> str | None:
    return None if row.ended_age is None else place_in_age(row.ended_age, row.id)


def _request_deadline(row: Request) -> Deadline | None:
    return None if row.ended else Deadline(row.deadline)


REQUESTS: Table[Request] = Table(
    name="requests",
    row=Request,
    keep=Keep.STORED,
    key=lambda row: row.id,
    indexes={
        "client": lambda row: row.client_id,
        "state": lambda row: row.state.value,
        "idempotency": _idempotency,
        "age": _age,
    },
    lookups=("client", "idempotency", "age"),
    deadline=_request_deadline,
    settled=lambda row: row.ended,
)


@attrs.frozen
class Display:
    """The display time of a notice, from the moment it was seen (CP-3.8).  No restart has to remember it.

    It is over at `until` (elapsed milliseconds); None while it stands still, with `left` milliseconds to go: because
    the person holds it or, `on_screen` false, because it is not on the screen.
    """

    request_id: str
    until: int | None
    left: int = 0
    on_screen: bool = True
    revision: int = 0


DISPLAYS: Table[Display] = Table(
    name="displays",
    row=Display,
    keep=Keep.MEMORY,
    key=lambda row: row.request_id,
    deadline=lambda row: None if row.until is None else Deadline(row.until),
)


@attrs.frozen
class Turn:
    """Which client was given a display place last: the next one goes to the client after it (CP-4.7)."""

    client_id: str
    revision: int = 0


TURN_KEY = "turn"
TURN: Table[Turn] = Table(name="turn", row=Turn, keep=Keep.MEMORY, key=lambda row: TURN_KEY)


@attrs.frozen
class Wait:
    """A parked requests.wait: answered by the next change of the request or at `until` (elapsed
    milliseconds)."""

    connection: int
    number: int
    request_id: str
    after_revision: int
    until: int
    revision: int = 0


WAITS: Table[Wait] = Table(
    name="waits",
    row=Wait,
    keep=Keep.MEMORY,
    key=lambda row: f"{row.connection} {row.number}",
    indexes={"request": lambda row: row.request_id, "connection": lambda row: str(row.connection)},
    deadline=lambda row: Deadline(row.until),
)


@attrs.frozen
class Settings:
    """What the user has said, and a restart must not forget.

    `access` None: what the configuration says.  `character` None: the catalog's first.
    """

    access: bool | None = None
    hidden: bool = False
    paused: bool = False
    character: str | None = None
    reduced_motion: bool = False
    sound: bool = False
    language: str = "en"
    revision: int = 0


SETTINGS_KEY = "settings"
SETTINGS: Table[Settings] = Table(
    name="settings",
    row=Settings,
    keep=Keep.STORED,
    key=lambda row: SETTINGS_KEY,
)


@attrs.frozen
class Failures:
    """Failed authentications of one peer: of its process, whose next reply each makes later, and of its
    connection, which the third closes (companion.md, Session)."""

    peer: str
    count: int
    until: int
    """Forgotten at this elapsed millisecond."""
    revision: int = 0


FAILURES: Table[Failures] = Table(
    name="failures",
    row=Failures,
    keep=Keep.FACT,
    key=lambda row: row.peer,
    deadline=lambda row: Deadline(row.until),
)
