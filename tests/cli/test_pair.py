"""Pairing from the command line, and whose credential the other commands use."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from broker.credentials import Credential, write_credential
from tests.cli.conftest import PROFILE, CommandLine
from tests.cli.person import DENIED, Person


def profile_file(run: CommandLine, profile: str) -> Path:
    return run.folder / "xdg" / "companion" / "credentials" / f"{profile}.json"


def kept(run: CommandLine, profile: str) -> Any:
    return json.loads(profile_file(run, profile).read_text())


@pytest.mark.requirement("CP-5.2", "CP-5.5", "CP-5.6")
def test_the_key_goes_to_a_private_file_and_is_never_printed(companion: CommandLine, person: Person) -> None:
    ended = companion(
        "pair", "Second", "--scopes", "interact,discover", "--credential-profile", "second", "--json"
    )
    assert ended.returncode == 0
    printed = json.loads(ended.stdout)
    saved = kept(companion, "second")
    assert printed == {
        "clientId": saved["clientId"],
        "label": "Second",
        "scopes": ["discover", "interact"],
        "credentialProfile": "second",
        "store": "file",
    }
    assert len(saved["key"]) == 43
    assert saved["key"] not in ended.stdout + ended.stderr
    assert person.codes[-1] in ended.stderr
    assert stat.S_IMODE(profile_file(companion, "second").stat().st_mode) == 0o600
    profile_file(companion, "second").unlink()


@pytest.mark.requirement("CP-6.5", "CP-6.6")
def test_a_denied_pairing_is_3_and_leaves_nothing(companion: CommandLine) -> None:
    asked = ("pair", DENIED, "--scopes", "notify", "--credential-profile", "denied")
    error = companion.json(*asked, exit_code=3)["error"]
    assert (error["code"], error["retryable"]) == ("FORBIDDEN", False)
    assert not profile_file(companion, "denied").exists()


@pytest.mark.requirement("CP-6.5")
@pytest.mark.parametrize(
    "arguments",
    [
        ("pair", "A", "--scopes", "everything", "--credential-profile", "p"),
        ("pair", "A", "--scopes", "", "--credential-profile", "p"),
        ("pair", "A", "--scopes", "notify", "--credential-profile", "../p"),
        ("pair", "A", "--scopes", "notify"),
        ("pair", "", "--scopes", "notify", "--credential-profile", "p"),
    ],
)
def test_bad_parameters_are_found_before_anybody_is_asked(
    lonely: CommandLine, arguments: tuple[str, ...]
) -> None:
    error = lonely.json(*arguments, exit_code=2)["error"]
    assert (error["code"], error["retryable"]) == ("INVALID_PARAMS", False)


def test_a_name_that_the_broker_does_not_take_is_2(companion: CommandLine) -> None:
    asked = ("pair", "two\nlines", "--scopes", "notify", "--credential-profile", "p")
    assert companion.json(*asked, exit_code=2)["error"]["field"] == "clientName"


@pytest.mark.requirement("CP-5.7")
def test_a_folder_of_credentials_that_others_can_read_is_found_before_anybody_is_asked(
    lonely: CommandLine,
) -> None:
    profile_file(lonely, "p").parent.mkdir(parents=True, mode=0o755)
    asked = ("pair", "A", "--scopes", "notify", "--credential-profile", "p")
    error = lonely.json(*asked, exit_code=3)["error"]
    assert "open to other users" in error["message"]


@pytest.mark.requirement("G18")
def test_a_name_that_looks_like_an_option_is_a_name(companion: CommandLine) -> None:
    options = ("--scopes", "notify", "--credential-profile", "dash")
    assert companion.json("pair", *options, "--json", "--", "-rf")["label"] == "-rf"
    profile_file(companion, "dash").unlink()


# -- profiles ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-6.4")
def test_the_only_profile_is_used_by_default(companion: CommandLine) -> None:
    found = companion.json("runtime", "describe")
    assert found["authorization"]["clientId"] == kept(companion, PROFILE)["clientId"]
    assert found["access"] == {"enabled": True}


@pytest.mark.requirement("CP-6.4", "CP-6.6")
def test_without_a_profile_it_fails_clearly(lonely: CommandLine) -> None:
    error = lonely.json("runtime", "describe", exit_code=3)["error"]
    assert error["code"] == "UNAUTHENTICATED"
    assert "pair first" in error["message"]


@pytest.mark.requirement("CP-6.4")
def test_of_several_profiles_none_is_picked(lonely: CommandLine) -> None:
    for profile in ("one", "two"):
        credential = Credential(profile, ("notify",), "k" * 43)
        write_credential(profile_file(lonely, profile).parent, profile, credential)
    error = lonely.json("requests", "get", "q", exit_code=3)["error"]
    assert "one, two" in error["message"]
    assert lonely.json("requests", "get", "q", "--credential-profile", "one", exit_code=4)


@pytest.mark.requirement("CP-6.4")
def test_a_profile_that_does_not_exist_is_3(companion: CommandLine) -> None:
    arguments = ("runtime", "describe", "--credential-profile", "no-such")
    assert companion.json(*arguments, exit_code=3)["error"]["code"] == "UNAUTHENTICATED"


@pytest.mark.requirement("CP-6.5", "CP-6.6")
def test_a_key_that_the_broker_does_not_know_is_3(companion: CommandLine) -> None:
    credential = Credential(kept(companion, PROFILE)["clientId"], ("notify",), "A" * 43)
    write_credential(profile_file(companion, "wrong").parent, "wrong", credential)
    arguments = ("runtime", "describe", "--credential-profile", "wrong")
    error = companion.json(*arguments, exit_code=3)["error"]
    assert (error["code"], error["retryable"]) == ("UNAUTHENTICATED", False)
    profile_file(companion, "wrong").unlink()
