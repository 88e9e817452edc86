"""The rows of pairing: questions that are on the screen, and the waits that are parked for their answer.

They live in memory only: a restart closes every connection, and a pairing belongs to the one that asked.
"""

from __future__ import annotations

import attrs

from handlers.rule import Deadline, Keep, Table
from protocols.companion.pairing import Scope, Status


@attrs.frozen
class Pairing:
    """One pairing of one connection (companion.md, Pairing).

    `deadline` is elapsed milliseconds, `expires_at` wall milliseconds.  `granted` is what the person allowed.
    There is no key here: it is made in the very decision that hands it over (`key_given` from then on).  `key_sent`
    says that its bytes have left the broker.
    """

    id: str
    connection: int
    client_name: str
    name_in_use: bool
    scopes: tuple[Scope, ...]
    purpose: str | None = attrs.field(repr=False)
    program: str | None
    pid: int | None
    code: str = attrs.field(repr=False)
    deadline: int
    expires_at: int
    status: Status = "pending"
    client_id: str | None = None
    granted: tuple[Scope, ...] = ()
    key_given: bool = False
    key_sent: bool = False
    revision: int = 0

    @property
    def open(self) -> bool:
        """Whether something is still to come of it: a decision, or the key that the asker is to get."""
        return self.status == "pending" or (self.status == "approved" and not self.key_sent)


def _pairing_deadline(row: Pairing) -> Deadline | None:
    return Deadline(row.deadline) if row.open else None


PAIRINGS: Table[Pairing] = Table(
    name="pairings",
    row=Pairing,
    keep=Keep.MEMORY,
    key=lambda row: row.id,
    indexes={"connection": lambda row: str(row.connection)},
    deadline=_pairing_deadline,
)


@attrs.frozen
class PairingPark:
    """A parked pairing.wait: answered by the end of the pairing or at `until` (elapsed milliseconds)."""

    connection: int
    number: int
    pairing_id: str
    until: int
    revision: int = 0


PAIRING_PARKS: Table[PairingPark] = Table(
    name="pairing_parks",
    row=PairingPark,
    keep=Keep.MEMORY,
    key=lambda row: f"{row.connection} {row.number}",
    indexes={"pairing": lambda row: row.pairing_id},
    deadline=lambda row: Deadline(row.until),
)
