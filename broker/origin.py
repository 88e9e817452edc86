"""Refuses to start when the three packages do not come from one place.

`broker`, `handlers` and `protocols` are plain top-level names, so another distribution, or a folder that
happens to lie on Python's path, may hold a package of the same name. Half of the broker with half of
something else must not run: the daemon calls `check_origin()` before it opens anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import broker
import handlers
import protocols


class OriginMismatch(RuntimeError):
    """The packages lie in different places: ours to report, the user's to mend by installing anew.

    Its text names packages only, since a path of the machine belongs in no error.
    """

    def __init__(self, strangers: Sequence[str]) -> None:
        super().__init__(f"not installed beside the broker package: {', '.join(strangers)}")
        self.strangers = tuple(strangers)


def check_origin(home: ModuleType = broker, companions: Sequence[ModuleType] = (handlers, protocols)) -> None:
    """Raise OriginMismatch unless every companion lies in the folder that holds `home`."""
    folder = _folder(home)
    strangers = [module.__name__ for module in companions if folder is None or _folder(module) != folder]
    if strangers:
        raise OriginMismatch(strangers)


def _folder(package: ModuleType) -> Path | None:
    """Where the package lies; None for a stray folder without `__init__.py`, which has no file."""
    return Path(package.__file__).resolve().parent.parent if package.__file__ else None
