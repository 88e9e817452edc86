"""Names of a package that are imported when they are first used: every import is start-up time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def lazily(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package; `places` gives the module of each of its names."""

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
