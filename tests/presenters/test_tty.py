"""A terminal's keys are never waited for, whoever has taken them away meanwhile."""

from __future__ import annotations

import os
import pty
import select
import tty as modes
from collections.abc import Iterator

import pytest

from broker.presenters.tty import Tty


@pytest.fixture
def master_and_tty() -> Iterator[tuple[int, Tty]]:
    master, slave = pty.openpty()
    modes.setraw(slave)
    yield master, Tty(slave, slave)
    os.close(slave)
    os.close(master)


def test_keys_that_were_announced_and_forgotten_are_not_waited_for(master_and_tty: tuple[int, Tty]) -> None:
    master, tty = master_and_tty
    os.write(master, b"1")
    assert select.select([tty.keys], [], [], 5)[0]
    tty.forget_keys()
    assert tty.read() is None


def test_keys_are_read_as_they_come(master_and_tty: tuple[int, Tty]) -> None:
    master, tty = master_and_tty
    os.write(master, b"12")
    assert select.select([tty.keys], [], [], 5)[0]
    assert tty.read() == b"12"
