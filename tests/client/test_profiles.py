"""Which credential and which socket a program gets that names them, or does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.client.profiles import find_target
from broker.credentials import Credential, CredentialError, NoCredential, write_credential
from broker.paths import find_paths
from protocols.companion.client import Credential as Claim

OTHER = Claim("other", "o" * 43)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "COMPANION_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


def keep(profile: str) -> None:
    write_credential(find_paths().credentials, profile, Credential(f"id of {profile}", (), "k" * 43))


def test_the_only_profile_is_taken_and_the_users_own_broker() -> None:
    keep("one")
    target = find_target(None, None, None)
    assert target.credential == Claim("id of one", "k" * 43)
    assert target.path == find_paths().companion_socket


@pytest.mark.requirement("CP-6.4")
def test_of_several_profiles_none_is_guessed() -> None:
    keep("one")
    keep("two")
    with pytest.raises(CredentialError, match="one, two"):
        find_target(None, None, None)
    assert find_target("two", None, None).credential.client_id == "id of two"


@pytest.mark.requirement("CP-6.4")
def test_without_a_profile_nobody_is_authenticated() -> None:
    with pytest.raises(NoCredential, match="pair first"):
        find_target(None, None, None)
    with pytest.raises(NoCredential):
        find_target("missing", None, None)


def test_a_socket_and_a_credential_of_ones_own_need_no_profile() -> None:
    target = find_target(None, Path("/socket"), OTHER)
    assert (target.path, target.credential) == (Path("/socket"), OTHER)


@pytest.mark.requirement("CP-5.5")
def test_no_key_is_shown_by_a_target() -> None:
    keep("one")
    assert "k" * 43 not in repr(find_target(None, None, None))
