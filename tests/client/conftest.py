"""A folder for sockets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder whose name leaves room for a socket's path, which `tmp_path` may not."""
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        yield Path(name)
