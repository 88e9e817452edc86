"""A presenter on strings: passes lines between the broker and a socket that the test listens on.

Run by the broker as `exec:`; argv[1] is the path of the test's socket.  It ends when either side does.  It takes
whatever the broker sends, however late the test reads it, and answers pings itself, so that a test may think for
as long as it likes.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import threading


class Strings:
    """The two sockets and what goes from one to the other, each way in a thread of its own."""

    def __init__(self, broker: socket.socket, test: socket.socket) -> None:
        self._broker = broker
        self._test = test
        self._writing = threading.Lock()
        self._for_test: queue.Queue[bytes] = queue.Queue()
        self._over = threading.Event()

    def run(self) -> None:
        """Pass lines on until either side has ended."""
        for work in (self._from_broker, self._from_test, self._to_test):
            threading.Thread(target=self._until_the_end, args=(work,), daemon=True).start()
        self._over.wait()

    def _until_the_end(self, work: object) -> None:
        assert callable(work)
        try:
            work()
        except OSError:
            pass  # the other side has reset the connection: an end like any other
        finally:
            self._over.set()

    def _from_broker(self) -> None:
        with self._broker.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if message.get("method") == "ping":
                    pong = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
                    self._to_broker(json.dumps(pong).encode() + b"\n")
                else:
                    self._for_test.put(line)

    def _from_test(self) -> None:
        while data := self._test.recv(65536):
            self._to_broker(data)

    def _to_test(self) -> None:
        while True:
            self._test.sendall(self._for_test.get())

    def _to_broker(self, data: bytes) -> None:
        with self._writing:
            self._broker.sendall(data)


def main() -> None:
    broker = socket.socket(fileno=int(os.environ["COMPANION_PRESENTER_FD"]))
    with broker, socket.socket(socket.AF_UNIX) as test:
        try:
            test.connect(sys.argv[1])
        except OSError:  # the test has ended its broker already
            return
        Strings(broker, test).run()


if __name__ == "__main__":
    main()
