"""What three layers cost, as ratios to a bare trio echo measured in the same run: `make bench`.

    frame to message   bytes of a requests.create through the engine to a typed message
    decide             a requests.get through the ledger to a ready reply, nothing stored
    get round trip     a whole requests.get over the socket to a real broker process and back

The echo is the same round trip to a process that only sends the line back, measured in turns with the broker's, so
that what else the machine does hits both.  Nothing is judged: the figures are for people who change a layer.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.daemon.ledger import Ledger
from broker.daemon.protocol_table import all_routes, protocol_table
from handlers.companion.rows import CLIENTS, REQUESTS, Client, Request
from handlers.connections import CONNECTIONS, Connection
from handlers.environment import Environment
from handlers.events import Call, CallRef, Opened
from handlers.policy import Policy
from handlers.routes import merge
from handlers.rule import Now
from protocols.companion.engine import CompanionEngine
from protocols.companion.messages import GetRequest
from protocols.companion.states import State
from protocols.session import Deliver
from tests.support.broker_process import running_broker
from tests.support.lines import Lines
from tests.support.memory_disk import MemoryDisk

ROUNDS = 7
ROUND_TRIPS = 300
REPEATS = 2_000
CHOICE = {"title": "Deploy?", "options": [{"id": "y", "label": "Yes"}, {"id": "n", "label": "No"}]}
ECHO = """
import sys, trio
async def echo(stream):
    async for data in stream:
        await stream.send_all(data)
async def main():
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(sys.argv[1])
    sock.listen()
    print(flush=True)
    await trio.serve_listeners(echo, [trio.SocketListener(sock)])
trio.run(main)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        echo, get = _round_trips(Path(folder))
    rows = {
        "bare trio echo": echo,
        "frame to message": _per_call(_frame_to_message()),
        "decide": _per_call(_decide()),
        "get round trip": get,
    }
    for name, seconds in rows.items():
        print(f"{name:20} {seconds / echo:6.2f} x   ({seconds * 1e6:.0f} us)")


def _round_trips(folder: Path) -> tuple[float, float]:
    """Seconds of an echo and of a get, the medians of rounds taken in turns."""
    with _echo(folder / "echo.sock") as echo, running_broker(folder) as broker:
        credential = broker.pair("bench", ["discover", "interact"])
        client = broker.session(credential)
        created = client.call(
            "requests.create", capability="interaction.choose", params=CHOICE, timeoutMs=600_000
        )
        line = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "requests.get",
                "params": {"requestId": created["requestId"]},
            }
        ).encode()
        client.socket.settimeout(10)
        pairs = [(_time(echo, line), _time(client, line, pause=1.2)) for _ in range(ROUNDS)]
        client.close()
    echoes, gets = zip(*pairs, strict=True)
    return statistics.median(echoes), statistics.median(gets)


def _time(client: Lines, line: bytes, pause: float = 0) -> float:
    time.sleep(pause)  # the rate that the broker publishes has to fill up again
    count = ROUND_TRIPS if pause == 0 else 150
    began = time.perf_counter()
    for _ in range(count):
        client.send(line + b"\n")
        client.line()
    return (time.perf_counter() - began) / count


@contextmanager
def _echo(path: Path) -> Iterator[Lines]:
    process = subprocess.Popen([sys.executable, "-c", ECHO, str(path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with Lines.connect(path) as client:
            yield client
    finally:
        process.terminate()
        process.communicate()


def _per_call(call: Callable[[], Any]) -> float:
    call()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(REPEATS):
            call()
        times.append((time.perf_counter() - began) / REPEATS)
    return statistics.median(times)


def _frame_to_message() -> Callable[[], None]:
    params = {"capability": "interaction.choose", "params": CHOICE, "timeoutMs": 60_000}
    line = (
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "requests.create", "params": params}).encode()
        + b"\n"
    )
    engine = CompanionEngine()
    engine._greeted = engine.authenticated = True  # as after the handshake, which is not measured

    def call() -> None:
        engine.receive(line)
        output = engine.next_output()
        assert isinstance(output, Deliver)
        engine._slots.clear()

    return call


def _decide() -> Callable[[], None]:
    policy = Policy(access_enabled=True)
    now = Now(1_000, 1_000, 1_800_000_000_000)
    ledger = Ledger(
        merge(all_routes(protocol_table(policy))),
        Environment(policy, "run", "boot"),
        MemoryDisk(),
        lambda: now,
        print,
    )
    ledger.decide(Opened(1, "companion", None))
    client = Client("c", "bench", ("interact",), "", 0, revision=1)
    request = Request(
        "r",
        "c",
        "interaction.choose",
        json.dumps(CHOICE),
        "f",
        60_000,
        State.RUNNING,
        now.wall,
        now.wall + 60_000,
        now.elapsed + 60_000,
        "interaction.choose",
        "aion",
        "default",
        "run",
        revision=1,
    )
    ledger.load(
        [
            (CLIENTS, client),
            (REQUESTS, request),
            (CONNECTIONS, Connection(1, "companion", None, None, "c", 1)),
        ]
    )
    event = Call(CallRef(1, 1), GetRequest(request_id="r"), os.urandom(32))

    def call() -> None:
        ledger.decide(event)
        assert ledger.take_ready() is not None

    return call


if __name__ == "__main__":
    main()
