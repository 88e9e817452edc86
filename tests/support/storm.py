"""A storm: several clients, the person and a lease holder, all at once, until the broker is SIGKILLED among them.

Whatever anybody is told goes into one journal; the broker is killed at the N-th entry, so that a seed gives about
the same crash each time.  Clients keep what they have sent as well: what they heard no answer to may have happened.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import attrs

from tests.support.broker_process import APP, BrokerProcess, Puppet
from tests.support.crashes import answer_to, ready_presenter, told
from tests.support.holder import Holder
from tests.support.leases_over_crashes import HOLDER
from tests.support.lines import Rpc

Credential = tuple[str, str]
OPTIONS = ("y", "n")
ENDED = ("completed", "cancelled", "expired", "failed")


@attrs.define
class Asked:
    """What one client knows of one request: the newest snapshot that it was told, and whether it tried to cancel."""

    client: Credential
    key: str
    snapshot: Any = None
    cancelling: bool = False

    @property
    def id(self) -> str:
        """The request's id, once it was told."""
        request_id: str = self.snapshot["requestId"]
        return request_id

    @property
    def params(self) -> dict[str, Any]:
        """Of requests.create."""
        options = [{"id": id, "label": id} for id in OPTIONS]
        return {
            "capability": "interaction.choose",
            "params": {"title": self.key, "options": options},
            "timeoutMs": 3_600_000,
            "idempotencyKey": self.key,
        }


@attrs.define
class Journal:
    """Everything that was sent and told; `told` counts, and kills at the right time."""

    kill: Callable[[], None]
    entries_left: int
    asked: list[Asked] = attrs.field(factory=list)
    answers: dict[str, str] = attrs.field(factory=dict)
    """Option by request: what the person chose, whether or not the broker got it."""
    outcomes: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    """What the presenter was told of its answers, by request."""
    granted: list[dict[str, Any]] = attrs.field(factory=list)
    """The answers to the lease holder."""
    lease_seconds: list[int] = attrs.field(factory=list)
    """What the lease holder has asked for."""
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def told(self) -> None:
        """Somebody was told something."""
        with self._lock:
            self.entries_left -= 1
            if self.entries_left == 0:
                self.kill()


def storm(broker: BrokerProcess, clients: Sequence[Credential], seed: int) -> Journal:
    """Let it rage until the broker is dead; every client has two connections."""
    journal = Journal(broker.kill, random.Random(seed).randrange(40, 160))
    presenter, holder = ready_presenter(broker), broker.holder(HOLDER)
    work = [partial(_answer, presenter, journal, random.Random(seed)), partial(_hold, holder, journal)]
    for number, client in enumerate([*clients, *clients]):
        work.append(partial(_ask, broker.session(client), client, journal, random.Random(seed + number)))
    with ThreadPoolExecutor(len(work)) as pool:
        for end in [pool.submit(told, one) for one in work]:
            end.result()
    return journal


def _ask(session: Rpc, client: Credential, journal: Journal, chance: random.Random) -> None:
    """Ask one question after the other; cancel some of them, which the person may be about to answer."""
    while True:
        asked = Asked(client, key=f"{chance.getrandbits(64):x}")
        journal.asked.append(asked)
        _tell(journal, asked, session.call("requests.create", **asked.params))
        if chance.random() < 0.3:
            asked.cancelling = True
            _tell(journal, asked, session.call("requests.cancel", requestId=asked.id))
        while asked.snapshot["state"] not in ENDED:
            after = asked.snapshot["revision"]
            waited = session.call("requests.wait", requestId=asked.id, afterRevision=after, waitMs=10_000)
            _tell(journal, asked, waited["request"])


def _tell(journal: Journal, asked: Asked, snapshot: Any) -> None:
    asked.snapshot = snapshot
    journal.told()


def _answer(presenter: Puppet, journal: Journal, chance: random.Random) -> None:
    """Present whatever comes and choose at once."""
    while True:
        shown = presenter.wait_for("present")
        presenter.presented(shown)
        request_id, selected = shown["requestId"], chance.choice(OPTIONS)
        journal.answers[request_id] = selected
        outcome = presenter.call("answer", **answer_to(shown, selected))
        journal.outcomes[request_id] = outcome
        journal.told()


def _hold(holder: Holder, journal: Journal) -> None:
    """Begin a lease and renew it, each time for another number of seconds."""
    for seconds in itertools.count(600):
        journal.lease_seconds.append(seconds)
        begin_or_renew = holder.begin if seconds == 600 else holder.renew
        journal.granted.append(begin_or_renew(APP, seconds))
        journal.told()
