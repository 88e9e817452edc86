"""The concurrency rule under random scripts: the promises of `tests/support/reference.py` hold after every step."""

from __future__ import annotations

from random import Random

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.support.play import Play
from tests.support.scripts import SEEDS, random_script


@pytest.mark.timeout(600)  # a failing script is shrunk, which takes its time
@pytest.mark.requirement("CP-3.4", "CP-4.12")
@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=100, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_every_promise_holds_after_every_step_of_any_script(random: Random) -> None:
    script = random_script(random)
    hypothesis.note("\n".join(map(repr, script)))
    Play().run(script)


@pytest.mark.requirement("CP-3.4", "CP-4.12")
def test_every_promise_holds_for_the_seeds_that_catch_the_mutants() -> None:
    for seed in SEEDS:
        Play().run(random_script(Random(seed)))
