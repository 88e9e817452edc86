"""Which apps there are, and which one a key or a process belongs to (LP-7; lease.md, unknown_app).

A key is matched exactly.  `KEY#suffix` is a variant of the known app KEY: it has leases and checks of its
own, and whoever asks about KEY, or about a process of that app, is told of the variants' leases too.
"""

from __future__ import annotations

from collections.abc import Mapping

from handlers.policy import App

SEPARATOR = "#"


def base_key(apps: Mapping[str, App], app_key: str) -> str | None:
    """The key of the app that `app_key` names, itself or a variant of it; None for an unknown one."""
    base, separator, suffix = app_key.partition(SEPARATOR)
    if base in apps and (suffix or not separator):
        return base
    return app_key if app_key in apps else None


def app_of(apps: Mapping[str, App], executable: str) -> str | None:
    """The key of the app that a process with this executable (an absolute path) belongs to, or None."""
    return next((key for key, app in apps.items() if app.executable == executable), None)
