"""Receipts: an accepted request id with the same content gets the same answer (lease.md, requestId).

A receipt lives as long as its lease and an hour more.  Only the newest thousand of a lease are kept: a
lease may be renewed for days, and nobody repeats a message from before a thousand others.
"""

from __future__ import annotations

import hashlib

import attrs

from handlers.lease.refusals import LeaseRefused
from handlers.lease.rows import LEASES, RECEIPTS, Lease, Receipt, key_of, receipt_key, receipt_number
from handlers.rule import Draft
from protocols.lease.codes import Code
from protocols.lease.messages import Begin, End, Renew, Response, encode_message

KEPT_PER_LEASE = 1000


def earlier_answer(draft: Draft, message: Begin | Renew | End) -> Response | None:
    """The answer that this very message got before; None for a new request id.

    Raises LeaseRefused for an id that was used for something else.
    """
    receipt = draft.get(RECEIPTS, receipt_key(message.holder_id, message.request_id))
    if receipt is None:
        return None
    if receipt.digest != _digest(message):
        raise LeaseRefused(Code.INVALID_PAYLOAD, "requestId: used before with other content")
    return receipt.response


def accept(draft: Draft, message: Begin | Renew | End, lease: Lease, response: Response) -> Response:
    """Put the changed lease together with the receipt of the message that changed it."""
    number = lease.accepted + 1
    draft.put(LEASES, attrs.evolve(lease, accepted=number))
    key = key_of(lease)
    for old in draft.find(RECEIPTS, "number", receipt_number(key, number - KEPT_PER_LEASE)):
        draft.drop(RECEIPTS, RECEIPTS.key(old))
    draft.put(
        RECEIPTS,
        Receipt(message.holder_id, message.request_id, key, number, _digest(message), response),
    )
    return response


def _digest(message: Begin | Renew | End) -> str:
    """Known members only: whatever else the line held does not make it another message."""
    return hashlib.sha256(encode_message(message)).hexdigest()
