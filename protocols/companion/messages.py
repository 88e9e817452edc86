"""The messages of the companion protocol, as companion.md writes them: one class of params and one of result
a method (pairing has its own file).

Classes that carry a key or a user's content have no attrs repr, so that nothing of it can reach a log by
being formatted.
"""

from __future__ import annotations

import attrs

from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.members import array, integer, text

PROTOCOL_VERSION = "0.1"
MAX_ID_LENGTH = 128
"""Ids and keys have 1..128 code points (companion.md, Discovery)."""
MAX_INTEGER = 2**63 - 1


# -- session -----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Implementation:
    """A program and its version, as it names itself."""

    name: str = text(1, 128)
    version: str = text(1, 64)


@attrs.frozen(kw_only=True)
class Hello:
    """session.hello: the first message of a session."""

    protocol_versions: tuple[str, ...] = array(1, 16, each=(1, 32))
    client: Implementation


@attrs.frozen(kw_only=True)
class HelloResult:
    """The version that was chosen, and whether external access is on at all."""

    protocol_version: str
    runtime_instance_id: str
    implementation: Implementation
    access_enabled: bool


@attrs.frozen(kw_only=True, repr=False)
class Authenticate:
    """session.authenticate: a paired client's id and its key."""

    client_id: str = text(1, MAX_ID_LENGTH)
    key: str = text(1, MAX_ID_LENGTH)


@attrs.frozen(kw_only=True)
class AuthenticateResult:
    """Who the session now is, from the pairing record."""

    client_id: str
    label: str
    scopes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RotateKey:
    """session.rotate_key: another key for the client of this session; no parameters."""


@attrs.frozen(kw_only=True, repr=False)
class RotatedKey:
    """The new key, told once.  The old one holds until the new one has authenticated."""

    client_id: str
    key: str


# -- runtime.describe --------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class DescribeRuntime:
    """runtime.describe: no parameters."""


@attrs.frozen(kw_only=True)
class Authorization:
    """What the calling session may do; before authentication nothing."""

    authenticated: bool
    client_id: str | None
    scopes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Access:
    """Whether the user lets external programs in (CP-5.1)."""

    enabled: bool


@attrs.frozen(kw_only=True)
class PresenterState:
    """Which kind of presenter draws, whether a person can answer at it, and whether it draws now.

    `kind`: desktop, terminal, exec or none.  `state`: visible, hidden, paused; away: it is not there, or not yet, and
    is being started; none: there is none.
    """

    kind: str
    person: bool
    state: str


@attrs.frozen(kw_only=True)
class RetentionTimes:
    """How long ended requests can be read, and how long their ids are known after that (CP-4.10)."""

    hours: int
    tombstone_days: int


@attrs.frozen(kw_only=True)
class RuntimeDescription:
    """The answer to runtime.describe (CP-2.3)."""

    implementation: Implementation
    protocol_version: str
    protocol_versions: tuple[str, ...]
    runtime_instance_id: str
    catalog_revision: str
    authorization: Authorization
    access: Access
    presenter: PresenterState
    limits: dict[str, int]
    retention: RetentionTimes


# -- requests ----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True, repr=False)
class CreateRequest:
    """requests.create (CP-3.1).  `params` and the bounds of `timeout_ms` are the capability's to judge."""

    capability: str = text(1, MAX_ID_LENGTH)
    params: JSONObject
    timeout_ms: int
    character: str | None = text(1, MAX_ID_LENGTH, absent=True)
    style: str | None = text(1, MAX_ID_LENGTH, absent=True)
    idempotency_key: str | None = text(1, MAX_ID_LENGTH, absent=True)
    task_id: str | None = text(1, MAX_ID_LENGTH, absent=True)
    allow_substitution: bool = False


@attrs.frozen(kw_only=True)
class GetRequest:
    """requests.get."""

    request_id: str = text(1, MAX_ID_LENGTH)


@attrs.frozen(kw_only=True)
class WaitRequest:
    """requests.wait (CP-3.9).  The bound of `wait_ms` is a published limit."""

    request_id: str = text(1, MAX_ID_LENGTH)
    after_revision: int = integer(0, MAX_INTEGER)
    wait_ms: int = integer(0, MAX_INTEGER)


@attrs.frozen(kw_only=True, repr=False)
class UpdateRequest:
    """requests.update (CP-3.11).  `params` holds what changes, of the fields that the capability declares."""

    request_id: str = text(1, MAX_ID_LENGTH)
    expected_revision: int = integer(1, MAX_INTEGER)
    params: JSONObject


@attrs.frozen(kw_only=True)
class CancelRequest:
    """requests.cancel."""

    request_id: str = text(1, MAX_ID_LENGTH)


@attrs.frozen(kw_only=True)
class Substitution:
    """Why something else was resolved than what was asked for (CP-2.16)."""

    reason: str


@attrs.frozen(kw_only=True, repr=False)
class Snapshot:
    """A request as its owner sees it, the same from every method (CP-3.3).  Times are RFC
    3339."""

    request_id: str
    runtime_instance_id: str
    capability: str
    state: State
    revision: int
    created_at: str
    deadline_at: str
    displayed_at: str | None
    ended_at: str | None
    resolved_capability: str
    resolved_character: str
    resolved_style: str
    substitution: Substitution | None
    reason: str | None
    result: JSONObject | None
    task_id: str | None


@attrs.frozen(kw_only=True, repr=False)
class WaitResult:
    """`changed` false: the wait ended without news, and the request goes on."""

    changed: bool
    request: Snapshot
