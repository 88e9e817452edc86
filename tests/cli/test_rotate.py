"""clients rotate-key: another key for the same client, kept before the old one is worth nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.credentials import Credential, write_credential
from tests.cli.conftest import CommandLine
from tests.cli.test_pair import kept, profile_file
from tests.support import keyrings

USE = ("--credential-profile", "turning")


@pytest.fixture
def turning(companion: CommandLine, tmp_path: Path) -> CommandLine:
    """The command line with a profile of this test's own, in the keychain."""
    run = companion.with_variables(keyrings.environment(keyrings.FILED, tmp_path))
    ended = run("pair", "Turning", "--scopes", "discover,interact", *USE, "--key-store", "keychain")
    assert ended.returncode == 0, ended.stderr
    return run


def rotate(run: CommandLine) -> Any:
    return run("clients", "rotate-key", *USE, "--json")


@pytest.mark.requirement("CP-5.1", "CP-5.2", "CP-5.5")
def test_the_new_key_takes_the_place_of_the_old(turning: CommandLine, tmp_path: Path) -> None:
    client_id = kept(turning, "turning")["clientId"]
    old = keyrings.content(tmp_path)[client_id]
    asked = turning("confirm", "Before?", *USE, "--json")
    assert asked.returncode == 0
    ended = rotate(turning)
    assert (ended.returncode, ended.stderr) == (0, "")
    new = keyrings.content(tmp_path)[client_id]
    assert new != old
    assert new not in ended.stdout
    found = turning("runtime", "describe", *USE, "--json")
    assert client_id in found.stdout
    with_old = Credential(client_id, (), old)
    write_credential(profile_file(turning, "old").parent, "old", with_old)
    assert turning("runtime", "describe", "--credential-profile", "old").returncode == 3
    profile_file(turning, "old").unlink()
    profile_file(turning, "turning").unlink()


@pytest.mark.requirement("CP-5.2", "CP-6.6")
def test_a_new_key_that_cannot_be_kept_leaves_the_old_one_good(turning: CommandLine, tmp_path: Path) -> None:
    client_id = kept(turning, "turning")["clientId"]
    key = keyrings.content(tmp_path)[client_id]
    refusing = turning.with_variables(keyrings.environment(keyrings.TALKATIVE, tmp_path))
    ended = rotate(refusing)
    assert (ended.returncode, key in ended.stdout + ended.stderr) == (3, False)
    assert keyrings.content(tmp_path) == {client_id: key}
    assert turning("runtime", "describe", *USE).returncode == 0
    profile_file(turning, "turning").unlink()


def test_it_is_for_the_own_profile_only(lonely: CommandLine) -> None:
    assert lonely.json("clients", "rotate-key", exit_code=3)["error"]["code"] == "UNAUTHENTICATED"
