"""The states of a request, as a table (CP-3.4): an event that is not in it changes nothing and raises.

`hand_over` gives the request to the presenter, `show` is its report that the prompt of an interaction is on
the screen, `complete`, `cancel`, `expire` and `fail` end it.  Terminal states have no row to leave by.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """The word on the wire."""

    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_USER = "awaiting_user"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    FAILED = "failed"


class Step(Enum):
    """What moves a request on."""

    HAND_OVER = "hand_over"
    SHOW = "show"
    COMPLETE = "complete"
    CANCEL = "cancel"
    EXPIRE = "expire"
    FAIL = "fail"


class IllegalStep(Exception):
    """Ours: a step that the state does not allow, or a reason that it does not give."""


REASONS: Mapping[State, frozenset[str]] = {
    State.COMPLETED: frozenset({"answered", "presented", "finished"}),
    State.CANCELLED: frozenset(
        {
            "cancelled_by_client",
            "dismissed_by_user",
            "hidden_by_user",
            "paused_by_user",
            "muted_by_user",
            "queue_evicted",
            "key_revoked",
            "scope_revoked",
            "access_disabled",
        }
    ),
    State.EXPIRED: frozenset({"deadline"}),
    State.FAILED: frozenset({"runtime_restarted", "presenter_lost", "render_failed"}),
}
"""Why a request ended: the words that each terminal state may give (companion.md, Requests)."""

_ENDS = {Step.CANCEL: State.CANCELLED, Step.EXPIRE: State.EXPIRED, Step.FAIL: State.FAILED}

TRANSITIONS: Mapping[State, Mapping[Step, State]] = {
    State.QUEUED: {Step.HAND_OVER: State.RUNNING, **_ENDS},
    State.RUNNING: {Step.SHOW: State.AWAITING_USER, Step.COMPLETE: State.COMPLETED, **_ENDS},
    State.AWAITING_USER: {Step.COMPLETE: State.COMPLETED, **_ENDS},
    State.COMPLETED: {},
    State.CANCELLED: {},
    State.EXPIRED: {},
    State.FAILED: {},
}


def step(state: State, event: Step) -> State:
    """The state after the event; IllegalStep where the table has none."""
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise IllegalStep(f"{event.value} in {state.value}") from None


def is_terminal(state: State) -> bool:
    """Whether nothing leads out of the state."""
    return not TRANSITIONS[state]
