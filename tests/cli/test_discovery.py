"""What can be asked for, from the command line: whole lists, however many pages they came in (CP-2.4 to CP-2.7)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.cli.pages import whole_list
from broker.client.errors import CallFailed
from protocols.json_values import JSON
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


# -- pages ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class Page:
    next_cursor: str | None


class Pages:
    """A list in pages, which changes once when `stale` says at which cursor."""

    def __init__(self, stale: str | None = None, for_ever: bool = False) -> None:
        self.asked: list[str | None] = []
        self._stale = stale
        self._for_ever = for_ever

    def ask(self, cursor: str | None) -> tuple[Page, JSON]:
        self.asked.append(cursor)
        if cursor is not None and cursor == self._stale:
            self._stale = self._stale if self._for_ever else None
            raise CallFailed("INVALID_PARAMS", "stale", False, {"field": "cursor"})
        number = int(cursor or "0")
        following = str(number + 1) if number < 2 else None
        raw: dict[str, Any] = {"things": [number], "current": "a", "nextCursor": following}
        return Page(following), raw


def test_pages_are_put_together() -> None:
    pages, raw = whole_list(Pages().ask, "things")
    assert raw == {"things": [0, 1, 2], "current": "a", "nextCursor": None}
    assert len(pages) == 3


@pytest.mark.requirement("CP-2.5", "CP-7.2")
def test_a_list_that_changes_while_it_is_read_is_read_again() -> None:
    pages = Pages(stale="2")
    assert whole_list(pages.ask, "things")[1]["things"] == [0, 1, 2]
    assert pages.asked == [None, "1", "2", None, "1", "2"]


def test_one_that_always_changes_is_given_up() -> None:
    with pytest.raises(CallFailed):
        whole_list(Pages(stale="1", for_ever=True).ask, "things")
