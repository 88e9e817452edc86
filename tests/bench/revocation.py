"""How long a revocation takes on this machine: `python tests/bench/revocation.py [RECORDS ...]`.

For each number of records a real broker is started over a store in which two clients have so many each; one of them
is revoked while it waits for a request.  Times are counted from the call of `clients.revoke`:

    answered    the revoke is stored and told to the owner's tool
    over        the client's wait is answered and its session is closed
    clean       another process finds neither key, prompt nor answer in any file

The bar: `over` within a second however many records there are, `clean` within a second for a client as clients are (a
hundred records).  Figures depend on the machine, so `clean` is told as a ratio as well: to the time that SQLite alone
needs here to delete the same rows and write the file anew.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.broker_process import running_broker
from tests.support.byte_scan import scan
from tests.support.many_records import fill, key_of, mark_of

BAR_SECONDS = 1.0
_RECORDS = (100, 1_000, 10_000)


@attrs.frozen
class Figures:
    """Seconds from the call of the revoke; `alone` is what SQLite needs by itself."""

    records: int
    answered: float
    over: float
    clean: float
    alone: float

    def __str__(self) -> str:
        ratio = self.clean / self.alone
        return (
            f"{self.records:7} {self.answered:9.3f} {self.over:9.3f} {self.clean:9.3f} {ratio:9.1f}"
            f"   {'over within the bar' if self.over <= BAR_SECONDS else 'OVER THE BAR'}"
            f"{', clean too' if self.clean <= BAR_SECONDS else ''}"
        )


def main() -> int:
    """Print the figures; the exit status is 1 when a session or a wait was over too late."""
    numbers = [int(argument) for argument in sys.argv[1:]] or _RECORDS
    print("records  answered      over     clean     ratio")
    late = False
    for number in numbers:
        with tempfile.TemporaryDirectory(prefix="cb-") as folder:
            figures = measure(Path(folder), number)
        print(figures)
        late |= figures.over > BAR_SECONDS
    return int(late)


def measure(folder: Path, records: int) -> Figures:
    """Revoke a client with so many records; see the module header."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    fill(state / "companion.db", ["gone", "spared"], records - 1)  # and one that is open
    alone = alone_seconds(folder, state / "companion.db")
    needles = {
        "texts": mark_of("gone").encode(),
        "digest": hashlib.sha256(key_of("gone").encode()).hexdigest().encode(),
    }
    with running_broker(folder, environment={"XDG_CONFIG_HOME": str(folder / "config")}) as broker:
        ready = broker.presenter
        session, owner = broker.session(("gone", key_of("gone"))), broker.control()
        asked = session.call(
            "requests.create", capability="notice.show", params={"text": mark_of("gone")}, timeoutMs=60_000
        )
        ready.wait_for("present", requestId=asked["requestId"])
        session.start(
            "requests.wait", requestId=asked["requestId"], afterRevision=asked["revision"], waitMs=60_000
        )
        session.call("runtime.describe")  # so the wait is parked
        start = time.perf_counter()
        owner.call("clients.revoke", clientId="gone")
        answered = time.perf_counter() - start
        assert session.rest()[-1]["error"]["data"]["code"] == "UNAUTHENTICATED"
        over = time.perf_counter() - start
        while scan((state,), needles):
            pass
        return Figures(records, answered, over, time.perf_counter() - start, alone)


def alone_seconds(folder: Path, store: Path) -> float:
    """Delete one client's rows of a copy of the store and write it anew, with nothing but SQLite."""
    copy = folder / "copy.db"
    copy.write_bytes(store.read_bytes())
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "temp_store=MEMORY"):
            db.execute(f"PRAGMA {pragma}")
        start = time.perf_counter()
        db.execute("DELETE FROM requests WHERE by_client = 'gone'")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        seconds = time.perf_counter() - start
    os.unlink(copy)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
