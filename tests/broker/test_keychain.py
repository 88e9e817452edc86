"""Keys in a keychain: real keyring backends, the ones that keyring has for no keychain among them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import keyring.core
import pytest
from keyring.core import load_keyring

from broker.credentials import (
    Credential,
    CredentialError,
    KeyNotKept,
    forget_client,
    list_profiles,
    read_credential,
    read_profile,
    remove_credential,
    write_credential,
)
from broker.keychain import KeychainError, check_keychain, drop_key, find_key, keep_key
from tests.support import keyrings

KEY = "not-a-real-key"
CREDENTIAL = Credential("c1", ("discover", "notify"), KEY, "keychain")


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets a test choose the backend."""

    def choose(backend: str) -> None:
        for name, value in keyrings.environment(backend, tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(keyring.core, "_keyring_backend", load_keyring(backend))

    return choose


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "config" / "credentials"


@pytest.fixture
def filed(use: Callable[[str], None]) -> None:
    use(keyrings.FILED)


@pytest.mark.requirement("CP-5.2")
def test_the_profile_says_where_the_key_is_and_holds_none(filed: None, folder: Path, tmp_path: Path) -> None:
    write_credential(folder, "work", CREDENTIAL)
    content = json.loads((folder / "work.json").read_text())
    assert content == {"clientId": "c1", "scopes": ["discover", "notify"], "store": "keychain"}
    assert read_credential(folder, "work") == CREDENTIAL
    assert read_profile(folder, "work").key is None
    assert keyrings.content(tmp_path) == {"c1": KEY}


@pytest.mark.parametrize("store", ["keychain", "file"])
def test_a_key_that_is_replaced_or_removed_leaves_the_keychain(
    filed: None, folder: Path, tmp_path: Path, store: str
) -> None:
    write_credential(folder, "work", CREDENTIAL)
    second = Credential("c2", (), "another", "keychain" if store == "keychain" else "file")
    write_credential(folder, "work", second)
    assert keyrings.content(tmp_path) == ({"c2": "another"} if store == "keychain" else {})
    remove_credential(folder, "work")
    assert keyrings.content(tmp_path) == {}


def test_the_same_client_may_have_a_new_key(filed: None, folder: Path, tmp_path: Path) -> None:
    write_credential(folder, "work", CREDENTIAL)
    write_credential(folder, "work", Credential("c1", (), "rotated", "keychain"))
    assert keyrings.content(tmp_path) == {"c1": "rotated"}
    assert read_credential(folder, "work").key == "rotated"


@pytest.mark.requirement("CP-4.14", "CP-5.2")
def test_what_is_kept_of_a_client_can_be_forgotten(filed: None, folder: Path, tmp_path: Path) -> None:
    write_credential(folder, "a", CREDENTIAL)
    write_credential(folder, "b", Credential("c2", (), KEY, "keychain"))
    write_credential(folder, "c", Credential("c1", (), KEY))
    (folder / "damaged.json").touch(0o600)
    assert forget_client(folder, "c1") == ["a", "c"]
    assert list_profiles(folder) == ["b", "damaged"]
    assert keyrings.content(tmp_path) == {"c2": KEY}
    assert forget_client(folder / "no-such", "c1") == []


@pytest.mark.requirement("CP-5.2", "CP-5.5")
@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        (keyrings.NULL, "does not keep"),
        (keyrings.NONE, "NoKeyringError"),
        (keyrings.LOCKED, "may be locked"),
        (keyrings.TALKATIVE, "RuntimeError"),
    ],
)
def test_a_keychain_that_does_not_take_the_key_is_an_error_and_nothing_is_written(
    use: Callable[[str], None], folder: Path, backend: str, reason: str
) -> None:
    use(backend)
    with pytest.raises(KeyNotKept, match=reason) as raised:
        write_credential(folder, "work", CREDENTIAL)
    assert KEY not in str(raised.value)
    assert raised.value.__suppress_context__
    assert list_profiles(folder) == []


@pytest.mark.requirement("CP-5.2")
@pytest.mark.parametrize("backend", [keyrings.NULL, keyrings.NONE, keyrings.LOCKED])
def test_a_key_is_looked_for_nowhere_else(use: Callable[[str], None], folder: Path, backend: str) -> None:
    use(keyrings.FILED)
    write_credential(folder, "work", CREDENTIAL)
    use(backend)
    with pytest.raises(CredentialError, match=r"key of credential profile work"):
        read_credential(folder, "work")
    remove_credential(folder, "work")  # the profile goes, whatever becomes of the key
    assert list_profiles(folder) == []


@pytest.mark.parametrize("backend", [keyrings.NULL, keyrings.NONE, keyrings.LOCKED])
def test_a_probe_finds_out_what_a_keychain_is_good_for(use: Callable[[str], None], backend: str) -> None:
    use(backend)
    with pytest.raises(KeychainError):
        check_keychain()


def test_a_probe_leaves_nothing(filed: None, tmp_path: Path) -> None:
    check_keychain()
    assert keyrings.content(tmp_path) == {}


def test_what_is_not_there_is_none_and_can_be_dropped(filed: None) -> None:
    assert find_key("c1") is None
    drop_key("c1")
    keep_key("c1", KEY)
    assert find_key("c1") == KEY


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan", "inf", "1e300"])
def test_patience_is_a_number_of_seconds(filed: None, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv("COMPANION_KEYCHAIN_SECONDS", seconds)
    with pytest.raises(KeychainError, match="not a number of seconds"):
        check_keychain()


def test_a_file_that_cannot_be_written_leaves_no_key_behind(
    filed: None, folder: Path, tmp_path: Path
) -> None:
    folder.mkdir(parents=True, mode=0o700)
    (folder / "work.json").mkdir()
    with pytest.raises(CredentialError, match="cannot be written"):
        write_credential(folder, "work", CREDENTIAL)
    assert keyrings.content(tmp_path) == {}
    with contextlib.suppress(CredentialError):
        remove_credential(folder, "work")
