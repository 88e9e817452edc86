"""The lease conversations of fixtures/conformance/lease, in virtual time: engines, handlers and the
ledger.
"""

from __future__ import annotations

import pytest

from tests.support.lease_world import LeaseWorld
from tests.support.pure_driver import PureDriver
from tests.support.transcripts import Play, Transcript, read_transcripts


def _case(transcript: Transcript) -> object:
    marks = pytest.mark.requirement(*transcript.requirements)
    return pytest.param(transcript, id=transcript.name, marks=marks)


@pytest.mark.parametrize("transcript", [_case(one) for one in read_transcripts("lease")])
async def test_conversation_goes_as_written(transcript: Transcript) -> None:
    world = LeaseWorld(transcript.policy)
    await Play(PureDriver(world), world.me.id.pid).run(transcript)
    assert world.ledger.outstanding == 0
