"""Where a paired client's key is kept: chosen before the person is asked, recorded, never downgraded silently."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from broker.credentials import Credential, write_credential
from tests.cli.conftest import CommandLine
from tests.cli.person import DENIED, Person
from tests.cli.test_pair import kept, profile_file
from tests.support import keyrings

BROKEN = [
    pytest.param(keyrings.NONE, "NoKeyringError", id="none"),
    pytest.param(keyrings.NULL, "does not keep", id="null"),
    pytest.param(keyrings.LOCKED, "may be locked", id="locked"),
    pytest.param("no.such.Backend", "ModuleNotFoundError", id="misspelt"),
]


def pair(run: CommandLine, profile: str, *options: str, name: str = "Keeper") -> Any:
    return run("pair", name, "--scopes", "discover", "--credential-profile", profile, "--json", *options)


@pytest.fixture
def keeper(companion: CommandLine, tmp_path: Path) -> Any:
    """The command line with a keychain of this kind."""
    return lambda backend: companion.with_variables(keyrings.environment(backend, tmp_path))


@pytest.fixture(autouse=True)
def no_profile_left(request: pytest.FixtureRequest) -> Any:
    yield
    if "companion" in request.fixturenames:
        profile_file(request.getfixturevalue("companion"), "kept").unlink(missing_ok=True)


def describe(run: CommandLine) -> Any:
    return run("runtime", "describe", "--credential-profile", "kept", "--json")


@pytest.mark.requirement("CP-5.2", "CP-5.5")
def test_the_key_goes_to_the_keychain_and_every_command_finds_it_there(keeper: Any, tmp_path: Path) -> None:
    run = keeper(keyrings.FILED)
    ended = pair(run, "kept")
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)
    assert (printed["credentialProfile"], printed["store"]) == ("kept", "keychain")
    client = printed["clientId"]
    assert kept(run, "kept") == {"clientId": client, "scopes": ["discover"], "store": "keychain"}
    key = keyrings.content(tmp_path)[client]
    assert key not in ended.stdout + ended.stderr
    assert json.loads(describe(run).stdout)["authorization"]["clientId"] == client
    again = json.loads(pair(run, "kept").stdout)["clientId"]
    assert list(keyrings.content(tmp_path)) == [again]  # what was replaced is gone


@pytest.mark.requirement("CP-5.2")
@pytest.mark.parametrize(("backend", "reason"), BROKEN)
def test_auto_takes_a_file_where_no_keychain_works_and_says_so(
    keeper: Any, backend: str, reason: str
) -> None:
    run = keeper(backend)
    ended = pair(run, "kept")
    assert (ended.returncode, json.loads(ended.stdout)["store"]) == (0, "file")
    assert "the key will be kept in a private file" in ended.stderr
    assert reason in ended.stderr
    assert kept(run, "kept")["store"] == "file"
    assert describe(run).returncode == 0


@pytest.mark.requirement("CP-5.2", "CP-6.6")
@pytest.mark.parametrize(("backend", "reason"), BROKEN)
def test_a_keychain_that_was_asked_for_is_not_replaced(
    lonely: CommandLine, tmp_path: Path, backend: str, reason: str
) -> None:
    """Found out before the person is asked: no broker is needed for it."""
    run = lonely.with_variables(keyrings.environment(backend, tmp_path))
    ended = pair(run, "kept", "--key-store", "keychain")
    error = json.loads(ended.stdout)["error"]
    assert (ended.returncode, error["code"], error["retryable"]) == (3, "UNAUTHENTICATED", False)
    assert reason in error["message"]
    assert not profile_file(run, "kept").exists()


def test_file_leaves_the_keychain_alone(keeper: Any, tmp_path: Path) -> None:
    run = keeper(keyrings.LOCKED)
    ended = pair(run, "kept", "--key-store", "file")
    assert json.loads(ended.stdout)["store"] == "file"
    assert "keychain" not in ended.stderr
    assert describe(run).returncode == 0


@pytest.mark.requirement("CP-5.2", "CP-6.6")
@pytest.mark.parametrize("backend", [keyrings.NONE, keyrings.NULL, keyrings.LOCKED])
def test_a_key_in_a_keychain_that_is_gone_is_3_and_looked_for_nowhere_else(
    lonely: CommandLine, tmp_path: Path, backend: str
) -> None:
    run = lonely.with_variables(keyrings.environment(backend, tmp_path))
    profile_file(run, "kept").parent.mkdir(parents=True, mode=0o700)
    content = {"clientId": "c1", "scopes": ["discover"], "store": "keychain"}
    profile_file(run, "kept").write_text(json.dumps(content))
    profile_file(run, "kept").chmod(0o600)
    ended = describe(run)
    assert (ended.returncode, json.loads(ended.stdout)["error"]["code"]) == (3, "UNAUTHENTICATED")
    assert "Traceback" not in ended.stderr


@pytest.mark.requirement("CP-5.2")
def test_pairing_again_keeps_to_where_the_key_was(keeper: Any, tmp_path: Path) -> None:
    assert pair(keeper(keyrings.FILED), "kept").returncode == 0
    refused = pair(keeper(keyrings.LOCKED), "kept")
    assert refused.returncode == 3
    assert "--key-store file" in json.loads(refused.stdout)["error"]["message"]
    allowed = pair(keeper(keyrings.LOCKED), "kept", "--key-store", "file")
    assert json.loads(allowed.stdout)["store"] == "file"
    still = pair(keeper(keyrings.FILED), "kept")
    assert json.loads(still.stdout)["store"] == "file"


@pytest.mark.requirement("CP-5.2", "CP-5.5")
@pytest.mark.parametrize("backend", [keyrings.LOCKED_LATER, keyrings.TALKATIVE])
def test_a_keychain_that_fails_once_the_key_is_there(keeper: Any, backend: str) -> None:
    """The key is handed over only once, so auto keeps it in a file, aloud; what was asked for by name is kept to."""
    run = keeper(backend)
    ended = pair(run, "kept", "--key-store", "auto")
    assert (ended.returncode, json.loads(ended.stdout)["store"]) == (0, "file")
    assert "it is kept in a private file" in ended.stderr
    key = kept(run, "kept")["key"]
    assert key not in ended.stdout + ended.stderr
    profile_file(run, "kept").unlink()
    refused = pair(run, "kept", "--key-store", "keychain")
    assert refused.returncode == 3
    assert not profile_file(run, "kept").exists()
    assert not re.search(r"[\w-]{43}", refused.stdout + refused.stderr)


def test_a_denied_pairing_leaves_the_profile_and_the_keychain_as_they_were(
    keeper: Any, tmp_path: Path, person: Person
) -> None:
    run = keeper(keyrings.FILED)
    assert pair(run, "kept").returncode == 0
    before = keyrings.content(tmp_path)
    assert pair(run, "kept", name=DENIED).returncode == 3
    assert keyrings.content(tmp_path) == before
    assert describe(run).returncode == 0


def test_a_damaged_profile_can_be_paired_over(companion: CommandLine) -> None:
    write_credential(profile_file(companion, "kept").parent, "kept", Credential("c", (), "k"))
    profile_file(companion, "kept").write_text("{")
    assert pair(companion, "kept").returncode == 0
    assert describe(companion).returncode == 0
