"""One operation, a real broker, and a SIGKILL before and after every call that the operation makes to the store.

`crash_at_each` runs the operation once for each of these points, always in the same folders: start a broker, look
at what every earlier crash has left behind, begin the operation anew, crash.  Then it looks twice more, lets the
client repeat what it did not hear the outcome of, and looks a last time.  So each crash is followed by at least
three restarts.  What was told and seen is collected in one `Case` a point; the tests make their claims about it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs

from tests.support.broker_process import APP, BrokerProcess, Puppet, running_broker
from tests.support.faulty_broker import Faults

T = TypeVar("T")

AFTER_REPLY = "after the reply"
"""The point at which the operation was acknowledged; none of its calls is left to crash at."""

CONFIG = f"""
[access]
enabled = true
[presenter]
arming_ms = 0
[limits]
maxDisplayed = 1
callsPerSecond = 100000
[lease]
min_seconds = 1
grace_seconds = 0.1
close_check_timeout_seconds = 60
startup_hold_seconds = 0
[apps."{APP}"]
name = "Example"
executable = "/opt/example/bin/example"
"""


@attrs.define
class Case:
    """One crash: where it was, what the client was told before it, and what was seen after each restart.

    `told` is None when the connection broke instead.  `seen` ends where the client repeats the operation; `repeated`
    is what came of that, `afterwards` what was seen one restart later.
    """

    point: str
    told: Any = None
    calls: list[str] = attrs.field(factory=list)
    seen: list[Any] = attrs.field(factory=list)
    repeated: Any = None
    afterwards: Any = None

    @property
    def committed(self) -> bool:
        """Whether the store had finished its commit when the process ended."""
        return self.point == AFTER_REPLY or self.point.endswith(" after commit")

    @property
    def number(self) -> int | None:
        """How many calls there were before the end; None where it came after the reply."""
        return None if self.point == AFTER_REPLY else int(self.point.split()[0])


class Operation(Protocol):
    """What is crashed.  `act` calls `arm` right before the step whose store calls count."""

    def prepare(self, broker: BrokerProcess) -> None:
        """Once, in the first broker: whatever every case needs."""

    def act(self, broker: BrokerProcess, case: Case, arm: Callable[[], None]) -> Any:
        """Run the operation; what the client was told."""

    def look(self, broker: BrokerProcess, case: Case) -> Any:
        """What a client can learn of the case without changing anything."""

    def repeat(self, broker: BrokerProcess, case: Case) -> Any:
        """What a client does that never heard the outcome."""


def store_calls(*names: str) -> tuple[str, ...]:
    """What the store's hook is told of these calls: before and after each."""
    return tuple(f"{when} {name}" for name in names for when in ("before", "after"))


def points(calls: Sequence[str]) -> list[str]:
    """Where to crash: at each of the calls, by its number and name, and after the reply."""
    return [*(f"{number} {call}" for number, call in enumerate(calls, start=1)), AFTER_REPLY]


def committed_points(calls: Sequence[str]) -> list[str]:
    """Those behind the commit."""
    return [point for point in points(calls) if Case(point).committed]


def crash_at_each(calls: Sequence[str], operation: Operation) -> dict[str, Case]:
    """Crash the operation at each of its points; the cases by point."""
    cases: dict[str, Case] = {}
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        faults = Faults(Path(folder))
        for case in map(Case, points(calls)):
            with faulty_broker(Path(folder), faults) as broker:
                _look(operation, broker, cases)
                if not cases:
                    operation.prepare(broker)
                arm = faults.record if case.number is None else partial(faults.kill_at, case.number)
                case.told = operation.act(broker, case, arm)
                broker.kill()
            case.calls = faults.lift()
            cases[case.point] = case
        _restart(Path(folder), faults, operation, cases)
    return cases


def _restart(folder: Path, faults: Faults, operation: Operation, cases: dict[str, Case]) -> None:
    with faulty_broker(folder, faults) as broker:
        _look(operation, broker, cases)
        broker.kill()
    with faulty_broker(folder, faults) as broker:
        _look(operation, broker, cases)
        for case in cases.values():
            case.repeated = operation.repeat(broker, case)
        broker.kill()
    with faulty_broker(folder, faults) as broker:
        for case in cases.values():
            case.afterwards = operation.look(broker, case)


def _look(operation: Operation, broker: BrokerProcess, cases: dict[str, Case]) -> None:
    for case in cases.values():
        case.seen.append(operation.look(broker, case))


@contextmanager
def faulty_broker(folder: Path, faults: Faults, config: str = CONFIG) -> Iterator[BrokerProcess]:
    """A running broker under a plan."""
    with running_broker(folder, config=config, command=faults.command) as broker:
        yield broker


def told(call: Callable[[], T]) -> T | None:
    """What came back, None when the connection broke first."""
    try:
        return call()
    except (EOFError, ConnectionError):
        return None


def ready_presenter(broker: BrokerProcess) -> Puppet:
    """The broker's presenter, which the broker has taken notice of.

    The one of a killed broker may come first: it was just starting, and finds its broker gone.
    """
    try:
        return broker.presenter
    except (EOFError, ConnectionError):
        while (presenter := told(broker.new_presenter)) is None:
            pass
        return presenter


def pushed(presenter: Puppet, method: str) -> list[Any]:
    """The params of everything of this kind that the presenter was sent and has not read yet."""
    found: list[Any] = []
    call_id = presenter.start("list", what="pending")
    while True:
        message = presenter.read()
        if "method" not in message:
            assert message["id"] == call_id, message
            return found
        if message["method"] == method:
            found.append(message["params"])


def answer_to(shown: dict[str, Any], selected: str) -> dict[str, Any]:
    """The params of the answer that chooses this option of a picture."""
    return {
        "requestId": shown["requestId"],
        "revision": shown["revision"],
        "digest": shown["digest"],
        "inputStartedMs": 0,
        "result": {"selectedId": selected},
    }
