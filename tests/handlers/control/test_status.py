"""How the broker is, in one look (wire.md, Control protocol)."""

from __future__ import annotations

import attrs
import pytest

from protocols.companion.packs import SkippedPack
from tests.support.control_world import ControlWorld


def test_the_look_counts_what_there_is_and_names_what_holds() -> None:
    world = ControlWorld()
    world.presenter.ready()
    session = world.session("c1")
    session.choose()
    session.cancel(session.choose().request_id)
    world.holder().begin("org.example.Editor")
    status = world.owner().call("status")
    assert status["connections"] == {"companion": 1, "control": 1, "lease": 1, "presenter": 1}
    assert (status["clients"], status["openRequests"], status["leases"]) == (1, 1, 1)
    assert status["presenter"] == {"name": "desktop", "person": True}
    assert status["access"] == {"enabled": True}


@pytest.mark.requirement("CP-2.4")
def test_the_packs_that_were_found_are_named_and_so_is_why_some_were_skipped() -> None:
    world = ControlWorld()
    found = attrs.evolve(
        world.ledger._environment,
        loaded_packs=("momo",),
        skipped_packs=tuple(SkippedPack(f"pack {number}", "\U0001f600" * 300) for number in range(200)),
    )
    world.ledger._environment = found
    owner = world.owner()
    owner.start("status")
    assert len(owner.peer.lines[0]) < 65_536
    packs = owner.reply(1)["result"]["characterPacks"]
    assert packs["loaded"] == ["momo"]
    assert packs["skipped"][0] == {"name": "pack 0", "reason": "\U0001f600" * 300}
