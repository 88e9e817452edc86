"""An agent and its one-shot client as two processes: the agent (argv[1] = path of the lease socket, argv[2] = app)
starts a client that connects, says hello with the agent's pid and begins a lease.

The client prints each line of the broker, then "closed" when the broker closes the connection, which it keeps open
itself for as long as its standard input is open.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys

from tests.support.holder import hello_of
from tests.support.lines import Lines


def agent(path: str, app: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.support.acting_agent", path, app, str(os.getpid())], check=False
    )


def client(path: str, app: str, pid: int) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        lines = Lines(sock)
        lines.send(hello_of("agent", pid))
        print(lines.line().decode(), flush=True)
        begin = {"action": "lease.begin", "requestId": "b", "holderId": "agent"}
        lines.send({**begin, "appKey": app, "leaseSeconds": 1800})
        print(lines.line().decode(), flush=True)
        readable, _, _ = select.select([sock, sys.stdin], [], [])
        if sock in readable and not lines.line():
            print("closed", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        agent(sys.argv[1], sys.argv[2])
    else:
        client(sys.argv[1], sys.argv[2], int(sys.argv[3]))
