"""Holds every test to the requirements page: an id that it does not list stops the run at collection.

Properties draw the same examples in every run, and how fast the machine is decides nothing.
`HYPOTHESIS_PROFILE=explore` draws others each time.
"""

from __future__ import annotations

import os

import hypothesis
import pytest

from tests.requirements_report import PAGE, cited_ids, read_rows, unknown_citations

_SLOW = hypothesis.HealthCheck.too_slow
hypothesis.settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[_SLOW])
hypothesis.settings.register_profile("explore", deadline=None, suppress_health_check=[_SLOW])
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse unknown ids before deselection, so that `-k` hides none."""
    cited = {item.nodeid: cited_ids(item) for item in items}
    if wrong := unknown_citations(cited, read_rows(PAGE.read_text(encoding="utf-8"))):
        raise pytest.UsageError(*wrong)
