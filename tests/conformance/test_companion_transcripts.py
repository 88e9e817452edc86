"""The companion conversations of fixtures/conformance/companion, in virtual time: engines, handlers and the
ledger.  The presenter in them is a connection that the conversation speaks for.
"""

from __future__ import annotations

import pytest

from handlers import connections
from handlers.companion.routes import ROUTES as COMPANION
from handlers.policy import Policy
from handlers.presenter.routes import ROUTES as PRESENTER
from handlers.routes import merge
from protocols.companion.engine import CompanionEngine
from protocols.presenter.engine import PresenterEngine
from tests.support.pure_driver import PureDriver
from tests.support.pure_world import PureWorld, Spoken
from tests.support.transcripts import Play, Transcript, read_transcripts

ROUTES = merge((connections.ROUTES, COMPANION, PRESENTER))


def _case(transcript: Transcript) -> object:
    marks = pytest.mark.requirement(*transcript.requirements)
    return pytest.param(transcript, id=transcript.name, marks=marks)


@pytest.mark.parametrize("transcript", [_case(one) for one in read_transcripts("companion")])
async def test_conversation_goes_as_written(transcript: Transcript) -> None:
    limits = transcript.limits
    companion = Spoken(lambda: CompanionEngine(limits.max_frame_bytes, limits.max_batch))
    spoken = {"companion": companion, "presenter": Spoken(PresenterEngine)}
    world = PureWorld(ROUTES, spoken, Policy(limits=limits))
    await Play(PureDriver(world), world.me.id.pid).run(transcript)
    assert world.ledger.outstanding == 0
