"""The demo's agent, a process of its own: pairs, asks, shows progress, holds a lease and answers close checks.

It ends once it has allowed the close; a person's denial or silence costs it the answer, not the rest of its work.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from broker.client.blocking.companion import CompanionConnection
from broker.client.blocking.lease import LeaseConnection
from broker.client.blocking.stream import Deadline
from broker.client.calls import new_idempotency_key
from broker.client.errors import CallFailed
from broker.client.keeping import HolderIdentity, new_request_id
from broker.demo.transcript import ToldStream, say, say_heading
from broker.paths import find_paths
from protocols.companion.client import CompanionClient, Credential
from protocols.companion.messages import (
    CreateRequest,
    Implementation,
    Snapshot,
    UpdateRequest,
    WaitRequest,
    WaitResult,
)
from protocols.companion.pairing import PairingOutcome, PairingRequest, PairingRequested, PairingWait
from protocols.companion.states import is_terminal
from protocols.implementation import VERSION
from protocols.json_values import JSONObject
from protocols.lease.client import LeaseClient

NAME = "Demo agent"
LEASE_SECONDS = 1
_PERSON_SECONDS = 300.0
_WAIT_MS = 60_000
_QUESTION: JSONObject = {
    "title": "The report is ready. What shall I do with it?",
    "options": [{"id": "publish", "label": "Publish"}, {"id": "later", "label": "Keep for later"}],
}
_TEXT_QUESTION: JSONObject = {
    "title": "What shall it be called?",
    "placeholder": "Quarterly report",
    "maxLength": 60,
}
_PROGRESS: JSONObject = {"title": "Preparing the report", "fraction": 0}
_STEPS: tuple[JSONObject, ...] = ({"fraction": 0.5}, {"fraction": 1, "finished": True})
_STEP_SECONDS = 0.5


class _AgentStream(ToldStream):
    who = "agent"


def main(app_key: str) -> None:
    """Play the agent's part."""
    paths = find_paths()
    deadline = Deadline.after(_PERSON_SECONDS)
    program = Implementation(name="demo-agent", version=VERSION)
    stream = _AgentStream.connect(paths.companion_socket, deadline)
    with CompanionConnection(stream, CompanionClient(program)) as companion:
        say_heading("1. The agent asks the person to be paired")
        companion.shake_hands(deadline)
        credential = _pair(companion)
        if credential is not None:
            companion.authenticate(credential)
            say_heading("2. The agent asks, the person answers")
            _ask(companion)
            say_heading("3. The agent shows how far its work has come")
            _show_progress(companion)
    _hold(
        LeaseConnection(_AgentStream.connect(paths.lease_socket, deadline), LeaseClient(_HOLDER.id)), app_key
    )


def _pair(companion: CompanionConnection) -> Credential | None:
    request = PairingRequest(client_name=NAME, scopes=("discover", "notify", "interact"))
    asked = companion.call("pairing.request", request).result
    assert isinstance(asked, PairingRequested)
    wait = PairingWait(pairing_id=asked.pairing_id, wait_ms=_WAIT_MS)
    while True:
        outcome = companion.call("pairing.wait", wait, _PERSON_SECONDS).result
        assert isinstance(outcome, PairingOutcome)
        if outcome.status != "pending":
            break
    if outcome.client_id is None or outcome.key is None:
        say(f"   (the pairing is {outcome.status}, so the agent has nothing to ask with)")
        return None
    return Credential(outcome.client_id, outcome.key)


def _ask(companion: CompanionConnection) -> None:
    for capability, params in (("interaction.choose", _QUESTION), ("interaction.ask_text", _TEXT_QUESTION)):
        snapshot = _create(companion, capability, params)
        if snapshot is not None:
            _follow(companion, snapshot, lambda seen: is_terminal(seen.state))


def _show_progress(companion: CompanionConnection) -> None:
    snapshot = _create(companion, "progress.track", _PROGRESS)
    if snapshot is None:
        return
    snapshot = _follow(companion, snapshot, lambda seen: seen.displayed_at is not None)
    for step in _STEPS:
        time.sleep(_STEP_SECONDS)
        update = UpdateRequest(
            request_id=snapshot.request_id, expected_revision=snapshot.revision, params=step
        )
        try:
            changed = companion.call("requests.update", update).result
        except CallFailed as error:  # the person has closed it, which ends no work
            say(f"   (nobody looks at it any more: {error.code})")
            return
        assert isinstance(changed, Snapshot)
        snapshot = changed


def _create(companion: CompanionConnection, capability: str, params: JSONObject) -> Snapshot | None:
    request = CreateRequest(
        capability=capability,
        params=params,
        timeout_ms=round(_PERSON_SECONDS * 1000),
        idempotency_key=new_idempotency_key(),
    )
    try:
        snapshot = companion.call("requests.create", request).result
    except CallFailed as error:  # fewer scopes were granted than it needs
        say(f"   (not without the scope for it: {error.code})")
        return None
    assert isinstance(snapshot, Snapshot)
    return snapshot


def _follow(companion: CompanionConnection, snapshot: Snapshot, seen: Callable[[Snapshot], bool]) -> Snapshot:
    """Wait until this is seen of the request, or its end."""
    while not (seen(snapshot) or is_terminal(snapshot.state)):
        wait = WaitRequest(request_id=snapshot.request_id, after_revision=snapshot.revision, wait_ms=_WAIT_MS)
        waited = companion.call("requests.wait", wait, _PERSON_SECONDS).result
        assert isinstance(waited, WaitResult)
        snapshot = waited.request
    return snapshot


_HOLDER = HolderIdentity(f"demo-{os.getpid()}-{new_request_id()}", NAME, os.getpid())


def _hold(lease: LeaseConnection, app_key: str) -> None:
    """Hold the app, extend at the first close check, allow at the second."""
    with lease:
        say_heading("4. The agent holds a lease on the app, and lets it run out")
        lease.shake_hands(_HOLDER, Deadline.after(_PERSON_SECONDS))
        lease.begin(app_key, LEASE_SECONDS)
        for answer in (lambda check: lease.extend(check, LEASE_SECONDS), lease.allow):
            check = lease.next_close_check(_PERSON_SECONDS)
            if check is None:
                raise SystemExit("no close check came")
            answer(check)


if __name__ == "__main__":
    main(sys.argv[1])
