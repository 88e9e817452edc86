"""Credential profiles: private, whole, and silent about the key."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from broker.credentials import (
    Credential,
    CredentialError,
    NoCredential,
    list_profiles,
    read_credential,
    remove_credential,
    write_credential,
)

KEY = "not-a-real-key"
CREDENTIAL = Credential("c1", ("discover", "notify"), KEY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "config" / "credentials"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.requirement("CP-5.2")
def test_a_profile_is_kept_in_a_private_folder_and_file(folder: Path) -> None:
    write_credential(folder, "work", CREDENTIAL)
    assert read_credential(folder, "work") == CREDENTIAL
    assert (mode(folder), mode(folder / "work.json")) == (0o700, 0o600)


def test_the_file_has_the_documented_members(folder: Path) -> None:
    write_credential(folder, "work", CREDENTIAL)
    content = json.loads((folder / "work.json").read_text(encoding="utf-8"))
    assert content == {"clientId": "c1", "scopes": ["discover", "notify"], "store": "file", "key": KEY}


def test_a_profile_can_be_written_over_listed_and_removed(folder: Path) -> None:
    assert list_profiles(folder) == []
    write_credential(folder, "b", CREDENTIAL)
    write_credential(folder, "a.b", CREDENTIAL)
    write_credential(folder, "b", Credential("c2", (), KEY))
    (folder / ".hidden.json").touch()
    (folder / "note.txt").touch()
    assert list_profiles(folder) == ["a.b", "b"]
    assert read_credential(folder, "b").client_id == "c2"
    remove_credential(folder, "b")
    assert list_profiles(folder) == ["a.b"]
    with pytest.raises(NoCredential):
        remove_credential(folder, "b")


def test_a_profile_that_does_not_exist_is_told_apart(folder: Path) -> None:
    with pytest.raises(NoCredential, match="no credential profile work"):
        read_credential(folder, "work")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/x", "a\\b", ".x", "-x", "a\n", "a b", "x" * 65, "é"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(CredentialError, match="a profile name is"):
        write_credential(folder, name, CREDENTIAL)
    with pytest.raises(CredentialError, match="a profile name is"):
        read_credential(folder, name)
    with pytest.raises(CredentialError, match="a profile name is"):
        remove_credential(folder, name)


@pytest.mark.requirement("CP-5.5")
def test_the_key_is_in_no_repr() -> None:
    assert KEY not in repr(CREDENTIAL)


DAMAGED = [
    b"",
    b'{"clientId": "c1", "scopes": [], "store": "file", "key": "' + KEY.encode(),
    b"[1]",
    b'{"clientId": 1, "scopes": [], "store": "file", "key": "%s"}' % KEY.encode(),
    b'{"clientId": "c1", "scopes": [1], "store": "file", "key": "%s"}' % KEY.encode(),
    b'{"clientId": "c1", "scopes": "ab", "store": "file", "key": "%s"}' % KEY.encode(),
    b'{"clientId": "c1", "scopes": [], "store": "keychain", "key": "%s"}' % KEY.encode(),
    b'{"clientId": "c1", "scopes": [], "store": "elsewhere", "key": "%s"}' % KEY.encode(),
    b"[" * 60_000,
    b"\xff",
]


@pytest.mark.requirement("CP-5.5")
@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_an_error_that_does_not_quote_it(folder: Path, content: bytes) -> None:
    write_credential(folder, "work", CREDENTIAL)
    (folder / "work.json").write_bytes(content)
    with pytest.raises(CredentialError, match="profile work is damaged") as raised:
        read_credential(folder, "work")
    assert raised.value.__suppress_context__
    assert KEY not in str(raised.value)
    assert not isinstance(raised.value, NoCredential)


@pytest.mark.requirement("CP-5.2")
def test_a_file_that_others_may_read_is_refused(folder: Path) -> None:
    write_credential(folder, "work", CREDENTIAL)
    (folder / "work.json").chmod(0o644)
    with pytest.raises(CredentialError, match="open to other users"):
        read_credential(folder, "work")


def test_a_link_is_refused(folder: Path) -> None:
    write_credential(folder, "work", CREDENTIAL)
    (folder / "other.json").symlink_to(folder / "work.json")
    with pytest.raises(CredentialError, match="link"):
        read_credential(folder, "other")


def test_nothing_is_written_into_a_folder_that_others_may_read(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(CredentialError, match="folder of credentials is open"):
        write_credential(folder, "work", CREDENTIAL)
    assert list(folder.iterdir()) == []


def test_no_error_names_a_path(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    os.mkdir(folder / "work.json", 0o700)
    for act in (
        lambda: read_credential(folder, "work"),
        lambda: write_credential(folder, "work", CREDENTIAL),
        lambda: remove_credential(folder, "work"),
    ):
        with pytest.raises(CredentialError) as raised:
            act()
        assert str(folder) not in str(raised.value)
    assert [path.name for path in folder.iterdir()] == ["work.json"]
