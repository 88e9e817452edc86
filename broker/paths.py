"""Where everything lies: sockets, state, configuration, characters (wire.md, Transport and Configuration).

Only names are chosen here, the same way for the daemon and its clients; nothing is made or checked.  Precedence:
argument, environment variable, the platform's own folders.

    runtime   COMPANION_RUNTIME_DIR, else on Linux companion/ in $XDG_RUNTIME_DIR, else run/ in the state folder
    state     COMPANION_STATE_DIR, else the platform's folder for a user's state
    config    COMPANION_CONFIG names the file, else config.toml in the platform's folder for configuration

Credentials and character packs are always in the platform's folder for configuration.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import attrs

RUNTIME_DIR = "COMPANION_RUNTIME_DIR"
STATE_DIR = "COMPANION_STATE_DIR"
CONFIG = "COMPANION_CONFIG"

_APP = "companion"
_LEASE_SOCKET = "ai-protection.sock"


@attrs.frozen
class Paths:
    """The places of one broker."""

    runtime: Path
    """The private folder of the sockets."""
    state: Path
    """The private folder of the store."""
    config_file: Path
    credentials: Path
    """The private folder of credential profiles."""
    lease_socket: Path
    lease_socket_fallback: Path | None = None
    """Where the lease socket goes when another live server holds the documented path (macOS only)."""
    config_is_named: bool = False
    """Whether somebody named the configuration file, so that it must exist."""
    characters: Path | None = None
    """The folder of the character packs that the user has added; None: nowhere."""

    @property
    def companion_socket(self) -> Path:
        """The socket of the companion protocol."""
        return self.runtime / "companion.sock"

    @property
    def control_socket(self) -> Path:
        """The socket of the control protocol."""
        return self.runtime / "control.sock"

    @property
    def lock_file(self) -> Path:
        """Its lock says who may bind and remove the sockets."""
        return self.runtime / "companion.lock"

    @property
    def state_lock_file(self) -> Path:
        """Its lock says who owns the store: two runtime folders may lead to one state folder."""
        return self.state / "companion.lock"

    @property
    def database(self) -> Path:
        """The store."""
        return self.state / "companion.db"


def find_paths(
    *,
    config: str | os.PathLike[str] | None = None,
    runtime_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    platform: str = sys.platform,
) -> Paths:
    """Choose the paths of the process's user; arguments are those of the command line, None or empty if not given."""
    own_state, own_config = _platform_folders(platform)
    state = _named(state_dir, STATE_DIR) or own_state
    named_runtime = _named(runtime_dir, RUNTIME_DIR)
    runtime = named_runtime or _session_runtime(platform) or state / "run"
    named_config = _named(config, CONFIG)
    own_lease_socket = runtime / _LEASE_SOCKET
    documented = _documented_lease_socket() if platform == "darwin" and not named_runtime else None
    return Paths(
        runtime=runtime,
        state=state,
        config_file=named_config or own_config / "config.toml",
        credentials=own_config / "credentials",
        lease_socket=documented or own_lease_socket,
        lease_socket_fallback=own_lease_socket if documented else None,
        config_is_named=named_config is not None,
        characters=own_config / "characters",
    )


def _named(argument: str | os.PathLike[str] | None, variable: str) -> Path | None:
    value = argument or os.environ.get(variable)
    return Path(value).absolute() if value else None


def _platform_folders(platform: str) -> tuple[Path, Path]:
    """The state and the configuration folder.  On macOS they are one, which the state folder's mode would close."""
    if platform == "darwin":
        from platformdirs.macos import MacOS

        folders = MacOS(_APP, appauthor=False)
        return folders.user_state_path / "state", folders.user_config_path
    from platformdirs.unix import Unix

    unix = Unix(_APP, appauthor=False)
    return unix.user_state_path, unix.user_config_path


def _session_runtime(platform: str) -> Path | None:
    """The folder in $XDG_RUNTIME_DIR, if that names a directory of the user's."""
    value = os.environ.get("XDG_RUNTIME_DIR", "")
    if platform == "darwin" or not os.path.isabs(value):
        return None
    try:
        info = os.stat(value)
    except OSError:
        return None
    owned = stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()
    return Path(value, _APP) if owned else None


def _documented_lease_socket() -> Path:
    """LP-1: the path at which lease clients on macOS look."""
    return Path.home() / "Library" / "Application Support" / "Aion" / "ipc" / _LEASE_SOCKET
