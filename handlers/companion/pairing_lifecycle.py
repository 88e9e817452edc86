"""The life of a pairing: every change of its status is made here (companion.md, Pairing).

    pending --approve--> approved --hand_over--> the key, exactly once --sent--> a client
            --end------> denied, expired, cancelled
                         (approved, too, while the key is still here: the client's record is deleted again)

The key is made in the very decision that hands it over, and only its SHA-256 is stored there (CP-5.2).  Until
then the client's record holds no verification material, so nobody can authenticate with it; one that a crash
left in that state is deleted at the next start.  A key whose bytes never left the broker is no key: whatever ends
the pairing before deletes the record as well.
"""

from __future__ import annotations

import attrs

from handlers.companion.keys import NO_KEY_YET, new_key
from handlers.companion.pairing_rows import PAIRING_PARKS, PAIRINGS, Pairing, PairingPark
from handlers.companion.rows import CLIENTS, SETTINGS, Client
from handlers.companion.settings import access_enabled, settings
from handlers.events import CallRef, Closed, Push, Reply, Sent, Started, TellWhenSent
from handlers.presenter import showing
from handlers.rule import Draft, Due, Now, new_id
from protocols.companion.pairing import PairingEnded, PairingOutcome, Scope, Status


def current(draft: Draft, pairing_id: str, now: Now) -> Pairing | None:
    """The pairing as it is at this instant: past its deadline it is expired before anybody sees it."""
    pairing = draft.get(PAIRINGS, pairing_id)
    if pairing is None or not pairing.open or now.elapsed < pairing.deadline:
        return pairing
    return end(draft, pairing, "expired")


def approve(draft: Draft, pairing: Pairing, scopes: tuple[Scope, ...], seed: bytes, now: Now) -> Pairing:
    """The person allows these scopes; whoever waits for it is given the key, or the next one who asks."""
    client = Client(new_id(seed, "client"), pairing.client_name, scopes, NO_KEY_YET, now.wall)
    draft.put(CLIENTS, client)
    approved = attrs.evolve(pairing, status="approved", client_id=client.id, granted=scopes)
    return _decided(draft, approved, seed)


def end(draft: Draft, pairing: Pairing, status: Status) -> Pairing:
    """It comes to nothing: taken off the screen, and whoever waits is told."""
    _forget_client(draft, pairing)
    return _decided(draft, attrs.evolve(pairing, status=status, client_id=None, granted=()), b"")


def outcome(draft: Draft, pairing: Pairing, seed: bytes) -> PairingOutcome:
    """What the asker is told now; the first to be told of an approval is given the key."""
    if pairing.status != "approved":
        return PairingOutcome(status=pairing.status)
    if pairing.key_given:
        return PairingOutcome(status="approved", client_id=pairing.client_id, scopes=pairing.granted)
    client = draft.get(CLIENTS, pairing.client_id or "")
    if client is None or client.revoked:  # taken back before it was fetched
        return PairingOutcome(status=end(draft, pairing, "denied").status)
    key = _hand_over(draft, pairing, client, seed)
    return PairingOutcome(status="approved", client_id=client.id, key=key, scopes=pairing.granted)


def _hand_over(draft: Draft, pairing: Pairing, client: Client, seed: bytes) -> str:
    """A fresh key of 256 bits (CP-5.1), of which only the digest stays here."""
    made = new_key(seed)
    draft.put(CLIENTS, attrs.evolve(client, key_sha256=made.sha256))
    draft.put(PAIRINGS, attrs.evolve(pairing, key_given=True))
    return made.key


def tell(draft: Draft, ref: CallRef, body: object) -> None:
    """Answer a call of the asker; of a key it has to be known whether its bytes left the broker."""
    draft.effect(Reply(ref, body))
    if isinstance(body, PairingOutcome) and body.key is not None:
        draft.effect(TellWhenSent(ref.connection))


def _forget_client(draft: Draft, pairing: Pairing) -> None:
    if pairing.client_id is not None and not pairing.key_sent:
        draft.drop(CLIENTS, pairing.client_id)


def _decided(draft: Draft, pairing: Pairing, seed: bytes) -> Pairing:
    decided = draft.put(PAIRINGS, pairing)
    showing.withdraw(draft, pairing.id, pairing.status)
    for park in sorted(draft.find(PAIRING_PARKS, "pairing", pairing.id), key=lambda row: row.number):
        draft.drop(PAIRING_PARKS, PAIRING_PARKS.key(park))
        latest = draft.get(PAIRINGS, pairing.id) or decided
        tell(draft, CallRef(park.connection, park.number), outcome(draft, latest, seed))
    draft.effect(Push(pairing.connection, PairingEnded()))
    return draft.get(PAIRINGS, pairing.id) or decided


# -- what time, the world and the user do to it ------------------------------------------------------------


def deadline(draft: Draft, event: Due, now: Now) -> None:
    """Nobody decided, or nobody fetched the key, in time."""
    current(draft, event.key, now)


def wait_over(draft: Draft, event: Due, now: Now) -> None:
    """A pairing.wait ends without news."""
    park = draft.get(PAIRING_PARKS, event.key)
    if park is not None:
        draft.drop(PAIRING_PARKS, event.key)
        draft.effect(Reply(CallRef(park.connection, park.number), PairingOutcome(status="pending")))


def closed(draft: Draft, event: Closed, now: Now) -> None:
    """The asker has gone: the question leaves the screen, and a key that it never got is no key."""
    for pairing in draft.find(PAIRINGS, "connection", str(event.connection)):
        forget(draft, pairing)


def sent(draft: Draft, event: Sent, now: Now) -> None:
    """The bytes of a key have left the broker: the pairing is done."""
    for pairing in draft.find(PAIRINGS, "connection", str(event.connection)):
        if pairing.key_given and not pairing.key_sent:
            draft.put(PAIRINGS, attrs.evolve(pairing, key_sent=True))


def forget(draft: Draft, pairing: Pairing) -> None:
    """Let go of a pairing and of everything that hangs on it."""
    for park in draft.find(PAIRING_PARKS, "pairing", pairing.id):
        draft.drop(PAIRING_PARKS, PAIRING_PARKS.key(park))
    _forget_client(draft, pairing)
    showing.withdraw(draft, pairing.id, "cancelled")
    draft.drop(PAIRINGS, pairing.id)


def started(draft: Draft, event: Started, now: Now) -> None:
    """Clients that were approved but never got their key cannot get it any more."""
    for client in draft.all(CLIENTS):
        if client.key_sha256 == NO_KEY_YET:
            draft.drop(CLIENTS, client.id)


def deny_when_tightened(draft: Draft, now: Now) -> None:
    """The user has turned access off, or does not want to be asked: pending pairings are denied."""
    if not draft.has_changed(SETTINGS):
        return
    said = settings(draft)
    if access_enabled(draft) and not said.hidden and not said.paused:
        return
    for pairing in draft.all(PAIRINGS):
        if pairing.status == "pending":
            end(draft, pairing, "denied")


def park(draft: Draft, pairing: Pairing, ref: CallRef, until: int) -> None:
    """Answer this pairing.wait when the pairing has ended, or at `until` (elapsed milliseconds)."""
    draft.put(PAIRING_PARKS, PairingPark(ref.connection, ref.number, pairing.id, until))
