"""Who may hold an app open at all (lease.md, not_entitled), and which apps there are to hold
(unknown_app).
"""

from __future__ import annotations

from handlers.lease.apps import base_key
from handlers.lease.refusals import LeaseRefused
from handlers.lease.rows import BLOCKS, LEASES, Block
from handlers.rule import Draft
from protocols.lease.codes import Code


def block(draft: Draft, holder_id: str) -> None:
    """The user wants no more of this holder: it gets no lease from now on; what it holds runs out."""
    draft.put(BLOCKS, Block(holder_id))


def unblock(draft: Draft, holder_id: str) -> None:
    """The user lets the holder hold apps open again."""
    draft.drop(BLOCKS, holder_id)


def require_entitled(draft: Draft, holder_id: str) -> None:
    """Raise LeaseRefused where this holder gets no lease at all."""
    if not draft.environment.policy.lease.enabled:
        raise LeaseRefused(Code.NOT_ENTITLED, "AI protection is off")
    if draft.get(BLOCKS, holder_id) is not None:
        raise LeaseRefused(Code.NOT_ENTITLED, "the user has blocked this holder")


def require_room(draft: Draft, holder_id: str) -> None:
    """Raise LeaseRefused where one more lease of this holder would cross the published limit."""
    if len(draft.find(LEASES, "holder", holder_id)) >= draft.environment.policy.lease.max_leases_per_holder:
        raise LeaseRefused(Code.NOT_ENTITLED, "the published limit maxLeasesPerHolder is used up")


def require_app(draft: Draft, app_key: str) -> str:
    """The base key of a known app; raises LeaseRefused for any other key."""
    base = base_key(draft.environment.policy.apps, app_key)
    if base is None:
        raise LeaseRefused(Code.UNKNOWN_APP, "no app has this key")
    return base
