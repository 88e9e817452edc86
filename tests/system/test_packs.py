"""Character packs and discovery over the real socket: the owner adds a folder, and clients see it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.broker_process import characters_of, running_broker
from tests.support.packs import BROKEN, HOP, install

pytestmark = pytest.mark.skipif(
    sys.platform == "darwin", reason="the folder is not the test's to choose there"
)


@pytest.mark.requirement("CP-2.4", "CP-2.15", "CP-7.3", "CP-2.16")
def test_a_pack_works_a_broken_one_is_reported_and_both_can_go(folder: Path) -> None:
    characters = characters_of(folder)
    install(characters, "pip")
    install(characters, "broken", BROKEN / "takes_a_core_id")
    with running_broker(folder) as broker:
        client = broker.agent("discover", "animate", "notify")
        listed = client.call("characters.list")
        assert [one["id"] for one in listed["characters"]] == ["aion", "momo", "pip"]
        revision = listed["catalogRevision"]
        assert client.call("runtime.describe")["catalogRevision"] == revision
        described = client.call("capabilities.describe", id=HOP)
        assert described["inputSchema"]["properties"]["times"]["default"] == 2
        made = client.call(
            "requests.create", capability=HOP, params={"side": "left"}, character="pip", timeoutMs=60_000
        )
        shown = broker.presenter.wait_for("present", requestId=made["requestId"])
        assert (shown["character"], shown["expression"]) == ("pip", "hopping")
        assert shown["parameters"] == {"side": "left", "times": 2, "height": 1, "chirp": False}
        packs = broker.control().call("status")["characterPacks"]
        assert packs["loaded"] == ["pip"]
        assert [one["name"] for one in packs["skipped"]] == ["broken"]
        assert "event='character_pack_skipped'" in broker.log
        assert "setting='broken'" in broker.log
        assert str(characters) not in broker.log
        credential = broker.credential("discover", "animate", "notify")
    for path in [*characters.glob("*/*"), *characters.iterdir()]:
        path.rmdir() if path.is_dir() else path.unlink()
    with running_broker(folder) as broker:
        _ = broker.presenter
        client = broker.session(credential)
        assert client.call("characters.list")["catalogRevision"] != revision
        assert client.call("capabilities.list")["capabilities"][0]["id"] == "animation.play"
        ended = client.call("requests.get", requestId=made["requestId"])
        assert (ended["state"], ended["reason"], ended["resolvedCharacter"]) == (
            "failed",
            "runtime_restarted",
            "pip",
        )


@pytest.mark.requirement("CP-2.5", "CP-2.7", "CP-2.8")
def test_lists_come_in_pages_and_in_batches(folder: Path) -> None:
    with running_broker(folder) as broker:
        client = broker.agent("discover", "notify", "interact")
        found, cursor = [], None
        while True:
            page = client.call("capabilities.list", limit=1, **({"cursor": cursor} if cursor else {}))
            found += [one["id"] for one in page["capabilities"]]
            cursor = page["nextCursor"]
            if cursor is None:
                break
        assert found == ["notice.show", "progress.track", "interaction.choose", "interaction.ask_text"]
        names = ("characters.list", "styles.list", "capabilities.list")
        client.send([{"jsonrpc": "2.0", "id": name, "method": name} for name in names])
        replies = client.read()
        assert {reply["id"] for reply in replies} == set(names)
        assert len({reply["result"]["catalogRevision"] for reply in replies}) == 1
