"""The life of a request as a command sees it: made, followed, and what its end means (CP-6.5)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from broker.cli.console import compact
from broker.cli.outcome import CommandFailed, failure, failure_of
from broker.client.blocking.paired import PairedClient
from broker.client.blocking.stream import Deadline
from broker.client.calls import with_key
from broker.client.errors import NotConnected
from broker.client.plan import Result
from protocols.companion.messages import CreateRequest, Snapshot
from protocols.companion.states import State, is_terminal
from protocols.json_values import JSONObject


def create_request(client: PairedClient, request: CreateRequest) -> Result[Snapshot]:
    """Make the request, under an idempotency key in any case.

    When the broker's answer is lost, the failure tells the key: whatever became of the call, it can be repeated
    (CP-4.2).
    """
    request = with_key(request)
    try:
        return client.create(request)
    except NotConnected as error:
        details: JSONObject = {"idempotencyKey": request.idempotency_key}
        raise CommandFailed(attrs.evolve(failure_of(error), details=details)) from None


def news(client: PairedClient, request_id: str, revision: int, deadline: Deadline) -> Result[Snapshot]:
    """The request once it has changed, or as it stands when the time is over."""
    found = client.wait(request_id, revision, deadline.remaining)
    raw = found.raw["request"] if isinstance(found.raw, dict) else None
    return Result(found.value.request, raw)


def until_end(client: PairedClient, known: Result[Snapshot], deadline: Deadline) -> Result[Snapshot]:
    """The request once it has ended, or as it stands when the time is over."""
    while not (is_terminal(known.value.state) or deadline.passed):
        known = news(client, known.value.request_id, known.value.revision, deadline)
    return known


def check_end(result: Result[Snapshot]) -> None:
    """Raise CommandFailed for a request that has ended without being completed."""
    snapshot = result.value
    code = _CODES.get(snapshot.state)
    if code is not None:
        reason = f" ({snapshot.reason})" if snapshot.reason else ""
        message = f"the request is {snapshot.state.value}{reason}"
        raise CommandFailed(failure(code, message, request=result.raw))


_CODES = {State.FAILED: "REQUEST_FAILED", State.CANCELLED: "CANCELLED", State.EXPIRED: "EXPIRED"}


def snapshot_lines(snapshot: Snapshot) -> Iterator[str]:
    """A request for people."""
    reason = f" ({snapshot.reason})" if snapshot.reason else ""
    yield f"{snapshot.request_id}  {snapshot.capability}"
    yield f"{snapshot.state.value}{reason}, revision {snapshot.revision}"
    if is_terminal(snapshot.state):
        yield f"ended {snapshot.ended_at}"
    else:
        yield f"until {snapshot.deadline_at}"
    if snapshot.result is not None:
        yield f"result {compact(snapshot.result)}"
