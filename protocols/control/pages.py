"""Pages of the lists of the control protocol: as many items as a frame can hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from protocols.strict_json import encode
from protocols.structure import unstructure

MAX_PAGE = 100
MAX_CURSOR = 512
_LIST_BYTES = 48 * 1024
"""What a list inside a result may take of a frame's 64 KiB."""

T = TypeVar("T")


def fitting(items: Iterable[T], most: int, most_bytes: int = _LIST_BYTES) -> tuple[T, ...]:
    """The first items, at most so many, that fit together into the bytes that a result's list may take.

    The first one always does.
    """
    taken: list[T] = []
    size = 0
    for item in items:
        size += len(encode(unstructure(item))) + 1
        if len(taken) == most or (taken and size > most_bytes):
            break
        taken.append(item)
    return tuple(taken)
