"""Which folder is chosen: argument before environment before the platform's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.paths import find_paths


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("XDG_", "COMPANION_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "session"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def test_linux_without_a_session_keeps_all_under_the_users_home(home: Path) -> None:
    paths = find_paths(platform="linux")
    state = home / ".local" / "state" / "companion"
    assert paths.state == state
    assert paths.runtime == state / "run"
    assert paths.database.parent == state
    assert paths.config_file == home / ".config" / "companion" / "config.toml"
    assert paths.credentials == home / ".config" / "companion" / "credentials"
    assert paths.characters == home / ".config" / "companion" / "characters"
    assert not paths.config_is_named


def test_linux_with_a_session_puts_the_sockets_there(session: Path) -> None:
    paths = find_paths(platform="linux")
    assert paths.runtime == session / "companion"
    assert paths.companion_socket == session / "companion" / "companion.sock"
    assert paths.lease_socket == session / "companion" / "ai-protection.sock"
    assert paths.control_socket == session / "companion" / "control.sock"
    assert paths.lease_socket_fallback is None


@pytest.mark.parametrize("value", ["", "relative", "/nonexistent-folder", "/dev/null"])
def test_a_session_folder_that_is_none_is_passed_over(
    home: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    assert find_paths(platform="linux").runtime == home / ".local" / "state" / "companion" / "run"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give folders away")
def test_a_session_folder_of_another_user_is_passed_over(home: Path, session: Path) -> None:
    os.chown(session, 65534, 65534)
    assert find_paths(platform="linux").runtime == home / ".local" / "state" / "companion" / "run"


@pytest.mark.requirement("LP-1")
def test_macos_has_the_lease_socket_at_its_documented_path_and_one_to_fall_back_on(
    home: Path, session: Path
) -> None:
    paths = find_paths(platform="darwin")
    support = home / "Library" / "Application Support"
    assert paths.lease_socket == support / "Aion" / "ipc" / "ai-protection.sock"
    assert paths.lease_socket_fallback == paths.runtime / "ai-protection.sock"
    assert support in paths.runtime.parents
    assert support in paths.state.parents
    assert paths.config_file == support / "companion" / "config.toml"


def test_on_macos_a_named_runtime_folder_holds_all_the_sockets(tmp_path: Path) -> None:
    paths = find_paths(runtime_dir=tmp_path, platform="darwin")
    assert paths.lease_socket == tmp_path / "ai-protection.sock"
    assert paths.lease_socket_fallback is None


def test_no_two_private_folders_are_the_folder_of_the_configuration() -> None:
    """Which a person makes with the usual mode, and which would then be refused."""
    for platform in ("linux", "darwin"):
        paths = find_paths(platform=platform)
        assert paths.config_file.parent not in (paths.runtime, paths.state, paths.credentials)


def test_the_environment_goes_before_the_platform(
    tmp_path: Path, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPANION_RUNTIME_DIR", str(tmp_path / "r"))
    monkeypatch.setenv("COMPANION_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("COMPANION_CONFIG", str(tmp_path / "c.toml"))
    paths = find_paths()
    assert (paths.runtime, paths.state, paths.config_file) == (
        tmp_path / "r",
        tmp_path / "s",
        tmp_path / "c.toml",
    )
    assert paths.lock_file.parent == tmp_path / "r"
    assert paths.state_lock_file.parent == tmp_path / "s"
    assert paths.config_is_named


def test_an_argument_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COMPANION_RUNTIME_DIR", "COMPANION_STATE_DIR", "COMPANION_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "environment"))
    paths = find_paths(config=tmp_path / "c", runtime_dir=tmp_path / "r", state_dir=tmp_path / "s")
    assert (paths.runtime, paths.state, paths.config_file) == (tmp_path / "r", tmp_path / "s", tmp_path / "c")


def test_an_empty_variable_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COMPANION_RUNTIME_DIR", "COMPANION_STATE_DIR", "COMPANION_CONFIG"):
        monkeypatch.setenv(name, "")
    assert find_paths(platform="linux").state == home / ".local" / "state" / "companion"


def test_relative_names_are_taken_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_paths(state_dir="here").state == tmp_path / "here"


def test_without_a_session_the_sockets_follow_a_named_state_folder(tmp_path: Path) -> None:
    assert find_paths(state_dir=tmp_path / "s", platform="linux").runtime == tmp_path / "s" / "run"


def test_nothing_is_made(home: Path) -> None:
    find_paths(platform="linux")
    find_paths(platform="darwin")
    assert not home.exists()
