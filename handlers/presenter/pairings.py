"""The person's decision on a pairing (CP-5.6, G10): what was shown is what is granted, never more."""

from __future__ import annotations

from handlers.companion import pairing_lifecycle
from handlers.companion.pairing_rows import Pairing
from handlers.events import Call, Reply
from handlers.presenter.answers import armed, is_stale
from handlers.presenter.reports import shown_by
from handlers.rule import Draft, Now
from protocols.companion.pairing import SCOPES
from protocols.presenter.messages import COMMITTED, Outcome, PairingDecision, rejected, too_late


def decision(draft: Draft, call: Call[PairingDecision], now: Now) -> None:
    """Approve, possibly with fewer scopes, or deny; whatever is rejected leaves the pairing pending."""
    said = call.message
    pairing = pairing_lifecycle.current(draft, said.pairing_id, now)
    refusal = _refusal(draft, call, pairing, now)
    draft.effect(Reply(call.ref, refusal or COMMITTED))
    if refusal is not None or pairing is None:
        return
    if said.approved:
        granted = tuple(scope for scope in SCOPES if scope in said.scopes)
        pairing_lifecycle.approve(draft, pairing, granted, call.seed, now)
    else:
        pairing_lifecycle.end(draft, pairing, "denied")


def _refusal(draft: Draft, call: Call[PairingDecision], pairing: Pairing | None, now: Now) -> Outcome | None:
    """Why the decision does not count, in the order of the protocol; None when it does."""
    said = call.message
    if pairing is None:  # its asker has gone
        return too_late("cancelled", None)
    if pairing.status != "pending":
        return too_late(pairing.status, None)
    showing = shown_by(draft, call.ref, said.pairing_id)
    if showing is None or showing.presented is None:
        return rejected("not_presented")
    if is_stale(showing, None, said.digest):
        return rejected("stale")
    if said.approved and not (said.scopes and set(said.scopes) <= set(pairing.scopes)):
        return rejected("invalid")
    return None if armed(draft, showing, said.input_started_ms, now) else rejected("not_armed")
