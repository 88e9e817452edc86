"""What can be asked for, from the command line: whole lists, however many pages they came in (CP-2.4 to CP-2.7)."""

from __future__ import annotations

import pytest

from tests.cli.conftest import PROFILE, CommandLine
from tests.cli.test_pair import kept
from tests.support.broker_process import BrokerProcess
from tests.support.lines import Rpc

LISTS = ["characters", "capabilities", "styles"]


@pytest.fixture
def agent(companion: CommandLine, broker: BrokerProcess) -> Rpc:
    """The same client, over a raw connection."""
    own = kept(companion, PROFILE)
    return broker.session((own["clientId"], own["key"]))


@pytest.mark.requirement("CP-2.4", "CP-2.5", "CP-2.7", "CP-6.1")
@pytest.mark.parametrize("what", LISTS)
def test_a_list_is_the_broker_s_own(companion: CommandLine, agent: Rpc, what: str) -> None:
    listed = companion.json(what, "list")
    assert listed == agent.call(f"{what}.list")
    assert listed["nextCursor"] is None
    lines = companion.inside(what, "list").stdout
    for item in listed[what]:
        assert item["id"] in lines


@pytest.mark.requirement("CP-2.6", "CP-6.1")
def test_a_capability_is_described_whole(companion: CommandLine, agent: Rpc) -> None:
    for capability in companion.json("capabilities", "list")["capabilities"]:
        described = companion.json("capabilities", "describe", capability["id"])
        assert described == agent.call("capabilities.describe", id=capability["id"])
        lines = companion.inside("capabilities", "describe", capability["id"]).stdout.splitlines()
        assert [line.split(":")[0] for line in lines] == list(described)


@pytest.mark.requirement("CP-2.16", "CP-6.6")
def test_an_unknown_capability_is_2(companion: CommandLine) -> None:
    error = companion.json("capabilities", "describe", "no.such", exit_code=2)["error"]
    assert error["code"] == "UNSUPPORTED_CAPABILITY"


@pytest.mark.requirement("CP-2.8")
def test_discovery_needs_its_scope(companion: CommandLine) -> None:
    companion.json("pair", "Blind", "--scopes", "notify", "--credential-profile", "blind")
    for command in (*((what, "list") for what in LISTS), ("capabilities", "describe", "notice.show")):
        error = companion.json(*command, "--credential-profile", "blind", exit_code=3)["error"]
        assert error["code"] == "FORBIDDEN"
    (companion.folder / "xdg" / "companion" / "credentials" / "blind.json").unlink()
    assert companion.json("characters", "list", "--credential-profile", PROFILE)
