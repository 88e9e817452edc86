"""The configuration file: what it may say, and errors that name key and line (wire.md, Configuration)."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from broker.daemon.config import Config, PresenterConfig, load_config, parse_config
from broker.daemon.errors import ConfigError, StartRefused
from broker.paths import Paths, find_paths
from handlers.policy import App, AutoQuitApp, LeasePolicy, Limits, Policy, Retention, wire_name

# The example of wire.md, every value a default but for the two apps.
EXAMPLE = """
[access]
enabled = false
[presenter]
kind = "auto"
arming_ms = 500
[lease]
enabled = true
min_seconds = 60
max_seconds = 1800
grace_seconds = 60
close_check_timeout_seconds = 3
close_check_cooldown_seconds = 15
close_check_strikes = 3
startup_hold_seconds = 75
[apps."org.example.App"]
name = "Example"
executable = "/opt/example/bin/example"
[autoquit]
enabled = false
dry_run = true
period_seconds = 15
[autoquit.apps."org.example.App"]
idle_minutes = 30
allow_sigterm = false
[limits]
[retention]
hours = 24
"""


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.delenv("COMPANION_PRESENTER", raising=False)
    return find_paths(config=tmp_path / "config.toml", runtime_dir=tmp_path / "r", state_dir=tmp_path / "s")


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        parse_config(text)
    return refused.value


# What it may say


def test_an_empty_file_means_the_defaults() -> None:
    assert parse_config("") == Config()


@pytest.mark.requirement("CP-5.1")
def test_access_is_off_by_default() -> None:
    assert not parse_config("").policy.access_enabled
    assert parse_config("[access]\nenabled = true").policy.access_enabled


def test_the_documented_example_says_the_defaults_and_two_apps() -> None:
    key = "org.example.App"
    default = Config()
    expected = attrs.evolve(
        default.policy,
        apps={key: App("Example", "/opt/example/bin/example")},
        autoquit=attrs.evolve(default.policy.autoquit, apps={key: AutoQuitApp()}),
    )
    assert parse_config(EXAMPLE) == attrs.evolve(default, policy=expected)


@pytest.mark.requirement("LP-8")
def test_the_lease_times_are_those_of_the_protocol() -> None:
    lease = parse_config("").policy.lease
    times = (
        lease.min_ms,
        lease.max_ms,
        lease.grace_ms,
        lease.close_check_timeout_ms,
        lease.close_check_cooldown_ms,
    )
    assert times == (60_000, 1_800_000, 60_000, 3_000, 15_000)


def test_seconds_may_have_fractions_and_the_start_hold_may_be_0() -> None:
    lease = parse_config(
        "[lease]\nmin_seconds = 0.25\ngrace_seconds = 1.5\nstartup_hold_seconds = 0"
    ).policy.lease
    assert lease == LeasePolicy(min_ms=250, grace_ms=1500, startup_hold_ms=0)


def test_minutes_may_have_fractions() -> None:
    text = "[autoquit]\nenabled = true\n[autoquit.apps.x]\nidle_minutes = 0.5\nallow_sigterm = true"
    autoquit = parse_config(text).policy.autoquit
    assert autoquit.enabled
    assert autoquit.apps == {"x": AutoQuitApp(idle_ms=30_000, allow_sigterm=True)}


LIMITS = [
    "maxFrameBytes",
    "maxConnectionsTotal",
    "maxConnectionsPerClient",
    "maxCallsInFlight",
    "maxWaits",
    "maxWaitMs",
    "callsPerSecond",
    "maxBatch",
    "maxQueuedPerClient",
    "maxQueuedTotal",
    "maxDisplayed",
    "maxRecordsPerClient",
    "maxPendingPairings",
]


@pytest.mark.requirement("CP-4.5")
def test_every_published_limit_has_a_name_and_can_be_raised() -> None:
    assert list(Limits().published()) == LIMITS
    raised = {name: value + 1 for name, value in Limits().published().items()}
    text = "[limits]\n" + "".join(f"{name} = {value}\n" for name, value in raised.items())
    assert parse_config(text).policy.limits.published() == raised


@pytest.mark.parametrize("name", sorted(set(LIMITS) - {"maxFrameBytes", "maxWaits"}))
def test_most_limits_can_be_lowered_to_1(name: str) -> None:
    assert parse_config(f"[limits]\n{name} = 1").policy.limits.published()[name] == 1
    assert refusal(f"[limits]\n{name} = 0").key == f"limits.{name}"


@pytest.mark.parametrize(("name", "floor"), [("maxFrameBytes", 65_536), ("maxWaits", 64)])
def test_what_the_protocol_promises_cannot_be_lowered(name: str, floor: int) -> None:
    parse_config(f"[limits]\n{name} = {floor}")
    assert refusal(f"[limits]\n{name} = {floor - 1}").key == f"limits.{name}"


def test_a_name_on_the_wire_is_that_of_the_field_in_camel_case() -> None:
    assert wire_name("max_wait_ms") == "maxWaitMs"


@pytest.mark.requirement("CP-4.10")
def test_records_are_kept_for_a_day_or_longer() -> None:
    assert parse_config("[retention]\nhours = 48").policy.retention == Retention(hours=48)
    assert Retention().records_ms == 24 * 3_600_000
    assert Retention().tombstone_ms == 7 * 24 * 3_600_000
    assert refusal("[retention]\nhours = 23").key == "retention.hours"


@pytest.mark.parametrize("kind", ["auto", "desktop", "terminal", "none", "exec:run --it 'a b'"])
def test_a_presenter_of_every_kind(kind: str) -> None:
    assert parse_config(f'[presenter]\nkind = "{kind}"').presenter == PresenterConfig(kind)


def test_arming_is_for_the_decisions_to_know() -> None:
    assert parse_config("[presenter]\narming_ms = 0").policy == Policy(arming_ms=0)


# Errors


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("x = 1", "x", 1),
        ("\n[acess]\nenabled = true", "acess", 2),
        ("[access]\n\nenable = true", "access.enable", 3),
        ("access.enable = true", "access.enable", 1),
        ("access = { enabled = true, more = 1 }", "access.more", 1),
        ("[lease]\nmin_seconds = 1\ngraze_seconds = 1", "lease.graze_seconds", 3),
        (
            '[apps."org.example.App"]\nname = "x"\nexecutable = "/x"\npath = "/y"',
            'apps."org.example.App".path',
            4,
        ),
        ('[apps]\n"org.x" = { name = "x", executable = "/x", y = 1 }', 'apps."org.x".y', 2),
        ('[apps.x]\nname = "x"\nexecutable = "/x"\n[apps.y]\nname = "y"', "apps.y.executable", 4),
        ('apps.x.name = "x"\n\napps.x.executable = "x"', "apps.x.executable", 3),
        ("[autoquit.apps.x]\nidle = 1", "autoquit.apps.x.idle", 2),
        ("[limits]\nmaxWait = 100", "limits.maxWait", 2),
        ("[limits]\nmax_waits = 100", "limits.max_waits", 2),
        ('[limits]\n"max\\nWaits" = 100', 'limits."max\\nWaits"', 2),
    ],
)
def test_an_unknown_or_missing_key_is_named_with_its_line(text: str, key: str, line: int) -> None:
    refused = refusal(text)
    assert (refused.key, refused.line) == (key, line)
    assert f"line {line}: {key}: " in str(refused)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("access = true", "access"),
        ("[[access]]", "access"),
        ("[access]\nenabled = 1", "access.enabled"),
        ('[access]\nenabled = "true"', "access.enabled"),
        ("[presenter]\nkind = 1", "presenter.kind"),
        ('[presenter]\nkind = ""', "presenter.kind"),
        ('[presenter]\nkind = "window"', "presenter.kind"),
        ('[presenter]\nkind = "exec: "', "presenter.kind"),
        ("[presenter]\narming_ms = 500.0", "presenter.arming_ms"),
        ("[presenter]\narming_ms = -1", "presenter.arming_ms"),
        ("[lease]\nmin_seconds = true", "lease.min_seconds"),
        ('[lease]\nmin_seconds = "60"', "lease.min_seconds"),
        ("[lease]\nmin_seconds = 0", "lease.min_seconds"),
        ("[lease]\nmin_seconds = 0.0001", "lease.min_seconds"),
        ("[lease]\nmin_seconds = 1801", "lease.min_seconds"),
        ("[lease]\ngrace_seconds = -0.5", "lease.grace_seconds"),
        ("[lease]\ngrace_seconds = inf", "lease.grace_seconds"),
        ("[lease]\ngrace_seconds = nan", "lease.grace_seconds"),
        (f"[lease]\ngrace_seconds = 1{'0' * 400}", "lease.grace_seconds"),
        ("[lease]\ngrace_seconds = 2026-01-01", "lease.grace_seconds"),
        ("[lease]\nclose_check_strikes = 0", "lease.close_check_strikes"),
        ("[lease]\nclose_check_strikes = 1.0", "lease.close_check_strikes"),
        ("[limits]\nmaxBatch = true", "limits.maxBatch"),
        ("[limits]\nmaxBatch = 2147483648", "limits.maxBatch"),
        ("[retention]\nhours = 24.5", "retention.hours"),
        ("apps = []", "apps"),
        ("[apps]\nx = 1", "apps.x"),
        ('[apps.x]\nname = ""\nexecutable = "/x"', "apps.x.name"),
        ('[apps.x]\nname = "x"\nexecutable = "bin/x"', "apps.x.executable"),
        ('[apps."x#y"]\nname = "x"\nexecutable = "/x"', 'apps."x#y"'),
        ('[apps.""]\nname = "x"\nexecutable = "/x"', 'apps.""'),
        ('[autoquit.apps."x#y"]', 'autoquit.apps."x#y"'),
    ],
)
def test_a_value_of_another_type_or_out_of_bounds_is_refused_by_name(text: str, key: str) -> None:
    refused = refusal(text)
    assert refused.key == key
    assert refused.line is not None


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb =\n", 2), ("a = 1\na = 1", 2), ("[x]\n\n[x]", 3), ('a = "', 1)]
)
def test_a_file_that_is_no_toml_is_refused_with_the_line(text: str, line: int) -> None:
    assert refusal(text).line == line


def test_a_number_of_thousands_of_digits_and_a_deep_nesting_are_refused() -> None:
    assert "TOML" in str(refusal(f"a = {'1' * 5000}"))
    assert "deep" in str(refusal(f"a = {'[' * 20_000}"))


@pytest.mark.parametrize(
    "text", ['[presenter]\nkind = "private-word"', 'x = "private-word', "[apps.x]\nname = 1 # private-word"]
)
def test_no_error_quotes_a_value(text: str) -> None:
    refused = refusal(text)
    assert isinstance(refused, StartRefused)
    assert "private-word" not in str(refused)


# The file


def write(paths: Paths, text: str | bytes = "[presenter]\nkind = 'none'\n", mode: int = 0o644) -> None:
    paths.config_file.write_bytes(text.encode() if isinstance(text, str) else text)
    paths.config_file.chmod(mode)


def test_the_file_is_read(paths: Paths) -> None:
    write(paths)
    assert load_config(paths).presenter.kind == "none"


def test_no_file_means_the_defaults_unless_it_was_named(paths: Paths) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_config(paths)
    assert load_config(attrs.evolve(paths, config_is_named=False)) == Config()


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_refused(paths: Paths, mode: int) -> None:
    write(paths, mode=mode)
    with pytest.raises(ConfigError, match="open to other users"):
        load_config(paths)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_another_user_is_refused(paths: Paths) -> None:
    write(paths)
    os.chown(paths.config_file, 65534, 65534)
    with pytest.raises(ConfigError, match="another user"):
        load_config(paths)


def test_a_link_or_a_folder_is_refused(paths: Paths, tmp_path: Path) -> None:
    paths.config_file.mkdir()
    with pytest.raises(ConfigError, match="regular"):
        load_config(paths)
    paths.config_file.rmdir()
    paths.config_file.symlink_to(tmp_path / "other")
    with pytest.raises(ConfigError, match="link") as refused:
        load_config(attrs.evolve(paths, config_is_named=False))
    assert str(tmp_path) not in str(refused.value)


def test_a_file_that_is_not_utf_8_is_refused_with_the_line(paths: Paths) -> None:
    write(paths, b"# one\n# \xff\n")
    with pytest.raises(ConfigError, match="line 2: is not UTF-8"):
        load_config(paths)


def test_a_byte_order_mark_is_refused_with_the_line(paths: Paths) -> None:
    write(paths, b"\xef\xbb\xbf[access]\n")
    with pytest.raises(ConfigError, match="line 1"):
        load_config(paths)


# Precedence


def test_flag_before_environment_before_file(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    write(paths, "[presenter]\nkind = 'desktop'\narming_ms = 7")
    assert load_config(paths).presenter.kind == "desktop"
    monkeypatch.setenv("COMPANION_PRESENTER", "terminal")
    assert load_config(paths).presenter.kind == "terminal"
    assert load_config(paths, presenter="none").presenter.kind == "none"
    assert load_config(paths, presenter="none").policy.arming_ms == 7


def test_a_wrong_flag_or_variable_is_named(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    write(paths)
    with pytest.raises(ConfigError, match="--presenter: must be"):
        load_config(paths, presenter="window")
    monkeypatch.setenv("COMPANION_PRESENTER", "window")
    with pytest.raises(ConfigError, match="COMPANION_PRESENTER: must be"):
        load_config(paths)


@pytest.mark.requirement("CP-5.1")
def test_the_environment_cannot_enable_access(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    write(paths)
    for name in ("COMPANION_ACCESS", "COMPANION_ACCESS_ENABLED", "ACCESS_ENABLED"):
        monkeypatch.setenv(name, "true")
    assert not load_config(paths).policy.access_enabled
