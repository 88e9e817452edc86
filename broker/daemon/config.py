"""The configuration: one TOML file of the owner's, read once at the start (wire.md, Configuration).

The file can loosen what the broker allows, so it is checked like a credential: a regular file of the user's, not a
link, that nobody else may write.  An unknown key, a wrong type or a value out of bounds is an error that names key
and line.  Precedence: flag, environment, file, default; only the presenter's kind can come from the first two, for
whoever starts the daemon must not open the access that the owner's file keeps closed (CP-5.1).
"""

from __future__ import annotations

import os
import re
import tomllib

import attrs

from broker.daemon.config_lines import line_of
from broker.daemon.config_section import BadKey, Section, dotted
from broker.daemon.errors import ConfigError
from broker.paths import Paths
from broker.private_files import WRITABLE_BY_OTHERS, NotPrivate, read_private_file
from handlers.policy import (
    MINUTE,
    App,
    AutoQuitApp,
    AutoQuitPolicy,
    LeasePolicy,
    Limits,
    Policy,
    Retention,
    wire_name,
)

PRESENTER = "COMPANION_PRESENTER"

_FILE = "configuration file"
_KIND = re.compile(r"auto|desktop|terminal|none|exec:.*\S.*", re.DOTALL)
_KIND_REASON = "must be auto, desktop, terminal, none or exec:COMMAND"
_FLOORS = {"max_frame_bytes": 65_536, "max_waits": 64}
"""Every legal message has to fit, and 64 waits are promised; the other limits may be lowered to 1."""


@attrs.frozen
class PresenterConfig:
    """Which presenter runs: `auto`, `desktop`, `terminal`, `none` or `exec:COMMAND`."""

    kind: str = "auto"


@attrs.frozen
class Config:
    """The whole configuration: what the daemon itself needs to know, and what decisions depend on."""

    presenter: PresenterConfig = PresenterConfig()
    policy: Policy = attrs.field(factory=Policy)


def load_config(paths: Paths, presenter: str | None = None) -> Config:
    """Read the configuration file and what goes before it: the flag `presenter` and COMPANION_PRESENTER.

    Without a file the defaults hold, unless somebody named the file.  Raises ConfigError.
    """
    config = parse_config(_read(paths))
    for source, kind in (("--presenter", presenter), (PRESENTER, os.environ.get(PRESENTER))):
        if kind:
            if not _KIND.fullmatch(kind):
                raise ConfigError(source, _KIND_REASON)
            return attrs.evolve(config, presenter=PresenterConfig(kind))
    return config


def _read(paths: Paths) -> str:
    try:
        content = read_private_file(paths.config_file, WRITABLE_BY_OTHERS)
    except FileNotFoundError:
        if paths.config_is_named:
            raise ConfigError(_FILE, "does not exist") from None
        return ""
    except NotPrivate as error:
        raise ConfigError(_FILE, str(error)) from None
    except OSError as error:
        raise ConfigError(_FILE, f"cannot be read: {error.strerror}") from None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(_FILE, "is not UTF-8", line=line) from None


def parse_config(text: str) -> Config:
    """Build the configuration from TOML.  Raises ConfigError with the key and line at fault."""
    try:
        return _config(Section(tomllib.loads(text)))
    except ValueError as error:  # tomllib's own, or that of a number with thousands of digits
        raise ConfigError(_FILE, "is not valid TOML", line=_line_in(error, text)) from None
    except RecursionError:
        raise ConfigError(_FILE, "is nested too deeply") from None
    except BadKey as error:
        line = line_of(error.path, text)
        raise ConfigError(_FILE, error.reason, key=dotted(error.path), line=line) from None


def _line_in(error: ValueError, text: str) -> int | None:
    """Take the line out of tomllib's message; the rest of it may quote the file, and is not told."""
    if "(at end of document)" in str(error):
        return text.rstrip().count("\n") + 1
    place = re.search(r"\(at line (\d+), column \d+\)", str(error))
    return int(place[1]) if place else None


def _config(top: Section) -> Config:
    access, presenter, retention = (top.section(key) for key in ("access", "presenter", "retention"))
    policy = Policy(
        access_enabled=access.boolean("enabled", False),
        arming_ms=presenter.integer("arming_ms", Policy().arming_ms, 0, MINUTE),
        lease=_lease(top.section("lease")),
        apps=_apps(top.section("apps")),
        autoquit=_autoquit(top.section("autoquit")),
        limits=_limits(top.section("limits")),
        retention=Retention(hours=retention.integer("hours", Retention().hours, 24, 24 * 366)),
    )
    kind = presenter.text("kind", PresenterConfig().kind)
    if not _KIND.fullmatch(kind):
        raise presenter.bad("kind", _KIND_REASON)
    for section in (access, presenter, retention, top):
        section.end()
    return Config(PresenterConfig(kind), policy)


def _lease(section: Section) -> LeasePolicy:
    default = LeasePolicy()
    lease = LeasePolicy(
        enabled=section.boolean("enabled", default.enabled),
        min_ms=section.milliseconds("min_seconds", default.min_ms, 1),
        max_ms=section.milliseconds("max_seconds", default.max_ms, 1),
        grace_ms=section.milliseconds("grace_seconds", default.grace_ms, 0),
        close_check_timeout_ms=section.milliseconds(
            "close_check_timeout_seconds", default.close_check_timeout_ms, 1
        ),
        close_check_cooldown_ms=section.milliseconds(
            "close_check_cooldown_seconds", default.close_check_cooldown_ms, 0
        ),
        close_check_strikes=section.integer("close_check_strikes", default.close_check_strikes, 1),
        startup_hold_ms=section.milliseconds("startup_hold_seconds", default.startup_hold_ms, 0),
    )
    section.end()
    if lease.min_ms > lease.max_ms:
        raise section.bad("min_seconds", "must not be over max_seconds")
    return lease


def _limits(section: Section) -> Limits:
    values = {
        name: section.integer(wire_name(name), default, _FLOORS.get(name, 1))
        for name, default in attrs.asdict(Limits()).items()
    }
    section.end()
    return Limits(**values)


def _apps(section: Section) -> dict[str, App]:
    return {key: _app(app) for key, app in _by_app_key(section)}


def _app(section: Section) -> App:
    app = App(name=section.text("name"), executable=section.text("executable"))
    if not os.path.isabs(app.executable):
        raise section.bad("executable", "must be an absolute path")
    section.end()
    return app


def _autoquit(section: Section) -> AutoQuitPolicy:
    default = AutoQuitPolicy()
    policy = AutoQuitPolicy(
        enabled=section.boolean("enabled", default.enabled),
        dry_run=section.boolean("dry_run", default.dry_run),
        period_ms=section.milliseconds("period_seconds", default.period_ms, 1),
        apps={key: _autoquit_app(app) for key, app in _by_app_key(section.section("apps"))},
    )
    section.end()
    return policy


def _autoquit_app(section: Section) -> AutoQuitApp:
    default = AutoQuitApp()
    app = AutoQuitApp(
        idle_ms=section.milliseconds("idle_minutes", default.idle_ms, 1, unit=MINUTE),
        allow_sigterm=section.boolean("allow_sigterm", default.allow_sigterm),
    )
    section.end()
    return app


def _by_app_key(section: Section) -> list[tuple[str, Section]]:
    """The tables under app keys; a `#suffix` is a variant, which needs no entry of its own (LP-7)."""
    apps = list(section.sections())
    for key, _ in apps:
        if not 1 <= len(key) <= 128 or "#" in key:
            raise section.bad(key, "must be an app key of 1 to 128 characters without #")
    return apps
