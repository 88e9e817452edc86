"""Looks for bytes in every file below some folders, from a process of its own: `python -m tests.support.byte_scan`.

    found = scan((folder,), {"key": b"...", "prompt": b"..."})
    assert found == {}

It reads the files as they lie, a database and its log among them, so it must not be the process that has the
database open: whoever opens and closes such a file drops SQLite's locks.
"""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def scan(folders: Iterable[Path], needles: Mapping[str, bytes]) -> dict[str, list[str]]:
    """In which files (by name) each needle was found; a needle that is nowhere is left out."""
    order = {
        "folders": [str(folder) for folder in folders],
        "needles": {k: v.hex() for k, v in needles.items()},
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.byte_scan"],
        cwd=ROOT,
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def _find(folders: Iterable[str], needles: Mapping[str, bytes]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            content = _content(path)
            for name, needle in needles.items():
                if needle in content:
                    found.setdefault(name, []).append(path.name)
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
    except FileNotFoundError:  # it went while the folder was looked through
        return b""


def main() -> None:
    order = json.load(sys.stdin)
    needles = {name: bytes.fromhex(needle) for name, needle in order["needles"].items()}
    json.dump(_find(order["folders"], needles), sys.stdout)


if __name__ == "__main__":
    main()
